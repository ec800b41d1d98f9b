"""Four instruments that cover a floor in overlapping parts, against one that sees all of it."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.matching.anchored import rms
from benchmarks.matching.instruments import POINTS, Instrument, fit, fitted, gauge, make, radio, states
from benchmarks.rows import Row
from pyloca import LOCA, TrustWarning
from pyloca.matching import fuse
from pyloca.metrics import calibrate, stress
from pyloca.plots import spread_rows

__all__ = ["ROWS"]

Array = NDArray[np.float64]

ANCHORS, EACH, TESTED = 8, 200, 400
PARTS = ("south", "west", "east", "north")
OVERLAPS = (("south", "west"), ("south", "east"), ("west", "north"), ("east", "north"))


def _inside(part: str, X: Array) -> NDArray[np.bool_]:
    x, y = X.T
    return {
        "south": y < 3.3,
        "west": (x < 2.8) & (y > 0.8) & (y < 6.4),
        "east": (x > 3.2) & (y > 0.8) & (y < 6.4),
        "north": y > 5.3,
    }[part]


def _instrument(part: str, seed: int) -> Instrument:
    """Each part has an instrument of its own: two radios and two gauges, all different."""
    return {"south": radio, "west": gauge, "east": gauge, "north": radio}[part](100 * seed + PARTS.index(part))


@lru_cache(maxsize=8)
def _model(part: str, seed: int) -> LOCA:
    random = np.random.RandomState([seed, 60 + PARTS.index(part)])
    X = states("floor", 3000, random)
    X = X[_inside(part, X)][:EACH]
    instrument = _instrument(part, seed)
    return fit(make(instrument, X, POINTS, random), instrument.burst_std, seed)


def _places(seed: int, stream: int, *parts: str) -> Array:
    X = states("floor", 8000, np.random.RandomState([seed, stream]))
    return X[np.logical_and.reduce([_inside(part, X) for part in parts])]


def _fusion(seed: int) -> dict[str, Any]:
    anchors = {}
    for one, other in OVERLAPS:
        X = _places(seed, 70, one, other)[:60]
        X = X[spread_rows(X, ANCHORS)]
        anchors[one, other] = (_instrument(one, seed).measure(X), _instrument(other, seed).measure(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        found = fuse({part: _model(part, seed) for part in PARTS}, anchors)
    X = [_places(seed, 71, part)[: TESTED // 4] for part in PARTS]
    Z = [found.coordinates(_instrument(part, seed).measure(x), part) for part, x in zip(PARTS, X, strict=True)]
    every, placed = np.concatenate(X), np.concatenate(Z)
    inside = rms(calibrate(every, placed).apply(placed) - every)
    jumps = []
    for one, other in OVERLAPS:
        both = _places(seed, 72, one, other)[:100]
        ends = [found.coordinates(_instrument(part, seed).measure(both), part) for part in (one, other)]
        jumps.append(rms(ends[0] - ends[1]))
    whole = fitted("radio", "floor", seed)[1]
    alone = stress(every, whole.encode(radio(seed).measure(every)))
    ratio, seam = stress(every, placed) / alone, max(jumps) / inside
    before = max(values[1] for values in found.overlaps.values()) / inside
    return {"value": ratio, "seam / error": seam, "rigid seam": before, "error": inside, "ok": ratio <= 2 and seam <= 1}


ROWS: tuple[Row, ...] = (
    Row("fusion: four parts of a floor", 2.0, "stress / that of one instrument that sees all", _fusion),
)
