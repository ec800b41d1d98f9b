"""Strays: 1 % of the bursts lie apart, are flat, clipped or too short. The stress is that of the other bursts."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.dirty._heavy import heavy_sets
from benchmarks.dirty._sensors import SIGMA, sensors
from benchmarks.rows import Row
from pyloca import LOCA, TrustWarning, datasets
from pyloca.estimator import prepare
from pyloca.metrics import stress

Array = NDArray[np.float64]
Planted = tuple[list[Array], list[int]]  # the bursts, and which of them are strays
PART, BAR = 0.01, 1.2
CLIPPED = 0.1  # part of the points at the end of a sensor's range that makes a burst clipped


def sheet(seed: int) -> tuple[Array, Array]:
    clean = sensors(seed)
    return clean.X, clean.points


def mushroom(seed: int) -> tuple[Array, Array]:
    """Two sensors, so that a clipped one leaves a burst flat."""
    data = datasets.mushroom(n_bursts=500, n_points=50, burst_std=SIGMA, random_state=seed)
    return data.X, data.bursts.to_array()


def chosen(points: Array, seed: int) -> list[int]:
    n = len(points)
    return sorted(np.random.RandomState(1000 + seed).permutation(n)[: round(PART * n + 0.5)].tolist())


def apart(points: Array, seed: int, far: float) -> Planted:
    """Shifted in any direction by some sizes of the data."""
    random, rows = np.random.RandomState(2000 + seed), chosen(points, seed)
    size = np.sqrt(points.reshape(-1, points.shape[2]).var(axis=0).sum())
    bursts = list(points)
    for i in rows:
        step = random.standard_normal(points.shape[2])
        bursts[i] = bursts[i] + far * size * step / np.linalg.norm(step)
    return bursts, rows


def flat(points: Array, seed: int) -> Planted:
    """Along their longest direction only."""
    bursts, rows = list(points), chosen(points, seed)
    for i in rows:
        mean = points[i].mean(axis=0)
        left, size, right = np.linalg.svd(points[i] - mean, full_matrices=False)
        bursts[i] = mean + size[0] * np.outer(left[:, 0], right[0])
    return bursts, rows


def clipped(points: Array, seed: int) -> Planted:
    """The first sensor ends where 1 % of the bursts exceed it with some of their points."""
    least = int(np.ceil(CLIPPED * points.shape[1]))
    beyond = np.sort(points[:, :, 0], axis=1)[:, -least]  # where the sensor must end for a burst to be clipped
    order = np.argsort(beyond)
    number = len(chosen(points, seed))
    rail = beyond[order[[-number - 1, -number]]].mean()
    bursts = np.concatenate([np.minimum(points[:, :, :1], rail), points[:, :, 1:]], axis=2)
    return list(bursts), sorted(order[-number:].tolist())


def short(points: Array, seed: int) -> Planted:
    """One or two points."""
    bursts, rows = list(points), chosen(points, seed)
    for number, i in enumerate(rows):
        bursts[i] = bursts[i][: 1 + number % 2]
    return bursts, rows


@cache
def clean(make: Callable[[int], tuple[Array, Array]], seed: int) -> Array:
    return fit(make(seed)[1], seed).embedding_


def fit(bursts: Any, seed: int) -> LOCA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return LOCA(2, burst_std=SIGMA, random_state=seed).fit(bursts)


def measured(
    make: Callable[[int], tuple[Array, Array]], plant: Callable[[Array, int], Planted]
) -> Callable[[int], dict[str, Any]]:
    def measure(seed: int) -> dict[str, Any]:
        X, points = make(seed)
        bursts, rows = plant(points, seed)
        model = fit(bursts, seed)
        sound = np.delete(np.arange(len(X)), rows)
        dirty, usual = (stress(X[sound], Z[sound]) for Z in (model.embedding_, clean(make, seed)[:]))
        named = len(set(model.strays_) & set(rows))
        return {
            "value": dirty / usual if named == len(rows) else np.inf,
            "stress": dirty,
            "clean": usual,
            "named": f"{named} of {len(rows)}",
            "others named": len(model.strays_) - named,
            "k": model.intrinsic_dim_,
            "findings": [finding.name for finding in model.diagnostics_.findings],
        }

    return measure


def false_strays(seed: int) -> dict[str, Any]:
    """Look for strays where there are none; nothing is trained."""
    found = {kind: len(prepare(LOCA(2), points).strays) for kind, points in heavy_sets(seed)}
    return {"value": float(sum(found.values())), "where": [kind for kind, number in found.items() if number]}


WHAT = "stress of the others / clean; infinite if a stray is not named"
ROWS = (
    Row("strays: 1 % lie 5 sizes apart", BAR, WHAT, measured(sheet, lambda p, s: apart(p, s, 5.0))),
    Row("strays: 1 % lie 100 sizes apart", BAR, WHAT, measured(sheet, lambda p, s: apart(p, s, 100.0))),
    Row("strays: 1 % are flat", BAR, WHAT, measured(sheet, flat)),
    Row("strays: 1 % are clipped in one of six sensors", BAR, WHAT, measured(sheet, clipped)),
    Row("strays: 6 of 500 are clipped in one of two sensors", BAR, WHAT, measured(mushroom, clipped)),
    Row("strays: 1 % have one or two points", BAR, WHAT, measured(sheet, short)),
    Row("no strays in clean heavy-tailed sets", 0.4, "false strays in 20 sets (bar: 2 %)", false_strays),
)
