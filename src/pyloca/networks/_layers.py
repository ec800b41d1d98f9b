"""The layers of any module whose weights enter neurons: what goes into them, and the cotangents that come back.

A hook on each layer records its input and adds a zero ε to its output. Reverse mode with respect to ε then gives the
cotangent of that output, whatever the module does with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn import functional

__all__ = ["Call", "Layer", "Pass", "find_layers", "weights_without_blocks"]


@dataclass(frozen=True)
class Layer:
    """An `nn.Linear` or a convolution: a row of its weight, and its bias, are all that enters one neuron."""

    module: nn.Linear | nn.Conv1d | nn.Conv2d
    weight: Tensor
    bias: Tensor | None  # None also when it is not trained

    @property
    def axes(self) -> int:
        """Axes of an input: bursts, channels and places. Those of a linear layer may be any from 2 on."""
        return {nn.Conv1d: 3, nn.Conv2d: 4}.get(type(self.module), 0)

    def inputs(self, x: Tensor) -> Tensor:
        """(n, …) → (n, T, m): what is multiplied with a row of the weight, at T places; for a convolution, its patches."""
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
        """(n, …), shaped as the layer's output → (n, T, neurons)."""
        return y.reshape(len(y), -1, y.shape[-1]) if isinstance(self.module, nn.Linear) else y.flatten(2).transpose(1, 2)


def _padding(layer: nn.Conv1d | nn.Conv2d) -> list[int]:
    """Zeros before and after, last axis first, as `torch.nn.functional.pad` has it."""
    if not isinstance(layer.padding, str):
        return [size for axis in reversed(layer.padding) for size in (axis, axis)]
    if layer.padding == "valid":
        return [0, 0]
    sizes = [d * (k - 1) for k, d in zip(layer.kernel_size, layer.dilation, strict=True)]
    return [part for size in reversed(sizes) for part in (size // 2, size - size // 2)]


def find_layers(module: nn.Module) -> dict[nn.Module, Layer]:
    """The layers in `module` that have neurons and train their weights."""
    trained = {id(p) for p in module.parameters() if p.requires_grad}
    found: dict[nn.Module, Layer] = {}
    for part in module.modules():
        plain = isinstance(part, nn.Linear) or (
            type(part) in (nn.Conv1d, nn.Conv2d) and part.groups == 1 and part.padding_mode == "zeros"
        )
        # a weight that a parametrization computes is no parameter, so a row of it is not a block of θ
        if plain and id(part.weight) in trained:
            bias = part.bias if part.bias is not None and id(part.bias) in trained else None
            found[part] = Layer(part, part.weight, bias)  # type: ignore[arg-type]
    return found


@dataclass(frozen=True)
class Call:
    """One call of a layer within a pass: its input with the tangent, and the zeros that were added to its output."""

    layer: Layer
    value: Tensor
    tangent: Tensor
    eps: Tensor
    eps_tangent: Tensor


class Pass:
    """One run of `module` on points (n, D) with one tangent each: its output, and the calls of its layers."""

    def __init__(self, module: nn.Module, layers: Mapping[nn.Module, Layer], points: Tensor, tangent: Tensor) -> None:
        self.calls: list[Call] = []
        self._layers, self._n = layers, len(points)
        hooks = [layer.register_forward_hook(self._record, with_kwargs=True) for layer in layers]
        try:
            with torch.enable_grad(), forward_ad.dual_level():
                output = module(forward_ad.make_dual(points, tangent))
                self.value, self.pushed = _unpack(output)
        finally:
            for hook in hooks:
                hook.remove()

    def _record(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> Tensor:
        layer, x = self._layers[module], args[0] if args else kwargs["input"]
        if x.dim() < 2 or len(x) != self._n or (layer.axes and x.dim() != layer.axes):
            return output  # not one input per burst: these weights are left to their diagonal
        value, tangent = _unpack(x)
        eps, eps_tangent = (output.new_zeros(output.shape).requires_grad_() for _ in range(2))
        self.calls.append(Call(layer, value.detach(), tangent.detach(), eps, eps_tangent))
        return output + forward_ad.make_dual(eps, eps_tangent)


def _unpack(dual: Tensor) -> tuple[Tensor, Tensor]:
    value, tangent = forward_ad.unpack_dual(dual)
    return value, torch.zeros_like(value) if tangent is None else tangent


def weights_without_blocks(module: nn.Module, points: Tensor) -> str:
    """The weight matrices that have no neurons to speak of, and their part of all weights; "" when there are none."""
    calls = Pass(module, find_layers(module), points, torch.zeros_like(points)).calls
    covered = {id(call.layer.weight) for call in calls}
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
