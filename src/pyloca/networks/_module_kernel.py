"""The kernel of any `torch.nn.Module`: push-forward by reverse mode, neuron blocks found by hooks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from pyloca.networks import _kernel
from pyloca.networks._kernel import MLPKernel, Preconditioner, PushforwardKernel, inverse
from pyloca.networks._layers import Call, Layer, Trace, find_layers
from pyloca.networks._mlp import MLP
from pyloca.networks._pushforward import pushforward

__all__ = ["ModuleKernel", "make_kernel", "weights_without_blocks"]

# Random signs per diagonal. Its entries are then off by a third, which L-BFGS compensates.
DRAWS = 16


def make_kernel(module: nn.Module) -> PushforwardKernel:
    """Choose the hand-written kernel for our own MLP, automatic differentiation for any other module.

    Parameters
    ----------
    module : torch.nn.Module
        Maps (n, D) to (n, d).

    Returns
    -------
    PushforwardKernel

    Examples
    --------
    >>> import torch
    >>> from pyloca.networks import MLP
    >>> type(make_kernel(MLP(3, (5,), 2))).__name__, type(make_kernel(torch.nn.Linear(3, 2))).__name__
    ('MLPKernel', 'ModuleKernel')
    """
    return MLPKernel(module) if isinstance(module, MLP) and _by_hand(module) else ModuleKernel(module)


def _by_hand(module: nn.Module) -> bool:
    return type(module) is MLP and module.tail is None


def weights_without_blocks(module: nn.Module, points: Tensor) -> str:
    """Describe the weight matrices that do not belong to linear or convolutional layers, for a warning.

    Blocks that are too large are not meant: for these the built-in network has a diagonal as well.

    Parameters
    ----------
    module : torch.nn.Module
    points : Tensor (n, D)
        Any points; they show which layers are called.

    Returns
    -------
    str
        Their kinds and their share of all weights; "" when there are none.

    Examples
    --------
    >>> import torch
    >>> weights_without_blocks(torch.nn.Linear(3, 2), torch.zeros(4, 3))
    ''
    """
    if _by_hand(module):
        return ""
    covered = {id(call.layer.weight) for call in Trace(module, find_layers(module), points[None]).calls}
    trained = [p for p in module.parameters() if p.requires_grad]
    kinds: Counter[str] = Counter()
    size = 0
    for part in module.modules():
        missing = [
            p for p in part.parameters(recurse=False) if p.requires_grad and p.dim() > 1 and id(p) not in covered
        ]
        if missing:
            kinds[type(part).__name__] += 1
            size += sum(p.numel() for p in missing)
            covered |= {id(p) for p in missing}
    if not kinds:
        return ""
    names = ", ".join(f"{count} × {name}" for name, count in kinds.items())
    return f"{names} ({size / sum(p.numel() for p in trained):.0%} of the weights)"


class ModuleKernel:
    """The kernel of any `torch.nn.Module` that maps (n, D) to (n, d), by automatic differentiation.

    θ has the trained parameters in the order of `module.parameters()`, and these become views of it.

    Parameters
    ----------
    module : torch.nn.Module

    Raises
    ------
    ValueError
        If the module has no parameters to train.

    Examples
    --------
    See `make_kernel`.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self._parameters = [p for p in module.parameters() if p.requires_grad]
        if not self._parameters:
            raise ValueError("the module has no parameters to train.")
        self.theta = parameters_to_vector(self._parameters).detach().clone()
        self.penalty: Tensor | None = None
        vector_to_parameters(self.theta, self._parameters)  # from now on the parameters are views of θ
        places = torch.arange(len(self.theta), device=self.theta.device)
        parts = places.split([p.numel() for p in self._parameters])
        self._position: dict[Tensor, Tensor] = {
            p: part.view(p.shape) for p, part in zip(self._parameters, parts, strict=True)
        }
        self._layers = find_layers(module)

    def load(self, theta: Tensor) -> None:
        """Set the flat parameters.

        Parameters
        ----------
        theta : Tensor (p,)
        """
        self.theta.copy_(theta)

    def forward(self, stack: Tensor) -> Tensor:
        """Push points and tangents through the module.

        Parameters
        ----------
        stack : Tensor (1 + k, n, D)

        Returns
        -------
        Tensor (1 + k, n, d)
        """
        if len(stack) == 1:
            self._output = self.module(stack[0])[None]
        else:
            value, pushed = pushforward(self.module, stack[0], stack[1:].transpose(0, 1))
            self._output = torch.cat([value[None], pushed.transpose(0, 1)])
        return self._output.detach()

    def backward(self, cotangent: Tensor, grad: Tensor) -> None:
        """Add the gradient of Σ cotangent · output of the last `forward`.

        Parameters
        ----------
        cotangent : Tensor (1 + k, n, d)
        grad : Tensor (p,)
            What the gradient is added to.
        """
        parts = torch.autograd.grad(self._output, self._parameters, cotangent, allow_unused=True)
        flat = [torch.zeros_like(p) if g is None else g for g, p in zip(parts, self._parameters, strict=True)]
        grad += parameters_to_vector(flat)

    def preconditioner(self, stack: Tensor, rows: Callable[[Tensor], Tensor], ridge: float) -> Preconditioner:
        """Invert Gauss–Newton blocks of the neurons in linear layers and convolutions, and a diagonal for the rest.

        Layers whose outputs are added count as one layer, as the skip does in `MLPKernel.preconditioner`.

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
        n = stack.shape[1]
        trace = Trace(self.module, self._layers, stack)
        cotangents = rows(trace.output.detach())  # (R, 1 + k, n, d)
        blocks = []
        for group in _added(_neurons(trace, cotangents)):
            index = torch.cat([self._places(neurons.layer) for neurons in group], dim=1)
            blocks.append((index, inverse(_gram(group), n, ridge)))
        held = {int(i) for index, _ in blocks for i in index[0]}
        rest = [p for p in self._parameters if int(self._position[p].flatten()[0]) not in held]
        for p, squares in zip(rest, self._squares(rest, trace.output, cotangents), strict=True):
            blocks.append((self._position[p].reshape(1, -1), inverse(squares.reshape(1, -1), n, ridge)))

        def apply(gradient: Tensor) -> Tensor:
            out = torch.empty_like(gradient)
            for index, block in blocks:
                part = gradient[..., index]  # (…, neurons, m)
                out[..., index] = block * part if block.dim() == 2 else torch.einsum("...jm,jmi->...ji", part, block)
            return out

        return apply

    def _places(self, layer: Layer) -> Tensor:
        """Positions in θ of the weights that enter each neuron, (neurons, m)."""
        weight = self._position[layer.weight].flatten(1)
        return weight if layer.bias is None else torch.cat([weight, self._position[layer.bias][:, None]], dim=1)

    def _squares(self, parameters: list[nn.Parameter], output: Tensor, cotangents: Tensor) -> list[Tensor]:
        """Estimate Σ (∂ residual/∂θ)² over residuals and bursts by the mean square of their sum under random signs."""
        totals = [torch.zeros_like(p) for p in parameters]
        generator = torch.Generator().manual_seed(0)  # the same signs each time: nothing to remember in a checkpoint
        for _ in range(DRAWS if parameters else 0):
            signs = torch.randint(0, 2, cotangents.shape[::2][:2], generator=generator)  # (R, n)
            mixed = torch.einsum("rn,rsnd->snd", (2 * signs - 1).to(cotangents), cotangents)
            parts = torch.autograd.grad(output, parameters, mixed, retain_graph=True, allow_unused=True)
            for total, part in zip(totals, parts, strict=True):
                if part is not None:
                    total += part.square() / DRAWS
        return totals


class Neurons:
    """The neurons that one weight matrix feeds, with all calls of it, and the cotangents (R, 1 + k, n, …) of each."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.calls: list[Call] = []
        self.back: list[Tensor] = []
        self.width = layer.weight[0].numel() + (layer.bias is not None)  # weights that enter a neuron

    def inputs(self, part: slice) -> Tensor:
        """(1 + k, n, T, m) of some bursts. The bias has a 1 for points and a 0 for tangents."""
        found = []
        for call in self.calls:
            x = call.inputs[:, part].float()
            x = call.layer.inputs(x.flatten(0, 1)).unflatten(0, x.shape[:2])
            if self.layer.bias is not None:
                one = torch.zeros_like(x[..., :1])
                one[0] = call.layer.bias is self.layer.bias  # another layer may share the weight, but not the bias
                x = torch.cat([x, one], dim=-1)
            found.append(x)
        return torch.cat(found, dim=2)

    def cotangents(self, part: slice) -> Tensor:
        """(R, 1 + k, n, T, neurons) of some bursts."""
        found = [back[:, :, part].float() for back in self.back]
        return torch.cat([self.layer.outputs(y.flatten(0, 2)).unflatten(0, y.shape[:3]) for y in found], dim=3)


