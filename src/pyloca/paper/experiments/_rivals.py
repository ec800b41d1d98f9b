"""Diffusion maps and anisotropic diffusion maps, with parameters chosen by the truth."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca.baselines import AnisotropicDiffusionMaps, DiffusionMaps
from pyloca.datasets import Dataset
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics
from pyloca.metrics import stress

__all__ = ["FACTORS", "RIVALS", "Best", "best_by_truth", "candidates", "fit_rivals"]

FACTORS = (0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
ALPHAS = (0, 1)
RIVALS = {"A-DM": AnisotropicDiffusionMaps, "DM": DiffusionMaps}


@dataclass(frozen=True)
class Best:
    """The embedding Z (N, d) with the least scaled stress, the label of its candidate and the seconds of its fit."""

    label: str | None
    stress: float
    seconds: float
    Z: NDArray[np.float64] = field(repr=False)


def candidates(method: Any, n_components: int, factors: tuple[float, ...] = FACTORS) -> dict[str | None, Any]:
    """Make diffusion maps of one kind with every bandwidth factor and both normalisations."""
    return {
        f"{factor:g}, α = {alpha}": method(n_components, bandwidth_factor=factor, alpha=alpha, random_state=0)
        for factor in factors
        for alpha in ALPHAS
    }


def best_by_truth(models: Mapping[str | None, Any], statistics: BurstStatistics, X: NDArray[np.float64]) -> Best:
    """Fit all and return the one with the least true stress, which is possible only because the truth is known."""
    found: list[Best] = []
    for label, model in models.items():
        start = time.perf_counter()
        try:
            Z = model.fit_transform(statistics)
        except BurstError:  # a kernel so narrow that it falls into pieces
            continue
        found.append(Best(label, stress(X, Z, scale=True), time.perf_counter() - start, Z))
    return min(found, key=lambda best: best.stress)


def fit_rivals(data: Dataset, factors: tuple[float, ...] = FACTORS) -> dict[str, Best]:
    """Fit A-DM and DM to a data set, with parameters chosen by the truth."""
    statistics = BurstStatistics.from_bursts(data.bursts, data.intrinsic_dim)
    return {
        name: best_by_truth(candidates(method, data.n_components, factors), statistics, data.X)
        for name, method in RIVALS.items()
    }
