"""Measurement functions that bend the latent space without tearing it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["smooth_map", "swiss_roll"]

Array = NDArray[np.float64]


def swiss_roll(x: Array) -> Array:
    """Roll the unit square up into R³, through one full turn, stretching it on the way."""
    angle = np.pi * (1.5 + 2 * x[:, 0])
    radius = angle / (3.5 * np.pi)
    return np.stack([radius * np.cos(angle), 2 * x[:, 1], radius * np.sin(angle)], axis=1)


def smooth_map(dim: int, n_out: int, random: np.random.RandomState) -> Callable[[Array], Array]:
    """Draw a random smooth injection: a random linear map plus smooth waves of moderate size."""
    linear = np.linalg.qr(random.standard_normal((n_out, dim)))[0].T  # (dim, n_out), orthonormal
    inner, phase = 1.5 * random.standard_normal((dim, 2 * n_out)), random.uniform(0, 6, 2 * n_out)
    outer = random.standard_normal((2 * n_out, n_out)) / np.sqrt(2 * n_out)
    return lambda x: x @ linear + 0.3 * np.sin(x @ inner + phase) @ outer
