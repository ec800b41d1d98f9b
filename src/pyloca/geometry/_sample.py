"""A random sample of rows that is the same on every call."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["sample_rows"]


def sample_rows(n: int, size: int) -> NDArray[np.int64]:
    """Draw at most `size` of `n` rows, sorted, the same ones on every call.

    Random rather than evenly spaced, because data may come as a grid.

    Parameters
    ----------
    n : int
        Number of rows to draw from.
    size : int
        Largest number of rows to return.

    Returns
    -------
    (min(n, size),) array of int

    Examples
    --------
    >>> sample_rows(3, 10)
    array([0, 1, 2])
    >>> len(sample_rows(1000, 10))
    10
    """
    return np.sort(np.random.RandomState(0).permutation(n)[:size])
