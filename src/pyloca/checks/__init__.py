"""What a solver asks of its own work: are bursts white, has a dimension collapsed, is the embedding folded or torn?"""

from pyloca.checks._components import Suggestion, enough_components, suggest_components
from pyloca.checks._embedding import embedding_fault, lost_bursts, overlapping, torn
from pyloca.checks._whitening import Whitening, push, sampled_stretch, whitening

__all__ = [
    "Suggestion",
    "Whitening",
    "embedding_fault",
    "enough_components",
    "lost_bursts",
    "overlapping",
    "push",
    "sampled_stretch",
    "suggest_components",
    "torn",
    "whitening",
]
