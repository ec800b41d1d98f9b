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
    """Base class of the exceptions that pyloca defines.

    Parameters
    ----------
    message : object, default=""
        What is wrong.

    Examples
    --------
    >>> from pyloca import LOCA
    >>> try:
    ...     LOCA().fit([[[1.0, 2.0]]])
    ... except PylocaError as error:  # whatever pyloca raises about data, fits and files
    ...     print(type(error).__name__)
    BurstError
    """

    def __init__(self, message: object = "") -> None:
        text = str(message)
        if len(text) > LONGEST:
            text = f"{text[: LONGEST // 2]} … [{len(text):,} characters] … {text[-LONGEST // 4 :]}"
        super().__init__(text)


class BurstError(PylocaError, ValueError):
    """The data cannot be used; the message names the burst, what is wrong with it and what to do.

    Examples
    --------
    >>> from pyloca import Bursts
    >>> Bursts([[1.0, 2.0], [3.0, 4.0]])
    Traceback (most recent call last):
        ...
    pyloca.errors.BurstError: ...
    """


class ConvergenceError(PylocaError, RuntimeError):
    """Training produced a non-finite loss and could not recover from it.

    Examples
    --------
    >>> issubclass(ConvergenceError, PylocaError)  # from the shell it is exit code 4
    True
    """


class MatchError(PylocaError, ValueError):
    """Two instruments cannot be matched, or not in one way only; the message says why and what would decide it.

    Examples
    --------
    >>> issubclass(MatchError, PylocaError)  # `pyloca.matching.match` raises it; from the shell it is exit code 4
    True
    """


class ModelFileError(PylocaError, ValueError):
    """The file cannot be loaded: not a pyloca model, a newer format, altered content, or other networks.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pyloca import LOCA
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.safetensors")
    ...     _ = path.write_bytes(b"not a model")
    ...     try:
    ...         LOCA.load(path)
    ...     except ModelFileError:
    ...         print("refused")
    refused
    """


class WorkerError(PylocaError, RuntimeError):
    """Dask workers, or their scheduler, were lost; the message says what to do.

    Examples
    --------
    >>> issubclass(WorkerError, PylocaError)  # the fit can be resumed from its checkpoint
    True
    """


class TrustWarning(UserWarning):
    """The fit finished, but a check found that its result should not be trusted.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", TrustWarning)  # from here on a fit with a finding raises
    """
