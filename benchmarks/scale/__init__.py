"""Beyond memory and beyond one process: sizes on Zarr, workers that are killed, a scheduler that is lost, sockets.

One module per subject; each has `ROWS`. Runs start processes of their own and watch all that these start.
"""

from __future__ import annotations

from benchmarks.rows import Row, run_rows
from benchmarks.scale import constants, losses, sizes, workers

__all__ = ["ROWS", "run"]

SUBJECTS = (sizes, workers, losses, constants)
ROWS: tuple[Row, ...] = tuple(row for subject in SUBJECTS for row in subject.ROWS)


def run(seeds: list[int], only: str = "") -> bool:
    return run_rows("scale", "scale", ROWS, seeds, only)
