"""Noise that differs from place to place: whether it does, and a smooth level of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pyloca.geometry._noise import Noise
from pyloca.thresholds import NOISE_FREEDOM, UNEVEN_ERRORS

__all__ = ["level_at", "placed", "uneven"]

Array = NDArray[np.float64]

SLOPES = 3  # directions along which a level may rise from place to place
LINEAR = 4  # times as many bursts as a constant needs tell a level that rises; at a border a line is that uncertain
FEWEST = 12
STIFF = 0.02  # a level does not rise along directions in which places hardly differ
LEAST = 0.2  # part of the mean level around it that a level has at least
PLACES = 2000  # at most, at which levels are stored


def uneven(means: Array, squares: Array, freedom: Array) -> NDArray[np.bool_]:
    """Tell which levels of noise differ from place to place by more than chance.

    Parameters
    ----------
    means : (n, D) array
        Places.
    squares, freedom : (n, c) array
        Sums of squares in units of the noise, and degrees of freedom behind them.

    Returns
    -------
    (c,) array of bool
    """
    near = _near(means, means, freedom, 1)
    if near is None:
        return np.zeros(squares.shape[1], dtype=np.bool_)
    behind = np.maximum(freedom[near].sum(axis=1), 1e-12)
    local = squares[near].sum(axis=1) / behind
    usual = np.average(local, weights=behind, axis=0)
    local = np.divide(local, usual, out=np.ones_like(local), where=usual > 0)  # what is left out has none
    # Neighbours agree with each other more than chance would have it; a little unevenness does no harm.
    return np.asarray(np.sqrt(np.mean(np.square((local - 1) * np.sqrt(behind / 2)), axis=0)) > UNEVEN_ERRORS)


def level_at(means: Array, squares: Array, freedom: Array, at: Array) -> Array:
    """Compute levels of noise at other places, by a line through those around each.

    Parameters
    ----------
    means, squares, freedom : array
        As in `uneven`.
    at : (m, D) array
        Places.

    Returns
    -------
    (m, c) array
        In units of the noise.
    """
    near = _near(means, at, freedom, LINEAR)
    if near is None:
        return np.ones((len(at), squares.shape[1]))
    unit = unit_of(means)
    steps = (means[near] - at[:, None]) / unit  # (m, n, D)
    centred = steps - steps.mean(axis=1, keepdims=True)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:, :SLOPES]
    along = np.einsum("mnd,mjd->mnj", steps, axes)
    size = np.sqrt(np.square(along).sum(axis=2).mean(axis=1))[:, None, None]
    along = along / np.maximum(size, 1e-300)
    radius = np.sqrt(np.square(along).sum(axis=2))
    closeness = np.square(1 - np.square(radius / (1.2 * np.maximum(radius.max(axis=1, keepdims=True), 1e-300))))
    terms = np.concatenate([np.ones_like(along[:, :, :1]), along], axis=2)
    weights = closeness[:, :, None] * freedom[near]  # (m, n, c)
    behind = np.maximum(weights.sum(axis=1), 1e-12)
    normal = np.einsum("mnp,mnc,mnq->mcpq", terms, weights, terms, optimize=True)
    stiff = np.diag(np.append(1e-9, np.full(along.shape[2], STIFF)))
    normal += behind[:, :, None, None] * stiff
    sums = np.einsum("mnp,mnc->mcp", terms, closeness[:, :, None] * squares[near])
    mean = (closeness[:, :, None] * squares[near]).sum(axis=1) / behind
    return np.asarray(np.maximum(np.linalg.solve(normal, sums[..., None])[..., 0, 0], LEAST * mean))


def placed(base: Array, growth: Array, at: Array) -> Noise:
    """Let noise (D,) or (D, D) grow by the factors `growth` (m, D) of the variance of each sensor at some places."""
    root = np.sqrt(growth)
    return Noise(base * growth if base.ndim == 1 else root[:, :, None] * base * root[:, None], at, unit_of(at))


def unit_of(means: Array) -> Array:
    """Return the spread of each feature, 1 where there is none."""
    spread = means.std(axis=0)
    return np.where(spread > 0, spread, 1.0)


def _near(means: Array, at: Array, freedom: Array, times: int) -> NDArray[np.int64] | None:
    """Find the places around others that together tell a level; None if there are too few."""
    n, typical = len(means), max(float(freedom.mean(axis=0).max()), 1e-12)
    neighbors = int(np.ceil(NOISE_FREEDOM / typical))
    if n < max(4 * neighbors, 20):
        return None
    if times > 1:
        neighbors = min(max(times * neighbors, FEWEST), n // 2)
    unit = unit_of(means)
    return np.asarray(cKDTree(means / unit).query(at / unit, neighbors)[1].reshape(len(at), neighbors))