def _neurons(trace: Trace, cotangents: Tensor) -> list[Neurons]:
    """Collect inputs and cotangents of each weight matrix, with one backward pass per residual."""
    if not trace.calls:
        return []
    found: dict[Tensor, Neurons] = {}
    leaves = [call.eps for call in trace.calls]
    rows = [
        torch.autograd.grad(trace.output, leaves, row, retain_graph=True, materialize_grads=True) for row in cotangents
    ]
    for call, *back in zip(trace.calls, *rows, strict=True):
        neurons = found.setdefault(call.layer.weight, Neurons(call.layer))
        neurons.calls.append(call)
        neurons.back.append(torch.stack(back))
    return list(found.values())


def _added(found: list[Neurons]) -> list[list[Neurons]]:
    """Group layers whose outputs are added: they receive the same cotangents."""
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
    """Compute JᵀJ of each neuron, (neurons, m, m), or its diagonal (neurons, m) when m is large, in float32."""
    m, first = sum(neurons.width for neurons in group), group[0]
    count, n, residuals = len(first.layer.weight), first.back[0].shape[2], len(first.back[0])
    small = m <= _kernel.MAX_BLOCK
    gram = first.back[0].new_zeros((count, m, m) if small else (count, m), dtype=torch.float32)
    places = sum(back.numel() for back in first.back) // (residuals * n * count)  # (1 + k) T
    size = max(1, _kernel.BLOCK_WORK // (m * max(places, residuals * count)))
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
