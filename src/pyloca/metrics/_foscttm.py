"""FOSCTTM: how well two sets of coordinates of the same states agree, as single-cell integration prints it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from pyloca.metrics._arrays import check_pair

__all__ = ["foscttm"]

SLAB = 1 << 22  # distances at a time


def foscttm(A: ArrayLike, B: ArrayLike) -> float:
    """Fraction of samples closer than the true match, mean over all samples of both sets.

    For each row of A, the part of the other rows of B that lie closer to it than its own row of B; the same with A and
    B exchanged; and the mean of both. Rows that are equally far count half, so that a collapsed embedding
    scores 0.5.

    Parameters
    ----------
    A, B : (n, d) arrays
        Coordinates of the same n states by two instruments, row by row, in one coordinate system.

    Returns
    -------
    float
        0 is perfect, 0.5 is chance.

    Raises
    ------
    ValueError
        If the arrays do not match, are not finite, differ in columns, or have fewer than 2 rows.

    Examples
    --------
    >>> foscttm([[0.0], [1.0], [2.0]], [[0.1], [1.1], [2.1]])
    0.0
    >>> foscttm([[0.0], [1.0], [2.0]], [[5.0], [5.0], [5.0]])
    0.5
    """
    A, B = check_pair(A, B)
    n = len(A)
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"A and B must be in one coordinate system; got {A.shape[1]} and {B.shape[1]} coordinates.")
    if n < 2:
        raise ValueError(f"foscttm needs at least 2 rows; got {n}.")
    own = np.linalg.norm(A - B, axis=1)
    closer = 0.0
    size = max(1, SLAB // n)
    for one, other in ((A, B), (B, A)):
        for start in range(0, n, size):
            rows = np.arange(start, min(start + size, n))
            apart = cdist(one[rows], other)
            apart[rows - start, rows] = np.inf  # its own match is no rival of itself
            match = own[rows, None]
            closer += np.count_nonzero(apart < match) + np.count_nonzero(apart == match) / 2
    return float(closer / (2 * n * (n - 1)))
