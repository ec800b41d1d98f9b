"""How sure is sure: coverage of stated 95 % regions, confidence in k, and what the diagnostics cost."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

from benchmarks.faults import plant
from benchmarks.tables import print_table, write_results
from benchmarks.unseen import cube, smooth_map
from pyloca import LOCA, TrustWarning, datasets
from pyloca.datasets import Dataset
from pyloca.diagnostics import TrustScale, agreement, diagnose
from pyloca.metrics import calibrate
from pyloca.selection import estimate_intrinsic_dim

COVERED: dict[str, Callable[[int], Dataset]] = {
    "mushroom": lambda seed: datasets.mushroom(1000, 100, random_state=seed),
    "square into R⁵": lambda seed: plant("square into R⁵", seed),
    "3-d cube into R⁸": cube,
}
COVERAGE_BAR = (0.90, 0.98)
DIMENSIONS = (10, 30, 100)
COST_BAR = 0.3


def coverage(name: str, seed: int) -> float:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", TrustWarning)
    data = COVERED[name](seed)
    model = LOCA(data.n_components, burst_std=data.burst_std, random_state=seed).fit(data.bursts)
    found = agreement(model, data.bursts, random_state=seed)
    placed = calibrate(found.embedding, data.X).apply(found.embedding)
    return float(np.mean(np.linalg.norm(placed - data.X, axis=1) < found.radius(0.95)))


def dimension(k: int, n_features: int, seed: int) -> tuple[int, float]:
    """k as estimated, and the confidence in it: a random smooth map, noise of 1 % of a burst in every direction."""
    random = np.random.RandomState(100 * k + seed)
    X, measure = random.uniform(size=(300, k)), smooth_map(k, n_features, random)
    points = measure((X[:, None] + 0.01 * random.standard_normal((300, 40, k))).reshape(-1, k))
    points = points.reshape(300, 40, n_features)
    size = np.sqrt(points.var(axis=1).sum(axis=1).mean() / k)
    found = estimate_intrinsic_dim(points + 0.01 * size * random.standard_normal(points.shape))
    return int(found), found.confidence


def cost(name: str) -> float:
    """Time of all automatic diagnostics as a part of the time of the rest of the fit."""
    data = getattr(datasets, name)(random_state=0)
    start = time.perf_counter()
    model = LOCA(data.n_components, burst_std=data.burst_std, random_state=0).fit(data.bursts)
    whole = time.perf_counter() - start
    start = time.perf_counter()
    diagnose(model, data.bursts)
    held_out = data.bursts[model.validation_indices_]
    TrustScale.calibrate(model.encoder_, model.decoder_, held_out, model.embedding_)
    checks = time.perf_counter() - start
    return checks / (whole - checks)


def run(seeds: list[int]) -> bool:
    warnings.simplefilter("ignore", TrustWarning)
    low, high = COVERAGE_BAR
    covered: dict[str, Any] = {}
    for name in COVERED:
        parts = Parallel(n_jobs=-1)(delayed(coverage)(name, seed) for seed in seeds)
        covered[name] = {"mean": float(np.mean(parts)), "seeds": parts, "holds": low <= float(np.mean(parts)) <= high}
        print(name, covered[name], flush=True)
    print_table(
        "part of the embedded bursts whose 95 % region holds the truth",
        ("data", "mean", "least", "most", "holds"),
        [(n, f["mean"], min(f["seeds"]), max(f["seeds"]), "yes" if f["holds"] else "NO") for n, f in covered.items()],
    )
    found: dict[str, Any] = {}
    for k in range(1, 7):
        for n_features in DIMENSIONS:
            guesses = Parallel(n_jobs=-1)(delayed(dimension)(k, n_features, seed) for seed in range(20))
            right = sum(guess == k for guess, _ in guesses)
            found[f"k = {k}, D = {n_features}"] = {
                "right": right,
                "of": len(guesses),
                "least_confidence": min(confidence for _, confidence in guesses),
            }
    print_table(
        "intrinsic dimension, 1 % noise",
        ("data", "right", "least confidence"),
        [(name, f"{facts['right']} of {facts['of']}", facts["least_confidence"]) for name, facts in found.items()],
    )
    costs = {name: cost(name) for name in ("mushroom", "sphere", "wifi")}
    print_table("diagnostics, part of the fit", ("data", "part"), list(costs.items()))
    holds = (
        all(facts["holds"] for facts in covered.values())
        and all(facts["right"] == facts["of"] for facts in found.values())
        and max(costs.values()) <= COST_BAR
    )
    write_results(
        "confidence",
        {
            "coverage": covered,
            "coverage_bar": list(COVERAGE_BAR),
            "dimension": found,
            "cost": costs,
            "cost_bar": COST_BAR,
            "seed_list": seeds,
            "holds": holds,
        },
    )
    return holds
