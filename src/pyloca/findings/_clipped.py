"""Clipped bursts that a fit uses, because they are more than may be left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstStatistics
from pyloca.thresholds import MOST, UNLIKELY

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
        Empty when there are none. A sensor that is at its end in most bursts is not counted.

    Examples
    --------
    >>> from pyloca import datasets
    >>> points = datasets.mushroom(n_bursts=100, n_points=20, random_state=0).bursts.to_array()
    >>> points[..., 0] = points[..., 0].clip(max=1.7)
    >>> clipped_words(BurstStatistics.from_bursts(points))[:55]
    '1 of 100 bursts is clipped, but used: burst 74 (feature'
    """
    marks = statistics.marks
    rows = np.flatnonzero(_marked(statistics))
    if not len(rows):
        return ""
    listed = "; ".join(f"{statistics.name_of(row)} ({marks[row].removeprefix('is clipped: ')})" for row in rows[:SHOWN])
    more = f" and {len(rows) - SHOWN} more" * (len(rows) > SHOWN)
    share = np.ceil(100 * len(rows) / len(marks)) / 100
    return (
        f"{len(rows)} of {len(marks)} bursts {'is' if len(rows) == 1 else 'are'} clipped, but used: {listed}{more}. "
        "Such bursts look smaller along that sensor than they are. Give it a larger range, or "
        + (f"leave them out with max_strays={share:g} or more" if share <= MOST else "leave out the sensors")
    )


def _marked(statistics: BurstStatistics) -> NDArray[np.bool_]:
    """Whether each burst is clipped by a sensor that is not made so: one sensor at its end in most bursts is.

    It is asked of each sensor: six of them may clip most bursts among them, each only a few.
    """
    sensors = np.array([str(mark).partition(" has its ")[0] for mark in statistics.marks])
    names, inverse, counts = np.unique(sensors, return_inverse=True, return_counts=True)
    return np.asarray(((names != "") & (counts <= MOST * len(sensors)))[inverse])


def clipped(statistics: BurstStatistics, symptom: Finding) -> Finding | None:
    """Check whether clipped bursts explain a finding: those that show it are clipped twice as often as others.

    Parameters
    ----------
    statistics : BurstStatistics
        Of the fit.
    symptom : Finding

    Returns
    -------
    Finding or None
        "clipped"; or the same finding with a word on clipping, where so many bursts are clipped that it cannot be told.

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.findings import Finding
    >>> from pyloca.geometry import BurstStatistics
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> statistics = BurstStatistics.from_bursts(bursts, 2)
    >>> clipped(statistics, Finding("outliers", "some bursts are wrong", bursts=(3, 7))) is None  # no sensor is
    True
    """
    marked = _marked(statistics)
    words = clipped_words(statistics)
    if not words or not symptom.bursts:
        return None
    usual, here = float(marked.mean()), marked[list(symptom.bursts)]
    # Twice as often, or half as often not, where most are.
    often = here.mean() > max(MOST, min(2 * usual, (1 + usual) / 2))
    if not (often and binom.sf(here.sum() - 1, len(here), usual) < UNLIKELY):
        if usual <= MOST:
            return None
        told = f"But {marked.sum()} of {len(marked)} bursts are clipped by some sensor, which may be the cause"
        return replace(
            symptom, message=f"{symptom.message} {told}: give such sensors a larger range, or leave them out."
        )
    return Finding(
        "clipped",
        f'sensors at the end of their range make bursts look like a fault of another kind, "{symptom.name}": {words}.',
        tuple(int(row) for row in np.flatnonzero(marked)),
    )
