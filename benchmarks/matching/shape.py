"""Without anchors: right on an asymmetric plan, ambiguous on a square and a disc, refused for different rooms."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.matching.anchored import PAIR, TESTED, count, quietly, rms
from benchmarks.matching.instruments import fitted, readings
from benchmarks.rows import Row

__all__ = ["ROWS"]

RIGHT = 0.8  # metres: another candidate is several metres off


def _right(seed: int) -> dict[str, Any]:
    facts = count(seed, n=0, wrong=0)
    return facts | {"ok": facts["value"] < RIGHT}


def _mirror(seed: int) -> dict[str, Any]:
    found = quietly(*(fitted(name, "floor", seed)[1] for name in PAIR), names=PAIR)
    if found.chosen is None:
        said = f"{len(found.possible)} possible" if found.ambiguous else "refused"
        return {"value": float("inf"), "said": said, "p": found.p_value, "ok": found.ambiguous}
    _, new = readings(PAIR, "floor", seed, TESTED, 2)
    error = rms(found.predict(new["radio"], *PAIR).coordinates - found.b.encode(new["gauge"]))
    return {"value": error, "p": found.p_value, "ok": error < RIGHT}


def _ambiguous(seed: int, *, plan: str, continuous: bool) -> dict[str, Any]:
    found = quietly(*(fitted(name, plan, seed)[1] for name in PAIR), names=PAIR)
    ok = found.ambiguous and found.chosen is None and found.continuous == continuous
    return {"value": float(len(found.possible)), "continuous": found.continuous, "ok": ok}


def _different(seed: int, *, plans: tuple[str, str]) -> dict[str, Any]:
    models = [fitted(name, plan, seed)[1] for name, plan in zip(PAIR, plans, strict=True)]
    found = quietly(*models, names=PAIR)
    return {"value": found.p_value, "overlap": found.candidates[0].overlap, "ok": found.chosen is None}


ROWS: tuple[Row, ...] = (
    Row("no anchors: asymmetric plan", 0.5, "error in metres", _right),
    Row(
        "no anchors: floor plan, nearly its own mirror image",
        0.5,
        "error in metres; two candidates are an answer",
        _mirror,
    ),
    Row("no anchors: a square", 8, "possible candidates", partial(_ambiguous, plan="square", continuous=False)),
    Row("no anchors: a disc", 40, "possible candidates", partial(_ambiguous, plan="disc", continuous=True)),
    Row("no anchors: different rooms, floor and L", 0.01, "p-value", partial(_different, plans=("floor", "L"))),
    Row("no anchors: different rooms, L and square", 0.01, "p-value", partial(_different, plans=("L", "square"))),
)
