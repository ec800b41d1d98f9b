"""A check of bursts that were taken along a route: rows that lie on the way to the next burst are in the wrong one.

In the coordinates of its own tangents, row j of burst i is regressed on the step from the burst before to the one
after, over all i. Perturbations know nothing of the route, so all M slopes are zero but for chance. A table that is cut
a few rows off has slopes near 1 for the rows of the next place; so has a state that moves on during its burst.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from pyloca.bursts import Bursts
from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstStatistics, sample_rows
from pyloca.thresholds import AHEAD, AHEAD_BY_CHANCE, FEW, RECHECKED

__all__ = ["rows_ahead"]

JUMP = 3.0  # times the median step: from one part of a route to another


def rows_ahead(bursts: Bursts | None, statistics: BurstStatistics) -> Finding | None:
    """Check whether some rows of every burst lie towards the next one.

    Parameters
    ----------
    bursts : Bursts or None
        Raw bursts, in the order in which they were taken, if there are any.
    statistics : BurstStatistics

    Returns
    -------
    Finding or None
    """
    if bursts is None or bursts.perturbed_dim is not None:
        return None
    sizes, times = np.unique(bursts.counts, return_counts=True)
    m = int(sizes[times.argmax()])
    rows = 1 + np.flatnonzero(bursts.counts[1:-1] == m)
    if m < 3 or len(rows) < FEW:
        return None
    points, steps = _in_tangents(bursts, statistics, rows[sample_rows(len(rows), RECHECKED)])
    lengths = np.linalg.norm(steps, axis=1)
    near = lengths <= JUMP * np.median(lengths)
    points, steps = points[near], steps[near]
    points -= points.mean(axis=0)  # what all bursts have in common is a design
    total, variance = float(np.square(steps).sum()), float(np.square(points).mean())
    if not total > 0 < variance:
        return None
    slopes = np.einsum("imk,ik->m", points, steps) / total
    ratio = float(np.square(slopes).sum()) * total / variance  # χ² with m − 1 degrees of freedom
    share = ratio / (m * steps.size)
    if not AHEAD.passed(share) or chi2.sf(ratio, m - 1) > AHEAD_BY_CHANCE:
        return None
    last = int(slopes.argmax())
    return Finding(
        "rows",
        f"rows are in wrong bursts, it seems: over {len(steps)} bursts, row {last + 1} lies {slopes[last]:.0%} of the "
        "way from its burst to the next one, on average, which chance does not explain. So bursts are too wide along "
        "the route, and distances wrong. Check where one burst ends and the next begins, such as a burst column that "
        "is off by some rows; or the state moved on while a burst was measured",
    )


def _in_tangents(
    bursts: Bursts, statistics: BurstStatistics, rows: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points about their mean (n, m, k) and half the step past each burst (n, k), in units of its tangents."""
    points, steps = [], []
    for at, block in bursts[rows].blocks():
        here = rows[at]
        inverse = np.linalg.pinv(statistics.tangents[here])  # (b, D, k)
        points.append((block - block.mean(axis=1, keepdims=True)) @ inverse)
        past = statistics.means[here + 1] - statistics.means[here - 1]
        steps.append((past[:, None] @ inverse)[:, 0] / 2)
    return np.concatenate(points), np.concatenate(steps)
