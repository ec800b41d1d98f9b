"""Spikes: points of a burst that lie many burst sizes away from the others, and are set aside.

One burst of eight points cannot tell a spike from a long tail; all bursts together can. The distance of each point is
measured in sizes of the points that lie closer to the middle of its burst than itself. The tail of these distances
falls steeply when there are no spikes, for Gaussian bursts as well as for Student's t with 5 degrees of freedom; spikes
make it flat. Where it becomes flat is the distance beyond which points are set aside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import gamma

from pyloca.bursts import Bursts
from pyloca.geometry._divisors import divisors
from pyloca.geometry._sample import sample_rows
from pyloca.thresholds import (
    POINTS,
    SPIKE_AHEAD,
    SPIKE_FLAT,
    SPIKE_HALF,
    SPIKE_LEVEL,
    SPIKE_MINORITY,
    SPIKE_NEAREST,
    SPIKE_STEEPEST,
    SPIKE_WINDOW,
)

__all__ = ["SpikeRule", "distances", "find_spikes", "set_aside", "well_kept", "without_spikes"]

Array = NDArray[np.float64]

LOOKED_AT = 1 << 22  # numbers of a sample of bursts: as many as are read at once
AT_LEAST = 100  # bursts of it
PAIRS = 32  # most points of a burst that are compared with each other
STEPS = 1.02  # between the distances that are tried
ITERATIONS = 50  # of the spatial median; it needs about 5
CAUCHY_STEPS = 10
SETTLED = 0.02  # sizes that it still moves: the sampling error of a median of 50 points is 0.2
GAUSSIAN_MAD = 0.6745  # median absolute deviation of a normal variable of unit variance
VALUES = 1000  # of a feature that show whether it is rounded
TINY = 1e-150  # keeps weights of equal points finite
LARGEST = 1e100  # a value that can be squared; others are refused elsewhere, by the name of their burst


@dataclass(frozen=True)
class SpikeRule:
    """Which points of a burst are spikes. It looks at one burst at a time.

    Attributes
    ----------
    distance : float
        Points farther than this many sizes from the middle of their burst are spikes.
    scale : (D,) array or None
        Divisors of the features, for sensors of different kinds.
    least_size : float
        Added to the size of a burst, in quadrature: the rounding of the readings.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.RandomState(0).standard_normal((1, 20, 2))
    >>> points[0, 7] = 30
    >>> SpikeRule(5.0).clean(Bursts(points)).set_aside
    array([1])
    """

    distance: float
    scale: Array | None = None
    least_size: float = 0.0

    @np.errstate(over="ignore", invalid="ignore")  # as in `find_spikes`
    def clean(self, bursts: Bursts) -> Bursts:
        """Set spikes aside.

        Parameters
        ----------
        bursts : Bursts
            Returned as they are if it was already decided which of their points are set aside.

        Returns
        -------
        Bursts
            A view of the same memory.
        """
        if bursts.screened:
            return bursts
        chosen = []
        seen = bursts if self.scale is None else bursts.scaled(self.scale)
        for rows, block in _small_blocks(seen):
            burst, point = np.nonzero(distances(block, self.least_size, minority=True) > self.distance)
            chosen.append((rows[burst], point))
        return bursts.set_points_aside(*(np.concatenate(part) for part in zip(*chosen, strict=True)))


@np.errstate(over="ignore", invalid="ignore")  # values that are refused elsewhere, by the name of their burst
def find_spikes(bursts: Bursts) -> SpikeRule | None:
    """Look for spikes in a sample of the bursts.

    Parameters
    ----------
    bursts : Bursts

    Returns
    -------
    SpikeRule or None
        None if there are none, or if it was already decided which points are set aside.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import datasets
    >>> points = datasets.mushroom(n_bursts=200, n_points=20, random_state=0).bursts.to_array()
    >>> find_spikes(Bursts(points)) is None
    True
    >>> points[::10, 3] += 1.0
    >>> find_spikes(Bursts(points)).clean(Bursts(points)).set_aside.sum()
    np.int64(20)
    """
    if bursts.screened or not len(bursts):
        return None
    numbers = max(1, int(np.median(bursts.counts)) * bursts.n_features)
    sample = bursts[sample_rows(len(bursts), max(AT_LEAST, LOOKED_AT // numbers))]
    scale = _robust_scale(sample)
    if scale is not None and not np.isfinite(scale).all():
        return None  # the values are too large to be used
    sample = sample if scale is None else sample.scaled(scale)
    steepness = _steepness(sample.counts)
    distance = _flat_from(_far(sample, 0.0), steepness)
    if distance is None:
        return None
    # Rounded readings leave bursts of equal points, from which any other point is far.
    least_size = 0.5 * float(np.linalg.norm(_steps(sample)))
    if least_size > 0:
        distance = _flat_from(_far(sample, least_size), steepness)
        if distance is None:
            return None
    return SpikeRule(_flat_from(_far(sample, least_size, minority=True), steepness) or distance, scale, least_size)


def without_spikes(bursts: Bursts) -> Bursts:
    """Find spikes and set them aside.

    Parameters
    ----------
    bursts : Bursts

    Returns
    -------
    Bursts
        A view of the same memory, which is not searched again.

    Examples
    --------
    >>> from pyloca import datasets
    >>> without_spikes(datasets.mushroom(n_bursts=200, n_points=20, random_state=0).bursts).set_aside.sum()
    np.int64(0)
    """
    return set_aside(bursts, find_spikes(bursts))


def set_aside(bursts: Bursts, rule: SpikeRule | None) -> Bursts:
    """Set aside what a rule calls a spike, and let nobody look for others.

    Parameters
    ----------
    bursts : Bursts
    rule : SpikeRule or None
        None: no point is a spike.

    Returns
    -------
    Bursts
        A view of the same memory; the bursts themselves if it was decided before.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=200, n_points=20, random_state=0).bursts
    >>> bursts.screened, set_aside(bursts, None).screened
    (False, True)
    """
    if bursts.screened:
        return bursts
    return bursts.set_points_aside([], []) if rule is None else rule.clean(bursts)


def well_kept(bursts: Bursts) -> Bursts:
    """Choose the bursts whose points show a whole spectrum: one with many spikes would cut those of all.

    Parameters
    ----------
    bursts : Bursts

    Returns
    -------
    Bursts
        All, if no points were set aside; else those that have at least the median number of points.
    """
    counts = bursts.counts
    return bursts[counts >= np.median(counts)] if bursts.set_aside.any() else bursts


def distances(block: Array, least_size: float = 0.0, *, minority: bool = False) -> Array:
    """Measure how far points are from the middle of their burst, in sizes of the points that are closer.

    The points of a burst are put in order of their distance r from its middle. Those of the inner half are at 0. From
    there on, the ratio of r to the root mean square of all r before it counts; and a point is at least as far as the
    one before it, because what lies behind a gap is no closer than its edge.

    Parameters
    ----------
    block : (b, M, D) array
    least_size : float, default=0
        Added to the size of the points before, in quadrature.
    minority : bool, default=False
        Look for gaps also inside the inner half, where they count less, down to 0 at a quarter of the points: then
        a burst may have more spikes than other points. Its few points say little of its size, so that clean tails are
        longer.

    Returns
    -------
    (b, M) array
    """
    m = block.shape[1]
    half = m // 2 + 1
    out = np.zeros(block.shape[:2])
    usable = np.abs(block).max(axis=(1, 2)) <= LARGEST  # nan is not
    if half < SPIKE_HALF or not usable.any():
        return out
    radii = _radii(block if usable.all() else block[usable])
    order = np.argsort(radii, axis=1, kind="stable")
    ordered = np.take_along_axis(radii, order, axis=1)
    before = np.arange(1, m)
    sizes = np.sqrt(np.cumsum(np.square(ordered), axis=1)[:, :-1] / before + least_size**2)
    weight = np.where(before >= half, 1.0, 0.0)
    if minority and half > SPIKE_HALF:
        weight = np.where(before >= SPIKE_MINORITY, np.clip(1 - 2 * (half - before) / half, 0, 1), 0)
    real = sizes > 1e-9 * ordered[:, -1:]  # otherwise these points are equal
    ratio = np.zeros_like(ordered)
    ratio[:, 1:] = np.where(real, weight * ordered[:, 1:] / np.where(real, sizes, 1), 0)
    far = np.empty_like(ratio)
    np.put_along_axis(far, order, np.maximum.accumulate(ratio, axis=1), axis=1)
    out[usable] = far
    return out


def _robust_scale(bursts: Bursts) -> Array | None:
    """Choose divisors of the features as `feature_scale` does, but from medians, which spikes do not spoil."""
    middle, inside = (np.empty((len(bursts), bursts.n_features)) for _ in range(2))
    with np.errstate(invalid="ignore", over="ignore"):
        for rows, block in bursts.blocks():
            few = block[:, :POINTS]
            middle[rows] = np.median(few, axis=1)
            inside[rows] = np.median(np.abs(few - middle[rows, None]), axis=1) / GAUSSIAN_MAD
        spread = np.median(np.abs(middle - np.median(middle, axis=0)), axis=0) / GAUSSIAN_MAD
        usual = np.median(inside, axis=0)
    error = usual / np.sqrt(max(float(np.median(bursts.counts)), 2.0))
    level = np.median(np.abs(middle), axis=0)
    return divisors(level, spread, error, usual, bursts.feature_names, bursts.units)


def _radii(block: Array) -> Array:
    """Distances (b, M) of points from the middle of their burst."""
    points = block - block.mean(axis=1, keepdims=True)
    m, dim = points.shape[1:]
    if dim > m:  # coordinates in the span of the points
        points = np.asarray(np.linalg.qr(points.transpose(0, 2, 1), mode="r")).transpose(0, 2, 1)
    middle = _spatial_median(points) if m > PAIRS else _densest_place(points)
    return np.asarray(np.sqrt(np.square(points - middle).sum(axis=2)))


def _spatial_median(points: Array) -> Array:
    """Middle (b, 1, D) of many points, by Weiszfeld's iteration."""
    middle = np.zeros((len(points), 1, points.shape[2]))
    for _ in range(ITERATIONS):
        radii = np.sqrt(np.square(points - middle).sum(axis=2))
        usual = np.median(radii, axis=1, keepdims=True)
        moved = _weighted_mean(points, 1 / np.maximum(radii, np.maximum(1e-3 * usual, TINY)))
        step, middle = np.sqrt(np.square(moved - middle).sum(axis=(1, 2))), moved
        if np.all(step <= SETTLED * usual[:, 0]):
            break
    return middle


