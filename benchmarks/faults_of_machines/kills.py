"""SIGKILL at random moments over statistics, fit and save: whole files or none, and the same bits when begun again."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.faults_of_machines.commands import (
    CHECKPOINT,
    EARLY,
    folder,
    fork,
    fork_command,
    half_written,
    moment,
    resumed_as_undisturbed,
    running,
    send,
    wait,
)
from benchmarks.rows import Row
from pyloca import datasets
from pyloca.bursts import Bursts, save_bursts
from pyloca.errors import BurstError
from pyloca.geometry import read_statistics

TRIALS = {"fast": 60, "paper": 20}
PASSES, N, M, PARTS = 30, 4000, 8, 8
STATISTICS = ("statistics", "b.zarr", "-o", "s.zarr")
KEPT = 2 * PARTS  # files: a pass looks at every part twice


def killed(solver: str, seed: int) -> dict[str, Any]:
    random = np.random.RandomState(seed)
    failures: list[str] = []
    dead = left = trials = 0
    while dead < TRIALS[solver]:
        trials += 1
        with folder() as here:
            at = moment(solver, random)
            code = send(fork(here, solver), here, at, signal.SIGKILL)
            dead += code == -signal.SIGKILL
            left += (here / CHECKPOINT).exists()
            if bad := half_written(here):
                failures.append(f"{at}: {', '.join(bad)} not whole")
            if not resumed_as_undisturbed(here, solver):
                failures.append(f"{at}: resumed to other bits")
    counts = {"trials": trials, "killed": int(dead), "with a checkpoint": int(left)}
    return {"value": float(len(failures)), **counts, "ok": not failures, "failures": failures}


def killed_statistics(seed: int) -> dict[str, Any]:
    """Kill ``pyloca statistics`` some time after it has kept so many parts; the same command must go on from them.

    The last moments lie in the writing of the folder, and after it.
    """
    random, failures = np.random.RandomState(seed), []
    dead = left = trials = 0
    while dead < PASSES:
        trials += 1
        with store() as here:
            kept = int(random.randint(KEPT + 1))
            seconds = float(random.uniform(0, 0.02 if kept < KEPT else 0.2))
            code = _kill(fork_command(here, *STATISTICS), here, kept, seconds)
            dead += code == -signal.SIGKILL
            found, at = len(_kept(here)), f"{1000 * seconds:.0f} ms after {kept} parts"
            left += found > 0
            if (here / "s.zarr").exists() and statistics_bits(here) != undisturbed():
                failures.append(f"{at}: the folder is there and not whole")
            before = {path.name: path.stat().st_mtime_ns for path in _kept(here)}
            code, again = _watched(fork_command(here, *STATISTICS), here, before)
            if code != 0 or statistics_bits(here) != undisturbed():
                failures.append(f"{at}: other bits, exit code {code}")
            if again:
                failures.append(f"{at}: {again} finished parts were computed again")
            if others := {path.name for path in here.iterdir()} - {"b.zarr", "s.zarr", "words", EARLY}:
                failures.append(f"{at}: {', '.join(sorted(others))} left behind")
    counts = {"trials": trials, "killed": int(dead), "with finished parts": int(left)}
    return {"value": float(len(failures)), **counts, "ok": not failures, "failures": failures}


@contextmanager
def store() -> Iterator[Path]:
    """Make a folder with bursts in Zarr; passes over them are cut into a few parts."""
    parts = Bursts._parts
    size = N * M * 2 // PARTS
    Bursts._parts = lambda self, _, *, cut=False: parts(self, size, cut=cut)  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as name:
            save_bursts(datasets.mushroom(N, M, random_state=0).bursts.without_perturbations(), Path(name, "b.zarr"))
            yield Path(name)
    finally:
        Bursts._parts = parts  # type: ignore[method-assign]


@cache
def undisturbed() -> bytes:
    with store() as here:
        assert wait(fork_command(here, *STATISTICS)) == 0, (here / "words").read_text(encoding="utf-8")
        return statistics_bits(here)


def statistics_bits(here: Path) -> bytes:
    """All numbers of the folder; b"" if it cannot be read."""
    try:
        found = read_statistics(here / "s.zarr")
    except BurstError:
        return b""
    arrays = (found.means, found.tangents, found.counts, found.residuals, found.set_aside)
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


def _kept(here: Path) -> list[Path]:
    try:
        return list((here / "s.zarr.partial").iterdir())
    except FileNotFoundError:
        return []


def _kill(child: int, here: Path, kept: int, seconds: float) -> int:
    while running(child) and len(_kept(here)) < kept:
        time.sleep(0.001)
    time.sleep(seconds)
    if running(child):
        os.kill(child, signal.SIGKILL)
    return wait(child)


def _watched(child: int, here: Path, before: dict[str, int]) -> tuple[int, int]:
    """Wait for a child; return its exit code, and how many of the parts that were there it has written again."""
    again: set[str] = set()
    while running(child):
        for path in _kept(here):
            try:
                again |= {path.name} if path.stat().st_mtime_ns != before.get(path.name, -1) else set()
            except FileNotFoundError:  # the folder is just being removed
                continue
        time.sleep(0.001)
    return wait(child), len(again & set(before))


ROWS = (
    Row("SIGKILL at a random moment of statistics", 0.0, "failures", killed_statistics, seeds=(0,)),
    *(
        Row(
            f"SIGKILL at a random moment of fit and save, {solver} solver",
            0.0,
            "failures",
            partial(killed, solver),
            seeds=(0,),
        )
        for solver in TRIALS
    ),
)
