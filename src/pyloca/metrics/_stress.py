"""Errors of all pairwise distances: the paper's stress, and Kruskal's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca.metrics._arrays import check_pair

__all__ = ["kruskal_stress", "stress"]

# Up to this many points all pairs are taken, in slabs; beyond it, this many random pairs.
ALL_PAIRS = 5_000
RANDOM_PAIRS = 10_000_000
SLAB = 1 << 20


def stress(X: ArrayLike, Z: ArrayLike, *, scale: bool = False) -> float:
    """Mean over all pairs i < j of (‖x_i − x_j‖ − c ‖z_i − z_j‖)².

    Parameters
    ----------
    X : (n, d) array
        True latents.
    Z : (n, e) array
        Embedding of the same points.
    scale : bool, default=False
        False: c = 1. True: c is the factor that minimises the stress.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the arrays do not match, are not finite, or have fewer than 2 rows.

    Notes
    -----
    With more than 5000 points the mean is over 10⁷ random pairs, always the same ones; it is accurate to about 0.1 %.
    No n × n matrix is formed.

    Examples
    --------
    >>> stress([[0.0], [1.0], [3.0]], [[0.0], [2.0], [6.0]], scale=True)
    0.0
    """
    sums = _sums(X, Z)
    return (sums.least() if scale else sums.difference) / sums.n_pairs


def kruskal_stress(X: ArrayLike, Z: ArrayLike, *, scale: bool = True) -> float:
    """Kruskal's stress: √(Σ (‖x_i − x_j‖ − c ‖z_i − z_j‖)² / Σ ‖x_i − x_j‖²) over all pairs i < j.

    Parameters
    ----------
    X : (n, d) array
        True latents.
    Z : (n, e) array
        Embedding of the same points.
    scale : bool, default=True
        True: c is the factor that minimises it, as in Kruskal (1964); X and Z may then change places. False: c = 1.

    Returns
    -------
    float
        0 if all distances agree; with `scale`, 1 for a collapsed embedding.

    Raises
    ------
    ValueError
        If the arrays do not match, are not finite, have fewer than 2 rows, or all points of X are the same.

    See Also
    --------
    stress : The same without root and denominator, as in the LOCA paper; more than 5000 points are sampled alike.

    Examples
    --------
    >>> kruskal_stress([[0.0], [1.0], [3.0]], [[0.0], [2.0], [6.0]])
    0.0
    >>> kruskal_stress([[0.0], [1.0], [3.0]], [[0.0], [2.0], [6.0]], scale=False)
    1.0
    """
    sums = _sums(X, Z)
    if not sums.xx > 0:
        raise ValueError("all points of X are the same, so there is no distance that an error could be compared with.")
    return float(np.sqrt((sums.least() if scale else sums.difference) / sums.xx))


class _Sums(NamedTuple):
    """Sums over pairs: of products of true (x) and embedded (z) distances, and of their squared differences."""

    xx: float
    xz: float
    zz: float
    difference: float
    n_pairs: int

    def least(self) -> float:
        """Return the sum of squared differences after the scaling of z that minimises it."""
        return max(self.xx - self.xz * self.xz / self.zz, 0.0) if self.zz > 0 else self.xx


def _sums(X: ArrayLike, Z: ArrayLike) -> _Sums:
    X, Z = check_pair(X, Z)
    n = len(X)
    if n < 2:
        raise ValueError(f"stress needs at least 2 points; got {n}.")
    xx = xz = zz = difference = 0.0
    n_pairs = 0
    for i, j in _pairs(n):
        dx = np.linalg.norm(X[i] - X[j], axis=1)
        dz = np.linalg.norm(Z[i] - Z[j], axis=1)
        xx, xz, zz = xx + float(dx @ dx), xz + float(dx @ dz), zz + float(dz @ dz)
        difference += float(np.square(dx - dz).sum())
        n_pairs += len(dx)
    return _Sums(xx, xz, zz, difference, n_pairs)


def _pairs(n: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield pairs i < j in slabs: all of them, or `RANDOM_PAIRS` random ones if there are many points."""
    if n <= ALL_PAIRS:
        size = max(1, SLAB // n)
        for start in range(0, n - 1, size):
            i, j = np.triu_indices(min(size, n - start), 1, n - start)
            yield i + start, j + start
        return
    random = np.random.RandomState(0)  # a stress is a property of X and Z: the same on every call
    for start in range(0, RANDOM_PAIRS, SLAB):
        i = random.randint(n, size=min(SLAB, RANDOM_PAIRS - start))
        yield i, (i + random.randint(1, n, size=len(i))) % n
