"""What is left off the tangents beside known noise, and noise from static bursts."""

import numpy as np
import pytest

from helpers import planar_bursts
from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics


def curved_bursts(noise, n=200, m=40, seed=0):
    """Points of a plane in five sensors that bend, with noise in some."""
    random = np.random.RandomState(seed)
    x = random.uniform(size=(n, 1, 2)) + 0.02 * random.standard_normal((n, m, 2))
    a, b = x[..., 0], x[..., 1]
    clean = np.stack([a + 0.3 * b**2, b + 0.2 * np.sin(3 * a), np.sin(2 * a + b), np.cos(2 * b - a), a * b], axis=-1)
    return clean + noise * random.standard_normal(clean.shape)


def residuals_by_hand(burst, std, floor, k):
    """Variance off the k leading white directions, less 1.1 times that of noise, in the coordinates of the data."""
    m = len(burst)
    factor = np.diag(np.sqrt(std**2 + floor))
    covariance = np.cov(burst, rowvar=False)
    back = np.linalg.inv(factor)
    values, vectors = np.linalg.eigh(back @ covariance @ back.T)
    lead = factor @ vectors[:, ::-1][:, :k]
    rest = np.trace(covariance) - np.trace(lead @ np.diag(values[::-1][:k]) @ lead.T)
    along = np.diag(vectors[:, ::-1][:, :k].T @ back @ np.diag(std**2) @ back.T @ vectors[:, ::-1][:, :k])
    noise = np.square(std).sum() - (along * np.square(lead).sum(axis=0)).sum()
    return max(rest - 1.1 * (1 - k / (m - 1)) * noise, 0)


def test_residuals_are_those_of_the_data():
    std = np.array([0.02, 0, 0, 0.012, 0])
    bursts = curved_bursts(std)
    found = BurstStatistics.from_bursts(bursts, 2, measurement_noise=std)
    floor = 1e-4 * bursts.var(axis=1).mean(axis=0)
    expected = [residuals_by_hand(burst, std, floor, 2) for burst in bursts]
    own = found.tilts > 0  # the others were looked at along the planes of their neighbours
    assert own.mean() > 0.2
    np.testing.assert_allclose(found.residuals[own], np.array(expected)[own], rtol=1e-6, atol=1e-12)


def test_a_bend_in_a_precise_sensor_is_nothing_beside_the_noise_of_another():
    std = np.array([0.02, 0, 0, 0.012, 0])
    found = BurstStatistics.from_bursts(curved_bursts(std), measurement_noise=std)
    assert found.intrinsic_dim == 2
    assert np.median(found.residuals / found.spectra[:, -1]) < 0.05


def test_rounding_in_silent_sensors_is_not_noise():
    std = np.array([0.02, 0, 0, 0.012, 0])
    random = np.random.RandomState(1)
    means = curved_bursts(0 * std, n=30, m=2)[:, :1] + 7.0
    still = means + std * random.standard_normal((30, 50, 5))
    noise = BurstStatistics.from_bursts(curved_bursts(std), 2, static=Bursts(still)).instrument
    assert noise.places is None  # the same everywhere
    np.testing.assert_allclose(noise.deviations, std, rtol=0.1)
    silent = BurstStatistics.from_bursts(curved_bursts(std), 2, static=np.repeat(means, 50, axis=1)).instrument
    assert not silent.levels.any()


def test_correlated_noise_is_looked_for_in_bursts_that_do_not_fill_all_directions():
    """The noise may be estimated or refused, but no matrix is inverted that has no inverse."""
    bursts = planar_bursts(200, 30)[1]  # a plane, without noise
    try:
        noise = BurstStatistics.from_bursts(bursts, 1, measurement_noise="estimate").instrument
    except BurstError as error:
        assert "cannot be estimated" in str(error)
    else:
        assert np.isfinite(noise.levels).all()


def test_static_bursts_do_not_go_with_known_perturbations():
    random = np.random.RandomState(0)
    z = 0.1 * random.standard_normal((20, 8, 2))
    bursts = Bursts(np.concatenate([z, z[..., :1]], axis=2) + random.uniform(size=(20, 1, 3)), perturbations=z)
    with pytest.raises(ValueError, match="given or from static bursts"):
        BurstStatistics.from_bursts(bursts, static=random.standard_normal((5, 20, 3)))
