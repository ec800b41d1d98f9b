"""Checks of the bursts themselves, used both by `inspect_bursts` before a fit and by the judgement of a fit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.alignment import strain_beyond_sampling
from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.findings._diagnostics import Finding
from pyloca.findings._noise_words import loudest
from pyloca.findings._rounded import rounded_words
from pyloca.geometry import BurstSpectra, BurstStatistics, intrinsic_dim_from_spectra, sample_rows
from pyloca.thresholds import HIDDEN_TANGENT, LARGE, MANY_SPIKES, NEAR, NOISE_BESIDE, NOISY, RECHECKED

__all__ = [
    "as_large_as_the_data",
    "hidden_tangent",
    "hidden_tangent_words",
    "noise",
    "noise_beside_tangents",
    "size_error",
    "spike_words",
    "strain_beyond_sampling",
]


def spike_words(statistics: BurstStatistics) -> str:
    """Say how many points were set aside as spikes, and where.

    Parameters
    ----------
    statistics : BurstStatistics

    Returns
    -------
    str
        For example ``"412 of 22,500 points (1.8 %) as spikes, in 310 bursts; most in burst 'run 7': 6 of 50"``; empty
        when none were.

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> statistics = BurstStatistics.from_bursts(bursts, 2)
    >>> spike_words(statistics)
    ''
    """
    aside = statistics.set_aside
    if not aside.any():
        return ""
    points = statistics.counts + aside
    n, most, bursts = int(aside.sum()), int(np.argmax(aside)), int((aside > 0).sum())
    share = n / float(points.sum())
    return (
        f"{n:,} of {points.sum():,.0f} points ({100 * share:.2g} %) as spikes, in {bursts:,} "
        f"burst{'s' * (bursts != 1)}; most in {statistics.name_of(most)}: {aside[most]} of {points[most]:.0f}"
        + (". So many point to a fault of the instrument, or to points in wrong bursts" if share > MANY_SPIKES else "")
    )


def size_error(counts: NDArray[np.float64]) -> float:
    """Compute the relative sampling error of a burst's size along a line, 1 / √(2 (M − 1)) at the median M.

    Parameters
    ----------
    counts : (N,) array
        Points per burst; infinite where the local geometry is known exactly.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> round(size_error(np.full(100, 9.0)), 2)
    0.25
    """
    points = float(np.median(counts))
    return float(1 / np.sqrt(2 * (points - 1))) if np.isfinite(points) else 0.0


def as_large_as_the_data(statistics: BurstStatistics, bursts: Bursts) -> Finding | None:
    """Check whether bursts overlap each other so much that their positions mean nothing.

    Parameters
    ----------
    statistics : BurstStatistics
    bursts : Bursts
        The same.

    Returns
    -------
    Finding or None
        "large_bursts", or None when nothing is wrong.

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> statistics = BurstStatistics.from_bursts(bursts, 2)
    >>> as_large_as_the_data(statistics, bursts) is None
    True
    """
    inside = _inside(statistics, bursts)
    share = inside / (inside + float(statistics.means.var(axis=0).sum()))
    if not LARGE.passed(share):
        return None
    return Finding(
        "large_bursts",
        f"bursts are as large as the data: {share:.0%} of all variance lies inside them, and they overlap each other. "
        "Take smaller bursts, and check that points were not assigned to the wrong bursts.",
    )


def hidden_tangent(statistics: BurstStatistics, bursts: Bursts) -> Finding | None:
    """Check for a direction in which bursts lie far from each other, but which curvature hides inside a burst.

    Parameters
    ----------
    statistics : BurstStatistics
    bursts : Bursts
        The same, raw.

    Returns
    -------
    Finding or None
        "large_bursts", or None when nothing is wrong.

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> statistics = BurstStatistics.from_bursts(bursts, 2)
    >>> hidden_tangent(statistics, bursts) is None
    True
    """
    if bursts.perturbed_dim is not None or statistics.noise is not None:
        return None
    k, spectra = statistics.intrinsic_dim, BurstSpectra.of(bursts, RECHECKED)
    for j in (k, k + 1):  # with two curved directions the tangent may come after the first of them
        ratio, spacing = spectra.moves(j)
        # Farther than some burst sizes, bends of third order are larger than a short tangent.
        if spacing < NEAR and HIDDEN_TANGENT.passed(ratio):
            return Finding("large_bursts", hidden_tangent_words(k))
    return None


def hidden_tangent_words(k: int, tried: str = "") -> str:
    """Say that a tangent is hidden beside the k that were found, and what to do.

    Parameters
    ----------
    k : int
    tried : str, default=""
        What is wrong with a fit of k + 1, if one was made.

    Returns
    -------
    str

    Examples
    --------
    >>> "Pass intrinsic_dim=2" in hidden_tangent_words(1)
    True
    """
    advice = (
        f"A fit with k = {k + 1}, in which bends are taken out of the bursts, was tried and is no better ({tried}): "
        "take much smaller bursts."
        if tried
        else f"Pass intrinsic_dim={k + 1}, with which bends are taken out of the bursts, or take much smaller bursts."
    )
    return (
        f"k = {k} tangents were found, but neighbouring bursts also lie apart in a direction that is hardly seen "
        "inside a burst: there the measurement bends along the other tangents by more than it changes along this one, "
        f"and coordinates miss it. {advice}"
    )


def _inside(statistics: BurstStatistics, bursts: Bursts) -> float:
    """Compute the variance inside a burst, on average; where perturbations are known, what they explain of it.

    A regression averages the rest, and its error is in the counts. Its tangents are σ J for any σ, and do not tell how
    large the perturbations were.
    """
    if bursts.perturbed_dim is None:
        return float(np.mean(statistics.spectra.sum(axis=1) + statistics.residuals))
    probe = sample_rows(len(bursts), RECHECKED)
    explained = -statistics.residuals[probe]
    for rows, block in bursts[probe].blocks():
        explained[rows] += block.var(axis=1, ddof=1).sum(axis=1)
    return max(float(explained.mean()), 0.0)


def noise(statistics: BurstStatistics, bursts: Bursts | None) -> Finding | None:
    """Check for variance off the tangents that does not grow with the burst: noise, or tangents that were left out.

    Parameters
    ----------
    statistics : BurstStatistics
    bursts : Bursts or None
        Raw bursts, which tell noise from curvature and from missing tangents; None if there are only statistics.

    Returns
    -------
    Finding or None
        "noise" or "more_tangents", or None when nothing is wrong.

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> statistics = BurstStatistics.from_bursts(bursts, 2)
    >>> noise(statistics, bursts) is None
    True
    """
    if bursts is not None and bursts.perturbed_dim is not None:
        return None  # a regression averages noise, and its error is in the counts
    k = statistics.intrinsic_dim
    spectra = None if bursts is None else BurstSpectra.of(bursts, RECHECKED)
    if spectra is not None and statistics.noise is None and any(spectra.is_noise(j) for j in range(1, k)):
        return Finding(
            "noise",
            f"bursts vary in k = {k} directions, but neighbouring bursts do not lie along all of them, as they do "
            "along tangents: some are measurement noise, and coordinates hold it. Use measurement_noise='estimate', or "
            "static bursts taken while nothing was perturbed, and fewer n_components. (If the places were chosen along "
            "a curve and bursts are displaced across it, this is not a fault.)",
        )
    share = float(np.median(statistics.residuals / statistics.spectra[:, -1])) / max(statistics.n_used - k, 1)
    if not NOISY.passed(share):
        return None
    if bursts is not None and spectra is not None:
        if spectra.growth.shape[1] > k and spectra.growth[:, k].mean() > 1 + 1 / k:
            return None  # curvature
        steps = rounded_words(bursts)
        if steps:
            return Finding(
                "noise",
                f"readings are rounded ({steps}), which is noise of {np.sqrt(share):.0%} of a burst along the last of "
                f"its k = {k} tangents, or looks like further ones, and is in the coordinates. Take readings in finer "
                "steps, or larger bursts.",
            )
        spanned = _spanned(spectra, k)
        if k < spanned < statistics.n_used:  # there is a floor, and it lies lower
            told = _noise_of_sensors(bursts, k) if statistics.instrument is None else ""
            if told:
                return Finding(
                    "noise",
                    f"bursts span {spanned} directions, more than the k = {k} of the fit, and noise of single sensors "
                    f"explains the others ({told}). Use measurement_noise='estimate', or static bursts taken while "
                    "nothing was perturbed.",
                )
            return Finding(
                "more_tangents",
                f"bursts span {spanned} directions, but the fit uses k = {k}: what varies along the others is not in "
                f"the coordinates. Fit with intrinsic_dim={spanned}, or leave it out, and with at least as many "
                "n_components.",
            )
    return Finding(
        "noise",
        f"the noise of the instrument is {np.sqrt(share):.0%} of a burst along the last of its k = {k} tangents: "
        "bursts look larger than they are, and coordinates come out too small there. Use "
        "measurement_noise='estimate', larger bursts, or the mean of several readings.",
    )


def noise_beside_tangents(statistics: BurstStatistics, bursts: Bursts, d: int, first: Finding) -> Finding | None:
    """Check whether noise of single sensors made a fit take fewer tangents than there are, once something is wrong.

    Parameters
    ----------
    statistics : BurstStatistics
    bursts : Bursts
        The same, raw.
    d : int
        Embedding dimension.
    first : Finding
        What was found.

    Returns
    -------
    Finding or None
        "noise", or None.
    """
    k = statistics.intrinsic_dim
    if d <= k or statistics.instrument is not None or first.name not in MISSING or bursts.perturbed_dim is not None:
        return None
    sample = bursts[sample_rows(len(bursts), RECHECKED)]
    try:
        found = BurstStatistics.from_bursts(sample, measurement_noise="estimate", max_dim=d)
    except BurstError:
        return None
    if found.intrinsic_dim <= k or found.instrument is None:
        return None
    levels = found.instrument.levels
    levels = levels if levels.ndim == 2 else np.diagonal(levels, axis1=1, axis2=2)
    inside = np.concatenate([block.var(axis=1, ddof=1) for _, block in sample.blocks()]).mean(axis=0)
    part = float(np.max(np.median(levels, axis=0) / np.maximum(inside, np.finfo(float).tiny)))
    if part < NOISE_BESIDE:
        return None
    return Finding(
        "noise",
        f"noise of single sensors ({loudest(found)}) is {part:.0%} of a burst's variance there and makes a tangent "
        f"look like it: the fit uses k = {k}, and without that noise bursts have {found.intrinsic_dim} tangents. Use "
        "measurement_noise='estimate', or static bursts taken while nothing was perturbed, or leave out these sensors.",
    )


# What a fit with too few tangents is called.
MISSING = {"more_tangents", "noise", "round_trip", "folded", "few_bursts", "poor_fit", "curved", "uneven_shape"}


def _noise_of_sensors(bursts: Bursts, k: int) -> str:
    """Name the sensors whose noise, found off k tangents, explains why bursts span more; "" if it does not."""
    sample = bursts[sample_rows(len(bursts), RECHECKED)]
    try:
        found = BurstStatistics.from_bursts(sample, measurement_noise="estimate", max_dim=k)
    except BurstError:
        return ""
    return loudest(found) if found.intrinsic_dim == k else ""


def _spanned(spectra: BurstSpectra, k: int) -> int:
    """Estimate the intrinsic dimension from the bursts themselves; `k` when that is not possible."""
    try:
        return intrinsic_dim_from_spectra(spectra, spectra.n_features)
    except BurstError:
        return k
