"""Tables as a logger writes them: cells that are missing, and a time stamp among the sensors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.dirty._sensors import Sensors, fitted, sensors
from benchmarks.rows import Row
from pyloca import Bursts
from pyloca.bursts import drop_missing

Array = NDArray[np.float64]
BAR = 1.1
CELLS = 12
START, PERIOD, PAUSE = 1.7e9, 0.01, 60.0  # s: of the time stamp, between points, between bursts
NAMES = tuple(f"sensor {j}" for j in range(6))


def named(points: Array, *more: str) -> Bursts:
    return Bursts(points, feature_names=(*NAMES, *more))


def gaps(points: Array, seed: int) -> Bursts:
    """Twelve cells without a number; their points are dropped."""
    random, holes = np.random.RandomState(1000 + seed), points.copy()
    n, m, dim = points.shape
    where = np.unravel_index(random.permutation(points.size)[:CELLS], (n, m, dim))
    holes[where] = np.nan
    return drop_missing(named(holes))


def stamped(points: Array, seed: int) -> Bursts:
    """One more column: the seconds at which each point was read, bursts in an order of their own."""
    n, m, _ = points.shape
    order = np.random.RandomState(2000 + seed).permutation(n)
    time = START + PAUSE * order[:, None] + PERIOD * np.arange(m)
    return named(np.concatenate([points, time[:, :, None]], axis=2), "time")


@cache
def clean(seed: int) -> tuple[Sensors, float]:
    data = sensors(seed)
    return data, fitted(data.X, named(data.points), seed)["stress"]


def beside_clean(make: Callable[[Array, int], Bursts]) -> Callable[[int], dict[str, Any]]:
    def measure(seed: int) -> dict[str, Any]:
        data, usual = clean(seed)
        facts = fitted(data.X, make(data.points, seed), seed)
        return {"value": facts["stress"] / usual, **facts, "clean": usual}

    return measure


ROWS = (
    Row("NaN in 12 cells dropped", BAR, "stress / clean", beside_clean(gaps)),
    Row("a time stamp among the sensors", BAR, "stress / clean", beside_clean(stamped)),
)
