"""`align`: from statistics to positions and frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import check_count, check_real
from pyloca.alignment._edges import see_edges
from pyloca.alignment._geodesic import landmark_mds
from pyloca.alignment._rigid import integrate, poisson_solver, refine
from pyloca.alignment._synchronization import synchronize
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics, connected_graph

__all__ = ["Alignment", "align"]

MAX_BURSTS = 4000
MIN_BURSTS = 8  # fewer have no shape
REFINEMENTS = 30


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
    strains : (n,)
        The same of the edges at each burst.
    """

    rows: NDArray[np.int64]
    positions: NDArray[np.float64]
    frames: NDArray[np.float64]
    strain: float
    strains: NDArray[np.float64]


def align(
    statistics: BurstStatistics,
    n_components: int | None = None,
    *,
    burst_std: float | None = None,
    n_neighbors: int | None = None,
    max_bursts: int = MAX_BURSTS,
    random_state: int | np.random.RandomState | None = 0,
    method: str | None = None,
    denser: int = 1,
) -> Alignment:
    """Positions and frames of the bursts, isometric to the latent space up to curvature and noise of the bursts.

    method "synchronize" (only for d = k, and then the default): rotations by the connection Laplacian, positions by a
    Poisson equation. "geodesic" (default for d > k): landmark geodesic MDS. Both are refined by local/global steps.
    `n_neighbors` is chosen as in `pyloca.geometry.connected_graph`, times `denser`.
    """
    if not isinstance(statistics, BurstStatistics):
        raise TypeError(f"align takes BurstStatistics; make them of your {type(statistics).__name__} by from_bursts.")
    k = statistics.intrinsic_dim
    d = k if n_components is None else n_components
    for name, value in (("n_components", d), ("n_neighbors", n_neighbors or 1), ("max_bursts", max_bursts)):
        check_count(name, value, 1)
    if n_neighbors == 0 or max_bursts < MIN_BURSTS or d > len(statistics) - 2:
        raise ValueError(
            f"n_neighbors = {n_neighbors}, max_bursts = {max_bursts} and n_components = {d} do not fit "
            f"{len(statistics)} bursts: n_neighbors ≥ 1, max_bursts ≥ {MIN_BURSTS} and n_components ≤ N − 2 are needed."
        )
    if burst_std is not None:
        check_real("burst_std", burst_std)
    if method not in (None, "geodesic") and not (method == "synchronize" and d == k):
        raise ValueError(f'method must be "geodesic" or, for n_components = k, "synchronize"; got {method!r}.')
    if d < k:
        raise BurstError(f"n_components = {d} cannot hold bursts of intrinsic dimension k = {k}; use at least {k}.")
    sigma = statistics.burst_std(burst_std)
    random = random_state if isinstance(random_state, np.random.RandomState) else np.random.RandomState(random_state)
    rows = np.arange(len(statistics))
    if len(rows) > max_bursts:
        rows = np.sort(random.permutation(len(rows))[:max_bursts])
        statistics = statistics[rows]
    graph = connected_graph(statistics, n_neighbors, denser=denser)
    edges = see_edges(statistics, graph, sigma)
    solve = poisson_solver(edges)
    if d == k and method != "geodesic":
        start = integrate(edges, synchronize(statistics, edges, random), solve)
    else:
        start = landmark_mds(graph, d, sigma, random)
    positions, frames, strain, strains = refine(edges, start, solve, REFINEMENTS)
    axes = _principal_axes(positions)
    return Alignment(rows, positions @ axes, frames @ axes, strain, strains)


def _principal_axes(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rotation to the principal axes, longest first and skewed to the positive side: two fits of one set agree."""
    _, _, rows = np.linalg.svd(positions - positions.mean(axis=0), full_matrices=False)
    skew = (np.power(positions @ rows.T, 3)).sum(axis=0)
    return rows.T * np.where(skew < 0, -1.0, 1.0)
