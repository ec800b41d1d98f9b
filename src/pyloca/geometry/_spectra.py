"""σ, k and the ambient noise, read off the eigenvalues of the burst covariances."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.errors import BurstError

__all__ = ["burst_std_from_spectra", "intrinsic_dim_from_spectra", "noise_from_spectra"]

# A measurement that stretches one direction seven times more than another has eigenvalues 50 apart, while curvature and
# noise usually lie lower still. When all D eigenvalues may be tangent, only a larger drop than this counts as a floor.
CLEAR_GAP = 50.0
# No sensible measurement stretches one direction thirty times more than another: the first such drop ends the tangents,
# whatever larger drop (from curvature to rounding) may follow.
CERTAIN_GAP = 1000.0
# A stretch of two between neighbouring tangents; when no drop exceeds its square, the tangents go on.
NO_GAP = 4.0


def burst_std_from_spectra(spectra: NDArray[np.float64]) -> float:
    """σ as in section 7.1: σ² is the median over bursts of the first covariance eigenvalue."""
    return float(np.sqrt(np.median(spectra[:, 0])))


def intrinsic_dim_from_spectra(spectra: NDArray[np.float64], n_features: int, max_dim: int) -> int:
    """k, where the median spectrum drops: the first drop that is certain, else the largest, at or before `max_dim`.

    `spectra` (N, r) has the leading eigenvalues of each burst, r ≤ min(D, M − 1). When all D eigenvalues are tangent
    there is no floor to drop to; then k = min(D, `max_dim`) unless an earlier drop exceeds `CLEAR_GAP`.
    """
    rank = spectra.shape[1]
    level = np.median(spectra, axis=0)
    level = np.maximum(level, max(level[0] * np.finfo(float).eps ** 2, np.finfo(float).tiny))
    last = min(rank, max_dim)
    drops = level[:last][: rank - 1] / level[1 : last + 1]  # drops[j] lies between eigenvalues j + 1 and j + 2
    certain = np.flatnonzero(drops > CERTAIN_GAP)
    if len(certain):
        return int(certain[0]) + 1
    if rank > last and drops.max() < NO_GAP:
        raise BurstError(
            f"the first {last + 1} eigenvalues of the bursts are nearly equal (median {level[: last + 1]}), so they "
            f"span more than n_components = {last}. Use a larger n_components, or give intrinsic_dim."
        )
    if len(drops) and (rank > last or drops.max() > CLEAR_GAP):
        return int(np.argmax(drops)) + 1
    if rank < n_features and rank < max_dim:
        raise BurstError(
            f"the bursts have {rank + 1} points, which span {rank} directions, and no noise floor is visible among "
            f"them, so their intrinsic dimension is unknown. Take more points a burst or give intrinsic_dim."
        )
    return last


def noise_from_spectra(
    residual_traces: NDArray[np.float64], counts: NDArray[np.float64], n_features: int, k: int
) -> float:
    """Variance of isotropic ambient noise: the median over bursts of what lies off the tangent, a dimension.

    `residual_traces` (N,) is the trace of the burst covariance less its k leading eigenvalues, which take k of the
    M − 1 degrees of freedom with them.
    """
    if n_features <= k:
        raise BurstError(
            f"measurement_noise cannot be estimated: all D = {n_features} directions are tangent (k = {k}). "
            "Give its standard deviation as a number, or None."
        )
    kept = 1 - k / (counts - 1)
    if np.median(kept) <= 0:
        raise BurstError(
            f"measurement_noise cannot be estimated from bursts of {k + 1} points: k = {k} tangents take all their "
            "degrees of freedom. Take more points a burst, or give the noise as a number."
        )
    usable = kept > 0
    return float(np.median(residual_traces[usable] / kept[usable])) / (n_features - k)
