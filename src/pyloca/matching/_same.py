"""Do two sets of points cover the same support, and with the same density? Two tests by random labels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pyloca.matching._support import Support

__all__ = ["SameSupport", "local_part", "overlap", "same_density"]

Array = NDArray[np.float64]
Labels = NDArray[np.bool_]

AROUND = 50  # neighbours over which the part of A is averaged
NEAREST = 20  # neighbours whose labels tell the density
ENOUGH = 10  # random labels that are no better than what was observed: the p-value is not small


def overlap(a: Support, b: Support, slack: float = 0.0) -> float:
    """Return the mean of the part of the points of A inside B, and of the part of those of B inside A."""
    return (float(b.inside(a.points, slack).mean()) + float(a.inside(b.points, slack).mean())) / 2


def local_part(points: Array, of_a: Labels, unevenness: float) -> Array:
    """Return the part of A among the points around each, at most `unevenness` times the usual odds, (n,).

    It follows sampling that changes from place to place. The bound keeps it from following a part of the union that
    only one of the sets has seen.
    """
    near = cKDTree(points).query(points, min(AROUND, len(points)))[1]
    part = np.clip(of_a[near].mean(axis=1), 1e-6, 1 - 1e-6)
    usual = of_a.mean() / (1 - of_a.mean())
    odds = np.clip(part / (1 - part), usual / unevenness, usual * unevenness)
    return np.asarray(odds / (1 + odds))


class SameSupport:
    """Test whether A and B, in the same coordinates, cover the same support, however densely each sampled it.

    If so, the union is that support, and labels A and B are drawn point by point, with odds that follow the sampling.
    The p-value is the part of such random labels whose sets overlap no more than A and B do. The coordinates of A and B
    have errors of their own, which random labels share between both: A and B may be apart by `slack`.

    `brief` ends the draws as soon as the p-value is known not to be small.

    Attributes
    ----------
    overlap : float
        Of A and B, with slack.
    p_value : float
    spread : float
        Standard deviation of the overlap of random labels: two optima that differ by more than a few of these are not
        equally good.
    """

    def __init__(
        self,
        A: Array,
        B: Array,
        *,
        unevenness: float,
        slack: float = 0.0,
        draws: int = 149,
        seed: int = 0,
        brief: bool = False,
    ) -> None:
        points = np.concatenate([A, B])
        part = local_part(points, np.arange(len(points)) < len(A), unevenness)
        random = np.random.RandomState(seed)
        self.overlap = overlap(Support(A), Support(B), slack)
        found: list[float] = []
        less = 0
        while len(found) < draws and not (brief and less >= ENOUGH):
            label = random.uniform(size=len(points)) < part
            label[:2], label[-2:] = True, False  # neither is ever empty
            found.append(overlap(Support(points[label]), Support(points[~label])))
            less += found[-1] <= self.overlap
        self.p_value = (1 + less) / (1 + len(found))
        self.spread = float(np.std(found))


def same_density(A: Array, B: Array, *, draws: int = 199, seed: int = 0) -> float:
    """Test whether A and B are samples of one density, or neighbours are of the same label more often than by chance.

    The statistic is the number of equal labels among nearest neighbours (Schilling 1986), against random labels.
    """
    points = np.concatenate([A, B])
    of_a = np.arange(len(points)) < len(A)
    near = cKDTree(points).query(points, min(NEAREST, len(points) - 1) + 1)[1][:, 1:]
    observed = int((of_a[near] == of_a[:, None]).sum())
    random = np.random.RandomState(seed)
    more = 0
    for i in range(1, draws + 1):
        label = random.permutation(of_a)
        more += int((label[near] == label[:, None]).sum()) >= observed
        if more >= ENOUGH:
            return more / i
    return (1 + more) / (1 + draws)
