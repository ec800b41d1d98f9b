"""Many features: processor seconds on one core, and stress beside that of the alignment.

Both are near what the bursts allow, and their errors are of one kind: which is better differs from seed to seed.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.fitting import aligned, fit_facts
from benchmarks.rows import Row
from benchmarks.shapes.decoder import spot_pictures
from pyloca.geometry import BurstStatistics

__all__ = ["ROWS"]

BURSTS, POINTS, BURST_STD = 500, 30, 0.01


@cache
def _measure(side: int, seed: int) -> dict[str, Any]:
    """Fit pictures of a spot, side × side pixels."""
    random = np.random.RandomState(seed)
    X = random.uniform(size=(BURSTS, 2))
    places = X[:, None] + BURST_STD * random.standard_normal((BURSTS, POINTS, 2))
    bursts = spot_pictures(side, 0.12)(places)
    with threadpool_limits(1):
        facts, _ = fit_facts(X, bursts, seed, burst_std=BURST_STD)
        start = aligned(X, BurstStatistics.from_bursts(bursts, 2), 2, BURST_STD, seed)
    facts.pop("said", None)
    return facts | {"alignment": start}


def _seconds(side: int, seed: int) -> dict[str, Any]:
    facts = _measure(side, seed)
    return facts | {"value": facts.get("seconds", float("inf"))}


def _stress(side: int, seed: int) -> dict[str, Any]:
    facts = _measure(side, seed)
    return facts | {"value": facts["stress"] / facts["alignment"]}


def _rows(name: str, side: int, bar: float, seeds: tuple[int, ...] | None = None) -> tuple[Row, Row]:
    return (
        Row(name, bar, "processor seconds", partial(_seconds, side), seeds=seeds),
        Row(f"{name}: stress", 1.0, "stress / the alignment's", partial(_stress, side), seeds=seeds),
    )


ROWS: tuple[Row, ...] = (
    *_rows("camera, D = 1,024", 32, 10.0),
    *_rows("camera, D = 2,025", 45, 12.0),
    *_rows("camera, D = 10,000", 100, 40.0, seeds=(0, 1, 2)),
)
