"""Noise that differs from place to place: whether it does, and a smooth level of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pyloca.geometry._noise import Noise
from pyloca.thresholds import NOISE_FREEDOM, UNEVEN_ERRORS

__all__ = ["PLACES", "growth_at", "level_at", "placed", "uneven"]

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

    A line is too high where levels bend upwards: it is fitted once more, to levels in units of the first.

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
    around = _near(means, means, freedom, LINEAR)
    near = _near(means, at, freedom, LINEAR)
    if around is None or near is None:
        return np.ones((len(at), squares.shape[1]))
    first = np.maximum(_line(means, squares, freedom, means, around), 1e-12)
    again = _line(means, squares / first, freedom, at, near)
    return np.asarray(_line(means, squares, freedom, at, near) * again)


def _line(means: Array, squares: Array, freedom: Array, at: Array, near: NDArray[np.int64]) -> Array:
    """Fit lines to the levels of the bursts `near` (m, n) each place; return what they are there, (m, c)."""
    unit = _unit(means)
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


def growth_at(means: Array, squares: Array, freedom: Array, at: Array) -> Array | None:
    """Compute by how much noise grows from place to place: that of all sensors together, and then that of each.

    Parameters
    ----------
    means : (n, D) array
        Places.
    squares, freedom : (n, D) array
        Sums of squares of each sensor in units of its noise, and degrees of freedom behind them; 0 without noise.
    at : (m, D) array
        Places at which to compute it.

    Returns
    -------
    (m, D) array or None
        Factors of the variance; None if levels differ only by chance.
    """
    sums, behind = squares.sum(axis=1, keepdims=True), freedom.sum(axis=1, keepdims=True)
    together = bool(uneven(means, sums, behind).any())
    size = level_at(means, sums, behind, means) if together else np.ones((len(means), 1))
    alone = uneven(means, squares / size, freedom)
    if not together and not alone.any():
        return None
    growth = level_at(means, sums, behind, at) if together else np.ones((len(at), 1))
    return np.asarray(growth * np.where(alone, level_at(means, squares / size, freedom, at), 1.0))


def placed(base: Array, growth: Array, at: Array) -> Noise:
    """Let noise (D,) or (D, D) grow by the factors `growth` (m, D) of the variance of each sensor at some places."""
    root = np.sqrt(growth)
    return Noise(base * growth if base.ndim == 1 else root[:, :, None] * base * root[:, None], at, _unit(at))


def _unit(means: Array) -> Array:
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
    unit = _unit(means)
    return np.asarray(cKDTree(means / unit).query(at / unit, neighbors)[1].reshape(len(at), neighbors))
