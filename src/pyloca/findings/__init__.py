"""Reasons not to believe a fit, each with its name, the evidence and what to do; and how far to trust a new point."""

from pyloca.findings._before import (
    as_large_as_the_data,
    hidden_tangent,
    hidden_tangent_words,
    noise,
    size_error,
    spike_words,
    strain_beyond_sampling,
)
from pyloca.findings._causes import Fit, find_causes
from pyloca.findings._changed import changed_sensor
from pyloca.findings._clipped import clipped, clipped_words
from pyloca.findings._columns import foreign_columns, foreign_sensors, unexplained_steps
from pyloca.findings._diagnostics import Diagnostics, Finding, Stray
from pyloca.findings._displacement import no_displacement
from pyloca.findings._gaps import Gap, largest_gap
from pyloca.findings._judgement import judge
from pyloca.findings._neighborhood import Neighborhood
from pyloca.findings._noise_words import noise_words
from pyloca.findings._rescaling import Rescaling
from pyloca.findings._round_trip import data_size, round_trip_errors
from pyloca.findings._trust import TrustScale
from pyloca.findings._units import uneven_units

__all__ = [
    "Diagnostics",
    "Finding",
    "Fit",
    "Gap",
    "Neighborhood",
    "Rescaling",
    "Stray",
    "TrustScale",
    "as_large_as_the_data",
    "changed_sensor",
    "clipped",
    "clipped_words",
    "data_size",
    "find_causes",
    "foreign_columns",
    "foreign_sensors",
    "hidden_tangent",
    "hidden_tangent_words",
    "judge",
    "largest_gap",
    "no_displacement",
    "noise",
    "noise_words",
    "round_trip_errors",
    "size_error",
    "spike_words",
    "strain_beyond_sampling",
    "uneven_units",
    "unexplained_steps",
]
