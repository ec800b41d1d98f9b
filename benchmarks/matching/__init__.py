"""Several instruments, one coordinate system: anchors, shapes, overlaps, fusion, drift and rivals.

One module per subject; each has `ROWS`. Fits are made once per seed and reused between rows. A run also draws the
figure of docs/matching.md.
"""

from __future__ import annotations

from benchmarks.matching import anchored, drift, figure, fusion, rivals, shape
from benchmarks.rows import Row, run_rows

__all__ = ["ROWS", "run"]

SUBJECTS = (anchored, shape, fusion, drift, rivals)
ROWS: tuple[Row, ...] = tuple(row for subject in SUBJECTS for row in subject.ROWS)


def run(seeds: list[int], only: str = "") -> bool:
    held = run_rows("matching", "matching", ROWS, seeds, only)
    figure.draw()
    return held
