"""σ, k and noise, read off the spectra of the bursts."""

import numpy as np
import pytest

from helpers import (
    curved_bursts,
    latent_bursts,
    linear_map,
    outer,
    planar_bursts,
    random_rotation,
)
from pyloca import datasets
from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry import (
    BurstSpectra,
    BurstStatistics,
    burst_std_from_spectra,
    intrinsic_dim_from_spectra,
    noise_from_spectra,
    sample_rows,
)


@pytest.mark.parametrize("dim_over", [0, 1, 4, 16])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_k_of_a_plane(k, dim_over):
    _, bursts = planar_bursts(60, 30, k, k=k, dim=k + dim_over)
    assert BurstStatistics.from_bursts(bursts).intrinsic_dim == k


@pytest.mark.parametrize("dim", [6, 20])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_k_of_a_plane_with_noise(k, dim):
    _, bursts = planar_bursts(60, 60, k, k=k, dim=dim)
    noise = 3e-4 * np.random.RandomState(0).standard_normal(bursts.shape)
    assert BurstStatistics.from_bursts(bursts + noise).intrinsic_dim == k


@pytest.mark.parametrize("dim", [8, 20])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_k_of_a_smooth_surface_without_noise(k, dim):
    """Curvature, its square and so on fall by as much as the rounding floor does: the first fall is k."""
    _, clouds = latent_bursts(60, 60, k, 0.01, k)
    assert BurstStatistics.from_bursts(np.sin(clouds @ linear_map(k, dim, k))).intrinsic_dim == k


@pytest.mark.parametrize("tails", ["one-sided", "heavy"])
def test_tails_are_not_taken_for_curvature(tails):
    """A direction that grows with the radius of a burst, but that no quadratic explains."""
    random = np.random.RandomState(1006)
    draw = random.exponential(size=(300, 40, 2)) - 1 if tails == "one-sided" else random.standard_t(3, (300, 40, 2)) / 2
    x = np.random.RandomState(6).uniform(size=(300, 1, 2)) + 0.01 * draw
    a, b = x[..., 0], x[..., 1]
    bursts = np.stack([a + b**2, np.sin(2 * a) + b, a * b, np.exp(-a)], axis=-1)
    assert BurstStatistics.from_bursts(bursts, max_dim=2).intrinsic_dim == 2


def test_nothing_varies():
    with pytest.raises(BurstError, match="nothing varies inside the bursts"):
        BurstStatistics.from_bursts(np.ones((50, 20, 4)), max_dim=2, max_strays=0.01)


def test_a_dead_channel_does_not_change_k():
    _, clouds = latent_bursts(60, 60, 2, 0.01, 0)
    roll = np.stack([clouds[..., 0], clouds[..., 1], clouds[..., 0] ** 2], axis=2)
    dead = np.concatenate([roll, np.full((60, 60, 1), 7.0)], axis=2)
    assert BurstStatistics.from_bursts(roll).intrinsic_dim == 2
    assert BurstStatistics.from_bursts(dead).intrinsic_dim == 2


@pytest.mark.parametrize("name", ["mushroom", "frame", "sphere", "wifi"])
def test_k_of_the_papers_data(name):
    data = getattr(datasets, name)(random_state=0)
    assert BurstStatistics.from_bursts(data.bursts).intrinsic_dim == data.intrinsic_dim


def test_k_with_fewer_points_than_dimensions():
    _, bursts = planar_bursts(60, 6, dim=17)
    assert BurstStatistics.from_bursts(bursts).intrinsic_dim == 2


def test_k_that_bursts_are_too_short_to_show():
    _, bursts = planar_bursts(60, 3, dim=17)
    with pytest.raises(BurstError, match="no noise floor is visible"):
        BurstStatistics.from_bursts(bursts)


def test_max_dim_bounds_k():
    _, bursts = planar_bursts(60, 30, k=4, dim=8)
    with pytest.raises(BurstError, match="span more than n_components = 3"):
        BurstStatistics.from_bursts(bursts, max_dim=3)
    assert BurstStatistics.from_bursts(bursts, max_dim=4).intrinsic_dim == 4


def test_k_from_spectra_by_hand():
    def of(*values, n_features=None, max_dim=None):
        n_features = n_features or len(values)
        return intrinsic_dim_from_spectra(np.tile(values, (5, 1)), n_features, max_dim or n_features)

    assert of(3.0, 2.0, 1e-5) == 2
    assert of(3.0, 2.0, 1.0) == 3  # no floor: all are tangent
    assert of(3.0, 0.1) == 2  # a factor of 30 is stretching
    assert of(3.0, 1e-3) == 1
    assert of(3.0, 2.0, 1e-5, 1e-6, 1e-7, n_features=9) == 2
    with pytest.raises(BurstError, match="Take more points per burst or pass intrinsic_dim"):
        of(3.0, 2.0, n_features=9)


