"""Checks of an embedding that need no ground truth: collapse, folds, and bursts that are lost in it.

The fast solver applies them to its own result, and starts again when one fails.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pyloca.checks._whitening import Whitening
from pyloca.geometry import BurstStatistics, SheetDistance, sample_rows
from pyloca.thresholds import (
    COLLAPSED,
    FARTHER,
    FEWEST,
    FOLD_AGAINST,
    FOLD_NEIGHBORS,
    FOLD_PROBE,
    LOST_FLOORS,
    LOST_LOSS,
    MANY_APART,
    MOST,
    SHEETS_APART,
    TORN,
)

__all__ = ["embedding_fault", "lost_bursts", "overlapping", "torn"]

Array = NDArray[np.float64]


def lost_bursts(white: Whitening) -> NDArray[np.bool_]:
    """Find the bursts that are far from white.

    Parameters
    ----------
    white : Whitening

    Returns
    -------
    (N,) array of bool

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca.checks import Whitening
    >>> nothing = np.zeros((2, 2))
    >>> white = Whitening(np.array([0.1, 9.0]), np.array([0.1, 0.1]), np.ones((2, 2)), np.array([0.5, 0.0]), nothing)
    >>> lost_bursts(white)
    array([False,  True])
    """
    return white.losses > np.maximum(LOST_FLOORS * white.floors, LOST_LOSS)


def torn(white: Whitening) -> bool:
    """Check whether many bursts are lost, but not most.

    Parameters
    ----------
    white : Whitening

    Returns
    -------
    bool

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca.checks import Whitening
    >>> losses = np.r_[np.full(80, 0.1), np.full(20, 9.0)]
    >>> torn(Whitening(losses, np.full(100, 0.1), np.ones((100, 2)), np.ones(100), np.zeros((100, 2))))
    True
    """
    lost = lost_bursts(white)
    return bool(TORN.passed(lost.mean()) and lost.mean() < MOST and lost.sum() >= FEWEST)


def overlapping(embedding: Array, statistics: BurstStatistics, burst_std: float) -> float:
    """Compute the fraction of (a sample of) bursts whose neighbours in the embedding have distant measurements.

    Whitening cannot show a fold: every burst is white on either side of it. But a fold lays one part of the data on
    another, and the Mahalanobis distance of the bursts, which is a latent distance, tells the parts apart.

    Parameters
    ----------
    embedding : (N, d) array
    statistics : BurstStatistics
        Of the N bursts.
    burst_std : float

    Returns
    -------
    float

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> data = datasets.mushroom(100, 20, random_state=0)
    >>> overlapping(data.X, BurstStatistics.from_bursts(data.bursts, 2), 0.01) < 0.05
    True
    """
    if len(embedding) > FOLD_AGAINST:
        rows = sample_rows(len(embedding), FOLD_AGAINST)
        embedding, statistics = embedding[rows], statistics[rows]
    probe = sample_rows(len(embedding), FOLD_PROBE)
    n_neighbors = min(FOLD_NEIGHBORS, len(embedding) - 1)
    distance, near = (a[:, 1:] for a in cKDTree(embedding).query(embedding, n_neighbors + 1))
    squared = SheetDistance(statistics).squared(probe)
    apart = burst_std * np.sqrt(np.take_along_axis(squared, near[probe], axis=1))
    # The sampling error of short bursts enters the Mahalanobis distance; the distance to true neighbours has it too.
    truly_near = np.sort(squared, axis=1)[:, 1 : n_neighbors + 1]
    spacing = max(float(np.median(distance)), burst_std * float(np.median(np.sqrt(truly_near))))
    # A burst beyond a gap is far from all others in the embedding as well.
    limit = np.maximum(SHEETS_APART * spacing, FARTHER * np.median(distance[probe], axis=1))
    return float(np.mean(np.median(apart, axis=1) > limit))


def embedding_fault(white: Whitening, statistics: BurstStatistics, burst_std: float) -> str:
    """Name what is wrong with an embedding.

    Parameters
    ----------
    white : Whitening
    statistics : BurstStatistics
    burst_std : float

    Returns
    -------
    {"collapsed", "folded", "torn", ""}
        "" when nothing is wrong.

    Examples
    --------
    >>> import torch
    >>> from pyloca import datasets
    >>> from pyloca.checks import whitening
    >>> from pyloca.geometry import BurstStatistics
    >>> statistics = BurstStatistics.from_bursts(datasets.mushroom(100, 20, random_state=0).bursts, 2)
    >>> flat = torch.nn.Linear(2, 2, dtype=torch.float64)
    >>> _ = torch.nn.init.constant_(flat.weight, 1.0)
    >>> embedding_fault(whitening(flat, statistics, 0.01), statistics, 0.01)
    'collapsed'
    """
    if COLLAPSED.passed(np.median(white.stretches[:, -1])):
        return "collapsed"
    if MANY_APART.passed(overlapping(white.embedding, statistics, burst_std)):
        return "folded"
    return "torn" if torn(white) else ""
