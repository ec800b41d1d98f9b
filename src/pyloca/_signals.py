"""Ctrl-C and SIGTERM on the command line: an exception, once, wherever the command is; and never a traceback."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

__all__ = ["Terminated", "caught", "heed", "ignore"]

SOON = 0.05  # seconds

_caught: type[BaseException] | None = None
_heeded: list[int] = []


class Terminated(BaseException):
    """SIGTERM arrived. Not an `Exception`, like KeyboardInterrupt: code that recovers from errors lets it pass."""


KINDS: dict[int, type[BaseException]] = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}


def heed() -> None:
    """Raise `KeyboardInterrupt` at Ctrl-C and `Terminated` at SIGTERM from now on.

    What was raised already is not raised again while the command ends, so that a second Ctrl-C does not stop it from
    writing its checkpoint. In the middle of an import, where Python may lose an exception, it is raised a little later.
    """
    for number in KINDS:
        if number not in _heeded and signal.getsignal(number) is not signal.SIG_IGN:  # as background jobs ignore Ctrl-C
            signal.signal(number, _raise)
            _heeded.append(number)
    sys.unraisablehook = _lost


def ignore() -> None:
    """Take no more notice, if `heed` ever did: the command is over, and only its words are left to be said."""
    for number in _heeded:
        signal.signal(number, signal.SIG_IGN)


def caught() -> type[BaseException] | None:
    """Return what the first signal raises, if there was one: other errors may follow from it."""
    return _caught


def _raise(number: int, frame: FrameType | None) -> None:
    global _caught
    _caught = _caught or KINDS[number]
    if _leaving():
        return
    if _importing(frame):
        _later(number)
    else:
        raise KINDS[number]


def _leaving() -> bool:
    """Whether such an exception is on its way up: what runs now are `finally` blocks and the like."""
    error = sys.exception()
    while error is not None and not isinstance(error, tuple(KINDS.values())):
        error = error.__context__
    return error is not None


def _importing(frame: FrameType | None) -> bool:
    while frame is not None and "importlib._bootstrap" not in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None


def _later(number: int) -> None:
    timer = threading.Timer(SOON, _send, (number,))
    timer.daemon = True
    timer.start()


def _send(number: int) -> None:
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, number)  # wakes it, if it waits
    else:
        signal.raise_signal(number)


def _lost(raised: sys.UnraisableHookArgs) -> None:
    """Raise again what was raised in a destructor, where Python only prints it."""
    for number, kind in KINDS.items():
        if raised.exc_type is kind:
            return _later(number)
    return sys.__unraisablehook__(raised)
