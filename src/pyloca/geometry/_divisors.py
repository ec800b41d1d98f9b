"""The number by which each feature is divided, from its spread between bursts and inside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyloca.thresholds import QUIET, SENSOR_GAP, SENSORS, SILENT, SPREAD_GAP

__all__ = ["divisors"]

Array = NDArray[np.float64]


def divisors(
    level: Array,
    spread: Array,
    error: Array,
    inside: Array,
    names: Sequence[str] | None,
    units: Sequence[str] | None,
) -> Array | None:
    """Choose the divisors as `feature_scale` describes.

    Parameters
    ----------
    level : (D,) array
        Size of the values themselves, for their rounding.
    spread, error : (D,) array
        Standard deviation of the burst means, and what sampling alone would leave of it.
    inside : (D,) array
        Standard deviation inside a burst.
    names, units : sequence of D str, optional

    Returns
    -------
    (D,) array or None
    """
    if not np.isfinite(spread).all() or not np.isfinite(inside).all():
        return None  # the pass over the data says which burst and which sensor
    rounding = 64 * np.finfo(float).eps * level
    varies = spread > rounding
    signal = varies & (spread > SILENT * error)
    if signal.sum() < 2 or not _of_different_kinds(spread[signal], names, units):
        return None
    scale = np.ones_like(spread)
    scale[signal] = spread[signal]
    # A burst is this large in a feature with a signal, once that is scaled.
    usual = float(np.median(inside[signal] / spread[signal])) or 1.0
    noise = ~signal & (inside > rounding)
    scale[noise] = QUIET * inside[noise] / usual
    return scale


def _of_different_kinds(spread: Array, names: Sequence[str] | None, units: Sequence[str] | None) -> bool:
    if units is not None and len({unit for unit in units if unit}) > 1:
        return True
    if names is not None and len(names) <= SENSORS and (units is None or not all(units)):
        return True  # sensors of a table, not known to measure the same quantity
    ordered = np.sort(spread)
    if ordered[-1] > SENSOR_GAP * ordered[0] and len(ordered) <= SENSORS:
        return True
    return bool(np.max(ordered[1:] / ordered[:-1]) > SPREAD_GAP)
