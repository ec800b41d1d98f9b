"""No more threads than pay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch
from threadpoolctl import threadpool_limits

__all__ = ["one_thread"]

_lock = Lock()
_inside = 0  # how many want one thread; BLAS settings belong to the process, and fits may run beside each other
_limits: threadpool_limits | None = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread inside; the user's settings come back.

    Threads wait for each other after every product of matrices. Where these are small, that costs nearly as much as it
    saves, and on a busy machine, where one of them waits for a core, many times more.

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
    before = torch.get_num_threads()  # of this thread: OpenMP counts them there
    _limit_blas(+1)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _limit_blas(-1)


def _limit_blas(more: int) -> None:
    global _inside, _limits
    with _lock:
        _inside += more
        if _inside == 0 and _limits is not None:
            _limits.restore_original_limits()
            _limits = None
        elif _inside and _limits is None:
            _limits = threadpool_limits(1, user_api="blas")
