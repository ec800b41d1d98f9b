"""Distance of an embedding from the truth, where the truth is known, in the figures that several fields print."""

from pyloca.metrics._calibration import AffineMap, RigidMap, calibrate, calibrate_affine
from pyloca.metrics._foscttm import foscttm
from pyloca.metrics._neighborhoods import continuity, trustworthiness
from pyloca.metrics._places import PlaceErrors, place_errors
from pyloca.metrics._stress import kruskal_stress, stress

__all__ = [
    "AffineMap",
    "PlaceErrors",
    "RigidMap",
    "calibrate",
    "calibrate_affine",
    "continuity",
    "foscttm",
    "kruskal_stress",
    "place_errors",
    "stress",
    "trustworthiness",
]
