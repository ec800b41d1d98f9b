"""Neighbours of bursts under the joint Mahalanobis distance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyloca.geometry._statistics import BurstStatistics

__all__ = ["BurstGraph", "JointMahalanobis", "mahalanobis_graph"]

# Entries of one slab of the N × N distance matrix that are held at a time: 2 MB in float64 stay in the cache.
SLAB = 1 << 18


@dataclass(frozen=True)
class BurstGraph:
    """Undirected edges between bursts, each listed once.

    Attributes
    ----------
    heads, tails : (E,)
        Edge e joins burst heads[e] to burst tails[e].
    lengths : (E,)
        Joint Mahalanobis distance in units of σ.
    """

    n_nodes: int
    heads: NDArray[np.int64]
    tails: NDArray[np.int64]
    lengths: NDArray[np.float64]


class JointMahalanobis:
    """½ (y_i − y_j)ᵀ [C_i⁺ + C_j⁺] (y_i − y_j), with C⁺ completed off the tangent.

    The pseudo-inverse of a rank-k covariance sees no distance across the manifold, so sheets that pass near each other
    would be short-circuited: off the tangent a step costs what it costs along the shortest tangent.
    """

    def __init__(self, statistics: BurstStatistics) -> None:
        self._points = statistics.means - statistics.means.mean(axis=0)
        self._square = np.square(self._points).sum(axis=1)
        self._basis, scale = statistics.frames()
        self._precision = 1 / np.square(scale)  # (N, k)
        self._offset = np.einsum("nkd,nd->nk", self._basis, self._points)

    def squared(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Squared distances of the bursts `rows` to all, in units of σ², shape (b, N)."""
        points = self._points
        gap = self._square[rows, None] + self._square - 2 * points[rows] @ points.T  # (b, N)
        shortest = self._precision[:, -1]
        out = gap * (shortest[rows, None] + shortest)
        for axis in range(self._precision.shape[1] - 1):
            # Along this tangent a step costs 1/s², less than the 1/s_k² that is charged above.
            saved = self._precision[:, axis] - shortest
            direction, offset = self._basis[:, axis], self._offset[:, axis]
            step = direction[rows] @ points.T
            step -= offset[rows, None]
            step *= step
            step *= saved[rows, None]
            out += step
            step = points[rows] @ direction.T
            step -= offset
            step *= step
            step *= saved
            out += step
        out *= 0.5
        return np.maximum(out, 0, out=out)


def mahalanobis_graph(statistics: BurstStatistics, n_neighbors: int) -> BurstGraph:
    """Each burst joined to its `n_neighbors` nearest; an edge stands once however many ends chose it.

    Brute force in slabs: exact whatever the shape of the bursts, where a Euclidean tree would miss neighbours along a
    direction that the measurement stretches.
    """
    n = len(statistics)
    n_neighbors = min(n_neighbors, n - 1)
    size = max(1, SLAB // n)
    metric = JointMahalanobis(statistics)
    pairs = []
    for start in range(0, n, size):
        rows = np.arange(start, min(start + size, n))
        squared = metric.squared(rows)
        squared[np.arange(len(rows)), rows] = np.inf
        near = np.argpartition(squared, n_neighbors - 1, axis=1)[:, :n_neighbors]  # (b, n_neighbors)
        length = np.sqrt(np.take_along_axis(squared, near, axis=1))
        i = np.repeat(rows, n_neighbors)
        pairs.append((np.minimum(i, near.ravel()), np.maximum(i, near.ravel()), length.ravel()))
    heads, tails, lengths = (np.concatenate(part) for part in zip(*pairs, strict=True))
    _, first = np.unique(heads * n + tails, return_index=True)
    return BurstGraph(n, heads[first], tails[first], lengths[first])
