"""Bursts that are no piece of the surface: as large as the data, or filling directions that no other extends in."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.geometry._sample import sample_rows
from pyloca.geometry._statistics import BurstStatistics
from pyloca.thresholds import BEYOND, FEW, HUGE, HUGE_TIMES, MOST, RECHECKED, SHAPELESS, SHAPELESS_TIMES

__all__ = ["find_odd"]

Array = NDArray[np.float64]


def find_odd(statistics: BurstStatistics, bursts: Bursts | None = None) -> dict[int, str]:
    """Find bursts of rows that do not belong together: readings of many states, or of none.

    A kink of the measurement adds one direction to a burst that lies on it, and two where kinks cross; so three more
    than k count.

    Parameters
    ----------
    statistics : BurstStatistics
        Of bursts with k tangents each (others are not judged).
    bursts : Bursts, optional
        The same, raw; without them only the size is looked at.

    Returns
    -------
    dict of int to str
        Positions and reasons. Empty if most bursts are like that: then it is no matter of single ones.

    Examples
    --------
    >>> from pyloca import datasets
    >>> points = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts.to_array()
    >>> points[7] = points[::10, 0]  # one point of every tenth burst
    >>> statistics = BurstStatistics.from_bursts(points, 2)
    >>> list(find_odd(statistics))
    [7]
    """
    if (
        len(statistics) < FEW
        or statistics.noise is not None
        or (bursts is not None and bursts.perturbed_dim is not None)
    ):
        return {}
    inside = statistics.spectra.sum(axis=1) + statistics.residuals
    part = inside / (inside + float(statistics.means.var(axis=0).sum()))
    huge = np.flatnonzero((part >= HUGE) & (part >= HUGE_TIMES * np.median(part)))
    found = {int(i): f"is as large as the data: {part[i]:.0%} of their variance lies inside it" for i in huge}
    for i, beyond in ({} if bursts is None else _shapeless(statistics, bursts)).items():
        found.setdefault(i, f"fills directions that no other burst extends in, by {beyond:.0%} of a usual tangent")
    return dict(sorted(found.items())) if len(found) < MOST * len(statistics) else {}


def _shapeless(statistics: BurstStatistics, bursts: Bursts) -> dict[int, float]:
    k = statistics.intrinsic_dim
    if statistics.n_used < k + BEYOND:
        return {}
    own = statistics.spectra[:, -1]
    usual = float(np.median(own))
    least = np.maximum(own, usual)
    # no eigenvalue is larger than all of them together
    doubtful = np.flatnonzero(statistics.residuals >= SHAPELESS * least)
    if not 0 < len(doubtful) < MOST * len(statistics):
        return {}
    sample = sample_rows(len(statistics), RECHECKED)
    level = float(np.median(_beyond(bursts[sample], k) / least[sample]))
    beyond = np.sqrt(_beyond(bursts[doubtful], k) / least[doubtful])
    odd = beyond >= np.sqrt(max(SHAPELESS, SHAPELESS_TIMES * level))
    return {int(i): float(size) for i, size in zip(doubtful[odd], beyond[odd], strict=True)}


def _beyond(bursts: Bursts, k: int) -> Array:
    """Compute the third eigenvalue beyond the k tangents of each burst."""
    out = np.zeros(len(bursts))
    for rows, block in bursts.blocks():
        if min(block.shape[1] - 1, block.shape[2]) < k + BEYOND:
            continue
        centred = block - block.mean(axis=1, keepdims=True)
        out[rows] = np.square(np.linalg.svd(centred, compute_uv=False)[:, k + BEYOND - 1]) / (block.shape[1] - 1)
    return out
