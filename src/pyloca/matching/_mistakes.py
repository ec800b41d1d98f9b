"""Common mistakes in tables of anchors: rows in another order, a row too many, exchanged columns or tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from pyloca.estimator import LOCA, feature_label
from pyloca.matching._anchors import COUNTED, Anchors
from pyloca.metrics import RigidMap

__all__ = ["of_columns", "of_rows"]

Array = NDArray[np.float64]
Mistake = tuple[str, Array, Array]  # in words, and the anchors (n, d), (n, d) without it

COLUMNS = 12  # readings with more are not tables whose columns someone typed
NAMED = 6  # rows at most in a sentence


def of_rows(names: tuple[str, str], anchors: Anchors, rigid: RigidMap) -> Iterator[Mistake]:
    """Yield what may be wrong with the rows of tables, if `rigid` is right."""
    A, B, rows = anchors.A, anchors.B, anchors.rows
    order = linear_sum_assignment(np.square(rigid.apply(A)[:, None] - B).sum(axis=2))[1]
    moved = np.flatnonzero(order != np.arange(len(A)))
    if len(moved):
        pairs = zip(rows[moved[:NAMED]], rows[order[moved[:NAMED]]], strict=True)
        told = ", ".join(f"{there} in place of {here}" for here, there in pairs)
        more = ", …" if len(moved) > NAMED else ""
        yield f"the rows of {names[1]!r} in another order, {told}{more} {COUNTED}", A, B[order]
    yield f"the rows of {names[1]!r} one further down", A[1:], B[:-1]
    yield f"the rows of {names[0]!r} one further down", A[:-1], B[1:]


def of_columns(models: tuple[LOCA, LOCA], names: tuple[str, str], anchors: Anchors) -> Iterator[Mistake]:
    """Yield what may be wrong with the columns of tables, or with the tables."""
    A, B = anchors.A, anchors.B
    if not anchors.readings:
        return
    a, b = anchors.readings
    if a.shape == b.shape:
        yield f"the readings of {names[0]!r} and {names[1]!r} exchanged", models[0].encode(b), models[1].encode(a)
    for side, (model, readings) in enumerate(zip(models, anchors.readings, strict=True)):
        for i, j in combinations(range(readings.shape[1]) if readings.shape[1] <= COLUMNS else (), 2):
            swapped = readings.copy()
            swapped[:, [i, j]] = readings[:, [j, i]]
            told = f"{feature_label(model, i)} and {feature_label(model, j)} of {names[side]!r} exchanged"
            Z = model.encode(swapped)
            yield told, Z if side == 0 else A, Z if side == 1 else B
