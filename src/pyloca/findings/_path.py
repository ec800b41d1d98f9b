"""Checks of the order of points: recordings that were cut into pieces, and rows that are in wrong bursts."""

from __future__ import annotations

import numpy as np

from pyloca.bursts import Bursts
from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstStatistics, sample_rows
from pyloca.thresholds import FEW, IN_ORDER, MANY_SPIKES, RECHECKED, TWO_RUNS

__all__ = ["path", "two_runs", "von_neumann", "wrong_rows"]


def von_neumann(bursts: Bursts) -> float:
    """Compute how much a point of a burst differs from the one before it, compared with any other.

    Von Neumann's ratio: the mean square of differences between successive points over the variance of all, features of
    unit variance inside the burst, median of (a sample of) the bursts.

    Parameters
    ----------
    bursts : Bursts

    Returns
    -------
    float
        2 for points that come in any order, some 10 / M for M successive points of a random walk.

    Examples
    --------
    >>> steps = np.random.RandomState(0).standard_normal((50, 40, 2))
    >>> round(von_neumann(Bursts(steps)), 1), round(von_neumann(Bursts(np.cumsum(steps, axis=1))), 1)
    (2.0, 0.3)
    """
    sample = bursts[sample_rows(len(bursts), RECHECKED)]
    ratios = np.full(len(sample), np.nan)
    for rows, block in sample.blocks():
        if block.shape[1] < 3:
            continue
        inside = block.var(axis=1, ddof=1)  # (b, D)
        steps = np.square(np.diff(block, axis=1)).mean(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios[rows] = np.nanmean(np.where(inside > 0, steps / inside, np.nan), axis=1)
    known = ratios[np.isfinite(ratios)]
    return float(np.median(known)) if len(known) >= min(FEW, len(sample)) else float("nan")


def two_runs(bursts: Bursts) -> tuple[float, float]:
    """Compute how far the rows of a burst fall into two runs, one after the other.

    Parameters
    ----------
    bursts : Bursts

    Returns
    -------
    share : float
        Part of a burst's variance that lies between the runs, features of unit variance inside the burst, median of (a
        sample of) the bursts; about ½ for a random walk, nan if bursts are too short.
    last : float
        The last row of the first run, counted from 1, median.

    Examples
    --------
    >>> points = np.random.RandomState(0).standard_normal((50, 40, 2))
    >>> points[:, 15:] += 20
    >>> share, last = two_runs(Bursts(points))
    >>> share > 0.9, last
    (True, 15.0)
    """
    sample = bursts[sample_rows(len(bursts), RECHECKED)]
    shares, ends = [], []
    for _, block in sample.blocks():
        m = block.shape[1]
        if m < 6:
            continue
        spread = block.std(axis=1, keepdims=True)  # (b, 1, D)
        white = (block - block.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1)
        rows = np.arange(2, m - 1)
        between = np.square(np.cumsum(white, axis=1)[:, 1 : m - 2]).sum(axis=2) * m / (rows * (m - rows))  # (b, m − 3)
        shares.append(between.max(axis=1) / np.maximum(np.square(white).sum(axis=(1, 2)), np.finfo(float).tiny))
        ends.append(rows[between.argmax(axis=1)])
    if not shares:
        return float("nan"), float("nan")
    return float(np.median(np.concatenate(shares))), float(np.median(np.concatenate(ends)))


def wrong_rows(statistics: BurstStatistics, first: Finding | None = None) -> Finding | None:
    """Check whether so many points lie far from their bursts that rows must be in wrong bursts.

    Parameters
    ----------
    statistics : BurstStatistics
    first : Finding, optional
        What was found, if something was.

    Returns
    -------
    Finding or None
    """
    aside = float(statistics.set_aside.sum())
    share = aside / max(aside + float(np.where(np.isfinite(statistics.counts), statistics.counts, 0).sum()), 1.0)
    if share < MANY_SPIKES or (first is not None and first.name not in CAUSED):
        return None
    return Finding(
        "rows",
        f"rows are in wrong bursts, it seems: {share:.0%} of the points lie far from the rest of their burst and were "
        "set aside. Check where one burst ends and the next begins, and the column of burst ids; a sensor with so many "
        f"spikes is the other possibility{'.' if first is None else f' ({first.name}: {first.message})'}",
        () if first is None else first.bursts,
    )


def path(bursts: Bursts | None, first: Finding) -> Finding | None:
    """Check whether the cause of what was found is that bursts are pieces of a path, and not clouds around a place.

    Parameters
    ----------
    bursts : Bursts or None
        Raw bursts, if there are any.
    first : Finding
        What was found.

    Returns
    -------
    Finding or None
    """
    if bursts is None or bursts.perturbed_dim is not None or first.name not in CAUSED:
        return None
    ratio = von_neumann(bursts)
    if not IN_ORDER.passed(ratio):
        return None
    share, last = two_runs(bursts)
    if share >= TWO_RUNS:
        return Finding(
            "rows",
            f"rows are in wrong bursts: a burst consists of two runs of rows that lie apart, up to its row {last:.0f} "
            f"and after it (median; {share:.0%} of its variance is between them). Check where one burst ends and the "
            f"next begins, such as a burst column that is off by some rows ({first.name}: {first.message})",
            first.bursts,
        )
    return Finding(
        "path",
        f"bursts are pieces of a path: a point differs from the one before it by {ratio / 2:.0%} of the variance by "
        "which any two differ, as successive samples of a recording do. Such pieces are as long as the path happened "
        "to run, and not as wide as σ. Cut recordings with pyloca.bursts.from_time_series, which takes the steps and "
        f"not the places; if the points are a scan in a fixed order, this is no fault ({first.name}: {first.message})",
        first.bursts,
    )


# What pieces of a path are called that are taken for clouds.
CAUSED = {
    "large_bursts",
    "few_bursts",
    "crossing",
    "outliers",
    "uneven_size",
    "uneven_shape",
    "curved",
    "folded",
    "poor_fit",
    "rows",
    "scale",
    "unrelated",
}
