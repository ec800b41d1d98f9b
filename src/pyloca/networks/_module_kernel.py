"""The kernel of any `torch.nn.Module`: push-forward by `torch.func`, neuron blocks found by hooks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from pyloca.networks import _kernel
from pyloca.networks._kernel import MLPKernel, Preconditioner, PushforwardKernel, inverse
from pyloca.networks._layers import Layer, Pass, find_layers
from pyloca.networks._mlp import MLP
from pyloca.networks._pushforward import pushforward

__all__ = ["ModuleKernel", "make_kernel"]

# Random signs per diagonal. Its entries are then off by a third, which L-BFGS makes up for.
DRAWS = 16


def make_kernel(module: nn.Module) -> PushforwardKernel:
    """The hand-written kernel for our own MLP, `torch.func` for any other module."""
    return MLPKernel(module) if type(module) is MLP and module.tail is None else ModuleKernel(module)


class ModuleKernel:
    """The same for any `torch.nn.Module` that maps (n, D) to (n, d), by `torch.func`.

    θ has the trained parameters in the order of `module.parameters()`, and these become views of it.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._parameters = [p for p in module.parameters() if p.requires_grad]
        if not self._parameters:
            raise ValueError("the module has no parameters to train.")
        self.theta = parameters_to_vector(self._parameters).detach().clone()
        vector_to_parameters(self.theta, self._parameters)  # from now on the parameters are views of θ
        places = torch.arange(len(self.theta), device=self.theta.device)
        parts = places.split([p.numel() for p in self._parameters])
        self._position = {p: part.view(p.shape) for p, part in zip(self._parameters, parts, strict=True)}
        self._layers = find_layers(module)
        self._signs = torch.Generator().manual_seed(0)

    def load(self, theta: Tensor) -> None:
        """Take the flat parameters `theta`."""
        self.theta.copy_(theta)

    def forward(self, stack: Tensor) -> Tensor:
        """(1 + k, n, D) → (1 + k, n, d)."""
        if len(stack) == 1:
            self._output = self.module(stack[0])[None]
        else:
            value, pushed = pushforward(self.module, stack[0], stack[1:].transpose(0, 1))
            self._output = torch.cat([value[None], pushed.transpose(0, 1)])
        return self._output.detach()

    def backward(self, cotangent: Tensor, grad: Tensor) -> None:
        """Add to `grad` the gradient of Σ cotangent · output of the last `forward`."""
        parts = torch.autograd.grad(self._output, self._parameters, cotangent, allow_unused=True)
        flat = [torch.zeros_like(p) if g is None else g for g, p in zip(parts, self._parameters, strict=True)]
        grad += parameters_to_vector(flat)

    def preconditioner(self, stack: Tensor, rows: Callable[[Tensor], Tensor], ridge: float) -> Preconditioner:
        """Inverse Gauss–Newton blocks of the neurons in linear layers and convolutions, a diagonal for the rest.

        As `MLPKernel.preconditioner`. Layers whose outputs are added are one layer, as the skip is there.
        """
        n = stack.shape[1]
        tangents = stack[1:] if len(stack) > 1 else torch.zeros_like(stack)
        passes = [Pass(self.module, self._layers, stack[0], tangent) for tangent in tangents]
        output = torch.stack([passes[0].value, *(one.pushed for one in passes)][: len(stack)])
        cotangents = rows(output.detach())  # (R, 1 + k, n, d)
        solved = [
            (torch.cat([self._places(neurons) for neurons in group], dim=1), inverse(_gram(group), n, ridge))
            for group in _added(_neurons(passes, output, cotangents))
        ]
        held = torch.zeros(len(self.theta), dtype=torch.bool)
        for index, _ in solved:
            held[index] = True
        rest = [p for p in self._parameters if not held[self._position[p]].any()]
        for p, squares in zip(rest, self._squares(rest, output, cotangents), strict=True):
            solved.append((self._position[p].reshape(1, -1), inverse(squares.reshape(1, -1), n, ridge)))

        def apply(gradient: Tensor) -> Tensor:
            out = torch.empty_like(gradient)
            for index, block in solved:
                part = gradient[index]
                out[index] = block * part if block.dim() == 2 else torch.bmm(block, part[:, :, None])[:, :, 0]
            return out

        return apply

    def _places(self, neurons: Neurons) -> Tensor:
        """Where the weights that enter each neuron lie in θ, (neurons, m)."""
        layer = neurons.layer
        parts = [self._position[layer.weight].flatten(1)]
        if layer.bias is not None:
            parts.append(self._position[layer.bias][:, None])
        return torch.cat(parts, dim=1)

    def _squares(self, parameters: list[nn.Parameter], output: Tensor, cotangents: Tensor) -> list[Tensor]:
        """Σ (∂ residual/∂θ)² over residuals and bursts: the mean square of their sum under random signs."""
        totals = [torch.zeros_like(p) for p in parameters]
        for _ in range(DRAWS if parameters else 0):
            signs = torch.randint(0, 2, cotangents.shape[::2][:2], generator=self._signs)  # (R, n)
            mixed = torch.einsum("rn,rsnd->snd", (2 * signs - 1).to(cotangents), cotangents)
            parts = torch.autograd.grad(output, parameters, mixed, retain_graph=True, allow_unused=True)
            for total, part in zip(totals, parts, strict=True):
                if part is not None:
                    total += part.square() / DRAWS
        return totals


