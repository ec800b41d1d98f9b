"""Dask, if it is in use: the current client, and errors of workers in our words."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyloca.errors import PylocaError, WorkerError

__all__ = ["current_client", "worker_errors"]


def current_client() -> Any:
    """Return the current `distributed.Client`; None if there is none. Imports nothing.

    Returns
    -------
    distributed.Client or None

    Examples
    --------
    >>> current_client() is None
    True
    """
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:  # nobody has made one
        return None


@contextmanager
def worker_errors() -> Iterator[None]:
    """Say in our words what happened to workers or to their scheduler.

    Yields
    ------
    None

    Raises
    ------
    WorkerError
        In place of the errors of Dask and of its connections.

    Examples
    --------
    >>> with worker_errors():
    ...     pass
    """
    try:
        yield
    except PylocaError:
        raise
    except Exception as error:
        words = _words(error)
        if words is None:
            raise
        raise WorkerError(words) from error


def _words(error: BaseException) -> str | None:
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    if isinstance(error, distributed.KilledWorker):
        return (
            "workers died again and again over the same part of the data, most likely out of memory. Give each worker "
            "more memory, or start fewer of them on a machine; their logs say more."
        )
    client = distributed.client
    lost = (distributed.comm.CommClosedError, client.FutureCancelledError, client.ClosedClientError)
    if isinstance(error, (*lost, ConnectionError, TimeoutError)):
        return (
            f"the connection to the Dask scheduler was lost ({type(error).__name__}: {_first_line(error)}). Check that "
            "it runs, and start again: `pyloca statistics`, and a fit with a checkpoint, go on where they were."
        )
    if isinstance(error, MemoryError):
        return "a worker ran out of memory. Give each worker more memory, or start fewer of them on a machine."
    return None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0][:200]
