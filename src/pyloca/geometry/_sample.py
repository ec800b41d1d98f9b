"""A random sample of rows that is the same on every call, and the rows that are nearest to some."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

__all__ = ["nearest_rows", "sample_rows"]

TREE = 64  # features up to which a tree is quicker than all distances


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


def nearest_rows(points: NDArray[np.float64], places: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Find the points nearest to places, by a tree or, where that is quicker, by all distances.

    Parameters
    ----------
    points : (n, D) array
    places : (m, D) array
    count : int
        Points per place.

    Returns
    -------
    (m, count) array of int
        Rows of `points`, nearest first.

    Examples
    --------
    >>> nearest_rows(np.array([[0.0], [1.0], [5.0]]), np.array([[4.0]]), 2).tolist()
    [[2, 1]]
    """
    if points.shape[1] <= TREE:
        return np.asarray(cKDTree(points).query(places, count)[1]).reshape(len(places), count)
    found = NearestNeighbors(n_neighbors=count, algorithm="brute").fit(points).kneighbors(places, return_distance=False)
    return np.asarray(found)
