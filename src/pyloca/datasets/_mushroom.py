"""Sections 6.1 to 6.3: the unit square, or its frame, through f₁."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyloca.bursts import from_function
from pyloca.datasets._dataset import Dataset, TestSet

__all__ = ["frame", "mushroom"]

INNER = (0.1, 0.9)  # the frame is [0, 1]² without this square
OUTER = (-0.025, 1.025)  # the test points of section 6.2 fill this square


def f1(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return f₁(x) = (x₀ + x₁³, −x₀ + x₁³), (n, 2) → (n, 2)."""
    cube = x[:, 1] ** 3
    return np.stack([x[:, 0] + cube, -x[:, 0] + cube], axis=1)


def mushroom(
    n_bursts: int = 2000,
    n_points: int = 200,
    burst_std: float = 0.01,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Dataset:
    """Measure the unit square through f₁(x) = (x₀ + x₁³, −x₀ + x₁³), the mushroom of section 6.1.

    Parameters
    ----------
    n_bursts : int, default=2000
    n_points : int, default=200
        Points per burst.
    burst_std : float, default=0.01
        σ.
    random_state : int, RandomState or None, default=None
        Pass an integer for the same data on every call.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    Bursts(N=100, M=10, D=2)
    """
    random = check_random_state(random_state)
    X = random.uniform(size=(n_bursts, 2))
    bursts = from_function(f1, X, burst_std, n_points, random_state=random).without_perturbations()
    return Dataset("mushroom", X, f1(X), bursts, burst_std, 2, 2, f1)


def frame(
    n_bursts: int = 2000,
    n_points: int = 200,
    burst_std: float = 0.01,
    n_test: int = 20_000,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Dataset:
    """Measure the frame [0, 1]² without [0.1, 0.9]² through f₁ (section 6.2).

    Parameters
    ----------
    n_bursts : int, default=2000
    n_points : int, default=200
        Points per burst.
    burst_std : float, default=0.01
        σ.
    n_test : int, default=20000
        Test points, uniform on [−0.025, 1.025]².
    random_state : int, RandomState or None, default=None
        Pass an integer for the same data on every call.

    Returns
    -------
    Dataset
        `tests` has "frame", "interpolation" (the inner square) and "extrapolation" (outside the unit square).
        `extras` has the pairs of section 6.3, "interpolation_starts" and "interpolation_ends": latent points that
        face each other across the inner square.

    Examples
    --------
    >>> data = frame(n_bursts=100, n_points=10, n_test=50, random_state=0)
    >>> list(data.tests)
    ['frame', 'interpolation', 'extrapolation']
    """
    random = check_random_state(random_state)
    candidates = random.uniform(size=(8 * n_bursts + 100, 2))  # the frame is 36 % of the square: these suffice
    X = candidates[~_inside(candidates, *INNER)][:n_bursts]
    bursts = from_function(f1, X, burst_std, n_points, random_state=random).without_perturbations()
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
