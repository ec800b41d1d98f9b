"""`fuse`: rigid maps synchronised over a graph, and all encoders refined together."""

import numpy as np
import pytest

from helpers import random_rotation
from instruments import fit, gauge, measured, plan, sheet
from pyloca import LOCA, TrustWarning
from pyloca.errors import BurstError, MatchError, ModelFileError
from pyloca.matching import Fusion, fuse
from pyloca.matching._joint import Edge
from pyloca.matching._synchronize import connected_to, synchronize
from pyloca.metrics import RigidMap, calibrate


def rms(difference):
    return np.sqrt(np.square(difference).sum(axis=-1).mean())


# -- parts ------------------------------------------------------------------------------------------------------


def ring(n=5, d=2, noise=0.0, scales=None, seed=0):
    """Instruments on a ring, each anchored with the next: edges, maps of these, true maps to those of the first."""
    random = np.random.RandomState(seed)
    scales = np.ones(n) if scales is None else scales
    maps = [RigidMap(random_rotation(d, i), random.standard_normal(d), scales[i]) for i in range(n)]
    maps[0] = RigidMap(np.eye(d), np.zeros(d))
    edges, between = [], []
    for i in range(n):
        j, X = (i + 1) % n, random.standard_normal((6, d))
        A, B = ((X - maps[k].shift) @ maps[k].rotation.T / maps[k].scale for k in (i, j))
        A = A + noise * random.standard_normal((6, d))
        between.append(calibrate(B, A, scale=True))
        edges.append(Edge(i, j, A, B, np.full(6, max(noise, 1e-3) ** 2)))
    return edges, between, maps


@pytest.mark.parametrize("d", [1, 2, 3])
def test_exact_maps_are_found(d):
    edges, between, maps = ring(d=d, scales=[1, 2, 0.5, 1, 3])
    found = synchronize(5, edges, between, d, np.array([False, True, True, False, True]))
    for one, other in zip(found, maps, strict=True):
        np.testing.assert_allclose(one.rotation, other.rotation, atol=1e-6)
        np.testing.assert_allclose(one.shift, other.shift, atol=1e-6)
        assert one.scale == pytest.approx(other.scale)


def test_who_is_connected():
    assert connected_to(7, ring()[0]).tolist() == [True] * 5 + [False] * 2


# -- the whole --------------------------------------------------------------------------------------------------


def third(x):
    return np.stack([2 * x[:, 0], x[:, 1] - 0.1 * x[:, 0] ** 2], axis=1)


SEEN = {
    "low": (sheet, lambda x: x[:, 1] < 1.3),
    "middle": (gauge, lambda x: (x[:, 1] > 0.5) & (x[:, 1] < 2.3)),
    "high": (third, lambda x: x[:, 1] > 1.5),
}


@pytest.fixture(scope="module")
def rooms():
    return {name: fit(f, plan(900, 5)[seen(plan(900, 5))][:130], 5) for name, (f, seen) in SEEN.items()}


def anchors(one, other, n=10):
    X = plan(2000, 9)
    X = X[SEEN[one][1](X) & SEEN[other][1](X)][:n]
    return SEEN[one][0](X), SEEN[other][0](X)


@pytest.fixture(scope="module")
def fusion(rooms):
    pairs = [("low", "middle"), ("middle", "high")]
    return fuse(rooms, {pair: anchors(*pair) for pair in pairs})


def test_the_plan_is_put_together(fusion):
    X = plan(300, 21)
    parts, states = [], []
    for name, (f, seen) in SEEN.items():
        parts.append(fusion.coordinates(f(X[seen(X)]), name))
        states.append(X[seen(X)])
    Z, X = np.concatenate(parts), np.concatenate(states)
    assert rms(calibrate(X, Z).apply(Z) - X) < 0.12


def test_seams_are_taken_out(fusion):
    for n, before, after in fusion.overlaps.values():
        assert n >= 9 and after < before
    X = plan(2000, 22)
    X = X[(X[:, 1] > 0.6) & (X[:, 1] < 1.2)][:100]
    jump = rms(fusion.coordinates(sheet(X), "low") - fusion.coordinates(gauge(X), "middle"))
    rigid = [
        fusion.maps[name].apply(fusion.models[name].transform(f(X))) for name, f in (("low", sheet), ("middle", gauge))
    ]
    assert jump <= 1.1 * rms(rigid[0] - rigid[1])


def test_predictions_go_from_room_to_room(fusion):
    X = plan(2000, 23)
    X = X[(X[:, 1] > 1.6) & (X[:, 1] < 2.2)][:50]
    found = fusion.predict(gauge(X), "middle", "high")
    assert rms(found.values - third(X)) < 0.12 and np.median(found.trust) > 0.05
    low, high = found.interval()
    assert ((low <= third(X)) & (third(X) <= high)).mean() > 0.8
    own = fusion.predict(gauge(X), "middle", "middle")
    assert rms(own.values - gauge(X)) < 30 and own.coordinate_errors.max() == 0
    away = X[:1] * [0, 0] + [1.5, 0.5]
    assert fusion.predict(sheet(away), "low", "high").trust < 0.05


