"""Sections 6.1 to 6.3: the unit square, or its frame, through f₁."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import from_function
from pyloca.datasets._dataset import Dataset, TestSet

__all__ = ["frame", "mushroom"]

INNER = (0.1, 0.9)  # the frame is [0, 1]² without this square
OUTER = (-0.025, 1.025)  # the test points of section 6.2 fill this square


def f1(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """f₁(x) = (x₀ + x₁³, −x₀ + x₁³)."""
    cube = x[:, 1] ** 3
    return np.stack([x[:, 0] + cube, -x[:, 0] + cube], axis=1)


def mushroom(
    n_bursts: int = 2000, n_points: int = 200, burst_std: float = 0.01, *, random_state: int | None = None
) -> Dataset:
    """The unit square through f₁: the mushroom of section 6.1."""
    random = np.random.RandomState(random_state)
    X = random.uniform(size=(n_bursts, 2))
    bursts = from_function(f1, X, burst_std, n_points, random_state=random)
    return Dataset("mushroom", X, f1(X), bursts, burst_std, 2, 2, f1)


def frame(
    n_bursts: int = 2000,
    n_points: int = 200,
    burst_std: float = 0.01,
    n_test: int = 20_000,
    *,
    random_state: int | None = None,
) -> Dataset:
    """[0, 1]² without [0.1, 0.9]², through f₁ (section 6.2).

    `tests` has "frame", "interpolation" (the inner square) and "extrapolation" (around the unit square), parts of
    `n_test` points of [−0.025, 1.025]². `extras` has the 6.3 pairs: "interpolation_starts" and "interpolation_ends",
    latent points that face each other across the inner boundary.
    """
    random = np.random.RandomState(random_state)
    candidates = random.uniform(size=(8 * n_bursts + 100, 2))  # the frame is 36 % of the square: these always do
    X = candidates[~_inside(candidates, *INNER)][:n_bursts]
    bursts = from_function(f1, X, burst_std, n_points, random_state=random)
    test = random.uniform(*OUTER, size=(n_test, 2))
    inner, outer = _inside(test, *INNER), ~_inside(test, 0, 1)
    parts = {"frame": ~inner & ~outer, "interpolation": inner, "extrapolation": outer}
    along = np.linspace(*INNER, 100)  # 4 sides of 100 points: the paper's 400
    low, high = np.full(100, INNER[0]), np.full(100, INNER[1])
    return Dataset(
        "frame",
        X,
        f1(X),
        bursts,
        burst_std,
        2,
        2,
        f1,
        {name: TestSet(test[mask], f1(test[mask])) for name, mask in parts.items()},
        {
            "interpolation_starts": np.r_[np.c_[low, along], np.c_[along, low]],
            "interpolation_ends": np.r_[np.c_[high, along], np.c_[along, high]],
        },
    )


def _inside(x: NDArray[np.float64], low: float, high: float) -> NDArray[np.bool_]:
    return np.all((x > low) & (x < high), axis=1)
