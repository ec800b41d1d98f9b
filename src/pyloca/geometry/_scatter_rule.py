"""Whether bursts have heavy tails, so that their scatter is better than their covariance, and by which factor.

The factor is one number for all bursts, found from all of them, so that σ remains the standard deviation of the
displacements.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.stats import chi2

from pyloca._arguments import LARGEST
from pyloca.bursts import Bursts
from pyloca.geometry._local import Local, look_flattened
from pyloca.geometry._sample import sample_rows
from pyloca.geometry._scatter import reshaped, scatter, scores_of
from pyloca.geometry._tails import tails_from_fourths

__all__ = ["Scatter", "find_scatter", "variances_within"]

Array = NDArray[np.float64]
T = TypeVar("T")

FEWEST_POINTS = 4  # and 2 k, for a scatter
EVEN = 1.5  # counts of bursts may differ by this factor: the scatter of few points is smaller, by the law
GAIN = 1.25  # times as certain as the covariance that it must be
FIRST_LOOK, LOOKED_AT, NEIGHBORS = 200, 1000, 10  # bursts
# The far points say how much of the variance is in them, and are too few to say it well. Beyond the farthest hundred
# (of fewer points, one in fifty) the variance is that of a power law, whose exponent the farthest fiftieth tells.
FARTHEST, FARTHEST_PART, LEAST_EXPONENT = 100, 0.02, 1.15
FAMILY_ERROR = 0.1  # of the factor, if it is taken from laws of Student and the law is another
LONGEST = 60  # points of bursts that are simulated: of more, the factor hardly depends on their number
SIMULATED, LAWS = 600, (2.5, 3.0, 4.0, 6.0, 10.0, np.inf)


class Scatter(NamedTuple):
    """How bursts with heavy tails are seen.

    Attributes
    ----------
    factor : float
        Times the scatter that has the covariance as its expectation.
    error : float
        Relative error of the factor.
    tails : float
        How many times as much sampling changes the scatter as the covariance of Gaussian points.

    Examples
    --------
    See `variances_within`.
    """

    factor: float
    error: float
    tails: float


def find_scatter(bursts: Bursts, k: int) -> Scatter | None:
    """Look at a sample of the bursts and tell whether their tails are so heavy that scatter is better.

    Parameters
    ----------
    bursts : Bursts
        Without spikes.
    k : int
        Intrinsic dimension.

    Returns
    -------
    Scatter or None
        None where the covariance is about as certain, or bursts have too few points or too different numbers of them.
    """
    counts = bursts.counts
    low, high = np.quantile(counts, [0.05, 0.95])
    if low < 2 * k + FEWEST_POINTS or high > EVEN * low or bursts.effective_counts is not None:
        return None
    alike = bursts[np.flatnonzero((counts >= low) & (counts <= high))]
    first = _seen(_few(alike, FIRST_LOOK), k, lambda part, _: part)
    if first is None or _tails(first, k) < GAIN:
        return None
    sample = _few(alike, LOOKED_AT)
    seen = _seen(sample, k, lambda part, flattened: (part, _Usable.of(part, flattened)))
    if seen is None:
        return None
    law = _student(k, round(min(float(np.median(sample.counts)), LONGEST)))
    tails, usable = _tails([part for part, _ in seen], k), [part for _, part in seen]
    if tails < GAIN * law.tails[-1] or sum(len(part.shapes) for part in usable) < NEIGHBORS + 2:
        return None
    spread = float(np.concatenate([part.spreads for part in usable]).mean())
    ours = float(np.interp(spread, law.spreads[::-1], law.tails[::-1]))
    if tails < GAIN * ours:
        return None
    factor, error = _factor(usable)
    by_law = float(np.interp(spread, law.spreads[::-1], np.log(law.factors[::-1])))
    weights = 1 / np.square([error, FAMILY_ERROR])
    mean = float(np.dot(weights, [np.log(factor), by_law]) / weights.sum())
    return Scatter(round(float(np.exp(mean)), 6), round(float(weights.sum() ** -0.5), 6), round(ours, 6))


class _Usable(NamedTuple):
    """What is known of bursts that are not flat."""

    means: Array
    tangents: Array
    shapes: Array
    spreads: Array
    points: Array

    @classmethod
    def of(cls, seen: Local, flattened: Array) -> _Usable:
        """Take the scatter of the points of one block."""
        scores, sound = scores_of(flattened, seen.tangents)
        scores, m = scores[sound], flattened.shape[1]
        shapes, spreads = scatter(scores)
        points = (scores - scores.mean(axis=1, keepdims=True)) * np.sqrt(m / (m - 1))
        return cls(seen.means[sound], seen.tangents[sound], shapes, spreads, points)


def _few(bursts: Bursts, most: int) -> Bursts:
    return bursts[sample_rows(len(bursts), most)]


def _seen(sample: Bursts, k: int, take: Callable[[Local, Array], T]) -> list[T] | None:
    """Take what is wanted of every block of bursts, of which one at a time is in memory.

    None if there are values that cannot be used, which the pass over all bursts refuses by name.
    """
    found = []
    for _, block in sample.blocks():
        if not np.abs(block).max() <= LARGEST:  # nan is not
            return None
        found.append(take(*look_flattened(block, k)))
    return found


def _tails(seen: list[Local], k: int) -> float:
    fourths, counts = (np.concatenate([getattr(part, name) for part in seen]) for name in ("fourths", "counts"))
    return tails_from_fourths(fourths, counts, k)


def _factor(usable: list[_Usable]) -> tuple[float, float]:
    """Find the factor from the points, by the scatter of neighbouring bursts, and its relative error.

    In units of their own scatter far points look nearer than they are. Neighbours do not know them; and covariance and
    scatter of a burst have the same expectation, but for the factor, in any units that do not depend on its points.
    """
    means, tangents, shapes = (
        np.concatenate([getattr(part, name) for part in usable]) for name in ("means", "tangents", "shapes")
    )
    points = [one for part in usable for one in part.points]
    spread = means.std(axis=0)
    places = means / np.where(spread > 0, spread, 1.0)
    count = min(NEIGHBORS, len(means) - 1)
    near = cKDTree(places).query(places, count + 1)[1]
    squares, sizes = [], np.empty(len(means))
    for row, own in enumerate(points):
        others = near[row][near[row] != row][:count]
        inverse = tangents[row] / np.square(tangents[row]).sum(axis=1)[:, None]  # (k, D)
        across = np.einsum("jkd,ld->jkl", tangents[others], inverse)
        around = np.einsum("jkl,jkm,jmn->ln", across, shapes[others], across) / count
        units = np.linalg.pinv(around, rcond=1e-6, hermitian=True)
        squares.append(((own @ units) * own).sum(axis=1))
        sizes[row] = np.trace(units @ shapes[row])
    # one burst that is unlike its neighbours must not count for many
    usual = np.median(sizes)
    clipped = np.minimum(sizes, 4 * usual)
    ordered = np.sort(np.concatenate([one * (c / s) for one, c, s in zip(squares, clipped, sizes, strict=True)]))
    mean, error = _mean_of_tail(ordered)
    return mean / float(clipped.mean()), error


def _mean_of_tail(ordered: Array) -> tuple[float, float]:
    """Compute the mean of ascending values, with a power law in place of the farthest, and its relative error."""
    n = len(ordered)
    many = max(round(FARTHEST_PART * n), 5)
    few = min(many, FARTHEST)
    exponent = 1 / float(np.mean(np.log(ordered[-many:] / ordered[-many - 1])))
    exponent = max(exponent, LEAST_EXPONENT)
    beyond = few * float(ordered[-few]) * exponent / (exponent - 1)
    total = float(ordered[:-few].sum()) + beyond
    body = float(ordered[:-few].std()) / np.sqrt(n) / (total / n)
    tail = beyond / total * np.sqrt(1 / few + 1 / (many * (exponent - 1) ** 2))
    return total / n, float(np.hypot(body, tail))


class _Student(NamedTuple):
    """Laws of Student, heaviest first: what their scatter tells, and the factor."""

    spreads: Array
    factors: Array
    tails: Array


@lru_cache(maxsize=32)
def _student(k: int, m: int) -> _Student:
    """Simulate bursts of m points of independent Student's t."""
    random, rows = np.random.RandomState(0), []
    for degrees in LAWS:
        points = random.standard_normal((SIMULATED, m, k))
        if np.isfinite(degrees):
            points /= np.sqrt(random.chisquare(degrees, points.shape) / (degrees - 2))
        found, spread = scatter(points)
        size = float(np.trace(found.mean(axis=0))) / k
        values = np.linalg.eigvalsh(found / size)
        rows.append((spread.mean(), 1 / size, np.median(values.sum(axis=1) - np.log(values).sum(axis=1) - k)))
    spreads, factors, losses = np.array(rows).T
    # that of the covariance of Gaussian points has the law of χ², but for Bartlett's factor
    bartlett = 1 - (2 * k**2 + 3 * k - 1) / (6 * (k + 1) * (m - 1))
    return _Student(spreads, factors, losses * (m - 1) * bartlett / chi2.median(k * (k + 1) / 2))


def variances_within(centred: Array, k: int, rule: Scatter | None) -> Array:
    """Compute the k largest variances of the points of bursts, or those that their scatter tells.

    Parameters
    ----------
    centred : (b, M, d) array
        Points without their means.
    k : int
    rule : Scatter or None
        None: of the covariance.

    Returns
    -------
    (b, k) array
        Largest first.

    Examples
    --------
    >>> points = np.random.RandomState(0).standard_t(3, size=(200, 50, 2))
    >>> centred = points - points.mean(axis=1, keepdims=True)
    >>> variances_within(centred, 2, None).shape
    (200, 2)
    """
    _, singular, rows = np.linalg.svd(centred, full_matrices=False)
    if rule is None:
        return np.asarray(np.square(singular[:, :k]) / (centred.shape[1] - 1))
    tangents = singular[:, :k, None] * rows[:, :k] / np.sqrt(centred.shape[1] - 1)
    return np.asarray(np.square(reshaped(centred, tangents, rule.factor)).sum(axis=2))
