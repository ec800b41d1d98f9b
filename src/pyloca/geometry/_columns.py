"""Columns that do not measure the state: constants, labels, clocks, and what varies inside bursts only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.geometry._sample import sample_rows
from pyloca.geometry._spikes import without_spikes
from pyloca.geometry._statistics import BurstStatistics
from pyloca.thresholds import POINTS, PROBE, SENSORS, SILENT, TICKS, TREND

__all__ = ["ColumnLook", "look_at_columns"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

EPS = np.finfo(np.float64).eps
REASONS = {
    "constant": "constant",
    "between": "varies between bursts but never inside one, as a label, a set point or a slow sensor does",
    "clock": "grows by the same steps in every burst and unlike any other column, as a time stamp or a counter does",
    "inside": "varies inside bursts but not between them, as noise, a dither or a clock that restarts does",
}


@dataclass(frozen=True)
class ColumnLook:
    """How each feature varies between bursts and inside them, in a sample of the bursts.

    Attributes
    ----------
    means : (n, D) array
        Burst means.
    inside : (D,) array
        Standard deviation inside a burst, root mean square over bursts.
    points : float
        Median number of points of a burst; infinite where covariances are exact.
    still, constant : (D,) array of bool
        Features that are constant inside every burst, and those that never change, to rounding; of all bursts.
    spiky : (D,) array of bool
        Features whose burst medians differ by more than sampling explains, while single points far off hide it from the
        means.
    unlike_ticks : (D,) array
        Part of the variance inside bursts that is left when points are taken to follow each other by one step, the
        same in all bursts. nan when the order of points is not known.
    trend : (D,) array
        Part of that variance which the order of the points explains, with a step of its own for each burst, in units
        of what it explains by chance. nan as above.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.RandomState(0)
    >>> sensors = random.uniform(size=(50, 1, 2)) + 0.01 * random.standard_normal((50, 9, 2))
    >>> ticks = np.tile(np.arange(9.0), (50, 1))[:, :, None]
    >>> look_at_columns(Bursts(np.concatenate([sensors, ticks], axis=2))).left_out
    {2: 'inside'}
    """

    means: Array
    inside: Array
    points: float
    still: Mask
    constant: Mask
    spiky: Mask
    unlike_ticks: Array
    trend: Array

    @cached_property
    def spread(self) -> Array:
        """Standard deviation of the burst means, (D,)."""
        with np.errstate(invalid="ignore", over="ignore"):  # what cannot be squared is refused later, by name
            return np.asarray(self.means.std(axis=0))

    @cached_property
    def rounding(self) -> Array:
        """Variation that rounding explains, (D,)."""
        return _rounding(self.means)

    @property
    def finite(self) -> bool:
        """Whether all that was read are finite numbers."""
        return bool(np.isfinite(self.spread).all() and np.isfinite(self.inside).all())

    @cached_property
    def signal(self) -> Mask:
        """Features in which burst means differ by more than sampling explains, (D,)."""
        sampling = self.inside / np.sqrt(max(self.points, 2.0))
        return np.asarray((self.spread > self.rounding) & ((self.spread > SILENT * sampling) | self.spiky))

    @cached_property
    def suspects(self) -> dict[int, str]:
        """Features that do not measure the state, or may not, by position: "constant", "between", "clock", "inside"."""
        if not self.finite:
            return {}
        ticking = ~self.still & (self.unlike_ticks <= TICKS) & (self.inside > self.rounding)
        kinds = {
            "constant": self.constant,
            "between": self.still & ~self.constant,
            "clock": ticking & self.signal,
            "inside": ~self.still & ~self.signal & (self.inside > self.rounding),
        }
        return dict(sorted((int(j), kind) for kind, mask in kinds.items() for j in np.flatnonzero(mask)))

    @cached_property
    def left_out(self) -> dict[int, str]:
        """Those of the suspects about which there is no doubt; none when no other feature has a signal."""
        sound = self.signal.copy()
        sound[list(self.suspects)] = False
        if not sound.any():
            constants = {j: kind for j, kind in self.suspects.items() if kind == "constant"}
            return constants if len(constants) < len(self.still) else {}
        # Where other sensors follow the order of the points too, as in a scan or in an array, so may any sensor.
        scanned = not np.all(self.trend[sound] <= TREND)
        # A faint pixel is noise by itself, but a thousand of them show something together.
        usual = float(np.median(self.inside[sound]))
        faint = len(self.still) > SENSORS
        return {
            j: kind
            for j, kind in self.suspects.items()
            if not (kind == "clock" and scanned)
            and not (kind == "inside" and faint and self.inside[j] <= SILENT * usual)
        }

    def listed(self, features: Iterable[int], data: Bursts | BurstStatistics) -> str:
        """Say of each of these suspects what it is.

        Parameters
        ----------
        features : iterable of int
        data : Bursts or BurstStatistics
            For the names of the features.

        Returns
        -------
        str
        """
        of: dict[str, list[str]] = {}
        for j in features:
            name = f"feature {j}" if data.feature_names is None else repr(data.feature_names[j])
            of.setdefault(self.suspects[j], []).append(name)
        return "; ".join(f"{_some(names)} ({REASONS[kind]})" for kind, names in of.items())


def _some(names: list[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def look_at_columns(data: Bursts | BurstStatistics) -> ColumnLook:
    """Look at how each feature varies, in at most 1000 bursts; what seems constant is looked at in all of them.

    Parameters
    ----------
    data : Bursts or BurstStatistics

    Returns
    -------
    ColumnLook

    Examples
    --------
    >>> from pyloca import datasets
    >>> look_at_columns(datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts).left_out
    {}
    """
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        return _look_at_statistics(data) if isinstance(data, BurstStatistics) else _look_at_bursts(data)


def _look_at_statistics(data: BurstStatistics) -> ColumnLook:
    inside = np.sqrt(np.square(data.tangents).sum(axis=1).mean(axis=0))
    longest = np.abs(data.tangents).max(axis=(0, 1))
    # An SVD leaves rounding of the other features in one that has no tangent.
    still = longest <= 64 * EPS * longest.max()
    constant = still & (np.ptp(data.means, axis=0) <= _rounding(data.means))
    unknown = np.full(len(inside), np.nan)
    no = np.zeros(len(inside), dtype=bool)
    return ColumnLook(data.means, inside, float(np.median(data.counts)), still, constant, no, unknown, unknown)


def _look_at_bursts(data: Bursts) -> ColumnLook:
    sample = without_spikes(data)[sample_rows(len(data), PROBE)]
    dim = sample.n_features
    means, variances = (np.empty((len(sample), dim)) for _ in range(2))
    squares, expected, steps, slopes = (np.zeros(dim) for _ in range(4))
    still, weights = np.ones(dim, dtype=bool), 0.0
    for rows, block in sample.blocks():
        few = block[:, :POINTS]
        means[rows], variances[rows] = block.mean(axis=1), few.var(axis=1)
        still &= _still(few)
        m = few.shape[1]
        if m < 2:
            continue
        order = np.arange(m) - (m - 1) / 2
        along = np.einsum("m,bmd->bd", order, few - few[:, :1])
        inside = m * variances[rows].sum(axis=0)
        squares += inside
        expected += inside / (m - 1)  # by chance the order explains one of M − 1 degrees of freedom
        slopes += np.square(along).sum(axis=0) / (order @ order)
        steps += along.sum(axis=0)
        weights += len(few) * float(order @ order)
    constant = still & (np.ptp(means, axis=0) <= _rounding(means))
    if still.any() and (len(sample) < len(data) or int(sample.counts.max()) > POINTS):
        still, constant = _in_all(data, np.flatnonzero(still), means[0])
    inside, points = np.sqrt(variances.mean(axis=0)), float(np.median(sample.counts))
    silent = ~still & (means.std(axis=0) <= SILENT * inside / np.sqrt(max(points, 2.0)))
    return ColumnLook(
        means,
        inside,
        points,
        still,
        constant,
        _spiky(sample, np.flatnonzero(silent)),
        1 - np.square(steps) / weights / squares,
        slopes / expected,
    )


def _in_all(data: Bursts, places: NDArray[np.int64], first: Array) -> tuple[Mask, Mask]:
    """Which of these features are constant inside every burst, and which of them never differ from `first`."""
    still, constant = (np.zeros(data.n_features, dtype=bool) for _ in range(2))
    still[places] = constant[places] = True
    for _, block in data.blocks():
        seen = block[:, :, places]
        still[places] &= _still(seen)
        constant[places] &= (np.abs(seen - first[places]) <= _rounding(seen.reshape(-1, len(places)))).all(axis=(0, 1))
    return still, still & constant


def _spiky(sample: Bursts, places: NDArray[np.int64]) -> Mask:
    """Which of these features have medians that differ between bursts by more than sampling."""
    out = np.zeros(sample.n_features, dtype=bool)
    if not len(places):
        return out
    middles, widths = (np.empty((len(sample), len(places))) for _ in range(2))
    for rows, block in sample.blocks():
        few = block[:, :POINTS, places]
        middles[rows] = np.median(few, axis=1)
        # the sampling error of a median, from the median deviation of its points, both as for normal points
        widths[rows] = np.median(np.abs(few - middles[rows, None]), axis=1) * np.sqrt(np.pi / 2 / few.shape[1])
    between = np.median(np.abs(middles - np.median(middles, axis=0)), axis=0)
    out[places] = between > SILENT * np.median(widths, axis=0)
    return out


def _still(block: Array) -> Mask:
    """Whether each feature is constant inside all bursts of a block (b, M, D), to rounding."""
    return np.asarray((np.ptp(block, axis=1) <= 64 * EPS * np.abs(block).max(axis=1)).all(axis=0))


def _rounding(values: Array) -> Array:
    return np.asarray(64 * EPS * np.abs(values).max(axis=0))
