"""Neighbours of bursts under the joint Mahalanobis distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from pyloca.errors import BurstError
from pyloca.geometry._sheets import SheetDistance, nearest
from pyloca.geometry._statistics import BurstStatistics
from pyloca.thresholds import (
    BRIDGE,
    CURVE_NEIGHBORS,
    EXPLAINED_EDGE,
    GAP_EDGES,
    JOINTS,
    OFF_SHEET,
    REACH,
    SHORT_EDGE,
)

__all__ = [
    "BurstGraph",
    "JointMahalanobis",
    "connected_graph",
    "mahalanobis_graph",
    "refuse_pieces",
    "relative_lengths",
    "usual_neighbors",
]


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
    costs : (E,) array, optional
        The same with steps off the tangents that no bend explains charged more; None: the lengths.

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
    costs: NDArray[np.float64] = None  # type: ignore[assignment]  # filled in below

    def __post_init__(self) -> None:
        """Take the lengths for costs if none were given."""
        if self.costs is None:
            object.__setattr__(self, "costs", self.lengths)

    def parts(self) -> tuple[NDArray[Any], ...]:
        """Return heads, tails, lengths and costs.

        Returns
        -------
        tuple of four (E,) arrays
        """
        return self.heads, self.tails, self.lengths, self.costs

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


def mahalanobis_graph(statistics: BurstStatistics, n_neighbors: int, *, off: float = OFF_SHEET) -> BurstGraph:
    """Join each burst to its nearest neighbours on its own sheet.

    Nearest is meant by `SheetDistance`: as by `JointMahalanobis`, but a step off the tangents that no bend explains
    costs more. Up to 2000 bursts are all compared with all; more are looked up in a tree.

    Parameters
    ----------
    statistics : BurstStatistics
    n_neighbors : int
        Neighbours per burst, at most N − 1.
    off : float, default=16
        What a step off the tangents costs that no bend explains. With 1, neighbours are those under `JointMahalanobis`,
        also from one sheet to another.

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
    metric = SheetDistance(statistics, off=off)
    near, squared = nearest(metric, n_neighbors)
    i = np.repeat(np.arange(n), n_neighbors)
    heads, tails = np.minimum(i, near.ravel()), np.maximum(i, near.ravel())
    _, first = np.unique(heads * n + tails, return_index=True)
    heads, tails = heads[first], tails[first]
    lengths = SheetDistance(statistics, off=1.0).between(heads, tails)
    return BurstGraph(n, heads, tails, np.sqrt(lengths), np.sqrt(squared.ravel()[first]))


def usual_neighbors(k: int) -> int:
    """Tell how many neighbours a burst has by default: 4 k + 2, and 10 on a curve.

    Parameters
    ----------
    k : int
        Intrinsic dimension.

    Returns
    -------
    int

    Examples
    --------
    >>> usual_neighbors(2)
    10
    """
    return CURVE_NEIGHBORS if k == 1 else 4 * k + 2