@dataclass(frozen=True)
class Neurons:
    """A layer with all that entered and came back in its calls: slabs (1 + k, n, …) and cotangents (R, 1 + k, n, …)."""

    layer: Layer
    slabs: list[Tensor]
    back: list[Tensor]

    @property
    def width(self) -> int:
        """Weights that enter a neuron."""
        return self.layer.weight[0].numel() + (self.layer.bias is not None)

    def inputs(self, part: slice) -> Tensor:
        """(1 + k, n, T, m) of some bursts; the bias has a 1 for points and a 0 for tangents."""
        found = []
        for slabs in self.slabs:
            x = slabs[:, part]
            x = self.layer.inputs(x.flatten(0, 1)).unflatten(0, x.shape[:2])
            if self.layer.bias is not None:
                one = torch.zeros_like(x[..., :1])
                one[0] = 1
                x = torch.cat([x, one], dim=-1)
            found.append(x)
        return torch.cat(found, dim=2)

    def cotangents(self, part: slice) -> Tensor:
        """(R, 1 + k, n, T, neurons) of some bursts."""
        found = [back[:, :, part] for back in self.back]
        return torch.cat([self.layer.outputs(y.flatten(0, 2)).unflatten(0, y.shape[:3]) for y in found], dim=3)


def _neurons(passes: list[Pass], output: Tensor, cotangents: Tensor) -> list[Neurons]:
    """Everything about each weight, from one backward pass per residual."""
    calls = [one.calls for one in passes]
    leaves = [leaf for call in chain(*calls) for leaf in (call.eps, call.eps_tangent)]
    rows = [torch.autograd.grad(output, leaves, row, retain_graph=True, materialize_grads=True) for row in cotangents]
    found: dict[nn.Parameter, Neurons] = {}
    count = len(calls[0])
    for c in range(count if rows else 0):
        layer = calls[0][c].layer
        slabs = torch.stack([calls[0][c].value, *(one[c].tangent for one in calls)][: output.shape[0]])
        back = []
        for row in rows:
            eps, eps_tangents = row[2 * c :: 2 * count], row[2 * c + 1 :: 2 * count]
            back.append(torch.stack([torch.stack(eps).sum(dim=0), *eps_tangents][: output.shape[0]]))
        neurons = found.setdefault(layer.weight, Neurons(layer, [], []))
        neurons.slabs.append(slabs.float())
        neurons.back.append(torch.stack(back).float())
    return list(found.values())


def _added(found: list[Neurons]) -> list[list[Neurons]]:
    """Layers put together whose outputs are added: to them the same cotangents come back."""
    groups: list[list[Neurons]] = []
    for neurons in found:
        for group in groups:
            width = neurons.width + sum(other.width for other in group)
            pairs = zip(group[0].back, neurons.back, strict=False)
            same = len(group[0].back) == len(neurons.back) and all(torch.equal(a, b) for a, b in pairs)
            if same and width <= _kernel.MAX_BLOCK:
                group.append(neurons)
                break
        else:
            groups.append([neurons])
    return groups


def _gram(group: list[Neurons]) -> Tensor:
    """JᵀJ for each neuron, (neurons, m, m), or its diagonal (neurons, m) when m is large; in single precision."""
    m = sum(neurons.width for neurons in group)
    first = group[0]
    count, n = first.layer.weight.shape[0], first.slabs[0].shape[1]
    small = m <= _kernel.MAX_BLOCK
    gram = first.slabs[0].new_zeros((count, m, m) if small else (count, m))
    places = sum(slabs.shape[0] * first.layer.outputs(back[0, :1, :1].flatten(0, 1))[0, :, 0].numel() for slabs, back in zip(first.slabs, first.back, strict=True))
    size = max(1, _kernel.BLOCK_WORK // (m * max(places, len(first.back[0]) * count)))
    for start in range(0, n, size):
        part = slice(start, start + size)
        inputs = torch.cat([neurons.inputs(part) for neurons in group], dim=-1)
        # one residual of one burst depends on the weight from input m to neuron j by the sum over slabs and places
        jacobian = torch.einsum("rsntj,sntm->jmrn", first.cotangents(part), inputs).flatten(2)
        if small:
            gram.baddbmm_(jacobian, jacobian.transpose(1, 2))
        else:
            gram += jacobian.square().sum(dim=2)
    return gram
