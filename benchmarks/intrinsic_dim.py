"""Is k found? Random smooth maps of k = 1..6 latent dimensions into R^D, with noise of 1 % of a burst."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed

from benchmarks.tables import print_table, write_results
from pyloca.paper.experiments._measurements import smooth_map
from pyloca.selection import estimate_intrinsic_dim

N, M, STD, NOISE = 300, 40, 0.01, 0.01
DIMENSIONS = (10, 30, 100)


def estimate(k: int, n_features: int, seed: int) -> tuple[int, float]:
    """The estimate, and the confidence in it."""
    random = np.random.RandomState(100 * k + seed)
    X, measure = random.uniform(size=(N, k)), smooth_map(k, n_features, random)
    points = measure((X[:, None] + STD * random.standard_normal((N, M, k))).reshape(-1, k)).reshape(N, M, n_features)
    size = np.sqrt(points.var(axis=1).sum(axis=1).mean() / k)
    found = estimate_intrinsic_dim(points + NOISE * size * random.standard_normal(points.shape), random_state=0)
    return int(found), found.confidence


def run(seeds: list[int]) -> bool:
    rows = {}
    for k in range(1, 7):
        for n_features in DIMENSIONS:
            found = Parallel(n_jobs=-1)(delayed(estimate)(k, n_features, seed) for seed in seeds)
            rows[f"k = {k}, D = {n_features}"] = {
                "right": sum(guess == k for guess, _ in found),
                "of": len(seeds),
                "least_confidence": min(confidence for _, confidence in found),
            }
    print_table(
        "intrinsic dimension, 1 % noise",
        ("data", "right", "least confidence"),
        [(name, f"{facts['right']} of {facts['of']}", facts["least_confidence"]) for name, facts in rows.items()],
    )
    write_results("intrinsic_dim", {"rows": rows})
    return all(facts["right"] == facts["of"] for facts in rows.values())
