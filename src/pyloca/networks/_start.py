"""Initial weights of a user's own module."""

from __future__ import annotations

import math

import torch
from scipy.stats import kstest
from torch import Tensor, nn

from pyloca.networks._kernel import draw
from pyloca.networks._layers import Trace, find_layers

__all__ = ["is_untouched", "start_like_ours"]

FEWEST = 100  # with fewer weights the test says nothing
CHANCE = 1e-6  # how often weights freshly drawn by PyTorch are taken for ones that somebody set


def start_like_ours(module: nn.Module, points: Tensor, generator: torch.Generator) -> bool:
    """Draw the linear layers of an untouched module as `initialize` does.

    PyTorch's own draw leaves all but the first layer almost linear over the data, and training does not make up for
    that (docs/algorithm.md, "Your own network"). Weights that somebody has set are kept.

    Parameters
    ----------
    module : torch.nn.Module
        Changed in place.
    points : Tensor (n, D)
        Any points; they show in which order the layers are called.
    generator : torch.Generator

    Returns
    -------
    bool
        Whether any weights were drawn.

    Examples
    --------
    >>> import torch
    >>> network = torch.nn.Sequential(torch.nn.Linear(3, 50), torch.nn.Tanh(), torch.nn.Linear(50, 2))
    >>> start_like_ours(network, torch.randn(20, 3), torch.Generator().manual_seed(0))
    True
    """
    if not is_untouched(module):
        return False
    calls = Trace(module, find_layers(module), points[None]).calls
    layers = [call.layer.module for call in calls if isinstance(call.layer.module, nn.Linear)]
    with torch.no_grad():
        for layer in dict.fromkeys(layers):
            draw(layer, generator, last=layer is layers[-1])
    return bool(layers)


def is_untouched(module: nn.Module) -> bool:
    """Whether all linear layers look as `torch.nn.Linear` draws them: uniform between ±1/√n_in, weights and biases.

    Training from such a draw, or setting weights in any other way, takes some of them beyond these limits or changes
    the distribution. With a frozen or parametrized layer, or too few weights to tell, the module counts as touched.
    """
    weights, biases = [], []
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            if not all(p.requires_grad for p in layer.parameters()) or not isinstance(layer.weight, nn.Parameter):
                return False
            weights.append(layer.weight.detach().flatten() * math.sqrt(layer.in_features))
            if layer.bias is not None:
                biases.append(layer.bias.detach() * math.sqrt(layer.in_features))
    if sum(part.numel() for part in weights) < FEWEST:
        return False
    return _uniform(weights) and (not biases or _uniform(biases))


def _uniform(parts: list[Tensor]) -> bool:
    values = torch.cat(parts).double().cpu().numpy()
    if abs(values).max() > 1 + 1e-6 or any(part.numel() > 1 and torch.all(part == part[0]) for part in parts):
        return False
    return bool(kstest(values, "uniform", args=(-1, 2)).pvalue > CHANCE)
