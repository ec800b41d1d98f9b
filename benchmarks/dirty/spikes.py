"""Spikes: some points lie 10 or 1000 burst sizes away from where they should be."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.dirty._row import Array, Row, fitted, sensors
from pyloca import datasets

N = 450
BARS = {0.005: 1.5, 0.05: 2.0, 0.15: 3.0}  # part of the points: stress over that of the same bursts clean


def spiked(points: Array, part: float, size: float, seed: int, *, one_sensor: bool = False) -> Array:
    """Move a part of the points by `size` times the root mean square radius of their burst, in random directions."""
    random = np.random.RandomState(5000 + seed)  # LOCA(random_state=seed) must not draw the same numbers
    chosen = random.uniform(size=points.shape[:2]) < part
    radius = np.sqrt(points.var(axis=1).sum(axis=1))
    step = random.standard_normal(points.shape)
    if one_sensor:
        step *= np.arange(points.shape[2]) == random.randint(points.shape[2], size=points.shape[:2])[..., None]
    step /= np.linalg.norm(step, axis=2, keepdims=True)
    return np.where(chosen[..., None], points + size * radius[:, None, None] * step, points)


def _clean(kind: str, m: int, seed: int) -> tuple[Array, Array]:
    if kind == "mushroom":
        data = datasets.mushroom(N, m, random_state=seed)
        return data.X, data.bursts.to_array()
    drawn = sensors(seed, n=N, m=m)
    return drawn.X, drawn.points


def _measure(seed: int, *, kind: str, m: int, part: float, size: float, one_sensor: bool = False) -> dict[str, Any]:
    X, points = _clean(kind, m, seed)
    clean = fitted(X, points, seed)["stress"]
    facts = fitted(X, spiked(points, part, size, seed, one_sensor=one_sensor), seed)
    right = facts["k"] == 2
    return {"value": facts["stress"] / clean if right else float("inf"), "clean": clean} | facts


def _rows() -> tuple[Row, ...]:
    sets = [("six sensors", 50), ("six sensors", 12), ("six sensors", 8), ("mushroom", 50)]
    rows = [
        Row(
            f"spikes: {part:.1%} at {size:g} sizes, {kind}, M = {m}",
            bar,
            "stress / clean",
            partial(_measure, kind=kind, m=m, part=part, size=size),
        )
        for kind, m in sets
        for part, bar in BARS.items()
        for size in (10.0, 1000.0)
    ]
    one = partial(_measure, kind="six sensors", m=50, part=0.05, size=10.0, one_sensor=True)
    return (*rows, Row("spikes: 5 % at 10 sizes in one sensor, M = 50", 2.0, "stress / clean", one))


ROWS = _rows()
