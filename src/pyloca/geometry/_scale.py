"""One number per feature to divide it by, so that units do not decide what a burst looks like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.geometry._sample import sample_rows
from pyloca.geometry._statistics import BurstStatistics
from pyloca.thresholds import POINTS, PROBE, QUIET, SENSOR_GAP, SENSORS, SILENT, SPREAD_GAP

__all__ = ["feature_scale"]

Array = NDArray[np.float64]


def feature_scale(data: Bursts | BurstStatistics) -> Array | None:
    """What to divide each feature by, (D,); None when all features may keep their units.

    The coordinates of LOCA do not depend on a linear change of the measurements, but how well they are found does.
    A feature is divided by the standard deviation of the burst means in it when features are of different kinds: when
    they have different units, when a table names a few of them, or when their spreads differ by more than those of one
    kind do. Otherwise all keep their relative size, as the pixels of an image should. A feature in which bursts differ
    no more than by sampling tells nothing, and is made small instead.

    Parameters
    ----------
    data : Bursts or BurstStatistics

    Returns
    -------
    (D,) array, or None
    """
    with np.errstate(invalid="ignore", over="ignore"):
        means, inside, counts = _look(data)
        spread = means.std(axis=0)
    if not np.isfinite(spread).all() or not np.isfinite(inside).all():
        return None  # the pass over the data says which burst and which sensor
    rounding = 64 * np.finfo(float).eps * np.abs(means).max(axis=0)
    varies = spread > rounding
    signal = varies & (spread > SILENT * inside / np.sqrt(max(counts, 2.0)))
    if signal.sum() < 2 or not _of_different_kinds(spread[signal], data.feature_names, data.units):
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
        return True  # a table of sensors, of which nobody said that they measure the same thing
    ordered = np.sort(spread)
    if ordered[-1] > SENSOR_GAP * ordered[0] and len(ordered) <= SENSORS:
        return True
    return bool(np.max(ordered[1:] / ordered[:-1]) > SPREAD_GAP)


def _look(data: Bursts | BurstStatistics) -> tuple[Array, Array, float]:
    """Means (n, D) of some bursts, standard deviation inside a burst (D,), and points of a burst."""
    if isinstance(data, BurstStatistics):
        return data.means, np.sqrt(np.square(data.tangents).sum(axis=1).mean(axis=0)), float(np.median(data.counts))
    sample = data[sample_rows(len(data), PROBE)]
    means, variances = (np.empty((len(sample), sample.n_features)) for _ in range(2))
    for rows, block in sample.blocks():
        means[rows], variances[rows] = block.mean(axis=1), block[:, :POINTS].var(axis=1)
    return means, np.sqrt(variances.mean(axis=0)), float(np.median(sample.counts))
