"""As-rigid-as-possible refinement: alternate frames (one SVD per burst) and positions (one Poisson solve)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from pyloca.alignment._edges import Edges, gather
from pyloca.alignment._synchronization import polar

__all__ = ["Solver", "integrate", "local_frames", "poisson_solver", "refine", "strain"]

Solver = Callable[[NDArray[np.float64]], NDArray[np.float64]]


def poisson_solver(edges: Edges) -> Solver:
    """Factor the graph Laplacian L once, to solve L x = b for many b.

    Parameters
    ----------
    edges : Edges
        Of a connected graph.

    Returns
    -------
    callable
        Maps b (N, d), whose columns sum to 0, to the centred solution x (N, d).

    Examples
    --------
    >>> import numpy as np
    >>> edges = Edges(3, np.array([0, 1]), np.array([1, 2]), np.ones((2, 1)), np.ones((2, 1)), np.ones(2))
    >>> poisson_solver(edges)(edges.divergence(np.ones((2, 1)))).ravel().round(12)
    array([-1.,  0.,  1.])
    """
    reduced = edges.laplacian()[1:, 1:].tocsc()
    factor = splu(reduced, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})

    def solve(rhs: NDArray[np.float64]) -> NDArray[np.float64]:
        free = np.concatenate([np.zeros((1, rhs.shape[1])), factor.solve(rhs[1:])])
        return free - free.mean(axis=0)

    return solve


def integrate(edges: Edges, frames: NDArray[np.float64], solve: Solver) -> NDArray[np.float64]:
    """Find the positions (N, d) whose differences are nearest to the steps ½ (u_ij F_i + v_ij F_j)."""
    steps = np.einsum("ek,ekd->ed", edges.from_head, frames[edges.heads])
    steps += np.einsum("ek,ekd->ed", edges.from_tail, frames[edges.tails])
    return solve(edges.divergence(0.5 * steps))


def local_frames(edges: Edges, positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find the frames (N, k, d) in which the edges at each burst are nearest to the position differences."""
    steps = positions[edges.tails] - positions[edges.heads]  # (E, d)
    weighted = edges.weights[:, None] * steps
    moment = gather(edges.heads, edges.from_head[:, :, None] * weighted[:, None, :], edges.n_nodes)
    moment += gather(edges.tails, edges.from_tail[:, :, None] * weighted[:, None, :], edges.n_nodes)
    return polar(moment)


def strain(
    edges: Edges, frames: NDArray[np.float64], positions: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Root mean square of (difference − step) relative to the steps: over all edges, and at each node (N,)."""
    difference = positions[edges.tails] - positions[edges.heads]
    wrong, total = np.zeros(edges.n_nodes), np.zeros(edges.n_nodes)
    for steps, ends in ((edges.from_head, edges.heads), (edges.from_tail, edges.tails)):
        step = np.einsum("ek,ekd->ed", steps, frames[ends])
        wrong += np.bincount(ends, edges.weights * np.square(difference - step).sum(axis=1), edges.n_nodes)
        total += np.bincount(ends, edges.weights * np.square(step).sum(axis=1), edges.n_nodes)
    tiny = np.finfo(float).tiny  # steps of bursts that coincide
    return float(np.sqrt(wrong.sum() / max(total.sum(), tiny))), np.sqrt(wrong / np.maximum(total, tiny))


def refine(
    edges: Edges, positions: NDArray[np.float64], solve: Solver, max_iter: int, tol: float = 1e-4
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Alternate until the strain falls by less than a fraction `tol`; return positions and frames."""
    frames = local_frames(edges, positions)
    before, _ = strain(edges, frames, positions)
    for _ in range(max_iter):
        positions = integrate(edges, frames, solve)
        frames = local_frames(edges, positions)
        now, _ = strain(edges, frames, positions)
        if before - now < tol * before:
            break
        before = now
    return positions, frames
