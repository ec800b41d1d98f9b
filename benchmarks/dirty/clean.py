"""Clean data through all of this: nothing may change."""

from __future__ import annotations

from benchmarks.dirty._row import Row

ROWS: tuple[Row, ...] = ()
