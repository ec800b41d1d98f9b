"""SIGTERM, Ctrl-C once and twice, during a fit and during start-up: exit codes, no traceback, nothing lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from typing import Any

import numpy as np

from benchmarks.faults_of_machines.commands import (
    CHECKPOINT,
    MODEL,
    folder,
    fork,
    half_written,
    moment,
    resumed_as_undisturbed,
    send,
)
from benchmarks.rows import Row

TRIALS, AT_START = 20, 10
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
FINISHED = (0, 4)
# from the moment on at which signals are heeded: what Python does before is not ours
START = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from pyloca.__main__ import main
from pyloca._signals import heed
heed()
print("ready", flush=True)
main()
"""


def during_a_fit(numbers: tuple[int, ...], seed: int) -> dict[str, Any]:
    random = np.random.RandomState(seed)
    failures: list[str] = []
    heard = left = trials = 0
    while heard < TRIALS:
        trials += 1
        with folder() as here:
            at = moment("fast", random)
            code = send(fork(here, "fast"), here, at, *numbers)
            words = (here / "words").read_text(encoding="utf-8")
            heard += code not in FINISHED
            saved = (here / CHECKPOINT).exists()
            left += saved
            if code not in (CODES[numbers[0]], *FINISHED):
                failures.append(f"{at}: exit code {code}")
            if "Traceback" in words or "xception" in words:
                failures.append(f"{at}: {words[-300:]}")
            if "\nwhiten" in words and not saved and not (here / MODEL).exists():
                failures.append(f"{at}: no checkpoint")
            if bad := half_written(here):
                failures.append(f"{at}: {', '.join(bad)} not whole")
            if not resumed_as_undisturbed(here, "fast"):
                failures.append(f"{at}: resumed to other bits")
    counts = {"trials": trials, "interrupted": int(heard), "with a checkpoint": int(left)}
    return {"value": float(len(failures)), **counts, "ok": not failures, "failures": failures}


def during_start_up(number: int, seed: int) -> dict[str, Any]:
    random = np.random.RandomState(seed)
    failures: list[str] = []
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    for _ in range(AT_START):
        with folder() as here:
            (here / CHECKPOINT).write_bytes(b"hours of work")
            command = [sys.executable, "-c", START, "fit", "b.npy", "-o", "m.safetensors", "-q"]
            pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            with subprocess.Popen(command, cwd=here, env=environment, **pipes) as child:
                assert child.stdout is not None
                child.stdout.readline()
                at = float(random.uniform(0, 1))
                time.sleep(at)
                child.send_signal(number)
                words = child.communicate()[1]
            if child.returncode != CODES[signal.Signals(number)]:
                failures.append(f"after {at:.2f} s: exit code {child.returncode}")
            if "Traceback" in words or "xception" in words:
                failures.append(f"after {at:.2f} s: {words[-300:]}")
            if (here / CHECKPOINT).read_bytes() != b"hours of work":
                failures.append(f"after {at:.2f} s: the earlier checkpoint is lost")
    return {"value": float(len(failures)), "trials": AT_START, "ok": not failures, "failures": failures}


SENT = {
    "SIGTERM": (signal.SIGTERM,),
    "Ctrl-C": (signal.SIGINT,),
    "Ctrl-C twice": (signal.SIGINT, signal.SIGINT),
}
ROWS = (
    *(Row(f"{name} during a fit", 0.0, "failures", partial(during_a_fit, s), seeds=(0,)) for name, s in SENT.items()),
    *(
        Row(f"{name} during start-up", 0.0, "failures", partial(during_start_up, s[0]), seeds=(0,))
        for name, s in list(SENT.items())[:2]
    ),
)
