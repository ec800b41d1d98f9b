"""Rigid maps of many instruments into one coordinate system, from maps between pairs of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from pyloca.matching._joint import Edge
from pyloca.metrics import RigidMap

__all__ = ["connected_to", "synchronize"]

Array = NDArray[np.float64]


def connected_to(n: int, edges: Sequence[Edge], reference: int = 0) -> NDArray[np.bool_]:
    """Return which of n instruments edges connect with the reference."""
    labels = connected_components(_graph(n, edges), directed=False)[1]
    return np.asarray(labels == labels[reference])


def synchronize(
    n: int, edges: Sequence[Edge], between: Sequence[RigidMap], d: int, free: NDArray[np.bool_]
) -> list[RigidMap]:
    """Find maps of n connected instruments into the coordinates of the first.

    `between` has the map from i to j of each edge. Rotations are the leading eigenvectors of the block matrix of these,
    which averages over all loops of the graph (Singer 2011); shifts follow along its edges, and scales where they are
    `free`. It is a start for `refine`.
    """
    blocks = np.zeros((n, d, n, d))
    for edge, rigid in zip(edges, between, strict=True):
        weight = len(edge.A) / float(edge.variance.mean())
        blocks[edge.i, :, edge.j] += weight * rigid.rotation
        blocks[edge.j, :, edge.i] += weight * rigid.rotation.T
    degree = np.abs(blocks).sum(axis=(1, 2, 3))
    matrix = blocks.reshape(n * d, n * d) / np.sqrt(np.repeat(degree, d)[:, None] * np.repeat(degree, d))
    vectors = np.linalg.eigh(matrix)[1][:, -d:].reshape(n, d, d)
    left, _, right = np.linalg.svd(vectors)
    turns = left @ right  # rotation of i into hidden coordinates, (n, d, d)
    turns = turns @ turns[0].T
    known = {(e.i, e.j): (e.A, e.B, r.scale) for e, r in zip(edges, between, strict=True)}
    known |= {(e.j, e.i): (e.B, e.A, 1 / r.scale) for e, r in zip(edges, between, strict=True)}
    order, before = breadth_first_order(_graph(n, edges), 0, directed=False)
    maps = {0: RigidMap(np.eye(d), np.zeros(d))}
    for i in order[1:].tolist():
        parent = int(before[i])
        own, other, scale = known[i, parent]
        factor = scale * maps[parent].scale if free[i] else 1.0
        target = maps[parent].apply(other).mean(axis=0)
        maps[i] = RigidMap(turns[i], target - factor * own.mean(axis=0) @ turns[i], factor)
    return [maps[i] for i in range(n)]


def _graph(n: int, edges: Sequence[Edge]) -> coo_array:
    rows = np.array([(edge.i, edge.j) for edge in edges], dtype=np.int64).reshape(-1, 2)
    return coo_array((np.ones(len(rows)), (rows[:, 0], rows[:, 1])), shape=(n, n)).tocsr()
