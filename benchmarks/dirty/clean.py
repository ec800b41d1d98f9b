"""Clean data through all of this: nothing may change."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.dirty._sensors import SIGMA, fitted, sensors
from benchmarks.rows import Row
from pyloca import LOCA, datasets
from pyloca.bursts import Bursts
from pyloca.estimator import prepare
from pyloca.geometry import BurstStatistics


def _wide(seed: int) -> tuple[Any, Any]:
    drawn = sensors(seed, n=100, m=8)
    return drawn.X, drawn.points @ np.random.RandomState(seed).standard_normal((6, 2000)) / np.sqrt(2000)


def _six(seed: int, m: int) -> tuple[Any, Any]:
    drawn = sensors(seed, m=m)
    return drawn.X, drawn.points


def _mushroom(seed: int) -> tuple[Any, Any]:
    data = datasets.mushroom(450, 50, random_state=seed)
    return data.X, data.bursts.to_array()


SETS: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "six sensors, M = 50": partial(_six, m=50),
    "six sensors, M = 8": partial(_six, m=8),
    "mushroom, M = 50": _mushroom,
    "D = 2000, M = 8": _wide,
}


def _measure(seed: int, *, make: Callable[[int], tuple[Any, Any]]) -> dict[str, Any]:
    """Fit with and without a look for spikes and strays; also by how much all looks make a fit slower.

    That is the processor seconds of all that comes before training, less those of the burst covariances alone.
    """
    X, points = make(seed)
    bursts = Bursts(points)
    plain, fitting = _timed(lambda: fitted(X, bursts.set_points_aside([], []), seed, max_strays=0))
    _, covariances = _timed(lambda: BurstStatistics.from_bursts(bursts.set_points_aside([], []), 2))
    ready, preparing = _timed(lambda: prepare(LOCA(2, burst_std=SIGMA), bursts))
    facts = fitted(X, bursts, seed)
    slower = {"slower": 1 + (preparing - covariances) / fitting, "strays": len(ready.strays)}
    value = facts["stress"] / plain["stress"]
    return {"value": value, "clean": plain["stress"], "aside": int(ready.source.set_aside.sum())} | slower | facts


def _timed(job: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return job(), time.process_time() - start


ROWS: tuple[Row, ...] = tuple(
    Row(f"clean: {name}", 1.02, "stress / without looking for spikes and strays", partial(_measure, make=make))
    for name, make in SETS.items()
)
