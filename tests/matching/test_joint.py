"""Displacements against finite differences and naive twins; the joint refinement against what it must not change."""

from dataclasses import replace

import numpy as np
import pytest

from instruments import fit, measured, plan, sheet
from pyloca.estimator import read_like
from pyloca.matching._elastic import elastic, seen
from pyloca.matching._joint import Edge, Joint, Tether, _expansion, _objective, _stepped, refine
from pyloca.matching._precision import look
from pyloca.matching._rigid import freedom, parameter_jacobian, procrustes
from pyloca.metrics import RigidMap, calibrate

STILL = RigidMap(np.eye(2), np.zeros(2))
PLACES = np.array([[0.1, -0.3], [0.7, 0.4], [-0.5, 1.1]])


@pytest.fixture(scope="module")
def shape(a):
    return elastic(a)


def coefficients(shape, size, seed=0):
    return size * np.random.RandomState(seed).standard_normal(shape.size)


def differences(function, x, step=1e-4):
    """Central differences, one column per entry of x."""
    units = step * np.eye(len(x))
    return np.stack([(function(x + unit) - function(x - unit)) / (2 * step) for unit in units], axis=-1)


# -- displacements ----------------------------------------------------------------------------------------------


def test_slopes_are_derivatives(shape):
    c = coefficients(shape, 1)
    for z, slopes in zip(PLACES, shape.slopes(PLACES) @ c, strict=True):
        naive = differences(lambda x: (shape.rows(x[None]) @ c)[0], z)  # (b, a)
        np.testing.assert_allclose(slopes, naive.T, rtol=1e-4, atol=1e-6)


def test_displacements_have_no_rigid_motion(shape, a, free):
    for model, one in ((a, shape), (free, elastic(free))):
        places = np.delete(model.embedding_, model.validation_indices_, axis=0)
        rows = one.rows(places).reshape(-1, one.size)
        moves = parameter_jacobian(places, places.mean(axis=0), scale=model is free).reshape(len(rows), -1)
        assert np.abs(moves.T @ rows).max() < 1e-7 * np.linalg.norm(moves) * np.linalg.norm(rows)
    assert not shape.scaled and elastic(free).scaled


def test_the_energy_is_the_likelihood_of_pushed_tangents(shape, a):
    """Σ (M − 1)/2 (tr G − log det G) of the displaced tangents, less that of the tangents themselves."""
    X = plan(150, 0)
    told = seen(a, shape, read_like(a, measured(sheet, X, 0)))
    c = coefficients(shape, 0.01)
    np.testing.assert_allclose(told.places, a.transform(measured(sheet, X, 0)), atol=1e-9)
    total = c @ c / 2
    for z, S, w in zip(told.places, told.moments, told.weights, strict=True):
        T = np.linalg.cholesky(S).T
        bent = T @ (np.eye(2) + (shape.slopes(z[None]) @ c)[0])
        after, before = bent @ bent.T, T @ T.T
        total += w / 2 * (np.trace(after - before) - np.log(np.linalg.det(after) / np.linalg.det(before)))
    assert told.energy(c) == pytest.approx(total, rel=1e-9)
    assert told.weights[0] == 39
    folded = c.copy()
    folded[:2] = 1e6
    assert told.energy(folded) == np.inf


def test_gradients_are_finite_differences(a, b):
    looked = [look(a, measured(sheet, plan(150, 0), 0)), look(b)]
    centre = np.array([[0.3, -0.2], [0.0, 0.1]])
    turned = RigidMap(np.array([[0.6, 0.8], [-0.8, 0.6]]), np.array([1.0, 2.0]), 1.1)
    joint = Joint.start((turned, STILL), [one.elastic for one in looked], centre, np.zeros(2), 1.0)
    some = tuple(coefficients(one.elastic, 0.01, i) for i, one in enumerate(looked))
    joint = replace(joint, coefficients=some)
    edge = Edge(0, 1, PLACES, PLACES[::-1], np.array([0.1, 0.2, 0.3]))
    told = [one.seen for one in looked]
    gradient = _expansion(joint, told, [edge])[0]
    naive = [
        (_objective(_stepped(joint, step), told, [edge]) - _objective(_stepped(joint, -step), told, [edge])) / 2e-6
        for step in 1e-6 * np.eye(len(gradient))
    ]
    np.testing.assert_allclose(gradient, naive, rtol=1e-4, atol=1e-4 * np.abs(gradient).max())