def test_the_median_burst_decides():
    spectra = np.tile([1.0, 0.8, 1e-6], (11, 1))
    spectra[:5] = [1.0, 0.8, 0.7]
    assert intrinsic_dim_from_spectra(spectra, 3, 3) == 2


def test_burst_std_is_the_median_of_the_first_eigenvalue():
    assert burst_std_from_spectra(np.array([[4.0, 1.0], [9.0, 2.0], [100.0, 3.0]])) == 3.0
    X, clouds = latent_bursts(400, 200, 1, 0.03, 0)
    assert X.shape == (400, 1)
    spectra = BurstStatistics.from_bursts(clouds @ random_rotation(3, 0)[:1], 1).spectra
    assert burst_std_from_spectra(spectra) == pytest.approx(0.03, rel=0.01)


def noisy_bursts(n, m, k, dim, std, noise, seed=0):
    """Latent clouds (n, m, k), and bursts (n, m, dim) of an isometric measurement with noise of the instrument."""
    _, clouds = latent_bursts(n, m, k, std, seed)
    bursts = clouds @ random_rotation(dim, seed)[:k]
    return clouds, bursts + noise * np.random.RandomState(seed + 1).standard_normal(bursts.shape)


def test_planted_noise_is_found_and_removed():
    noise = 0.002
    _, bursts = noisy_bursts(200, 400, 2, 10, 0.01, noise)
    raw = BurstStatistics.from_bursts(bursts, 2)
    assert raw.spectra.mean() == pytest.approx(1e-4 + noise**2, rel=0.01)
    for option in (noise, "estimate"):
        clean = BurstStatistics.from_bursts(bursts, 2, measurement_noise=option)
        np.testing.assert_allclose(clean.instrument.levels, noise**2, rtol=0.1)
        assert clean.instrument.levels.mean() == pytest.approx(noise**2, rel=0.02)
        # the two leading directions of 400 points lean towards the noise of the eight others
        np.testing.assert_allclose(clean.spectra, raw.spectra - noise**2 * (1 + 8 / 399), atol=0.2 * noise**2)
        assert np.all(clean.residuals >= 0)
        assert clean.residuals.mean() < 0.1 * raw.residuals.mean()
    assert raw.instrument is None
    assert raw.without_noise(None) is raw


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("m", "k", "dim", "std"), [(6, 2, 17, 0.05), (20, 2, 50, 0.01), (20, 3, 50, 0.02), (100, 1, 5, 0.01)]
)
def test_noise_of_short_bursts_in_many_dimensions_is_unbiased(m, k, dim, std, seed):
    """With M near k the tangents swallow k of M − 1 degrees of freedom of the noise; the estimate knows that."""
    noise = 0.002
    clouds, bursts = noisy_bursts(2000, m, k, dim, std, noise, seed)
    clean = BurstStatistics.from_bursts(bursts, k, measurement_noise="estimate")
    assert clean.instrument.levels.mean() == pytest.approx(noise**2, rel=0.04)
    raw, pure = BurstStatistics.from_bursts(bursts, k), BurstStatistics.from_bursts(clouds, k)
    # the tangents' variance, too, is that of the noise-free bursts; before the removal it was visibly more. Planes of
    # neighbouring means are also tilted, ten times less, which is missing.
    excess = noise**2 * k * (1 + (dim - k) / (m - 1))
    assert clean.spectra.sum(axis=1).mean() == pytest.approx(pure.spectra.sum(axis=1).mean(), abs=0.15 * excess)
    assert raw.spectra.sum(axis=1).mean() - pure.spectra.sum(axis=1).mean() == pytest.approx(excess, rel=0.1)


def test_noise_of_known_covariances_does_not_lean():
    """Counts are infinite there: a covariance s² I + A Aᵀ gives back A Aᵀ exactly."""
    A = linear_map(2, 6, 0)
    covariances = np.tile(A.T @ A + 0.01 * np.eye(6), (12, 1, 1))
    statistics = BurstStatistics.from_covariances(np.zeros((12, 6)), covariances, 2)
    for option in (0.1, "estimate"):
        clean = statistics.without_noise(option)
        np.testing.assert_allclose(clean.instrument.levels, 0.01)
        np.testing.assert_allclose(outer(clean.tangents), np.tile(A.T @ A, (12, 1, 1)), atol=1e-12)
        np.testing.assert_allclose(clean.residuals, 0, atol=1e-12)


def test_noise_by_hand():
    traces = np.array([1.0, 3.0, 50.0])
    assert noise_from_spectra(traces, np.full(3, np.inf), 5, 2) == 1.0
    assert noise_from_spectra(traces, np.full(3, 5.0), 5, 2) == 2.0  # half of 4 degrees of freedom are the tangents'
    assert noise_from_spectra(traces, np.array([5.0, 11.0, 3.0]), 5, 2) == pytest.approx((2 + 3.75) / 2 / 3)
    with pytest.raises(BurstError, match="all D = 2 directions are tangent"):
        noise_from_spectra(np.ones(3), np.full(3, 10.0), 2, 2)


