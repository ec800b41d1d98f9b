"""Standardized coordinates from bursts of raw measurements: the LOcal Conformal Autoencoder."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyloca import datasets
    from pyloca._version import __version__
    from pyloca.bursts import Bursts
    from pyloca.errors import BurstError, ConvergenceError, MatchError, ModelFileError, PylocaError, TrustWarning
    from pyloca.estimator import LOCA
    from pyloca.geometry import BurstStatistics

__all__ = [
    "LOCA",
    "BurstError",
    "BurstStatistics",
    "Bursts",
    "ConvergenceError",
    "MatchError",
    "ModelFileError",
    "PylocaError",
    "TrustWarning",
    "__version__",
    "datasets",
]

# Where a name is found when it is first used: importing pyloca alone loads neither PyTorch nor scikit-learn.
_MODULES = {
    "LOCA": "pyloca.estimator",
    "BurstError": "pyloca.errors",
    "BurstStatistics": "pyloca.geometry",
    "Bursts": "pyloca.bursts",
    "ConvergenceError": "pyloca.errors",
    "MatchError": "pyloca.errors",
    "ModelFileError": "pyloca.errors",
    "PylocaError": "pyloca.errors",
    "TrustWarning": "pyloca.errors",
    "__version__": "pyloca._version",
}


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return import_module("pyloca.datasets")
    if name not in _MODULES:
        raise AttributeError(f"module 'pyloca' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
