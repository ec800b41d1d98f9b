"""What can go wrong, by name. Every message says what arrived, what was expected, and what to do."""

from __future__ import annotations

__all__ = ["BurstError", "ConvergenceError", "ModelFileError", "PylocaError", "TrustWarning"]


class PylocaError(Exception):
    """Base of all errors that pyloca raises on purpose."""


class BurstError(PylocaError, ValueError):
    """The data cannot be used: says which burst, what is wrong with it and what to do."""


class ConvergenceError(PylocaError, RuntimeError):
    """Training produced a non-finite loss and could not recover from it."""


class ModelFileError(PylocaError, ValueError):
    """The file is not a model that this version of pyloca wrote, or it was altered since."""


class TrustWarning(UserWarning):
    """The fit finished, but a check says that its result should not be believed."""
