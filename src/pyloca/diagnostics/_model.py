"""What the diagnostics need of a fitted model; `LOCA`, which lies a floor up, has it."""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from torch import nn

from pyloca.bursts import Bursts
from pyloca.errors import TrustWarning
from pyloca.geometry import BurstStatistics

__all__ = ["FittedModel", "refit"]


class FittedModel(Protocol):
    """A fitted `LOCA`."""

    encoder_: nn.Module
    decoder_: nn.Module
    burst_std_: float
    n_components_: int

    def transform(self, Y: Any) -> NDArray[np.float64]:
        """Encode measurements."""

    def _read_like(self, bursts: Any) -> tuple[Bursts | None, BurstStatistics]: ...


def refit(model: FittedModel, statistics: BurstStatistics, **changes: Any) -> Any:
    """A fresh `LOCA` with the settings of `model`, its σ and its d, in silence, on `statistics` (free of noise)."""
    fresh = clone(model).set_params(
        measurement_noise=None,
        intrinsic_dim=None,
        verbose=0,
        callbacks=(),
        solver="fast",
        burst_std=model.burst_std_,
        n_components=model.n_components_,
        **changes,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return fresh.fit(statistics)
