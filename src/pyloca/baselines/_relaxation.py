"""Nearly isometric embedding by Riemannian relaxation (McQueen, Meilă and Perrault-Joncas 2016)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from pyloca._arguments import as_numbers, brief, check_count, check_real
from pyloca.baselines._anisotropic import AnisotropicDiffusionMaps
from pyloca.baselines._base import Baseline
from pyloca.baselines._diffusion_maps import DiffusionMaps, normalise
from pyloca.baselines._extension import HarmonicExtension
from pyloca.baselines._kernels import EDGES, Euclidean, Metric, gaussian_kernel, laplacian_solver, max_min, strongest
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics, JointMahalanobis, refuse_pieces
from pyloca.solvers import minimize

__all__ = ["RiemannianRelaxation", "dual_metric", "laplacian", "relaxation_loss"]

Array = NDArray[np.float64]

TOL = 1e-6  # the relaxation ends when ten steps lower the loss by no more than this part of it


class RiemannianRelaxation(HarmonicExtension, Baseline):
    """Riemannian relaxation: deform an embedding until it induces the metric of the data.

    The Laplacian Δ of the data gives the metric of any embedding z at point i: H_i = ½ Σ_j Δ_ij (z_j − z_i)(z_j − z_i)ᵀ
    is the identity on a k-dimensional subspace where z is an isometry. The loss is the squared deviation from that,
    Σ_i Σ_{l ≤ k} (λ_l(H_i) − 1)² + Σ_{l > k} λ_l(H_i)², averaged over the points.

    Parameters
    ----------
    n_components : int, default=2
        d.
    intrinsic_dim : int, optional
        k; None: that of the bursts, or n_components for points without bursts.
    bandwidth_factor : float, default=2
        Factor on the max–min bandwidth of the kernel that estimates the Laplacian.
    burst_std : float, optional
        σ, for bursts; None: estimated as by `pyloca.LOCA`.
    init : {"spectral"} or array (N, d), default="spectral"
        The embedding to start from; "spectral" is (anisotropic) diffusion maps with α = 1, scaled to the right size.
    max_iter : int, default=500
        Largest number of L-BFGS steps.
    random_state : int, RandomState or None, default=None
        Draws the start of the eigensolver, and the sample from which `transform` is built.

    Attributes
    ----------
    embedding_ : (N, d) array
        Of the training points or burst means.
    n_iter_ : int
        Steps taken.
    loss_history_ : list of float
        The loss at the start and after every ten steps.

    Notes
    -----
    With bursts, distances are joint Mahalanobis distances, so the metric is that of the latent space. Without, they are
    Euclidean distances of the measurements, and the result is isometric to the measurements.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> RiemannianRelaxation(burst_std=0.01, max_iter=50, random_state=0).fit_transform(bursts).shape
    (100, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        intrinsic_dim: int | None = None,
        bandwidth_factor: float = 2.0,
        burst_std: float | None = None,
        init: str | ArrayLike = "spectral",
        max_iter: int = 500,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.intrinsic_dim = intrinsic_dim
        self.bandwidth_factor = bandwidth_factor
        self.burst_std = burst_std
        self.init = init
        self.max_iter = max_iter
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("bandwidth_factor", self.bandwidth_factor)
        if self.burst_std is not None:
            check_real("burst_std", self.burst_std)
        if self.intrinsic_dim is not None:
            check_count("intrinsic_dim", self.intrinsic_dim)
        check_count("max_iter", self.max_iter, 0)
        if isinstance(self.init, str) and self.init != "spectral":
            raise ValueError(f'init must be "spectral" or an array of shape (N, d); got {brief(self.init)}.')

    def _fit(self, points: Array, statistics: BurstStatistics | None) -> Array:
        random = check_random_state(self.random_state)
        k = self.intrinsic_dim or (self.n_components if statistics is None else statistics.intrinsic_dim)
        if k > self.n_components:
            raise BurstError(f"n_components = {self.n_components} cannot hold k = {k} directions; use at least {k}.")
        metric: Metric
        if statistics is None:
            metric, unit = Euclidean(points), 1.0
        else:
            metric = JointMahalanobis(statistics)
            unit = statistics.burst_std(self.burst_std)
        generator = laplacian(metric, max_min(metric) * self.bandwidth_factor)
        refuse_pieces(generator, what="points" if statistics is None else "bursts")
        start = self._start(points, statistics, generator, k)
        embedding, self.loss_history_, self.n_iter_ = relax(generator, start, k, self.max_iter)
        embedding *= unit
        self._remember(points, embedding, random)
        return embedding

    def _start(self, points: Array, statistics: BurstStatistics | None, generator: sp.csr_matrix, k: int) -> Array:
        shape = (len(points), self.n_components)
        if isinstance(self.init, str):
            options: dict[str, Any] = {
                "alpha": 1,
                "bandwidth_factor": self.bandwidth_factor,
                "random_state": self.random_state,
            }
            if statistics is None:
                start = DiffusionMaps(self.n_components, **options).fit_transform(points)
            else:
                start = AnisotropicDiffusionMaps(self.n_components, completed=True, **options).fit_transform(statistics)
        else:
            start = as_numbers("init", self.init)
            if start.shape != shape or not np.isfinite(start).all():
                raise ValueError(f"init has shape {start.shape}; expected finite numbers of shape {shape}.")
        start = start - start.mean(axis=0)
        # In the size at which the induced metric is right on average, along every axis.
        size = np.einsum("naa->na", dual_metric(generator, start)).mean(axis=0)
        return start / np.sqrt(np.maximum(size, 1e-12 * size.max()))


def laplacian(metric: Metric, epsilon: float) -> sp.csr_matrix:
    """Estimate Δ by (2/ε)(P − I), without its diagonal; P is a walk on a density-normalised Gaussian kernel."""
    kernel = gaussian_kernel(metric, epsilon, dense=False)
    normalise(kernel, 1.0)
    degree = np.asarray(kernel.sum(axis=1)).ravel()
    kernel.data *= np.repeat(2 / (epsilon * degree), np.diff(kernel.indptr))
    kernel.setdiag(0)
    kernel.eliminate_zeros()
    return kernel


def dual_metric(generator: sp.csr_matrix, z: Array) -> Array:
    """Compute H_i = ½ Σ_j Δ_ij (z_j − z_i)(z_j − z_i)ᵀ, (N, d, d)."""
    n, d = z.shape
    total = np.asarray(generator.sum(axis=1)).ravel()
    mean = generator @ z
    products = (generator @ (z[:, :, None] * z[:, None]).reshape(n, d * d)).reshape(n, d, d)
    cross = z[:, :, None] * mean[:, None]
    return 0.5 * (products - cross - cross.transpose(0, 2, 1) + total[:, None, None] * z[:, :, None] * z[:, None])


def relaxation_loss(generator: sp.csr_matrix, z: Array, k: int) -> tuple[float, Array]:
    """Mean over i of min ‖H_i − Π‖² over the projections Π of rank k, and its gradient (N, d).

    The minimum is at the projection onto the k leading eigenvectors, which may be held fixed in the gradient.
    """
    n, d = z.shape
    h = dual_metric(generator, z)
    if k < d:
        _, vectors = np.linalg.eigh(h)
        top = vectors[:, :, d - k :]
        deviation = h - top @ top.transpose(0, 2, 1)
    else:
        deviation = h - np.eye(d)
    value = float(np.square(deviation).sum()) / n
    # dH_i = Δ_ij (z_j − z_i) dz_jᵀ and the like, symmetrised; both ends of (i, j) move.
    weighted = (2 / n) * deviation
    forward = np.einsum("nab,nb->na", weighted, generator @ z)  # Σ_j Δ_ij G_i z_j
    total = np.asarray(generator.sum(axis=1)).ravel()
    own = np.einsum("nab,nb->na", weighted, z)
    flat = weighted.reshape(n, d * d)
    incoming = (generator.T @ flat).reshape(n, d, d)  # Σ_i Δ_ij G_i
    gradient = np.einsum("nab,nb->na", incoming, z) - generator.T @ own - forward + total[:, None] * own
    return value, gradient


def relax(generator: sp.csr_matrix, start: Array, k: int, max_iter: int) -> tuple[Array, list[float], int]:
    """Minimise the loss from `start`: L-BFGS in the metric of the Laplacian, where long waves move as fast as short."""
    shape = start.shape
    solve = laplacian_solver(strongest(generator + generator.T, EDGES))

    def loss(theta: torch.Tensor) -> tuple[float, torch.Tensor]:
        value, gradient = relaxation_loss(generator, theta.numpy().reshape(shape), k)
        return value, torch.from_numpy(gradient.ravel())

    def precondition(q: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(solve(q.numpy().reshape(shape)).ravel())

    found = minimize(loss, torch.from_numpy(start.ravel()), max_iter=max_iter, tol=TOL, preconditioner=precondition)
    z = found.theta.numpy().reshape(shape)
    return z - z.mean(axis=0), found.history, found.n_iter
