"""A scheduler that is lost, workers that run out of memory, and sockets.

The figure is the number of runs that did not end as they should: with exit code 1, our own message, and the model of an
earlier fit untouched; for sockets, the number of addresses that are not of this machine alone.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.rows import Row
from benchmarks.scale.watched import pyloca, until
from pyloca import datasets
from pyloca.bursts import save_bursts

__all__ = ["ROWS"]

N, LOST, STARVED = 120_000, 20, 5
LOOPBACK = {"127.0.0.1", "::1"}


@contextmanager
def running(folder: Path, memory: str = "2GB") -> Any:
    """Start a scheduler and a worker; yield the scheduler's process and address."""
    file = folder / "scheduler.json"
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen(
        [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)],
        **quiet,
    )
    worker = None
    try:
        until(file.is_file)
        limits = ["--scheduler-file", str(file), "--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard"]
        worker = subprocess.Popen(
            [*dask, "worker", *limits, "--memory-limit", memory],
            **quiet,
        )
        until(lambda: len(psutil.Process(worker.pid).children()) > 0)
        yield scheduler, json.loads(file.read_text())["address"]
    finally:
        for process in (worker, scheduler):
            if process is not None:
                for one in psutil.Process(process.pid).children(recursive=True) if process.poll() is None else ():
                    one.kill()
                process.kill()
                process.wait()


def _fit(path: Path, *options: str, **during: Any) -> dict[str, Any]:
    model = path / "model.safetensors"
    model.write_bytes(b"the model of an earlier fit")
    ran = pyloca("statistics", str(path / "b.zarr"), "-o", str(path / "s.zarr"), *options, **during)
    kept = model.read_bytes() == b"the model of an earlier fit" and not (path / "s.zarr").exists()
    own = ran["said"].strip().splitlines()[-1:] or [""]
    return ran | {"kept": kept, "own": own[0].startswith("Error: ") and "bug in pyloca" not in own[0]}


def lost(seed: int) -> dict[str, Any]:
    moments, wrong, done, messages = random.Random(seed), 0, 0, set()
    with tempfile.TemporaryDirectory(prefix="pyloca-") as folder:
        path = Path(folder)
        save_bursts(datasets.wifi(N, random_state=0).bursts, path / "b.zarr")
        for _ in range(LOST):
            with running(path) as (scheduler, address):
                after = moments.uniform(2.0, 6.0)

                def kill(_: psutil.Process, after: float = after, scheduler: Any = scheduler) -> None:
                    time.sleep(after)
                    scheduler.kill()

                ran = _fit(path, "--scheduler", address, during=kill)
            if ran["code"] == 0:
                done += 1  # it was quicker
                continue
            wrong += int(not (ran["code"] == 1 and ran["kept"] and ran["own"]))
            messages |= {ran["said"].strip().splitlines()[-1][:120]}
    return {"value": float(wrong), "ok": wrong == 0, "runs": LOST, "done_before": done, "messages": sorted(messages)}


def starved(seed: int) -> dict[str, Any]:
    wrong, messages = 0, set()
    with tempfile.TemporaryDirectory(prefix="pyloca-") as folder:
        path = Path(folder)
        save_bursts(datasets.wifi(N, random_state=0).bursts, path / "b.zarr")
        for _ in range(STARVED):
            with running(path, memory="300MB") as (_, address):
                ran = _fit(path, "--scheduler", address)
            wrong += int(not (ran["code"] == 1 and ran["kept"] and ran["own"]))
            messages |= {(ran["said"].strip().splitlines() or [""])[-1][:120]}
    return {"value": float(wrong), "ok": wrong == 0, "runs": STARVED, "messages": sorted(messages)}


def sockets(workers: int, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="pyloca-") as folder:
        path = Path(folder)
        save_bursts(datasets.wifi(20_000, random_state=0).bursts, path / "b.zarr")
        options = ["--workers", str(workers)] if workers else []
        ran = pyloca("fit", str(path / "b.zarr"), "--max-iter", "60", "--json", "-q", *options)
    other = set(ran["sockets"]) - (LOOPBACK if workers else set())
    used = bool(ran["sockets"]) == bool(workers)
    return {"value": float(len(other)), "ok": not other and used and ran["code"] == 4, "addresses": ran["sockets"]}


ROWS = (
    Row("scheduler killed", 0.0, "runs that ended otherwise", lost, seeds=(0,)),
    Row("worker out of memory", 0.0, "runs that ended otherwise", starved, seeds=(0,)),
    Row("sockets, 2 workers", 0.0, "addresses beyond loopback", lambda seed: sockets(2, seed), seeds=(0,)),
    Row("sockets, no workers", 0.0, "sockets", lambda seed: sockets(0, seed), seeds=(0,)),
)
