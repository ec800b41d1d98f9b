"""`pyloca.alignment` as a method of its own: what the closed form gives before any network."""

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
    """Rotate the local pictures of the bursts into one, and put them together (`pyloca.alignment.align`).

    Parameters
    ----------
    n_components : int, default=2
    n_neighbors : int, optional
        None: 4 k + 2 (20 for curves), more where the sampling leaves gaps.
    burst_std : float, optional
        σ, which sets the scale; None estimates it as `pyloca.LOCA` does.
    random_state : int, RandomState or None, default=0

    Attributes
    ----------
    embedding_ : (N, d)
    strain_ : float
        Relative mismatch of the edges: near 0 when d dimensions hold the surface.
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int | None = None,
        burst_std: float | None = None,
        random_state: int | np.random.RandomState | None = 0,
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
