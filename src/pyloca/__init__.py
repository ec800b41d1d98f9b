"""Standardized coordinates from bursts of raw measurements: the LOcal Conformal Autoencoder."""

from importlib.metadata import version

from pyloca import datasets
from pyloca.bursts import Bursts
from pyloca.errors import BurstError, ConvergenceError, ModelFileError, PylocaError, TrustWarning
from pyloca.estimator import LOCA
from pyloca.geometry import BurstStatistics

__version__ = version("pyloca")

__all__ = [
    "LOCA",
    "BurstError",
    "BurstStatistics",
    "Bursts",
    "ConvergenceError",
    "ModelFileError",
    "PylocaError",
    "TrustWarning",
    "__version__",
    "datasets",
]
