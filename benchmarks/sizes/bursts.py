"""From few bursts to many: what bursts tell grows with N (M − 1), so the stress falls as 1/N.

The figure is stress / variance · N (M − 1), on measurements without noise at the bursts' centres, divided by its median
at N = 2,000: constant at the statistical limit. With 25 exact covariances it is the loss on unseen ones, divided by
that of a network of 8 hidden neurons.
"""

from __future__ import annotations

import math
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.fitting import fit_facts, part
from benchmarks.rows import Row
from pyloca import LOCA, datasets
from pyloca.geometry import BurstStatistics
from pyloca.paper.experiments._measurements import smooth_map

M, SIGMA = 30, 0.01
REFERENCE, REFERENCE_SEEDS = 2000, range(5)
SIZES = {500: None, 2000: None, 8000: (0, 1, 2, 3, 4), 32_000: (0, 1, 2), 100_000: (0, 1)}  # seeds; None: all


@cache
def measure(kind: str, n: int, seed: int) -> dict[str, Any]:
    """Fit n bursts; the figure is not divided yet."""
    if kind == "mushroom":
        data = datasets.mushroom(n, M, SIGMA, random_state=seed)
        X, bursts, clean = data.X, data.bursts, data.Y
    else:
        random = np.random.RandomState(seed)
        curve = smooth_map(2, 6, random)
        X = random.uniform(size=(n, 2))
        bursts, clean = curve(X[:, None] + SIGMA * random.standard_normal((n, M, 2))), curve(X)
    facts, model = fit_facts(X, BurstStatistics.from_bursts(bursts, 2), seed, burst_std=SIGMA)
    if model is not None:
        facts["stress"] = part(X, model.transform(clean))
    return {"value": facts["stress"] * n * (M - 1), **{key: facts[key] for key in ("stress", "findings", "seconds")}}


@cache
def reference(kind: str, key: str) -> float:
    return float(np.median([measure(kind, REFERENCE, seed)[key] for seed in REFERENCE_SEEDS]))


def against(kind: str, n: int, seed: int) -> dict[str, Any]:
    facts = measure(kind, n, seed)
    return facts | {"value": facts["value"] / reference(kind, "value")}


def exponent(kind: str, n: int, seed: int) -> dict[str, Any]:
    """Return the power of N with which processor seconds grow from 2,000 bursts."""
    facts = measure(kind, n, seed)
    return facts | {"value": math.log(facts["seconds"] / reference(kind, "seconds")) / math.log(n / REFERENCE)}


def exact(n: int, seed: int) -> dict[str, Any]:
    """Predict covariances that were not seen from n exact ones."""
    random = np.random.RandomState(seed)
    curve, step = smooth_map(2, 6, random), 1e-5
    X = random.uniform(size=(n + 500, 2))
    jacobians = np.stack([(curve(X + step * e) - curve(X - step * e)) / (2 * step) for e in np.eye(2)], axis=2)
    statistics = BurstStatistics.from_jacobians(curve(X), jacobians)
    losses = [
        -LOCA(2, burst_std=1.0, random_state=seed, **network).fit(statistics[:n]).score(statistics[n:])
        for network in ({}, {"hidden_layers": (8,)})
    ]
    return {"value": losses[0] / losses[1], "loss": losses[0], "loss of (8,)": losses[1]}


KINDS = {"mushroom": "mushroom", "square": "square in R⁶"}
ROWS: tuple[Row, ...] = (
    *(
        Row(f"{name}, N = {n}", 1.5, "stress · N / that at 2000", partial(against, kind, n), seeds=seeds)
        for kind, name in KINDS.items()
        for n, seeds in SIZES.items()
    ),
    *(
        Row(f"{name}, time from 2000 to 32000", 1.05, "power of N", partial(exponent, kind, 32_000), 1.1, (0, 1, 2))
        for kind, name in KINDS.items()
    ),
    Row("25 exact covariances", 1.0, "held-out loss / that of (8,)", partial(exact, 25)),
)
