"""Where bits are the same, and how far coordinates move where they are not."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.rows import Row
from pyloca import LOCA, datasets
from pyloca.metrics import calibrate, stress
from pyloca.solvers import _problem

SEEDS = (0, 1, 2, 3, 4)
N = 400
ROUNDING = 2e-16  # of every number in the bursts


def data(name: str, seed: int) -> datasets.Dataset:
    return {"mushroom": datasets.mushroom, "wifi": datasets.wifi}[name](N, random_state=seed)


def fitted(bursts: np.ndarray, std: float, seed: int, threads: int = 1, *, pays: float = np.inf) -> LOCA:
    before, limit = torch.get_num_threads(), _problem.PAYS
    torch.set_num_threads(threads)
    _problem.PAYS = pays
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return LOCA(2, burst_std=std, random_state=seed).fit(bursts)
    finally:
        torch.set_num_threads(before)
        _problem.PAYS = limit


def moved(one: np.ndarray, other: np.ndarray) -> dict[str, float]:
    """How far coordinates are apart after the best rigid motion, as a part of their size: rms and worst."""
    apart = np.linalg.norm(calibrate(one, other).apply(other) - one, axis=1)
    size = np.sqrt(np.square(one - one.mean(axis=0)).sum(axis=1).mean())
    return {"value": float(np.sqrt(np.square(apart).mean()) / size), "worst": float(apart.max() / size)}


def another_rounding(name: str, seed: int) -> dict[str, Any]:
    """A fit of bursts whose last bits are others, beside how wrong the fit is in any case."""
    found = data(name, seed)
    bursts = found.bursts.to_array()
    signs = np.random.RandomState(seed).choice([-1.0, 1.0], size=bursts.shape)
    one, other = (fitted(b, found.burst_std, seed) for b in (bursts, bursts * (1 + ROUNDING * signs)))
    facts = moved(one.embedding_, other.embedding_)
    return facts | {
        "error": moved(found.X, one.embedding_)["value"],
        "stress": [stress(found.X, m.embedding_) for m in (one, other)],
    }


def two_threads(name: str, seed: int) -> dict[str, Any]:
    """With the user's setting of one thread and of two: training uses one in both."""
    found = data(name, seed)
    one, other = (fitted(found.bursts.to_array(), found.burst_std, seed, threads) for threads in (1, 2))
    same = np.array_equal(one.embedding_, other.embedding_)
    return {"value": float(not same), "trials": 1, "ok": same}


def shared_products(name: str, seed: int) -> dict[str, Any]:
    """Two threads share every product, as they do where layers are wide."""
    found = data(name, seed)
    one, other = (fitted(found.bursts.to_array(), found.burst_std, seed, threads, pays=0.0) for threads in (1, 2))
    return moved(one.embedding_, other.embedding_) | {"error": moved(found.X, one.embedding_)["value"]}


AS_WRONG = 0.02  # of the size
SETS = ("mushroom", "wifi")
SAME, APART = "failures", "difference / size"
ROWS = (
    *(Row(f"{n}: settings of one thread and two", 0.0, SAME, partial(two_threads, n), seeds=(0, 1)) for n in SETS),
    *(Row(f"{n}: another rounding", AS_WRONG, APART, partial(another_rounding, n), seeds=SEEDS) for n in SETS),
    *(
        Row(f"{n}: two threads share products", AS_WRONG, APART, partial(shared_products, n), seeds=(0, 1))
        for n in SETS
    ),
)
