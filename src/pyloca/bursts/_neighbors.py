"""Bursts from bare points: their nearest neighbours stand in for repeated measurements."""

from __future__ import annotations

import warnings

from numpy.typing import ArrayLike

from pyloca._arguments import check_count
from pyloca.bursts._arrays import as_points
from pyloca.bursts._container import Bursts
from pyloca.errors import BurstError, TrustWarning

__all__ = ["from_neighbors"]


def from_neighbors(points: ArrayLike, n_neighbors: int) -> Bursts:
    """Treat each point and its nearest neighbours as a burst, where there are no repeated measurements.

    It is assumed that the points are equally dense in all latent directions, everywhere. Where they are not, their
    density is taken for a property of the instrument, and the coordinates are those in which it is uniform.

    Parameters
    ----------
    points : array of shape (N, D)
    n_neighbors : int
        Neighbours of each point, at least 2; a burst has one point more.

    Returns
    -------
    Bursts
        One per point. Their σ is not known.

    Raises
    ------
    BurstError
        If the points are not finite, or are too few.
    ValueError
        If `n_neighbors` is not an integer of at least 2.

    Warns
    -----
    TrustWarning
        Always: nothing in the data can confirm the assumption.

    Examples
    --------
    >>> import numpy as np, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     from_neighbors(np.random.RandomState(0).uniform(size=(50, 2)), n_neighbors=8)
    Bursts(N=50, M=9, D=2)
    """
    from sklearn.neighbors import NearestNeighbors  # takes a while to import

    Y = as_points(points, "points")
    check_count("n_neighbors", n_neighbors, 2)
    if n_neighbors >= len(Y):
        raise BurstError(f"n_neighbors = {n_neighbors} neighbours cannot be found among {len(Y)} points.")
    warnings.warn(
        f"bursts are made of the {n_neighbors} nearest neighbours of each point, not measured: coordinates are right "
        "only if the points are equally dense in all latent directions, everywhere, and their scale is not known.",
        TrustWarning,
        stacklevel=2,
    )
    near = NearestNeighbors(n_neighbors=n_neighbors + 1).fit(Y).kneighbors(Y, return_distance=False)
    return Bursts(
        Y[near],
        provenance=f"from_neighbors: {n_neighbors} nearest points, assumed to be as dense in all directions",
    )
