"""Closed forms against naive twins: Procrustes, its derivative, its robust version."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from helpers import random_rotation
from pyloca.matching._rigid import composed, freedom, inverse, moved, parameter_jacobian, procrustes
from pyloca.matching._robust import robust_procrustes
from pyloca.metrics import RigidMap


def pairs(n, d, noise=0.0, seed=0, scale=1.0):
    random = np.random.RandomState(seed)
    A = random.standard_normal((n, d))
    rigid = RigidMap(random_rotation(d, seed), random.standard_normal(d), scale)
    return A, rigid.apply(A) + noise * random.standard_normal((n, d)), rigid


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("scale", [False, True])
def test_procrustes_finds_the_map(d, scale):
    A, B, rigid = pairs(12, d, scale=1.7 if scale else 1.0)
    found = procrustes(A, B, scale=scale)
    np.testing.assert_allclose(found.apply(A), B, atol=1e-12)
    np.testing.assert_allclose(found.rotation, rigid.rotation, atol=1e-12)


def test_weighted_procrustes_is_the_minimum_that_a_search_finds():
    A, B, _ = pairs(8, 2, noise=0.3)
    weights = np.linspace(0.1, 3, 8)

    def cost(x, flip):
        rotation = np.diag([1, flip]) @ np.array([[np.cos(x[0]), np.sin(x[0])], [-np.sin(x[0]), np.cos(x[0])]])
        return (weights * np.square(B - np.exp(x[3]) * A @ rotation - x[1:3]).sum(axis=1)).sum()

    best = [
        min(minimize(cost, [start, 0, 0, 0], args=(flip,), tol=1e-14).fun for start in range(6)) for flip in (1, -1)
    ]
    for mirrored, expected in ((False, min(best)), (True, max(best))):
        found = procrustes(A, B, weights, scale=True, mirrored=mirrored)
        assert (weights * np.square(B - found.apply(A)).sum(axis=1)).sum() == pytest.approx(expected, rel=1e-8)


def test_maps_compose_and_invert():
    A, _, one = pairs(6, 3, scale=2.0)
    other = RigidMap(random_rotation(3, 5), np.array([1.0, 2.0, 3.0]), 0.5)
    np.testing.assert_allclose(composed(one, other).apply(A), other.apply(one.apply(A)), atol=1e-12)
    np.testing.assert_allclose(inverse(one).apply(one.apply(A)), A, atol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [False, True])
def test_the_derivative_of_a_moved_map(d, scale):
    A, _, rigid = pairs(5, d, scale=1.3)
    centre = np.arange(d, dtype=float)
    p, step = freedom(d, scale=scale), 1e-6
    naive = np.stack(
        [
            (moved(rigid, step * unit, centre).apply(A) - moved(rigid, -step * unit, centre).apply(A)) / (2 * step)
            for unit in np.eye(p)
        ],
        axis=2,
    )
    np.testing.assert_allclose(parameter_jacobian(rigid.apply(A), centre, scale=scale), naive, atol=1e-7)


def test_turns_are_rotations():
    turned = moved(RigidMap(np.eye(3), np.zeros(3)), np.array([0.3, 0, 0, 0, 0, 0]), np.zeros(3))
    expected = Rotation.from_euler("z", 0.3).as_matrix()
    np.testing.assert_allclose(turned.rotation, expected.T, atol=1e-12)


# -- wrong pairs ------------------------------------------------------------------------------------------------


def robust(A, B, noise, **options):
    settings = {"weights": np.ones(len(A)), "prior": np.full(len(A), noise**2), "prior_degrees": 4.0, "scale": False}
    return robust_procrustes(A, B, **settings | options)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("n", [5, 10, 40])
def test_wrong_pairs_are_found(d, n):
    """A fifth of the pairs are others' places."""
    wrong = max(1, n // 5)
    for seed in range(3):
        A, B, rigid = pairs(n, d, noise=0.01, seed=seed)
        B[:wrong] = B[:wrong] + np.random.RandomState(seed).choice([-1, 1], size=(wrong, d)) * 0.7
        if n < d + 3:
            continue  # two pairs more than fix the map, or a wrong one is not known from a right one
        found = robust(A, B, 0.01)
        assert found.right.tolist() == [False] * wrong + [True] * (n - wrong)
        assert np.abs(found.rigid.rotation - rigid.rotation).max() < 0.05


def test_right_pairs_are_seldom_left_out():
    left = sum(int((~robust(*pairs(6, 2, noise=0.05, seed=seed)[:2], 0.05).right).sum()) for seed in range(40))
    assert left <= 1  # of 240


def test_too_small_a_prior_does_not_reject_what_is_right():
    """The fits say they are ten times as good as they are."""
    left = sum(int((~robust(*pairs(8, 2, noise=0.05, seed=seed)[:2], 0.005).right).sum()) for seed in range(25))
    assert left <= 2  # of 200


def test_the_variance_is_that_of_the_noise():
    found = robust(*pairs(400, 3, noise=0.2)[:2], 0.2)
    assert found.variance == pytest.approx(0.04, rel=0.15)


def test_order_does_not_matter():
    A, B, _ = pairs(12, 2, noise=0.05)
    B[3] += 5
    order = np.random.RandomState(1).permutation(12)
    one, other = robust(A, B, 0.05), robust(A[order], B[order], 0.05)
    np.testing.assert_allclose(one.rigid.rotation, other.rigid.rotation, atol=1e-10)
    assert one.right[order].tolist() == other.right.tolist()
