"""Measurements as they come, beside the same bursts clean: noise, spikes, strays, gaps, recordings, spots.

One module per subject; each has `ROWS`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from benchmarks.dirty import clean, columns, noise, perturbations, recordings, scale, spikes, spots, strays
from benchmarks.dirty._row import Row
from benchmarks.tables import RESULTS, commit, print_table, summary, write_results

__all__ = ["ROWS", "run"]

SUBJECTS = (clean, spikes, noise, strays, columns, perturbations, recordings, scale, spots)
ROWS: tuple[Row, ...] = tuple(row for subject in SUBJECTS for row in subject.ROWS)


def run(seeds: list[int], only: str = "") -> bool:
    """Measure all rows, or those whose names contain one of the words in `only`, beside earlier ones in the file."""
    words = [word for word in re.split(r",(?! )", only) if word]  # names of rows have commas, with a space after them
    rows = [row for row in ROWS if not words or any(word in row.name for word in words)]
    kept = RESULTS / "dirty.json"
    facts: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))["rows"] if only and kept.is_file() else {}
    for row in rows:
        measured = []
        for seed in seeds:
            measured.append(row.measure(seed))
            told = ", ".join(f"{key} {_short(value)}" for key, value in measured[-1].items())
            print(f"{row.name}, seed {seed}: {told}", flush=True)
        facts[row.name] = {
            **summary([one["value"] for one in measured], row.bar),
            "what": row.what,
            "seed_list": seeds,
            "commit": commit(),
            "findings": _findings(measured),
            "runs": measured,
        }
        facts = {row.name: facts[row.name] for row in ROWS if row.name in facts}  # in the order of the subjects
        write_results("dirty", {"rows": facts}, quiet=True)  # row by row: a long run may end before its last
    table = [facts[row.name] | {"name": row.name, "holds": "yes" if facts[row.name]["holds"] else "NO"} for row in rows]
    keys = ("name", "what", "bar", "median", "worst", "holds", "findings")
    title = f"dirty measurements, seeds {seeds[0]} to {seeds[-1]}"
    print_table(title, ("what came", *keys[1:]), [[line[key] for key in keys] for line in table])
    print("written: benchmarks/results/dirty.json")
    return all(facts[row.name]["holds"] for row in rows)


def _findings(runs: list[dict[str, Any]]) -> str:
    names = [name for run in runs for name in run.get("findings", ())]
    return ", ".join(f"{name} {names.count(name)}×" for name in sorted(set(names))) or "none"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
