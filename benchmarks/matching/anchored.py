"""Cross-prediction with anchors: how many, how many of them wrong, how much the instruments overlap."""

from __future__ import annotations

import itertools
import warnings
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.matching.instruments import INSTRUMENTS, POINTS, fit, fitted, make, readings, states
from benchmarks.rows import Row
from pyloca import LOCA, MatchError, TrustWarning
from pyloca.matching import Match, match
from pyloca.metrics import calibrate
from pyloca.plots import spread_rows

__all__ = ["COUNTS", "OVERLAPS", "PAIR", "ROWS", "TESTED", "count", "quietly", "rms"]

Array = NDArray[np.float64]

THREE = ("radio", "camera", "gauge")
PAIR = ("radio", "gauge")
TESTED = 300
SPREAD = 60  # places of which a user chooses anchors that are spread out


def rms(difference: Array) -> float:
    return float(np.sqrt(np.square(difference).sum(axis=1).mean()))


def quietly(*given: Any, **options: Any) -> Match:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return match(*given, **options)


def _spread(names: tuple[str, ...], plan: str, seed: int, n: int) -> tuple[Array, dict[str, Array]]:
    """Simultaneous readings at n places that are spread over a plan."""
    X, Y = readings(names, plan, seed, max(SPREAD, n), 1)
    rows = spread_rows(X, n)
    return X[rows], {name: Y[name][rows] for name in names}


def _six(seed: int) -> dict[str, Any]:
    """Largest ratio of six directions; also the part of stated 95 % intervals that hold, sensor by sensor."""
    _, Y = _spread(THREE, "floor", seed, 5)
    _, new = readings(THREE, "floor", seed, TESTED, 2)
    models = {name: fitted(name, "floor", seed)[1] for name in THREE}
    ratios, held = {}, []
    for one, other in itertools.combinations(THREE, 2):
        found = quietly(models[one], models[other], (Y[one], Y[other]), names=(one, other))
        for source, target in ((one, other), (other, one)):
            told = found.predict(new[source], source, target)
            own = models[target].decode(models[target].encode(new[target]))
            encoded = models[source].encode(new[source])
            ideal = models[target].decode(calibrate(models[target].encode(new[target]), encoded).apply(encoded))
            expected = rms(own - new[target]) + rms(ideal - own)
            ratios[f"{source} to {target}"] = rms(told.values - new[target]) / expected
            low, high = told.interval(0.95)
            held.append(float(((low <= new[target]) & (new[target] <= high)).mean()))
    return {"value": max(ratios.values()), "held": float(np.mean(held)), "ratios": ratios}


def _error(found: Match, plan: str, seed: int) -> tuple[float, float]:
    """Error of mapped coordinates in metres over a plan, and the part of stated 95 % intervals that hold."""
    _, new = readings(PAIR, plan, seed, TESTED, 2)
    told = found.predict(new["radio"], *PAIR)
    low, high = told.interval(0.95)
    held = float(((low <= new["gauge"]) & (new["gauge"] <= high)).mean())
    return rms(told.coordinates - found.b.encode(new["gauge"])), held


@cache
def count(seed: int, *, n: int, wrong: int = 0) -> dict[str, Any]:
    """Error with n anchors on an asymmetric plan, some of them wrong; what is stated of it, and what holds."""
    models = [fitted(name, "L", seed)[1] for name in PAIR]
    anchors = None
    if n:
        _, Y = _spread(PAIR, "L", seed, n)
        if wrong:
            Y["gauge"][: wrong + 1] = np.roll(Y["gauge"][: wrong + 1], 1, axis=0)
            Y["gauge"][wrong] = _spread(PAIR, "L", seed, n)[1]["gauge"][wrong]
        anchors = Y["radio"], Y["gauge"]
    found = quietly(*models, anchors, names=PAIR)
    if found.chosen is None:
        return {"value": float("inf"), "said": "ambiguous" if found.ambiguous else "refused", "p": found.p_value}
    error, held = _error(found, "L", seed)
    stated = found.standard_error * np.sqrt(2)
    return {"value": error, "held": held, "stated": stated, "used": int(found.used.sum()), "p": found.p_value}


# -- anchors that are all wrong in the same way ------------------------------------------------------------------

CORNERS = {"L": (0.3, 0.3, 2.2, 5.0), "T": (2.2, 1.0, 3.8, 5.5)}  # of a rectangle in the plan, in metres
ORDERS = {"mirrored": [1, 0, 3, 2], "upside down": [3, 2, 1, 0], "turned": [2, 3, 0, 1]}


