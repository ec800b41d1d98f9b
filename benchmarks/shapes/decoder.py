"""Round trips on rough measurements, beside a Gaussian process and kernel ridge from the same coordinates."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from benchmarks.fitting import fit_facts
from benchmarks.rows import Row

__all__ = ["ROWS", "spot_pictures"]

Array = NDArray[np.float64]
Map = Callable[[Array], Array]  # (…, 2) latent places → (…, D) measurements

POINTS = 30
KEPT = 100  # directions of the means in which the references are fitted: more features only take time


def _kinked(random: np.random.RandomState) -> Map:
    """Folds |a·x − b| of six sensors, each beside a plane."""
    angles = random.uniform(0, 2 * np.pi, 6)
    normals = np.stack([np.cos(angles), np.sin(angles)])
    middles = random.uniform(0.3, 0.7, (6, 2))
    planes = 0.7 * random.standard_normal((2, 6))
    return lambda x: np.abs(x @ normals - np.einsum("jd,dj->j", middles, normals)) + x @ planes


def _hand_over(random: np.random.RandomState) -> Map:
    """Twenty-five sensors on a grid, each of which sees its own part of the floor."""
    grid = np.linspace(0, 1, 5)
    places = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2) + 0.03 * random.standard_normal((25, 2))
    return lambda x: np.exp(-np.square(x[..., None, :] - places).sum(axis=-1) / (2 * 0.15**2))


def _rough(random: np.random.RandomState) -> Map:
    """A hundred waves in a room, in 128 channels: long ones, and weaker ones that are too short for the bursts."""
    numbers = np.r_[random.uniform(2, 15, 40), random.uniform(30, 60, 60)]
    angles, phases = random.uniform(0, 2 * np.pi, (2, 100))
    waves = np.stack([numbers * np.cos(angles), numbers * np.sin(angles)])
    strength = np.where(numbers < 20, 6 / numbers, 2.5 / numbers)
    channels = random.standard_normal((100, 128)) * strength[:, None]
    return lambda x: np.sin(x @ waves + phases) @ channels


def _sines(random: np.random.RandomState) -> Map:
    """A plane, and three sensors with fine sines."""
    phases = random.uniform(0, 2 * np.pi, 3)
    waves = 2 * np.pi * np.array([[5.0, 0.0, 4.0], [0.0, 5.0, 4.0]])
    return lambda x: np.concatenate([x, 0.05 * np.sin(x @ waves + phases)], axis=-1)


def spot_pictures(side: int, width: float) -> Map:
    """Pictures of side × side pixels with one round spot, whose place is the latent one."""
    pixels = np.linspace(0, 1, side)

    def pictures(x: Array) -> Array:
        centres = 0.2 + 0.6 * x
        columns, rows = (np.exp(-np.square(pixels - centres[..., [i]]) / (2 * width**2)) for i in (0, 1))
        return (rows[..., :, None] * columns[..., None, :]).reshape(*x.shape[:-1], side**2)

    return pictures


def _measure(make: Callable[[np.random.RandomState], Map], n: int, burst_std: float, seed: int) -> dict[str, Any]:
    random = np.random.RandomState(seed)
    measure = make(random)
    X = random.uniform(size=(n, 2))
    bursts = measure(X[:, None] + burst_std * random.standard_normal((n, POINTS, 2)))
    facts, model = fit_facts(X, bursts, seed, burst_std=burst_std)
    if model is None:
        return facts | {"value": float("inf")}
    means, Z, held = bursts.mean(axis=1), model.embedding_, model.validation_indices_
    fitted = np.delete(np.arange(n), held)
    size = float(np.sqrt(np.square(means[fitted] - means[fitted].mean(axis=0)).sum(axis=1).mean()))
    ours = _error(model.decode(Z[held]), means[held]) / size
    others = {name: _error(found, means[held]) / size for name, found in _references(Z, means, fitted, held).items()}
    facts.pop("said")
    return facts | {"value": ours / min(others.values()), "round_trip": ours, **others}


def _error(found: Array, expected: Array) -> float:
    return float(np.median(np.linalg.norm(found - expected, axis=1)))


def _references(Z: Array, means: Array, fitted: NDArray[np.int64], held: NDArray[np.int64]) -> dict[str, Array]:
    """Predict held-out means from coordinates by kernel ridge and by a Gaussian process, from training means."""
    centre, unit = means[fitted].mean(axis=0), Z[fitted].std()
    axes = np.linalg.svd(means[fitted] - centre, full_matrices=False)[2][:KEPT]  # (at most KEPT, D)
    targets = (means[fitted] - centre) @ axes.T
    size = targets.std()
    lengths = unit * np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2])
    grid = {"gamma": 1 / (2 * lengths**2), "alpha": [1e-9, 1e-7, 1e-5, 1e-3, 1e-2]}
    ridge = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5, scoring="neg_mean_squared_error")
    kernel = ConstantKernel(1.0) * RBF(0.3 * unit, (1e-3 * unit, 1e2 * unit)) + WhiteKernel(1e-6, (1e-12, 1e-1))
    found = {}
    for name, reference in (("kernel_ridge", ridge), ("gaussian_process", GaussianProcessRegressor(kernel))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a length at its bound is a poor reference, no fault
            reference.fit(Z[fitted], targets / size)
        found[name] = centre + size * reference.predict(Z[held]) @ axes
    return found


WHAT = "held-out round trip / best of kernel ridge and Gaussian process"


def _row(name: str, make: Callable[[np.random.RandomState], Map], n: int, burst_std: float) -> Row:
    return Row(name, 2.0, WHAT, partial(_measure, make, n, burst_std), worst=1.5)


ROWS: tuple[Row, ...] = (
    _row("decoder: kinked", _kinked, 500, 0.01),
    _row("decoder: hand-over", _hand_over, 500, 0.01),
    _row("decoder: rough, D = 128", _rough, 400, 0.005),
    _row("decoder: fine sines", _sines, 600, 0.005),
    _row("decoder: images, D = 2,025", lambda random: spot_pictures(45, 0.12), 500, 0.01),
)
