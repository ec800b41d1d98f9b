"""One fit of a data set whose truth is known, as facts of a row."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca import LOCA, BurstError, TrustWarning
from pyloca.alignment import align
from pyloca.geometry import BurstStatistics
from pyloca.metrics import stress

__all__ = ["aligned", "fit_facts", "part"]

Array = NDArray[np.float64]


def part(X: Array, Z: Array) -> float:
    """Stress as a part of the latent variance."""
    return stress(X, Z) / float(X.var(axis=0).sum())


def fit_facts(X: Array, data: Any, seed: int, **settings: Any) -> tuple[dict[str, Any], LOCA | None]:
    """Fit; return stress over variance, k, findings, processor seconds and the model; a refusal has infinite stress."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrustWarning)
            model = LOCA(**{"n_components": X.shape[1], "random_state": seed} | settings).fit(data)
    except BurstError as error:
        return {"stress": float("inf"), "k": 0, "findings": ["refused"], "refusal": str(error)}, None
    found = model.diagnostics_.findings
    facts = {
        "stress": part(X, model.embedding_),
        "k": model.intrinsic_dim_,
        "findings": [finding.name for finding in found],
        "said": [finding.message for finding in found],
        "round_trip": None if model.diagnostics_.round_trip is None else model.diagnostics_.round_trip[0],
        "restarts": list(model.diagnostics_.restarts),
        "seconds": time.process_time() - start,
    }
    return facts, model


def aligned(X: Array, statistics: BurstStatistics, d: int, burst_std: float, seed: int) -> float:
    """Stress over variance of the closed-form alignment alone."""
    start = align(statistics, d, burst_std=burst_std, random_state=seed)
    return part(X[start.rows], start.positions)
