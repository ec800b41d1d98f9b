"""The scale of each feature, by which it is divided so that units do not decide the shape of a burst."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.geometry._columns import look_at_columns
from pyloca.geometry._divisors import divisors
from pyloca.geometry._statistics import BurstStatistics

__all__ = ["feature_scale"]

Array = NDArray[np.float64]


def feature_scale(data: Bursts | BurstStatistics) -> Array | None:
    """Choose the number by which each feature is divided.

    The coordinates of LOCA do not depend on a linear change of the measurements, but how accurately they are found
    does. Each feature is divided by the standard deviation of its burst means when the features are of different
    kinds: when their units differ, when a table names a few of them, or when their spreads differ by more than those
    of one kind do. Otherwise all features keep their relative size, as the pixels of an image should.

    A column that is not a measurement is left out (`ColumnLook.left_out`): its divisor is infinite. A faint pixel, in
    which bursts differ only by sampling, is made small.

    Parameters
    ----------
    data : Bursts or BurstStatistics
        The measurements; at most 1000 bursts are read.

    Returns
    -------
    (D,) array or None
        The divisors, infinite for features that are left out; None if all features keep their units.

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
    look = look_at_columns(data)
    if not look.finite:
        return None  # the pass over the data says which burst and which sensor
    used = np.ones(data.n_features, dtype=bool)
    used[list(look.left_out)] = False
    level = np.abs(look.means).max(axis=0)
    error = np.where(look.signal & used, 0.0, np.inf)  # what is left out is not to decide about the others
    scale = divisors(level, look.spread, error, look.inside, data.feature_names, data.units)
    if used.all():
        return scale
    return np.where(used, 1.0 if scale is None else scale, np.inf)
