"""Encoder and decoder networks, and how tangents are pushed through them."""

from pyloca.networks._kernel import MLPKernel, ModuleKernel, PushforwardKernel, initialize, make_kernel
from pyloca.networks._mlp import ACTIVATIONS, MLP
from pyloca.networks._pushforward import pushforward
from pyloca.networks._rows import apply_rows, jacobian_rows
from pyloca.networks._standardized import Standardized, in_units

__all__ = [
    "ACTIVATIONS",
    "MLP",
    "MLPKernel",
    "ModuleKernel",
    "PushforwardKernel",
    "Standardized",
    "apply_rows",
    "in_units",
    "initialize",
    "jacobian_rows",
    "make_kernel",
    "pushforward",
]
