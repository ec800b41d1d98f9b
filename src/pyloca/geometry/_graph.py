"""Neighbours of bursts under the joint Mahalanobis distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from pyloca.errors import BurstError
from pyloca.geometry._statistics import BurstStatistics
from pyloca.thresholds import BRIDGE, CURVE_NEIGHBORS, REACH

__all__ = [
    "BurstGraph",
    "JointMahalanobis",
    "connected_graph",
    "mahalanobis_graph",
    "refuse_pieces",
    "relative_lengths",
]

# Entries of one slab of the N × N distance matrix that are held at a time: 2 MB in float64 stay in the cache.
SLAB = 1 << 18


@dataclass(frozen=True)
class BurstGraph:
    """Undirected edges between bursts, each listed once.

    Attributes
    ----------
    n_nodes : int
        N, the number of bursts.
    heads, tails : (E,) array of int
        Edge e joins burst ``heads[e]`` to burst ``tails[e]``.
    lengths : (E,) array
        Joint Mahalanobis distance between the two, in units of σ.

    Examples
    --------
    >>> import numpy as np
    >>> graph = BurstGraph(3, np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.0]))
    >>> graph.adjacency().toarray()
    array([[0., 1., 0.],
           [0., 0., 2.],
           [0., 0., 0.]])
    """

    n_nodes: int
    heads: NDArray[np.int64]
    tails: NDArray[np.int64]
    lengths: NDArray[np.float64]

    def adjacency(self) -> sp.csr_matrix:
        """Return the lengths as a sparse matrix.

        Returns
        -------
        (N, N) csr_matrix
            Upper or lower triangle only: each edge is stored once.
        """
        return sp.csr_matrix((self.lengths, (self.heads, self.tails)), shape=(self.n_nodes, self.n_nodes))


class JointMahalanobis:
    """Squared distance ½ (y_i − y_j)ᵀ [C_i⁺ + C_j⁺] (y_i − y_j), in units of σ².

    The pseudo-inverse of a rank-k covariance assigns no length to a step off the manifold, so sheets that pass near
    each other are short-circuited. With ``completed=True``, C⁺ is completed off the tangents: such a step costs what
    it costs along the shortest tangent.

    Parameters
    ----------
    statistics : BurstStatistics
        The N bursts between which distances are measured.
    completed : bool, default=True
        Whether to charge steps off the tangents.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> metric = JointMahalanobis(BurstStatistics.from_bursts(bursts))
    >>> metric.squared(np.array([0, 1])).shape
    (2, 100)
    """

    def __init__(self, statistics: BurstStatistics, *, completed: bool = True) -> None:
        self.completed = completed
        self.centre = statistics.means.mean(axis=0)
        self._points = statistics.means - self.centre
        self._square = np.square(self._points).sum(axis=1)
        self._basis, scale = statistics.frames()
        self._precision = 1 / np.square(scale)  # (N, k)
        self._offset = np.einsum("nkd,nd->nk", self._basis, self._points)

    def __len__(self) -> int:
        return len(self._points)

    def squared(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return squared distances from some of the bursts to all.

        Parameters
        ----------
        rows : (b,) array of int
            Numbers of the bursts.

        Returns
        -------
        (b, N) array
        """
        return self._between(self._points[rows], self._basis[rows], self._precision[rows])

    def squared_to(self, others: BurstStatistics) -> NDArray[np.float64]:
        """Return squared distances from other bursts to all.

        Parameters
        ----------
        others : BurstStatistics
            Of b bursts.

        Returns
        -------
        (b, N) array
        """
        basis, scale = others.frames()
        return self._between(others.means - self.centre, basis, 1 / np.square(scale))

    def squared_from(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return squared distances from points to all bursts.

        Parameters
        ----------
        points : (b, D) array
            Each takes the covariance of the burst whose mean is nearest to it.

        Returns
        -------
        (b, N) array
        """
        points = points - self.centre
        gap = self._gap(points)
        near = np.argmin(gap, axis=1)
        return self._between(points, self._basis[near], self._precision[near])

    def _gap(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.square(points).sum(axis=1)[:, None] + self._square - 2 * points @ self._points.T  # (b, N)

    def _between(
        self, points: NDArray[np.float64], basis: NDArray[np.float64], precision: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        k = precision.shape[1]
        if self.completed:
            across, across_here = self._precision[:, -1], precision[:, -1]
            out = self._gap(points)
            out *= across_here[:, None] + across
        else:
            across, across_here = np.zeros(len(self)), np.zeros(len(points))
            out = np.zeros((len(points), len(self)))
        # Along tangent l a step costs 1/s_l², not the 1/s_k² (or nothing) that is charged above; the last is right.
        for axis in range(k - 1 if self.completed else k):
            direction = basis[:, axis]
            step = direction @ self._points.T
            step -= np.einsum("bd,bd->b", direction, points)[:, None]
            step *= step
            step *= (precision[:, axis] - across_here)[:, None]
            out += step
            step = points @ self._basis[:, axis].T
            step -= self._offset[:, axis]
            step *= step
            step *= self._precision[:, axis] - across
            out += step
        out *= 0.5
        return np.maximum(out, 0, out=out)


def mahalanobis_graph(statistics: BurstStatistics, n_neighbors: int) -> BurstGraph:
    """Join each burst to its nearest neighbours under `JointMahalanobis`.

    Brute force in slabs: exact for any shape of the bursts, where a Euclidean tree would miss neighbours along a
    direction that the measurement stretches.

    Parameters
    ----------
    statistics : BurstStatistics
    n_neighbors : int
        Neighbours per burst, at most N − 1.

    Returns
    -------
    BurstGraph
        An edge is listed once even if both of its ends chose it.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> graph = mahalanobis_graph(BurstStatistics.from_bursts(bursts), 5)
    >>> 250 <= len(graph.lengths) <= 500
    True
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


def connected_graph(
    statistics: BurstStatistics,
    n_neighbors: int | None = None,
    *,
    denser: int = 1,
) -> BurstGraph:
    """Build a neighbour graph in one piece, with more neighbours where the default leaves gaps.

    A few neighbours per burst may not cross every gap that random sampling leaves, so their number is doubled up to
    twice. An edge may be at most 10 times as long as the distance from either of its ends to its tenth neighbour;
    bursts that only longer edges would join count as separate pieces.

    Parameters
    ----------
    statistics : BurstStatistics
    n_neighbors : int, optional
        Neighbours per burst, used as given. None: 4 k + 2 (20 on a curve) times `denser`, and more if needed.
    denser : int, default=1
        Factor on the default number of neighbours.

    Returns
    -------
    BurstGraph

    Raises
    ------
    BurstError
        If the bursts fall into pieces.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> connected_graph(BurstStatistics.from_bursts(bursts)).n_nodes
    100
    """
    k = statistics.intrinsic_dim
    start = n_neighbors or denser * (CURVE_NEIGHBORS if k == 1 else 4 * k + 2)
    for n in (start, 2 * start, 4 * start) if n_neighbors is None else (start,):
        graph = _without_bridges(mahalanobis_graph(statistics, n))
        adjacency = graph.adjacency()
        if connected_components(adjacency, directed=False, return_labels=False) == 1:
            return graph
    refuse_pieces(adjacency, statistics.ids)
    return graph


def refuse_pieces(adjacency: sp.csr_matrix, ids: NDArray[Any] | None = None, what: str = "bursts") -> None:
    """Raise an error that counts the pieces of a graph, unless it is connected.

    Parameters
    ----------
    adjacency : (N, N) sparse matrix
    ids : (N,) array, optional
        Names of the nodes for the message; None: their numbers.
    what : str, default="bursts"
        What the message calls the nodes.

    Raises
    ------
    BurstError
        If the graph has more than one connected component.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> refuse_pieces(sp.csr_matrix([[0, 1], [0, 0]]))
    >>> refuse_pieces(sp.csr_matrix((2, 2)))
    Traceback (most recent call last):
        ...
    pyloca.errors.BurstError: the bursts fall into 2 pieces that do not touch ...
    """
    n_pieces, piece = connected_components(adjacency, directed=False)
    if n_pieces == 1:
        return
    names = (np.arange(len(piece)) if ids is None else ids).tolist()
    sizes = np.bincount(piece)
    order = np.argsort(-sizes)
    listed = "; ".join(f"{sizes[p]} {what} such as {names[int(np.argmax(piece == p))]!r}" for p in order[:4])
    small = "Remove small pieces, which are outliers, or let LOCA leave them out (max_strays); otherwise fit"
    strays = small if sizes.min() < 10 else "Fit"
    raise BurstError(
        f"the {what} fall into {n_pieces} pieces that do not touch ({listed}{' …' if n_pieces > 4 else ''}). Their "
        f"distance from each other cannot be known. {strays} each piece alone, or measure {what} between them."
    )


def relative_lengths(graph: BurstGraph) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute how long edges are beside those around them.

    Parameters
    ----------
    graph : BurstGraph

    Returns
    -------
    relative : (E,) array
        Length of each edge over the reach of its ends, whichever is less.
    reach : (N,) array
        Distance from each burst to its tenth neighbour in the graph.

    Examples
    --------
    >>> graph = BurstGraph(3, np.array([0, 1]), np.array([1, 2]), np.array([1.0, 5.0]))
    >>> relative_lengths(graph)[0].tolist()
    [1.0, 1.0]
    """
    ends, lengths = np.r_[graph.heads, graph.tails], np.r_[graph.lengths, graph.lengths]
    order = np.lexsort((lengths, ends))
    first = np.searchsorted(ends[order], np.arange(graph.n_nodes))
    degree = np.bincount(ends, minlength=graph.n_nodes)
    reach = lengths[order][first + np.minimum(REACH, degree) - 1]
    # The lesser of both ends: a stray burst has only far neighbours, but they have near ones.
    lesser = np.minimum(reach[graph.heads], reach[graph.tails])
    return graph.lengths / np.maximum(lesser, np.finfo(float).tiny), reach


def _without_bridges(graph: BurstGraph) -> BurstGraph:
    keep = relative_lengths(graph)[0] <= BRIDGE
    return BurstGraph(graph.n_nodes, graph.heads[keep], graph.tails[keep], graph.lengths[keep])
