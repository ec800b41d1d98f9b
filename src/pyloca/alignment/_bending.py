"""Surfaces that can bend (d > k): keep lengths, and spread what is left, the bends, evenly over the surface.

With an edge's step u in the frame of one end and v in that of the other, the energy is

    Σ w ‖x_j − x_i − ½ (u F_i + v F_j)‖² + b ‖u F_i − v F_j‖².

The first term sees lengths only: the mean of both ends is the chord, to third order in the length ℓ. The second sees
bends only: ‖u F_i − v F_j‖ = κℓ². With b ~ area / ℓ⁴ it is ∫ κ², the same wherever bursts are dense or sparse. Equal
weights b = w/4 give the usual as-rigid-as-possible energy, in which sparse regions are stiff: the cross-section of a
tube then follows the density of the bursts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pyloca.alignment._edges import Edges, gather
from pyloca.alignment._rigid import Solver, integrate, poisson_solver
from pyloca.alignment._synchronization import polar

__all__ = ["embedded_edges", "relax_bends"]

STIFFNESS = 0.25  # of bends, on average over the edges: as in the as-rigid-as-possible energy
SHORT = 0.1  # of the median ℓ⁴: shorter edges than that tell no bends
MOST_BENT = 4.0  # times as long as its projection is the longest step that counts as one along the surface


def relax_bends(
    edges: Edges,
    positions: NDArray[np.float64],
    frames: NDArray[np.float64],
    max_iter: int,
    tol: float,
    solve: Solver | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Minimise the energy above from a start; return positions, frames, and the number of steps.

    Frames and positions take turns, with Nesterov's momentum, from rest whenever it leads astray. Bends hardly change
    the energy, so the positions tell when they are done: when they move by less than a fraction `tol`.
    """
    solve = poisson_solver(edges) if solve is None else solve
    ahead, inertia = frames, 1.0
    stiffness = _stiffness(edges)
    # Neighbours move at the same time: as much of the frame before is kept as makes the energy fall all the same.
    coupling = np.abs(stiffness - edges.weights / 4)
    coupling *= np.linalg.norm(edges.from_head, axis=1) * np.linalg.norm(edges.from_tail, axis=1)
    kept = np.bincount(edges.heads, coupling, edges.n_nodes) + np.bincount(edges.tails, coupling, edges.n_nodes)
    steps, moves = 0, True
    while moves and steps < max_iter:
        moved = integrate(edges, ahead, solve)
        turned = polar(_pull(edges, stiffness, moved, ahead) + kept[:, None, None] * ahead)
        step, shift = turned - frames, moved - positions
        if np.sum(step * (ahead - turned)) > 0:
            inertia = 1.0
        grown = (1 + np.sqrt(1 + 4 * inertia**2)) / 2
        ahead, inertia = polar(turned + (inertia - 1) / grown * step), grown
        positions, frames = moved, turned
        moves, steps = bool(np.square(shift).sum() >= tol**2 * np.square(moved).sum()), steps + 1
    return positions, frames, steps


def embedded_edges(edges: Edges, positions: NDArray[np.float64], frames: NDArray[np.float64]) -> Edges:
    """Return the same edges with the steps that they make on a surface with these positions and frames (N, k, d).

    A step is the chord, projected onto the tangents at an end, and lengthened so that the mean of both ends is the
    chord again on a surface that bends evenly.
    """
    chord = positions[edges.tails] - positions[edges.heads]  # (E, d)
    squared = np.square(chord).sum(axis=1)
    steps = []
    for ends in (edges.heads, edges.tails):
        step = np.einsum("ekd,ed->ek", frames[ends], chord)
        along = np.maximum(np.square(step).sum(axis=1), np.finfo(float).tiny)
        steps.append(step * np.minimum(squared / along, MOST_BENT)[:, None])
    return replace(edges, from_head=steps[0], from_tail=steps[1])


def _pull(
    edges: Edges, stiffness: NDArray[np.float64], positions: NDArray[np.float64], frames: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sum what the edges at each node ask of its frame, (N, k, d): the frame nearest to it minimises the energy."""
    difference = positions[edges.tails] - positions[edges.heads]
    ends = ((edges.heads, edges.from_head), (edges.tails, edges.from_tail))
    steps = [np.einsum("ek,ekd->ed", step, frames[end]) for end, step in ends]
    pull = np.zeros_like(frames)
    for (end, step), other in zip(ends, reversed(steps), strict=True):
        wanted = 0.5 * edges.weights[:, None] * (difference - 0.5 * other) + stiffness[:, None] * other  # (E, d)
        pull += gather(end, step[:, :, None] * wanted[:, None, :], edges.n_nodes)
    return pull


def _stiffness(edges: Edges) -> NDArray[np.float64]:
    """Compute b for each edge: its share of the area around both ends, over ℓ⁴."""
    squared = 0.5 * (np.square(edges.from_head).sum(axis=1) + np.square(edges.from_tail).sum(axis=1))
    ends = np.concatenate([edges.heads, edges.tails])
    degree = np.bincount(ends, minlength=edges.n_nodes)
    area = np.bincount(ends, np.tile(squared, 2), edges.n_nodes) / np.square(degree)  # up to a factor
    share = area / degree
    b = (share[edges.heads] + share[edges.tails]) / (np.square(squared) + SHORT * np.square(np.median(squared)))
    return STIFFNESS * edges.weights.mean() * b / b.mean()
