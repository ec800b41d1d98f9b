"""A check for columns that do not measure the state: sensors that do not follow the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.findings._diagnostics import Finding
from pyloca.geometry import BurstStatistics, SheetDistance, look_at_columns, nearest, nearest_rows, sample_rows
from pyloca.thresholds import ALONE, FEW, FOLLOWS, LEVERAGE, NEIGHBORS, RECHECKED, SILENT, UNEXPLAINED

__all__ = ["foreign_columns", "foreign_sensors", "unexplained_steps"]

Array = NDArray[np.float64]


def unexplained_steps(statistics: BurstStatistics) -> Array:
    """Compute how little of a feature's steps between neighbours the bursts explain.

    A step Δ between the means of neighbouring bursts lies in the tangent space: Δ ≈ Aᵀ c. With c from all features but
    one, that one should change by its part of Aᵀ c. It is a regression with one row per feature, so the error of each
    row without itself is e / (1 − h), with e the residual and h the leverage.

    Parameters
    ----------
    statistics : BurstStatistics

    Returns
    -------
    (D,) array
        ``Σ |Δ − predicted| / Σ (|Δ| + |predicted|)`` over steps beyond sampling: 0 for a sensor that follows the
        others, 1 for one unlike them. nan where too few steps can be judged, as when no other feature shows
        a direction; and where bursts predict more than the means change, since a sensor that bends back and forth
        between neighbours does that, and one that changes by itself the opposite.

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> statistics = BurstStatistics.from_bursts(bursts, 2)
    >>> unexplained_steps(statistics).shape
    (2,)
    """
    return _steps(statistics)[0]


def _steps(statistics: BurstStatistics, *, own_sheet: bool = False) -> tuple[Array, NDArray[np.bool_]]:
    """Compute the same, and which features are nan because they bend between neighbours, (D,) each.

    `own_sheet`: neighbours are those that can be reached along the tangents, and not those with the nearest means,
    which may lie on the next turn of a coil.
    """
    dim, k = statistics.n_features, statistics.intrinsic_dim
    out, bending = np.full(dim, np.nan), np.zeros(dim, dtype=bool)
    used = np.flatnonzero(statistics.means.std(axis=0) > 0)
    if len(statistics) < FEW or len(used) <= k:
        return out, bending
    some = statistics[sample_rows(len(statistics), RECHECKED)]
    spread = statistics.means.std(axis=0)[used]
    means, tangents = some.means[:, used] / spread, some.tangents[:, :, used] / spread
    count = min(NEIGHBORS, len(some) - 1)
    by_means = nearest_rows(means, means, count + 1)[:, 1:]  # (n, neighbours)
    near = nearest(SheetDistance(some), count)[0] if own_sheet else by_means
    basis = np.linalg.svd(tangents, full_matrices=False)[2]  # (n, k, D)
    sampling = np.sqrt(np.square(tangents).sum(axis=1).mean(axis=0) / np.median(some.counts))  # (D,)
    judged, wrong, moved, foreseen = (np.zeros(len(used)) for _ in range(4))
    for i in range(len(some)):  # one burst at a time: pictures have many features
        steps = means[near[i]] - means[i]  # (neighbours, D)
        rest = 1 - np.square(basis[i]).sum(axis=0)  # 1 − h
        error = (steps - (steps @ basis[i].T) @ basis[i]) / np.maximum(rest, LEVERAGE)
        predicted = np.abs(steps - error)
        np.abs(steps, out=steps)
        counts = (rest > LEVERAGE) & (np.maximum(steps, predicted) > SILENT * sampling)
        judged += counts.sum(axis=0)
        wrong += np.where(counts, np.abs(error), 0).sum(axis=0)
        moved += np.where(counts, steps, 0).sum(axis=0)
        foreseen += np.where(counts, predicted, 0).sum(axis=0)
    enough = judged > ALONE * len(some) * count
    bending[used] = enough & (moved <= foreseen)
    with np.errstate(invalid="ignore"):
        out[used] = np.where(enough & (moved > foreseen), wrong / (moved + foreseen), np.nan)
    return out, bending


def foreign_sensors(statistics: BurstStatistics) -> Finding | None:
    """Check for sensors that change between bursts by themselves, unlike what the bursts say.

    Parameters
    ----------
    statistics : BurstStatistics

    Returns
    -------
    Finding or None
        "columns", or None when nothing is wrong, or when so many sensors do not follow each other that none can be
        blamed.

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> statistics = BurstStatistics.from_bursts(bursts, 2)
    >>> foreign_sensors(statistics) is None
    True
    """
    unexplained, bending = _steps(statistics)
    if np.any(unexplained > UNEXPLAINED):
        # On a coil, the sensor that tells one turn from the next changes by itself between the nearest means, and not
        # between neighbours on the curve. A foreign sensor changes by itself between any.
        unexplained = np.fmin(unexplained, _steps(statistics, own_sheet=True)[0])
    features = np.flatnonzero(unexplained > UNEXPLAINED)
    judged = int(np.isfinite(unexplained).sum())
    varying = int((statistics.means.std(axis=0) > 0).sum())
    if not len(features) or 2 * len(features) >= varying or judged == 0:
        return None
    others = np.delete(unexplained, features)
    if np.isfinite(others).any():
        if np.nanmax(others) > FOLLOWS:
            return None  # others do not follow each other either, as where the measurement bends between neighbours
    elif bending.any():
        return None  # all others that can be looked at bend between neighbours, and foresee no steps
    names = _names(features.tolist(), statistics)
    return Finding(
        "columns",
        f"{', '.join(names)}: from burst to burst this changes by itself, not as the bursts of the other sensors say "
        f"({unexplained[features].min():.0%} of its steps between neighbours are unexplained). It does not measure "
        "the same state: a room temperature, a clock, or a sensor read at another time. "
        f"Leave it out: exclude={_exclude(features.tolist(), statistics)}, --exclude in the shell.",
    )


def foreign_columns(data: Bursts | BurstStatistics, *, scaled: bool = True) -> Finding | None:
    """Check for clocks, labels and silent columns that were kept, once something is wrong with a fit.

    Parameters
    ----------
    data : Bursts or BurstStatistics
        As the networks see them: columns that were left out are zero.
    scaled : bool, default=True
        Whether ``feature_scale="auto"`` was used already.

    Returns
    -------
    Finding or None
        "columns", or None when nothing is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import Bursts, datasets
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts.to_array()
    >>> label = np.broadcast_to(np.arange(200.0)[:, None, None], (200, 20, 1))
    >>> foreign_columns(Bursts(np.concatenate([bursts, label], axis=2))).name
    'columns'
    """
    look = look_at_columns(data)
    features = [j for j, kind in look.suspects.items() if kind != "constant"]
    if not features or not look.signal.any():
        return None
    return Finding(
        "columns",
        f"some columns do not measure the state: {look.listed(features, data)}. Leave them out: "
        f"exclude={_exclude(features, data)}, --exclude in the shell."
        + ("" if scaled else " feature_scale='auto' leaves out what is certain."),
    )


def _names(features: list[int], data: Bursts | BurstStatistics) -> list[str]:
    return [f"feature {j}" if data.feature_names is None else repr(data.feature_names[j]) for j in features]


def _exclude(features: list[int], data: Bursts | BurstStatistics) -> str:
    return "[…]" if data.feature_names is None else f"[{', '.join(_names(features, data))}]"