def test_bursts_of_all_or_of_some_may_be_given(rooms):
    X, states = plan(900, 5), {}
    pairs = {pair: anchors(*pair) for pair in (("low", "middle"), ("middle", "high"))}
    for name, (_, seen) in SEEN.items():
        states[name] = X[seen(X)][:130]
    bursts = {name: measured(SEEN[name][0], states[name], 5) for name in SEEN}
    found, some = fuse(rooms, pairs, bursts=bursts), fuse(rooms, pairs, bursts={"low": bursts["low"]})
    new, off = plan(300, 21), []
    for one in (found, some):
        Z = np.concatenate([one.coordinates(f(new[seen(new)]), name) for name, (f, seen) in SEEN.items()])
        truth = np.concatenate([new[seen(new)] for _, seen in SEEN.values()])
        off.append(rms(calibrate(truth, Z).apply(Z) - truth))
    assert max(off) < 0.04 and off[0] != off[1]


def test_one_file(fusion, tmp_path, rooms):
    again = Fusion.load(fusion.save(tmp_path / "f.safetensors"))
    Y = gauge(plan(30, 3))
    np.testing.assert_array_equal(again.coordinates(Y, "middle"), fusion.coordinates(Y, "middle"))
    assert str(again) == str(fusion) and "low" in str(fusion)
    assert fusion._repr_html_().count("<svg") == 1 and len(fusion.plot().axes[0].collections) == 3
    rooms["low"].save(tmp_path / "low.safetensors")
    with pytest.raises(ModelFileError, match="not a pyloca fusion"):
        Fusion.load(tmp_path / "low.safetensors")


def test_instruments_that_cannot_be_connected_are_named(rooms):
    with pytest.warns(TrustWarning, match="no anchors connect 'high' with 'low'"):
        found = fuse(rooms, {("low", "middle"): anchors("low", "middle")})
    assert found.unconnected == ("high",)
    with pytest.raises(MatchError, match="'high' is not connected"):
        found.coordinates(third(plan(3, 1)), "high")
    with pytest.raises(MatchError, match="no instrument is connected"):
        fuse(rooms, {})


def test_bad_input_is_named(rooms, a, b):
    given = anchors("low", "middle")
    with pytest.raises(ValueError, match="at least 2"):
        fuse([a], {})
    with pytest.raises(ValueError, match="'0' and '1' are the same model"):
        fuse([a, a], {("0", "1"): given})
    with pytest.raises(ValueError, match="anchors name 'x'"):
        fuse(rooms, {("low", "x"): given})
    with pytest.raises(ValueError, match="given twice"):
        fuse(rooms, {("low", "middle"): given, ("middle", "low"): given[::-1]})
    with pytest.raises(ValueError, match="with itself"):
        fuse(rooms, {("low", "low"): given})
    with pytest.raises(TypeError, match="expected a mapping"):
        fuse([a, b], given)
    with pytest.raises(ValueError, match="expected a pair of names"):
        fuse(rooms, {"low": given})
    with pytest.raises(ValueError, match="instrument '1' is not fitted"):
        fuse([a, LOCA()], {("0", "1"): given})
    with pytest.raises(ValueError, match=r"instrument 'middle'.*NaN"):
        fuse(rooms, {("low", "middle"): (given[0], np.where(np.arange(10)[:, None] == 3, np.nan, given[1]))})
    with pytest.raises(ValueError, match=r"rows 0 and 1 .* are the same pair"):
        fuse(rooms, {("low", "middle"): (given[0][[0, 0, 2]], given[1][[0, 0, 2]])})
    with pytest.raises(MatchError, match=r"'low' and 'middle' are not connected: .*on one line"):
        line = np.linspace([0.1, 0.9], [0.7, 0.9], 5)
        fuse(rooms, {("low", "middle"): (sheet(line), gauge(line))})
    for strange in (1000 * measured(sheet, plan(80, 3), 3), measured(sheet, plan(80, 3) + 10, 3)):
        with pytest.raises(BurstError, match=r"instrument 'low': .* lie where the model has not been"):
            fuse(rooms, {("low", "middle"): given}, bursts={"low": strange})
    with pytest.raises(ValueError, match="bursts name 'x'"):
        fuse(rooms, {("low", "middle"): given}, bursts={"x": np.zeros((3, 4, 2))})
    with pytest.raises(ValueError, match="one set per instrument; got a list"):
        fuse([a, b], {("0", "1"): given}, bursts=[np.zeros((3, 4, 2))])
    with pytest.raises(BurstError, match="features"):
        fuse(rooms, {("low", "middle"): given}, bursts={"low": np.zeros((20, 9, 2)) + np.arange(9)[:, None]})
    with pytest.raises(ValueError, match="no instrument 'x'"):
        fuse(rooms, {("low", "middle"): given, ("middle", "high"): anchors("middle", "high")}).coordinates(
            given[0], "x"
        )
