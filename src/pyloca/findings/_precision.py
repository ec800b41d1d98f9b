"""How exact distances can be: by the number of bursts and points, by where bursts lie, and by bends between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import nn

from pyloca.checks import Whitening
from pyloca.findings._diagnostics import Finding
from pyloca.findings._sampling import few_bursts
from pyloca.findings._unforeseen import unforeseen_part
from pyloca.geometry import BurstStatistics
from pyloca.thresholds import HEAVY, HEAVY_TIMES, IMPRECISE, OUTSTANDING, WAVES

__all__ = ["Precision", "imprecise", "precision", "sampling_error"]

Array = NDArray[np.float64]


class Precision(NamedTuple):
    """Standard errors of a typical distance, each as a part of it.

    The stress of all distances is twice the square of `total`, as a part of the variance.

    Attributes
    ----------
    sampling : float
        Of the shape and size of the bursts, see `sampling_error`.
    places : float
        Of their places: the mean of M points lies σ / √M from the state of the burst, in each coordinate.
    bends : float
        Of what lies between them: what bursts do not foresee of the steps to their neighbours.
    """

    sampling: float
    places: float
    bends: float

    @property
    def total(self) -> float:
        """All of them together."""
        return float(np.sqrt(np.square(self).sum()))


def precision(
    encoder: nn.Module, white: Whitening, statistics: BurstStatistics, burst_std: float, *, sampled: bool
) -> Precision:
    """Estimate the standard errors of a typical distance.

    Parameters
    ----------
    encoder : torch.nn.Module
    white : Whitening
        Of the bursts after it.
    statistics : BurstStatistics
    burst_std : float
        σ.
    sampled : bool
        Whether bursts are samples, and not a fixed array, whose mean is exact.

    Returns
    -------
    Precision
    """
    moved = burst_std**2 * float(np.mean(1 / statistics.counts)) if sampled else 0.0
    bends = unforeseen_part(statistics, encoder, burst_std, white.embedding)
    return Precision(
        sampling_error(white, statistics, sampled=sampled),
        float(np.sqrt(moved / white.embedding.var(axis=0).sum())),
        float(np.sqrt(bends)),
    )


def sampling_error(white: Whitening, statistics: BurstStatistics, *, sampled: bool | None = None) -> float:
    """Estimate the standard error of a typical distance as a part of it, from how bursts differ after the encoder.

    A burst sees the strain r = (G − 1) / 2 of the coordinates, and their mean strain is as uncertain as a mean of N of
    these. A strain changes a step of direction u by u·r u of its length, and over all directions
    E (u·r u)² = (2 tr r² + (tr r)²) / (k (k + 2)), which is 1 / (2 (M − 1)) for Gaussian points. An encoder that has
    learnt the sampling errors of few bursts leaves less of them, so that this is the least that is counted. Strains
    that vary from place to place are taken to make 2 k times as much of it: a rule of thumb, since it depends on the
    shape. Heavy tails, if bursts differ by more than fourth moments tell, are taken to hide as much again; or, where
    tangents follow from the scatter of the points, the error of its factor is that of all distances.

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
    >>> round(sampling_error(white, statistics), 3)
    0.015
    """
    weights, rule = statistics.weights, statistics.scatter
    k, strains = white.stretches.shape[1], (np.square(white.stretches) - 1) / 2
    squares = (2 * np.square(strains).sum(axis=1) + np.square(strains.sum(axis=1))) / (k * (k + 2))
    squares = np.minimum(squares, OUTSTANDING * np.median(squares))  # one bad burst is told elsewhere
    random = white.sampled if sampled is None else sampled
    least = white.expected / (k * (k + 1)) if random else np.zeros(len(squares))
    seen, known = (float(np.sum(np.square(weights) * each)) for each in (squares, least))
    heavy = white.tails > HEAVY and rule is None and seen > known
    times = WAVES * k * (HEAVY_TIMES if heavy else 1.0)
    error = float(np.sqrt(times * max(seen, known))) / float(np.sum(weights))
    return error if rule is None else float(np.hypot(error, rule.error / 2))  # of a variance, and of its root


def imprecise(errors: Precision, statistics: BurstStatistics) -> Finding | None:
    """Check whether coordinates are precise enough to be worth the name, and say what would help most.

    Parameters
    ----------
    errors : Precision
    statistics : BurstStatistics

    Returns
    -------
    Finding or None
        "imprecise", or "few_bursts" if most of the error is that of bends between bursts.
    """
    if not IMPRECISE.passed(errors.total):
        return None
    n, points = len(statistics), float(np.median(statistics.counts))
    if errors.bends == max(errors):
        return few_bursts(
            statistics,
            f"from one burst to the next, coordinates change otherwise than the bursts at both ends say, so that "
            f"distances have a standard error of about {errors.total:.0%}",
        )
    many = f"{(errors.total / 0.03) ** 2:.0f}" if errors.total < 0.3 else "a hundred"
    if errors.places == max(errors):
        return Finding(
            "imprecise",
            f"bursts are too large for so few points: the mean of {points:.0f} points lies so far from the state that "
            f"they were taken around that distances have a standard error of {errors.total:.0%}. Nothing else seems "
            f"wrong. Take smaller bursts or more points: with {many} times as many in each it would be 3 %.",
        )
    return Finding(
        "imprecise",
        f"there are too few bursts or points: {n} bursts of {points:.0f} points determine distances only to within "
        f"{errors.total:.0%} (standard error). Nothing else seems wrong. Take more of either: with {many} times as "
        "many points in all it would be 3 %.",
    )
