"""SIGKILL at random moments over fit and save: whole files or none, and a resumed fit of the same bits."""

from __future__ import annotations

import signal
from functools import partial
from typing import Any

import numpy as np

from benchmarks.faults_of_machines.commands import (
    CHECKPOINT,
    folder,
    fork,
    half_written,
    moment,
    resumed_as_undisturbed,
    send,
)
from benchmarks.rows import Row

TRIALS = {"fast": 60, "paper": 20}


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


ROWS = tuple(
    Row(
        f"SIGKILL at a random moment of fit and save, {solver} solver",
        0.0,
        "failures",
        partial(killed, solver),
        seeds=(0,),
    )
    for solver in TRIALS
)
