"""No more threads than pay, and none that a fork has lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, local

import torch
from threadpoolctl import threadpool_limits

from pyloca._forks import COMPUTING, HELPING

__all__ = ["after_fork", "one_thread"]


class _Here(local):
    """What this thread does."""

    depth = 0  # of blocks that want one thread


_here = _Here()
_lock = Lock()
_inside = 0  # how many threads want one; BLAS settings belong to the process, and fits may run beside each other
_limits: threadpool_limits | None = None
_usual = 1  # threads of PyTorch before the first of them
_forked = False


@contextmanager
def one_thread(*, helping: bool = False) -> Iterator[None]:
    """Compute with one thread inside; the user's settings come back. Forks wait meanwhile.

    Threads wait for each other after every product of matrices. Where these are small, that costs nearly as much as it
    saves, and on a busy machine, where one of them waits for a core, many times more.

    Parameters
    ----------
    helping : bool, default=False
        Whether another thread, which computes itself, waits for this one.

    Yields
    ------
    None

    Examples
    --------
    >>> import torch
    >>> with one_thread():
    ...     torch.get_num_threads()
    1
    """
    with HELPING if helping else COMPUTING:
        before = 0 if _here.depth else _enter()
        _here.depth += 1
        try:
            yield
        finally:
            _here.depth -= 1
            if before:
                torch.set_num_threads(1 if _forked else before)
                _leave()


def _enter() -> int:
    """Limit the threads, and return how many PyTorch had before."""
    global _inside, _limits, _usual
    before = torch.get_num_threads()  # of this thread: OpenMP counts them there
    with _lock:
        if _inside == 0:
            _usual = before
        elif before == 1:
            before = _usual  # a new thread copies the latest setting, which is that of a fit beside this one
        _inside += 1
        if _limits is None:
            _limits = threadpool_limits(1, user_api="blas")
    torch.set_num_threads(1)
    return before


def _leave() -> None:
    global _inside, _limits
    with _lock:
        _inside = max(_inside - 1, 0)  # 0 already in a child that was forked inside
        if _inside == 0 and _limits is not None:
            _limits.restore_original_limits()
            _limits = None


def after_fork() -> None:
    """Compute with one thread from now on, if this process was forked; to be called before PyTorch computes.

    The threads of OpenMP do not exist in a forked child, where the next product that wants them would wait forever.

    Examples
    --------
    >>> after_fork()
    """
    if _forked and torch.get_num_threads() > 1:
        torch.set_num_threads(1)


def _in_child() -> None:
    """Forget the other threads: they do not exist here, and would never release their locks."""
    global _lock, _inside, _forked
    _lock, _inside, _forked = Lock(), 0, True


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork either
    os.register_at_fork(after_in_child=_in_child)
