"""What the diagnostics need of a fitted model; `LOCA`, which lies a floor up, has it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import nn

from pyloca.bursts import Bursts
from pyloca.geometry import BurstStatistics

__all__ = ["FittedModel"]


class FittedModel(Protocol):
    """A fitted `LOCA`."""

    encoder_: nn.Module
    decoder_: nn.Module
    burst_std_: float
    n_components_: int

    def transform(self, Y: Any) -> NDArray[np.float64]:
        """Encode measurements."""

    def _read_like(self, bursts: Any) -> tuple[Bursts | None, BurstStatistics]: ...
