"""The same bits with 1, 2 and 4 workers, with threads, and when a worker is killed at a random moment.

6,000 bursts stand for 100,000: shards are made smaller in the process that fits. The figure is the number of fits that
differ in a bit from the one without workers.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import warnings
from contextlib import suppress
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.rows import Row
from pyloca import LOCA, datasets
from pyloca.errors import TrustWarning
from pyloca.solvers import _descent, _fast, _shards

__all__ = ["ROWS"]

N, M, SHARD, KILLS = 6000, 20, 1024, 20


def fit() -> NDArray[np.float64]:
    data = datasets.mushroom(N, M, random_state=0)
    model = LOCA(burst_std=data.burst_std, hidden_layers=(20,), max_iter=450, random_state=0)
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
    with LocalCluster(**settings) as cluster, Client(cluster):
        start = time.perf_counter()
        found = fit()
        seconds = time.perf_counter() - start
    differ = int(not np.array_equal(found, expected))
    return {"value": float(differ), "ok": differ == 0, "wall_seconds": seconds}


def killed(seed: int) -> dict[str, Any]:
    """Kill one of two workers at a random moment of each of several fits."""
    from distributed import Client, LocalCluster

    expected, moments = reference(), random.Random(seed)
    differ, hit = 0, 0
    local = LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0")
    with local as cluster, Client(cluster):
        start = time.perf_counter()
        differ += int(not np.array_equal(fit(), expected))
        usual = time.perf_counter() - start
        for _ in range(KILLS):
            done = threading.Event()

            def kill(after: float, done: threading.Event) -> None:
                nonlocal hit
                if done.wait(after):
                    return  # the fit was quicker
                with suppress(ProcessLookupError, TypeError):  # it is just being started again
                    os.kill(moments.choice(list(cluster.workers.values())).pid, signal.SIGKILL)
                    hit += 1

            thread = threading.Thread(target=kill, args=(moments.uniform(0.2, 0.95) * usual, done))
            thread.start()
            differ += int(not np.array_equal(fit(), expected))
            done.set()
            thread.join()
    return {"value": float(differ), "ok": differ == 0 and hit >= KILLS - 2, "killed": hit, "fits": KILLS + 1}


ROWS = (
    *(
        Row(f"{n} worker{'s' * (n > 1)}", 0.0, "fits that differ", partial(same, n, True), seeds=(0,))
        for n in (1, 2, 4)
    ),
    Row("4 threads", 0.0, "fits that differ", partial(same, 4, False), seeds=(0,)),
    Row(f"{KILLS} workers killed", 0.0, "fits that differ", killed, seeds=(0,)),
)
