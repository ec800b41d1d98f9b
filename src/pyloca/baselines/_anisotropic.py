"""Anisotropic diffusion maps (Singer and Coifman 2008)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.baselines._base import BurstBaseline
from pyloca.baselines._diffusion_maps import DiffusionMaps
from pyloca.baselines._kernels import Metric
from pyloca.geometry import BurstStatistics, JointMahalanobis

__all__ = ["AnisotropicDiffusionMaps"]


class AnisotropicDiffusionMaps(BurstBaseline, DiffusionMaps):
    """Diffusion maps under the joint Mahalanobis distance of the bursts, which approximates the latent distance.

    Parameters
    ----------
    n_components, bandwidth, bandwidth_factor, alpha, t, random_state
        As for `DiffusionMaps`; the bandwidth is in units of σ².
    completed : bool, default=False
        The pseudo-inverse of a burst covariance assigns no length to a step off the manifold. True charges such a step
        what it costs along the shortest tangent, so that sheets that pass near each other stay apart; False is as in
        the paper.

    Attributes
    ----------
    embedding_, eigenvalues_, bandwidth_
        As for `DiffusionMaps`.

    Notes
    -----
    A new point has no burst; `transform` uses the covariance of the training burst whose mean is nearest.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> AnisotropicDiffusionMaps(random_state=0).fit_transform(bursts).shape
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
        completed: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            n_components,
            bandwidth=bandwidth,
            bandwidth_factor=bandwidth_factor,
            alpha=alpha,
            t=t,
            random_state=random_state,
        )
        self.completed = completed

    def _metric(self, points: NDArray[np.float64], statistics: BurstStatistics | None) -> Metric:
        assert statistics is not None
        return JointMahalanobis(statistics, completed=self.completed)
