"""What machines do to a fit: kills, signals, threads, forks, and another rounding.

One module per subject; each has `ROWS`. A figure is the number of failures in as many trials as the facts tell.
"""

from __future__ import annotations

from benchmarks.faults_of_machines import bits, kills, signals, threads
from benchmarks.rows import Row, run_rows

__all__ = ["ROWS", "run"]

SUBJECTS = (kills, signals, threads, bits)
ROWS: tuple[Row, ...] = tuple(row for subject in SUBJECTS for row in subject.ROWS)


def run(seeds: list[int], only: str = "") -> bool:
    return run_rows("faults_of_machines", "faults of machines", ROWS, seeds, only)
