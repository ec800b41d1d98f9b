"""Exceptions and warnings. Every message says what arrived, what was expected, and what to do.

Bad data raises `BurstError`; bad parameters raise plain `ValueError` or `TypeError`.
"""

from __future__ import annotations

__all__ = [
    "BurstError",
    "ConvergenceError",
    "MatchError",
    "ModelFileError",
    "PylocaError",
    "TrustWarning",
    "WorkerError",
]


LONGEST = 4000  # characters of a message; a table may have a hundred thousand columns


class PylocaError(Exception):
    """Base class of the exceptions that pyloca defines."""

    def __init__(self, message: object = "") -> None:
        text = str(message)
        if len(text) > LONGEST:
            text = f"{text[: LONGEST // 2]} … [{len(text):,} characters] … {text[-LONGEST // 4 :]}"
        super().__init__(text)


class BurstError(PylocaError, ValueError):
    """The data cannot be used; the message names the burst, what is wrong with it and what to do."""


class ConvergenceError(PylocaError, RuntimeError):
    """Training produced a non-finite loss and could not recover from it."""


class MatchError(PylocaError, ValueError):
    """Two instruments cannot be matched, or not in one way only; the message says why and what would decide it."""


class ModelFileError(PylocaError, ValueError):
    """The file cannot be loaded: not a pyloca model, a newer format, altered content, or other networks."""


class WorkerError(PylocaError, RuntimeError):
    """Dask workers, or their scheduler, were lost; the message says what to do."""


class TrustWarning(UserWarning):
    """The fit finished, but a check found that its result should not be trusted."""
