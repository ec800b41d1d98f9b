"""Value and pushed tangents of any module, by forward-mode differentiation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["pushforward"]


def pushforward(module: nn.Module, points: Tensor, tangents: Tensor) -> tuple[Tensor, Tensor]:
    """ρ(y) (n, d) and the tangents A J_ρ(y)ᵀ (n, k, d), of points (n, D) and tangents (n, k, D).

    Differentiable in the parameters of `module`, so reverse mode runs over this.
    """
    values, pushed = [], []
    for axis in range(tangents.shape[1]):
        output = torch.func.jvp(module, (points,), (tangents[:, axis],))
        values.append(output[0])
        pushed.append(output[1])
    return values[0], torch.stack(pushed, dim=1)  # (n, d), (n, k, d)
