"""How exact coordinates can be, by the number of bursts and points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.checks import Whitening
from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstStatistics
from pyloca.thresholds import HEAVY, HEAVY_TIMES, IMPRECISE, OUTSTANDING, WAVES

__all__ = ["imprecise", "precision"]

Array = NDArray[np.float64]


def precision(white: Whitening, statistics: BurstStatistics, *, sampled: bool | None = None) -> float:
    """Estimate the standard error of a typical distance as a part of it, from how bursts differ after the encoder.

    A burst sees the strain r = (G − 1) / 2 of the coordinates, and their mean strain is as uncertain as a mean of N of
    these. A strain changes a step of direction u by u·r u of its length, and over all directions
    E (u·r u)² = (2 tr r² + (tr r)²) / (k (k + 2)), which is 1 / (2 (M − 1)) for Gaussian points. An encoder that has
    learnt the sampling errors of few bursts leaves less of them, so that this is the least that is counted. Strains
    that vary from place to place are taken to make 2 k times as much of it: a rule of thumb, since it depends on the
    shape. Heavy tails show in few of the bursts, and are taken to hide as much again; or, where tangents follow from
    the scatter of the points, the error of its factor is that of all distances. The stress of all distances is twice
    its square, as a part of the variance.

    Parameters
    ----------
    white : Whitening
        With the factors by which the encoder stretches tangents, √ of the eigenvalues of G.
    statistics : BurstStatistics
        Of the same bursts.
    sampled : bool, optional
        Whether bursts are samples, and not a fixed array; None: by all of them.

    Returns
    -------
    float

    Examples
    --------
    >>> import torch
    >>> clouds = np.random.RandomState(0).standard_normal((300, 30, 2))
    >>> statistics = BurstStatistics.from_bursts(clouds + 100 * clouds[:, :1], 2)
    >>> white = Whitening.from_pushed(statistics.means, torch.as_tensor(statistics.tangents), statistics)
    >>> round(precision(white, statistics), 3)
    0.015
    """
    weights, rule = statistics.weights, statistics.scatter
    k, strains = white.stretches.shape[1], (np.square(white.stretches) - 1) / 2
    squares = (2 * np.square(strains).sum(axis=1) + np.square(strains.sum(axis=1))) / (k * (k + 2))
    squares = np.minimum(squares, OUTSTANDING * np.median(squares))  # one bad burst is told elsewhere
    least = white.floors / (k * (k + 1)) if (white.sampled if sampled is None else sampled) else np.zeros(len(squares))
    seen, known = (float(np.sum(np.square(weights) * each)) for each in (squares, least))
    times = WAVES * k * (HEAVY_TIMES if white.tails > HEAVY and rule is None else 1.0)
    error = float(np.sqrt(times * max(seen, known))) / float(np.sum(weights))
    return error if rule is None else float(np.hypot(error, rule.error / 2))  # of a variance, and of its root


def imprecise(white: Whitening, statistics: BurstStatistics, *, sampled: bool | None = None) -> Finding | None:
    """Check whether there are too few bursts and points for coordinates that are worth the name.

    Parameters
    ----------
    white : Whitening
    statistics : BurstStatistics
    sampled : bool, optional
        As in `precision`.

    Returns
    -------
    Finding or None
    """
    error = precision(white, statistics, sampled=sampled)
    if not ((white.sampled if sampled is None else sampled) and IMPRECISE.passed(error)):
        return None
    n, points = len(statistics), float(np.median(statistics.counts))
    many = f"{(error / 0.03) ** 2:.0f}" if error < 0.3 else "a hundred"
    return Finding(
        "imprecise",
        f"there are too few bursts or points: {n} bursts of {points:.0f} points determine distances only to within "
        f"{error:.0%} (standard error). Nothing else seems wrong. Take more of either: with {many} times as many "
        "points in all it would be 3 %.",
    )
