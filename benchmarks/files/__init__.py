"""Faults of files: what happens when a write fails, or a file is not what it should be."""

from __future__ import annotations

import json
import re
import resource
import time
from typing import Any

from benchmarks.files import reading, states, writing
from benchmarks.files.lab import lab
from benchmarks.tables import RESULTS, commit, print_table, write_results

__all__ = ["run"]

ROWS = writing.ROWS | reading.ROWS | states.ROWS


def run(seeds: list[int], only: str = "") -> bool:
    """Run all rows, or those whose names contain one of the words in `only`; the first seed draws what is random."""
    words = [word for word in re.split(r",(?! )", only) if word]  # names of rows have commas, with a space after them
    kept = RESULTS / "faults_of_files.json"
    facts: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))["rows"] if words and kept.is_file() else {}
    shown, asked = [], []
    for name, row in ROWS.items():
        if words and not any(word in name for word in words):
            continue
        before = _seconds()
        with lab() as folder:
            tried, faults = row(folder, seeds[0])
        seconds = _seconds() - before
        for fault in faults:
            print(f"{name}: {fault}", flush=True)
        facts[name] = {"tried": tried, "faults": faults, "processor_seconds": round(seconds, 1), "commit": commit()}
        shown.append((name, tried, tried - len(faults) if tried else 0, round(seconds)))
        asked.append(facts[name])
        facts = {name: facts[name] for name in ROWS if name in facts}  # in the order of the table
        write_results("faults_of_files", {"seed": seeds[0], "rows": facts}, quiet=True)  # a long run may end early
        print(f"{name}: {tried} tried, {len(faults)} faults, {time.strftime('%H:%M:%S')}", flush=True)
    print_table("faults of files", ("what", "tried", "as it should be", "processor s"), shown)
    return all(row["tried"] and not row["faults"] for row in asked)


def _seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
