"""Five known distances: σ from them before a fit, against the finished embedding rescaled by them.

Errors are those of the scale, relative to the best factor of the whole embedding (`calibrate`). Two standard errors of
`rescale` should hold 95 % of them; the standard error from a single distance is a bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import unseen
from benchmarks.rows import Row
from pyloca import LOCA, TrustWarning, datasets
from pyloca.bursts import Bursts
from pyloca.datasets import Dataset
from pyloca.selection import estimate_burst_std

PAIRS, DRAWS = 5, 20  # distances that are known, and sets of them per fit
WRONG = 2.0  # factor on one distance that was copied wrongly


def sheet(seed: int) -> Dataset:
    """A unit square through a random smooth map to R⁵."""
    random = np.random.RandomState(seed)
    X, measure = random.uniform(size=(400, 2)), unseen.smooth_map(2, 5, random)
    clouds = X[:, None] + 0.01 * random.standard_normal((400, 30, 2))
    bursts = Bursts(measure(clouds.reshape(-1, 2)).reshape(400, 30, -1))
    return Dataset("smooth map to R⁵", X, measure(X), bursts, 0.01, 2, 2, measure)


SETS: dict[str, Callable[[int], Dataset]] = {
    "mushroom": lambda seed: datasets.mushroom(400, 30, random_state=seed),
    "smooth map to R⁵": sheet,
    "sphere": lambda seed: datasets.sphere(random_state=seed),
}


def best_factor(X: np.ndarray, Z: np.ndarray) -> float:
    """Factor on Z that brings it nearest to X, after the best rigid motion: what all distances together say."""
    X, Z = X - X.mean(axis=0), Z - Z.mean(axis=0)
    X = np.pad(X, ((0, 0), (0, max(0, Z.shape[1] - X.shape[1]))))
    return float(np.linalg.svd(Z.T @ X, compute_uv=False).sum() / np.square(Z).sum())


def row(name: str, seed: int) -> dict[str, Any]:
    """One fit without σ, and `DRAWS` sets of known distances."""
    warnings.simplefilter("ignore", TrustWarning)
    data = SETS[name](seed)
    bursts = Bursts(data.bursts.to_array())  # without their σ
    model = LOCA(data.n_components, random_state=seed).fit(bursts)
    embedding, sigma = model.embedding_, model.burst_std_
    right = best_factor(data.X, embedding)
    random = np.random.RandomState(1000 + seed)
    found: dict[str, list[float]] = {
        key: [] for key in ("by_sigma", "by_rescale", "one_wrong", "covered", "covered_1", "named")
    }
    warned = 0
    for _ in range(DRAWS):
        pairs = np.array([random.permutation(len(data.X))[:2] for _ in range(PAIRS)])
        apart = np.linalg.norm(data.X[pairs[:, 0]] - data.X[pairs[:, 1]], axis=1)
        estimate = estimate_burst_std(bursts, pairs=pairs, distances=apart, n_components=data.n_components)
        found["by_sigma"].append(abs(float(estimate) / sigma / right - 1))

        def told(n: int, known: np.ndarray, pairs: np.ndarray = pairs) -> tuple[float, float, bool]:
            """Error of the scale, the same in standard errors, and whether the distances were found to disagree."""
            model.rescale(pairs[:n], known[:n])
            error = abs(model.burst_std_ / sigma / right - 1)
            disagree = any("disagree" in message for message in model.diagnostics_.warnings)
            return error, error / model.rescaling_.relative_error, disagree

        error, errors, disagree = told(PAIRS, apart)
        found["by_rescale"].append(error)
        found["covered"].append(float(errors < 2))
        warned += disagree
        found["covered_1"].append(float(told(1, apart)[1] < 2))
        wrong = apart * np.where(np.arange(PAIRS) == 2, WRONG, 1)
        error, _, disagree = told(PAIRS, wrong)
        found["one_wrong"].append(error)
        found["named"].append(float(disagree))
    return {key: float(np.mean(values)) for key, values in found.items()} | {"false_alarms": warned / DRAWS}


def _measure(name: str, seed: int) -> dict[str, Any]:
    facts = row(name, seed)
    return {"value": facts["by_rescale"] / facts["by_sigma"], **facts}


ROWS: tuple[Row, ...] = tuple(
    Row(f"five known distances: {name}", 1.0, "error of rescale / of σ from them", partial(_measure, name))
    for name in SETS
)
