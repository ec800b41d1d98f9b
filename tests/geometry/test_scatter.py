"""Bursts with heavy tails have the shape of their scatter, and the size of their covariance."""

import numpy as np
import pytest

from pyloca.bursts import Bursts
from pyloca.geometry import BurstStatistics, Scatter, read_statistics, save_statistics, variances_within
from pyloca.geometry._scatter import DEGREES, reshaped, scatter


def elliptical(random, shape):
    size = np.sqrt(random.chisquare(3, shape[:-1]))[..., None]
    return random.standard_normal(shape) / size


HEAVY = {
    "student": lambda random, shape: random.standard_t(3, size=shape) / np.sqrt(3),
    "elliptical": elliptical,
    "lognormal": lambda random, shape: (np.exp(0.6 * random.standard_normal(shape)) - np.exp(0.18)) / 0.789,
    "exponential": lambda random, shape: random.exponential(size=shape) - 1,
}
LIGHT = {
    "gaussian": lambda random, shape: random.standard_normal(shape),
    "uniform": lambda random, shape: random.uniform(-1, 1, size=shape),
}


def seen(draw, n=600, m=30, k=2, seed=0):
    """Bursts around places in a square, measured as they are."""
    random = np.random.RandomState(seed)
    points = draw(random, (n, m, k))
    return points, BurstStatistics.from_bursts(points + 30 * random.uniform(size=(n, 1, k)), k)


def shapes(statistics):
    return np.einsum("nka,nkb->nab", statistics.tangents, statistics.tangents)


def test_scatter_of_a_burst_is_a_fixed_point_over_all_pairs():
    points = HEAVY["student"](np.random.RandomState(0), (3, 15, 2))
    found, spreads = scatter(points)
    for burst, ours, spread in zip(points, found, spreads, strict=True):
        inverse, total, logs = np.linalg.inv(ours), np.zeros((2, 2)), []
        for i in range(15):
            for j in range(i):
                step = (burst[i] - burst[j]) / np.sqrt(2)
                square = step @ inverse @ step
                total += (np.outer(step, step) - ours) / (DEGREES + square)
                logs.append(np.log1p(square / DEGREES))
        np.testing.assert_allclose(total, 0, atol=1e-4)
        assert spread == pytest.approx(np.mean(logs), rel=1e-5)


def test_scatter_changes_with_a_linear_map_as_a_covariance_does():
    points, turn = HEAVY["lognormal"](np.random.RandomState(0), (20, 30, 3)), np.random.RandomState(1).randn(3, 3)
    np.testing.assert_allclose(scatter(points @ turn)[0], turn.T @ scatter(points)[0] @ turn, rtol=1e-3)


@pytest.mark.parametrize("name", HEAVY)
@pytest.mark.parametrize("k", [1, 2, 4])
def test_tangents_have_the_size_of_the_standard_deviation(name, k):
    """And no correlations, also where displacements are one-sided."""
    _, statistics = seen(HEAVY[name], k=k)
    if k < 4:  # with more dimensions covariances are nearly as good, but where the fourth moment is infinite
        assert statistics.scatter is not None and statistics.scatter.error < 0.1
    mean = shapes(statistics).mean(axis=0)
    assert np.trace(mean) / k == pytest.approx(1, abs=0.15)
    assert np.abs(mean - np.diag(np.diag(mean))).max() < 0.03


@pytest.mark.parametrize("name", LIGHT)
def test_other_bursts_have_the_shape_of_their_covariance(name):
    points, statistics = seen(LIGHT[name])
    assert statistics.scatter is None
    np.testing.assert_allclose(shapes(statistics), [np.cov(burst.T) for burst in points], atol=1e-12)


def test_the_shape_of_heavy_tails_is_far_more_certain():
    points, statistics = seen(HEAVY["student"])
    wrong = [
        np.square(each - np.eye(2)).sum(axis=(1, 2)) for each in (shapes(statistics), [np.cov(p.T) for p in points])
    ]
    assert np.median(wrong[0]) < 0.75 * np.median(wrong[1]) and np.mean(wrong[0]) < 0.3 * np.mean(wrong[1])


def test_bursts_are_looked_at_one_by_one():
    points = HEAVY["student"](np.random.RandomState(0), (50, 20, 3))
    centred = points - points.mean(axis=1, keepdims=True)
    tangents = BurstStatistics.from_bursts(100 * np.random.RandomState(1).randn(50, 1, 3) + points, 3).tangents
    whole = reshaped(centred, tangents, 2.0)
    for rows in (slice(0, 1), slice(7, 20)):
        np.testing.assert_array_equal(reshaped(centred[rows], tangents[rows], 2.0), whole[rows])
    np.testing.assert_allclose(
        variances_within(centred, 3, Scatter(2.0, 0.1, 2.0))[:, 0], 2 * largest(centred), rtol=1e-6
    )


def largest(centred):
    return np.linalg.eigvalsh(scatter(centred)[0])[:, -1]


def test_points_in_one_place_keep_their_covariance():
    points = np.random.RandomState(0).standard_normal((4, 20, 2))
    points[1, :18, 1] = 0.0
    points[2] = 0.0
    centred = points - points.mean(axis=1, keepdims=True)
    _, singular, rows = np.linalg.svd(centred, full_matrices=False)
    tangents = singular[:, :, None] * rows / np.sqrt(19)
    found = reshaped(centred, tangents, 1.5)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[2], tangents[2])
    assert (found[[0, 3]] != tangents[[0, 3]]).any()


def test_bursts_of_many_lengths_and_noisy_ones_keep_their_covariance():
    random = np.random.RandomState(0)
    clouds = [random.uniform(size=2) + random.standard_t(3, size=(m, 2)) / 100 for m in random.randint(10, 60, 200)]
    assert BurstStatistics.from_bursts(Bursts(clouds), 2).scatter is None
    points = np.concatenate([seen(HEAVY["student"])[0], np.zeros((600, 30, 1))], axis=2) + random.rand(600, 1, 3) * 30
    assert BurstStatistics.from_bursts(points, 2, measurement_noise=0.01).scatter is None


def test_the_rule_is_kept_in_files_and_in_what_is_merged(tmp_path):
    _, statistics = seen(HEAVY["student"], n=200)
    save_statistics(statistics, tmp_path / "s.zarr")
    assert read_statistics(tmp_path / "s.zarr").scatter == statistics.scatter == statistics[:5].scatter
    plain = seen(LIGHT["gaussian"], n=50)[1]
    assert BurstStatistics.merge([statistics, plain]).scatter == pytest.approx(statistics.scatter)
    assert BurstStatistics.merge([statistics[:50], plain]).scatter is None
