"""To be written."""

from __future__ import annotations

from benchmarks.rows import Row

ROWS: tuple[Row, ...] = ()
