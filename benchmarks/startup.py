"""How long `pyloca --help`, `--version` and wrong usage take, against `python -c "import click"` in the same run."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from typing import Any

from benchmarks.tables import print_table, write_results

BAR = 4.0  # × the time of importing click
RUNS = 15
BASE = ("-c", "import click")
CALLS: dict[str, tuple[str, ...]] = {
    "pyloca --help": ("--help",),
    "pyloca --version": ("--version",),
    "pyloca fit --help": ("fit", "--help"),
    "unknown option": ("fit", "data.csv", "--frobnicate"),
    "missing argument": ("fit",),
    "unknown command": ("fti",),
    "unknown experiment": ("reproduce", "mushrom"),
    "nothing to keep": ("fit", "data.csv"),
}


def processor_seconds(*arguments: str) -> float:
    """User and system time of a process of its own: a busy machine does not change it much."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(_seeds: list[int]) -> bool:
    commands = {"import click": BASE} | {name: ("-m", "pyloca", *call) for name, call in CALLS.items()}
    # Turn by turn, so that whatever else the machine does is spread over all of them; the first turn fills caches.
    turns = [{name: processor_seconds(*call) for name, call in commands.items()} for _ in range(RUNS + 1)][1:]
    base = statistics.median(turn["import click"] for turn in turns)
    rows: dict[str, Any] = {}
    for name in CALLS:
        seconds = statistics.median(turn[name] for turn in turns)
        rows[name] = {"seconds": seconds, "ratio": seconds / base, "holds": seconds <= BAR * base}
    print_table(
        f'start-up, median of {RUNS} runs; "import click" takes {base:.3f} s of processor time (bar: {BAR:g} ×)',
        ("call", "seconds", "ratio", "holds"),
        [(name, facts["seconds"], facts["ratio"], "yes" if facts["holds"] else "NO") for name, facts in rows.items()],
    )
    write_results("startup", {"import_click": base, "rows": rows, "bar": BAR, "runs": RUNS})
    return all(facts["holds"] for facts in rows.values())
