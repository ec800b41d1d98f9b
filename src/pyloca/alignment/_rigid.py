"""As rigid as possible: alternate frames (an SVD a burst) and positions (one prefactored Poisson solve)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from pyloca.alignment._edges import Edges, gather
from pyloca.alignment._synchronization import polar

__all__ = ["local_frames", "poisson_solver", "refine"]

Solver = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def poisson_solver(edges: Edges) -> Solver:
    """Solve L E = b once factored; the first burst is pinned and the result centred."""
    reduced = edges.laplacian()[1:, 1:].tocsc()
    factor = splu(reduced, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

    def solve(rhs: NDArray[np.float64]) -> NDArray[np.float64]:
        free = np.concatenate([np.zeros((1, rhs.shape[1])), factor.solve(rhs[1:])])
        return free - free.mean(axis=0)

    return solve


def integrate(edges: Edges, frames: NDArray[np.float64], solve: Solver) -> NDArray[np.float64]:
    """Positions whose differences are nearest to the steps ½ (u_ij F_i + v_ij F_j), shape (N, d)."""
    steps = np.einsum("ek,ekd->ed", edges.from_head, frames[edges.heads])
    steps += np.einsum("ek,ekd->ed", edges.from_tail, frames[edges.tails])
    return solve(edges.divergence(0.5 * steps))


def local_frames(edges: Edges, positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """The frames (N, k, d) under which the edges at each burst come nearest to the position differences."""
    steps = positions[edges.tails] - positions[edges.heads]  # (E, d)
    weighted = edges.weights[:, None] * steps
    moment = gather(edges.heads, edges.from_head[:, :, None] * weighted[:, None, :], edges.n_nodes)
    moment += gather(edges.tails, edges.from_tail[:, :, None] * weighted[:, None, :], edges.n_nodes)
    return polar(moment)


def strain(
    edges: Edges, frames: NDArray[np.float64], positions: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Root mean square of (difference − step) over the edges, relative to the steps: of all, and at each node (N,)."""
    difference = positions[edges.tails] - positions[edges.heads]
    wrong, total = np.zeros(edges.n_nodes), np.zeros(edges.n_nodes)
    for steps, ends in ((edges.from_head, edges.heads), (edges.from_tail, edges.tails)):
        step = np.einsum("ek,ekd->ed", steps, frames[ends])
        wrong += np.bincount(ends, edges.weights * np.square(difference - step).sum(axis=1), edges.n_nodes)
        total += np.bincount(ends, edges.weights * np.square(step).sum(axis=1), edges.n_nodes)
    return float(np.sqrt(wrong.sum() / total.sum())), np.sqrt(wrong / np.maximum(total, np.finfo(float).tiny))


def refine(
    edges: Edges, positions: NDArray[np.float64], solve: Solver, max_iter: int, tol: float = 1e-4
) -> tuple[NDArray[np.float64], NDArray[np.float64], float, NDArray[np.float64]]:
    """Local/global steps until the strain falls by less than `tol` of itself; (positions, frames, strain, strains)."""
    frames = local_frames(edges, positions)
    best, by_node = strain(edges, frames, positions)
    for _ in range(max_iter):
        positions = integrate(edges, frames, solve)
        frames = local_frames(edges, positions)
        now, by_node = strain(edges, frames, positions)
        if best - now < tol * best:
            best = min(best, now)
            break
        best = now
    return positions, frames, best, by_node
