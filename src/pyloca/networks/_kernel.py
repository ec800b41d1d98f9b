"""The inner loop of the fast solver: value, pushed tangents and their gradient, on one flat parameter vector.

Points and tangents travel together as a *stack* (1 + k, n, ·): slab 0 holds the points, slab l the l-th tangents. A
linear layer treats all slabs alike in one matrix product; an activation multiplies the tangents by its slope.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn

from pyloca.networks._mlp import ACTIVATIONS, MLP

__all__ = ["MLPKernel", "PushforwardKernel", "draw", "initialize", "inverse", "inverse_blocks"]

# Blocks of the preconditioner larger than this are replaced by their diagonals: D in the thousands stays cheap.
MAX_BLOCK = 320
# Numbers held at a time while blocks are formed (64 MB).
BLOCK_WORK = 1 << 23
# Hidden layers that add less than this part of the linear skip are dead: weight decay has shrunk them to nothing.
DEAD = 1e-3

Preconditioner = Callable[[Tensor], Tensor]


class PushforwardKernel(Protocol):
    """What a solver needs of a network: θ in, (values, pushed tangents) out, cotangents in, ∂/∂θ out.

    Attributes
    ----------
    theta : Tensor (p,)
        All trained parameters, flat.
    penalty : Tensor (p,) or None
        Factor on the weight decay of each parameter; None: 1.

    Examples
    --------
    See `make_kernel`.
    """

    theta: Tensor
    penalty: Tensor | None

    def load(self, theta: Tensor) -> None:
        """Set the parameters of the network.

        Parameters
        ----------
        theta : Tensor (p,)
        """

    def forward(self, stack: Tensor) -> Tensor:
        """Push points and tangents through the network.

        Parameters
        ----------
        stack : Tensor (1 + k, n, D)

        Returns
        -------
        Tensor (1 + k, n, d)
            It may be overwritten by the next call.
        """

    def backward(self, cotangent: Tensor, grad: Tensor) -> None:
        """Add the gradient of Σ cotangent · output of the last `forward`.

        Parameters
        ----------
        cotangent : Tensor (1 + k, n, d)
        grad : Tensor (p,)
            What the gradient is added to.
        """

    def preconditioner(self, stack: Tensor, rows: Callable[[Tensor], Tensor], ridge: float) -> Preconditioner | None:
        """Approximate the inverse of a Gauss–Newton matrix.

        Parameters
        ----------
        stack : Tensor (1 + k, n, D)
        rows : callable
            Takes the output (1 + k, n, d) to the cotangents (R, 1 + k, n, d) of R residuals per burst.
        ridge : float
            Added to the diagonal.

        Returns
        -------
        callable or None
            g ↦ M g, both of shape (p,), or rows of them (m, p).
        """


class MLPKernel:
    """Hand-propagated forward and reverse passes of an `MLP`, with buffers that are allocated once.

    Each layer's weights and bias, and in the last layer those of the skip, lie together in θ as one matrix (n_out,
    n_in + 1 + …), so that a row is all that enters a neuron. What a layer multiplies is laid out alike: the layer
    below, ones for points and zeros for tangents, and for the skip the stack itself. So a layer is one matrix product,
    and its gradient another.
    Inside, points are columns: such matrix products are a third faster than with points as rows.

    Parameters
    ----------
    module : MLP
        Its weights are the start; `load` writes to it.

    Attributes
    ----------
    penalty : Tensor (p,) or None
        Factor on the weight decay of each parameter; None: 1.

    Examples
    --------
    >>> from pyloca.networks import MLP
    >>> network = MLP(3, (5,), 2)
    >>> kernel = MLPKernel(network)
    >>> len(kernel.theta) == sum(weight.numel() for weight in network.parameters())
    True
    """

    def __init__(self, module: MLP) -> None:
        self.module = module
        self._phi = ACTIVATIONS[module.activation]
        layers = module.linear_layers()
        self._sizes = [(layer.in_features, layer.out_features) for layer in layers]
        parts = [torch.cat([layer.weight, layer.bias[:, None]], dim=1) for layer in layers]
        if module.skip is not None:
            parts[-1] = torch.cat([parts[-1], module.skip.weight], dim=1)
        self._shapes = [part.shape for part in parts]
        self._lengths = [part.numel() for part in parts]
        self.theta = torch.cat([part.reshape(-1) for part in parts]).detach().clone()
        self._layers = self._views(self.theta)
        self._gradient = torch.zeros_like(self.theta)
        self._gradients = self._views(self._gradient)
        self._weights = [rows[:, :n_in] for rows, (n_in, _) in zip(self._layers, self._sizes, strict=True)]
        self._biases = [rows[:, n_in] for rows, (n_in, _) in zip(self._layers, self._sizes, strict=True)]
        self._skip = None if module.skip is None else self._layers[-1][:, self._sizes[-1][0] + 1 :]
        self._shape: tuple[int, int] | None = None
        self._one = torch.ones_like(self.theta[0])
        self.penalty: Tensor | None = None

    def spare_skip(self) -> None:
        """Leave the weights of the skip out of the weight decay."""
        if self._skip is not None:
            self.penalty = torch.ones_like(self.theta)
            self._views(self.penalty)[-1][:, self._sizes[-1][0] + 1 :] = 0

    def single(self) -> MLPKernel:
        """Return a twin in single precision, which is quicker; its module is its own.

        Returns
        -------
        MLPKernel
        """
        twin = MLPKernel(copy.deepcopy(self.module).float())
        twin.penalty = self.penalty
        return twin

    def is_dead(self, theta: Tensor) -> bool:
        """Tell whether weight decay has shrunk the hidden layers to nothing, beside the linear skip.

        Their gradient is then zero too: a saddle that no descent leaves.

        Parameters
        ----------
        theta : Tensor (p,)

        Returns
        -------
        bool
        """
        views = list(zip(self._views(theta), self._sizes, strict=True))
        if self._skip is None or len(views) == 1:
            return False
        skip = views[-1][0][:, self._sizes[-1][0] + 1 :]
        reach = math.prod(float(rows[:, :n_in].norm()) for rows, (n_in, _) in views)
        return reach <= DEAD * float(skip.norm())

    def woken(self, theta: Tensor, generator: torch.Generator) -> Tensor:
        """Draw the hidden layers anew, as at the start of training; the linear skip stays.

        They have an output, though a small one: without, the preconditioner would see nothing but the decay, and kill
        them again.

        Parameters
        ----------
        theta : Tensor (p,)
        generator : torch.Generator

        Returns
        -------
        Tensor (p,)
        """
        theta = theta.clone()
        for i, (rows, (n_in, n_out)) in enumerate(zip(self._views(theta), self._sizes, strict=True)):
            fresh = nn.Linear(n_in, n_out, dtype=theta.dtype, device=theta.device)
            with torch.no_grad():
                draw(fresh, generator, last=i == len(self._sizes) - 1)
            rows[:, :n_in], rows[:, n_in] = fresh.weight.detach(), fresh.bias.detach()
        return theta

    def _views(self, flat: Tensor) -> list[Tensor]:
        """View a vector like θ as one matrix per layer, whose rows hold all that enters a neuron."""
        return [part.view(shape) for part, shape in zip(flat.split(self._lengths), self._shapes, strict=True)]

    def load(self, theta: Tensor) -> None:
        """Set the flat parameters, in the module as well.

        Parameters
        ----------
        theta : Tensor (p,)
        """
        self.theta.copy_(theta)
        with torch.no_grad():
            for layer, weights, biases in zip(self.module.linear_layers(), self._weights, self._biases, strict=True):
                layer.weight.copy_(weights)
                layer.bias.copy_(biases)
            if self.module.skip is not None and self._skip is not None:
                self.module.skip.weight.copy_(self._skip)

    def _allocate(self, slabs: int, n: int) -> None:
        """Allocate buffers for this shape. New ones in each call would cost more in page faults than arithmetic."""
        if self._shape == (slabs, n):
            return
        self._shape = (slabs, n)
        widths = [n_out for _, n_out in self._sizes]
        like = self.theta
        self._inputs = [like.new_zeros(shape[1], slabs, n) for shape in self._shapes]  # what each layer multiplies
        for inputs, (n_in, _) in zip(self._inputs, self._sizes, strict=True):
            inputs[n_in, 0] = 1  # the bias moves points, not tangents
        above = [inputs[:width] for inputs, width in zip(self._inputs[1:], widths, strict=False)]
        self._values = [*above, like.new_empty(widths[-1], slabs, n)]
        self._back = [like.new_empty(width, slabs, n) for width in widths[:-1]]
        self._slopes = [like.new_empty(width, n) for width in widths[:-1]]

    def forward(self, stack: Tensor) -> Tensor:
        """Push points and tangents through the network.

        Parameters
        ----------
        stack : Tensor (1 + k, n, D)

        Returns
        -------
        Tensor (1 + k, n, d)
            Overwritten by the next call.
        """
        slabs, n, n_in = stack.shape
        self._allocate(slabs, n)
        columns = stack.permute(2, 0, 1)  # (D, 1 + k, n)
        self._inputs[0][:n_in] = columns
        if self._skip is not None:
            self._inputs[-1][-n_in:] = columns
        for i, (rows, inputs, out) in enumerate(zip(self._layers, self._inputs, self._values, strict=True)):
            torch.mm(rows, inputs.view(-1, slabs * n), out=out.view(-1, slabs * n))
            if i < len(self._slopes):
                self._activate(out, self._slopes[i])
        return self._values[-1].permute(1, 2, 0)

    def _activate(self, out: Tensor, slope: Tensor) -> None:
        value = out[:, 0]
        if self.module.activation == "tanh":  # in place: the default, so nearly every fit runs it
            # 1 − 2 / (1 + e²ᵘ): exact to rounding of 1, which is all that a sum of neurons needs, and quicker
            torch.mul(value, 2.0, out=slope).exp_().add_(1.0).reciprocal_()
            torch.add(self._one, slope, alpha=-2.0, out=value)
            torch.addcmul(self._one, value, value, value=-1.0, out=slope)
        else:
            value.copy_(self._phi.value(value))
            slope.copy_(self._phi.slope(value))
        out[:, 1:] *= slope[:, None]

    def backward(self, cotangent: Tensor, grad: Tensor) -> None:
        """Add the gradient of Σ cotangent · output of the last `forward`.

        Parameters
        ----------
        cotangent : Tensor (1 + k, n, d)
        grad : Tensor (p,)
            What the gradient is added to.
        """
        back = cotangent.permute(2, 0, 1).contiguous()  # (d, 1 + k, n)
        points = back.shape[1] * back.shape[2]
        for i in range(len(self._layers) - 1, -1, -1):
            if i < len(self._slopes):
                self._deactivate(back, i)
            flat = back.view(-1, points)
            torch.mm(flat, self._inputs[i].view(-1, points).T, out=self._gradients[i])
            if i > 0:
                below = self._back[i - 1]
                torch.mm(self._weights[i].T, flat, out=below.view(-1, points))
                back = below
        grad += self._gradient

    def _deactivate(self, back: Tensor, i: int) -> None:
        """Turn cotangents of a layer's output into those before the activation, in place; (…, h, 1 + k, n)."""
        h, slope = self._values[i], self._slopes[i]
        bend = self._phi.bend(h[:, 0])
        if bend is None or h.shape[1] == 1:
            back *= slope[:, None]
            return
        # d(φ′·t) = φ″·t·du and φ′·t is what the buffer holds, so φ″·t = (φ″/φ′)·h.
        turn = back[..., 1, :] * h[:, 1]
        for axis in range(2, h.shape[1]):
            turn.addcmul_(back[..., axis, :], h[:, axis])
        turn *= bend
        back *= slope[:, None]
        back[..., 0, :] += turn

    def preconditioner(self, stack: Tensor, rows: Callable[[Tensor], Tensor], ridge: float) -> Preconditioner:
        """Invert the Gauss–Newton blocks of the weights that enter each neuron.

        Weights that enter one neuron interact most; blocks of them cost next to nothing and remove most of the
        ill-conditioning (docs/algorithm.md says what was tried instead).

        Parameters
        ----------
        stack : Tensor (1 + k, n, D)
        rows : callable
            Takes the output (1 + k, n, d) to the cotangents (R, 1 + k, n, d) of R residuals per burst.
        ridge : float
            Added to the diagonal, besides 10⁻³ of the layer's mean.

        Returns
        -------
        callable
            g ↦ M g, both of shape (p,), or rows of them (m, p).
        """
        back = rows(self.forward(stack).double()).to(self.theta).permute(0, 3, 1, 2).contiguous()  # (R, d, 1 + k, n)
        inverse: list[Tensor] = [torch.empty(0)] * len(self._layers)
        for i in range(len(self._layers) - 1, -1, -1):
            if i < len(self._slopes):
                self._deactivate(back, i)
            inverse[i] = inverse_blocks(self._inputs[i], back, ridge)
            if i > 0:
                back = torch.einsum("oi,rosn->risn", self._weights[i], back).contiguous()

        def apply(gradient: Tensor) -> Tensor:
            out = torch.empty_like(gradient)
            parts = zip(gradient.split(self._lengths, -1), out.split(self._lengths, -1), strict=True)
            for block, shape, (part, solved) in zip(inverse, self._shapes, parts, strict=True):
                rows, of_rows = part.view(-1, *shape), solved.view(-1, *shape)  # (vectors, neurons, m)
                if block.dim() == 2:
                    torch.mul(block, rows, out=of_rows)
                else:  # from the left, blocks being symmetric: much quicker in PyTorch
                    torch.bmm(rows.transpose(0, 1), block, out=of_rows.transpose(0, 1))
            return out

        return apply


