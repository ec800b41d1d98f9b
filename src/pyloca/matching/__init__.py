"""Several instruments, one coordinate system: matched by anchors, by the shape of what they saw, or by both."""

from pyloca.matching._fuse import Fusion, fuse
from pyloca.matching._match import match
from pyloca.matching._matched import Match
from pyloca.matching._prediction import Prediction
from pyloca.matching._recalibrate import Recalibration, recalibrate
from pyloca.matching._shared import Shared, shared
from pyloca.matching._solution import Candidate

__all__ = [
    "Candidate",
    "Fusion",
    "Match",
    "Prediction",
    "Recalibration",
    "Shared",
    "fuse",
    "match",
    "recalibrate",
    "shared",
]
