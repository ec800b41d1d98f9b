"""Processor seconds of a fit on one thread: against the paper solver, against earlier code, and beside busy processes.

Ratios are measured in one run, in turn, so that a noisy machine slows both sides alike.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.before import ROOT, run_with, source_of
from benchmarks.tables import print_table, write_results
from pyloca import LOCA, TrustWarning, datasets

PAPER_EPOCHS = 6000  # three learning rates of at least 2000 idle epochs each: its stopping rule cannot take fewer
TIMED_EPOCHS = 10
PAPER_BAR, BEFORE_BAR, SMALL_BAR, BUSY_BAR, TRANSFORM_BAR = 500, 0.5, 1.0, 2.5, 1e6
BEFORE = "44910d8"  # the last commit before sizes and speed were worked on
POINTS = 1_000_000

# One fit in a process of its own: processor and wall seconds, and its error.
FIT = """
import json, sys, time, warnings
from pyloca import LOCA, datasets
from pyloca.metrics import stress
name, n, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
warnings.simplefilter("ignore")
make = getattr(datasets, name)
data = make(n_bursts=n, random_state=seed) if n else make(random_state=seed)
model = LOCA(2, burst_std=data.burst_std, random_state=seed)
LOCA(2, burst_std=data.burst_std, random_state=0, max_iter=2).fit(data.bursts[:60])  # warm up
start, wall = time.process_time(), time.perf_counter()
model.fit(data.bursts)
print(json.dumps({
    "processor": time.process_time() - start, "wall": time.perf_counter() - wall,
    "stress": stress(data.X, model.transform(data.Y)), "iterations": model.n_iter_,
}))
"""


def run(seeds: list[int]) -> bool:
    warnings.simplefilter("ignore", TrustWarning)  # a few epochs of the paper solver cannot be trusted, nor need be
    now = ROOT / "src"
    facts: dict[str, Any] = {"before": BEFORE, "seed_list": seeds}
    with source_of(BEFORE) as before:
        for name, size in (("mushroom", 0), ("wifi", 4000)):
            pairs = [[run_with(code, FIT, name, str(size), str(seed)) for code in (now, before)] for seed in seeds]
            facts[name] = [{"seed": seed, "now": a, "before": b} for seed, (a, b) in zip(seeds, pairs, strict=True)]
            for row in facts[name]:
                told = " ".join(f"{key} {row['now'][key]:.3g}/{row['before'][key]:.3g}" for key in row["now"])
                print(f"{name}, seed {row['seed']}, now/before: {told}", flush=True)
    facts["epoch_seconds"] = _paper_epoch()
    fast = statistics.median(row["now"]["processor"] for row in facts["mushroom"])
    facts["small"] = [run_with(now, FIT, "mushroom", "60", str(seed)) for seed in seeds]
    facts["busy"] = [_beside_busy(now, seed) for seed in seeds[:3]]
    ratio = {name: [row["now"]["processor"] / row["before"]["processor"] for row in facts[name]] for name in _COMPARED}
    error = {name: [row["now"]["stress"] / row["before"]["stress"] for row in facts[name]] for name in _COMPARED}
    small = [row["processor"] for row in facts["small"]]
    busy = [row["busy"] / row["idle"] for row in facts["busy"]]
    rows = [
        ("mushroom: paper solver / fit", facts["epoch_seconds"] * PAPER_EPOCHS / fast, "", f">= {PAPER_BAR}"),
        ("wifi, N = 4000: fit / fit before", *_middle(ratio["wifi"]), f"<= {BEFORE_BAR}"),
        ("mushroom: fit / fit before", *_middle(ratio["mushroom"]), ""),
        ("wifi: stress / stress before", *_middle(error["wifi"]), ""),
        ("mushroom: stress / stress before", *_middle(error["mushroom"]), ""),
        ("mushroom, N = 60: seconds", *_middle(small), f"<= {SMALL_BAR:g}"),
        ("mushroom, one busy process per core beside it: wall / idle", *_middle(busy), f"<= {BUSY_BAR}"),
        ("transform: points a second", _transform_rate(), "", f">= {TRANSFORM_BAR:.0e}"),
    ]
    print_table("speed, processor seconds on one thread", ("what", "median", "worst", "bar"), rows)
    holds = {
        "paper": rows[0][1] >= PAPER_BAR,
        "wifi": rows[1][1] <= BEFORE_BAR,
        "small": rows[5][1] <= SMALL_BAR,
        "busy": rows[6][1] <= BUSY_BAR,
        "transform": rows[7][1] >= TRANSFORM_BAR,
    }
    facts |= {"rows": rows, "holds": holds}
    write_results("speed", facts)
    return all(holds.values())


_COMPARED = ("mushroom", "wifi")


def _middle(values: list[float]) -> tuple[float, float]:
    return statistics.median(values), max(values)


def _paper_epoch() -> float:
    """Processor seconds of one epoch of the paper solver, its set-up taken out by a fit of fewer epochs."""
    data = datasets.mushroom(random_state=0)
    options = {"n_components": 2, "burst_std": data.burst_std, "random_state": 0, "solver": "paper"}
    LOCA(**options, max_iter=2).fit(data.bursts)  # warm up
    seconds = []
    for epochs in (2, 2 + TIMED_EPOCHS):
        start = time.process_time()
        LOCA(**options, max_iter=epochs).fit(data.bursts)
        seconds.append(time.process_time() - start)
    return (seconds[1] - seconds[0]) / TIMED_EPOCHS


def _beside_busy(source: Path, seed: int) -> dict[str, float]:
    """Wall seconds of a fit with the threads that the user has, alone and beside one busy process per core."""
    environment = {key: value for key, value in os.environ.items() if not key.endswith("_NUM_THREADS")}
    environment["PYTHONPATH"] = str(source)

    def wall() -> float:
        command = [sys.executable, "-c", FIT, "mushroom", "500", str(seed)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return float(json.loads(done.stdout.splitlines()[-1])["wall"])

    idle = wall()
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        return {"idle": idle, "busy": wall()}
    finally:
        for other in others:
            other.kill()
            other.wait()


def _transform_rate() -> float:
    data = datasets.mushroom(n_bursts=200, n_points=20, random_state=0)
    model = LOCA(2, burst_std=data.burst_std, random_state=0, max_iter=20).fit(data.bursts)
    points = np.random.RandomState(0).uniform(-1, 1, (POINTS, 2))
    model.transform(points)
    rates = []
    for _ in range(5):
        start = time.perf_counter()
        model.transform(points)
        rates.append(POINTS / (time.perf_counter() - start))
    return statistics.median(rates)