def connected_graph(
    statistics: BurstStatistics,
    n_neighbors: int | None = None,
    *,
    denser: float = 1,
) -> BurstGraph:
    """Build a neighbour graph in one piece, with more neighbours where the default leaves gaps.

    A few neighbours per burst may not cross every gap that random sampling leaves, so pieces are joined by edges to
    farther neighbours, up to four times as many. An edge may be at most 10 times as long as the distance from either
    of its ends to its tenth neighbour (3 times where it joins no pieces); bursts that only longer edges would join
    count as separate pieces.

    Parameters
    ----------
    statistics : BurstStatistics
    n_neighbors : int, optional
        Neighbours per burst, used as given. None: 4 k + 2 (10 on a curve) times `denser`, and more if needed.
    denser : float, default=1
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
    start = n_neighbors or max(3, round(denser * usual_neighbors(statistics.intrinsic_dim)))
    dense = mahalanobis_graph(statistics, start)
    graph = _without_bridges(dense, SHORT_EDGE)
    if k == 1 and n_neighbors is None:
        graph = _closed(graph, statistics)
    for n in (start,) if n_neighbors is not None else (start, 2 * start, 4 * start):
        n_pieces, piece = connected_components(graph.adjacency(), directed=False)
        if n_pieces == 1:
            return graph
        dense = dense if n == start else mahalanobis_graph(statistics, n)
        graph = _joined(graph, _without_bridges(dense, BRIDGE), piece)
    refuse_pieces(graph.adjacency(), statistics.ids)
    return graph


def _joined(graph: BurstGraph, denser: BurstGraph, piece: NDArray[np.int64]) -> BurstGraph:
    """Add the cheapest edges of a denser graph between each two pieces of a graph.

    Only these: elsewhere more neighbours would only be farther ones, on another turn of a coil before long.
    """
    ends = np.sort(piece[np.stack([denser.heads, denser.tails])], axis=0)
    pair = ends[0] * (piece.max() + 1) + ends[1]
    cheapest = np.full((piece.max() + 1) ** 2, np.inf)
    np.minimum.at(cheapest, pair, denser.costs)
    add = (ends[0] != ends[1]) & (denser.costs <= JOINTS * cheapest[pair])
    parts = zip(graph.parts(), denser.parts(), strict=True)
    return BurstGraph(graph.n_nodes, *(np.concatenate([one, other[add]]) for one, other in parts))


def _closed(graph: BurstGraph, statistics: BurstStatistics) -> BurstGraph:
    """Add edges over gaps of a curve, from bursts that have neighbours on one side only to the nearest on the other.

    The end of a curve has none near enough. But where random sampling has left a gap in a ring, all neighbours may lie
    on this side of it, and without its edges the ring would be open.
    """
    step = statistics.means[graph.tails] - statistics.means[graph.heads]
    basis = statistics.frames()[0][:, 0]
    ends, signs = np.r_[graph.heads, graph.tails], np.ones(2 * len(step))
    for half, end in ((slice(None, len(step)), graph.heads), (slice(len(step), None), graph.tails)):
        signs[half] = np.sign(np.einsum("ed,ed->e", basis[end], step))
    signs[len(step) :] *= -1
    ahead, behind = (np.bincount(ends[signs * side > 0], minlength=graph.n_nodes) for side in (1, -1))
    lonely = np.flatnonzero((ahead == 0) | (behind == 0))
    if not len(lonely):
        return graph
    reach = relative_lengths(BurstGraph(graph.n_nodes, graph.heads, graph.tails, graph.costs))[1]
    costs, lengths = (np.sqrt(SheetDistance(statistics, off=off).squared(lonely)) for off in (OFF_SHEET, 1.0))  # (b, N)
    here = np.einsum("bd,bd->b", basis[lonely], statistics.means[lonely])
    along = basis[lonely] @ statistics.means.T - here[:, None]
    missing = np.where(ahead[lonely] == 0, 1, -1)
    far = (along * missing[:, None] <= 0) | (costs > SHORT_EDGE * np.minimum(reach[lonely][:, None], reach))
    far |= costs > EXPLAINED_EDGE * lengths
    row, tails = np.nonzero(~far)
    order = np.lexsort((costs[row, tails], row))
    row, tails = row[order], tails[order]
    first = np.arange(len(row)) - np.searchsorted(row, row) < GAP_EDGES
    row, tails = row[first], tails[first]
    heads = lonely[row]
    low, high = np.minimum(heads, tails), np.maximum(heads, tails)
    _, once = np.unique(low * graph.n_nodes + high, return_index=True)
    added = low[once], high[once], lengths[row, tails][once], costs[row, tails][once]
    parts = zip(graph.parts(), added, strict=True)
    return BurstGraph(graph.n_nodes, *(np.concatenate(pair) for pair in parts))


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


def _without_bridges(graph: BurstGraph, longest: float) -> BurstGraph:
    # by costs, so that a step to another sheet is a bridge sooner
    keep = relative_lengths(BurstGraph(graph.n_nodes, graph.heads, graph.tails, graph.costs))[0] <= longest
    return BurstGraph(graph.n_nodes, *(part[keep] for part in graph.parts()))
