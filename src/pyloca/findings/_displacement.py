"""A check for readings at one place again and again: they repeat noise, and no latent variable moves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.findings._diagnostics import Finding
from pyloca.geometry import Noise, nearest_rows, sample_rows
from pyloca.thresholds import (
    FEW,
    NEIGHBORS,
    NOISE_DIRECTIONS,
    NOISE_RANK,
    POINTS,
    RECHECKED,
    SAMPLE,
    STILL,
    THIN,
    TOO_QUIET,
)

__all__ = ["no_displacement"]

Array = NDArray[np.float64]


def no_displacement(bursts: Bursts, noise: Noise | None = None) -> Finding | None:
    """Check whether the points of a burst move towards its neighbours more than in any other direction.

    Bursts are displaced along the surface on which all means lie, so they are longer towards neighbouring means than
    across. The noise of a receiver at rest does not know where the neighbours are. Every sensor counts in units of its
    own spread inside the burst, so that louder sensors are not mistaken for a direction; of its noise, if known, since
    a sensor that alone sees a latent variable has a larger spread for this very reason.

    Parameters
    ----------
    bursts : Bursts
    noise : Noise, optional
        That of the instrument, in the units of the bursts.

    Returns
    -------
    Finding or None
        "no_displacement"; None when nothing is wrong, or when it cannot be told: there are few sensors, or neighbours
        fill all D directions, as they do if D = k.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> no_displacement(bursts) is None
    True
    """
    if bursts.n_features < NOISE_DIRECTIONS or len(bursts) < FEW or bursts.counts.min() < 4:
        return None
    sample = bursts[sample_rows(len(bursts), SAMPLE)]
    means, variances = (np.empty((len(sample), sample.n_features)) for _ in range(2))
    with np.errstate(invalid="ignore", over="ignore"):
        for rows, block in sample.blocks():
            few = block[:, :POINTS]
            means[rows], variances[rows] = few.mean(axis=1), few.var(axis=1, ddof=1)
        inside = np.sqrt(variances.mean(axis=0))
    if not np.isfinite(inside).all():
        return None  # the pass over the data says where
    varies = inside > 64 * np.finfo(float).eps * np.abs(means).max(axis=0)
    if varies.sum() < NOISE_DIRECTIONS:
        return None
    means, inside = means[:, varies], inside[varies]
    probe = sample_rows(len(sample), RECHECKED)
    near = nearest_rows(means / inside, means[probe] / inside, NEIGHBORS + 1)[:, 1:]  # (n, neighbours)
    along, rank, spread = np.empty(len(probe)), np.empty(len(probe)), np.empty(len(probe))
    for rows, block in sample[probe].blocks():
        centred = block[:, :POINTS][:, :, varies]
        centred = centred - centred.mean(axis=1, keepdims=True)
        steps = means[near[rows]] - means[probe[rows]][:, None]  # (b, neighbours, D)
        level = None if noise is None else _levels(noise, block.mean(axis=1))[:, varies]
        along[rows], rank[rows], spread[rows] = _look(centred, steps, inside, level)
    toward = float(np.median(along))
    still = STILL.passed(toward)
    if not (still and np.median(spread) > NOISE_RANK and np.median(rank) < THIN):
        return None
    return Finding(
        "no_displacement",
        f"the points of a burst do not move towards neighbouring bursts: they vary {toward:.2f} times as much in that "
        "direction as in any other (1 is chance), and about equally in all sensors. Readings at one place again and "
        "again repeat the noise of the instrument, which tells nothing about distances. Bursts need small displacements"
        " of the latent variables, larger than the noise. If the places of the readings are known, use "
        "pyloca.bursts.from_positions(positions, readings, radius).",
    )


def _levels(noise: Noise, means: Array) -> Array:
    """Return the standard deviation of the noise of each sensor, (1 or b, D)."""
    level = noise.at(means)
    return np.asarray(np.sqrt(np.diagonal(level, axis1=1, axis2=2) if noise.full else level))


def _look(centred: Array, steps: Array, inside: Array, level: Array | None) -> tuple[Array, Array, Array]:
    """Compare bursts (b, M, D), centred, with steps to their neighbours (b, n, D); `level` is the noise, if known.

    Returns
    -------
    along : (b,) array
        Variance of a burst towards its neighbours over that in any direction.
    rank : (b,) array
        Number of directions that steps to neighbours fill, as a part of the sensors.
    spread : (b,) array
        The same for the points of the burst.
    """
    freedom = centred.shape[1] - 1
    own = np.sqrt(np.square(centred).sum(axis=1) / freedom)  # (b, D)
    # A sensor that is silent here, such as a radio out of range, says nothing; one that is nearly so must not decide.
    heard = own > 64 * np.finfo(float).eps * np.maximum(inside, np.abs(steps).max(axis=1))
    unit = np.where(heard, 1 / np.maximum(own if level is None else level, TOO_QUIET * inside), 0)
    n_heard = np.maximum(heard.sum(axis=1), 1)
    points, steps = centred * unit[:, None], steps * unit[:, None]
    lengths = np.linalg.norm(steps, axis=2, keepdims=True)
    towards = np.divide(steps, lengths, out=np.zeros_like(steps), where=lengths > 0)  # (b, n, D)
    total = np.square(points).sum(axis=(1, 2)) / freedom
    seen = np.square(points @ towards.transpose(0, 2, 1)).sum(axis=1) / freedom  # (b, n)
    along = seen.mean(axis=1) * n_heard / np.maximum(total, np.finfo(float).tiny)
    n = steps.shape[1]
    cosines = (np.square(towards @ towards.transpose(0, 2, 1)).sum(axis=(1, 2)) - n) / (n * (n - 1))
    rank = 1 / np.maximum(cosines, 1 / (100 * n_heard)) / n_heard  # the mean squared cosine of r directions is 1 / r
    square = np.square(points @ points.transpose(0, 2, 1)).sum(axis=(1, 2)) / freedom**2
    # tr C² without the bias of a sample
    square = freedom**2 / ((freedom - 1) * (freedom + 2)) * (square - total**2 / freedom)
    least = np.maximum(total**2 / (100 * n_heard), np.finfo(float).tiny)  # a burst may have no spread at all
    spread = total**2 / np.maximum(square, least) / n_heard
    return along, rank, spread
