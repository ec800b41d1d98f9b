"""Jacobians by regression on known perturbations: a naive twin, invariances, and what their error is worth."""

import numpy as np
import pytest

from pyloca.bursts import Bursts, from_function, sensor_array
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics, burst_means, regress
from pyloca.geometry._regression import MOST_POINTS, counts_from_losses


def curved(x):
    """(…, 2) → (…, 3), with its Jacobian at 0: [[1, 0.5], [0, 2], [-1, 0]]ᵀ."""
    a, b = x[..., 0], x[..., 1]
    return np.stack([a + 0.5 * b + a * b, 2 * b + a**2 - b**2, 5 - a + 3 * b**2], axis=-1)


def clouds(n=4, m=12, seed=0, size=0.1):
    return size * np.random.RandomState(seed).standard_normal((n, m, 2))


def naive(y, z, quadratic):
    """Least squares, one burst at a time: readings and Jacobian at z = 0."""
    columns = [np.ones(len(z)), *z.T]
    if quadratic:
        columns += [z[:, a] * z[:, b] for a in range(z.shape[1]) for b in range(a, z.shape[1])]
    coefficients = np.linalg.lstsq(np.stack(columns, axis=1), y, rcond=None)[0]
    return coefficients[0], coefficients[1 : 1 + z.shape[1]]


def test_a_quadratic_measurement_is_found_exactly():
    found = regress(curved(clouds()), clouds())
    assert found.quadratic.all()
    np.testing.assert_allclose(found.means, np.tile([0, 0, 5], (4, 1)), atol=1e-12)
    np.testing.assert_allclose(found.jacobians, np.tile([[1, 0, -1], [0.5, 2, 0]], (4, 1, 1)), atol=1e-10)
    np.testing.assert_array_equal(found.freedom, 12 - 6)


@pytest.mark.parametrize("size", [1e-4, 0.1])
def test_it_is_least_squares(size):
    random = np.random.RandomState(1)
    z = clouds(30, 15, size=size)
    y = curved(z) + 1e-3 * size * random.standard_normal((30, 15, 3))
    found = regress(y, z)
    for i in range(30):
        mean, jacobian = naive(y[i], z[i], found.quadratic[i])
        np.testing.assert_allclose(found.means[i], mean, atol=1e-10)
        np.testing.assert_allclose(found.jacobians[i], jacobian, rtol=1e-4, atol=1e-4)
    # noise hides the quadratic term of small clouds, where it would only add variance
    assert found.quadratic.all() if size == 0.1 else found.quadratic.mean() < 0.3


def test_the_jacobian_agrees_with_finite_differences():
    X = np.random.RandomState(0).uniform(size=(20, 2))
    f = lambda x: np.stack([np.sin(2 * x[:, 0] + x[:, 1]), np.exp(x[:, 1]), x[:, 0] * x[:, 1] ** 2], axis=1)  # noqa: E731
    bursts = from_function(f, X, 1e-3, 30, random_state=0)
    found = regress(bursts.to_array(), bursts.perturbations_of(range(20)))
    h = 1e-5
    for axis in range(2):
        step = h * np.eye(2)[axis]
        np.testing.assert_allclose(found.jacobians[:, axis], (f(X + step) - f(X - step)) / (2 * h), atol=3e-5)
    np.testing.assert_allclose(found.means, f(X), atol=1e-8)


def noisy(n=10, m=14):
    z = clouds(n, m)
    return curved(z) + 0.01 * np.random.RandomState(2).standard_normal((n, m, 3)), z


def test_a_rotation_of_the_perturbations_in_each_burst_changes_nothing():
    y, z = noisy()
    angle = np.arange(10.0)
    turn = np.stack([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]).transpose(2, 0, 1)
    one, other = regress(y, z), regress(y, z @ turn)
    np.testing.assert_array_equal(one.quadratic, other.quadratic)
    for mine, theirs in zip(one, other, strict=True):
        if mine is not one.jacobians:
            np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(turn @ other.jacobians, one.jacobians, rtol=1e-8, atol=1e-10)
    statistics = [BurstStatistics.from_bursts(Bursts(y, perturbations=p, burst_std=0.1)) for p in (z, z @ turn)]
    grams = [np.einsum("nkd,nke->nde", s.tangents, s.tangents) for s in statistics]
    np.testing.assert_allclose(*grams, rtol=1e-8, atol=1e-12)


