"""Checks of an embedding that need no truth: has it collapsed, is it folded, which bursts are lost in it?

The fast solver asks them of its own work, and starts again when the answer is bad.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pyloca.checks._whitening import Whitening
from pyloca.geometry import BurstStatistics, JointMahalanobis, sample_rows

__all__ = [
    "COLLAPSED",
    "CURED",
    "FEW",
    "LEAST_LOST",
    "MANY_APART",
    "MANY_LOST",
    "MOST",
    "embedding_fault",
    "lost_bursts",
    "overlapping",
    "torn",
]

Array = NDArray[np.float64]

# Stretch of a tangent. Half of all bursts below this have lost a direction; sampling never does that.
COLLAPSED = 0.05
# A burst this many times worse than its sampling explains, and by this much, is lost. A fold loses a tenth of all
# bursts and more; a measurement that is singular along an edge (mushroom) one in a hundred.
LOST_FLOORS, LOST_LOSS, MANY_LOST, LEAST_LOST = 10.0, 0.5, 0.04, 3
# Embedded neighbours whose measurements are this many spacings apart lie on different sheets.
APART, MANY_APART = 8.0, 0.05
TORN = 0.1  # of the bursts lost, though the embedding does not lie on itself
MOST = 0.5  # of the bursts lost: then it is no matter of single ones, nor of a fold
CURED = 0.75  # strain with one more dimension, as a part of that without, at which a surface is curved
FEW = 30  # bursts that have no neighbourhoods to speak of
PROBE, AGAINST, NEIGHBORS = 400, 2000, 5


def lost_bursts(white: Whitening) -> NDArray[np.bool_]:
    """Which bursts are far from white, (N,)."""
    return white.losses > np.maximum(LOST_FLOORS * white.floors, LOST_LOSS)


def torn(white: Whitening) -> bool:
    """Whether many bursts are lost, but not most."""
    lost = lost_bursts(white)
    return bool(lost.sum() >= LEAST_LOST and TORN < lost.mean() < MOST)


def overlapping(embedding: Array, statistics: BurstStatistics, burst_std: float) -> float:
    """Part of the bursts (of a sample of them) whose neighbours in the embedding are distant by their measurements.

    Bursts do not see a fold: each of them is white on either side of it. But a fold lays one part of the data on
    another, and the Mahalanobis distance of the bursts, which is a latent distance, tells them apart.
    """
    if len(embedding) > AGAINST:
        rows = sample_rows(len(embedding), AGAINST)
        embedding, statistics = embedding[rows], statistics[rows]
    probe = sample_rows(len(embedding), PROBE)
    n_neighbors = min(NEIGHBORS, len(embedding) - 1)
    distance, near = (a[:, 1:] for a in cKDTree(embedding).query(embedding, n_neighbors + 1))
    squared = JointMahalanobis(statistics).squared(probe)
    apart = burst_std * np.sqrt(np.take_along_axis(squared, near[probe], axis=1))
    # The sampling error of short bursts enters the Mahalanobis distance; the distance to true neighbours has it too.
    truly_near = np.sort(squared, axis=1)[:, 1 : n_neighbors + 1]
    spacing = max(float(np.median(distance)), burst_std * float(np.median(np.sqrt(truly_near))))
    return float(np.mean(np.median(apart, axis=1) > APART * spacing))


def embedding_fault(white: Whitening, statistics: BurstStatistics, burst_std: float) -> str:
    """ "collapsed", "folded", "torn", or "" when none is seen."""
    if np.median(white.stretches[:, -1]) < COLLAPSED:
        return "collapsed"
    if overlapping(white.embedding, statistics, burst_std) > MANY_APART:
        return "folded"
    return "torn" if torn(white) else ""
