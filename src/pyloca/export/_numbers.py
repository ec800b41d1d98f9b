"""Numbers and facts of a model as an export needs them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca._version import __version__
from pyloca.predict import Predictor

__all__ = ["DTYPES", "as_dtype", "facts_of"]

DTYPES = ("float64", "float32")


def as_dtype(values: NDArray[Any] | float, dtype: str, what: str) -> NDArray[Any]:
    """Convert numbers; refuse those that would become infinite or, as divisors must not, zero."""
    given = np.asarray(values, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        out = given.astype(dtype)
    lost = np.isinf(out) & np.isfinite(given)
    if "scale" in what:
        lost |= (out == 0) & (given != 0)
    if lost.any():
        raise ValueError(f"{what} has the number {given[lost].flat[0]:.3g}, which {dtype} cannot hold; export float64.")
    return out


def facts_of(predictor: Predictor) -> dict[str, Any]:
    """Return what a user of the exported thing must know beside the numbers, ready for JSON."""
    return {
        "pyloca": __version__,
        "features": predictor.n_features,
        "coordinates": predictor.n_components,
        "intrinsic_dim": predictor.intrinsic_dim,
        "feature_names": None if predictor.feature_names is None else list(predictor.feature_names),
        "units": None if predictor.units is None else list(predictor.units),
        "burst_std": predictor.burst_std,
        "burst_std_known": predictor.burst_std_known,
        "training_bursts": len(predictor.training),
        "findings": list(predictor.findings),
    }
