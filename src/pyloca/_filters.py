"""Warnings that are ignored, whatever other threads do."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["without_warnings"]

_lock = Lock()


@contextmanager
def without_warnings(kind: type[Warning]) -> Iterator[None]:
    """Ignore a kind of warnings inside. For short calls: one thread at a time can be in here.

    The filters belong to the process. Two threads that change them and put them back in turns leave them changed.

    Parameters
    ----------
    kind : type

    Yields
    ------
    None

    Examples
    --------
    >>> import warnings
    >>> with without_warnings(UserWarning):
    ...     warnings.warn("the cup is cracked")
    """
    with _lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", kind)
        yield


def _in_child() -> None:
    """Forget the other threads: they do not exist in a forked child, and would never release the lock."""
    global _lock
    _lock = Lock()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork either
    os.register_at_fork(after_in_child=_in_child)
