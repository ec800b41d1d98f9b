"""A fork waits for threads that compute: the locks that these hold would stay locked in the child forever.

MKL, with which PyTorch multiplies matrices, takes locks while it computes and while a thread that has computed ends.
Neither PyTorch nor MKL clears them in a forked child, whose next product then never returns.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import ContextDecorator
from types import TracebackType

__all__ = ["COMPUTING", "HELPING", "RESTING", "breathe"]

LONGEST = 60.0  # seconds that a fork waits at most: better a child that may hang than a program that does
ENDING = 1.0  # seconds for a thread that has ended in Python to be gone
REMEMBERED = 256  # threads, before those that are gone are forgotten


class _Here(threading.local):
    """What this thread does."""

    depth = 0  # of sections that compute
    resting = 0  # of sections in which it does something else for a while
    forking = False


class _State:
    """What all threads do."""

    def __init__(self) -> None:
        self.changed = threading.Condition()  # of a lock that a signal handler may take again
        self.computing: set[int] = set()  # threads
        self.wanted = 0  # forks that wait or are under way
        self.busy = False  # one of them is under way
        self.known: set[int] = set()  # ids by the system of threads that have ever computed


_here = _Here()
_state = _State()


def _enter(*, wait: bool) -> None:
    state, me = _state, threading.get_ident()
    with state.changed:
        if wait and state.wanted:
            state.changed.wait_for(lambda: not state.wanted, LONGEST)
        state.computing.add(me)
        if len(state.known) > REMEMBERED:
            state.known = {one for one in state.known if _exists(one)}
        state.known.add(threading.get_native_id())


def _leave() -> None:
    state = _state
    with state.changed:
        state.computing.discard(threading.get_ident())
        if state.wanted:
            state.changed.notify_all()


class _Section(ContextDecorator):
    """A section that computes, as a context or a decorator; sections may be nested.

    Parameters
    ----------
    wait : bool
        Whether to begin only when no fork is wanted; not so in a thread that another one waits for, since the fork
        waits for that one.
    """

    def __init__(self, *, wait: bool) -> None:
        self._wait = wait

    def __enter__(self) -> None:
        _here.depth += 1
        if _here.depth == 1:
            _enter(wait=self._wait)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _here.depth -= 1
        if _here.depth == 0:
            _leave()


class _Rest(ContextDecorator):
    """Inside a section, something else for a while, such as what the user wants to be called: forks need not wait."""

    def __enter__(self) -> None:
        _here.resting += 1
        if _here.depth and _here.resting == 1:
            _leave()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _here.resting -= 1
        if _here.depth and _here.resting == 0:
            _enter(wait=True)


COMPUTING, HELPING, RESTING = _Section(wait=True), _Section(wait=False), _Rest()


def breathe() -> None:
    """Let a fork happen if one is wanted: to be called now and then in a long section.

    Examples
    --------
    >>> breathe()
    """
    if _state.wanted and _here.depth:
        with RESTING:
            pass


def _before() -> None:
    """Wait until no other thread computes, and keep them from it."""
    state, end = _state, time.monotonic() + LONGEST
    _here.forking = True
    with state.changed:
        state.wanted += 1
        state.computing.discard(threading.get_ident())  # this thread forks, so it does not compute
        state.changed.notify_all()
        state.changed.wait_for(lambda: not state.busy and not state.computing, end - time.monotonic())
        state.busy = True
    _wait_for_ended(state)


def _wait_for_ended(state: _State) -> None:
    """Wait for threads that have ended in Python, but not yet in the system."""
    end, alive = time.monotonic() + ENDING, _alive()
    while True:
        ending = {one for one in state.known - alive if _exists(one)}
        before, alive = alive, _alive()
        if (not ending and alive == before) or time.monotonic() > end:
            break
        if ending:
            time.sleep(0.0005)
    state.known &= alive


def _alive() -> set[int | None]:
    return {thread.native_id for thread in threading.enumerate()}


def _exists(thread: int) -> bool:
    return os.path.exists(f"/proc/self/task/{thread}")


def _in_parent() -> None:
    state = _state
    if not _here.forking:
        return
    _here.forking = False
    with state.changed:
        state.wanted -= 1
        state.busy = False
        if _here.depth and not _here.resting:
            state.computing.add(threading.get_ident())
        state.changed.notify_all()


def _in_child() -> None:
    """Begin anew: the other threads do not exist here."""
    global _state
    _state = _State()
    _here.forking = False
    if _here.depth and not _here.resting:
        _state.computing.add(threading.get_ident())


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork either
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
