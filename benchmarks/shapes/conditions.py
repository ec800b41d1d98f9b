"""Measurements that stretch one latent variable 30 to 1000 times as much as the other."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fitting import fit_facts
from benchmarks.rows import Row

__all__ = ["ROWS"]

Array = NDArray[np.float64]

BAR = 2e-3  # of the variance
N, M, SIGMA = 500, 50, 0.01


def measure(x: Array, condition: float, dim: int, curved: bool, seed: int) -> Array:
    """(…, 2) → (…, D): turned, one axis squeezed to 1 / condition, embedded and, if curved, bent along the other."""
    random = np.random.RandomState(1000 + seed)
    angle = random.uniform(0, np.pi)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    long, short = np.moveaxis((x - 0.5) @ turn, -1, 0)
    if curved:
        long, short = long + 0.2 * np.sin(2 * long), short * (1 + 0.3 * np.sin(3 * long))
    frame = np.linalg.qr(random.standard_normal((dim, dim)))[0]
    out = long[..., None] * frame[0] + short[..., None] / condition * frame[1]
    if curved:
        bends = (
            [np.square(long) / 2] if dim == 2 else [np.square(long) / 2, np.cos(3 * long) / 9, np.sin(4 * long) / 16]
        )
        for bend, axis in zip(bends, frame[1:] if dim == 2 else frame[2:], strict=False):
            out = out + bend[..., None] * axis
    return np.asarray(out)


def facts(condition: float, dim: int, curved: bool, seed: int) -> dict[str, Any]:
    random = np.random.RandomState(seed)
    X = random.uniform(size=(N, 2))
    bursts = measure(X[:, None] + SIGMA * random.standard_normal((N, M, 2)), condition, dim, curved, seed)
    found, _ = fit_facts(X, bursts, seed, burst_std=SIGMA)
    good = found["k"] == 2 and found["stress"] <= BAR
    return {"value": found["stress"], "ok": bool(good or found["findings"])} | found


ROWS = tuple(
    Row(
        f"condition {condition}, {'curved' if curved else 'flat'}, D = {dim}",
        BAR,
        "stress / variance",
        partial(facts, condition, dim, curved),
    )
    for condition in (30, 100, 1000)
    for dim in (2, 5)
    for curved in (False, True)
)
