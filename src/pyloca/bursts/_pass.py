"""One pass over bursts: here, by several threads if they must be read first, or by the workers of Dask."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyloca._memory import release_memory
from pyloca._workers import current_client, worker_errors
from pyloca.bursts._container import CHUNK, Bursts
from pyloca.bursts._lazy import LazyRows

__all__ = ["Keep", "map_parts"]

Result = dict[str, NDArray[Any]]
Look = Callable[[Bursts], Result]
AHEAD = 2  # parts per worker that are under way, so that none waits and memory stays bounded


class Keep(Protocol):
    """Where results of parts are kept, so that an interrupted pass continues where it stopped.

    Examples
    --------
    >>> class InMemory:
    ...     def __init__(self): self.done = {}
    ...     def get(self, part): return self.done.get(part)
    ...     def put(self, part, result): self.done[part] = result
    >>> keep: Keep = InMemory()
    >>> keep.get(0) is None
    True
    """

    def get(self, part: int) -> Result | None:
        """Return the result of a part that was done before.

        Parameters
        ----------
        part : int

        Returns
        -------
        dict of str to array, or None
            None if there is none.
        """

    def put(self, part: int, result: Result) -> None:
        """Keep the result of a part.

        Parameters
        ----------
        part : int
        result : dict of str to array
        """


def map_parts(
    bursts: Bursts, function: Look, *, keep: Keep | None = None, max_numbers: int = CHUNK
) -> Iterator[tuple[NDArray[np.int64], Result]]:
    """Apply a function to parts of the bursts, and yield positions and results in the order of the bursts.

    Bursts in memory are one part. Those of Zarr and Dask are cut into the same parts for the workers of the current
    `distributed.Client` and for threads, which compute if there is no client. If a worker dies, another one computes
    its part.

    Parameters
    ----------
    bursts : Bursts
    function : callable
        Takes the bursts of a part, in memory, and returns named arrays. It must be pure.
    keep : Keep, optional
        Results that were kept are not computed again; bursts in memory are then cut into parts as well.
    max_numbers : int
        Most numbers in a part.

    Yields
    ------
    positions : (b,) array of int
    result : dict of str to array

    Raises
    ------
    WorkerError
        If workers, or their scheduler, are lost.

    Examples
    --------
    >>> import numpy as np
    >>> def means(part):
    ...     return {"means": part.to_array().mean(axis=1)}
    >>> [(rows.tolist(), found["means"].shape) for rows, found in map_parts(Bursts(np.ones((3, 2, 5))), means)]
    [([0, 1, 2], (3, 5))]
    """
    lazy = bursts._layout.is_lazy
    parts = list(bursts._parts(max_numbers, cut=lazy or keep is not None))
    waiting: deque[tuple[int, Any]] = deque()

    def finished() -> tuple[NDArray[np.int64], Result]:
        part, future = waiting.popleft()
        if isinstance(future, dict):
            return parts[part], future
        result = future.result()
        if keep is not None:
            keep.put(part, result)
        return parts[part], result

    with _submitting(lazy) as (submit, ahead):
        try:
            for part, rows in enumerate(parts):
                if len(waiting) >= ahead:
                    yield finished()
                kept = None if keep is None else keep.get(part)
                waiting.append((part, submit(bursts[rows], function) if kept is None else kept))
            while waiting:
                yield finished()
        finally:
            for _, future in waiting:
                if not isinstance(future, dict):
                    future.cancel()
    if lazy:
        release_memory()


@contextmanager
def _submitting(lazy: bool) -> Iterator[tuple[Callable[[Bursts, Look], Any], int]]:
    """Yield what submits a part, and how many parts may be under way."""
    if not lazy:
        yield _at_once, 1
        return
    client = current_client()
    if client is None:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        with ThreadPoolExecutor(threads) as pool:
            yield lambda part, function: pool.submit(_apply, vars(part), part._layout.points, function), AHEAD * threads
        return
    with worker_errors():

        def submit(part: Bursts, function: Look) -> Any:
            window = part._layout.window()
            assert isinstance(window.points, LazyRows)
            points = window.points.on_workers(client)
            state = vars(part) | {"_layout": replace(window, points=None)}
            return client.submit(_apply, state, points, function, pure=False)

        yield submit, AHEAD * max(1, sum(client.nthreads().values()))


def _at_once(part: Bursts, function: Look) -> Future[Result]:
    future: Future[Result] = Future()
    future.set_result(function(part))
    return future


def _apply(state: dict[str, Any], points: Any, function: Look) -> Result:
    from pyloca._threads import one_thread  # it imports torch, which bursts alone do not need

    part = Bursts.__new__(Bursts)
    part.__dict__.update(state | {"_layout": replace(state["_layout"], points=points)})
    with one_thread(helping=True):  # the same bits here and on any worker
        return function(part.loaded())
