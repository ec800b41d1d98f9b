"""`pyloca.alignment` as an estimator: the closed form without a network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyloca._arguments import check_count, check_real
from pyloca.alignment import align
from pyloca.baselines._base import BurstBaseline
from pyloca.baselines._extension import HarmonicExtension
from pyloca.geometry import BurstStatistics

__all__ = ["BurstAlignment"]

Array = NDArray[np.float64]


class BurstAlignment(HarmonicExtension, BurstBaseline):
    """Closed-form alignment of the bursts, without a network (`pyloca.alignment.align`).

    Parameters
    ----------
    n_components : int, default=2
        d.
    n_neighbors : int, optional
        Neighbours per burst; None: 4 k + 2 (20 for curves), and more where the sampling leaves gaps.
    burst_std : float, optional
        σ, which sets the scale; None: estimated as by `pyloca.LOCA`.
    random_state : int, RandomState or None, default=None
        Draws the start of the eigensolver or the landmarks, and the sample from which `transform` is built.

    Attributes
    ----------
    embedding_ : (N, d) array
        Of the training points or burst means.
    strain_ : float
        Relative mismatch of the edges: near 0 if d dimensions can hold the surface.
    burst_std_ : float
        σ as used.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> BurstAlignment(burst_std=0.01, random_state=0).fit_transform(bursts).shape
    (100, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int | None = None,
        burst_std: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.burst_std = burst_std
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_neighbors is not None:
            check_count("n_neighbors", self.n_neighbors)
        if self.burst_std is not None:
            check_real("burst_std", self.burst_std)

    def _fit(self, points: Array, statistics: BurstStatistics | None) -> Array:
        assert statistics is not None
        random = check_random_state(self.random_state)
        self.burst_std_ = statistics.burst_std(self.burst_std)
        result = align(
            statistics,
            self.n_components,
            burst_std=self.burst_std_,
            n_neighbors=self.n_neighbors,
            max_bursts=len(statistics),
            random_state=random,
        )
        self.strain_ = result.strain
        self._remember(points, result.positions, random)
        return result.positions
