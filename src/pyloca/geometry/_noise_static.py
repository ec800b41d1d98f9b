"""Measurement noise from static bursts, taken while nothing was perturbed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry._means import burst_means
from pyloca.geometry._noise import FLOOR, Noise
from pyloca.geometry._noise_places import PLACES, growth_at, placed
from pyloca.geometry._refusals import refuse_bad_values
from pyloca.geometry._sample import sample_rows
from pyloca.thresholds import STATIC_CORRELATION

__all__ = ["from_static"]

Array = NDArray[np.float64]

PER_SENSOR = 5  # degrees of freedom per sensor from which on correlations are measured


def from_static(static: Bursts, bursts: Bursts, inside: Array) -> Noise:
    """Pool static bursts; where their noise differs from place to place, per sensor, follow it.

    Parameters
    ----------
    static : Bursts
        Taken while nothing was perturbed.
    bursts : Bursts
        Whose noise it is.
    inside : (D,) array
        Variances inside `bursts`.

    Returns
    -------
    Noise

    Raises
    ------
    BurstError
        If the static bursts have other features, or too few points.
    """
    _refuse_other(static, bursts)
    dim, freedom = static.n_features, float((static.counts - 1).sum())
    if freedom < 10:
        raise BurstError(
            f"the static bursts have {freedom:.0f} degrees of freedom (points less bursts); at least 10 are needed to "
            "measure the noise."
        )
    means, squares = np.empty((len(static), dim)), np.empty((len(static), dim))
    for rows, block in static.blocks():
        refuse_bad_values(static, rows, block)
        means[rows] = block.mean(axis=1)
        squares[rows] = np.square(block - means[rows, None]).sum(axis=1)
    level = squares.sum(axis=0) / freedom
    noisy = level > FLOOR * FLOOR * inside  # the others have rounding errors only
    if not noisy.any():
        return Noise(np.zeros((1, dim)))
    squares = np.where(noisy, squares / np.where(noisy, level, 1), 0)
    behind = (static.counts - 1)[:, None] * noisy.astype(np.float64)
    here = growth_at(means, squares, behind, means)
    base = _pooled(static, noisy, np.ones_like(squares) if here is None else here)
    if here is None:
        return Noise(base[None])
    places = burst_means(bursts)[sample_rows(len(bursts), PLACES)]
    growth = growth_at(means, squares, behind, places)
    return Noise(base[None]) if growth is None else placed(base, growth, places)


def _refuse_other(static: Bursts, bursts: Bursts) -> None:
    if static.n_features != bursts.n_features:
        raise BurstError(f"the static bursts have {static.n_features} features; the bursts have {bursts.n_features}.")
    for name, other in zip(static.feature_names or (), bursts.feature_names or (), strict=False):
        if name != other:
            raise BurstError(f"the static bursts have {name!r} where the bursts have {other!r}; put columns in order.")


def _pooled(static: Bursts, noisy: NDArray[np.bool_], growth: Array) -> Array:
    """Pool static bursts divided by their growth (n, D): a covariance, or variances if correlations are chance."""
    dim, freedom = static.n_features, float((static.counts - 1).sum())
    few = freedom < PER_SENSOR * dim
    scatter = np.zeros(dim) if few else np.zeros((dim, dim))
    for rows, block in static.blocks():
        centred = (block - block.mean(axis=1, keepdims=True)) / np.sqrt(growth[rows, None])
        scatter += np.square(centred).sum(axis=(0, 1)) if few else np.einsum("bmd,bme->de", centred, centred)
    if few:
        return np.asarray(np.where(noisy, scatter / freedom, 0))
    covariance = np.where(np.outer(noisy, noisy), scatter / freedom, 0)
    size = np.where(noisy, np.sqrt(np.diag(covariance)), 1)
    pairs = np.square(covariance / np.outer(size, size))[np.triu_indices(dim, 1)]
    number = float(noisy.sum() * (noisy.sum() - 1)) / 2
    # the squares of correlations that are chance have mean 1 and variance 2 in units of 1 / freedom
    if freedom * pairs.sum() < number + STATIC_CORRELATION * np.sqrt(2 * number):
        return np.asarray(np.diag(covariance))
    return covariance
