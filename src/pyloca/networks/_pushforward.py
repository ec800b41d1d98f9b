"""Value and pushed tangents of any module, by forward-mode differentiation."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["pushed_rows", "pushforward"]


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


def pushed_rows(module: nn.Module, points: Tensor, tangents: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the same as `pushforward`, as numbers only: by reverse mode, one output at a time.

    It is quicker where outputs are few. PyTorch's forward mode loads its compiler on first use, which takes seconds.

    Parameters
    ----------
    module : torch.nn.Module
        ρ. Rows must not influence each other.
    points : Tensor (n, D)
        y.
    tangents : Tensor (n, k, D)
        A.

    Returns
    -------
    values : Tensor (n, d)
    pushed : Tensor (n, k, d)
    """
    with torch.enable_grad():
        rows = points.detach().clone().requires_grad_()
        values = module(rows)
        slopes = [
            torch.autograd.grad(values[:, axis].sum(), rows, retain_graph=axis + 1 < values.shape[1])[0]
            for axis in range(values.shape[1])
        ]
    pushed = [torch.bmm(tangents, slope[:, :, None]) for slope in slopes]  # (n, k, 1) each
    return values.detach(), torch.cat(pushed, dim=2)
