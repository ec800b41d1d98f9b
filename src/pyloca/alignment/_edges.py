"""Each edge of the graph as both of its ends see it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from pyloca.errors import BurstError
from pyloca.geometry import BurstGraph, BurstStatistics

__all__ = ["Edges", "see_edges"]


@dataclass(frozen=True)
class Edges:
    """Steps along the edges, in the frames of their ends.

    Attributes
    ----------
    heads, tails : (E,)
    from_head, from_tail : (E, k)
        The step from head to tail in latent units, in the burst frame of the head (of the tail).
    weights : (E,)
    """

    n_nodes: int
    heads: NDArray[np.int64]
    tails: NDArray[np.int64]
    from_head: NDArray[np.float64]
    from_tail: NDArray[np.float64]
    weights: NDArray[np.float64]

    def laplacian(self) -> sp.csc_matrix:
        """The graph Laplacian L = Σ w (e_i − e_j)(e_i − e_j)ᵀ."""
        shape = (self.n_nodes, self.n_nodes)
        adjacency = sp.coo_matrix((self.weights, (self.heads, self.tails)), shape=shape)
        adjacency = adjacency + adjacency.T
        degree = np.asarray(adjacency.sum(axis=1)).ravel()
        return sp.csc_matrix(sp.diags(degree) - adjacency)

    def divergence(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Σ over the edges at each node of w · step, incoming less outgoing, shape (N, d)."""
        weighted = self.weights[:, None] * steps
        return gather(self.tails, weighted, self.n_nodes) - gather(self.heads, weighted, self.n_nodes)


def see_edges(statistics: BurstStatistics, graph: BurstGraph, burst_std: float) -> Edges:
    """Project every edge on the tangents of both ends and divide by their lengths: latent steps up to a rotation."""
    basis, scale = statistics.frames()
    difference = statistics.means[graph.tails] - statistics.means[graph.heads]  # (E, D)
    steps = [
        burst_std * np.einsum("ekd,ed->ek", basis[end], difference) / scale[end] for end in (graph.heads, graph.tails)
    ]
    # A step of length l is wrong by curvature as l² and by sampling noise as l: short edges know more. The median keeps
    # the weights free of units and bounded for bursts that nearly coincide.
    squared = np.square(graph.lengths)
    apart = squared[squared > 0]
    if not len(apart):
        raise BurstError("all bursts lie at one place; there is nothing to align.")
    weights = 1 / (squared + np.median(apart))
    return Edges(graph.n_nodes, graph.heads, graph.tails, steps[0], steps[1], weights / weights.mean())


def gather(index: NDArray[np.int64], values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Sum the rows of `values` (E, …) by `index` (E,) into (n, …)."""
    flat = values.reshape(len(values), -1)
    chooser = sp.csr_matrix((np.ones(len(index)), (index, np.arange(len(index)))), shape=(n, len(index)))
    return (chooser @ flat).reshape(n, *values.shape[1:])