def test_a_shift_of_the_perturbations_moves_the_state():
    z = clouds()
    found = regress(curved(z), z - [0.02, -0.05])  # its state is at (0.02, −0.05)
    np.testing.assert_allclose(found.means, np.tile(curved(np.array([0.02, -0.05])), (4, 1)), atol=1e-12)


def test_the_order_of_points_and_the_unit_of_readings_and_perturbations_do_not_matter():
    y, z = noisy()
    order = np.random.RandomState(0).permutation(14)
    one = regress(y, z)
    for other, unit in ((regress(y[:, order], z[:, order]), 1.0), (regress(1e3 * y + 7, 10 * z), 1e3)):
        np.testing.assert_allclose(other.losses, one.losses, rtol=1e-8)
        np.testing.assert_allclose(other.means, unit * one.means + (7 if unit > 1 else 0), rtol=1e-8, atol=1e-9)
        np.testing.assert_array_equal(other.quadratic, one.quadratic)


@pytest.mark.parametrize(
    ("stencil", "columns"),
    [
        ([[1, 0], [0.5, 0.9], [-0.5, 0.9], [-1, 0], [-0.5, -0.9], [0.5, -0.9]], 2),  # nearly a ring
        ([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]], 2),  # a star has no z₀ z₁
        ([[0, 0], [1, 0], [0, 1]], 0),
    ],
)
def test_stencils_that_do_not_tell_all_of_the_curvature(stencil, columns):
    z = np.tile(0.1 * np.array(stencil, dtype=float), (3, 1, 1))
    found = regress(curved(z), z)
    assert np.isfinite(found.jacobians).all()
    assert (found.freedom >= 0).all()
    expected = naive(curved(z)[0], z[0], False)[1]
    tolerance = 0.2 if columns == 0 else 0.05
    np.testing.assert_allclose(found.jacobians[0], expected, atol=tolerance)


@pytest.mark.parametrize("spread", [[1.0, 1.0, 1.0, 1.0], [2.0, 1.0, 0.5, 0.1]])
def test_the_predicted_loss_is_that_of_simulated_errors(spread):
    random = np.random.RandomState(0)
    n, m, k = 4000, 30, 2
    true = random.standard_normal((k, 4))
    z = np.array([1.0, 0.7]) * random.standard_normal((n, m, k))
    found = regress(z @ true + 0.2 * np.array(spread) * random.standard_normal((n, m, 4)), z)
    T = found.jacobians @ np.linalg.pinv(true)
    G = T @ T.transpose(0, 2, 1)
    losses = np.trace(G, axis1=1, axis2=2) - np.linalg.slogdet(G)[1] - k
    assert 0.9 < losses.mean() / found.losses.mean() < 1.25
    weights = 1 / found.losses
    weighted = (weights[:, None, None] * G).sum(axis=0) / weights.sum()
    np.testing.assert_allclose(weighted, np.eye(2), atol=0.3 * found.losses.mean())


def test_counts_are_points_of_a_sample_with_the_same_loss():
    losses, freedom = np.array([0.03, 0.03, 0.03]), np.full(3, 20.0)
    np.testing.assert_allclose(counts_from_losses(losses, freedom, 2), 101)
    assert (counts_from_losses(np.zeros(3), freedom, 2) == MOST_POINTS).all()
    assert np.isinf(counts_from_losses(np.full(3, np.nan), np.zeros(3), 2)).all()
    mixed = counts_from_losses(np.array([0.03, np.nan, 0.03]), np.array([20.0, 0.0, 20.0]), 2)
    np.testing.assert_allclose(mixed, 101)  # a burst without residuals is a typical one


# -- statistics -------------------------------------------------------------------------------------------------


def instrument(x):
    return np.c_[x[:, 0] + x[:, 1] ** 2, x[:, 1], np.sin(x[:, 0])]


def test_tangents_are_sigma_times_the_jacobian_whatever_the_size_of_the_perturbations():
    X = np.random.RandomState(0).uniform(size=(12, 2))
    bursts = sensor_array(instrument, X, 1e-3, stencil=[[4, 0], [-4, 0], [0, 1], [0, -1], [0, 0], [1, 1], [1, -1]])
    one, other = (BurstStatistics.from_bursts(Bursts(bursts, burst_std=s)) for s in (0.01, 0.02))
    np.testing.assert_allclose(2 * one.tangents, other.tangents, rtol=1e-12)
    exact = np.stack([[np.ones(12), np.zeros(12), np.cos(X[:, 0])], [2 * X[:, 1], np.ones(12), np.zeros(12)]])
    exact = 0.01 * exact.transpose(2, 0, 1)  # (N, k, D)
    grams = [np.einsum("nkd,nke->nde", tangents, tangents) for tangents in (one.tangents, exact)]
    np.testing.assert_allclose(*grams, atol=1e-8)


