"""The arrays that every metric takes, checked in one way."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import LARGEST, as_numbers, brief

__all__ = ["check_pair", "check_points"]


def check_pair(X: ArrayLike, Z: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return both as finite (n, ·) arrays with equally many rows."""
    X, Z = as_numbers("X", X), as_numbers("Z", Z)
    if X.ndim != 2 or Z.ndim != 2 or len(X) != len(Z):
        raise ValueError(f"X and Z must be 2-d with the same number of rows; got shapes {X.shape} and {Z.shape}.")
    for name, points in (("X", X), ("Z", Z)):
        bad = np.flatnonzero(~(np.abs(points) <= LARGEST).all(axis=1))  # nan is not
        if len(bad):
            raise ValueError(
                f"{name} must be finite, up to {LARGEST:g}; row {bad[0]} (of {len(bad)} such rows) is "
                f"{brief(points[bad[0]].tolist())}."
            )
    return X, Z


def check_points(Z: ArrayLike, columns: int) -> NDArray[np.float64]:
    """Return what a map of `columns` coordinates can be applied to."""
    points = as_numbers("Z", Z)
    if points.ndim < 1 or points.shape[-1] != columns or not np.isfinite(points).all():
        raise ValueError(f"Z has shape {points.shape}; expected finite numbers (n, {columns}).")
    return points
