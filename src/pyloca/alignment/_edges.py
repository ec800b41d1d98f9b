"""Edges of the graph, as steps in the frames of both ends."""

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
    n_nodes : int
        N, the number of bursts.
    heads, tails : (E,) array of int
        The bursts at the ends of each edge.
    from_head, from_tail : (E, k) array
        The step from head to tail in latent units, in the burst frame of the head (of the tail).
    weights : (E,) array
        Larger for shorter edges; 1 on average.

    Examples
    --------
    See `see_edges`.
    """

    n_nodes: int
    heads: NDArray[np.int64]
    tails: NDArray[np.int64]
    from_head: NDArray[np.float64]
    from_tail: NDArray[np.float64]
    weights: NDArray[np.float64]

    def laplacian(self) -> sp.csc_matrix:
        """Return the graph Laplacian L = Σ w (e_i − e_j)(e_i − e_j)ᵀ.

        Returns
        -------
        (N, N) csc_matrix
        """
        shape = (self.n_nodes, self.n_nodes)
        adjacency = sp.coo_matrix((self.weights, (self.heads, self.tails)), shape=shape)
        adjacency = adjacency + adjacency.T
        degree = np.asarray(adjacency.sum(axis=1)).ravel()
        return sp.csc_matrix(sp.diags(degree) - adjacency)

    def divergence(self, steps: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum w · step over the edges at each node, incoming minus outgoing.

        Parameters
        ----------
        steps : (E, d) array

        Returns
        -------
        (N, d) array
        """
        weighted = self.weights[:, None] * steps
        return gather(self.tails, weighted, self.n_nodes) - gather(self.heads, weighted, self.n_nodes)


def see_edges(statistics: BurstStatistics, graph: BurstGraph, burst_std: float) -> Edges:
    """Project every edge onto the tangents of both ends, which gives latent steps up to a rotation.

    Parameters
    ----------
    statistics : BurstStatistics
    graph : BurstGraph
    burst_std : float
        σ.

    Returns
    -------
    Edges

    Raises
    ------
    BurstError
        If all bursts coincide.

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import mahalanobis_graph
    >>> data = datasets.mushroom(n_bursts=100, n_points=10, random_state=0)
    >>> statistics = BurstStatistics.from_bursts(data.bursts)
    >>> edges = see_edges(statistics, mahalanobis_graph(statistics, 5), data.burst_std)
    >>> edges.from_head.shape == (len(edges.heads), 2)
    True
    """
    basis, scale = statistics.frames()
    difference = statistics.means[graph.tails] - statistics.means[graph.heads]  # (E, D)
    steps = [
        burst_std * np.einsum("ekd,ed->ek", basis[end], difference) / scale[end] for end in (graph.heads, graph.tails)
    ]
    # A step of length l is wrong by curvature as l² and by sampling noise as l: short edges know more. The median keeps
    # the weights free of units and bounded for bursts that nearly coincide.
    squared = np.square(graph.costs)
    apart = squared[squared > 0]
    if not len(apart) or not (steps[0].any() or steps[1].any()):
        raise BurstError(
            "all bursts have the same mean; there is nothing to align. Check that the right columns were read."
        )
    weights = 1 / (squared + np.median(apart))
    return Edges(graph.n_nodes, graph.heads, graph.tails, steps[0], steps[1], weights / weights.mean())


def gather(index: NDArray[np.int64], values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Sum rows of values by index.

    Parameters
    ----------
    index : (E,) array of int
        From 0 to n − 1.
    values : (E, …) array
    n : int
        Number of sums.

    Returns
    -------
    (n, …) array

    Examples
    --------
    >>> import numpy as np
    >>> gather(np.array([0, 2, 2]), np.array([1.0, 2.0, 3.0]), 3)
    array([1., 0., 5.])
    """
    flat = values.reshape(len(values), -1)
    chooser = sp.csr_matrix((np.ones(len(index)), (index, np.arange(len(index)))), shape=(n, len(index)))
    return (chooser @ flat).reshape(n, *values.shape[1:])
