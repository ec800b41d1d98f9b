"""An instrument that has changed: old coordinates kept, drift told from none."""

from __future__ import annotations

import warnings
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.matching.anchored import rms
from benchmarks.matching.instruments import BURSTS, INSTRUMENTS, POINTS, fitted, make, states
from benchmarks.rows import Row
from pyloca import TrustWarning
from pyloca.matching import Recalibration, recalibrate
from pyloca.metrics import calibrate
from pyloca.plots import spread_rows

__all__ = ["ROWS"]

Array = NDArray[np.float64]

NAME, PLAN, ANCHORS = "radio", "L", 10


def _changed(kind: str, Y: Array, seed: int) -> Array:
    """Readings (…, D) of the instrument as it is now: D = 17 signal strengths of about 0 to 1."""
    random = np.random.RandomState([seed, 8])
    if kind == "gains":
        return Y * (1 + 0.1 * random.standard_normal(Y.shape[-1]))
    if kind == "offsets":
        return Y + 0.05 * random.standard_normal(Y.shape[-1])
    if kind == "a replaced sensor":
        return np.concatenate([-np.log(Y[..., :1]), Y[..., 1:]], axis=-1)
    return Y


@lru_cache(maxsize=8)
def _now(kind: str, seed: int) -> tuple[Array, Array]:
    random = np.random.RandomState([seed, 9])
    X = states(PLAN, BURSTS, random)
    return X, _changed(kind, make(INSTRUMENTS[NAME](seed), X, POINTS, random), seed)


def _again(kind: str, seed: int, anchors: bool) -> tuple[Array, Recalibration]:
    X, bursts = _now(kind, seed)
    places = states(PLAN, 60, np.random.RandomState([seed, 10]))
    places = places[spread_rows(places, ANCHORS)]
    Y = INSTRUMENTS[NAME](seed).measure(places)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        old = fitted(NAME, PLAN, seed)[1]
        return X, recalibrate(old, bursts, (Y, _changed(kind, Y, seed)) if anchors else None)


def _kept(seed: int, *, kind: str, anchors: bool) -> dict[str, Any]:
    before, old = fitted(NAME, PLAN, seed)
    X, found = _again(kind, seed, anchors)
    place = calibrate(old.embedding_, before)
    first = rms(place.apply(before) - old.embedding_)
    ratio = rms(place.apply(X) - found.coordinates(_now(kind, seed)[1])) / first
    rigid = rms(place.apply(X) - found.refitted.embedding_) / first
    right = found.drifted == (kind != "nothing")
    ok = right and ratio <= 2
    facts = {"value": ratio, "refitted": rigid, "kept": found.kept, "how": found.how, "p": found.p_value, "ok": ok}
    return facts | ({"sensors": found.sensors.told} if found.sensors else {})


WHAT = "error / that of the first fit"
KINDS = ("nothing", "gains", "offsets", "a replaced sensor")
ROWS: tuple[Row, ...] = tuple(
    Row(f"drift: {kind}, {words}", 2.0, WHAT, partial(_kept, kind=kind, anchors=anchors))
    for words, anchors in ((f"{ANCHORS} anchors", True), ("no anchors", False))
    for kind in KINDS
)
