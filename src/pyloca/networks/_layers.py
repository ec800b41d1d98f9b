"""The linear and convolutional layers of any module: their inputs, and the cotangents of their outputs.

A hook on each layer records its input and adds a zero ε to its output. Reverse mode with respect to ε then gives the
cotangent of that output, whatever the module does with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from pyloca.networks._pushforward import Pushforward, exact_norms

__all__ = ["Call", "Layer", "Trace", "find_layers"]


@dataclass(frozen=True)
class Layer:
    """An `nn.Linear` or a convolution: a row of its weight and an entry of its bias are all that enters one neuron."""

    module: nn.Linear | nn.Conv1d | nn.Conv2d
    weight: Tensor
    bias: Tensor | None  # None also when it is not trained

    @property
    def axes(self) -> int:
        """Axes of an input: bursts, channels, places. 0 for a linear layer, which takes any number from 2 on."""
        return 0 if isinstance(self.module, nn.Linear) else 2 + len(self.module.kernel_size)

    def inputs(self, x: Tensor) -> Tensor:
        """Reshape (n, …) → (n, T, m): the factors of a row of the weight at T places; for a convolution, patches."""
        layer = self.module
        if isinstance(layer, nn.Linear):
            return x.reshape(len(x), -1, x.shape[-1])
        image = x if x.dim() == 4 else x[:, :, None]  # (n, C, H, W)
        kernel, stride, dilation = (
            size if len(size) == 2 else (1, *size) for size in (layer.kernel_size, layer.stride, layer.dilation)
        )
        image = functional.pad(image, _padding(layer))
        return functional.unfold(image, kernel, dilation, 0, stride).transpose(1, 2)

    def outputs(self, y: Tensor) -> Tensor:
        """Reshape the layer's output (n, …) → (n, T, neurons)."""
        return (
            y.reshape(len(y), -1, y.shape[-1]) if isinstance(self.module, nn.Linear) else y.flatten(2).transpose(1, 2)
        )


def _padding(layer: nn.Conv1d | nn.Conv2d) -> list[int]:
    """Return the zeros before and after each axis, last axis first, as `torch.nn.functional.pad` expects."""
    if not isinstance(layer.padding, str):
        return [size for axis in reversed(layer.padding) for size in (axis, axis)]
    if layer.padding == "valid":
        return [0, 0]
    sizes = [d * (k - 1) for k, d in zip(layer.kernel_size, layer.dilation, strict=True)]
    return [part for size in reversed(sizes) for part in (size // 2, size - size // 2)]


def find_layers(module: nn.Module) -> dict[nn.Module, Layer]:
    """Find the layers in `module` that have neurons and train their weights."""
    trained = {id(p) for p in module.parameters() if p.requires_grad}
    found: dict[nn.Module, Layer] = {}
    for part in module.modules():
        if not isinstance(part, (nn.Linear, nn.Conv1d, nn.Conv2d)):
            continue
        if not isinstance(part, nn.Linear) and (part.groups > 1 or part.padding_mode != "zeros"):
            continue
        # a weight that a parametrization computes is not a parameter, so a row of it is not a block of θ
        if id(part.weight) in trained:
            bias = part.bias if part.bias is not None and id(part.bias) in trained else None
            found[part] = Layer(part, part.weight, bias)
    return found


class Trace:
    """`module` on a stack (1 + k, n, D): its output (1 + k, n, d), and the calls of its layers.

    Differentiable in the parameters and in every ε.
    """

    def __init__(self, module: nn.Module, layers: Mapping[nn.Module, Layer], stack: Tensor) -> None:
        self.calls: list[Call] = []
        self._layers, self._shape, self._points = layers, stack.shape[:2], stack[0]
        with torch.enable_grad():
            with self._hooks(self._allocate):
                module(stack[0])
            # without tangents there is still one slab of ε, that of the points
            tangents = stack[1:] if len(stack) > 1 else torch.zeros_like(stack)
            found = [self._push(module, axis, tangent) for axis, tangent in enumerate(tangents, start=1)]
        slabs = [found[0][0], *(pushed for _, pushed in found)][: len(stack)]  # output and inputs of the layers, each
        self.output = torch.stack([slab[0] for slab in slabs])
        for i, call in enumerate(self.calls, start=1):
            call.inputs = torch.stack([slab[i] for slab in slabs]).detach()

    def _push(self, module: nn.Module, axis: int, tangent: Tensor) -> tuple[list[Tensor], tuple[Tensor, ...]]:
        """Return the output and the inputs of the layers, and all of them pushed along a tangent.

        `zero` has the tangent 1: it carries the tangent of ε.
        """
        points, zero = self._points.detach().clone().requires_grad_(), tangent.new_zeros((), requires_grad=True)
        recorded: list[Tensor] = []

        def record(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> Tensor:
            if not self._fits(module, args, kwargs):
                return output
            eps = self.calls[len(recorded)].eps
            recorded.append(_input(args, kwargs))
            return output + eps[0] + zero * eps[min(axis, len(eps) - 1)]

        with exact_norms(module), self._hooks(record):
            values = [module(points), *recorded]
        return values, Pushforward(values, [points, zero])([tangent, torch.ones_like(zero)])

    def _allocate(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> None:
        """Create the ε of this call, which all slabs share."""
        if self._fits(module, args, kwargs):
            eps = torch.zeros(self._shape[0], *output.shape, dtype=output.dtype, device=output.device)
            self.calls.append(Call(self._layers[module], eps.requires_grad_()))

    def _fits(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a layer is called with one input per burst. If not, its weights only get a diagonal."""
        x, axes = _input(args, kwargs), self._layers[module].axes
        return x.dim() > 1 and len(x) == self._shape[1] and axes in (0, x.dim())

    @contextmanager
    def _hooks(self, hook: Callable[..., Any]) -> Iterator[None]:
        handles = [layer.register_forward_hook(hook, with_kwargs=True) for layer in self._layers]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


@dataclass
class Call:
    """One call of a layer: the zeros ε that were added to its output, and its inputs; both (1 + k, n, …)."""

    layer: Layer
    eps: Tensor
    inputs: Tensor = field(default_factory=lambda: torch.empty(0))


def _input(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    found = args[0] if args else kwargs["input"]
    assert isinstance(found, Tensor)
    return found
