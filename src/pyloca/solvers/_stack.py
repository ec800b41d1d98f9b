"""Means and tangents of many bursts as a stack that is made part by part: a copy of them would double the memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pyloca.geometry import BurstStatistics

__all__ = ["LazyStack"]


class LazyStack:
    """As much of a tensor (1 + k, n, D) as training asks for: μ in units of the data, A in units of the embedding.

    Parameters
    ----------
    statistics : BurstStatistics
    rows : (n,) array of int
        The bursts that are meant.
    shift : (D,) array
        Subtracted from the means.
    scale : float
        Divisor of the means.
    unit : float
        Factor of the tangents.
    device : torch.device
    dtype : torch.dtype, default=torch.float64
    """

    def __init__(
        self,
        statistics: BurstStatistics,
        rows: NDArray[np.int64],
        shift: NDArray[np.float64],
        scale: float,
        unit: float,
        device: torch.device,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.statistics, self.rows, self.device, self.dtype = statistics, rows, device, dtype
        self.shift, self.scale, self.unit = shift, scale, unit

    @property
    def shape(self) -> tuple[int, int, int]:
        """(1 + k, n, D)."""
        return 1 + self.statistics.intrinsic_dim, len(self.rows), self.statistics.n_features

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Tensor:
        if not isinstance(key, tuple) or len(key) != 2 or key[0] != slice(None):
            return self.cpu().to(self.device)[key]
        rows = self.rows[key[1].numpy() if isinstance(key[1], Tensor) else key[1]]
        stack = np.empty((len(self), len(rows), self.shape[2]))
        stack[0] = (self.statistics.means[rows] - self.shift) / self.scale
        for axis in range(len(self) - 1):
            np.multiply(self.statistics.tangents[rows, axis], self.unit, out=stack[1 + axis])
        return torch.from_numpy(stack).to(self.device, self.dtype)

    def to(self, dtype: torch.dtype) -> LazyStack:
        """Return the same in another precision."""
        return LazyStack(self.statistics, self.rows, self.shift, self.scale, self.unit, self.device, dtype)

    def cpu(self) -> Tensor:
        """Return all of it."""
        return self[:, :].cpu()