def test_a_tether_pulls_back_to_its_map(a):
    """An anchor 0.5 away and a tether of the same precision: the map is found half way."""
    looked = look(a)
    stiff = replace(looked.seen, weights=1e9 * looked.seen.weights)
    joint = Joint.start((STILL, STILL), (looked.elastic,) * 2, np.zeros((2, 2)), np.zeros(2), 8.0)
    Z = a.embedding_[:1]
    edge = Edge(0, 1, Z, Z + np.array([0.5, 0.0]), np.full(1, 0.01))
    free = np.zeros((2, 4), dtype=bool)
    free[0, 1:3] = True  # shifts
    tether = Tether(STILL, np.diag([1e9, 100.0, 100.0]))
    found, cost = refine(joint, (stiff, stiff), (edge,), free, 8.0, tether)
    np.testing.assert_allclose(found.maps[0].shift, [0.25, 0.0], atol=1e-4)
    assert cost == pytest.approx(2 * 100 * 0.25**2, rel=1e-3) and found.degrees == 10
    # the covariance has both, times what they cost together
    assert found.covariance[1, 1] == pytest.approx((8 + cost) / 10 / 200, rel=1e-3)


def test_waves_that_displacements_cannot_follow_are_large_in_gaps(shape, a):
    assert shape.residual(shape.centres).max() < 1e-3 * shape.residual(np.array([[50.0, 50.0]]))
    inside, beyond = a.embedding_[:50], a.embedding_[:50] + np.array([0.0, 3.0])
    far = np.linalg.norm(beyond[:, None] - shape.centres, axis=2).min(axis=1) > 0.5
    assert np.median(shape.residual(inside)) < 0.01 * np.median(shape.residual(beyond[far]))


def test_an_anchor_far_off_has_less_weight_with_tails():
    apart = np.array([[0.1, 0.0], [0.0, 5.0]])
    plain = Edge(0, 1, apart, apart, np.full(2, 0.01))
    tailed = replace(plain, tails=4.0)
    assert plain.precision(apart).tolist() == [100.0, 100.0]
    near, far = tailed.precision(apart)
    assert near == pytest.approx(100 * 6 / 5) and far < 0.3
    assert plain.cost(apart) == pytest.approx(1 + 2500) and tailed.cost(apart) < 50
    # weights are half the derivative of the cost by the squared distance
    step = 1e-6 * np.array([[1.0, 0.0], [0.0, 0.0]])
    slope = (tailed.cost(apart + step) - tailed.cost(apart - step)) / 2e-6
    assert slope == pytest.approx(2 * near * 0.1, rel=1e-6)


# -- what fits say of themselves --------------------------------------------------------------------------------


def test_the_expected_error_is_that_of_many_fits():
    """Ten fits to ten samples: root mean square distance from the truth against what each expects."""
    ratios = []
    for seed in range(10):
        X = plan(80, seed)
        model = fit(sheet, X, seed, n_points=20)
        Z = model.embedding_
        ratios.append(np.square(calibrate(X, Z).apply(Z) - X).mean() / look(model).variance)
    assert 0.5 < np.sqrt(np.mean(ratios)) < 1.5


# -- together ---------------------------------------------------------------------------------------------------


def test_anchors_without_errors_change_nothing(a):
    """An instrument and its own turned copy: the map is found, and nothing is displaced."""
    looked = look(a)
    Z = a.embedding_[:12]
    turned = RigidMap(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([3.0, 4.0]))
    edge = Edge(0, 1, Z, turned.apply(Z), np.full(12, 1e-6))
    start = RigidMap(procrustes(Z, turned.apply(Z)).rotation, np.array([2.9, 4.1]))
    centres = np.tile(turned.apply(Z).mean(axis=0), (2, 1))
    joint = Joint.start((start, STILL), (looked.elastic, looked.elastic), centres, np.zeros(2), 1.0)
    free = np.ones((2, freedom(2, scale=True)), dtype=bool)
    free[0, -1], free[1] = False, False
    found, cost = refine(joint, (looked.seen, looked.seen), (edge,), free, 8.0)
    np.testing.assert_allclose(found.maps[0].shift, turned.shift, atol=1e-5)
    assert cost < 1e-3 and np.abs(found.coefficients[0]).max() < 1e-3
    there, errors = found.carried(Z, 0, 1)
    np.testing.assert_allclose(there, turned.apply(Z), atol=1e-5)
    assert np.linalg.eigvalsh(errors).min() > 0
    again = Joint.from_arrays(found.arrays())
    np.testing.assert_array_equal(again.carried(Z, 0, 1)[1], errors)


def test_bursts_of_a_fit_tell_more_than_the_fit():
    """What the bursts say of an encoder that was stopped early brings it nearer to the truth."""
    X = plan(150, 0)
    early = fit(sheet, X, 0, max_iter=30)
    one = look(early, measured(sheet, X, 0))
    alone = Joint.start((STILL,), (one.elastic,), np.zeros((1, 2)), np.zeros(1), 8.0)
    found, _ = refine(alone, (one.seen,), (), np.zeros((1, 4), dtype=bool), 8.0)
    embeddings = early.embedding_, found.common(early.embedding_, 0)
    off = [np.square(calibrate(X, Z).apply(Z) - X).mean() for Z in embeddings]
    assert off[1] < 0.5 * off[0]
