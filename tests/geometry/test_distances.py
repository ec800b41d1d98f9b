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
    SheetDistance,
    _sheets,
    connected_graph,
    mahalanobis_graph,
    nearest,
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


def naive_sheet_distance(statistics, off=16.0):
    """The joint Mahalanobis distance, with the mean of both off-tangent parts of a step charged `off` times."""
    out, n = naive_joint_mahalanobis(statistics), len(statistics)
    shortest = np.square(statistics.tangents).sum(axis=2).min(axis=1)
    tilts = statistics.residuals / (shortest * (statistics.counts - 1))
    basis = statistics.frames()[0]
    for i in range(n):
        for j in range(n):
            step = statistics.means[j] - statistics.means[i]
            along = [basis[end].T @ basis[end] @ step for end in (i, j)]
            mean = step - (along[0] + along[1]) / 2
            price = (1 / shortest[i] + 1 / shortest[j]) / 2
            chance = sum(statistics.residuals[end] / statistics.counts[end] for end in (i, j))
            chance += sum(tilts[end] * a @ a for end, a in zip((i, j), along, strict=True)) / 4
            out[i, j] += mean @ mean * max(1 / (1 / (off**2 * price) + chance) - price, 0)
    return out


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_sheet_distance_against_its_formula(k):
    statistics = BurstStatistics.from_bursts(curved_bursts(n=25), k)
    expected, i = naive_sheet_distance(statistics), np.arange(25)
    rtol = {"rtol": 1e-8, "atol": 1e-8 * expected.max()}
    np.testing.assert_allclose(SheetDistance(statistics).squared(i), expected, **rtol)
    heads, tails = (part.ravel() for part in np.indices((25, 25)))
    np.testing.assert_allclose(SheetDistance(statistics).between(heads, tails), expected.ravel(), **rtol)
    plain = SheetDistance(statistics, off=1.0).squared(i)
    np.testing.assert_allclose(plain, JointMahalanobis(statistics).squared(i), **rtol)
    assert k == 4 or np.any(expected > 1.1 * plain)


def test_a_bend_is_explained_and_a_gap_is_not():
    """On a circle, what leaves the tangents cancels to third order; to a second circle around it, nothing cancels."""
    angle = np.linspace(0, 0.3, 7)
    points = np.concatenate([r * np.stack([np.cos(angle), np.sin(angle)], axis=1) for r in (1.0, 1.1)])
    tangents = np.tile(np.stack([-np.sin(angle), np.cos(angle)], axis=1), (2, 1))
    statistics = BurstStatistics.from_jacobians(points, tangents[:, :, None])
    cost = np.sqrt(SheetDistance(statistics).squared(np.array([0]))[0])
    np.testing.assert_allclose(cost[1:7], 2 * np.sin(angle[1:] / 2), rtol=0.08)
    np.testing.assert_allclose(cost[7], 16 * 0.1, rtol=1e-6)


@pytest.mark.parametrize("stretch", [1.0, 100.0])
def test_a_tree_finds_the_neighbours_that_brute_force_finds(stretch):
    random = np.random.RandomState(0)
    X = random.uniform(size=(700, 2))
    y = np.stack([stretch * X[:, 0], X[:, 1], np.sin(2 * X).sum(axis=1)], axis=1)
    jacobians = np.zeros((700, 3, 2))
    jacobians[:, 0, 0], jacobians[:, 1, 1], jacobians[:, 2] = stretch, 1, 2 * np.cos(2 * X)
    metric = SheetDistance(BurstStatistics.from_jacobians(y, jacobians))
    (exact, _), (found, squared) = nearest(metric, 10), nearest(metric, 10, brute=0)
    both = np.mean([len(np.intersect1d(*pair)) / 10 for pair in zip(exact, found, strict=True)])
    assert both > 0.999
    rows = np.repeat(np.arange(700), 10)
    np.testing.assert_allclose(metric.between(rows, found.ravel()), squared.ravel(), rtol=1e-10)
    assert not np.any(found == np.arange(700)[:, None])


def coil(per_turn, turns=2, seed=0):
    """An Archimedean spiral whose turns are 1 apart; arc length and exact tangents."""
    t = np.linspace(0, 2 * np.pi * turns, 100_000)
    curve = (1 + t / (2 * np.pi))[:, None] * np.stack([np.cos(t), np.sin(t)], axis=1)
    length = np.r_[0, np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))]
    at = np.sort(np.random.RandomState(seed).randint(100, len(t) - 100, size=per_turn * turns))
    tangents = (curve[at + 1] - curve[at - 1]) / (length[at + 1] - length[at - 1])[:, None]
    return length[at], BurstStatistics.from_jacobians(curve[at], tangents[:, :, None])


def test_turns_of_a_coil_are_not_joined():
    for seed in range(3):
        length, statistics = coil(80, seed=seed)
        graph = connected_graph(statistics)
        assert np.abs(length[graph.heads] - length[graph.tails]).max() < 2.5


def test_pieces_are_joined_by_the_cheapest_edges_only():
    """Twelve bursts, a gap of five spacings, twelve more: edges over the gap are added, and no others."""
    x = np.r_[np.arange(12.0), np.arange(16.0, 28.0)]
    statistics = BurstStatistics.from_jacobians(np.c_[x, 0 * x], np.tile([[1.0], [0.0]], (24, 1, 1)))
    graph = connected_graph(statistics)
    over = (graph.heads < 12) & (graph.tails >= 12)
    assert over.any() and graph.lengths[over].max() <= 3 * 5
    assert graph.lengths[~over].max() <= 10


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
    monkeypatch.setattr(_sheets, "SLAB", slab)
    statistics = BurstStatistics.from_bursts(curved_bursts(n=30), 2)
    graph = mahalanobis_graph(statistics, n_neighbors)
    squared, lengths = naive_sheet_distance(statistics), naive_joint_mahalanobis(statistics)
    np.fill_diagonal(squared, np.inf)
    expected = set()
    for i in range(30):
        for j in np.argsort(squared[i])[: min(n_neighbors, 29)]:
            expected.add((min(i, int(j)), max(i, int(j))))
    edges = list(zip(graph.heads.tolist(), graph.tails.tolist(), strict=True))
    assert graph.n_nodes == 30
    assert len(edges) == len(set(edges))
    assert set(edges) == expected
    np.testing.assert_allclose(graph.costs, np.sqrt(squared[graph.heads, graph.tails]), rtol=1e-8)
    np.testing.assert_allclose(graph.lengths, np.sqrt(lengths[graph.heads, graph.tails]), rtol=1e-8)