def test_means_are_the_readings_at_the_state():
    X = np.random.RandomState(0).uniform(size=(12, 2))
    bursts = from_function(instrument, X, 0.01, 20, random_state=0)
    statistics = BurstStatistics.from_bursts(bursts)
    np.testing.assert_array_equal(burst_means(bursts), statistics.means)
    np.testing.assert_array_equal(burst_means(bursts[3:5]), statistics.means[3:5])
    np.testing.assert_allclose(statistics.means, instrument(X), atol=1e-6)
    assert np.abs(burst_means(bursts.without_perturbations()) - instrument(X)).max() > 1e-3


def test_unequal_lengths():
    X = np.random.RandomState(0).uniform(size=(12, 2))
    whole = from_function(instrument, X, 0.01, 20, random_state=0)
    parts = Bursts(
        [burst[: 10 + i % 3] for i, burst in enumerate(whole)],
        perturbations=[z[: 10 + i % 3] for i, z in enumerate(whole.perturbations)],
        burst_std=0.01,
    )
    short = Bursts(whole.to_array()[:, :11], perturbations=whole.perturbations[:, :11], burst_std=0.01)
    one, other = BurstStatistics.from_bursts(parts), BurstStatistics.from_bursts(short)
    np.testing.assert_allclose(one.tangents[1::3], other.tangents[1::3], rtol=1e-9)


def test_options_that_contradict_the_perturbations():
    bursts = from_function(instrument, np.random.RandomState(0).uniform(size=(12, 2)), 0.01, 20, random_state=0)
    assert BurstStatistics.from_bursts(bursts, 2).intrinsic_dim == 2
    with pytest.raises(BurstError, match="k = 2 directions, not intrinsic_dim = 1"):
        BurstStatistics.from_bursts(bursts, 1)
    with pytest.raises(BurstError, match="n_components = 1 cannot hold perturbations in k = 2"):
        BurstStatistics.from_bursts(bursts, max_dim=1)
    with pytest.raises(ValueError, match="regression averages the noise"):
        BurstStatistics.from_bursts(bursts, measurement_noise="estimate")
    with pytest.raises(BurstError, match="from 1 to D = 1"):
        BurstStatistics.from_bursts(Bursts(bursts.to_array()[:, :, :1], perturbations=bursts.perturbations))


def test_bad_and_flat_readings_are_named():
    bursts = from_function(instrument, np.random.RandomState(0).uniform(size=(12, 2)), 0.01, 20, random_state=0)
    points = bursts.to_array()
    points[7, 3, 1] = np.nan
    with pytest.raises(BurstError, match="1 cell in burst 7"):
        BurstStatistics.from_bursts(Bursts(points, perturbations=bursts.perturbations))
    points[7] = points[7, 0]
    with pytest.raises(BurstError, match=r"burst 7 .* has no spread"):
        BurstStatistics.from_bursts(Bursts(points, perturbations=bursts.perturbations))


def test_tilts_are_the_mean_squared_angle_by_which_noise_turns_the_plane():
    random, slopes = np.random.RandomState(0), np.array([[2.0, 0.5, 0, 0, 0, 0], [0, 1.0, 0.3, 0, 0, 0]])
    z = 0.1 * random.standard_normal((2000, 30, 2))
    found = regress(z @ slopes + 0.04 * random.standard_normal((2000, 30, 6)), z)
    truth, plane = (np.linalg.svd(j)[2][..., :2, :] for j in (slopes, found.jacobians))
    sines = 1 - np.square(np.linalg.svd(plane @ truth.T, compute_uv=False)[:, -1])  # of the largest angle
    assert 0.01 < np.median(found.tilts) < 0.05
    assert sines.mean() == pytest.approx(found.tilts.mean(), rel=0.2)


def test_without_residuals_there_is_no_tilt():
    assert regress(clouds(m=3) @ np.eye(2, 3), clouds(m=3)).tilts.max() < 1e-20
