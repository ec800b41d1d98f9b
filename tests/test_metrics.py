"""Stress and calibration: exact where the answer is known, and the chunked ways against the naive one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from helpers import random_rotation
from pyloca import metrics
from pyloca.metrics import calibrate, stress


def cloud(n, d, seed=0):
    return np.random.RandomState(seed).standard_normal((n, d))


# -- stress -----------------------------------------------------------------------------------------------------


def test_stress_by_hand():
    """Distances 1, 2, 3 against 1, 4, 5: the mean of 0, 4, 4."""
    assert stress([[0.0], [1.0], [3.0]], [[0.0], [1.0], [5.0]]) == pytest.approx(8 / 3)


def test_stress_of_two_points():
    assert stress([[0.0, 0.0], [3.0, 4.0]], [[0.0], [2.0]]) == pytest.approx(9.0)


@pytest.mark.parametrize(("d", "e"), [(1, 1), (2, 3), (3, 2)])
def test_stress_is_the_mean_over_pairs(d, e):
    X, Z = cloud(60, d), cloud(60, e, 1)
    dx, dz = pdist(X), pdist(Z)
    assert stress(X, Z) == pytest.approx(np.square(dx - dz).mean(), rel=1e-12)
    factor = dx @ dz / (dz @ dz)
    assert stress(X, Z, scale=True) == pytest.approx(np.square(dx - factor * dz).mean(), rel=1e-10)


def test_scaled_stress_is_the_least_over_factors():
    X, Z = cloud(40, 2), cloud(40, 2, 1)
    least = stress(X, Z, scale=True)
    assert least <= min(stress(X, c * Z) for c in np.linspace(0.01, 3, 300))
    assert least == pytest.approx(min(stress(X, c * Z) for c in np.linspace(0.01, 3, 300)), rel=1e-3)
    assert stress(X, 1e-6 * Z, scale=True) == pytest.approx(least)
    assert stress(X, 7 * X, scale=True) == pytest.approx(0, abs=1e-14)


def test_a_collapsed_embedding_has_the_stress_of_no_embedding():
    X = cloud(30, 2)
    expected = np.square(pdist(X)).mean()
    assert stress(X, np.zeros((30, 2))) == pytest.approx(expected)
    assert stress(X, np.zeros((30, 2)), scale=True) == pytest.approx(expected)


@given(seed=st.integers(0, 10_000), shift=st.floats(-100, 100))
def test_a_rigid_motion_has_no_stress(seed, shift):
    X = cloud(20, 3, seed)
    assert stress(X, X @ random_rotation(3, seed) + shift) < 1e-20


@pytest.mark.parametrize("slab", [1, 40, 41, 100, 1 << 20])
@pytest.mark.parametrize("n", [2, 3, 40])
def test_slabs_take_each_pair_once(n, slab, monkeypatch):
    monkeypatch.setattr(metrics, "SLAB", slab)
    pairs = np.concatenate([np.stack(part, axis=1) for part in metrics._pairs(n)])
    assert np.all(pairs[:, 0] < pairs[:, 1])
    assert len(pairs) == len(np.unique(pairs, axis=0)) == n * (n - 1) // 2
    X, Z = cloud(n, 2), cloud(n, 2, 1)
    assert stress(X, Z) == pytest.approx(np.square(pdist(X) - pdist(Z)).mean(), rel=1e-12)


def test_random_pairs_of_many_points_estimate_the_mean(monkeypatch):
    X, Z = cloud(300, 2), cloud(300, 2, 1)
    exact = {scale: stress(X, Z, scale=scale) for scale in (False, True)}
    monkeypatch.setattr(metrics, "ALL_PAIRS", 299)
    monkeypatch.setattr(metrics, "RANDOM_PAIRS", 500_000)
    monkeypatch.setattr(metrics, "SLAB", 70_000)
    for scale in (False, True):
        assert stress(X, Z, scale=scale) == pytest.approx(exact[scale], rel=0.01)
    assert stress(X, Z) == stress(X, Z)
    drawn = np.concatenate([np.stack(part, axis=1) for part in metrics._pairs(300)])
    assert len(drawn) == 500_000
    assert np.all(drawn[:, 0] != drawn[:, 1])
    assert drawn.min() == 0
    assert drawn.max() == 299


@pytest.mark.slow
def test_a_hundred_thousand_points(monkeypatch):
    """A stretch by 1 + a changes each distance D to (1 + a) D: stress a² · mean D², 2 d for a unit Gaussian."""
    monkeypatch.setattr(metrics, "RANDOM_PAIRS", 2_000_000)
    X = cloud(100_000, 2)
    assert stress(X, 1.1 * X) == pytest.approx(0.01 * 4, rel=0.01)
    assert stress(X, 1.1 * X, scale=True) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("function", [stress, lambda X, Z: calibrate(X, Z)], ids=["stress", "calibrate"])
@pytest.mark.parametrize(("x", "z"), [((5, 2), (4, 2)), ((5,), (5,)), ((5, 2), (5,)), ((5, 2, 1), (5, 2, 1))])
def test_wrong_shapes_are_told(function, x, z):
    with pytest.raises(ValueError, match=r"same number of rows; got shapes \(5"):
        function(np.ones(x), np.ones(z))


@pytest.mark.parametrize("function", [stress, calibrate])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_points_that_are_not_finite_are_refused(function, bad):
    X, Z = cloud(5, 2), cloud(5, 2)
    Z[3, 0] = bad
    for pair in ((X, Z), (Z, X)):
        with pytest.raises(ValueError, match="finite"):
            function(*pair)


@pytest.mark.parametrize("n", [0, 1])
def test_one_point_has_no_pairs(n):
    with pytest.raises(ValueError, match=f"at least 2 points; got {n}"):
        stress(np.zeros((n, 2)), np.zeros((n, 2)))


# -- calibrate --------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), shift=st.floats(-100, 100), factor=st.floats(0.01, 100))
def test_a_planted_map_is_found(seed, shift, factor):
    X, rotation = cloud(20, 3, seed), random_rotation(3, seed)
    Z = X @ rotation + shift
    found = calibrate(X, Z)
    assert found.scale == 1
    np.testing.assert_allclose(found.rotation, rotation.T, atol=1e-9)
    np.testing.assert_allclose(found.apply(Z), X, atol=1e-9)
    found = calibrate(X, factor * Z, scale=True)
    assert found.scale == pytest.approx(1 / factor, rel=1e-9)
    np.testing.assert_allclose(found.apply(factor * Z), X, atol=1e-9)


def test_reflections_are_allowed():
    X = cloud(10, 2)
    found = calibrate(X, X * [1, -1])
    assert np.linalg.det(found.rotation) == pytest.approx(-1)
    np.testing.assert_allclose(found.apply(X * [1, -1]), X, atol=1e-12)


def test_no_rigid_map_is_better():
    X = cloud(30, 2)
    Z = X @ random_rotation(2, 3) + 0.3 * cloud(30, 2, 1)

    def error(points):
        return np.square(points - X).sum(axis=1).mean()

    for scaling in (False, True):
        best = calibrate(X, Z, scale=scaling)
        least = error(best.apply(Z))
        for seed in range(200):
            random = np.random.RandomState(seed)
            turn = 0.1 * random.standard_normal()
            small = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
            factor = np.exp(0.05 * random.standard_normal()) if scaling else 1.0
            other = factor * (best.apply(Z) - X.mean(axis=0)) @ small + X.mean(axis=0)
            assert error(other + 0.01 * random.standard_normal(2)) > least


def test_calibration_on_a_few_points_extends_to_all():
    X = cloud(50, 2)
    Z = 3 * X @ random_rotation(2, 0) - 5
    np.testing.assert_allclose(calibrate(X[:4], Z[:4], scale=True).apply(Z), X, atol=1e-12)


@pytest.mark.parametrize(("d", "e"), [(3, 2), (2, 3)])
def test_dimensions_may_differ(d, e):
    X = cloud(20, e)
    flat = np.zeros((20, max(d, e)))
    flat[:, : min(d, e)] = X[:, : min(d, e)]
    X = flat[:, :e]
    Z = (flat @ random_rotation(3, 1))[:, :d] if d > e else flat[:, :d]
    found = calibrate(X, Z + 4)
    assert found.rotation.shape == (d, e)
    np.testing.assert_allclose(found.apply(Z + 4), X, atol=1e-12)


def test_a_collapsed_embedding_calibrates_to_the_mean():
    X = cloud(10, 2)
    found = calibrate(X, np.ones((10, 2)), scale=True)
    np.testing.assert_allclose(found.apply(np.ones((10, 2))), np.tile(X.mean(axis=0), (10, 1)), atol=1e-12)
