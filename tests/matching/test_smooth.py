"""Encoders as smooth functions of readings: the prior against its formula, and what it does to fits to few bursts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import digamma

from instruments import fit, gauge, measured, plan, sheet
from pyloca.estimator import read_like
from pyloca.matching._elastic import Prior, elastic, matern, seen
from pyloca.matching._smooth import BENDS, LENGTHS, NUGGETS, _evidence, _priors, smooth
from pyloca.metrics import calibrate

X = plan(150, 0)


@pytest.fixture(scope="module")
def told(a):
    return seen(a, elastic(a, fine=True), read_like(a, measured(sheet, X, 0)))


def test_the_prior_is_that_of_a_gaussian_process_with_a_free_linear_part(told):
    """−log density of z + u(z) after the linear part is integrated out, which has no prior."""
    c = 0.01 * np.random.RandomState(0).standard_normal(told.elastic.size)
    Z, Y = told.places, told.readings - told.readings.mean(axis=0)
    linear = np.column_stack([np.ones(len(Y)), np.linalg.svd(Y, full_matrices=False)[0][:, :2]])
    size, spread = (np.sqrt(2 * part.var(axis=0).sum()) for part in (Z, Y))
    height = BENDS[0] * LENGTHS[0] ** 2 * size / np.sqrt(5 / 3)
    covariance = height**2 * matern(Y, Y, LENGTHS[0] * spread) + (NUGGETS[0] * size) ** 2 * np.eye(len(Y))
    precision = np.linalg.inv(covariance)
    along = precision @ linear
    precision -= along @ np.linalg.solve(linear.T @ along, along.T)
    energies = [np.einsum("nd,nm,md->", W, precision, W) / 2 for W in (Z, Z + told.elastic.rows(Z) @ c)]
    assert _priors(told)[0].energy(c) == pytest.approx(energies[1] - energies[0], rel=1e-3)


def test_the_marginal_likelihood_of_a_gaussian_is_exact(told):
    """Without bursts nothing is learned: the marginal likelihood is 1 under any prior."""
    none = replace(told, places=told.places[:1], moments=told.moments[:1], weights=np.zeros(1))
    for prior in (Prior.standard(told.elastic.size), _priors(told)[0]):
        assert _evidence(replace(none, prior=prior), np.zeros(told.elastic.size))[1] == pytest.approx(0, abs=1e-3)


def test_good_fits_to_a_stiff_plan_stay_as_good():
    """What it is for, fits that follow their bursts too closely, is measured by `python -m benchmarks matching`."""
    before, after = [], []
    for seed, instrument in enumerate((sheet, gauge, sheet, gauge)):
        states = plan(80, seed)
        bursts = measured(instrument, states, seed, n_points=20)
        model = fit(instrument, states, seed, n_points=20)
        one, c = smooth(seen(model, elastic(model, fine=True), read_like(model, bursts)))
        Z = one.places + one.elastic.rows(one.places) @ c
        for off, W in ((before, one.places), (after, Z)):
            off.append(np.square(calibrate(states, W).apply(W) - states).mean())
    assert np.exp(np.mean(np.log(after))) < 1.5 * np.exp(np.mean(np.log(before)))


def test_sampling_errors_do_not_blow_up_an_embedding(told):
    """Bursts of few points: the best displacement is larger, on average, than to first order in their errors."""
    random, before, after = np.random.RandomState(2), [], []

    def growth(c):
        return np.trace(told.elastic.slopes(told.places) @ c, axis1=1, axis2=2).mean() / 2

    for _ in range(6):
        points = random.standard_normal((len(told.places), 9, 2))
        bursts = replace(told, moments=points.transpose(0, 2, 1) @ points / 9, weights=np.full(len(points), 9.0))
        nothing = np.zeros(told.elastic.size)
        gradient, information = bursts.expansion(nothing)
        linear = growth(-np.linalg.solve(information, gradient))  # of which the average is 0
        c, _ = _evidence(bursts, nothing)
        before.append(growth(c) - linear)
        after.append(growth(_evidence(bursts.unbiased(c), c)[0]) - linear)
    assert np.mean(before) > 0.005
    assert abs(np.mean(after)) < 0.5 * np.mean(before)


def test_a_fit_that_follows_chance_is_seen(told):
    """Moments of the identity are what bursts with sampling errors never show; Wishart matrices are what they do."""
    nothing, random = np.zeros(told.elastic.size), np.random.RandomState(1)
    points = random.standard_normal((len(told.places), 39, 2))
    honest = replace(told, moments=points.transpose(0, 2, 1) @ points / 39, weights=np.full(len(points), 39.0))
    assert abs(honest.followed(nothing, 1.0)) < 4
    chance = replace(honest, moments=np.eye(2) + 0.5 * (honest.moments - np.eye(2)))
    assert chance.followed(nothing, 1.0) > 6
    cost = np.trace(honest.moments, axis1=1, axis2=2) - 2 - np.linalg.slogdet(honest.moments)[1]
    better = 39 / 2 * (-digamma(19.5) - digamma(19) - 2 * np.log(2 / 39) - cost)
    expected = better.mean() / better.std() * np.sqrt(len(better))
    assert honest.followed(nothing, 1.0) == pytest.approx(expected, rel=1e-6)
