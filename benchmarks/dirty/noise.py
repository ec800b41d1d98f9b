"""Noise of any shape: given, from static bursts, estimated.

What the lost information alone costs: noise N makes the best estimate of a displacement uncertain by P = (Jᵀ N⁻¹ J)⁻¹:
a burst tells its shape like (M − 1) k (k + 1) / (tr E² + (tr E)²) degrees of freedom without noise, E = I + P / σ². The
reference is a fit to the clean bursts with that many points.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.dirty._sensors import SIGMA, Array, Sensors, fitted, sensors
from benchmarks.rows import Row

STATIC = 60  # places at which static bursts are taken


def noise_of(kind: str, data: Sensors, seed: int) -> Array:
    """Covariances (N, D, D). A burst's size is the root mean square length of its tangents."""
    n, _, dim = data.points.shape
    size = float(np.sqrt((data.points.var(axis=1, ddof=1).sum(axis=1) / 2).mean()))
    random = np.random.RandomState(seed + 1000)
    if kind == "two":
        return np.tile(np.diag(np.where(np.arange(dim) < 2, size**2, 0.0)), (n, 1, 1))
    if kind == "correlated":
        mix = random.standard_normal((dim, dim))
        shape = mix @ mix.T
        return np.tile(size**2 * shape * dim / np.trace(shape), (n, 1, 1))
    if kind == "growing":  # from 0.3 to 0.9 of a burst's size across the field
        return np.square(0.3 * size * (1 + 2 * data.X[:, 0]))[:, None, None] * np.eye(dim)
    return np.tile(np.square(0.5 * size) * np.eye(dim), (n, 1, 1))


def add(clean: Array, noise: Array, random: np.random.RandomState) -> Array:
    """Add noise to points (n, m, D)."""
    values, vectors = np.linalg.eigh(noise)
    root = vectors * np.sqrt(np.maximum(values, 0))[:, None]
    return clean + np.einsum("nde,nme->nmd", root, random.standard_normal(clean.shape))


def thinned(data: Sensors, noise: Array) -> list[Array]:
    """Leave so many points in clean bursts as tell what the noisy ones can tell."""
    step = 1e-5
    jacobians = np.stack(
        [(data.measure(data.X + step * e) - data.measure(data.X - step * e)) / (2 * step) for e in np.eye(2)], axis=2
    )
    tiny = 1e-9 * np.trace(noise, axis1=1, axis2=2)[:, None, None] * np.eye(noise.shape[1])
    precision = np.einsum("ndk,nde,nel->nkl", jacobians, np.linalg.inv(noise + tiny), jacobians)
    E = np.eye(2) + np.linalg.inv(precision) / SIGMA**2
    trace = np.trace(E, axis1=1, axis2=2)
    part = 6 / (np.square(E).sum(axis=(1, 2)) + np.square(trace))
    m = data.points.shape[1]
    counts = np.maximum(np.round(1 + (m - 1) * part).astype(int), 4)
    return [points[:count] for points, count in zip(data.points, counts, strict=True)]


@cache
def reference(kind: str, seed: int) -> float:
    data = sensors(seed)
    bursts = data.points if kind == "clean" else thinned(data, noise_of(kind, data, seed))
    return float(fitted(data.X, bursts, seed)["stress"])


def measure(kind: str, known: str, against: str, seed: int) -> dict[str, Any]:
    data = sensors(seed)
    noise = noise_of(kind, data, seed)
    random = np.random.RandomState(seed + 2000)
    noisy = add(data.points, noise, random)
    settings: dict[str, Any] = {}
    if known == "given":
        settings["measurement_noise"] = noise
    elif known == "estimated":
        settings["measurement_noise"] = "estimate"
    else:
        rows = random.permutation(len(data.X))[:STATIC]
        still = np.repeat(data.measure(data.X[rows])[:, None], 50, axis=1)
        settings["static"] = add(still, noise[rows], random)
    found = fitted(data.X, noisy, seed, **settings)
    clean = reference(against, seed)
    return {"value": found["stress"] / clean, "clean": clean, **found}


def _row(kind: str, words: str, known: str, bar: float) -> Row:
    against = "clean" if kind == "all" else kind
    what = "stress / clean" if kind == "all" else "stress / lost information"
    job: Callable[[int], dict[str, Any]] = partial(measure, kind, known, against)
    return Row(f"noise {words}, {known}", bar, what, job)


KINDS = {"two": "of a burst's size in 2 of 6 sensors", "correlated": "correlated", "growing": "growing threefold"}
BARS = {"given": 2.0, "static": 2.0, "estimated": 4.0}
ROWS = (
    *(_row(kind, words, known, bar) for kind, words in KINDS.items() for known, bar in BARS.items()),
    _row("all", "of 50 % in all sensors", "estimated", 3.0),
)
