"""A network between fixed scalings, so that the weights never see the units of the data."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

__all__ = ["Standardized"]


class Standardized(nn.Module):
    """y ↦ out_shift + out_scale · network((y − in_shift) / in_scale); one scale for all features."""

    in_shift: Tensor
    in_scale: Tensor
    out_shift: Tensor
    out_scale: Tensor

    def __init__(
        self,
        network: nn.Module,
        in_shift: NDArray[np.float64],
        in_scale: float,
        out_shift: NDArray[np.float64],
        out_scale: float,
    ) -> None:
        super().__init__()
        self.network = network
        for name, value in [
            ("in_shift", in_shift),
            ("in_scale", in_scale),
            ("out_shift", out_shift),
            ("out_scale", out_scale),
        ]:
            self.register_buffer(name, torch.tensor(np.asarray(value, dtype=np.float64)))

    def forward(self, y: Tensor) -> Tensor:
        """(n, n_in) → (n, n_out)."""
        return self.out_shift + self.out_scale * self.network((y - self.in_shift) / self.in_scale)
