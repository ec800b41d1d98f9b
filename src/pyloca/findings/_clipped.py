"""Clipped bursts that a fit uses, because they are more than may be left out."""

from __future__ import annotations

import numpy as np

from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstStatistics
from pyloca.thresholds import MOST

__all__ = ["clipped", "clipped_words"]

SHOWN = 3  # bursts that are listed with their sensors


def clipped_words(statistics: BurstStatistics) -> str:
    """Say which bursts are clipped and used all the same, and what to do.

    A few points at the end of a range hardly change a fit, and a sensor that is at its end in most bursts is made so;
    but nobody should have to find out.

    Parameters
    ----------
    statistics : BurstStatistics
        Without those that were left out.

    Returns
    -------
    str
        Empty when there are none, or when most are.

    Examples
    --------
    >>> from pyloca import datasets
    >>> points = datasets.mushroom(n_bursts=100, n_points=20, random_state=0).bursts.to_array()
    >>> points[..., 0] = points[..., 0].clip(max=1.7)
    >>> clipped_words(BurstStatistics.from_bursts(points))[:55]
    '1 of 100 bursts is clipped, but used: burst 74 (feature'
    """
    marks = statistics.marks
    rows = np.flatnonzero(marks != "")
    if not len(rows) or len(rows) > MOST * len(marks):
        return ""
    listed = "; ".join(f"{statistics.name_of(row)} ({marks[row].removeprefix('is clipped: ')})" for row in rows[:SHOWN])
    more = f" and {len(rows) - SHOWN} more" * (len(rows) > SHOWN)
    share = np.ceil(100 * len(rows) / len(marks)) / 100
    return (
        f"{len(rows)} of {len(marks)} bursts {'is' if len(rows) == 1 else 'are'} clipped, but used: {listed}{more}. "
        "Such bursts look smaller along that sensor than they are. Give it a larger range, or leave them out with "
        f"max_strays={share:g} or more"
    )


def clipped(statistics: BurstStatistics, symptom: Finding) -> Finding | None:
    """Check whether clipped bursts explain a finding: most of the bursts that show it are clipped.

    Parameters
    ----------
    statistics : BurstStatistics
        Of the fit.
    symptom : Finding

    Returns
    -------
    Finding or None
    """
    marked = statistics.marks != ""
    words = clipped_words(statistics)
    if not words or not symptom.bursts or marked[list(symptom.bursts)].mean() <= max(MOST, 2 * marked.mean()):
        return None
    return Finding(
        "clipped",
        f'sensors at the end of their range make bursts look like a fault of another kind, "{symptom.name}": {words}.',
        tuple(int(row) for row in np.flatnonzero(marked)),
    )
