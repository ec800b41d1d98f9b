"""Value and pushed tangents of any module, by reverse mode alone.

PyTorch's forward mode has one level per process: two threads that use it at the same time get errors, or infinite
numbers in silence. It also loads its compiler on first use, which takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from pyloca._forks import COMPUTING
from pyloca._threads import after_fork

__all__ = ["Pushforward", "exact_norms", "pushed_rows", "pushforward"]


class Pushforward:
    """The linear map t ↦ J t of outputs that were computed from inputs, J their Jacobian; it is differentiable.

    v ↦ Jᵀ v is linear, and its own transpose is J: the derivative of a pull-back with respect to v, at any v.

    Parameters
    ----------
    outputs, inputs : sequence of Tensor
        The inputs require gradients.
    """

    def __init__(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor]) -> None:
        self._at = [torch.zeros_like(output, requires_grad=True) for output in outputs]
        known = [(output, at) for output, at in zip(outputs, self._at, strict=True) if output.requires_grad]
        ends, at = zip(*known, strict=True) if known else ((), ())
        self._pulled = torch.autograd.grad(ends, inputs, at, create_graph=True, materialize_grads=True)

    def __call__(self, tangents: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Push tangents of the inputs to the outputs.

        Parameters
        ----------
        tangents : sequence of Tensor
            One for each input.

        Returns
        -------
        tuple of Tensor
            One for each output.
        """
        # an input on which no output depends is pulled back to a zero that nothing depends on
        known = [(pulled, t) for pulled, t in zip(self._pulled, tangents, strict=True) if pulled.requires_grad]
        pulled, along = zip(*known, strict=True) if known else ((), ())
        return torch.autograd.grad(pulled, self._at, along, create_graph=True, materialize_grads=True)


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

    Examples
    --------
    >>> import torch
    >>> values, pushed = pushforward(torch.nn.Linear(3, 2), torch.zeros(4, 3), torch.ones(4, 1, 3))
    >>> values.shape, pushed.shape
    (torch.Size([4, 2]), torch.Size([4, 1, 2]))
    """
    with torch.enable_grad(), exact_norms(module):
        rows = points.detach().clone().requires_grad_()
        values = module(rows)
        push = Pushforward([values], [rows])
        pushed = [push([tangents[:, axis]])[0] for axis in range(tangents.shape[1])]
    return values, torch.stack(pushed, dim=1)  # (n, d), (n, k, d)


@contextmanager
def exact_norms(module: nn.Module) -> Iterator[None]:
    """Let layer norms compute their formula inside: of PyTorch's own kernel, third derivatives are wrong.

    The gradient of a pushed tangent is one. Of all common layers, `nn.LayerNorm` alone has this fault (PyTorch 2.13).

    Parameters
    ----------
    module : torch.nn.Module
    """
    norms = [part for part in module.modules() if isinstance(part, nn.LayerNorm)]
    handles = [part.register_forward_hook(_layer_norm) for part in norms]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _layer_norm(layer: nn.LayerNorm, args: tuple[Tensor, ...], _output: Tensor) -> Tensor:
    axes = tuple(range(-len(layer.normalized_shape), 0))
    centred = args[0] - args[0].mean(dim=axes, keepdim=True)
    out = centred * torch.rsqrt(centred.square().mean(dim=axes, keepdim=True) + layer.eps)
    out = out if layer.weight is None else out * layer.weight
    return out if layer.bias is None else out + layer.bias


@COMPUTING
def pushed_rows(module: nn.Module, points: Tensor, tangents: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the same as `pushforward`, as numbers only: one output at a time, which is quicker where these are few.

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

    Examples
    --------
    >>> import torch
    >>> values, pushed = pushed_rows(torch.nn.Linear(3, 2), torch.zeros(4, 3), torch.ones(4, 1, 3))
    >>> values.shape, pushed.shape
    (torch.Size([4, 2]), torch.Size([4, 1, 2]))
    """
    after_fork()
    with torch.enable_grad():
        rows = points.detach().clone().requires_grad_()
        values = module(rows)
        slopes = [
            torch.autograd.grad(values[:, axis].sum(), rows, retain_graph=axis + 1 < values.shape[1])[0]
            for axis in range(values.shape[1])
        ]
    pushed = [torch.bmm(tangents, slope[:, :, None]) for slope in slopes]  # (n, k, 1) each
    return values.detach(), torch.cat(pushed, dim=2)
