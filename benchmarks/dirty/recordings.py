"""Recordings of a diffusion in two dimensions, seen by 3 to 6 nonlinear sensors with noise."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.dirty._sensors import Array
from benchmarks.rows import Row
from pyloca import LOCA, TrustWarning
from pyloca.bursts import from_time_series
from pyloca.errors import BurstError
from pyloca.metrics import calibrate

SAMPLES = 20_000
SUBSTEPS = 4  # Euler–Maruyama steps per sample


def ornstein_uhlenbeck(x: Array) -> Array:
    """Return −x."""
    return -x


def double_well(x: Array) -> Array:
    """Return −∇V of V = (x₀² − 1)² + x₁²."""
    return np.stack([-4 * x[:, 0] * (x[:, 0] ** 2 - 1), -2 * x[:, 1]], axis=1)


# drift, diffusion s, time between samples: a step is 10 % (OU) and 5 % of the range's standard deviation
SYSTEMS: dict[str, tuple[Callable[[Array], Array], float, float]] = {
    "Ornstein–Uhlenbeck": (ornstein_uhlenbeck, np.sqrt(2.0), 0.01),
    "double well": (double_well, 1.0, 0.005),
}


def trajectory(name: str, random: np.random.RandomState, samples: int = SAMPLES) -> Array:
    """Simulate latents, (T, 2)."""
    drift, diffusion, dt = SYSTEMS[name]
    small = dt / SUBSTEPS
    x = np.array([[1.0, 0.0]])
    path = np.empty((samples, 2))
    noise = diffusion * np.sqrt(small) * random.standard_normal((samples + 500, SUBSTEPS, 1, 2))
    for t, kicks in enumerate(noise):
        for kick in kicks:
            x = x + small * drift(x) + kick
        path[t - 500] = x  # the first 500 are overwritten: the system forgets where it began
    return path


def instrument(random: np.random.RandomState, dim: int) -> Callable[[Array], Array]:
    """Draw sensors: each a straight line plus a wave that changes its slope by half."""
    frame = np.linalg.qr(random.standard_normal((dim, 2)))[0].T * np.sqrt(dim / 2)
    waves, phases = 0.8 * random.standard_normal((2, dim)), random.uniform(0, 2 * np.pi, dim)
    return lambda x: x @ frame + 0.5 * np.cos(x @ waves + phases)


def error_of(name: str, noise: float, seed: int) -> dict[str, Any]:
    """Fit, and return the root-mean-square error over the size of the data; 0 for a refusal, which is named."""
    random = np.random.RandomState(seed)
    _, diffusion, dt = SYSTEMS[name]
    path = trajectory(name, random)
    measure = instrument(random, 3 + seed % 4)
    clean = measure(path)
    seen = clean + noise * np.diff(clean, axis=0).std(axis=0) * random.standard_normal(clean.shape)
    try:
        bursts = from_time_series(seen, diffusion=diffusion, dt=dt)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrustWarning)
            model = LOCA(2, random_state=seed).fit(bursts)
    except BurstError as error:
        return {"value": 0.0, "refused": str(error)}
    # where the system was: every fortieth sample that lies among the bursts, seen without noise
    Z, X = model.transform(clean[::40]), path[::40]
    centre, reach = path.mean(axis=0), 2.5 * path.std(axis=0)
    inside = (np.abs(X - centre) < reach).all(axis=1)
    X, Z = X[inside], Z[inside]
    rest = calibrate(X, Z).apply(Z) - X
    size = np.sqrt(np.square(X - X.mean(axis=0)).sum(axis=1).mean())
    return {
        "value": float(np.sqrt(np.square(rest).sum(axis=1).mean()) / size),
        "k": model.intrinsic_dim_,
        "findings": [finding.name for finding in model.diagnostics_.findings],
        "bursts": str(bursts),
    }


ROWS: tuple[Row, ...] = tuple(
    Row(f"{name} recording, noise {noise:.0%} of a step", 0.03, "error / size", partial(error_of, name, noise))
    for name in SYSTEMS
    for noise in (0.0, 0.1, 0.5)
)
