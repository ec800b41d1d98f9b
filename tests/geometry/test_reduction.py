"""Linear reduction of many features, and the SVD of wide bursts."""

import numpy as np
import pytest

from helpers import planar_bursts
from pyloca.geometry import BurstStatistics, find_reduction
from pyloca.geometry._thin import thin_svd


def wide(n=40, dim=80, noise=0.0, seed=0):
    """Curved bursts in six directions of `dim` features."""
    random = np.random.RandomState(seed)
    x = random.uniform(size=(n, 1, 2)) + 0.02 * random.standard_normal((n, 20, 2))
    y = np.concatenate([x, np.square(x), np.sin(3 * x)], axis=2)
    y = y @ np.linalg.qr(random.standard_normal((dim, 6)))[0].T + 5
    return y + noise * random.standard_normal(y.shape)


def test_the_directions_of_means_and_tangents_are_kept():
    statistics = BurstStatistics.from_bursts(wide(), 2)
    reduction = find_reduction(statistics, 2)
    assert reduction.basis.shape == (80, reduction.basis.shape[1]) and reduction.basis.shape[1] <= 6
    np.testing.assert_allclose(reduction.basis.T @ reduction.basis, np.eye(reduction.basis.shape[1]), atol=1e-12)
    assert reduction.left_means < 1e-7 and reduction.left_tangents < 0.05
    assert f"{reduction.basis.shape[1]} of 80 directions" in reduction.words()
    small = reduction.apply(statistics)
    back = small.means @ reduction.basis.T + reduction.centre
    assert np.abs(back - statistics.means).max() < 1e-3 * statistics.means.std(axis=0).max() * np.sqrt(80)
    np.testing.assert_allclose(small.spectra, statistics.spectra, rtol=1e-2)


def test_noise_is_not_kept():
    statistics = BurstStatistics.from_bursts(wide(100, noise=1e-3), 2)
    assert find_reduction(statistics, 2).basis.shape[1] < 20


def test_a_short_direction_is_kept_for_its_tangents():
    """A sensor that hardly varies, but alone sees one direction of the bursts."""
    random = np.random.RandomState(0)
    x = random.uniform(size=(40, 1, 2)) + 0.02 * random.standard_normal((40, 20, 2))
    y = np.zeros((40, 20, 80))
    y[..., 3], y[..., 7] = x[..., 0], 1e-4 * x[..., 1]
    basis = find_reduction(BurstStatistics.from_bursts(y, 2), 2).basis
    assert np.linalg.norm(basis[7]) > 1 - 1e-6


@pytest.mark.parametrize("data", [planar_bursts(40, 20, dim=10)[1], np.random.RandomState(0).normal(size=(60, 20, 80))])
def test_nothing_is_reduced_where_it_does_not_pay(data):
    assert find_reduction(BurstStatistics.from_bursts(data, 2), 2) is None


def test_a_projection_keeps_covariances_and_noise():
    """VᵀAᵀEAV and VᵀAᵀRAV, which do not depend on the basis of the tangents."""
    random = np.random.RandomState(0)
    data = wide(noise=0.01)
    statistics = BurstStatistics.from_bursts(data, 2, measurement_noise=0.01)
    basis = np.linalg.qr(random.standard_normal((80, 7)))[0]
    small = statistics.projected(np.ones(80), basis)
    np.testing.assert_allclose(small.means, (statistics.means - 1) @ basis)
    for inside in ("total", "noise"):
        whole, part = (
            np.einsum("nka,nkl,nlb->nab", s.tangents, getattr(s, inside), s.tangents) for s in (statistics, small)
        )
        np.testing.assert_allclose(part, basis.T @ whole @ basis, atol=1e-12)
    gram = np.einsum("nka,nla->nkl", small.tangents, small.tangents)
    np.testing.assert_allclose(gram, small.spectra[:, :, None] * np.eye(2), atol=1e-12)


@pytest.mark.parametrize("dim", [12, 100])
def test_a_thin_svd_is_that_of_numpy(dim):
    random = np.random.RandomState(0)
    block = random.standard_normal((3, 8, dim)) * 10.0 ** -np.arange(8)[:, None]
    left, singular, right = thin_svd(block, 3)
    expected = np.linalg.svd(block, full_matrices=False)
    np.testing.assert_allclose(singular, expected[1], rtol=1e-9)
    np.testing.assert_allclose(np.abs(np.einsum("bmi,bmi->bi", left, expected[0])), 1, atol=1e-9)
    np.testing.assert_allclose(np.abs(np.einsum("bid,bid->bi", right, expected[2][:, :3])), 1, atol=1e-9)
