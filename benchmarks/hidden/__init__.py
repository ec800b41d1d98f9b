"""Verdicts on measurements that no threshold was set on: other maps, sizes, tails and shapes, drawn anew by every seed.

One module per subject; each has `ROWS`. A seed is right when a fit with a stress of at most 1 % of the variance has no
finding, and a worse one has one that names a cause which the data have. Faults of a recording (`rig`) must
be named, with their sensor or bursts.
"""

from __future__ import annotations

from benchmarks.hidden import instruments, maps, rig
from benchmarks.rows import Row, run_rows

__all__ = ["ROWS", "run"]

ROWS: tuple[Row, ...] = (*maps.ROWS, *instruments.ROWS, *rig.ROWS)


def run(seeds: list[int], only: str = "") -> bool:
    return run_rows("hidden", "hidden", ROWS, seeds, only)
