"""Score, transform and fit from threads, forked and spawned processes: the numbers of one thread."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from torch import nn

from benchmarks.faults_of_machines.commands import STD, bursts
from benchmarks.rows import Row
from pyloca import LOCA

WORKERS = (2, 4, 8)
SEEDS, THREADS = 3, 4
POINTS = np.random.RandomState(0).uniform(size=(2000, 3))
HANG = 300.0  # seconds


@cache
def own() -> nn.Module:
    """A module of one's own; made once, because threads that seed PyTorch in turns would draw other weights."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 10), nn.Tanh(), nn.Linear(10, 2))


def fitted(kind: str, seed: int) -> LOCA:
    options: dict[str, Any] = {
        "fast": {},
        "paper": {"solver": "paper", "max_iter": 5},
        "own module": {"encoder": own()},
    }
    settings = {"burst_std": STD, "hidden_layers": (8,), "random_state": seed, "max_iter": 60} | options[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LOCA(2, **settings).fit(bursts()[:60])


@cache
def model() -> LOCA:
    return fitted("fast", 0)


def scored(_: int) -> bytes:
    return np.float64(model().score(bursts())).tobytes()


def transformed(_: int) -> bytes:
    embedded, trust = model().transform(POINTS, return_trust=True)
    return embedded.tobytes() + trust.tobytes()


def trained(kind: str, seed: int) -> bytes:
    return fitted(kind, seed % SEEDS).embedding_.tobytes()


def from_threads(calls: int, call: Callable[[int], bytes], _seed: int) -> dict[str, Any]:
    """The same calls from 2, 4 and 8 threads, and from joblib's."""
    warnings.simplefilter("ignore")  # of the process: filters of single threads would be put back in turns
    own()
    expected = [call(i) for i in range(SEEDS)]
    part, failures = calls // (len(WORKERS) + 1), 0
    for workers in WORKERS:
        with ThreadPoolExecutor(workers) as pool:
            failures += sum(
                found != expected[i % SEEDS] for i, found in enumerate(pool.map(partial(_safe, call), range(part)))
            )
    with_joblib = Parallel(n_jobs=4, backend="threading")(delayed(_safe)(call, i) for i in range(part))
    failures += sum(found != expected[i % SEEDS] for i, found in enumerate(with_joblib))
    trials = {"trials": part * (len(WORKERS) + 1), "threads": [*WORKERS, "4 of joblib"]}
    return {"value": float(failures), **trials, "ok": failures == 0}


def _safe(call: Callable[[int], bytes], i: int) -> bytes:
    try:
        return call(i)
    except Exception as error:  # any of them is a failure
        return repr(error).encode()


def everything(_: int) -> bytes:
    return scored(0) + transformed(0) + trained("fast", 0)


def from_processes(method: str, trials: int, _seed: int) -> dict[str, Any]:
    """Children after threads have computed in the parent, with two threads of PyTorch; these are idle by then."""
    before, failures = torch.get_num_threads(), 0
    torch.set_num_threads(2)
    try:
        expected = everything(0)
        with ThreadPoolExecutor(4) as pool:
            for _ in range(trials):
                list(pool.map(transformed, range(4)))
                failures += not _answers_in_child(method, expected)
    finally:
        torch.set_num_threads(before)
    return {"value": float(failures), "trials": trials, "ok": failures == 0}


def forked_beside(kind: str, trials: int, seed: int) -> dict[str, Any]:
    """Children of a process whose four other threads transform, score and fit just then, or have just ended."""
    warnings.simplefilter("ignore")
    moments, expected, over, failures = np.random.RandomState(seed), answers(), threading.Event(), 0

    def work() -> None:
        while not over.is_set():
            answers()
            if kind == "fit":
                fitted("fast", 0)
            if kind == "end":
                return

    def started() -> list[threading.Thread]:
        threads = [threading.Thread(target=work, daemon=True) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        return threads

    threads = started()
    for _ in range(trials):
        if kind == "end":
            for thread in threads:
                thread.join()
        else:
            time.sleep(float(moments.uniform(0, 0.01)))
        failures += not _forked(expected)
        if kind == "end":
            threads = started()
    over.set()
    for thread in threads:
        thread.join()
    return {"value": float(failures), "trials": trials, "ok": failures == 0}


def answers() -> bytes:
    return scored(0) + transformed(0)


def _forked(expected: bytes) -> bool:
    """Whether a child that is forked now computes the same, and does not hang."""
    child = os.fork()
    if child == 0:
        os._exit(0 if answers() == expected else 1)
    end = time.monotonic() + HANG / 5
    while time.monotonic() < end:
        if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _answers_in_child(method: str, expected: bytes) -> bool:
    context = multiprocessing.get_context(method)
    mine, other = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(other,))  # type: ignore[attr-defined]
    child.start()
    other.close()
    try:
        return bool(mine.poll(HANG) and mine.recv() == expected)
    except EOFError:  # it died
        return False
    finally:
        child.kill()
        child.join()


def _answer(connection: Any) -> None:
    connection.send(everything(0))


BESIDE = {"transform": 300, "fit": 300, "end": 400}  # what other threads do: as many forks
FITS = {"fast": 200, "paper": 100, "own module": 100}
ROWS = (
    Row("score from threads", 0.0, "failures", partial(from_threads, 1000, scored), seeds=(0,)),
    Row("transform from threads", 0.0, "failures", partial(from_threads, 1000, transformed), seeds=(0,)),
    *(
        Row(f"fit from threads, {kind}", 0.0, "failures", partial(from_threads, n, partial(trained, kind)), seeds=(0,))
        for kind, n in FITS.items()
    ),
    Row("score, transform and fit in a forked child", 0.0, "failures", partial(from_processes, "fork", 40), seeds=(0,)),
    *(
        Row(f"fork while threads {kind}", 0.0, "failures", partial(forked_beside, kind, n), seeds=(0,))
        for kind, n in BESIDE.items()
    ),
    Row(
        "score, transform and fit in a spawned child", 0.0, "failures", partial(from_processes, "spawn", 3), seeds=(0,)
    ),
)
