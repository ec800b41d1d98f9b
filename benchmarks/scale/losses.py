"""A scheduler that is lost, workers that run out of memory, TLS, and sockets.

The figure is the number of runs that did not end as they should: with exit code 1, our own message, and the model of an
earlier fit untouched; for sockets, the number of addresses that are not of this machine alone.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.rows import Row
from benchmarks.scale.watched import pyloca, until
from pyloca import datasets
from pyloca.bursts import save_bursts

__all__ = ["ROWS"]

N, FEW, RUNS = 40_000, 6000, 10  # runs of a row
SMALL = ("--max-iter", "800", "--hidden-layers", "10", "-q")
EVALUATIONS = 140  # that workers are asked for by such a fit, at least
LOOPBACK = {"127.0.0.1", "::1"}
# Few bursts stand for many, as in `workers`; a file says how many evaluations the workers have been asked for.
TRAIN_THERE = """
from pathlib import Path
from pyloca.solvers import _descent, _fast, _shards
_shards.MANY = _fast.MANY = 1000
_shards.SHARD = _descent.SHARD = 1024
sums, asked = _shards.Shards.sums, 0
def counted(self, *arguments):
    global asked
    asked += 1
    Path({0!r}).write_text(str(asked))
    return sums(self, *arguments)
_shards.Shards.sums = counted
"""
EARLIER = b"the model of an earlier fit"


@contextmanager
def running(folder: Path, memory: str = "2GB", tls: dict[str, str] | None = None) -> Any:
    """Start a scheduler and a worker; yield the scheduler's process and address."""
    file = folder / "scheduler.json"
    file.unlink(missing_ok=True)
    dask, kept = [sys.executable, "-m", "dask"], ["--scheduler-file", str(file)]
    quiet: dict[str, Any] = {
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.DEVNULL,
        "env": os.environ | {"OMP_NUM_THREADS": "1"} | (tls or {}),
    }
    protocol = "tcp" if tls is None else "tls"
    scheduler = subprocess.Popen(
        [*dask, "scheduler", *kept, "--host", f"{protocol}://127.0.0.1", "--port", "0", "--no-dashboard"],
        **quiet,
    )
    worker = None
    try:
        assert until(file.is_file)
        limits = [*kept, "--host", f"{protocol}://127.0.0.1", "--nthreads", "1"]
        worker = subprocess.Popen([*dask, "worker", *limits, "--no-dashboard", "--memory-limit", memory], **quiet)
        assert until(lambda: len(psutil.Process(worker.pid).children()) > 0)
        yield scheduler, json.loads(file.read_text())["address"]
    finally:
        for process in (worker, scheduler):
            if process is not None:
                for one in psutil.Process(process.pid).children(recursive=True) if process.poll() is None else ():
                    one.kill()
                process.kill()
                process.wait()


def _judged(ran: dict[str, Any], *kept: Path) -> dict[str, Any]:
    """Tell whether a command ended as it should: exit code 1, our own message, earlier files as they were."""
    own = (ran["said"].strip().splitlines() or [""])[-1]
    said = own.startswith("Error: ") and "bug in pyloca" not in own and "Traceback" not in ran["said"]
    whole = all(path.read_bytes() == EARLIER for path in kept)
    return ran | {"as_it_should": ran["code"] == 1 and said and whole, "own": own[:120]}


def _statistics(path: Path, *options: str, **during: Any) -> dict[str, Any]:
    ran = pyloca("statistics", str(path / "many.zarr"), "-o", str(path / "s.zarr"), *options, **during)
    shutil.rmtree(path / "s.zarr.partial", ignore_errors=True)
    judged = _judged(ran)
    return judged | {"as_it_should": judged["as_it_should"] and not (path / "s.zarr").exists()}


def _fit(path: Path, *options: str, **during: Any) -> dict[str, Any]:
    model = path / "model.safetensors"
    model.write_bytes(EARLIER)
    command = ["fit", str(path / "few.zarr"), "-o", str(model), "-d", "2", "--random-state", "0", *SMALL, *options]
    return _judged(pyloca(*command, first=TRAIN_THERE.format(str(path / "asked")), **during), model)


@contextmanager
def _data() -> Any:
    with tempfile.TemporaryDirectory(prefix="pyloca-") as folder:
        path = Path(folder)
        save_bursts(datasets.wifi(N, random_state=0).bursts, path / "many.zarr")
        save_bursts(datasets.wifi(FEW, random_state=0).bursts, path / "few.zarr")
        yield path


def lost(command: str, seed: int) -> dict[str, Any]:
    """Kill the scheduler at a random moment of the pass, or of the training."""
    moments, wrong, killed, messages = random.Random(seed), 0, 0, set()
    with _data() as path:
        for _ in range(RUNS):
            with running(path) as (scheduler, address):
                (path / "asked").unlink(missing_ok=True)
                after = moments.randint(1, EVALUATIONS) if command == "fit" else moments.uniform(0.0, 1.0)

                def kill(process: psutil.Process, after: float = after, scheduler: Any = scheduler) -> None:
                    if command == "fit":
                        until(lambda: not process.is_running() or _asked(path) >= after, 600.0)
                    else:
                        until(lambda: not process.is_running() or (path / "s.zarr.partial").exists(), 600.0)
                        time.sleep(after)
                    scheduler.kill()

                ran = (_fit if command == "fit" else _statistics)(path, "--scheduler", address, during=kill)
            killed += int(ran["code"] != 0)  # a pass may be quicker
            wrong += int(ran["code"] != 0 and not ran["as_it_should"])
            messages |= {ran["own"]}
            shutil.rmtree(path / "s.zarr", ignore_errors=True)
    ok = wrong == 0 and killed >= RUNS - 2
    return {"value": float(wrong), "ok": ok, "runs": RUNS, "lost": killed, "messages": sorted(messages)}


