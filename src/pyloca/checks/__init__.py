"""Checks that a solver makes of its own work: white bursts, no collapsed dimension, no fold or tear."""

from pyloca.checks._dimension import Suggestion, enough_components, suggest_components
from pyloca.checks._embedding import embedding_fault, lost_bursts, overlapping, torn
from pyloca.checks._whitening import SharedStrain, Whitening, push, sampled_stretch, shared_strain, whitening

__all__ = [
    "SharedStrain",
    "Suggestion",
    "Whitening",
    "embedding_fault",
    "enough_components",
    "lost_bursts",
    "overlapping",
    "push",
    "sampled_stretch",
    "shared_strain",
    "suggest_components",
    "torn",
    "whitening",
]