def inverse_blocks(inputs: Tensor, back: Tensor, ridge: float) -> Tensor:
    """Compute (Jᵀ J + damping)⁻¹ for each neuron, (neurons, m, m), or its diagonal (neurons, m) when m is large.

    A residual r of burst n depends on the weight from input i to neuron j by Σ_s back[r, j, s, n] inputs[i, s, n], so
    JᵀJ needs of the residuals only Σ_r back[r, j, s, n] back[r, j, t, n]. Single precision is enough for it.
    """
    m, slabs, n = inputs.shape
    neurons = back.shape[1]
    small = m <= MAX_BLOCK
    inputs, back = inputs.float(), back.float()
    pairs = back[0, :, :, None] * back[0, :, None]
    for of_residual in back[1:]:  # quicker than einsum, which makes matrix products of it
        pairs.addcmul_(of_residual[:, :, None], of_residual[:, None])
    gram = inputs.new_zeros((neurons, m, m) if small else (neurons, m))
    size = max(1, BLOCK_WORK // (slabs * n * m))
    flat = inputs.reshape(m, slabs * n)
    for start in range(0, neurons, size):
        part = pairs[start : start + size]
        weighted = part[:, None, :, 0] * inputs[None, :, None, 0]
        for s in range(1, slabs):
            weighted.addcmul_(part[:, None, :, s], inputs[None, :, None, s])
        if small:
            torch.matmul(weighted.reshape(len(part), m, slabs * n), flat.T, out=gram[start : start + size])
        else:
            gram[start : start + size] = (weighted * inputs).sum(dim=(2, 3))
    return inverse(gram, n, ridge)


def inverse(gram: Tensor, n: int, ridge: float) -> Tensor:
    """Compute (2/n gram + damping)⁻¹ of blocks (neurons, m, m), or of diagonals (neurons, m)."""
    gram = gram.to(torch.float64)
    gram *= 2 / n
    small = gram.dim() == 3
    diagonal = gram.diagonal(dim1=1, dim2=2) if small else gram
    diagonal += 1e-3 * diagonal.mean() + ridge + 1e-300
    return torch.linalg.inv(gram) if small else 1 / gram


def initialize(module: MLP, generator: torch.Generator) -> None:
    """Draw weights for inputs and outputs of unit size: kinks spread over the data, a small output, a zero skip.

    Parameters
    ----------
    module : MLP
        Changed in place.
    generator : torch.Generator

    Examples
    --------
    >>> import torch
    >>> from pyloca.networks import MLP
    >>> network = MLP(3, (5,), 2)
    >>> initialize(network, torch.Generator().manual_seed(0))
    """
    with torch.no_grad():
        for i, layer in enumerate(module.linear_layers()):
            draw(layer, generator, last=i == len(module.layers) - 1)
        if module.skip is not None:
            module.skip.weight.zero_()


def draw(layer: nn.Linear, generator: torch.Generator, *, last: bool) -> None:
    """Draw initial weights of one layer; the `last` one has a small output."""
    gain = 0.1 if last else 1.0
    shape = layer.weight.shape
    layer.weight.copy_(torch.randn(shape, generator=generator) * gain / math.sqrt(layer.in_features))
    if layer.bias is not None:
        layer.bias.copy_(torch.zeros(shape[0]) if last else torch.randn(shape[0], generator=generator))
