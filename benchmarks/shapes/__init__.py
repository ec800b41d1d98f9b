"""Shapes that nobody tuned on: closed and coiled ones, bad conditions, kinks, rough decoders.

One module per subject; each has `ROWS`.
"""

from __future__ import annotations

from benchmarks.rows import Row, run_rows
from benchmarks.shapes import alarms, closed, coils, conditions, decoder

__all__ = ["ROWS", "run"]

SUBJECTS = (closed, coils, conditions, alarms, decoder)
ROWS: tuple[Row, ...] = tuple(row for subject in SUBJECTS for row in subject.ROWS)


def run(seeds: list[int], only: str = "") -> bool:
    return run_rows("shapes", "shapes", ROWS, seeds, only)
