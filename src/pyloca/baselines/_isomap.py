"""Intrinsic Isomap (Schwartz and Talmon 2019)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyloca._arguments import check_count, check_real
from pyloca.alignment import landmark_mds, poisson_solver, see_edges
from pyloca.baselines._base import BurstBaseline
from pyloca.baselines._extension import HarmonicExtension
from pyloca.baselines._kernels import positive_signs
from pyloca.geometry import BurstGraph, BurstStatistics, connected_graph
from pyloca.solvers import minimize

__all__ = ["IntrinsicIsomap"]

Array = NDArray[np.float64]

LANDMARKS = 500
TOL = 1e-9  # the refinement ends when ten steps lower the stress by no more than this part of it


class IntrinsicIsomap(HarmonicExtension, BurstBaseline):
    """Isomap on the Mahalanobis distances of the bursts, refined to match the lengths of the edges.

    1. Build a neighbour graph whose edges are as long as the joint Mahalanobis distance times σ.
    2. Find geodesics along the graph and scale them multidimensionally: Isomap.
    3. Minimise Σ w (‖z_i − z_j‖ − length)² over the edges: geodesics bend around corners and holes, edges do not.

    Parameters
    ----------
    n_components : int, default=2
        d.
    n_neighbors : int, optional
        Neighbours per burst; None: 4 k + 2 (20 for curves), and more where the sampling leaves gaps.
    burst_std : float, optional
        σ, which sets the scale; None: estimated as by `pyloca.LOCA`.
    n_landmarks : int, default=500
        Number of bursts to which geodesics are computed.
    max_iter : int, default=500
        Steps of the refinement; 0 skips it.
    random_state : int, RandomState or None, default=None
        Draws the landmarks, and the sample from which `transform` is built.

    Attributes
    ----------
    embedding_ : (N, d) array
        Of the training points or burst means.
    n_iter_ : int
        Steps of the refinement that were taken.
    stress_ : float
        Root mean square of ‖z_i − z_j‖ / length − 1 over the edges.
    burst_std_ : float
        σ as used.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> IntrinsicIsomap(burst_std=0.01, random_state=0).fit_transform(bursts).shape
    (100, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int | None = None,
        burst_std: float | None = None,
        n_landmarks: int = LANDMARKS,
        max_iter: int = 500,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.burst_std = burst_std
        self.n_landmarks = n_landmarks
        self.max_iter = max_iter
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_neighbors is not None:
            check_count("n_neighbors", self.n_neighbors)
        if self.burst_std is not None:
            check_real("burst_std", self.burst_std)
        check_count("n_landmarks", self.n_landmarks, self.n_components + 1)
        check_count("max_iter", self.max_iter, 0)

    def _fit(self, points: Array, statistics: BurstStatistics | None) -> Array:
        assert statistics is not None
        random = check_random_state(self.random_state)
        sigma = statistics.burst_std(self.burst_std)
        graph = connected_graph(statistics, self.n_neighbors)
        embedding = landmark_mds(graph, self.n_components, sigma, random, self.n_landmarks)
        embedding, self.n_iter_ = match_edges(
            statistics, graph, sigma, embedding - embedding.mean(axis=0), self.max_iter
        )
        embedding *= positive_signs(embedding)
        self.burst_std_ = sigma
        apart = graph.lengths > 0
        steps = np.linalg.norm(embedding[graph.tails] - embedding[graph.heads], axis=1)[apart]
        self.stress_ = float(np.sqrt(np.square(steps / (sigma * graph.lengths[apart]) - 1).mean()))
        self._remember(points, embedding, random)
        return embedding


def match_edges(
    statistics: BurstStatistics, graph: BurstGraph, sigma: float, start: Array, max_iter: int
) -> tuple[Array, int]:
    """Minimise ½ Σ_e w_e (‖z_i − z_j‖ − l_e)² from `start`; (z, steps taken).

    L-BFGS in the metric of the weighted graph Laplacian, in which one step of it is one of SMACOF.
    """
    edges = see_edges(statistics, graph, sigma)
    solve = poisson_solver(edges)
    lengths = sigma * graph.lengths
    shape = start.shape

    def loss(theta: torch.Tensor) -> tuple[float, torch.Tensor]:
        z = theta.numpy().reshape(shape)
        difference = z[edges.tails] - z[edges.heads]  # (E, d)
        norm = np.linalg.norm(difference, axis=1)
        residual = norm - lengths
        value = 0.5 * float(edges.weights @ np.square(residual))
        # Two bursts at one place have no direction to part in; the others pull them.
        ratio = np.divide(residual, norm, out=np.zeros_like(norm), where=norm > 0)
        return value, torch.from_numpy(edges.divergence(ratio[:, None] * difference).ravel())

    def precondition(q: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(solve(q.numpy().reshape(shape)).ravel())

    found = minimize(loss, torch.from_numpy(start.ravel()), max_iter=max_iter, tol=TOL, preconditioner=precondition)
    return found.theta.numpy().reshape(shape), found.n_iter
