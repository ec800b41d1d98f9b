"""Spikes: points of a burst that lie many burst sizes away from the others, and are set aside.

One burst of eight points cannot tell a spike from a long tail; all bursts together can. The distance of each point is
measured in sizes of the points that lie closer to the middle of its burst than itself, and a size that only few points
tell is drawn towards that of the other bursts. The tail of these distances falls steeply when there are no spikes, for
Gaussian bursts as well as for Student's t with 5 degrees of freedom; spikes make it flat. Where it becomes flat is the
distance beyond which points are set aside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, gamma

from pyloca._arguments import LARGEST
from pyloca.bursts import Bursts, map_parts
from pyloca.geometry._divisors import divisors
from pyloca.geometry._far_points import (
    GAUSSIAN_MAD,
    PAIRS,
    Usual,
    distances,
    far_sorted,
    radii_of,
    usual_size,
)
from pyloca.geometry._keep import KeepParts
from pyloca.geometry._sample import sample_rows
from pyloca.thresholds import (
    POINTS,
    SPIKE_AHEAD,
    SPIKE_FLAT,
    SPIKE_GUARD,
    SPIKE_HALF,
    SPIKE_LEVEL,
    SPIKE_NEAREST,
    SPIKE_STEEPEST,
    SPIKE_WIDEST,
    SPIKE_WINDOW,
)

__all__ = ["SpikeRule", "find_spikes", "set_aside", "well_kept", "without_spikes"]

Array = NDArray[np.float64]

LOOKED_AT = 1 << 22  # numbers of a sample of bursts: as many as are read at once
AT_LEAST = 100  # bursts of it
STEPS = 1.02  # between the distances that are tried
VALUES = 1000  # of a feature that show whether it is rounded


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
    usual_size, usual_worth : float
        Size of the inner half of most bursts, and how many points of the burst itself that is worth.

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
    usual_size: float = 0.0
    usual_worth: float = 0.0

    @np.errstate(over="ignore", invalid="ignore")  # as in `find_spikes`
    def clean(self, bursts: Bursts, keep: KeepParts | None = None) -> Bursts:
        """Set spikes aside.

        Parameters
        ----------
        bursts : Bursts
            Returned as they are if it was already decided which of their points are set aside.
        keep : KeepParts, optional
            As for `BurstStatistics.from_bursts`.

        Returns
        -------
        Bursts
            A view of the same memory.
        """
        if bursts.screened:
            return bursts
        seen = bursts if self.scale is None else bursts.scaled(self.scale)
        parts = map_parts(seen, self.find, keep=None if keep is None else keep.of("spikes"))
        chosen = [(rows[found["bursts"]], found["points"]) for rows, found in parts]
        return bursts.set_points_aside(*(np.concatenate(part) for part in zip(*chosen, strict=True)))

    @np.errstate(over="ignore", invalid="ignore")
    def find(self, bursts: Bursts) -> dict[str, NDArray[np.int64]]:
        """Find spikes in bursts that are divided by `scale`.

        Parameters
        ----------
        bursts : Bursts

        Returns
        -------
        dict of str to array
            "bursts" and "points": positions of the bursts, and of the points in them.
        """
        usual, chosen = (self.usual_size, self.usual_worth), []
        for rows, block in _small_blocks(bursts):
            far = distances(block, self.least_size, usual, minority=True)
            burst, point = np.nonzero(far > self.distance)
            chosen.append((rows[burst], point))
        where = (np.concatenate(part) for part in zip(*chosen, strict=True))
        return dict(zip(("bursts", "points"), where, strict=True))


@np.errstate(over="ignore", invalid="ignore")  # values that are refused elsewhere, by the name of their burst
def find_spikes(bursts: Bursts, *, guard: bool = False) -> SpikeRule | None:
    """Look for spikes in a sample of the bursts.

    Parameters
    ----------
    bursts : Bursts
    guard : bool, default=False
        Return a rule for other bursts also when there are no spikes: with a distance that no point of the sample
        comes near.

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
    # Rounded readings leave bursts of equal points, from which any other point is far.
    least_size = 0.5 * float(np.linalg.norm(_steps(sample)))
    radii = _sorted_radii(sample, rounded=least_size > 0)
    if not radii:
        return None  # the bursts are too short
    usual = usual_size(radii)
    steepness = _steepness(sample.counts, usual)
    distance = _flat_from(_far(radii, least_size, usual), steepness)
    if distance is None and not guard:
        return None
    far = _far(radii, least_size, usual, minority=True)
    if distance is None:
        distance = SPIKE_GUARD * (float(far[-1]) if len(far) else SPIKE_NEAREST)
    else:
        distance = _flat_from(far, steepness) or distance
    return SpikeRule(distance, scale, least_size, *usual)


