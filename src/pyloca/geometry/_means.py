"""Where bursts lie: their means."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts, map_parts
from pyloca.geometry._refusals import refuse_bad_values
from pyloca.geometry._regression import look_by_regression

__all__ = ["burst_means"]


def burst_means(bursts: Bursts) -> NDArray[np.float64]:
    """Compute the means of bursts, without their tangents; their readings at displacement 0 if perturbations are known.

    Parameters
    ----------
    bursts : Bursts

    Returns
    -------
    (N, D) array

    Raises
    ------
    BurstError
        If a value is not finite or too large to be squared.

    Examples
    --------
    >>> from pyloca import datasets
    >>> burst_means(datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts).shape
    (100, 2)
    """
    if bursts.perturbed_dim is not None:
        return look_by_regression(bursts).means
    means = np.empty((len(bursts), bursts.n_features))
    for rows, found in map_parts(bursts, _means):
        means[rows] = found["means"]
    return means


def _means(part: Bursts) -> dict[str, NDArray[np.float64]]:
    means = np.empty((len(part), part.n_features))
    for rows, block in part.blocks():
        refuse_bad_values(part, rows, block)
        means[rows] = block.mean(axis=1)
    return {"means": means}
