"""`align`: from statistics to positions and frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from pyloca.alignment._edges import see_edges
from pyloca.alignment._geodesic import landmark_mds
from pyloca.alignment._rigid import integrate, poisson_solver, refine
from pyloca.alignment._synchronization import synchronize
from pyloca.errors import BurstError
from pyloca.geometry import BurstGraph, BurstStatistics, burst_std_from_spectra, mahalanobis_graph

__all__ = ["Alignment", "align"]

MAX_BURSTS = 4000
REFINEMENTS = 30
BRIDGE = 10.0
# Random points on a curve leave gaps of ten spacings and more; a closed curve would be torn open at one.
CURVE_NEIGHBORS = 20


@dataclass(frozen=True)
class Alignment:
    """One global picture of (a subset of) the bursts.

    Attributes
    ----------
    rows : (n,)
        Which bursts were aligned: all, or a random subset of a large set.
    positions : (n, d)
    frames : (n, k, d)
        F_i, orthonormal rows: where the tangents of burst i, divided by σ, point in the embedding.
    strain : float
        Relative root mean square mismatch of the edges: near 0 when d dimensions hold the surface.
    """

    rows: NDArray[np.int64]
    positions: NDArray[np.float64]
    frames: NDArray[np.float64]
    strain: float


def align(
    statistics: BurstStatistics,
    n_components: int | None = None,
    *,
    burst_std: float | None = None,
    n_neighbors: int | None = None,
    max_bursts: int = MAX_BURSTS,
    random_state: int | np.random.RandomState | None = 0,
) -> Alignment:
    """Positions and frames of the bursts, isometric to the latent space up to curvature and noise of the bursts.

    d = k: rotations by the connection Laplacian, positions by a Poisson equation. d > k: landmark geodesic MDS. Both
    are refined by local/global steps. The default graph has 4 k + 2 neighbours (20 on a
    curve), more where the sampling leaves gaps.
    """
    k = statistics.intrinsic_dim
    d = k if n_components is None else n_components
    if d < k:
        raise BurstError(f"n_components = {d} cannot hold bursts of intrinsic dimension k = {k}; use at least {k}.")
    sigma = burst_std_from_spectra(statistics.spectra) if burst_std is None else burst_std
    random = random_state if isinstance(random_state, np.random.RandomState) else np.random.RandomState(random_state)
    rows = np.arange(len(statistics))
    if len(rows) > max_bursts:
        rows = np.sort(random.permutation(len(rows))[:max_bursts])
        statistics = statistics[rows]
    graph = _connected_graph(statistics, n_neighbors, rows)
    edges = see_edges(statistics, graph, sigma)
    solve = poisson_solver(edges)
    if d == k:
        start = integrate(edges, synchronize(statistics, edges, random), solve)
    else:
        start = landmark_mds(graph, d, sigma, random)
    positions, frames, strain = refine(edges, start, solve, REFINEMENTS)
    axes = _principal_axes(positions)
    return Alignment(rows, positions @ axes, frames @ axes, strain)


def _principal_axes(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rotation to the principal axes, longest first and skewed to the positive side: two fits of one set agree."""
    _, _, rows = np.linalg.svd(positions - positions.mean(axis=0), full_matrices=False)
    skew = (np.power(positions @ rows.T, 3)).sum(axis=0)
    return rows.T * np.where(skew < 0, -1.0, 1.0)


def _connected_graph(statistics: BurstStatistics, n_neighbors: int | None, rows: NDArray[np.int64]) -> BurstGraph:
    """The neighbour graph, denser where the default leaves a gap that is only a gap in the sampling.

    A few neighbours need not cross every gap that random sampling leaves. An edge may be `BRIDGE` times as long as the
    way from one of its ends to the third neighbour there; what only longer ones would join lies apart.
    """
    k = statistics.intrinsic_dim
    start = n_neighbors or (CURVE_NEIGHBORS if k == 1 else 4 * k + 2)
    for n in (start, 2 * start, 4 * start) if n_neighbors is None else (start,):
        graph = _without_bridges(mahalanobis_graph(statistics, n))
        adjacency = sp.csr_matrix((graph.lengths, (graph.heads, graph.tails)), shape=(graph.n_nodes, graph.n_nodes))
        n_pieces, piece = connected_components(adjacency, directed=False)
        if n_pieces == 1:
            return graph
    sizes = np.bincount(piece)
    order = np.argsort(-sizes)
    listed = "; ".join(f"{sizes[p]} bursts such as {rows[np.argmax(piece == p)]}" for p in order[:4])
    raise BurstError(
        f"the bursts fall into {n_pieces} pieces that do not touch ({listed}{' …' if n_pieces > 4 else ''}). "
        "How far apart separate pieces lie cannot be known: fit each piece alone, or measure bursts between them."
    )


def _without_bridges(graph: BurstGraph) -> BurstGraph:
    ends, lengths = np.r_[graph.heads, graph.tails], np.r_[graph.lengths, graph.lengths]
    order = np.lexsort((lengths, ends))
    first = np.searchsorted(ends[order], np.arange(graph.n_nodes))
    degree = np.bincount(ends, minlength=graph.n_nodes)
    reach = lengths[order][first + np.minimum(2, degree - 1)]  # (N,) distance to the third neighbour
    keep = graph.lengths <= BRIDGE * np.maximum(reach[graph.heads], reach[graph.tails])
    return BurstGraph(graph.n_nodes, graph.heads[keep], graph.tails[keep], graph.lengths[keep])
