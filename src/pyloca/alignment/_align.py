"""`align`: positions and frames from burst statistics; `unbend`: the same surface, bent no more than it must be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import brief, check_count, check_real
from pyloca.alignment._bending import embedded_edges, relax_bends
from pyloca.alignment._edges import Edges, see_edges
from pyloca.alignment._geodesic import landmark_mds
from pyloca.alignment._rigid import Solver, integrate, local_frames, poisson_solver, refine, strain
from pyloca.alignment._synchronization import polar, synchronize
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics, connected_graph

__all__ = ["MAX_BURSTS", "Alignment", "align", "strain_beyond_sampling", "unbend"]

MAX_BURSTS = 4000
MIN_BURSTS = 8  # fewer have no shape
REFINEMENTS = 30
BENDS, SETTLED = (150, 3e-4), (600, 1e-5)  # at most so many steps, until positions move by a smaller part than that
# Tubes and tori take at most 52 steps, Möbius bands 55 to 150; one start of these in four ended with a crease.
SLOW, STARTS = 60, 4


@dataclass(frozen=True)
class Alignment:
    """Global positions and frames of (a subset of) the bursts.

    Attributes
    ----------
    rows : (n,) array of int
        The bursts that were aligned: all, or a random subset of a large set.
    positions : (n, d) array
        Coordinates of the burst means.
    frames : (n, k, d) array
        F_i, orthonormal rows: the directions in the embedding of the tangents of burst i, divided by σ.
    strain : float
        Relative root mean square mismatch of the edges: near 0 if d dimensions can hold the surface.
    strains : (n,) array
        The same for the edges at each burst.

    Examples
    --------
    See `align`.
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
    random_state: int | np.random.RandomState | None = None,
    method: str | None = None,
    denser: float = 1,
) -> Alignment:
    """Place the bursts so that positions are isometric to the latent space, up to their curvature and noise.

    Parameters
    ----------
    statistics : BurstStatistics
    n_components : int, optional
        d, at least k; None: k.
    burst_std : float, optional
        σ, which sets the scale; None: estimated, and positions are right up to one factor.
    n_neighbors : int, optional
        Neighbours per burst; None: chosen by `pyloca.geometry.connected_graph`.
    max_bursts : int, default=4000
        Align a random subset of this size if there are more bursts.
    random_state : int, RandomState or None, default=None
        Draws the subset, the landmarks and the start of the eigensolver.
    method : {"synchronize", "geodesic"}, optional
        "synchronize" (the default for d = k, and only possible then): rotations from the connection Laplacian,
        positions from a Poisson equation. "geodesic" (the default for d > k): landmark multidimensional scaling of
        geodesic distances. Both are refined by alternating local and global steps.
    denser : float, default=1
        Factor on the default number of neighbours.

    Returns
    -------
    Alignment

    Raises
    ------
    BurstError
        If the bursts fall into pieces or all coincide, or span more than d directions.
    TypeError
        If `statistics` is not a `BurstStatistics`.
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> from pyloca import datasets
    >>> data = datasets.mushroom(n_bursts=100, n_points=10, random_state=0)
    >>> statistics = BurstStatistics.from_bursts(data.bursts)
    >>> align(statistics, burst_std=data.burst_std, random_state=0).positions.shape
    (100, 2)
    """
    if not isinstance(statistics, BurstStatistics):
        raise TypeError(
            f"align expects BurstStatistics; got {type(statistics).__name__}. Use BurstStatistics.from_bursts."
        )
    k = statistics.intrinsic_dim
    d = k if n_components is None else n_components
    for name, value in (("n_components", d), ("n_neighbors", n_neighbors or 1), ("max_bursts", max_bursts)):
        check_count(name, value, 1)
    if n_neighbors == 0 or max_bursts < MIN_BURSTS or d > len(statistics) - 2:
        raise ValueError(
            f"got n_neighbors = {n_neighbors}, max_bursts = {max_bursts} and n_components = {d} for "
            f"{len(statistics)} bursts; expected n_neighbors ≥ 1, max_bursts ≥ {MIN_BURSTS}, n_components ≤ N − 2."
        )
    if burst_std is not None:
        check_real("burst_std", burst_std)
    if method not in (None, "geodesic") and not (method == "synchronize" and d == k):
        raise ValueError(f'method must be "geodesic" or, for n_components = k, "synchronize"; got {brief(method)}.')
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
    if d > k > 1:
        positions, frames = _least_strained(edges, solve, lambda: landmark_mds(graph, d, sigma, random))
    else:  # a curve has no shape of its own: converging would only follow the noise
        if d == k and method != "geodesic":
            start = integrate(edges, synchronize(statistics, edges, random), solve)
        else:
            start = landmark_mds(graph, d, sigma, random)
        positions, frames = refine(edges, start, solve, REFINEMENTS)
    axes = _principal_axes(positions)
    return Alignment(rows, positions @ axes, frames @ axes, *strain(edges, frames, positions))


