"""The arrays that every metric takes, checked in one way."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["check_pair"]


def check_pair(X: ArrayLike, Z: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both as finite (n, ·) arrays with equally many rows."""
    X, Z = np.asarray(X, dtype=np.float64), np.asarray(Z, dtype=np.float64)
    if X.ndim != 2 or Z.ndim != 2 or len(X) != len(Z):
        raise ValueError(f"X and Z must be 2-d with the same number of rows; got shapes {X.shape} and {Z.shape}.")
    for name, points in (("X", X), ("Z", Z)):
        bad = np.flatnonzero(~np.isfinite(points).all(axis=1))
        if len(bad):
            raise ValueError(f"{name} must be finite; row {bad[0]} (of {len(bad)} such rows) is {points[bad[0]]}.")
    return X, Z
