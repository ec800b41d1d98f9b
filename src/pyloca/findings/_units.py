"""A check for units so different that features with large values drown those with small ones."""

from __future__ import annotations

import numpy as np

from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstSpectra, intrinsic_dim_from_spectra, sample_rows
from pyloca.thresholds import DROWNED, LARGE, NOISE_FEATURE, POINTS, RECHECKED, UNITS_APART

__all__ = ["uneven_units"]


def uneven_units(bursts: Bursts, k: int) -> Finding | None:
    """Check whether bursts that span `k` directions look quite different when every feature has unit spread.

    Parameters
    ----------
    bursts : Bursts
    k : int
        Intrinsic dimension of the bursts as they are.

    Returns
    -------
    Finding or None
        "units", or None when nothing is wrong.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> uneven_units(bursts, 2) is None
    True
    """
    sample = bursts[sample_rows(len(bursts), RECHECKED)]
    means, variances = (np.empty((len(sample), sample.n_features)) for _ in range(2))
    for rows, block in sample.blocks():
        few = block[:, :POINTS]
        means[rows], variances[rows] = few.mean(axis=1), few.var(axis=1)
    spread, inside = means.std(axis=0), np.sqrt(variances.mean(axis=0))
    if LARGE.passed(float(np.min(inside**2 / np.maximum(inside**2 + spread**2, np.finfo(float).tiny)))):
        return None  # bursts are as large as the data in every feature, whatever its unit: that is told instead
    part = np.divide(inside, spread, out=np.full_like(spread, np.inf), where=spread > 0)
    signal = np.flatnonzero(part < NOISE_FEATURE * part.min())
    if len(signal) < 2 or not UNITS_APART.passed(spread[signal].max() / spread[signal].min()):
        return None
    raw, even = BurstSpectra.of(sample, RECHECKED), BurstSpectra.empty(sample.counts, len(signal))
    for rows, block in sample.blocks():
        even.add(rows, block[:, :, signal] / spread[signal])
    try:
        spanned = intrinsic_dim_from_spectra(even, len(signal))
    except BurstError:
        spanned = k
    last = min(k, even.values.shape[1]) - 1
    if spanned <= k and not DROWNED.passed(_ratio(raw, last) / _ratio(even, last)):
        return None
    small, large = signal[np.argmin(spread[signal])], signal[np.argmax(spread[signal])]
    because = (
        f"bursts span k = {k} directions in them, but {spanned} when every feature has unit spread"
        if spanned > k
        else "the large ones drown directions that only the small ones show"
    )
    return Finding(
        "units",
        f"features have very different units: {bursts.feature_label(int(small))} varies by {spread[small]:.2g} and "
        f"{bursts.feature_label(int(large))} by {spread[large]:.2g}, and {because}. Fit with feature_scale='auto', "
        "which divides every feature by its spread.",
    )


def _ratio(spectra: BurstSpectra, last: int) -> float:
    """Median ratio of the first eigenvalue to that of the last tangent."""
    tiny = np.finfo(float).tiny
    return float(np.median(spectra.values[:, 0] / np.maximum(spectra.values[:, last], tiny)))
