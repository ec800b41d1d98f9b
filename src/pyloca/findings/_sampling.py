"""Bends of the measurement that the bursts do not sample: neighbours whose tangents and steps do not fit together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstStatistics, SheetDistance, nearest
from pyloca.thresholds import ALIEN, NEIGHBORS, UNEXPLAINED_STEP, UNSAMPLED

__all__ = ["sparse_bends", "unexplained_share"]


def sparse_bends(statistics: BurstStatistics, suffers: Callable[[], bool]) -> Finding | None:
    """Check whether there are too few bursts for the bends of the measurement, if the fit suffers.

    Parameters
    ----------
    statistics : BurstStatistics
    suffers : callable
        Whether the fit has a symptom; asked only where neighbours do not fit together.

    Returns
    -------
    Finding or None
    """
    share, where = unexplained_share(statistics)
    if share < UNSAMPLED or not suffers():
        return None
    return Finding(
        "sparse",
        f"there are too few bursts for the bends of the measurement: {share:.0%} of the steps between neighbours leave "
        f"the tangents at both ends, as from {statistics.listed(where[:2])}, so that bends or sheets between them were "
        "not seen and parts may be joined in a wrong order. Take more bursts, most of all where the readings turn.",
        tuple(int(i) for i in where[:50]),
    )


def unexplained_share(statistics: BurstStatistics) -> tuple[float, NDArray[np.int64]]:
    """Compute the part of steps between neighbours that no bend explains, and the bursts that have most of them.

    Neighbours are those by the joint Mahalanobis distance, to which a step off the tangents is like any other. On a
    surface that is sampled well, a quarter of such a step or less is off the tangents at both of its ends (they turn
    by less than a radian). Bursts with hardly any neighbour of their own kind are strays and do not count.

    Parameters
    ----------
    statistics : BurstStatistics

    Returns
    -------
    share : float
    where : (n,) array of int
    """
    n, count = len(statistics), min(NEIGHBORS, len(statistics) - 1)
    plain = SheetDistance(statistics, off=1.0)
    near, squared = nearest(plain, count)
    costs = SheetDistance(statistics).between(np.repeat(np.arange(n), count), near.ravel())
    off = costs.reshape(n, count) > UNEXPLAINED_STEP**2 * squared
    alien = off.mean(axis=1) > ALIEN
    if alien.mean() < 1 - ALIEN:
        off = off & ~alien[near]
        off[alien] = False
    share = off.mean(axis=1)
    return float(off.mean()), np.argsort(-share, kind="stable")
