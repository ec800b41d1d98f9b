"""Known perturbations: the same bursts with and without them."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.dirty._sensors import SIGMA, Array, fitted
from benchmarks.rows import Row
from pyloca import datasets
from pyloca.bursts import Bursts, from_function, from_positions, sensor_array
from pyloca.paper.experiments._measurements import smooth_map

__all__ = ["ROWS"]

N, M, DIM = 450, 50, 6
STRETCHED = ((0, 0), (4, 0), (-4, 0), (0, 1), (0, -1), (3, 0.7), (-3, 0.7))
SIDE, TRANSMITTERS, SURVEYED, RADIUS = 10.0, 12, 3000, 1.0  # metres, of the floor


def regular(seed: int, m: int = M) -> tuple[Array, Bursts, Any]:
    """Draw the square of `benchmarks.dirty._row.sensors`, whose bursts know their perturbations."""
    random = np.random.RandomState(seed)
    X = random.uniform(size=(N, 2))
    f = smooth_map(2, DIM, random)
    return X, from_function(f, X, SIGMA, m, random_state=random), f


def compared(X: Array, known: Any, plain: Any, seed: int) -> dict[str, Any]:
    """Fit both; the figure is the ratio of their stresses."""
    mine, theirs = fitted(X, known, seed), fitted(X, plain, seed)
    return {"value": mine["stress"] / theirs["stress"], "clean": theirs["stress"], **mine}


def _regular(seed: int) -> dict[str, Any]:
    X, bursts, _ = regular(seed)
    return compared(X, bursts, bursts.without_perturbations(), seed)


def _mushroom(seed: int) -> dict[str, Any]:
    data = datasets.mushroom(N, M, SIGMA, random_state=seed)
    known = from_function(data.measure, data.X, SIGMA, M, random_state=seed)
    return compared(data.X, known, known.without_perturbations(), seed)


def _stretched(seed: int) -> dict[str, Any]:
    X, bursts, f = regular(seed)
    known = sensor_array(f, X, SIGMA / 2, stencil=STRETCHED)
    return compared(X, known, bursts.without_perturbations(), seed)


def _noisy(seed: int) -> dict[str, Any]:
    X, bursts, _ = regular(seed)
    points = bursts.to_array()
    noise = 0.5 * points.std(axis=1).mean() * np.random.RandomState(seed).standard_normal(points.shape)
    noisy = Bursts(points + noise, perturbations=bursts.perturbations)
    return compared(X, noisy, bursts.without_perturbations(), seed)


def floor(seed: int) -> tuple[Array, Array]:
    """Survey a floor: positions, and RSSI in whole dB with 3 dB of noise, from transmitters that do not saturate."""
    random = np.random.RandomState(seed)
    places = random.uniform(size=(SURVEYED, 2)) * SIDE
    transmitters = np.c_[random.uniform(-0.2, 1.2, size=(TRANSMITTERS, 2)) * SIDE, np.full(TRANSMITTERS, 3.0)]
    distance = np.linalg.norm(np.c_[places, np.zeros(SURVEYED)][:, None] - transmitters, axis=2)
    rssi = -40 - 30 * np.log10(distance) + 3 * random.standard_normal(distance.shape)
    return places, np.round(rssi)


def _floor(seed: int) -> dict[str, Any]:
    places, rssi = floor(seed)
    anchors = places[np.random.RandomState(seed).permutation(SURVEYED)[:N]]
    found = fitted(anchors, from_positions(places, rssi, RADIUS, anchors=anchors), seed, burst_std=None)
    return {"value": float(np.sqrt(found["stress"])) / SIDE, **found}


ROWS: tuple[Row, ...] = (
    Row("perturbations known, regular map", 0.05, "stress / the same bursts without", _regular),
    Row("perturbations known, mushroom", 1.0, "stress / the same bursts without", _mushroom),
    Row("perturbations known, 7 receivers, 5 : 1", 1.0, "stress / random bursts without", _stretched),
    Row("perturbations known, noise of 50 %", 1.0, "stress / clean bursts without", _noisy),
    Row("survey of a floor, RSSI ± 3 dB", 0.03, "rms error of distances / side", _floor),
)
