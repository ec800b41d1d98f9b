"""The same bits with 1, 2 and 4 workers, with threads, and when a worker is killed at a random moment of the training.

2,400 bursts stand for 100,000: shards are made smaller in the process that fits. The figure is the number of fits that
differ in a bit from the one without workers; a row also fails if workers were never asked for an evaluation.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rows import Row
from pyloca import LOCA, datasets
from pyloca.bursts import Bursts, open_bursts, save_bursts
from pyloca.errors import TrustWarning
from pyloca.geometry import BurstStatistics
from pyloca.solvers import _descent, _fast, _shards

__all__ = ["ROWS"]

N, M, SHARD, KILLS, IN_A_FIT = 2400, 10, 512, 20, 5
KILLS_IN_PASS, PARTS = 10, 24


def fit() -> NDArray[np.float64]:
    data = datasets.mushroom(N, M, random_state=0)
    model = LOCA(burst_std=data.burst_std, hidden_layers=(10,), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return model.fit(data.bursts).embedding_


def _small() -> None:
    _shards.MANY = _fast.MANY = 1000
    _shards.SHARD = _descent.SHARD = SHARD


@cache
def reference() -> NDArray[np.float64]:
    _small()
    return fit()


def same(workers: int, processes: bool, seed: int) -> dict[str, Any]:
    from distributed import Client, LocalCluster

    expected = reference()
    here = {"host": "127.0.0.1"} if processes else {}
    shape = {"n_workers": workers} if processes else {"n_workers": 1, "threads_per_worker": workers}
    settings = {"threads_per_worker": 1, "processes": processes, "dashboard_address": "127.0.0.1:0"} | shape | here
    with LocalCluster(**settings) as cluster, Client(cluster), counted() as asked:
        start = time.perf_counter()
        found = fit()
        seconds = time.perf_counter() - start
    differ = int(not np.array_equal(found, expected))
    facts = {"evaluations": asked[0], "wall_seconds": seconds}
    return {"value": float(differ), "ok": differ == 0 and asked[0] > 0, **facts}


@contextmanager
def counted(at: Callable[[int], None] = lambda number: None) -> Iterator[list[int]]:
    """Count the evaluations that workers are asked for, and call `at` with the number of each before it."""
    asked, sums = [0], _shards.Shards.sums

    def watched(self: _shards.Shards, *arguments: Any) -> Any:
        asked[0] += 1
        at(asked[0])
        return sums(self, *arguments)

    _shards.Shards.sums = watched  # type: ignore[method-assign]
    try:
        yield asked
    finally:
        _shards.Shards.sums = sums  # type: ignore[method-assign]


def killed(seed: int) -> dict[str, Any]:
    """Kill one of two workers at random moments of the training, several in each fit, until so many were really killed.

    A moment is some time after a random evaluation has been asked of the workers, so that it always lies in the
    training, however busy the machine is. A signal that is sent after the fit does not count.
    """
    from distributed import Client, LocalCluster

    expected, moments = reference(), random.Random(seed)
    differ, hit, fits = 0, 0, 0
    plan: dict[int, float] = {}  # evaluations, and how many seconds after each began
    training = threading.Event()

    def start(number: int) -> None:
        if number in plan:
            threading.Timer(plan[number], kill).start()

    def kill() -> None:
        nonlocal hit
        while training.is_set():
            with suppress(ProcessLookupError, TypeError):  # it is just being started again
                os.kill(moments.choice(list(cluster.workers.values())).pid, signal.SIGKILL)
                hit += int(training.is_set())
                return
            time.sleep(0.01)

    local = LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0")
    with local as cluster, Client(cluster), counted(start) as asked:
        differ += int(not np.array_equal(fit(), expected))
        evaluations = asked[0]
        while hit < KILLS and fits < 2 * KILLS:
            asked[0], fits = 0, fits + 1
            chosen = moments.sample(range(1, evaluations - 5), min(IN_A_FIT, KILLS - hit))
            plan = {number: moments.uniform(0, 0.02) for number in chosen}
            training.set()
            try:
                differ += int(not np.array_equal(fit(), expected))
            finally:
                training.clear()
    facts = {"killed": hit, "fits": fits + 1, "evaluations": evaluations}
    return {"value": float(differ), "ok": differ == 0 and hit >= KILLS, **facts}


def killed_in_pass(seed: int) -> dict[str, Any]:
    """Kill one of two workers at random moments of the pass over raw bursts; one in each pass."""
    from distributed import Client, LocalCluster

    moments, differ, hit, passes = random.Random(seed), 0, 0, 0
    with _store() as path:
        expected = BurstStatistics.from_bursts(open_bursts(path).loaded(), 2)
        settings = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        while hit < KILLS_IN_PASS and passes < 3 * KILLS_IN_PASS:
            # new workers for every pass: Dask does not always start another one for one that was killed
            with LocalCluster(n_workers=2, **settings) as cluster, Client(cluster):
                passes, after, done = passes + 1, moments.randrange(PARTS), [0]
                found = BurstStatistics.from_bursts(open_bursts(path), 2, keep=_Killer(cluster, moments, after, done))
            hit += done[0]
            differ += int(not np.array_equal(found.tangents, expected.tangents))
    return {"value": float(differ), "ok": differ == 0 and hit >= KILLS_IN_PASS, "killed": hit, "fits": passes}


@dataclass
class _Killer:
    """Keeps nothing, but is told of every part that is finished: after so many it kills a worker."""

    cluster: Any
    moments: random.Random
    after: int
    done: list[int]
    parts: int = 0

    def of(self, name: str) -> _Killer:
        return self

    def get(self, part: int) -> None:
        return None

    def put(self, part: int, result: Any) -> None:
        self.parts += 1
        if self.parts == 1 + self.after:
            with suppress(ProcessLookupError, TypeError):
                os.kill(self.moments.choice(list(self.cluster.workers.values())).pid, signal.SIGKILL)
                self.done[0] += 1


@contextmanager
def _store() -> Iterator[Path]:
    """Make bursts in Zarr; passes over them are cut into a few parts."""
    parts = Bursts._parts
    Bursts._parts = lambda self, _, *, cut=False: parts(self, N * M * 2 // PARTS, cut=cut)  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory(prefix="pyloca-") as folder:
            yield save_bursts(datasets.mushroom(N, M, random_state=0).bursts, Path(folder, "b.zarr"))
    finally:
        Bursts._parts = parts  # type: ignore[method-assign]


ROWS = (
    *(
        Row(f"{n} worker{'s' * (n > 1)}", 0.0, "fits that differ", partial(same, n, True), seeds=(0,))
        for n in (1, 2, 4)
    ),
    Row("4 threads", 0.0, "fits that differ", partial(same, 4, False), seeds=(0,)),
    Row(f"{KILLS} workers killed", 0.0, "fits that differ", killed, seeds=(0,)),
    Row(f"{KILLS_IN_PASS} workers killed in the pass", 0.0, "passes that differ", killed_in_pass, seeds=(0,)),
)
