"""The support of an embedded set: everything within a covering radius of one of its points, with a soft border."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

__all__ = ["Support", "even", "thinned"]

Array = NDArray[np.float64]

COVERED = 0.98  # of the points have another within the covering radius
SOFT = (0.7, 1.7)  # the border, in covering radii: from 1 at the first to 0 at the second
FEWEST = 64  # points that are never thinned


class Support:
    """The union of balls about points (n, d), as a function from 1 inside to 0 outside.

    Attributes
    ----------
    points : (n, d) array
    radius : float
        Covering radius: a place of the support is seldom farther from all points.
    """

    def __init__(self, points: Array) -> None:
        self.points = points
        self.tree = cKDTree(points)
        nearest = self.tree.query(points, 2)[0][:, 1] if len(points) > 1 else np.zeros(1)
        self.radius = max(float(np.quantile(nearest, COVERED)), np.finfo(float).tiny)

    def inside(self, places: Array, slack: float = 0.0) -> Array:
        """Return how far places (m, d) are inside, between 0 and 1; `slack` widens the border."""
        low, high = SOFT
        distance = self.tree.query(places, distance_upper_bound=high * self.radius + slack)[0]
        steps = np.minimum(np.maximum(distance - slack, 0) / self.radius, high)
        x = np.clip((high - steps) / (high - low), 0.0, 1.0)
        return np.asarray(x * x * (3 - 2 * x))  # smooth at both ends


def even(support: Support) -> Array:
    """Choose points at least half a covering radius apart, so that their number tells area, not sampling."""
    kept = np.ones(len(support.points), dtype=bool)
    for i, near in enumerate(support.tree.query_ball_point(support.points, support.radius / 2)):
        if kept[i]:
            kept[[j for j in near if j != i]] = False
    return support.points[kept]


def thinned(points: Array, least: float, most: int, seed: int = 0) -> Array:
    """Return at most `most` of the points, random ones, so few that nearest neighbours are about `least` apart."""
    random = np.random.RandomState(seed)
    chosen = points[random.permutation(len(points))[:most]]
    while len(chosen) > FEWEST:
        if float(np.median(cKDTree(chosen).query(chosen, 2)[0][:, 1])) >= least:
            break
        chosen = chosen[: max(FEWEST, int(0.8 * len(chosen)))]
    return chosen
