"""Measurements as they come, beside the same bursts clean: noise, spikes, strays, gaps, recordings, spots.

One module per subject; each has `ROWS`.
"""

from __future__ import annotations

from benchmarks.dirty import clean, columns, noise, perturbations, recordings, scale, spikes, spots, strays
from benchmarks.rows import Row, run_rows

__all__ = ["ROWS", "run"]

SUBJECTS = (clean, spikes, noise, strays, columns, perturbations, recordings, scale, spots)
ROWS: tuple[Row, ...] = tuple(row for subject in SUBJECTS for row in subject.ROWS)


def run(seeds: list[int], only: str = "") -> bool:
    return run_rows("dirty", "dirty measurements", ROWS, seeds, only)