def without_spikes(bursts: Bursts, keep: KeepParts | None = None) -> Bursts:
    """Find spikes and set them aside.

    Parameters
    ----------
    bursts : Bursts
    keep : KeepParts, optional
        As for `BurstStatistics.from_bursts`.

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
    return set_aside(bursts, find_spikes(bursts), keep)


def set_aside(bursts: Bursts, rule: SpikeRule | None, keep: KeepParts | None = None) -> Bursts:
    """Set aside what a rule calls a spike, and turn the search for others off.

    Parameters
    ----------
    bursts : Bursts
    rule : SpikeRule or None
        None: no point is a spike.
    keep : KeepParts, optional
        As for `BurstStatistics.from_bursts`.

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
    return bursts.set_points_aside([], []) if rule is None else rule.clean(bursts, keep)


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


def _sorted_radii(bursts: Bursts, *, rounded: bool) -> list[Array]:
    """Distances (b, M) of points from the middle of their burst, ascending, of the bursts whose values can be used."""
    long = bursts[bursts.counts // 2 + 1 >= SPIKE_HALF]
    blocks = (block[np.abs(block).max(axis=(1, 2)) <= LARGEST] for _, block in _small_blocks(long))
    return [np.sort(radii_of(block, rounded=rounded), axis=1) for block in blocks if len(block)]


def _far(radii: list[Array], least_size: float, usual: Usual, *, minority: bool = False) -> Array:
    """Distances beyond the nearest that counts, ascending; points behind the same gap of a burst count once."""
    found = [np.zeros(0)]
    for ordered in radii:
        far = far_sorted(ordered, least_size, usual, minority=minority)
        found.append(far[(np.diff(far, axis=1, prepend=0) > 0) & (far > SPIKE_NEAREST)])
    return np.sort(np.concatenate(found))


def _small_blocks(bursts: Bursts) -> Iterator[tuple[NDArray[np.int64], Array]]:
    """Blocks whose pairs of points fit into memory."""
    return bursts.blocks(LOOKED_AT // PAIRS)


def _steepness(counts: NDArray[np.int64], usual: Usual) -> float:
    """Exponent of the tail of clean distances: in one dimension, half of M points have M / 2 degrees of freedom."""
    return float(min(SPIKE_STEEPEST, np.median(counts) // 2 + usual[1]))


def _flat_from(far: Array, steepness: float) -> float | None:
    """Find the distance from which on the tail is flat; None when it is steep to its end.

    Under a power law of exponent a, a·log(x / t) of the points x > t is exponential, so the sum over n of them, which
    is Hill's statistic, has the gamma distribution of shape n. It sees spikes that are far away. Nearer ones leave a
    gap: the number of points x < c t is binomial, with probability 1 − c⁻ᵃ.
    """
    if not len(far):
        return None
    tried = SPIKE_NEAREST * STEPS ** np.arange(np.log(far[-1] / SPIKE_NEAREST) / np.log(STEPS))
    first, after = np.searchsorted(far, tried), np.searchsorted(far, SPIKE_WINDOW * tried)
    beyond = len(far) - first
    near = (after - first) / beyond
    tail = np.cumsum(np.log(far[::-1]))[beyond - 1] - beyond * np.log(tried)
    chance = gamma.logsf(steepness * tail, beyond)
    for factor in np.linspace(SPIKE_WINDOW, SPIKE_WIDEST, 3):
        inside = np.searchsorted(far, factor * tried) - first
        chance = np.minimum(chance, binom.logcdf(inside, beyond, 1 - factor**-steepness))
    flat = (near <= SPIKE_FLAT) & (chance < np.log(SPIKE_LEVEL))
    if not flat.any():
        return None
    # A little farther out the tail may be emptier still, where too few points are left to show that it is flat.
    ahead = np.minimum(np.searchsorted(tried, SPIKE_AHEAD * tried), len(tried))
    emptiest = np.array([near[i:j].min() for i, j in enumerate(ahead)])
    good = np.maximum.accumulate(flat) & (near <= emptiest + 0.002)
    return float(tried[np.argmax(good)]) if good.any() else None


def _steps(bursts: Bursts) -> Array:
    """Step of each feature that is rounded to few different values, (D,); 0 where it is not."""
    all_points = (block.reshape(-1, block.shape[2]) for _, block in bursts.blocks())
    some = np.concatenate([points[sample_rows(len(points), VALUES)] for points in all_points])
    values = np.sort(some[sample_rows(len(some), VALUES)], axis=0)
    between = np.diff(values, axis=0)
    rounded = 2 * np.count_nonzero(between == 0, axis=0) > len(between)
    steps = np.zeros(values.shape[1])
    for feature in np.flatnonzero(rounded):
        positive = between[between[:, feature] > 0, feature]
        steps[feature] = np.median(positive) if len(positive) else 0.0
    return steps
