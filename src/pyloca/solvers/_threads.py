"""No more threads than pay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from threading import Lock

import torch
from threadpoolctl import threadpool_limits

from pyloca.solvers._problem import Problem

__all__ = ["few_threads", "largest_product"]

# Threads wait for each other after every matrix product. On a busy machine one of them waits for a core, which takes
# some milliseconds, so that a product should take more than that: this many multiplications take 20 ms or so.
PAYS = 2e8

_lock = Lock()
_inside = 0  # fits that want one thread; the settings belong to the process, and fits may run beside each other
_before = 0
_limits: threadpool_limits | None = None


def largest_product(problem: Problem) -> float:
    """Count the multiplications in the largest matrix product of one evaluation of the built-in networks.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    float
    """
    statistics = problem.statistics
    widths = [statistics.n_features, *problem.hidden_layers, problem.n_components]
    largest = max(a * b for a, b in pairwise(widths))
    return float(largest) * (1 + statistics.intrinsic_dim) * len(problem.train)


@contextmanager
def few_threads(problem: Problem) -> Iterator[None]:
    """Compute with one thread inside, if the matrices are too small for more; the user's settings come back.

    Own networks may do anything, and keep the settings.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    context manager

    Examples
    --------
    ::

        with few_threads(problem):
            solution = solve_fast(problem, monitor)
    """
    own = problem.encoder is not None or problem.decoder is not None
    if own or problem.device.type != "cpu" or largest_product(problem) >= PAYS:
        yield
        return
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _inside, _before, _limits
    with _lock:
        _inside += 1
        if _inside == 1:
            _before = torch.get_num_threads()
            _limits = threadpool_limits(1, user_api="blas")
        torch.set_num_threads(1)  # in each thread: OpenMP counts them there


def _leave() -> None:
    global _inside, _limits
    with _lock:
        _inside -= 1
        torch.set_num_threads(_before)
        if _inside == 0 and _limits is not None:
            _limits.restore_original_limits()
            _limits = None
