"""A check for recordings that were cut into pieces: bursts whose points follow each other."""

from __future__ import annotations

import numpy as np

from pyloca.bursts import Bursts
from pyloca.findings._diagnostics import Finding
from pyloca.geometry import sample_rows
from pyloca.thresholds import FEW, IN_ORDER, RECHECKED

__all__ = ["path", "von_neumann"]


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
    "scale",
    "unrelated",
}