def _least_strained(
    edges: Edges, solve: Solver, start: Callable[[], NDArray[np.float64]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Relax the bends of a surface; of one that is slow to come to rest, from a few starts.

    Such a surface hardly resists bending, as a twisted band, and a crease may stay in it; but it strains the edges.
    """
    found: list[tuple[float, NDArray[np.float64], NDArray[np.float64]]] = []
    for _ in range(STARTS):
        positions = start()
        positions, frames, steps = relax_bends(edges, positions, local_frames(edges, positions), *BENDS, solve)
        found.append((strain(edges, frames, positions)[0], positions, frames))
        if len(found) == 1 and steps < SLOW:
            break
    return min(found, key=lambda one: one[0])[1:]


def unbend(
    statistics: BurstStatistics, positions: NDArray[np.float64], frames: NDArray[np.float64], part: float = 1.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Take out of an embedded surface the bends that its lengths do not ask for.

    Parameters
    ----------
    statistics : BurstStatistics
        Tells which bursts are neighbours.
    positions : (N, d) array
        A surface with the right lengths, such as an encoder makes, d > k.
    frames : (N, k, d) array
        Its tangents.
    part : float, default=1
        How far to go from the given surface to the most evenly bent one, on straight lines.

    Returns
    -------
    positions, frames : (N, d) array, (N, k, d) array
        A surface with the same lengths (nearly, if 0 < `part` < 1), as evenly bent as they allow, in the same place.

    Examples
    --------
    >>> from pyloca import datasets
    >>> data = datasets.sphere(n_points=20, random_state=0)
    >>> statistics = BurstStatistics.from_bursts(data.bursts)
    >>> start = align(statistics, 3, burst_std=data.burst_std, random_state=0)
    >>> positions, frames = unbend(statistics, start.positions, start.frames)
    >>> bool(np.abs(positions - start.positions).max() < 0.1)
    True
    """
    frames = polar(frames)
    edges = embedded_edges(see_edges(statistics, connected_graph(statistics), 1.0), positions, frames)
    centre = positions.mean(axis=0)
    relaxed, turned, _ = relax_bends(edges, positions - centre, frames, *SETTLED)
    turn = polar(relaxed.T @ (positions - centre))
    relaxed, turned = relaxed @ turn + centre, turned @ turn
    return (1 - part) * positions + part * relaxed, polar((1 - part) * frames + part * turned)


def _principal_axes(positions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rotate to the principal axes, longest first and skewed to the positive side, so that two fits agree."""
    _, _, rows = np.linalg.svd(positions - positions.mean(axis=0), full_matrices=False)
    skew = (np.power(positions @ rows.T, 3)).sum(axis=0)
    return rows.T * np.where(skew < 0, -1.0, 1.0)


def strain_beyond_sampling(alignment: Alignment, statistics: BurstStatistics) -> float:
    """Compute the median relative mismatch of the aligned edges, less what sampling explains.

    Parameters
    ----------
    alignment : Alignment
    statistics : BurstStatistics
        Of the bursts that were aligned.

    Returns
    -------
    float
        √max(strain² − (k + 1) / (4 (M − 1)), 0), with the medians of strain and M.

    Examples
    --------
    >>> from pyloca import datasets
    >>> statistics = BurstStatistics.from_bursts(datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts)
    >>> strain_beyond_sampling(align(statistics, random_state=0), statistics) < 0.3
    True
    """
    sampled = 0.25 * (statistics.intrinsic_dim + 1) / (float(np.median(statistics.sampled_counts)) - 1)
    return float(np.sqrt(max(float(np.median(alignment.strains)) ** 2 - sampled, 0)))
