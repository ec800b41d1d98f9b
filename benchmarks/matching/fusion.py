"""Instruments that cover the states in overlapping parts, against one of them that sees everything.

Three puzzles, after the kinds of experiment of gappy LOCA (arXiv 2312.13155), which prints no settings: overlapping
parts of a floor, radios whose transmitters reach only a part of it, and windows of a travelling pulse, each through
another sensor. The figure is the stress of all parts together over that of one instrument that saw all their bursts:
the same states, displaced in the same way.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.matching.anchored import rms
from benchmarks.matching.instruments import POINTS, Instrument, fit, gauge, radio, states
from benchmarks.rows import Row
from pyloca import LOCA, TrustWarning
from pyloca.matching import fuse
from pyloca.metrics import calibrate, stress
from pyloca.plots import spread_rows

__all__ = ["ROWS"]

Array = NDArray[np.float64]
Inside = Callable[[Array], NDArray[np.bool_]]

ANCHORS, EACH, TESTED = 8, 150, 400
ANOTHER = 1000  # more than the seed: another instrument of the same kind
FLOOR: dict[str, Inside] = {
    "south": lambda X: X[:, 1] < 3.3,
    "west": lambda X: (X[:, 0] < 2.8) & (X[:, 1] > 0.8) & (X[:, 1] < 6.4),
    "east": lambda X: (X[:, 0] > 3.2) & (X[:, 1] > 0.8) & (X[:, 1] < 6.4),
    "north": lambda X: X[:, 1] > 5.3,
}
RING = (("south", "west"), ("south", "east"), ("west", "north"), ("east", "north"))
TILES: dict[str, Inside] = {
    "early left": lambda X: (X < 3.1).all(axis=1),
    "early right": lambda X: (X[:, 0] > 1.9) & (X[:, 1] < 3.1),
    "late left": lambda X: (X[:, 0] < 3.1) & (X[:, 1] > 1.9),
    "late right": lambda X: (X > 1.9).all(axis=1),
}
SQUARE = (
    ("early left", "early right"),
    ("early left", "late left"),
    ("early right", "late right"),
    ("late left", "late right"),
)


@dataclass(frozen=True)
class Puzzle:
    """A plan, which part of it each instrument sees, which parts have anchors, and the instruments, by seed."""

    plan: str
    parts: dict[str, Inside]
    overlaps: tuple[tuple[str, str], ...]
    instrument: Callable[[str, int], Instrument]

    def places(self, seed: int, stream: int, *parts: str) -> Array:
        X = states(self.plan, 8000, np.random.RandomState([seed, stream]))
        return X[np.logical_and.reduce([np.ones(len(X), dtype=bool), *(self.parts[part](X) for part in parts)])]


def _of_the_floor(part: str, seed: int) -> Instrument:
    """Two radios and two gauges, all different; a radio sees everything."""
    kinds = {"south": radio, "west": gauge, "east": gauge, "north": radio, "": radio}
    return kinds[part](100 * seed + list(kinds).index(part))


def _short_reach(part: str, seed: int) -> Instrument:
    """Transmitters within a part and 3 m around its middle, which are not heard beyond; all of them see everything."""
    random = np.random.RandomState([seed, 40])
    transmitters = random.uniform((0, 0), (6, 10), size=(60, 2))
    if part:
        X = states("floor", 4000, np.random.RandomState(0))
        X = X[FLOOR[part](X)]
        low, high = X.min(axis=0) - 1, X.max(axis=0) + 1
        transmitters = transmitters[((transmitters > low) & (transmitters < high)).all(axis=1)]
    return Instrument("radio", lambda x: np.exp(-np.square(x[:, None] - transmitters).sum(axis=2) / 12), 0.05)


def _window(part: str, seed: int) -> Instrument:
    """A window of 12 points on a pulse u(x, t) that travels and spreads, each sensor with a response of its own."""
    random = np.random.RandomState([seed, 41])
    speed, spreading, start = random.uniform(0.2, 0.6), random.uniform(1.5, 3), random.uniform(1, 3)
    window = np.linspace(-3, 3, 12)
    response = {
        "early left": np.tanh,
        "early right": lambda u: np.exp(u / 2),
        "late left": lambda u: u + 0.2 * u**3,
        "late right": lambda u: 100 + 7 * u,
        "": lambda u: u,
    }[part]

    def measure(x: Array) -> Array:
        where, when = x[:, :1], x[:, 1:]
        variance = 3 + spreading * when
        pulse = np.exp(-np.square(where + window - start - speed * when) / (2 * variance)) * np.sqrt(3 / variance)
        return np.asarray(response(pulse))  # (n, 12)

    return Instrument("window", measure, 0.04)


def _fitted(puzzle: Puzzle, seed: int) -> tuple[dict[str, LOCA], dict[str, Array], LOCA]:
    """Models of all parts and of the whole, "", and their bursts; another instrument that sees the whole as often."""
    places, steps = {}, {}
    for k, part in enumerate(puzzle.parts):
        random = np.random.RandomState([seed, 61 + k])
        places[part] = puzzle.places(seed, 61 + k, part)[:EACH]
        steps[part] = random.standard_normal((len(places[part]), POINTS, 2))
    places[""], steps[""] = np.concatenate(list(places.values())), np.concatenate(list(steps.values()))
    models, bursts = {}, {}

    def seen(part: str, instrument: Instrument) -> Array:
        clouds = places[part][:, None] + instrument.burst_std * steps[part]
        return instrument.measure(clouds.reshape(-1, 2)).reshape(*clouds.shape[:2], -1)

    for part in places:
        instrument = puzzle.instrument(part, seed)
        bursts[part] = seen(part, instrument)
        models[part] = fit(bursts[part], instrument.burst_std, seed)
    instrument = puzzle.instrument("", seed + ANOTHER)
    return models, bursts, fit(seen("", instrument), instrument.burst_std, seed)


def _fusion(seed: int, *, puzzle: Puzzle) -> dict[str, Any]:
    models, bursts, another = _fitted(puzzle, seed)
    measure = {part: puzzle.instrument(part, seed).measure for part in models}
    whole = models.pop("")
    anchors = {}
    for one, other in puzzle.overlaps:
        X = puzzle.places(seed, 70, one, other)[:60]
        X = X[spread_rows(X, ANCHORS)]
        anchors[one, other] = (measure[one](X), measure[other](X))
    X = [puzzle.places(seed, 71, part)[: TESTED // 4] for part in models]
    every = np.concatenate(X)
    one_sees_all = stress(every, whole.encode(measure[""](every)))
    chance = stress(every, another.encode(puzzle.instrument("", seed + ANOTHER).measure(every))) / one_sees_all
    apart = {part: stress(x, models[part].encode(measure[part](x))) for part, x in zip(models, X, strict=True)}
    findings = {part or "all": model.diagnostics_.findings for part, model in {**models, "": whole}.items()}
    facts: dict[str, Any] = {
        "one sees all": one_sees_all,
        "another / one": chance,  # how far two instruments that see all differ, by the luck of their fits
        "parts alone": apart,
        "findings": [f"{finding.name} of {part}" for part, found in findings.items() for finding in found],
    }
    for given, name in ((None, "without bursts"), ({part: bursts[part] for part in models}, "value")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrustWarning)
            found = fuse(models, anchors, bursts=given)
        if found.unconnected:
            return {"value": float("inf"), "said": list(found.warnings), "ok": False}
        placed = np.concatenate([found.coordinates(measure[part](x), part) for part, x in zip(models, X, strict=True)])
        facts[name] = stress(every, placed) / one_sees_all
    facts["said"], facts["stated"] = list(found.warnings), found.standard_errors
    inside = rms(calibrate(every, placed).apply(placed) - every)
    jumps, held = [], []  # over all borders
    for one, other in puzzle.overlaps:
        both = puzzle.places(seed, 72, one, other)[:100]
        Y, told = measure[other](both), found.predict(measure[one](both), one, other)
        jumps.append(found.coordinates(measure[one](both), one) - found.coordinates(Y, other))
        low, high = told.interval(0.95)
        held.append(float(((low <= Y) & (high >= Y)).mean()))
    seam = {"seam / error": rms(np.concatenate(jumps)) / inside, "error": inside, "held": float(np.mean(held))}
    return facts | seam


PUZZLES = {
    "four parts of a floor": Puzzle("floor", FLOOR, RING, _of_the_floor),
    "transmitters of short reach": Puzzle("floor", FLOOR, RING, _short_reach),
    "windows of a travelling pulse": Puzzle("square", TILES, SQUARE, _window),
}


@cache
def _measured(seed: int, name: str) -> dict[str, Any]:
    return _fusion(seed, puzzle=PUZZLES[name])


def _seam(seed: int, name: str) -> dict[str, Any]:
    return {"value": _measured(seed, name=name).get("seam / error", float("inf"))}


def _held(seed: int) -> dict[str, Any]:
    """How far from 94 %, the middle of 90 to 98 %, the part of stated 95 % intervals is that hold, over the puzzles."""
    held = {name: _measured(seed, name=name)["held"] for name in PUZZLES}
    mean = float(np.mean(list(held.values())))
    return {"value": abs(mean - 0.94), "held": mean, "each": held}


STRESS, SEAM = "stress / that of one instrument that sees all", "jump across borders / error inside"
ROWS: tuple[Row, ...] = (
    *(
        row
        for name in PUZZLES
        for row in (
            Row(f"fusion: {name}", 2.0, STRESS, partial(_measured, name=name), worst=1.0),
            Row(f"seams: {name}", 1.0, SEAM, partial(_seam, name=name), worst=1.0),
        )
    ),
    Row("95 % intervals of fusions", 0.04, "part that holds, distance from 94 %", _held),
)
