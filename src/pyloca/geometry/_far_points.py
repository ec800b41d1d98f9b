"""How far the points of a burst are from its middle, in sizes of the points that are closer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import polygamma

from pyloca._arguments import LARGEST
from pyloca.thresholds import SPIKE_HALF, SPIKE_MINORITY

__all__ = ["PAIRS", "Usual", "distances", "far_sorted", "radii_of", "usual_size"]

Array = NDArray[np.float64]
Usual = tuple[float, float]

PAIRS = 32  # most points of a burst that are compared with each other
ITERATIONS = 50  # of the spatial median; it needs about 5
CAUCHY_STEPS = 10
SETTLED = 0.02  # sizes that it still moves: the sampling error of a median of 50 points is 0.2
GAUSSIAN_MAD = 0.6745  # median absolute deviation of a normal variable of unit variance
EQUAL = 1e-20  # square of the distance of points that are equal, in squares of the largest
TINY = 1e-150  # keeps weights of equal points finite


def distances(block: Array, least_size: float = 0.0, usual: Usual = (0.0, 0.0), *, minority: bool = False) -> Array:
    """Measure how far points are from the middle of their burst, in sizes of the points that are closer.

    The points of a burst are put in order of their distance r from its middle. Those of the inner half are at 0. From
    there on, the ratio of r to the root mean square of all r before it counts; and a point is at least as far as the
    one before it, because what lies behind a gap is no closer than its edge.

    Parameters
    ----------
    block : (b, M, D) array
    least_size : float, default=0
        Added to the size of the points before, in quadrature: the rounding of the readings.
    usual : (float, float), default=(0, 0)
        Size of the inner half of most bursts, and how many points of its own burst that is worth: few points say
        little of their size, and are drawn towards that of other bursts.
    minority : bool, default=False
        Look for gaps also inside the inner half, where they count less the fewer points tell the size, down to 0: then
        a burst may have more spikes than other points, but clean tails are longer.

    Returns
    -------
    (b, M) array
    """
    out = np.zeros(block.shape[:2])
    usable = np.abs(block).max(axis=(1, 2)) <= LARGEST  # nan is not
    if _half(block.shape[1]) < SPIKE_HALF or not usable.any():
        return out
    radii = radii_of(block if usable.all() else block[usable], rounded=least_size > 0)
    order = np.argsort(radii, axis=1, kind="stable")
    far = np.empty_like(radii)
    ordered = np.take_along_axis(radii, order, axis=1)
    np.put_along_axis(far, order, far_sorted(ordered, least_size, usual, minority=minority), axis=1)
    out[usable] = far
    return out


def far_sorted(ordered: Array, least_size: float, usual: Usual, *, minority: bool = False) -> Array:
    """Compute `distances` from radii (b, M) in ascending order."""
    m = ordered.shape[1]
    if _half(m) < SPIKE_HALF:
        return np.zeros_like(ordered)
    half, before = _half(m), np.arange(1, m)
    size, worth = usual
    squares = np.cumsum(np.square(ordered), axis=1)[:, :-1]
    sizes = np.sqrt((squares + worth * size**2) / (before + worth) + least_size**2)
    weight = np.where(before >= half, 1.0, 0.0)
    if minority and half > SPIKE_HALF:
        weight = np.where(before >= SPIKE_MINORITY, np.clip(1 - 2 * (half - before - worth) / half, 0, 1), 0)
    real = sizes > 1e-9 * ordered[:, -1:]  # otherwise these points are equal
    ratio = np.zeros_like(ordered)
    ratio[:, 1:] = np.where(real, weight * ordered[:, 1:] / np.where(real, sizes, 1), 0)
    return np.asarray(np.maximum.accumulate(ratio, axis=1))


def usual_size(radii: Sequence[Array]) -> Usual:
    """Find the size of the inner half of most bursts, and the number of points that it is worth.

    The worth is the number of degrees of freedom of an inverse gamma distribution whose logarithm has the spread of
    the sizes found: the prior of an empirical Bayes estimate of many variances (Smyth 2004). That spread also contains
    the sampling error of each size, so the worth is rather too small.

    Parameters
    ----------
    radii : sequence of (b, M) arrays
        In ascending order in each row.

    Returns
    -------
    size, worth : float
        Both 0 if there is nothing to learn.
    """
    halves = [part[:, : _half(part.shape[1])] for part in radii]
    found = [np.square(half).mean(axis=1) for half in halves if half.shape[1] >= SPIKE_HALF]
    squares = np.concatenate(found) if found else np.zeros(1)
    squares = squares[squares > 0]
    if not len(squares):
        return 0.0, 0.0
    logs = np.log(squares)
    middle = float(np.median(logs))
    spread = float(np.median(np.abs(logs - middle))) / GAUSSIAN_MAD
    least, most = 1e-3, 1e6  # degrees of freedom
    spread = float(np.clip(spread, np.sqrt(polygamma(1, most / 2)), np.sqrt(polygamma(1, least / 2))))
    worth = brentq(lambda log: polygamma(1, np.exp(log) / 2) - spread**2, np.log(least) - 1e-6, np.log(most) + 1e-6)
    return float(np.exp(middle / 2)), float(np.exp(worth))


def radii_of(block: Array, *, rounded: bool = False) -> Array:
    """Distances (b, M) of points from the middle of their burst. Equal points count once, unless they are rounded."""
    points = block - block.mean(axis=1, keepdims=True)
    m, dim = points.shape[1:]
    if dim > m:  # coordinates in the span of the points
        points = np.asarray(np.linalg.qr(points.transpose(0, 2, 1), mode="r")).transpose(0, 2, 1)
    middle = _spatial_median(points) if m > PAIRS else _densest_place(points, rounded=rounded)
    return np.asarray(np.sqrt(np.square(points - middle).sum(axis=2)))


def _half(m: int) -> int:
    """Points in the inner half of a burst."""
    return m // 2 + 1


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


def _densest_place(points: Array, *, rounded: bool) -> Array:
    """Middle (b, 1, D) of few points, of which most may be spikes, by Cauchy's weights.

    It begins at the point around which Cauchy's likelihood is largest: there are many points of the burst, also where
    fewer spikes on one value, such as 0, are closer together.
    """
    m = points.shape[1]
    squares = np.square(points[:, :, None] - points[:, None]).sum(axis=3)  # (b, M, M)
    # A sensor that drops out repeats a value; readings that are not rounded do not.
    once = 1.0 / (squares <= EQUAL * squares.max(axis=(1, 2), keepdims=True)).sum(axis=2)  # (b, M)
    weights = np.ones_like(once) if rounded else once
    quarter = max(SPIKE_MINORITY, m // 4 + 1) - 1
    by_distance = np.partition(squares, (quarter, m // 2), axis=2)
    scale = np.maximum(by_distance[:, :, m // 2].min(axis=1), TINY)
    cost = np.einsum("bm,bnm->bn", weights, np.log1p(squares / scale[:, None, None]))
    best = np.argmin(cost, axis=1)[:, None]
    middle = np.take_along_axis(points, best[:, :, None], axis=1)
    reach = np.take_along_axis(by_distance[:, :, quarter], best, axis=1)
    for _ in range(CAUCHY_STEPS):
        far = np.maximum(np.square(points - middle).sum(axis=2) + reach, TINY)
        middle = _weighted_mean(points, weights / far)
    return middle


def _weighted_mean(points: Array, weights: Array) -> Array:
    return np.asarray(np.einsum("bm,bmd->bd", weights / weights.sum(axis=1, keepdims=True), points)[:, None])
