"""Estimates of σ, k and d from the bursts themselves, each with its uncertainty."""

from pyloca.checks import Suggestion
from pyloca.selection._burst_std import BurstStdEstimate, estimate_burst_std
from pyloca.selection._components import ComponentSelection, select_n_components, suggest_n_components
from pyloca.selection._intrinsic_dim import IntrinsicDimEstimate, estimate_intrinsic_dim

__all__ = [
    "BurstStdEstimate",
    "ComponentSelection",
    "IntrinsicDimEstimate",
    "Suggestion",
    "estimate_burst_std",
    "estimate_intrinsic_dim",
    "select_n_components",
    "suggest_n_components",
]
