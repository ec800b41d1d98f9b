"""When to believe a fit, and when not: what is measured, what it means, and what to do about it."""

from pyloca.diagnostics._agreement import Agreement, agreement
from pyloca.diagnostics._checks import CURED, MANY_APART, embedding_fault, lost_bursts, overlapping, sample_rows
from pyloca.diagnostics._diagnose import diagnose, diagnose_fit, round_trip_errors
from pyloca.diagnostics._gaps import Gap, largest_gap
from pyloca.diagnostics._neighborhood import Neighborhood, as_large_as_the_data
from pyloca.diagnostics._null import ShuffleTest, shuffle_test
from pyloca.diagnostics._report import Diagnostics, Finding
from pyloca.diagnostics._trust import TrustScale
from pyloca.diagnostics._units import uneven_units
from pyloca.diagnostics._whitening import Whitening, push, sampled_stretch, whitening

__all__ = [
    "CURED",
    "MANY_APART",
    "Agreement",
    "Diagnostics",
    "Finding",
    "Gap",
    "Neighborhood",
    "ShuffleTest",
    "TrustScale",
    "Whitening",
    "agreement",
    "as_large_as_the_data",
    "diagnose",
    "diagnose_fit",
    "embedding_fault",
    "largest_gap",
    "lost_bursts",
    "overlapping",
    "push",
    "round_trip_errors",
    "sample_rows",
    "sampled_stretch",
    "shuffle_test",
    "uneven_units",
    "whitening",
]
