"""Value and pushed tangents of any module, by forward-mode differentiation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["pushforward"]


def pushforward(module: nn.Module, points: Tensor, tangents: Tensor) -> tuple[Tensor, Tensor]:
    """Compute ρ(y) and the pushed tangents A J_ρ(y)ᵀ.

    Differentiable in the parameters of `module`, so reverse mode runs over this.

    Parameters
    ----------
    module : torch.nn.Module
        ρ.
    points : Tensor (n, D)
        y.
    tangents : Tensor (n, k, D)
        A.

    Returns
    -------
    values : Tensor (n, d)
    pushed : Tensor (n, k, d)
    """
    values, pushed = [], []
    for axis in range(tangents.shape[1]):
        output = torch.func.jvp(module, (points,), (tangents[:, axis],))
        values.append(output[0])
        pushed.append(output[1])
    return values[0], torch.stack(pushed, dim=1)  # (n, d), (n, k, d)
