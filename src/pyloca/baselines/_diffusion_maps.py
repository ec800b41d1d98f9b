"""Diffusion maps (Coifman and Lafon 2006)."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyloca._arguments import brief, check_real
from pyloca.baselines._base import Baseline
from pyloca.baselines._extension import nystrom
from pyloca.baselines._kernels import (
    CUT,
    Euclidean,
    Kernel,
    Metric,
    auto_bandwidth,
    gaussian_kernel,
    is_dense,
    max_min,
    positive_signs,
    scale_rows,
    walk_eigenvectors,
)
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics, refuse_pieces

__all__ = ["DiffusionMaps", "normalise"]

Array = NDArray[np.float64]
MOST_ALPHA = 10.0  # power of the density; 0, 1/2 and 1 have a meaning


class DiffusionMaps(Baseline):
    """Diffusion maps: coordinates λ_lᵗ ψ_l of the random walk P = D⁻¹K, K_ij = exp(−‖y_i − y_j‖²/2ε).

    Parameters
    ----------
    n_components : int, default=2
        d.
    bandwidth : {"max-min", "auto"} or float, default="max-min"
        ε. "max-min" is the paper's choice, the largest squared distance from a point to its nearest neighbour; "auto"
        is where the sum of the kernel grows fastest with ε.
    bandwidth_factor : float, default=1
        Multiplies ε.
    alpha : float, default=0
        The kernel is divided by density^α at both ends: 0 is the graph Laplacian, 1 removes the effect of density.
    t : float, default=1
        Time of the walk.
    random_state : int, RandomState or None, default=None
        Draws the sample from which "auto" is chosen and the start of the eigensolver.

    Attributes
    ----------
    embedding_ : (N, d) array
        Of the training points or burst means.
    eigenvalues_ : (d,) array
        λ_1 ≥ … ≥ λ_d, without λ_0 = 1.
    bandwidth_ : float
        ε, factor included.

    Notes
    -----
    The kernel is dense up to 1000 points, or 4000 if it is well filled; otherwise values below 1e-4 are dropped. With π
    the stationary density of the walk, the eigenvectors satisfy Σ_i π_i ψ_l(i)² = 1.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> DiffusionMaps(random_state=0).fit_transform(bursts).shape
    (100, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        bandwidth: str | float = "max-min",
        bandwidth_factor: float = 1.0,
        alpha: float = 0.0,
        t: float = 1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.bandwidth = bandwidth
        self.bandwidth_factor = bandwidth_factor
        self.alpha = alpha
        self.t = t
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.bandwidth, str) or self.bandwidth not in ("max-min", "auto"):
            if isinstance(self.bandwidth, str):
                raise ValueError(f'bandwidth must be "max-min", "auto" or a number > 0; got {brief(self.bandwidth)}.')
            check_real("bandwidth", self.bandwidth)
        check_real("bandwidth_factor", self.bandwidth_factor)
        check_real("alpha", self.alpha, positive=False)
        if self.alpha > MOST_ALPHA:
            raise ValueError(f"alpha must be from 0 to {MOST_ALPHA:g}; got {brief(self.alpha)}.")
        check_real("t", self.t, positive=False)

    def _metric(self, points: Array, statistics: BurstStatistics | None) -> Metric:
        return Euclidean(points)

    def _fit(self, points: Array, statistics: BurstStatistics | None) -> Array:
        if self.n_components > len(points) - 2:
            raise BurstError(
                f"n_components = {self.n_components} is too large for {len(points)} points; "
                f"use at most {len(points) - 2}, or more points."
            )
        random = check_random_state(self.random_state)
        self._distance = self._metric(points, statistics)
        self._spacing = max_min(self._distance)
        if self.bandwidth == "max-min":
            epsilon = self._spacing
        else:
            epsilon = auto_bandwidth(self._distance, random) if self.bandwidth == "auto" else float(self.bandwidth)
        self.bandwidth_ = epsilon * self.bandwidth_factor
        self._dense = is_dense(self._distance, self.bandwidth_)
        kernel = gaussian_kernel(self._distance, self.bandwidth_, self._dense)
        if not self._dense or not _touch(kernel):
            refuse_pieces(sp.csr_matrix(kernel > CUT), what="points" if statistics is None else "bursts")
        self._density = normalise(kernel, self.alpha)
        self.eigenvalues_, psi = walk_eigenvectors(kernel, self.n_components, int(random.randint(2**31 - 1)))
        psi *= positive_signs(psi)
        self._extended = psi * self.eigenvalues_ ** (self.t - 1)
        return psi * self.eigenvalues_**self.t

    def _extend(self, points: Array) -> Array:
        return nystrom(
            points,
            self._distance,
            self.bandwidth_,
            self._density**-self.alpha,
            self._extended,
            dense=self._dense,
            spacing=self._spacing,
        )


def _touch(kernel: Array) -> bool:
    """Whether every point is reached from the first over values above 1e-4; reads each row of a dense kernel once."""
    reached = np.zeros(len(kernel), dtype=bool)
    frontier = reached.copy()
    reached[0] = frontier[0] = True
    while frontier.any():
        frontier = (kernel[frontier] > CUT).any(axis=0) & ~reached
        reached |= frontier
    return bool(reached.all())


def normalise(kernel: Kernel, alpha: float) -> Array:
    """Divide `kernel` in place by (q_i q_j)^α, and return the density q = Σ_j K_ij."""
    density = np.asarray(kernel.sum(axis=1)).ravel()
    if alpha:
        scale_rows(kernel, density**-alpha)
    return density
