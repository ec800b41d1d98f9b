"""Clean data through all of this: nothing may change."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.dirty._row import Row, fitted, sensors
from pyloca import datasets
from pyloca.bursts import Bursts
from pyloca.geometry import without_spikes


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
    """Fit with and without a look for spikes; also the processor seconds of the look over those of the fit."""
    X, points = make(seed)
    bursts = Bursts(points)
    start = time.process_time()
    aside = int(without_spikes(bursts).set_aside.sum())
    looking = time.process_time() - start
    start = time.process_time()
    plain = fitted(X, bursts.set_points_aside([], []), seed)["stress"]
    fitting = time.process_time() - start
    facts = fitted(X, bursts, seed)
    return {"value": facts["stress"] / plain, "clean": plain, "aside": aside, "slower": 1 + looking / fitting} | facts


ROWS: tuple[Row, ...] = tuple(
    Row(f"clean: {name}", 1.02, "stress / without looking for spikes", partial(_measure, make=make))
    for name, make in SETS.items()
)
