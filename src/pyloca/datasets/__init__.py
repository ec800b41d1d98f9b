"""Simulated data sets with a known truth: those of the paper, cameras, and diffusions in a potential."""

from pyloca.datasets._dataset import Dataset, TestSet
from pyloca.datasets._landscapes import double_well, muller_brown
from pyloca.datasets._mushroom import frame, mushroom
from pyloca.datasets._photograph import Photograph, bent_sheet
from pyloca.datasets._sphere import sphere
from pyloca.datasets._thermal import thermal_surface
from pyloca.datasets._wifi import wifi

__all__ = [
    "Dataset",
    "Photograph",
    "TestSet",
    "bent_sheet",
    "double_well",
    "frame",
    "muller_brown",
    "mushroom",
    "sphere",
    "thermal_surface",
    "wifi",
]
