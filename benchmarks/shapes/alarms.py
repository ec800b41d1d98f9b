"""Alarms: none where the fit is good, and a true one where it is not.

A row holds when every fit with a stress of at most 1 % of the variance has no finding, and every worse one has one that
names a cause which the data have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fitting import fit_facts
from benchmarks.rows import Row

__all__ = ["ROWS"]

Array = NDArray[np.float64]
Random = np.random.RandomState
Data = tuple[Array, Array, dict[str, Any]]  # latent variables, bursts, settings of the fit

GOOD = 0.01  # of the variance
N = 500
# Causes that data without a planted fault may have, if they are too few or too rough for the network.
TRUE = ("few_bursts", "round_trip", "folded", "poor_fit")


def _waves(random: Random, x: Array, n: int, steepness: float) -> Array:
    """N smooth sensors of random direction."""
    slopes, phases = steepness * random.standard_normal((x.shape[-1], n)), random.uniform(0, 2 * np.pi, n)
    return np.asarray(np.sin(x @ slopes + phases))


def _bursts(
    random: Random, k: int, sigma: float, points: int, measure: Callable[[Array], Array], draw: Any = None, n: int = N
) -> Data:
    X = random.uniform(size=(n, k))
    draw = random.standard_normal if draw is None else draw
    return X, measure(X[:, None] + sigma * draw((n, points, k))), {"burst_std": sigma}


def kinks(seed: int) -> Data:
    """Two plain sensors and three |u·x − c|."""
    random = Random(seed)
    slopes, shifts = random.standard_normal((2, 3)), random.uniform(-0.5, 0.5, 3)
    return _bursts(random, 2, 0.01, 30, lambda x: np.concatenate([x, np.abs((x - 0.5) @ slopes - shifts / 2)], axis=-1))


def dead_zone(seed: int) -> Data:
    """Sensors that are flat over a part of the square."""
    random = Random(seed)
    starts = random.uniform(0.3, 0.6, 2)

    def measure(x: Array) -> Array:
        plain = np.stack([x[..., 0] + 0.2 * x[..., 1], x[..., 1] + 0.2 * np.sin(3 * x[..., 0])], axis=-1)
        return np.concatenate([plain, np.maximum(x - starts, 0)], axis=-1)

    return _bursts(random, 2, 0.01, 30, measure)


def clipping(seed: int) -> Data:
    """Sensors with an end of their range inside the square."""
    random = Random(seed)
    ends = random.uniform(0.2, 0.4, 2)

    def measure(x: Array) -> Array:
        sums = np.stack([x.sum(axis=-1) - 1, x[..., 0] - x[..., 1]], axis=-1)
        return np.concatenate([x, np.clip(sums, -ends, ends)], axis=-1)

    return _bursts(random, 2, 0.01, 30, measure)


def fine_sines(seed: int) -> Data:
    """Two plain sensors and two fine sines: some four periods over the square."""
    random = Random(seed)
    rates = random.uniform(20, 30, 2)
    return _bursts(random, 2, 0.005, 30, lambda x: np.concatenate([x, 0.05 * np.sin(rates * x)], axis=-1))


def six_dimensions(seed: int) -> Data:
    """A curved measurement of six latent variables by 18 sensors."""
    random = Random(seed)
    sensors = Random(1000 + seed)

    def measure(x: Array) -> Array:
        state = sensors.get_state()  # the same sensors at every call
        out = np.concatenate([x + 0.2 * np.square(np.roll(x, 1, axis=-1)), _waves(sensors, x, 12, 1.0)], axis=-1)
        sensors.set_state(state)
        return out

    return _bursts(random, 6, 0.01, 40, measure, n=600)


def _smooth(seed: int, draw: Callable[[Random], Any], n: int = N) -> Data:
    """Six smooth sensors, and bursts of 37 points of another distribution."""
    random, sensors = Random(seed), Random(1000 + seed)
    slopes, phases = sensors.standard_normal((2, 4)), sensors.uniform(0, 2 * np.pi, 4)

    def measure(x: Array) -> Array:
        return np.concatenate([x + 0.1 * np.sin(3 * x[..., ::-1]), np.sin(x @ slopes + phases)], axis=-1)

    return _bursts(random, 2, 0.01, 37, measure, draw(random), n)


def one_sided(seed: int) -> Data:
    """Displacements in one direction only: exponential, less their mean, which no burst can tell."""
    return _smooth(seed, lambda random: lambda shape: random.exponential(size=shape) - 1)


def student(seed: int) -> Data:
    """Displacements of Student's t with 3 degrees of freedom, scaled to unit variance."""
    return _smooth(seed, lambda random: lambda shape: random.standard_t(3, size=shape) / np.sqrt(3))


def noise_removed(seed: int) -> Data:
    """Noise of 30 % of a burst in all ten sensors, estimated."""
    random, sensors = Random(seed), Random(1000 + seed)
    slopes, phases = sensors.standard_normal((2, 8)), sensors.uniform(0, 2 * np.pi, 8)
    X, bursts, settings = _bursts(
        random, 2, 0.02, 37, lambda x: np.concatenate([x, np.sin(x @ slopes + phases)], axis=-1)
    )
    return X, bursts + 0.006 * random.standard_normal(bursts.shape), settings | {"measurement_noise": "estimate"}


def sparse_torus(seed: int) -> Data:
    """300 bursts on a flat torus in four dimensions."""
    random = Random(seed)
    angles = random.uniform(0, 2 * np.pi, (300, 2))

    def place(t: Array) -> Array:
        return np.stack([np.cos(t[..., 0]), np.sin(t[..., 0]), np.cos(t[..., 1]), np.sin(t[..., 1])], axis=-1)

    return place(angles), place(angles[:, None] + 0.03 * random.standard_normal((300, 30, 2))), {"burst_std": 0.03}


def facts(kind: Callable[[int], Data], seed: int) -> dict[str, Any]:
    X, bursts, settings = kind(seed)
    found, _ = fit_facts(X, bursts, seed, **settings)
    names = found["findings"]
    good = found["stress"] <= GOOD
    return {"value": found["stress"], "ok": not names if good else bool(names) and set(names) <= set(TRUE)} | found


KINDS: dict[str, Callable[[int], Data]] = {
    "kinks": kinks,
    "dead zones": dead_zone,
    "clipping": clipping,
    "fine sines": fine_sines,
    "k = 6, curved": six_dimensions,
    "one-sided bursts": one_sided,
    "Student-t bursts": student,
    "noise removed": noise_removed,
    "sparse flat torus": sparse_torus,
}
ROWS = tuple(Row(f"alarms: {name}", GOOD, "stress / variance", partial(facts, kind)) for name, kind in KINDS.items())
