"""What bursts say before any fit, asked in the same words by `inspect_bursts` and of a fit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.alignment import Alignment
from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstSpectra, BurstStatistics, intrinsic_dim_from_spectra
from pyloca.thresholds import LARGE, NOISY, RECHECKED

__all__ = ["as_large_as_the_data", "noise", "size_error", "strain_beyond_sampling"]


def size_error(counts: NDArray[np.float64]) -> float:
    """Relative error, by sampling, of the size along a line of a burst of (median) `counts` points."""
    points = float(np.median(counts))
    return float(1 / np.sqrt(2 * (points - 1))) if np.isfinite(points) else 0.0


def as_large_as_the_data(statistics: BurstStatistics) -> Finding | None:
    """Clouds that overlap each other have no places."""
    inside = float(np.mean(statistics.spectra.sum(axis=1) + statistics.residuals))
    share = inside / (inside + float(statistics.means.var(axis=0).sum()))
    if not LARGE.passed(share):
        return None
    return Finding(
        "large_bursts",
        f"bursts are as large as the data: {share:.0%} of all variance lies inside them, and they overlap each other. "
        "Take smaller bursts, and check that points were not dealt to the wrong bursts.",
    )


def noise(statistics: BurstStatistics, bursts: Bursts | None) -> Finding | None:
    """Variance off the tangents that does not grow with the burst: noise, or tangents that were left out."""
    k = statistics.intrinsic_dim
    share = float(np.median(statistics.residuals / statistics.spectra[:, -1])) / max(statistics.n_features - k, 1)
    if not NOISY.passed(share):
        return None
    if bursts is not None:
        spectra = BurstSpectra.of(bursts, RECHECKED)
        if spectra.growth.shape[1] > k and spectra.growth[:, k].mean() > 1 + 1 / k:
            return None  # curvature
        spanned = _spanned(spectra, k)
        if k < spanned < statistics.n_features:  # there is a floor, and it lies lower
            return Finding(
                "more_tangents",
                f"bursts span {spanned} directions, and the fit knows k = {k}: what varies along the others is not in "
                f"the coordinates. Fit with intrinsic_dim={spanned}, or leave it out, and at least as many "
                "n_components.",
            )
    return Finding(
        "noise",
        f"the noise of the instrument is {np.sqrt(share):.0%} of a burst along the last of its k = {k} tangents: "
        "bursts look larger than they are, and coordinates come out too small there. Use "
        "measurement_noise='estimate', larger bursts, or the mean of several readings.",
    )


def _spanned(spectra: BurstSpectra, k: int) -> int:
    """The intrinsic dimension that the bursts themselves tell; `k` when they do not."""
    try:
        return intrinsic_dim_from_spectra(spectra, spectra.n_features)
    except BurstError:
        return k


def strain_beyond_sampling(alignment: Alignment, statistics: BurstStatistics) -> float:
    """Relative mismatch of the aligned edges, on the median, less what sampling leaves of it."""
    sampled = 0.25 * (statistics.intrinsic_dim + 1) / (float(np.median(statistics.counts)) - 1)
    return float(np.sqrt(max(float(np.median(alignment.strains)) ** 2 - sampled, 0)))
