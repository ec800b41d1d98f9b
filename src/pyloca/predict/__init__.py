"""Prediction with NumPy alone, for a service or a small board: no PyTorch, no scikit-learn, no SciPy."""

from pyloca.predict._file import PREDICTOR, PREDICTOR_VERSION, load, predictor_from_bytes
from pyloca.predict._network import LEAK, SOFTPLUS_LINEAR, Network
from pyloca.predict._predictor import TIE, Predictor

__all__ = [
    "LEAK",
    "PREDICTOR",
    "PREDICTOR_VERSION",
    "SOFTPLUS_LINEAR",
    "TIE",
    "Network",
    "Predictor",
    "load",
    "predictor_from_bytes",
]
