"""The scale of each feature, by which it is divided so that units do not decide the shape of a burst."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.geometry._divisors import divisors
from pyloca.geometry._sample import sample_rows
from pyloca.geometry._spikes import without_spikes
from pyloca.geometry._statistics import BurstStatistics
from pyloca.thresholds import POINTS, PROBE

__all__ = ["feature_scale"]

Array = NDArray[np.float64]


def feature_scale(data: Bursts | BurstStatistics) -> Array | None:
    """Choose the number by which each feature is divided.

    The coordinates of LOCA do not depend on a linear change of the measurements, but how accurately they are found
    does. Each feature is divided by the standard deviation of its burst means when the features are of different
    kinds: when their units differ, when a table names a few of them, or when their spreads differ by more than those
    of one kind do. Otherwise all features keep their relative size, as the pixels of an image should. A feature in
    which bursts differ only by sampling carries no information and is made small instead.

    Parameters
    ----------
    data : Bursts or BurstStatistics
        The measurements; at most 1000 bursts are read.

    Returns
    -------
    (D,) array or None
        The divisors; None if all features keep their units.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import datasets
    >>> from pyloca.bursts import Bursts
    >>> data = datasets.mushroom(n_bursts=100, n_points=10, random_state=0)
    >>> feature_scale(data.bursts) is None
    True
    >>> in_other_units = Bursts(np.asarray(list(data.bursts)) * [1.0, 1e6])
    >>> scale = feature_scale(in_other_units)
    >>> bool(1e5 < scale[1] / scale[0] < 1e7)
    True
    """
    with np.errstate(invalid="ignore", over="ignore"):
        means, inside, counts = _look(data)
        spread = means.std(axis=0)
    error = inside / np.sqrt(max(counts, 2.0))
    return divisors(np.abs(means).max(axis=0), spread, error, inside, data.feature_names, data.units)


def _look(data: Bursts | BurstStatistics) -> tuple[Array, Array, float]:
    """Return means (n, D) of some bursts, the standard deviation inside a burst (D,), and the median count."""
    if isinstance(data, BurstStatistics):
        return data.means, np.sqrt(np.square(data.tangents).sum(axis=1).mean(axis=0)), float(np.median(data.counts))
    sample = without_spikes(data)[sample_rows(len(data), PROBE)]
    means, variances = (np.empty((len(sample), sample.n_features)) for _ in range(2))
    for rows, block in sample.blocks():
        means[rows], variances[rows] = block.mean(axis=1), block[:, :POINTS].var(axis=1)
    return means, np.sqrt(variances.mean(axis=0)), float(np.median(sample.counts))
