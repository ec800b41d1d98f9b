"""Metrics: exact where the answer is known, and the chunked ways against the naive one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from helpers import random_rotation
from pyloca.metrics import _foscttm as foscttm_module
from pyloca.metrics import _stress as stress_module
from pyloca.metrics import (
    calibrate,
    calibrate_affine,
    continuity,
    foscttm,
    kruskal_stress,
    place_errors,
    stress,
    trustworthiness,
)


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
    monkeypatch.setattr(stress_module, "SLAB", slab)
    pairs = np.concatenate([np.stack(part, axis=1) for part in stress_module._pairs(n)])
    assert np.all(pairs[:, 0] < pairs[:, 1])
    assert len(pairs) == len(np.unique(pairs, axis=0)) == n * (n - 1) // 2
    X, Z = cloud(n, 2), cloud(n, 2, 1)
    assert stress(X, Z) == pytest.approx(np.square(pdist(X) - pdist(Z)).mean(), rel=1e-12)


def test_random_pairs_of_many_points_estimate_the_mean(monkeypatch):
    X, Z = cloud(300, 2), cloud(300, 2, 1)
    exact = {scale: stress(X, Z, scale=scale) for scale in (False, True)}
    monkeypatch.setattr(stress_module, "ALL_PAIRS", 299)
    monkeypatch.setattr(stress_module, "RANDOM_PAIRS", 500_000)
    monkeypatch.setattr(stress_module, "SLAB", 70_000)
    for scale in (False, True):
        assert stress(X, Z, scale=scale) == pytest.approx(exact[scale], rel=0.01)
    assert stress(X, Z) == stress(X, Z)
    drawn = np.concatenate([np.stack(part, axis=1) for part in stress_module._pairs(300)])
    assert len(drawn) == 500_000
    assert np.all(drawn[:, 0] != drawn[:, 1])
    assert drawn.min() == 0
    assert drawn.max() == 299


@pytest.mark.slow
def test_a_hundred_thousand_points(monkeypatch):
    """A stretch by 1 + a changes each distance D to (1 + a) D: stress a² · mean D², 2 d for a unit Gaussian."""
    monkeypatch.setattr(stress_module, "RANDOM_PAIRS", 2_000_000)
    X = cloud(100_000, 2)
    assert stress(X, 1.1 * X) == pytest.approx(0.01 * 4, rel=0.01)
    assert stress(X, 1.1 * X, scale=True) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("function", [stress, lambda X, Z: calibrate(X, Z)], ids=["stress", "calibrate"])
@pytest.mark.parametrize(("x", "z"), [((5, 2), (4, 2)), ((5,), (5,)), ((5, 2), (5,)), ((5, 2, 1), (5, 2, 1))])
def test_wrong_shapes_are_told(function, x, z):
    with pytest.raises(ValueError, match=r"same number of rows; got shapes \(5"):
        function(np.ones(x), np.ones(z))


@pytest.mark.parametrize("function", [stress, calibrate, kruskal_stress, trustworthiness, place_errors, foscttm])
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


def test_an_affine_map_is_the_least_squares_solution():
    X, Z = cloud(30, 2), cloud(30, 3, 1)
    design = np.c_[Z, np.ones(30)]
    naive = design @ np.linalg.solve(design.T @ design, design.T @ X)
    found = calibrate_affine(X, Z)
    assert found.matrix.shape == (3, 2)
    np.testing.assert_allclose(found.apply(Z), naive, atol=1e-12)


def test_an_affine_map_through_every_point_is_refused():
    with pytest.raises(ValueError, match=r"exactly through 3 points, so at least 4 are needed .* got 3"):
        calibrate_affine(cloud(3, 2), cloud(3, 2, 1))


# -- Kruskal's stress -------------------------------------------------------------------------------------------


def test_kruskal_stress_against_its_formula():
    X, Z = cloud(50, 2), cloud(50, 3, 1)
    dx, dz = pdist(X), pdist(Z)
    factor = dx @ dz / (dz @ dz)
    assert kruskal_stress(X, Z) == pytest.approx(np.sqrt(np.square(dx - factor * dz).sum() / np.square(dx).sum()))
    assert kruskal_stress(X, Z, scale=False) == pytest.approx(np.sqrt(np.square(dx - dz).sum() / np.square(dx).sum()))
    assert kruskal_stress(X, Z) == pytest.approx(kruskal_stress(Z, X))
    assert kruskal_stress(X, np.zeros((50, 2))) == 1


def test_kruskal_stress_of_one_place_is_refused():
    with pytest.raises(ValueError, match="all points of X are the same"):
        kruskal_stress(np.ones((5, 2)), cloud(5, 2))


# -- neighbours -------------------------------------------------------------------------------------------------


def naive_trustworthiness(X, Z, k):
    n, over = len(X), 0
    for i in range(n):
        true = sorted((j for j in range(n) if j != i), key=lambda j: np.linalg.norm(X[i] - X[j]))
        shown = sorted((j for j in range(n) if j != i), key=lambda j: np.linalg.norm(Z[i] - Z[j]))
        over += sum(max(0, true.index(j) + 1 - k) for j in shown[:k])
    return 1 - 2 * over / (n * k * (2 * n - 3 * k - 1))


@pytest.mark.parametrize("k", [1, 4, 9])
def test_neighborhoods_against_ranks_by_hand(k):
    X = cloud(25, 2)
    Z = X + 0.7 * cloud(25, 2, 1)
    assert trustworthiness(X, Z, n_neighbors=k) == pytest.approx(naive_trustworthiness(X, Z, k), abs=1e-12)
    assert continuity(X, Z, n_neighbors=k) == pytest.approx(naive_trustworthiness(Z, X, k), abs=1e-12)
    assert trustworthiness(X, Z, n_neighbors=k) < 1


@pytest.mark.parametrize("function", [trustworthiness, continuity])
def test_too_many_neighbours_are_told(function):
    with pytest.raises(ValueError, match="below half of the 20 points; got 10"):
        function(cloud(20, 2), cloud(20, 2))
    with pytest.raises(ValueError, match=r"integer of at least 1; got 2\.5"):
        function(cloud(20, 2), cloud(20, 2), n_neighbors=2.5)


# -- errors of places -------------------------------------------------------------------------------------------


def test_place_errors_by_hand():
    X = np.zeros((5, 2))
    found = place_errors(X, [[0, 1], [2, 0], [0, 3], [4, 0], [3, 4]], calibration=None)
    assert found.errors.tolist() == [1, 2, 3, 4, 5]
    assert (found.mean, found.cep) == (3, 3)
    assert found.r95 == pytest.approx(4.8)


def test_each_calibration_forgives_what_it_says():
    X = cloud(200, 2)
    turned = X @ random_rotation(2, 1) + 3
    sheared = turned @ [[1.0, 0.4], [0.0, 1.2]]
    exact = {
        name: [place_errors(X, Z, calibration=name).r95 < 1e-9 for Z in (turned, 2 * turned, sheared)]
        for name in ("rigid", "similar", "affine")
    }
    assert exact == {"rigid": [True, False, False], "similar": [True, True, False], "affine": [True, True, True]}


def test_place_errors_says_what_is_wrong():
    with pytest.raises(ValueError, match="'rigid', 'similar', 'affine' or None; got 'conformal'"):
        place_errors(cloud(9, 2), cloud(9, 2), calibration="conformal")
    with pytest.raises(ValueError, match=r"in the coordinates of X; got shapes \(9, 2\) and \(9, 3\)"):
        place_errors(cloud(9, 2), cloud(9, 3), calibration=None)
    with pytest.raises(ValueError, match="at least 1 point"):
        place_errors(np.zeros((0, 2)), np.zeros((0, 2)))


# -- FOSCTTM ----------------------------------------------------------------------------------------------------


def naive_foscttm(A, B):
    n, parts = len(A), []
    for one, other in ((A, B), (B, A)):
        for i in range(n):
            own = np.linalg.norm(one[i] - other[i])
            rivals = [np.linalg.norm(one[i] - other[j]) for j in range(n) if j != i]
            parts.append(sum(1.0 if each < own else 0.5 if each == own else 0.0 for each in rivals) / (n - 1))
    return np.mean(parts)


@pytest.mark.parametrize("slab", [1, 70, 1 << 20])
def test_foscttm_against_a_loop(slab, monkeypatch):
    monkeypatch.setattr(foscttm_module, "SLAB", slab)
    A = cloud(30, 2)
    for B in (A + 0.5 * cloud(30, 2, 1), cloud(30, 2, 2)):
        assert foscttm(A, B) == pytest.approx(naive_foscttm(A, B), abs=1e-12)
    grid = np.arange(6.0)[:, None]
    assert foscttm(grid, grid[::-1]) == pytest.approx(naive_foscttm(grid, grid[::-1]))  # with ties


def test_foscttm_of_matches_and_of_chance():
    A = cloud(400, 2)
    assert foscttm(A, A) == 0
    assert foscttm(A, cloud(400, 2, 1)) == pytest.approx(0.5, abs=0.05)
    assert foscttm(A, np.zeros_like(A)) == pytest.approx(0.5)


def test_foscttm_needs_one_coordinate_system():
    with pytest.raises(ValueError, match="one coordinate system; got 2 and 3 coordinates"):
        foscttm(cloud(5, 2), cloud(5, 3))
    with pytest.raises(ValueError, match="at least 2 rows; got 1"):
        foscttm(cloud(1, 2), cloud(1, 2))
