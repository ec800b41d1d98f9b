"""Encoder and decoder networks, and how tangents are pushed through them."""

from pyloca.networks._kernel import MLPKernel, PushforwardKernel, initialize
from pyloca.networks._mlp import ACTIVATIONS, MLP
from pyloca.networks._module_kernel import ModuleKernel, make_kernel, weights_without_blocks
from pyloca.networks._pushforward import pushed_rows, pushforward
from pyloca.networks._rows import apply_rows, jacobian_rows
from pyloca.networks._skip import WithSkip
from pyloca.networks._standardized import Standardized, in_units, widened_decoder, widened_encoder
from pyloca.networks._start import start_like_ours

__all__ = [
    "ACTIVATIONS",
    "MLP",
    "MLPKernel",
    "ModuleKernel",
    "PushforwardKernel",
    "Standardized",
    "WithSkip",
    "apply_rows",
    "in_units",
    "initialize",
    "jacobian_rows",
    "make_kernel",
    "pushed_rows",
    "pushforward",
    "start_like_ours",
    "weights_without_blocks",
    "widened_decoder",
    "widened_encoder",
]
