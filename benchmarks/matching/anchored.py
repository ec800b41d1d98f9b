"""Cross-prediction with anchors: how many, how many of them wrong, how much the instruments overlap."""

from __future__ import annotations

import itertools
import warnings
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.matching.instruments import INSTRUMENTS, POINTS, fit, fitted, make, readings, states
from benchmarks.rows import Row
from pyloca import LOCA, MatchError, TrustWarning
from pyloca.matching import Match, match
from pyloca.metrics import calibrate
from pyloca.plots import spread_rows

__all__ = ["ROWS", "quietly", "rms"]

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


def _count(seed: int, *, n: int, wrong: int = 0) -> dict[str, Any]:
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
        return {"value": float("inf"), "said": "ambiguous" if found.ambiguous else "refused"}
    error, held = _error(found, "L", seed)
    return {"value": error, "held": held, "stated": found.standard_error * np.sqrt(2), "used": int(found.used.sum())}


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


def _overlap(seed: int, *, overlap: float) -> dict[str, Any]:
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
    return {"value": error, "held": held, "outside flagged": strange}


METRES = "error in metres"
ROWS: tuple[Row, ...] = (
    Row("three instruments, 5 anchors", 1.5, "worst of 6 directions / (own + encoders)", _six, worst=1.0),
    *(Row(f"{n} anchors", bar, METRES, partial(_count, n=n), worst=2.0) for n, bar in ((0, 0.5), (1, 0.5), (2, 0.4))),
    *(Row(f"{n} anchors", 0.25, METRES, partial(_count, n=n), worst=2.0) for n in (3, 5, 20)),
    Row("5 anchors, 1 wrong", 0.25, METRES, partial(_count, n=5, wrong=1), worst=2.0),
    Row("10 anchors, 2 wrong", 0.25, METRES, partial(_count, n=10, wrong=2), worst=2.0),
    Row("20 anchors, 4 wrong", 0.25, METRES, partial(_count, n=20, wrong=4), worst=2.0),
    *(
        Row(f"overlap {overlap:.0%}, 5 anchors", 0.25, METRES, partial(_overlap, overlap=overlap), worst=2.0)
        for overlap in (0.6, 0.3, 0.15, 0.0)
    ),
)
