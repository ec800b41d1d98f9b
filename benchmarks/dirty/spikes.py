"""Spikes: some points lie 10 or 1000 burst sizes away from where they should be, or on the value of a dead sensor."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.dirty._sensors import SIGMA, Array, fitted, sensors
from benchmarks.rows import Row
from pyloca import LOCA, Bursts, BurstStatistics, TrustWarning, datasets
from pyloca.geometry import without_spikes
from pyloca.metrics import stress
from pyloca.paper.experiments._measurements import smooth_map

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


def dropped(points: Array, part: float, seed: int) -> Array:
    """Let a part of the points drop to one value in all sensors: a tenth of the range below the lowest reading."""
    random = np.random.RandomState(6000 + seed)
    low, high = points.min(axis=(0, 1)), points.max(axis=(0, 1))
    return np.where(random.uniform(size=points.shape[:2])[..., None] < part, low - 0.1 * (high - low), points)


def _clean(kind: str, m: int, seed: int) -> tuple[Array, Array]:
    if kind == "mushroom":
        data = datasets.mushroom(N, m, random_state=seed)
        return data.X, data.bursts.to_array()
    if kind == "curve":
        return _bursts(seed, m, 1, 3)
    drawn = sensors(seed, n=N, m=m)
    return drawn.X, drawn.points


def _bursts(seed: int, m: int, k: int, dim: int, law: str = "normal") -> tuple[Array, Array]:
    """Draw bursts of σ = 0.01 whose points have any distribution of unit variance."""
    random = np.random.RandomState(seed)
    X = random.uniform(size=(N, k))
    cloud = X[:, None] + SIGMA * LAWS[law](random, (N, m, k))
    return X, smooth_map(k, dim, random)(cloud.reshape(-1, k)).reshape(N, m, dim)


LAWS: dict[str, Callable[[np.random.RandomState, tuple[int, ...]], Array]] = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "t5": lambda random, shape: random.standard_t(5, size=shape) / np.sqrt(5 / 3),
    "t3": lambda random, shape: random.standard_t(3, size=shape) / np.sqrt(3),
    "one-sided": lambda random, shape: random.exponential(size=shape) - 1,
    "uniform": lambda random, shape: random.uniform(-np.sqrt(3), np.sqrt(3), size=shape),
    "two humps": lambda random, shape: random.choice([-0.98, 0.98], size=shape) + 0.2 * random.standard_normal(shape),
}


def _measure(seed: int, *, kind: str, m: int, dirt: Callable[..., Array], **dirty: Any) -> dict[str, Any]:
    X, points = _clean(kind, m, seed)
    clean = fitted(X, points, seed)["stress"]
    facts = fitted(X, dirt(points, seed=seed, **dirty), seed)
    right = facts["k"] == 2
    return {"value": facts["stress"] / clean if right else float("inf"), "clean": clean} | facts


def _size(seed: int, *, kind: str, m: int, part: float, size: float) -> dict[str, Any]:
    """Estimate σ from spiked bursts and from the same bursts clean; no fit is needed."""
    points = _clean(kind, m, seed)[1]
    k = 1 if kind == "curve" else 2
    found, clean = (
        BurstStatistics.from_bursts(Bursts(data), k, max_strays=0.49).burst_std()
        for data in (spiked(points, part, size, seed), points)
    )
    return {"value": abs(found / clean - 1), "sigma": found, "clean": clean}


def _alarm(seed: int, *, law: str, m: int, bits: int = 0) -> dict[str, Any]:
    """Look for spikes where there are none, in ten sets per seed: what it costs of σ, at worst, and how often."""
    lost = []
    for draw in range(10):
        points = _bursts(100 + 10 * seed + draw, m, 2, (2, 6)[draw % 2], law)[1]
        if bits:
            step = np.ptp(points, axis=(0, 1)) / 2**bits
            points = np.round(points / step) * step
        sets = Bursts(points).set_points_aside([], []), without_spikes(Bursts(points))
        plain, searched = (BurstStatistics.from_bursts(data, 2, max_strays=0.49).burst_std() for data in sets)
        lost.append((abs(searched / plain - 1), int(sets[1].set_aside.sum())))
    return {"value": max(lost)[0], "alarms": sum(aside > 0 for _, aside in lost), "points": max(n for _, n in lost)}


def _new(seed: int, *, m: int, part: float, size: float) -> dict[str, Any]:
    """Transform bursts with spikes by a model that was fitted to clean ones."""
    X, points = _clean("six sensors", m, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        model = LOCA(burst_std=SIGMA, random_state=seed).fit(points)
        found = stress(X, model.transform(spiked(points, part, size, seed)))
    clean = stress(X, model.embedding_)
    return {"value": found / clean, "stress": found, "clean": clean}


def _rows() -> tuple[Row, ...]:
    sets = [("six sensors", 50), ("six sensors", 12), ("six sensors", 8), ("mushroom", 50), ("mushroom", 8)]
    ratio = "stress / clean"
    rows = [
        Row(
            f"spikes: {part:.1%} at {size:g} sizes, {kind}, M = {m}",
            bar,
            ratio,
            partial(_measure, kind=kind, m=m, dirt=spiked, part=part, size=size),
        )
        for kind, m in sets
        for part, bar in BARS.items()
        for size in (10.0, 1000.0)
    ]
    one = partial(_measure, kind="six sensors", m=50, dirt=spiked, part=0.05, size=10.0, one_sensor=True)
    rows.append(Row("spikes: 5 % at 10 sizes in one sensor, M = 50", 2.0, ratio, one))
    rows += [
        Row(
            f"spikes: {part:.1%} dropped to one value, M = {m}",
            BARS[part],
            ratio,
            partial(_measure, kind="six sensors", m=m, dirt=dropped, part=part),
        )
        for m in (50, 8)
        for part in (0.05, 0.15)
    ]
    rows += [
        Row(
            f"spikes: {part:.1%} at {size:g} sizes in new bursts only, M = {m}",
            BARS[part],
            ratio,
            partial(_new, m=m, part=part, size=size),
        )
        for m, part, size in [(50, 0.05, 10.0), (50, 0.15, 1000.0), (8, 0.05, 1000.0)]
    ]
    rows += [
        Row(
            f"spikes: σ from {part:.1%} at {size:g} sizes, {kind}, M = {m}",
            0.01,
            "|σ / clean − 1|",
            partial(_size, kind=kind, m=m, part=part, size=size),
        )
        for kind, m in [("six sensors", 50), ("six sensors", 8), ("mushroom", 50), ("mushroom", 12), ("curve", 50)]
        for part in (0.05, 0.15)
        for size in (10.0, 1000.0)
    ]
    rows += [
        Row(f"spikes: none, {law}, M = {m}", 0.01, "|σ / not searched − 1|", partial(_alarm, law=law, m=m))
        for law in LAWS
        for m in (8, 20, 50)
    ]
    rounded = partial(_alarm, law="normal", m=20, bits=6)
    return (*rows, Row("spikes: none, 6-bit readings, M = 20", 0.01, "|σ / not searched − 1|", rounded))


ROWS = _rows()
