"""σ and k from the bursts themselves."""

from __future__ import annotations

import os

from numpy.typing import ArrayLike

from pyloca.bursts import Bursts, as_bursts
from pyloca.geometry import BurstStatistics, burst_std_from_spectra

__all__ = ["estimate_burst_std", "estimate_intrinsic_dim"]


def _statistics(
    bursts: Bursts | BurstStatistics | ArrayLike | str | os.PathLike[str], intrinsic_dim: int | None
) -> BurstStatistics:
    if isinstance(bursts, BurstStatistics):
        return bursts
    raw = as_bursts(bursts)
    return BurstStatistics.from_bursts(raw, intrinsic_dim)


def estimate_burst_std(bursts: Bursts | BurstStatistics | ArrayLike | str | os.PathLike[str]) -> float:
    """σ as in section 7.1 of the paper: σ² is the median over bursts of the first covariance eigenvalue.

    It is the size of a burst in the *measurements*, so coordinates made with it are right up to one factor.
    """
    return burst_std_from_spectra(_statistics(bursts, 1).spectra)


def estimate_intrinsic_dim(bursts: Bursts | BurstStatistics | ArrayLike | str | os.PathLike[str]) -> int:
    """k, where the median burst spectrum drops to its floor of noise and curvature.

    All D when no drop is clear: a measurement may stretch one direction several times more than another.
    """
    return _statistics(bursts, None).intrinsic_dim