def _densest_place(points: Array) -> Array:
    """Middle (b, 1, D) of few points, of which most may be spikes: from the tightest quarter, by Cauchy's weights."""
    squares = np.square(points[:, :, None] - points[:, None]).sum(axis=3)  # (b, M, M)
    quarter = max(SPIKE_MINORITY, points.shape[1] // 4 + 1) - 1
    reach = np.partition(squares, quarter, axis=2)[:, :, quarter]
    best = np.argmin(reach, axis=1)[:, None]
    middle = np.take_along_axis(points, best[:, :, None], axis=1)
    reach = np.take_along_axis(reach, best, axis=1)
    for _ in range(CAUCHY_STEPS):
        middle = _weighted_mean(points, 1 / np.maximum(np.square(points - middle).sum(axis=2) + reach, TINY))
    return middle


def _weighted_mean(points: Array, weights: Array) -> Array:
    return np.asarray(np.einsum("bm,bmd->bd", weights / weights.sum(axis=1, keepdims=True), points)[:, None])


def _far(bursts: Bursts, least_size: float, *, minority: bool = False) -> Array:
    """Distances of the points of all bursts beyond the nearest that counts, ascending."""
    found = [distances(block, least_size, minority=minority) for _, block in _small_blocks(bursts)]
    return np.sort(np.concatenate([far[far > SPIKE_NEAREST] for far in found]))


def _small_blocks(bursts: Bursts) -> Iterator[tuple[NDArray[np.int64], Array]]:
    """Blocks whose pairs of points fit into memory."""
    return bursts.blocks(LOOKED_AT // PAIRS)


def _steepness(counts: NDArray[np.int64]) -> float:
    """Exponent of the tail of clean distances: in one dimension, half of M points have M / 2 degrees of freedom."""
    return float(min(SPIKE_STEEPEST, int(np.median(counts)) // 2))


def _flat_from(far: Array, steepness: float) -> float | None:
    """Find the distance from which on the tail is flat; None when it is steep to its end.

    Under a power law of exponent a, a·log(x / t) of the points x > t is exponential, so the sum over n of them, which
    is Hill's statistic, has the gamma distribution of shape n.
    """
    if not len(far):
        return None
    tried = SPIKE_NEAREST * STEPS ** np.arange(np.log(far[-1] / SPIKE_NEAREST) / np.log(STEPS))
    first, after = np.searchsorted(far, tried), np.searchsorted(far, SPIKE_WINDOW * tried)
    beyond = len(far) - first
    near = (after - first) / beyond
    tail = np.cumsum(np.log(far[::-1]))[beyond - 1] - beyond * np.log(tried)
    flat = (near <= SPIKE_FLAT) & (gamma.logsf(steepness * tail, beyond) < np.log(SPIKE_LEVEL))
    if not flat.any():
        return None
    # A little farther out the tail may be emptier still.
    ahead = np.minimum(np.searchsorted(tried, SPIKE_AHEAD * tried), len(tried))
    emptiest = np.array([near[i:j].min() for i, j in enumerate(ahead)])
    good = flat & (near <= 1.5 * emptiest + 0.002)
    return float(tried[np.argmax(good)]) if good.any() else None


def _steps(bursts: Bursts) -> Array:
    """Step of each feature that is rounded to few different values, (D,); 0 where it is not."""
    all_points = (block.reshape(-1, block.shape[2]) for _, block in bursts.blocks())
    some = np.concatenate([points[sample_rows(len(points), VALUES)] for points in all_points])
    values = np.sort(some[sample_rows(len(some), VALUES)], axis=0)
    between = np.diff(values, axis=0)
    rounded = (between == 0).mean(axis=0) > 0.5
    steps = np.zeros(values.shape[1])
    for feature in np.flatnonzero(rounded):
        positive = between[between[:, feature] > 0, feature]
        steps[feature] = np.median(positive) if len(positive) else 0.0
    return steps
