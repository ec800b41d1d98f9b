"""The same settings on other bursts, for error bars and the null test."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from pyloca.estimator import LOCA, fit_quietly
from pyloca.geometry import BurstStatistics

__all__ = ["refit"]


def refit(model: LOCA, statistics: BurstStatistics, **changes: Any) -> LOCA:
    """Fit a new `LOCA` with the settings, σ and d of `model`, without messages, to statistics without noise."""
    fresh = clone(model).set_params(
        measurement_noise=None,
        intrinsic_dim=None,
        feature_scale=None,  # the statistics are in the units of the model already
        max_strays=0.0,  # and have no strays
        verbose=0,
        callbacks=(),
        solver="fast",
        burst_std=model.burst_std_,
        n_components=model.n_components_,
        **changes,
    )
    refitted: LOCA = fit_quietly(fresh, statistics)
    return refitted
