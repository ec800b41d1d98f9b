"""A fitted model for other places: ONNX runtimes, NumPy alone, C99. Each with a certificate of its parity."""

from pyloca.export._certificate import Certificate
from pyloca.export._export import SUFFIXES, export, files_of

__all__ = ["SUFFIXES", "Certificate", "export", "files_of"]