@cache
def _reordered(seed: int, *, wrong: bool) -> dict[str, Any]:
    """Part of matches by the corners of a rectangle that say what is not so: rows in another order, or the same."""
    told, errors = [], []
    for plan, (left, bottom, right, top) in CORNERS.items():
        places = np.array([(left, bottom), (right, bottom), (right, top), (left, top)])
        models = [fitted(name, plan, seed)[1] for name in PAIR]
        Y, other = (INSTRUMENTS[name](seed).measure(places) for name in PAIR)
        for order in ORDERS.values() if wrong else ([0, 1, 2, 3],):
            found = quietly(*models, (Y, other[order]), names=PAIR)
            told.append(any("shapes contradict" in word for word in found.warnings))
            errors.append(_error(found.choose(0), plan, seed)[0])
    return {"value": float(np.mean([one != wrong for one in told])), "error": max(errors)}


# -- overlaps ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _part(name: str, seed: int, overlap: float) -> LOCA:
    """A model of the part of the floor that one instrument sees: the south (radio) or the north (gauge)."""
    both = overlap / (2 - overlap)  # of all states, if each instrument sees the same number
    low, high = np.quantile(states("floor", 4000, np.random.RandomState(0))[:, 1], [0.5 - both / 2, 0.5 + both / 2])
    random = np.random.RandomState([seed, len(name), int(100 * overlap)])
    X = states("floor", 2000, random)
    X = X[X[:, 1] < high] if name == "radio" else X[X[:, 1] > low]
    instrument = INSTRUMENTS[name](seed)
    return fit(make(instrument, X[:300], POINTS, random), instrument.burst_std, seed)


@cache
def _overlap(seed: int, *, overlap: float) -> dict[str, Any]:
    """Error in the overlap of two instruments that saw overlapping parts of the floor."""
    both = overlap / (2 - overlap)
    low, high = np.quantile(states("floor", 4000, np.random.RandomState(0))[:, 1], [0.5 - both / 2, 0.5 + both / 2])
    models = [_part(name, seed, overlap) for name in PAIR]
    X = states("floor", 20_000, np.random.RandomState([seed, 5]))
    near = X[(X[:, 1] > low) & (X[:, 1] < high)] if overlap else X
    places = near[:SPREAD][spread_rows(near[:SPREAD], 5)]
    measured = [INSTRUMENTS[name](seed).measure for name in PAIR]
    try:
        found = quietly(*models, (measured[0](places), measured[1](places)), names=PAIR)
        chosen = found.chosen is not None
    except MatchError:
        chosen = False
    if not chosen:
        return {"value": 0.0 if overlap == 0 else float("inf"), "said": "refused", "ok": overlap == 0}
    if overlap == 0:
        return {"value": float("inf"), "said": "an answer", "ok": False}
    test = near[SPREAD : SPREAD + TESTED]
    told = found.predict(measured[0](test), *PAIR)
    outside = X[X[:, 1] < low - 1][:TESTED]
    strange = float((found.predict(measured[0](outside), *PAIR).trust < 0.05).mean())
    truth = measured[1](test)
    bounds = told.interval(0.95)
    held = float(((bounds[0] <= truth) & (truth <= bounds[1])).mean())
    error = rms(told.coordinates - models[1].encode(truth))
    alarm = any("shapes contradict" in word for word in found.warnings)
    return {"value": error, "held": held, "outside flagged": strange, "false alarm": alarm}


def _held(seed: int) -> dict[str, Any]:
    """How far from 94 %, the middle of 90 to 98 %, the part of stated 95 % intervals is that hold, over all kinds."""
    kinds = [partial(count, n=n, wrong=wrong) for n, wrong in COUNTS]
    kinds += [partial(_overlap, overlap=overlap) for overlap in OVERLAPS if overlap]
    held = [facts["held"] for facts in (kind(seed) for kind in kinds) if "held" in facts]
    return {"value": abs(float(np.mean(held)) - 0.94), "held": float(np.mean(held)), "least": min(held)}


METRES = "error in metres"
BARS = {0: 0.5, 1: 0.5, 2: 0.4}  # by number of anchors, where shapes must help; 0.25 with more
COUNTS = ((0, 0), (1, 0), (2, 0), (3, 0), (5, 0), (10, 0), (20, 0), (5, 1), (10, 2), (20, 4))
OVERLAPS = (0.6, 0.3, 0.15, 0.0)
ROWS: tuple[Row, ...] = (
    Row("three instruments, 5 anchors", 1.5, "worst of 6 directions / (own + encoders)", _six, worst=1.0),
    *(
        Row(
            f"{n} anchors" + (f", {wrong} wrong" if wrong else ""),
            BARS.get(n, 0.25),
            METRES,
            partial(count, n=n, wrong=wrong),
            worst=2.0,
        )
        for n, wrong in COUNTS
    ),
    Row("4 anchors, right", 0.0, "part that is called wrong", partial(_reordered, wrong=False)),
    Row("4 anchors, all wrong in the same way", 0.0, "part that is not told", partial(_reordered, wrong=True)),
    *(
        Row(f"overlap {overlap:.0%}, 5 anchors", 0.25, METRES, partial(_overlap, overlap=overlap), worst=2.0)
        for overlap in OVERLAPS
    ),
    Row("95 % intervals of the last 13 that have an answer", 0.04, "part that holds, distance from 94 %", _held),
)
