"""Noise of any shape: given, from static bursts, estimated."""

from __future__ import annotations

from benchmarks.dirty._row import Row

ROWS: tuple[Row, ...] = ()
