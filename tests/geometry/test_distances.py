"""Distances between bursts, and who is whose neighbour."""

import numpy as np
import pytest

from helpers import (
    curved_bursts,
    planar_statistics,
)
from pyloca.geometry import (
    BurstStatistics,
    JointMahalanobis,
    _graph,
    mahalanobis_graph,
)


def naive_joint_mahalanobis(statistics):
    """½ (y_i − y_j)ᵀ (P_i + P_j) (y_i − y_j) with the metric matrices written out."""
    metrics = []
    for tangents in statistics.tangents:
        values = np.square(tangents).sum(axis=1)
        directions = tangents / np.sqrt(values)[:, None]
        off = np.eye(tangents.shape[1]) - directions.T @ directions
        metrics.append((directions.T / values) @ directions + off / values.min())
    n = len(statistics)
    out = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            step = statistics.means[i] - statistics.means[j]
            out[i, j] = 0.5 * step @ (metrics[i] + metrics[j]) @ step
    return out


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_joint_mahalanobis_against_explicit_metrics(k):
    statistics = BurstStatistics.from_bursts(curved_bursts(n=25), k)
    expected = naive_joint_mahalanobis(statistics)
    metric = JointMahalanobis(statistics)
    np.testing.assert_allclose(metric.squared(np.arange(25)), expected, rtol=1e-9, atol=1e-9 * expected.max())
    np.testing.assert_allclose(metric.squared(np.array([7, 2])), expected[[7, 2]], rtol=1e-9, atol=1e-9)


def test_distance_is_the_latent_distance_when_the_measurement_is_linear():
    X, statistics = planar_statistics(50, k=3, dim=5)
    latent = np.square(X[:, None] - X).sum(axis=2)
    np.testing.assert_allclose(JointMahalanobis(statistics).squared(np.arange(50)), latent, atol=1e-12)


def test_sheets_that_pass_near_each_other_are_apart():
    """Two lines 1.5 spacings apart: along the line is nearer than across, unless a step across costs nothing."""
    along = np.tile(np.arange(10.0), 2)
    points = np.stack([along, np.repeat([0.0, 1.5], 10)], axis=1)
    statistics = BurstStatistics.from_jacobians(points, np.tile([[1.0], [0.0]], (20, 1, 1)))
    graph = mahalanobis_graph(statistics, 2)
    inner = (graph.heads % 10 > 0) & (graph.heads % 10 < 9) & (graph.tails % 10 > 0) & (graph.tails % 10 < 9)
    assert np.all((graph.heads < 10) == (graph.tails < 10), where=inner)
    np.testing.assert_allclose(JointMahalanobis(statistics).squared(np.array([0]))[0, 10], 1.5**2)


@pytest.mark.parametrize("slab", [1, 100, 1 << 18])
@pytest.mark.parametrize("n_neighbors", [1, 5, 29, 100])
def test_graph_against_brute_force(n_neighbors, slab, monkeypatch):
    monkeypatch.setattr(_graph, "SLAB", slab)
    statistics = BurstStatistics.from_bursts(curved_bursts(n=30), 2)
    graph = mahalanobis_graph(statistics, n_neighbors)
    squared = naive_joint_mahalanobis(statistics)
    np.fill_diagonal(squared, np.inf)
    expected = set()
    for i in range(30):
        for j in np.argsort(squared[i])[: min(n_neighbors, 29)]:
            expected.add((min(i, int(j)), max(i, int(j))))
    edges = list(zip(graph.heads.tolist(), graph.tails.tolist(), strict=True))
    assert graph.n_nodes == 30
    assert len(edges) == len(set(edges))
    assert set(edges) == expected
    np.testing.assert_allclose(graph.lengths, np.sqrt(squared[graph.heads, graph.tails]), rtol=1e-8)
