"""How much sampling changes a burst, by its fourth moments; and bursts that bend."""

import numpy as np
import pytest
from scipy.stats import chi2

from pyloca.geometry import BurstStatistics

DRAWS = {
    "gaussian": lambda random, shape: random.standard_normal(shape),
    "exponential": lambda random, shape: random.exponential(size=shape) - 1,
    "half-normal": lambda random, shape: np.abs(random.standard_normal(shape)),
    "student": lambda random, shape: random.standard_t(5, size=shape),
    "uniform": lambda random, shape: random.uniform(-1, 1, size=shape),
}


def median_loss(statistics, population):
    """Of a perfect encoder, which divides by the standard deviation of the population."""
    shapes = np.einsum("nka,nkb->nab", statistics.tangents, statistics.tangents) / population**2
    return np.median(np.trace(shapes, axis1=1, axis2=2) - np.linalg.slogdet(shapes)[1] - statistics.intrinsic_dim)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize(("k", "m"), [(1, 40), (2, 20), (2, 100), (4, 40)], ids=str)
def test_tails_tell_the_loss_of_a_perfect_encoder(name, k, m):
    """The median loss is that of Gaussian points, by their law, times `tails`."""
    random = np.random.RandomState(7)
    points = DRAWS[name](random, (1500, m, k))
    statistics = BurstStatistics.from_bursts(points + 10 * random.standard_normal((1500, 1, k)), k)
    freedom = k * (k + 1) / 2
    bartlett = 1 - (2 * k**2 + 3 * k - 1) / (6 * (k + 1) * (m - 1))
    gaussian = chi2.median(freedom) / (bartlett * (m - 1))
    assert median_loss(statistics, points.std()) == pytest.approx(statistics.tails * gaussian, rel=0.17)
    if name == "gaussian":
        assert statistics.tails == pytest.approx(1, abs=0.06)


def test_tails_are_carried_along_and_unknown_without_points():
    points = np.random.RandomState(0).exponential(size=(200, 30, 2))
    statistics = BurstStatistics.from_bursts(points, 2)
    assert statistics.tails > 1.5
    assert statistics[:10].tails == statistics.scaled(np.array([2.0, 1.0])).tails == statistics.tails
    covariances = np.stack([np.cov(burst.T) for burst in points])
    assert BurstStatistics.from_covariances(points.mean(axis=1), covariances, 2, 30).tails == 1
    assert statistics.sampled_counts[0] == pytest.approx(1 + 29 / statistics.tails)


def bent(clouds):
    """(…, 2) → (…, 4), quadratic; the tangents at x are the rows of `slopes`."""
    a, b = clouds[..., 0], clouds[..., 1]
    return np.stack([a + b**2, b - 0.5 * a * b, a**2, a * b + b**2], axis=-1)


def slopes(x):
    a, b = x[..., 0], x[..., 1]
    one, zero = np.ones_like(a), np.zeros_like(a)
    return np.stack([np.stack([one, -0.5 * b, 2 * a, b], -1), np.stack([2 * b, one - 0.5 * a, zero, a + 2 * b], -1)], 1)


def tilt(directions, planes):
    """Squared sine of the largest angle between the row spaces (n, 2, 4), median."""
    one, other = (np.linalg.qr(rows.transpose(0, 2, 1))[0] for rows in (directions, planes))
    return np.median(1 - np.linalg.svd(one.transpose(0, 2, 1) @ other, compute_uv=False)[:, -1] ** 2)


def test_tangents_of_one_sided_bursts_are_no_secants():
    """Principal directions lean where the points are; the slopes of a quadratic do not."""
    random = np.random.RandomState(0)
    clouds = random.uniform(size=(60, 1, 2)) + 0.03 * random.exponential(size=(60, 30, 2))
    true = slopes(clouds.mean(axis=1))
    points = bent(clouds)
    principal = np.linalg.svd(points - points.mean(axis=1, keepdims=True), full_matrices=False)[2][:, :2]
    assert tilt(BurstStatistics.from_bursts(points, 2).tangents, true) < 0.1 * tilt(principal, true)


def test_bends_along_a_long_tangent_do_not_hide_a_short_one():
    random = np.random.RandomState(0)
    clouds = random.uniform(size=(60, 1, 2)) + 0.01 * random.standard_normal((60, 50, 2))
    points = np.stack([clouds[..., 0], clouds[..., 1] / 100 + clouds[..., 0] ** 2 / 2], axis=-1)
    shortest = np.sqrt(BurstStatistics.from_bursts(points, 2).spectra[:, 1])
    slope = clouds[..., 0].mean(axis=1)
    assert np.median(shortest * np.sqrt(1 + slope**2)) == pytest.approx(1e-4, rel=0.1)
