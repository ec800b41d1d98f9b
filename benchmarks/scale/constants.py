"""What a burst, an evaluation and a message cost, from which the docs estimate 10⁹ bursts on 100 workers.

`wifi` (M = 6, D = 17, k = d = 2), two hidden layers of 50. Processor seconds, of this process unless said otherwise.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.rows import Row
from pyloca import datasets
from pyloca._threads import one_thread
from pyloca.bursts import open_bursts, save_bursts
from pyloca.geometry import BurstStatistics
from pyloca.networks import MLP, make_kernel
from pyloca.solvers import _fast, _shards
from pyloca.solvers._descent import Evaluation

__all__ = ["ROWS"]

N, RAW, REPEATS = 100_000, 300_000, 3  # RAW: bursts of a pass in eight parts


def statistics_cost(seed: int) -> dict[str, Any]:
    """Processor seconds per burst of the pass over raw bursts on Zarr, and how much faster two workers are than one."""
    with tempfile.TemporaryDirectory(prefix="pyloca-") as folder:
        path = save_bursts(datasets.wifi(RAW, random_state=seed).bursts, Path(folder, "b.zarr"))
        stored = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        start = time.process_time()
        BurstStatistics.from_bursts(open_bursts(path), 2)
        seconds = time.process_time() - start

        def once(client: Any) -> None:
            BurstStatistics.from_bursts(open_bursts(path), 2)

        faster = speed_up(lambda client: once)
    return {
        "value": 1e6 * seconds / RAW,
        "ok": True,
        "stored_bytes": stored / RAW,
        "kept_bytes": 8.0 * (3 * 17 + 5),
        **faster,
    }


def speed_up(prepared: Callable[[Any], Callable[[Any], None]]) -> dict[str, float]:
    """Tell how many times as fast two workers are as one, by the clock and by processor seconds.

    Clocks mean little on a machine that others use. By processor seconds, a run lasts as long as this process, with its
    scheduler, and the busiest worker compute: what the clock would show if both workers had a core of their own, and
    nothing waited. Each is the best of some runs.
    """
    from distributed import Client

    clock, spent = dict.fromkeys((1, 2), np.inf), dict.fromkeys((1, 2), np.inf)
    for workers in clock:
        with _local(workers) as cluster, Client(cluster) as client:
            run = prepared(client)
            run(client)  # workers import, data arrive
            for _ in range(REPEATS):
                before, here, start = client.run(time.process_time), time.process_time(), time.perf_counter()
                run(client)
                clock[workers] = min(clock[workers], time.perf_counter() - start)
                here = time.process_time() - here
                there = max(used - before[worker] for worker, used in client.run(time.process_time).items())
                spent[workers] = min(spent[workers], here + there)
    return {"speed_up": spent[1] / spent[2], "by_the_clock": clock[1] / clock[2], "load": os.getloadavg()[0]}


def evaluation_cost(seed: int) -> dict[str, Any]:
    """Processor seconds per burst of one evaluation, what goes over the wire, and the speed-up of two workers."""
    generator = torch.Generator().manual_seed(seed)
    network = MLP(17, (50, 50), 2, skip=True).double()
    kernel = make_kernel(network)
    stack = torch.randn(3, N, 17, generator=generator)  # as shards keep it
    loss = partial(_fast._likelihood, torch.ones(N, dtype=torch.float64), ())
    evaluation, theta = Evaluation(kernel, stack, loss, 1e-6), kernel.theta.clone()
    with one_thread():
        here = evaluation(theta)
        start = time.process_time()
        for _ in range(REPEATS):
            evaluation(theta)
        seconds = (time.process_time() - start) / REPEATS
    same = []

    def prepared(client: Any) -> Callable[[Any], None]:
        evaluation.shards = _shards.Shards(client, network, stack, loss, _fast._narrowed)

        def once(client: Any) -> None:
            there = evaluation(theta)
            same.append(here[0] == there[0] and torch.equal(here[1], there[1]))

        return once

    faster = speed_up(prepared)
    return {
        "value": 1e6 * seconds / N,
        "ok": all(same),
        "parameters": len(theta),
        "flops": flops(17, (50, 50), 2, 2),
        **faster,
    }


def flops(dim: int, hidden: tuple[int, ...], d: int, k: int) -> float:
    """Floating-point operations per burst of one evaluation: products forwards, and twice as many backwards."""
    sizes = (dim, *hidden, d)
    products = sum(a * b for a, b in pairwise(sizes)) + dim * d  # the last is the skip
    return 3.0 * 2.0 * (1 + k) * products


def message_cost(seed: int) -> dict[str, Any]:
    """Processor seconds per task that sends θ and returns a gradient, of client and scheduler together."""
    from distributed import Client

    theta, tasks = np.zeros(3700), 500
    with _local(1) as cluster, Client(cluster) as client:
        client.gather(client.map(_echo, range(20), [theta] * 20, pure=False))
        start = time.process_time()
        client.gather(client.map(_echo, range(tasks), [theta] * tasks, pure=False))
        seconds = time.process_time() - start
    return {"value": 1e3 * seconds / tasks, "ok": True, "bytes": 2.0 * theta.nbytes}


def _local(workers: int) -> Any:
    from distributed import LocalCluster

    return LocalCluster(n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0")


def _echo(number: int, theta: Any) -> Any:
    return theta


def transform_memory(seed: int) -> dict[str, Any]:
    """Memory that `transform` of 10⁷ points takes beyond input and output, as a part of these."""
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", TRANSFORM], capture_output=True, text=True, check=True)
    extra, size = map(float, done.stdout.split())
    return {"value": extra / size, "ok": extra / size <= 0.5, "extra_gb": extra / 2**30, "in_and_out_gb": size / 2**30}


TRANSFORM = """
import resource, warnings
import numpy as np
from pyloca import LOCA, datasets
warnings.simplefilter("ignore")
data = datasets.mushroom(200, 20, random_state=0)
model = LOCA(burst_std=0.01, hidden_layers=(10,), max_iter=60, random_state=0).fit(data.bursts)
X = np.empty((10_000_000, 2))
X.reshape(-1, 200, 2)[:] = data.Y
model.transform(X[:300_000])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
Z = model.transform(X)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(after - before - Z.nbytes, X.nbytes + Z.nbytes)
"""

ROWS = (
    Row("pass over raw bursts", 1000.0, "processor µs per burst", statistics_cost, seeds=(0,)),
    Row("evaluation", 1000.0, "processor µs per burst", evaluation_cost, seeds=(0,)),
    Row("task", 100.0, "processor ms of the client", message_cost, seeds=(0,)),
    Row("transform of 10⁷ points", 0.5, "memory / (input + output)", transform_memory, seeds=(0,)),
)
