"""Bursts by blocks, so that temporary arrays do not grow with their number."""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["blocks"]

BLOCK = 65_536  # bursts whose squares are held at a time


def blocks(n: int) -> Iterator[slice]:
    """Cut n bursts into blocks, in order."""
    return (slice(start, start + BLOCK) for start in range(0, n, BLOCK))
