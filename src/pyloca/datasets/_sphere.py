"""Section 6.4: part of a sphere through the stereographic projection. d = 3 although k = D = 2."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyloca.bursts import Bursts
from pyloca.datasets._dataset import Dataset, TestSet

__all__ = ["sphere"]

FIBONACCI_POINTS = 800
UPPER, LOWER = np.pi / 3, 5 * np.pi / 6  # the training strip of polar angles; below it is the unseen cap


def stereographic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Project from the north pole: (x₀, x₁) / (1 − x₂), (n, 3) → (n, 2)."""
    return x[:, :2] / (1 - x[:, 2:])


def sphere(
    n_points: int = 400, burst_std: float = 0.01, *, random_state: int | np.random.RandomState | None = None
) -> Dataset:
    """Measure a strip of the unit sphere through the stereographic projection (section 6.4).

    Burst centres are the points of a Fibonacci lattice with polar angles π/3 < α < 5π/6.

    Parameters
    ----------
    n_points : int, default=400
        Points per burst.
    burst_std : float, default=0.01
        σ, in polar angles about the burst centre.
    random_state : int, RandomState or None, default=None
        Pass an integer for the same data on every call.

    Returns
    -------
    Dataset
        With n_components = 3. `tests` has the unseen "cap" α ≥ 5π/6.

    Examples
    --------
    >>> data = sphere(n_points=10, random_state=0)
    >>> data.n_components, data.intrinsic_dim, data.bursts.burst_std
    (3, 2, 0.01)
    """
    grid = _fibonacci(FIBONACCI_POINTS)
    polar = np.arccos(grid[:, 2])
    X = grid[(polar > UPPER) & (polar < LOWER)]
    cap = grid[polar >= LOWER]
    # The paper's law, which `on_manifold` has to second order in σ only: a burst is drawn in polar angles about
    # (π/2, 0), where they are isometric, and rotated to its place.
    random = check_random_state(random_state)
    alpha = np.pi / 2 + burst_std * random.standard_normal((len(X), n_points))
    beta = burst_std * random.standard_normal((len(X), n_points))
    cloud = np.stack([np.sin(alpha) * np.cos(beta), np.sin(alpha) * np.sin(beta), np.cos(alpha)], axis=2)
    cloud = cloud @ _rotations_to(X)  # (N, M, 3)
    bursts = Bursts(
        stereographic(cloud.reshape(-1, 3)).reshape(len(X), n_points, 2),
        burst_std=burst_std,
        provenance=f"sphere: {n_points} Gaussian perturbations of σ = {burst_std:g} in polar angles",
    )
    tests = {"cap": TestSet(cap, stereographic(cap))}
    return Dataset("sphere", X, stereographic(X), bursts, burst_std, 3, 2, stereographic, tests)


def _fibonacci(n: int) -> NDArray[np.float64]:
    """Place n points of nearly equal area on the unit sphere, on a golden-angle spiral."""
    height = 1 - 2 * (np.arange(n) + 0.5) / n
    turn = np.pi * (1 + np.sqrt(5)) * np.arange(n)
    radius = np.sqrt(1 - height**2)
    return np.stack([radius * np.cos(turn), radius * np.sin(turn), height], axis=1)


def _rotations_to(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return row-acting rotations (N, 3, 3) that take (1, 0, 0) to each x."""
    # x never is a pole here, so east = e₃ × x is a safe second axis.
    east = np.stack([-X[:, 1], X[:, 0], np.zeros(len(X))], axis=1)
    east /= np.linalg.norm(east, axis=1, keepdims=True)
    return np.stack([X, east, np.cross(X, east)], axis=1)
