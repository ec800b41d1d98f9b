"""Bursts and anchors that a fit does not explain are named; right ones are not, however few or new they are."""

import warnings

import numpy as np
import pytest

from instruments import gauge, measured, plan, sheet
from pyloca.errors import BurstError, MatchError, TrustWarning
from pyloca.matching import _doubts, _precision, fuse, match
from pyloca.matching._anchors import read_anchors
from pyloca.matching._doubts import contradicted
from pyloca.matching._joint import Edge
from pyloca.matching._precision import look

NEW = plan(1000, 31)


@pytest.mark.parametrize(
    "bursts",
    [
        measured(sheet, plan(150, 0), 0)[:75],
        measured(sheet, NEW[:100], 32),
        measured(sheet, NEW[:100], 33, n_points=10),  # rougher, as they have fewer points
        measured(sheet, NEW[:30], 34, n_points=200),
    ],
)
def test_bursts_of_the_same_instrument_are_taken(a, bursts):
    assert len(look(a, bursts).seen.places) == len(bursts)


def test_bursts_that_the_fit_does_not_explain_are_refused(a, b):
    given = {("0", "1"): (sheet(NEW[:6]), gauge(NEW[:6]))}
    right = measured(sheet, plan(150, 0), 0)
    for wrong in (right[..., [0, 2, 1]], 1.1 * right, right * [1, 1, 1.3]):
        with pytest.raises(BurstError, match=r"'0': they are not bursts of its fit: the decoder .* in another order"):
            fuse([a, b], given, bursts=[wrong, measured(gauge, plan(150, 1), 1)])
    X = plan(150, 0)
    wide = X[:, None] + 0.04 * np.random.RandomState(0).standard_normal((150, 40, 2))
    with pytest.raises(
        BurstError, match=r"loss is .* and they are (1\.9|2) times as large. Have they another burst_std"
    ):
        fuse(
            {"a": a, "b": b},
            {("a", "b"): given["0", "1"]},
            bursts={"a": sheet(wide.reshape(-1, 2)).reshape(150, 40, 3)},
        )


def test_a_refinement_that_tears_a_fit_apart_is_refused(a, b, monkeypatch):
    monkeypatch.setattr(_precision, "_check_seen", lambda *_: None)
    given = {("0", "1"): (sheet(NEW[:6]), gauge(NEW[:6]))}
    right = measured(sheet, plan(150, 0), 0)
    with pytest.raises(
        MatchError, match=r"moves the places of '0' by .* Its bursts or its anchors are not of this fit"
    ):
        monkeypatch.setattr(_doubts, "TORN_AWAY", 0.001)
        fuse({"0": a, "1": b}, given, bursts={"0": right})


def test_anchors_that_contradict_bursts_are_named(a, b):
    looked = {"a": look(a, measured(sheet, plan(150, 0), 0)), "b": look(b)}
    found = match(a, b, (sheet(NEW[:6]), gauge(NEW[:6])))
    edge = Edge(0, 1, np.zeros((6, 2)), np.ones((6, 2)), np.full(6, 1e-4))
    (word,) = contradicted(looked, [edge], found.joint, 30.0)
    assert word.startswith("the anchors contradict the bursts of 'a'")
    assert not contradicted(looked, [edge], found.joint, 2.0)


def test_part_of_the_bursts_is_not_called_the_fit(a, b, monkeypatch):
    monkeypatch.setattr(_doubts, "FOLLOWED", -100.0)
    given = {("a", "b"): (sheet(NEW[:6]), gauge(NEW[:6]))}
    right = measured(sheet, plan(150, 0), 0)
    with pytest.warns(TrustWarning, match="75 bursts of 'a' were given, where its fit had 150"):
        fuse({"a": a, "b": b}, given, bursts={"a": right[:75]})
    with pytest.warns(TrustWarning, match="the fit of 'a' follows its 150 bursts"):
        fuse({"a": a, "b": b}, given, bursts={"a": right})


def test_anchors_by_an_instrument_that_has_changed_are_named(a, b):
    X = NEW[:8]
    changed = sheet(X) * [1, 1, 1.15]
    with pytest.warns(TrustWarning, match=r"[78] of 8 anchors by 'new' are not like .* has the instrument changed"):
        found = match(a, b, (changed, gauge(X)), names=("new", "gauge"))
    assert len(found.warnings) >= 1


@pytest.mark.parametrize("n", [2, 3, 5, 8, 30])
def test_right_anchors_are_not_called_changed(a, b, n):
    for start in range(0, 300, n)[:20]:
        X = NEW[start : start + n]
        pairs = [(sheet(X), gauge(X)), (measured(sheet, X, start), measured(gauge, X, start + 1))]
        with warnings.catch_warnings():
            warnings.simplefilter("error", TrustWarning)
            assert [read_anchors(a, b, one, None, ("a", "b")).unlike for one in pairs] == [(), ()]
