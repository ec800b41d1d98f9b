"""Kernels of the baselines, against naive ones."""

import numpy as np
import pytest
import scipy.sparse as sp

from helpers import naive_squared, smooth_statistics
from pyloca import BurstError
from pyloca.baselines import (
    _kernels,
)
from pyloca.baselines._kernels import Euclidean, auto_bandwidth, gaussian_kernel, max_min, strongest, walk_eigenvectors
from pyloca.geometry import JointMahalanobis


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_squared_distances(offset):
    Y = np.random.RandomState(0).standard_normal((30, 4)) + offset
    metric = Euclidean(Y)
    tol = {"rtol": 1e-9 if offset else 1e-12, "atol": 1e-9 if offset else 1e-12}
    np.testing.assert_allclose(metric.squared(np.arange(5, 9)), naive_squared(Y)[5:9], **tol)
    np.testing.assert_allclose(metric.squared_from(Y[3:5]), naive_squared(Y)[3:5], **tol)


def test_mahalanobis_with_pseudo_inverses():
    """½ (y_i − y_j)ᵀ [C_i⁺ + C_j⁺] (y_i − y_j) with NumPy's pinv of the D × D covariances."""
    _, statistics = smooth_statistics(20)
    C = [np.linalg.pinv(A.T @ A, rcond=1e-8) for A in statistics.tangents]
    y = statistics.means
    naive = np.array(
        [[0.5 * (a - b) @ (P + Q) @ (a - b) for b, Q in zip(y, C, strict=True)] for a, P in zip(y, C, strict=True)]
    )
    metric = JointMahalanobis(statistics, completed=False)
    np.testing.assert_allclose(metric.squared(np.arange(20)), naive, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(metric.squared_from(y), naive, rtol=1e-8, atol=1e-10)
    completed = JointMahalanobis(statistics)
    np.testing.assert_allclose(completed.squared_from(y), completed.squared(np.arange(20)), rtol=1e-9, atol=1e-10)
    assert (completed.squared(np.arange(20)) >= naive - 1e-10).all()


@pytest.mark.parametrize("dim", [2, 20])  # by tree, and by comparing all pairs
def test_max_min_bandwidth(dim):
    Y = np.random.RandomState(1).standard_normal((60, dim))
    squared = naive_squared(Y)
    np.fill_diagonal(squared, np.inf)
    expected = squared.min(axis=1).max()
    assert max_min(Euclidean(Y)) == pytest.approx(expected, rel=1e-10)
    twice = np.concatenate([Y, Y])
    assert max_min(Euclidean(twice)) == pytest.approx(expected, rel=1e-10)  # a copy is no neighbour


def test_auto_bandwidth_grows_with_the_data():
    Y = np.random.RandomState(2).uniform(size=(500, 2))
    small, large = (auto_bandwidth(Euclidean(s * Y), np.random.RandomState(0)) for s in (1, 4))
    assert large == pytest.approx(16 * small)
    assert 1e-4 < small < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("dim", [3, 20])
def test_the_sparse_kernel_is_the_dense_one_cut(dim):
    Y = np.random.RandomState(3).uniform(size=(300, dim)) * (1 if dim == 3 else 0.3)
    metric = Euclidean(Y)
    epsilon = 2 * max_min(metric)
    dense, sparse = gaussian_kernel(metric, epsilon, True), gaussian_kernel(metric, epsilon, False)
    np.testing.assert_allclose(dense, np.exp(-naive_squared(Y) / (2 * epsilon)), rtol=1e-10)
    np.testing.assert_allclose(sparse.toarray(), np.where(dense >= _kernels.CUT, dense, 0), rtol=1e-7, atol=1e-12)
    assert (sparse != sparse.T).nnz == 0
    assert np.array_equal(dense, dense.T)


def test_a_kernel_too_large_for_memory_is_refused(monkeypatch):
    monkeypatch.setattr(_kernels, "MAX_ENTRIES", 5000)
    with pytest.raises(BurstError, match=r"joined to about \d+ of the 300 others.*Lower bandwidth_factor"):
        gaussian_kernel(Euclidean(np.random.RandomState(0).uniform(size=(300, 2))), 1.0, False)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("factor", [1, 30])
def test_eigenvectors_of_the_walk_are_numpys(factor, sparse):
    Y = np.random.RandomState(4).uniform(size=(400, 2)) * [1, 0.7]
    metric = Euclidean(Y)
    kernel = gaussian_kernel(metric, factor * max_min(metric), not sparse)
    K = kernel.toarray() if sparse else kernel.copy()
    P = K / K.sum(axis=1)[:, None]
    values, psi = walk_eigenvectors(kernel, 4, 0)
    np.testing.assert_allclose(values, np.sort(np.linalg.eigvals(P).real)[::-1][1:5], rtol=1e-9)
    np.testing.assert_allclose(P @ psi, psi * values, atol=1e-6)
    np.testing.assert_allclose((psi.T * K.sum(axis=1) / K.sum()) @ psi, np.eye(4), atol=1e-8)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_strongest_edges(sparse):
    W = np.random.RandomState(0).uniform(size=(30, 30))
    W = W + W.T + 5 * np.eye(30)
    out = strongest(sp.csr_matrix(W) if sparse else W, 4).toarray()
    np.fill_diagonal(W, -1)
    top = np.sort(W, axis=1)[:, [-4]] <= W
    np.testing.assert_array_equal(out, np.where(top | top.T, W, 0))
