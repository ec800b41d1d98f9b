"""The paper's own solver, run to its own end: hours.

Ctrl-C ends a fit at its next check, and the results say so; the same command goes on from there.
"""

from __future__ import annotations

import json
import signal
import time
import warnings
from pathlib import Path
from typing import Any

from benchmarks.tables import RESULTS, print_table, write_results
from pyloca import LOCA, TrustWarning, datasets
from pyloca.metrics import stress
from pyloca.paper.experiments import EXPERIMENTS

NAMES = ("mushroom", "sphere")
CHECKPOINTS = Path("out", "paper_solver")


def run_one(name: str, seed: int, earlier: dict[str, Any] | None = None) -> dict[str, Any]:
    """Fit, from the checkpoint if there is one; `earlier` is the result of the run that left it."""
    data = getattr(datasets, name)(random_state=seed)
    stopped = False

    def stop(*_: Any) -> None:
        nonlocal stopped
        stopped = True

    def check(record: dict[str, Any]) -> bool:
        print(f"{name} seed {seed}: epoch {record['iteration']}, held-out {record['best_loss']:.4g}", flush=True)
        return stopped

    CHECKPOINTS.mkdir(parents=True, exist_ok=True)
    checkpoint = CHECKPOINTS / f"{name}-{seed}.checkpoint"
    spent = earlier["cpu_seconds"] if earlier and checkpoint.is_file() else 0.0
    previous = signal.signal(signal.SIGINT, stop)
    cpu = time.process_time()
    try:
        model = LOCA(
            n_components=data.n_components,
            burst_std=data.burst_std,
            random_state=seed,
            callbacks=[check],
            **EXPERIMENTS[name].full.parameters("paper"),
        ).fit(data.bursts, checkpoint=checkpoint)
    finally:
        signal.signal(signal.SIGINT, previous)
    seconds = {"seconds": model.history_[-1]["seconds"], "cpu_seconds": spent + time.process_time() - cpu}
    tests = {f"{name}, {part}": stress(test.X, model.transform(test.Y)) for part, test in data.tests.items()}
    return {
        "stress": stress(data.X, model.transform(data.Y)),
        **tests,
        "epochs": model.n_iter_,
        "ended_by_its_rule": model.converged_,
        **seconds,
        "trust_warnings": list(model.diagnostics_.warnings),
    }


def run(seeds: list[int], names: tuple[str, ...] = NAMES) -> bool:
    warnings.simplefilter("ignore", TrustWarning)  # they are in the results
    for name in names:
        kept = RESULTS / f"paper_solver_{name}.json"
        earlier = json.loads(kept.read_text(encoding="utf-8"))["seeds"] if kept.is_file() else {}
        found = {str(seed): run_one(name, seed, earlier.get(str(seed))) for seed in seeds}
        rows = [
            (
                name,
                seed,
                facts["stress"],
                facts["epochs"],
                facts["seconds"],
                "yes" if facts["ended_by_its_rule"] else "no",
            )
            for seed, facts in found.items()
        ]
        print_table("paper solver", ("data", "seed", "stress", "epochs", "seconds", "ended by its rule"), rows)
        write_results(kept.stem, {"seeds": found})
    return True
