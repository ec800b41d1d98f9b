"""How a fit changes with its size: bursts N, features D, dimensions k with few points M.

One module per subject; each has `ROWS`.
"""

from __future__ import annotations

from benchmarks.rows import Row, run_rows
from benchmarks.sizes import bursts, dimensions, features

__all__ = ["ROWS", "run"]

SUBJECTS = (bursts, dimensions, features)
ROWS: tuple[Row, ...] = tuple(row for subject in SUBJECTS for row in subject.ROWS)


def run(seeds: list[int], only: str = "") -> bool:
    return run_rows("sizes", "sizes", ROWS, seeds, only)
