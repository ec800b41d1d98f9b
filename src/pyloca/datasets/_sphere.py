"""Section 6.4: three quarters of a sphere through the stereographic projection. d = 3 although k = D = 2."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.datasets._dataset import Dataset, TestSet

__all__ = ["sphere"]

FIBONACCI_POINTS = 800
UPPER, LOWER = np.pi / 3, 5 * np.pi / 6  # the training strip of polar angles; below it is the unseen cap


def stereographic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Projection from the north pole: (x₀, x₁) / (1 − x₂)."""
    return x[:, :2] / (1 - x[:, 2:])


def sphere(n_points: int = 400, burst_std: float = 0.01, *, random_state: int | None = None) -> Dataset:
    """The strip π/3 < α < 5π/6 of a Fibonacci sphere; `tests` has the unseen "cap" α > 5π/6."""
    random = np.random.RandomState(random_state)
    grid = _fibonacci(FIBONACCI_POINTS)
    polar = np.arccos(grid[:, 2])
    X = grid[(polar > UPPER) & (polar < LOWER)]
    cap = grid[polar >= LOWER]
    # A burst is drawn in polar angles about (π/2, 0), where they are isometric, and rotated to its place.
    alpha = np.pi / 2 + burst_std * random.standard_normal((len(X), n_points))
    beta = burst_std * random.standard_normal((len(X), n_points))
    cloud = np.stack([np.sin(alpha) * np.cos(beta), np.sin(alpha) * np.sin(beta), np.cos(alpha)], axis=2)
    cloud = cloud @ _rotations_to(X)  # (N, M, 3)
    bursts = Bursts(stereographic(cloud.reshape(-1, 3)).reshape(len(X), n_points, 2))
    tests = {"cap": TestSet(cap, stereographic(cap))}
    return Dataset("sphere", X, stereographic(X), bursts, burst_std, 3, 2, stereographic, tests)


def _fibonacci(n: int) -> NDArray[np.float64]:
    """n points of nearly equal area on the unit sphere, on a golden-angle spiral."""
    height = 1 - 2 * (np.arange(n) + 0.5) / n
    turn = np.pi * (1 + np.sqrt(5)) * np.arange(n)
    radius = np.sqrt(1 - height**2)
    return np.stack([radius * np.cos(turn), radius * np.sin(turn), height], axis=1)


def _rotations_to(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Row-acting rotations (N, 3, 3) that take (1, 0, 0) to each x."""
    # x never is a pole here, so east = e₃ × x is a safe second axis.
    east = np.stack([-X[:, 1], X[:, 0], np.zeros(len(X))], axis=1)
    east /= np.linalg.norm(east, axis=1, keepdims=True)
    return np.stack([X, east, np.cross(X, east)], axis=1)