def _asked(path: Path) -> int:
    with suppress(OSError, ValueError):  # not there yet, or just being written
        return int((path / "asked").read_text())
    return 0


def starved(seed: int) -> dict[str, Any]:
    """Give the worker less memory than it needs to begin with: its nanny kills it again and again."""
    wrong, messages = 0, set()
    with _data() as path:
        for _ in range(RUNS):
            with running(path, memory="300MB") as (_, address):
                ran = _statistics(path, "--scheduler", address)
            wrong += int(not ran["as_it_should"])
            messages |= {ran["own"]}
    return {"value": float(wrong), "ok": wrong == 0, "runs": RUNS, "messages": sorted(messages)}


def crowded(seed: int) -> dict[str, Any]:
    """Take all memory of the only worker at a random moment of the training, by a task of another client.

    Its nanny kills the worker, and Dask starts another, where that task does the same. The fit may end with our error,
    or get through; then its coordinates have the same bits as ever.
    """
    moments, wrong, survived, killed, messages = random.Random(seed), 0, 0, 0, set()
    with _data() as path:
        embedding = ("--embedding", str(path / "z.npy"))
        expected = _coordinates(path, *SMALL)
        for _ in range(RUNS):
            (path / "asked").unlink(missing_ok=True)
            (path / "z.npy").unlink(missing_ok=True)
            ends: list[str] = []
            with running(path) as (_, address):
                during = partial(_crowd, path, address, moments.randint(1, EVALUATIONS), ends)
                ran = _fit(path, *embedding, "--scheduler", address, during=during)
                until(partial(len, ends))
            through = ran["code"] in (0, 4) and np.array_equal(np.load(path / "z.npy", allow_pickle=False), expected)
            survived += int(through)
            wrong += int(not through and not ran["as_it_should"])
            killed += int("KilledWorker" in ends)
            messages |= set() if through else {ran["own"]}
    facts = {"runs": RUNS, "killed": killed, "survived": survived, "messages": sorted(messages)}
    return {"value": float(wrong), "ok": wrong == 0 and killed == RUNS, **facts}


def _crowd(path: Path, address: str, after: int, ends: list[str], process: psutil.Process) -> None:
    """Run a task that takes all memory once so many evaluations were asked for; tell how the task ended."""
    from distributed import Client

    until(lambda: not process.is_running() or _asked(path) >= after, 600.0)
    try:
        with Client(address) as client:
            ends.append(type(client.submit(_take_all, pure=False).exception(timeout=300)).__name__)
    except Exception as error:  # the fit has ended, and the scheduler with it
        ends.append(type(error).__name__)


def _take_all() -> None:
    taken = []
    while True:
        taken.append(bytearray(os.urandom(1 << 20)) * 50)
        time.sleep(0.02)


def encrypted(seed: int) -> dict[str, Any]:
    """Fit over TLS, with certificates made on the spot; and be refused without one, or with another's."""
    wrong: list[str] = []
    with _data() as path:
        ours, others = _certificate(path, "ours"), _certificate(path, "others")
        here = _coordinates(path, *SMALL)
        with running(path, tls=ours) as (_, address):
            there = _coordinates(path, *SMALL, "--scheduler", address, environment=ours)
            if not address.startswith("tls://") or _asked(path) == 0 or not np.array_equal(here, there):
                wrong.append("other coordinates than without workers")
            for name, environment in (("no certificate", {}), ("another certificate", others)):
                ran = _fit(path, "--scheduler", address, environment=environment)
                if not ran["as_it_should"]:
                    wrong.append(f"{name}: {ran['own']}")
            plain = address.replace("tls://", "tcp://")
            ran = _fit(path, "--scheduler", plain, environment=ours)
            if not ran["as_it_should"]:
                wrong.append(f"not encrypted: {ran['own']}")
    return {"value": float(len(wrong)), "ok": not wrong, "runs": 4, "messages": wrong}


def _coordinates(path: Path, *options: str, **environment: Any) -> Any:
    command = ["fit", str(path / "few.zarr"), "-d", "2", "--random-state", "0", "--embedding", str(path / "z.npy")]
    ran = pyloca(*command, *options, first=TRAIN_THERE.format(str(path / "asked")), **environment)
    assert ran["code"] in (0, 4), ran["said"]
    return np.load(path / "z.npy", allow_pickle=False)


def _certificate(path: Path, name: str) -> dict[str, str]:
    """Make a certificate that vouches for itself; return Dask's settings for it, as variables of the environment."""
    key, certificate = path / f"{name}-key.pem", path / f"{name}.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    settings = {"CA_FILE": certificate}
    for role in ("CLIENT", "SCHEDULER", "WORKER"):
        settings |= {f"{role}__CERT": certificate, f"{role}__KEY": key}
    return {f"DASK_DISTRIBUTED__COMM__TLS__{name}": str(value) for name, value in settings.items()} | {
        "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True"
    }


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
    *(
        Row(f"scheduler killed, {name}", 0.0, "runs that ended otherwise", partial(lost, name), seeds=(0,))
        for name in ("statistics", "fit")
    ),
    Row("worker out of memory, statistics", 0.0, "runs that ended otherwise", starved, seeds=(0,)),
    Row("worker out of memory, fit", 0.0, "runs that ended otherwise", crowded, seeds=(0,)),
    Row("TLS", 0.0, "runs that ended otherwise", encrypted, seeds=(0,)),
    Row("sockets, 2 workers", 0.0, "addresses beyond loopback", lambda seed: sockets(2, seed), seeds=(0,)),
    Row("sockets, no workers", 0.0, "sockets", lambda seed: sockets(0, seed), seeds=(0,)),
)
