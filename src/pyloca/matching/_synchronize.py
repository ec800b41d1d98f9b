"""Rigid maps of many instruments into one coordinate system, from maps between pairs of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from pyloca.matching._rigid import freedom, moved, parameter_jacobian
from pyloca.metrics import RigidMap

__all__ = ["Edge", "adjusted", "connected_to", "synchronize"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Edge:
    """Two instruments with the rigid map between them and the anchors behind it.

    Attributes
    ----------
    i, j : int
    rigid : RigidMap
        Coordinates of i to those of j.
    A, B : (n, d) arrays
        Anchors in the coordinates of i and of j.
    variance : (n,) array
        Of the distance of each, per coordinate, in the coordinates of j.
    noise : (n,) array
        The part of `variance` that belongs to the readings, and not to the encoders.
    """

    i: int
    j: int
    rigid: RigidMap
    A: Array
    B: Array
    variance: Array
    noise: Array

    def renumbered(self, i: int, j: int) -> Edge:
        """Return the same edge between instruments with other numbers."""
        return replace(self, i=i, j=j)


def connected_to(n: int, edges: list[Edge], reference: int = 0) -> NDArray[np.bool_]:
    """Return which of n instruments edges connect with the reference."""
    rows = np.array([(edge.i, edge.j) for edge in edges], dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(rows)), (rows[:, 0], rows[:, 1])), shape=(n, n))
    labels = connected_components(graph, directed=False)[1]
    return np.asarray(labels == labels[reference])


def synchronize(
    n: int, edges: list[Edge], d: int, free: NDArray[np.bool_]
) -> tuple[list[RigidMap], Array, list[Array]]:
    """Find maps of n connected instruments into the coordinates of the first.

    Rotations start from the leading eigenvectors of the block matrix of pairwise ones, which averages over all loops of
    the graph (Singer 2011); shifts and scales follow along its edges; then all are refined together on the anchors.
    `free` says whose scale is not known. Returns the maps, the covariance of their parameters, (n − 1) p each way,
    for residuals of the variance that the edges expect, and the centres of their turns.
    """
    blocks = np.zeros((n, d, n, d))
    for edge in edges:
        weight = len(edge.A) / float(edge.variance.mean())
        blocks[edge.i, :, edge.j] += weight * edge.rigid.rotation
        blocks[edge.j, :, edge.i] += weight * edge.rigid.rotation.T
    degree = np.abs(blocks).sum(axis=(1, 2, 3))
    matrix = blocks.reshape(n * d, n * d) / np.sqrt(np.repeat(degree, d)[:, None] * np.repeat(degree, d))
    vectors = np.linalg.eigh(matrix)[1][:, -d:].reshape(n, d, d)
    left, _, right = np.linalg.svd(vectors)
    turns = left @ right  # rotation of i into hidden coordinates, (n, d, d)
    maps = _along_tree(n, edges, turns @ turns[0].T, free)
    p = freedom(d, scale=True)
    centres = [rigid.apply(_of(edges, i)).mean(axis=0) for i, rigid in enumerate(maps)]

    def placed(x: Array) -> list[RigidMap]:
        steps = x.reshape(n - 1, p).copy()
        steps[:, -1] *= free[1:]  # only what is free is scaled
        return [maps[0], *(moved(maps[i], steps[i - 1], centres[i]) for i in range(1, n))]

    def residuals(x: Array) -> Array:
        now = placed(x)
        parts = [((now[e.i].apply(e.A) - now[e.j].apply(e.B)) / np.sqrt(e.variance)[:, None]).ravel() for e in edges]
        return np.concatenate(parts)

    found = least_squares(residuals, np.zeros((n - 1) * p), x_scale="jac", max_nfev=100)
    covariance = np.linalg.pinv(found.jac.T @ found.jac)
    return placed(found.x), covariance, centres


def adjusted(
    maps: list[RigidMap], edges: list[Edge], centres: list[Array], free: NDArray[np.bool_], covariance: Array
) -> tuple[list[RigidMap], Array]:
    """Refit all maps by generalised least squares, for differences at anchors with this covariance (m, m).

    Anchors of one overlap share the long waves of both encoders' errors, so that they are worth less together than as
    many independent ones, and a small overlap fixes a turn less well than its residuals suggest.
    """
    n, d = len(maps), len(centres[0])
    p = freedom(d, scale=True)
    rows = []
    for e in edges:
        slopes = np.zeros((len(e.A), d, n, p))
        slopes[:, :, e.i] += parameter_jacobian(maps[e.i].apply(e.A), centres[e.i], scale=True)
        slopes[:, :, e.j] -= parameter_jacobian(maps[e.j].apply(e.B), centres[e.j], scale=True)
        rows.append(slopes)
    slopes = np.concatenate(rows)
    slopes[:, :, ~free, -1] = 0.0
    flat = slopes[:, :, 1:].reshape(len(slopes), d, -1)  # the first stays
    differences = np.concatenate([maps[e.i].apply(e.A) - maps[e.j].apply(e.B) for e in edges])
    inverse = np.linalg.inv(covariance)
    spread = np.linalg.pinv(np.einsum("mdp,mn,ndq->pq", flat, inverse, flat))
    steps = -spread @ np.einsum("mdp,mn,nd->p", flat, inverse, differences)
    moves = steps.reshape(n - 1, p)
    return [maps[0], *(moved(maps[i], moves[i - 1], centres[i]) for i in range(1, n))], spread


def _along_tree(n: int, edges: list[Edge], turns: Array, free: NDArray[np.bool_]) -> list[RigidMap]:
    """Compose shifts and scales along a tree of the edges with most anchors; rotations are given."""
    between = {(e.i, e.j): e for e in edges} | {(e.j, e.i): e for e in edges}
    rows = np.array(list(between), dtype=np.int64).reshape(-1, 2)
    graph = coo_array((np.ones(len(rows)), (rows[:, 0], rows[:, 1])), shape=(n, n))
    order, before = breadth_first_order(graph.tocsr(), 0, directed=False)
    d = turns.shape[1]
    maps = {0: RigidMap(np.eye(d), np.zeros(d))}
    for i in order[1:].tolist():
        parent = int(before[i])
        edge = between[i, parent]
        own, other = (edge.A, edge.B) if edge.i == i else (edge.B, edge.A)
        scale = edge.rigid.scale if edge.i == i else 1 / edge.rigid.scale
        rotation, factor = turns[i], scale * maps[parent].scale if free[i] else 1.0
        target = maps[parent].apply(other).mean(axis=0)
        maps[i] = RigidMap(rotation, target - factor * own.mean(axis=0) @ rotation, factor)
    return [maps[i] for i in range(n)]


def _of(edges: list[Edge], i: int) -> Array:
    return np.concatenate([e.A if e.i == i else e.B for e in edges if i in (e.i, e.j)])