def test_noise_of_the_shortest_bursts_cannot_be_seen():
    _, bursts = planar_bursts(20, 3, dim=5)
    with pytest.raises(
        BurstError, match="bursts of 3 points in D = 5 directions with k = 2 tangents leave nothing off"
    ):
        BurstStatistics.from_bursts(bursts, 2, measurement_noise="estimate")
    BurstStatistics.from_bursts(bursts, 2, measurement_noise=1e-9)  # but it can be given


@pytest.mark.parametrize("noise", [-1.0, np.nan, np.inf, "guess"])
def test_bad_noise_is_refused(noise):
    with pytest.raises(ValueError, match=r"measurement_noise (must be|has values that are not finite)"):
        BurstStatistics.from_bursts(curved_bursts(), 2, measurement_noise=noise)


def test_a_burst_that_is_all_noise_tells_little():
    """It is kept: its likelihood knows how much of it is noise."""
    _, bursts = planar_bursts(40, 20)
    bursts[11] = bursts[11].mean(axis=0) + 1e-2 * (bursts[11] - bursts[11].mean(axis=0))
    statistics = BurstStatistics.from_bursts(bursts, 2, measurement_noise=1e-3)
    others = np.delete(np.arange(40), 11)
    assert statistics.noise_shares[11] > 1 > 2 * statistics.noise_shares[others].max()
    assert statistics.effective_counts[11] < 2 < 10 < statistics.effective_counts[others].min()


# -- small tangents -------------------------------------------------------------------------------------------------


def squeezed(condition, bend=0.5, seed=0, n=300, noise=0.0):
    """Two sensors; the second latent variable is seen `condition` times less than the first, beside a bend of it."""
    random = np.random.RandomState(seed)
    x = random.uniform(size=(n, 1, 2)) + 0.01 * random.standard_normal((n, 30, 2))
    a, b = x[..., 0], x[..., 1]
    Y = np.stack([a + 0.3 * np.sin(4 * a), b / condition + bend * np.sin(3 * a)], axis=-1)
    return Bursts(Y + noise * random.standard_normal(Y.shape))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("condition", [3, 30, 100])
def test_a_small_tangent_is_one_because_neighbours_lie_along_it(condition, seed):
    bursts = squeezed(condition, seed=seed)
    assert intrinsic_dim_from_spectra(BurstSpectra.of(bursts, 300), 2, 2) == 2


@pytest.mark.parametrize("noise", [0, 1e-4, 1e-3])
def test_neither_curvature_nor_noise_of_a_curve_is_a_tangent(noise):
    bursts = squeezed(np.inf, noise=noise)
    spectra = BurstSpectra.of(bursts, 300)
    assert intrinsic_dim_from_spectra(spectra, 2, 2) == 1 and not spectra.is_tangent(1)
    assert spectra.moves(1)[0] < 0.3


def test_what_quadratics_of_the_first_direction_explain():
    """Against a naive twin."""
    spectra = BurstSpectra.of(squeezed(30), 20)
    for burst, share in zip(squeezed(30)[sample_rows(300, 20)], spectra.unexplained[:, 1], strict=True):
        scores = np.linalg.svd(burst - burst.mean(axis=0), full_matrices=False)[0]
        known = np.stack([np.ones(30), scores[:, 0], scores[:, 0] ** 2], axis=1)
        left = scores[:, 1] - known @ np.linalg.lstsq(known, scores[:, 1], rcond=None)[0]
        assert share == pytest.approx(left @ left * 29 / 27)


def test_bootstrap_samples_see_each_neighbour_once():
    spectra = BurstSpectra.of(squeezed(30), 300)
    twice = spectra[np.repeat(np.arange(300), 2)]
    np.testing.assert_allclose(twice.moves(1), spectra.moves(1))


def test_a_direction_along_which_no_neighbour_lies_is_noise():
    for noise in (1e-3, 3e-3):
        spectra = BurstSpectra.of(squeezed(np.inf, noise=noise), 300)
        assert spectra.is_noise(1) and not spectra.is_tangent(1)
    assert not BurstSpectra.of(squeezed(30), 300).is_noise(1)


@pytest.mark.parametrize("seed", range(3))
def test_one_noisy_sensor_among_many_does_not_make_all_of_them_tangents(seed):
    """Where features are divided by their spread, a sensor that hardly varies is all noise."""
    random = np.random.RandomState(seed)
    t = random.uniform(size=(300, 1, 1)) + 0.01 * random.standard_normal((300, 40, 1))
    points = np.sin(t * random.uniform(1, 3, size=30) + random.uniform(0, 6, size=30))
    noise = 1e-4 * random.standard_normal(points.shape)
    noise[..., 7] *= 20
    assert BurstStatistics.from_bursts(points + noise).intrinsic_dim == 1
