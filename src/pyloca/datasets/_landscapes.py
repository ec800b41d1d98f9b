"""Diffusions in a potential, restarted in short bursts and seen through a nonlinear instrument."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import from_simulator
from pyloca.datasets._dataset import Dataset

__all__ = ["double_well", "double_well_force", "muller_brown", "muller_brown_force"]

Array = NDArray[np.float64]
Force = Callable[[Array], Array]

SUBSTEPS = 5  # of Euler and Maruyama in a burst

# Müller and Brown (1979)
HEIGHTS = np.array([-200.0, -100.0, -170.0, 15.0])
XX, XY, YY = np.array([-1, -1, -6.5, 0.7]), np.array([0, 0, 11, 0.6]), np.array([-10, -10, -6.5, 0.7])
CENTRES = np.array([[1, 0], [0, 0.5], [-0.5, 1.5], [-1, 1]])


def muller_brown_potential(x: Array) -> Array:
    """V(x), (n, 2) → (n,)."""
    dx, dy = x[:, :1] - CENTRES[:, 0], x[:, 1:] - CENTRES[:, 1]
    return (HEIGHTS * np.exp(XX * dx**2 + XY * dx * dy + YY * dy**2)).sum(axis=1)


def muller_brown_force(x: Array) -> Array:
    """−∇V, (n, 2) → (n, 2)."""
    dx, dy = x[:, :1] - CENTRES[:, 0], x[:, 1:] - CENTRES[:, 1]
    terms = HEIGHTS * np.exp(XX * dx**2 + XY * dx * dy + YY * dy**2)
    return -np.stack([(terms * (2 * XX * dx + XY * dy)).sum(axis=1), (terms * (XY * dx + 2 * YY * dy)).sum(axis=1)], 1)


def double_well_force(x: Array) -> Array:
    """−∇ of (x₀² − 1)² + x₁²."""
    return np.stack([-4 * x[:, 0] * (x[:, 0] ** 2 - 1), -2 * x[:, 1]], axis=1)


def muller_brown(
    n_bursts: int = 1000,
    n_points: int = 100,
    diffusion: float = 5.0,
    dt: float = 1e-5,
    *,
    random_state: int | None = None,
) -> Dataset:
    """Restarts in the Müller–Brown potential, where V < 0, seen through a smooth map into R¹⁰."""
    random = np.random.RandomState(random_state)
    candidates = random.uniform([-1.4, -0.2], [1.1, 1.9], size=(20 * n_bursts, 2))
    X = candidates[muller_brown_potential(candidates) < 0][:n_bursts]
    return _restarts("muller_brown", muller_brown_force, X, n_points, diffusion, dt, random)


def double_well(
    n_bursts: int = 1000,
    n_points: int = 100,
    diffusion: float = 1.0,
    dt: float = 4e-4,
    *,
    random_state: int | None = None,
) -> Dataset:
    """Restarts in a double well, uniform over both basins and the barrier, seen through a smooth map into R¹⁰."""
    random = np.random.RandomState(random_state)
    X = random.uniform([-1.5, -1.0], [1.5, 1.0], size=(n_bursts, 2))
    return _restarts("double_well", double_well_force, X, n_points, diffusion, dt, random)


def _restarts(
    name: str, force: Force, X: Array, n_points: int, diffusion: float, dt: float, random: np.random.RandomState
) -> Dataset:
    waves = random.standard_normal((2, 10)) * [[0.9], [0.9]]
    phases = random.uniform(0, 2 * np.pi, 10)

    def observe(x: Array) -> Array:
        return np.cos(x @ waves + phases)

    def step(states: Array, time: float, noise: np.random.RandomState) -> Array:
        small = time / SUBSTEPS
        for _ in range(SUBSTEPS):
            states = states + small * force(states)
            states = states + diffusion * np.sqrt(small) * noise.standard_normal(states.shape)
        return states

    seed = int(random.randint(2**31 - 1))
    bursts = from_simulator(
        step, X, dt, n_points, observe=observe, diffusion=diffusion, random_state=seed, progress=False
    )
    assert bursts.burst_std is not None
    return Dataset(name, X, observe(X), bursts, bursts.burst_std, 2, 2, observe)
