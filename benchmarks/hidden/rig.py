"""A rig of six sensors in units of their own, with one fault of the recording: what the verdict must name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from benchmarks.fitting import fit_facts
from benchmarks.hidden.judging import GOOD, WHAT
from benchmarks.rows import Row
from pyloca.bursts import Bursts
from pyloca.metrics import stress

__all__ = ["ROWS"]

Array = NDArray[np.float64]
Random = np.random.RandomState
NAMES = ("pressure", "flow", "inlet", "outlet", "strain", "level")


@dataclass
class Rig:
    """States, readings and σ; the faulty bursts or sensor, and the findings that are true."""

    X: Array
    readings: Array
    std: float
    bad: list[int] = field(default_factory=list)
    sensor: str = ""
    true: tuple[str, ...] = ()


def _rig(random: Random) -> Rig:
    """250 to 450 bursts of 15 to 40 points of two states, by six sensors of one of three kinds, in any units."""
    n, points, std = random.randint(250, 450), random.randint(15, 40), 0.01 * np.exp(random.uniform(-0.4, 0.4))
    X = random.uniform(size=(n, 2))
    lines, places, kind = random.standard_normal((2, 6)), random.uniform(-0.5, 0.5, 6), random.randint(3)
    u = (X[:, None] + std * random.standard_normal((n, points, 2)) - 0.5) @ (lines / np.linalg.norm(lines, axis=0))
    curves: tuple[Callable[[], Array], ...] = (
        lambda: np.tanh(np.linspace(1, 3, 6) * (u - places)),
        lambda: u + 0.7 * (u - places) ** 2 + 0.4 * u**3,
        lambda: np.cos(2.2 * u + 3 * places) + 0.5 * u,
    )
    seen = curves[kind]()
    seen = seen + random.uniform(0, 0.05) * seen.std(axis=1).mean(axis=0) * random.standard_normal(seen.shape)
    scale = 10 ** random.uniform(-3, 4, 6)
    return Rig(X, seen * scale + random.uniform(-5, 5, 6) * scale, std)


def sound(random: Random) -> Rig:
    return _rig(random)


def _garbage(random: Random, count: int) -> Rig:
    """Bursts of readings that never were together, of noise, or of rows from everywhere."""
    rig, kind = _rig(random), random.randint(4)
    flat, inside = rig.readings.reshape(-1, 6).copy(), rig.readings.std(axis=1).mean(axis=0)
    shape = rig.readings.shape[1:]
    rig.bad = random.permutation(len(rig.X))[:count].tolist()
    for i in rig.bad:
        rig.readings[i] = (
            np.stack([random.choice(column, shape[0]) for column in flat.T], axis=1),
            [random.choice(column) for column in flat.T] + inside * random.standard_normal(shape),
            flat[random.randint(len(flat), size=shape[0])],
            flat.mean(axis=0) + 0.3 * flat.std(axis=0) * random.standard_normal(shape),
        )[kind]
    rig.true = ("outliers",)
    return rig


def _since(random: Random) -> tuple[Rig, int, int]:
    rig = _rig(random)
    sensor, since = random.randint(6), random.randint(len(rig.X) // 3, 2 * len(rig.X) // 3)
    rig.sensor, rig.true = NAMES[sensor], ("changed",)
    return rig, sensor, since


def dies(random: Random) -> Rig:
    """A sensor that keeps its last reading, with or without noise, or reads zero."""
    rig, j, since = _since(random)
    seen, kind = rig.readings[..., j], random.randint(3)
    noise = 0.1 * seen.std(axis=1).mean() * random.standard_normal(seen[since:].shape)
    seen[since:] = (seen[since, 0], seen[since, 0] + noise, 0.0)[kind]
    return rig


def other_units(random: Random) -> Rig:
    """The readings of one sensor in other units since some burst: mm for m, °F for °C, inches."""
    rig, j, since = _since(random)
    seen = rig.readings[..., j]
    factor, offset = ((1000.0, 0.0), (1.8, 32 * float(seen.std())), (1 / 25.4, 0.0))[random.randint(3)]
    seen[since:] = factor * seen[since:] + offset
    return rig


def wanders(random: Random) -> Rig:
    """The zero of one sensor walks at random since some burst, by 0.4 to 3 times its spread."""
    rig, j, since = _since(random)
    seen = rig.readings[..., j]
    walk = np.cumsum(random.standard_normal(len(seen) - since))
    seen[since:] += (seen.mean(axis=1).std() * np.exp(random.uniform(-1, 1)) * walk / np.abs(walk).max())[:, None]
    return rig


def mixed_rows(random: Random) -> Rig:
    """Half of the rows, or all, in any burst."""
    rig, part = _rig(random), random.choice([0.5, 1.0])
    flat = rig.readings.reshape(-1, 6)
    rows = np.flatnonzero(random.uniform(size=len(flat)) < part)
    flat[rows] = flat[random.permutation(rows)]
    rig.true = ("rows", "large_bursts", "refused")
    return rig


def shifted_rows(random: Random) -> Rig:
    """A column of burst ids that is off by a third to two thirds of a burst."""
    rig = _rig(random)
    n, points, _ = rig.readings.shape
    by = random.randint(points // 3, 2 * points // 3)
    rig.readings = np.roll(rig.readings.reshape(-1, 6), by, axis=0).reshape(n, points, 6)
    rig.true = ("rows",)
    return rig


KINDS: dict[str, Callable[[Random], Rig]] = {
    "sound": sound,
    "one garbage burst": partial(_garbage, count=1),
    "20 garbage bursts": partial(_garbage, count=20),
    "a sensor dies": dies,
    "a sensor in other units": other_units,
    "a sensor wanders": wanders,
    "rows in any burst": mixed_rows,
    "burst ids that are off": shifted_rows,
}


def _facts(name: str, seed: int) -> dict[str, Any]:
    rig = KINDS[name](Random(crc32(f"{name} {seed}".encode())))
    found, model = fit_facts(rig.X, Bursts(rig.readings, feature_names=NAMES), seed, burst_std=rig.std)
    names, said = found["findings"], " ".join(found.get("said", [])) + found.get("refusal", "")
    named: set[int] = set()
    if model is not None:
        rest = np.setdiff1d(np.arange(len(rig.X)), rig.bad)
        found["stress"] = stress(rig.X[rest], model.embedding_[rest]) / float(rig.X.var(axis=0).sum())
        named = {stray.burst for stray in model.diagnostics_.strays}
        named |= {i for finding in model.diagnostics_.findings for i in finding.bursts}
    if rig.bad:  # every one must be named, and no more than a few others
        right = set(rig.bad) <= named and len(named) <= len(rig.bad) + 2 and set(names) <= set(rig.true)
    elif rig.sensor:  # a drift that does no harm may pass
        told = names in (["changed"], ["refused"]) and repr(rig.sensor) in said
        right = told or (not names and found["stress"] <= GOOD)
    else:
        right = bool(names) and set(names) <= set(rig.true) if rig.true else not names and found["stress"] <= GOOD
    verdict = "right" if right else "misnamed" if names else "silent"
    return {"value": found["stress"], "ok": right, "verdict": verdict} | found


ROWS = tuple(Row(f"rig: {name}", GOOD, WHAT, partial(_facts, name)) for name in KINDS)
