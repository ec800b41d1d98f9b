"""The clean sets that are made dirty, and one way to fit them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyloca import LOCA, BurstError, TrustWarning
from pyloca.metrics import stress
from pyloca.paper.experiments._measurements import smooth_map

Array = NDArray[np.float64]
SIGMA = 0.01


class Sensors(NamedTuple):
    """A unit square seen by `dim` sensors, each a smooth nonlinear function of the place."""

    X: Array  # (N, 2) latents
    points: Array  # (N, M, D)
    measure: Callable[[Array], Array]


def sensors(seed: int, n: int = 450, m: int = 50, dim: int = 6) -> Sensors:
    """Draw clean bursts of σ = 0.01."""
    random = np.random.RandomState(seed)
    X = random.uniform(size=(n, 2))
    measure = smooth_map(2, dim, random)
    cloud = X[:, None] + SIGMA * random.standard_normal((n, m, 2))
    return Sensors(X, measure(cloud.reshape(-1, 2)).reshape(n, m, dim), measure)


def fitted(X: Array, data: Any, seed: int, *, static: Any = None, **settings: Any) -> dict[str, Any]:
    """Fit, and return stress, k and the names of the findings; a refusal has infinite stress.

    A burst that is named as a stray, with a trust of 0, does not count: one of six spikes and two points, for instance.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrustWarning)
            settings = {"n_components": 2, "burst_std": SIGMA, "random_state": seed} | settings
            model = LOCA(**settings).fit(data, static=static)
    except BurstError as error:
        return {"stress": float("inf"), "k": 0, "findings": ["refused"], "refusal": str(error)}
    found = [finding.name for finding in model.diagnostics_.findings]
    sound = np.delete(np.arange(len(X)), list(model.strays_))
    value = stress(X[sound], model.embedding_[sound])
    return {"stress": value, "k": model.intrinsic_dim_, "findings": found, "strays": len(model.strays_)}
