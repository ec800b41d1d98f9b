"""The multilayer perceptron of both solvers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from pyloca._arguments import brief, is_integer

__all__ = ["ACTIVATIONS", "MLP", "Activation"]

LEAK = 0.01  # slope of leaky ReLU below zero, PyTorch's default


@dataclass(frozen=True)
class Activation:
    """An activation φ and its derivatives, each computed from the value h = φ(u) alone.

    `slope` is φ′ and `bend` is φ″/φ′, so that a pushed tangent φ′·t is differentiated without keeping t itself.
    """

    value: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]
    bend: Callable[[Tensor], Tensor | None]


ACTIVATIONS: dict[str, Activation] = {
    "tanh": Activation(torch.tanh, lambda h: torch.addcmul(torch.ones_like(h), h, h, value=-1), lambda h: -2 * h),
    "sigmoid": Activation(torch.sigmoid, lambda h: h * (1 - h), lambda h: 1 - 2 * h),
    "softplus": Activation(functional.softplus, lambda h: -torch.expm1(-h), lambda h: torch.exp(-h)),
    "elu": Activation(functional.elu, lambda h: torch.clamp(h, max=0) + 1, lambda h: (h < 0).to(h.dtype)),
    "leaky_relu": Activation(
        lambda u: functional.leaky_relu(u, LEAK), lambda h: torch.where(h < 0, LEAK, 1.0).to(h.dtype), lambda h: None
    ),
}


class MLP(nn.Module):
    """Fully connected layers with an activation after each hidden one.

    Parameters
    ----------
    n_in, n_out : int
        Widths of input and output.
    hidden_layers : sequence of int
        Widths of the hidden layers.
    activation : str, default="tanh"
        One of `ACTIVATIONS`.
    skip : bool, default=False
        Add a linear map from input to output (the fast solver's encoder and decoder).
    linear_tail : bool or int, default=False
        Two linear layers at the end, as in the appendix of the paper: "an activation function after each layer, except
        for the last two". An integer is the width of the layer before the last; True makes it `n_out`.
    generator : torch.Generator, optional
        Draws the weights, as PyTorch does. None is PyTorch's own, which all threads share.

    Raises
    ------
    ValueError
        If the activation is unknown, or a width is not an integer of at least 1.

    Examples
    --------
    >>> import torch
    >>> MLP(3, (8, 8), 2)(torch.zeros(5, 3)).shape
    torch.Size([5, 2])
    """

    def __init__(
        self,
        n_in: int,
        hidden_layers: Sequence[int],
        n_out: int,
        activation: str = "tanh",
        *,
        skip: bool = False,
        linear_tail: bool | int = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(sorted(ACTIVATIONS))}; got {brief(activation)}.")
        width = n_out if linear_tail is True or not linear_tail else linear_tail
        sizes = [n_in, *hidden_layers, width]
        if not all(is_integer(size, 1) for size in sizes):
            raise ValueError(f"hidden_layers must be integers of at least 1; got {brief(tuple(hidden_layers))}.")
        self.activation = activation
        self.layers = nn.ModuleList(_linear(a, b, generator) for a, b in pairwise(sizes))
        self.tail = _linear(width, n_out, generator) if linear_tail else None
        self.skip = _linear(n_in, n_out, generator, bias=False) if skip else None

    def linear_layers(self) -> list[nn.Linear]:
        """List the layers from input to output, without skip and tail.

        Returns
        -------
        list of torch.nn.Linear
        """
        return [layer for layer in self.layers if isinstance(layer, nn.Linear)]

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network.

        Points are columns inside: a matrix product then treats all of them alike, whereas of rows of odd length every
        other one is rounded differently.

        Parameters
        ----------
        x : Tensor (…, n_in)

        Returns
        -------
        Tensor (…, n_out)
        """
        phi = ACTIVATIONS[self.activation].value
        columns = x.reshape(-1, x.shape[-1]).T  # (n_in, n)
        h = columns
        for layer in self.linear_layers()[:-1]:
            h = phi(_affine(layer, h))
        out = _affine(self.linear_layers()[-1], h)
        if self.tail is not None:
            out = _affine(self.tail, out)
        if self.skip is not None:
            out = torch.addmm(out, self.skip.weight, columns)
        return out.T.reshape(*x.shape[:-1], -1)


def _linear(n_in: int, n_out: int, generator: torch.Generator | None, *, bias: bool = True) -> nn.Linear:
    """Draw a layer as `nn.Linear` does, which can only draw from the generator of the process."""
    layer = nn.utils.skip_init(nn.Linear, n_in, n_out, bias=bias)
    nn.init.kaiming_uniform_(layer.weight, a=math.sqrt(5), generator=generator)
    if bias:
        nn.init.uniform_(layer.bias, -(n_in**-0.5), n_in**-0.5, generator=generator)
    return layer


def _affine(layer: nn.Linear, h: Tensor) -> Tensor:
    return torch.addmm(layer.bias[:, None], layer.weight, h)
