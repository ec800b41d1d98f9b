"""Distances that keep sheets apart: what a step off the tangents costs if no bend explains it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pyloca.geometry._statistics import BurstStatistics
from pyloca.thresholds import OFF_SHEET

__all__ = ["SheetDistance", "nearest"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

SLAB = 1 << 18  # entries of one slab of the N × N distance matrix: 2 MB in float64 stay in the cache
PAIRS = 1 << 22  # numbers gathered at a time for distances of pairs: 32 MB
BRUTE = 2000  # with more bursts, candidates come from a tree
CANDIDATES = 3  # per neighbour, from the tree
ROUNDS = 3  # of neighbours of neighbours
SETTLED = 0.01  # part of the neighbours that change in the last round
AVERAGED = 256  # most features whose average metric is formed


class SheetDistance:
    """Squared distance between bursts that is long from one sheet to another, in units of σ².

    With Δ the step from burst i to burst j, P_i and P_j the projectors on their tangents, and o_i = Δ − P_i Δ the part
    of the step that is off the tangents of i: on a surface that bends, o_i = ½ κ ℓ² and o_j = −½ κ ℓ², and their mean
    m = ½ (o_i + o_j) vanishes to third order in the step. From one sheet to another that passes it by, m is the gap
    between them. So the joint Mahalanobis distance has ‖m‖² / (s²/16² + v) in place of the ‖m‖² / s² that it has for
    this part of the step, where s is the shortest tangent and v what sampling and noise explain of ‖m‖²: tangents are
    tilted, and means are not exact.

    Parameters
    ----------
    statistics : BurstStatistics
    off : float, default=16
        What a step off the tangents costs that no bend explains. 1: the distance is that of `JointMahalanobis`.

    Examples
    --------
    Two sheets with a gap of half a burst between them:

    >>> import numpy as np
    >>> points = np.c_[np.tile(np.arange(5.0), 2), np.repeat([0.0, 0.5], 5)]
    >>> statistics = BurstStatistics.from_jacobians(points, np.tile([[1.0], [0.0]], (10, 1, 1)))
    >>> np.sqrt(SheetDistance(statistics).squared(np.array([0])))[0, [1, 5]].round(3)
    array([1., 8.])
    """

    def __init__(self, statistics: BurstStatistics, *, off: float = OFF_SHEET) -> None:
        self.off = off
        self.points = statistics.means - statistics.means.mean(axis=0)
        self._square = np.square(self.points).sum(axis=1)
        self.basis, scale = statistics.frames()
        self.precision = 1 / np.square(scale)  # (N, k)
        self._offset = np.einsum("nkd,nd->nk", self.basis, self.points)
        # where the tangents are all there is, no step is off them
        self._all_tangent = statistics.n_used == statistics.intrinsic_dim
        freedom = np.maximum(statistics.counts - 1, 1)
        self._wrong_mean = statistics.residuals / np.maximum(statistics.counts, 1)
        tilts = statistics.residuals * self.precision[:, -1] / freedom
        self._tilts = tilts if statistics.tilts is None else np.maximum(statistics.tilts, 0)

    def __len__(self) -> int:
        return len(self.points)

    def squared(self, rows: Rows) -> Array:
        """Return squared distances from some of the bursts to all.

        Parameters
        ----------
        rows : (b,) array of int

        Returns
        -------
        (b, N) array
        """
        n, k = self.precision.shape
        own = (self.basis[rows].reshape(-1, self.points.shape[1]) @ self.points.T).reshape(len(rows), k, n)
        own -= self._offset[rows][:, :, None]  # the step along tangents of the row
        theirs = [self._offset[:, axis] - self.points[rows] @ self.basis[:, axis].T for axis in range(k)]
        step = self._square[rows][:, None] + self._square - 2 * self.points[rows] @ self.points.T  # (b, n)
        length = [np.zeros_like(step), np.zeros_like(step)]
        along = np.zeros_like(step)
        for axis in range(k):
            for side, part, precision in (
                (0, own[:, axis], self.precision[rows, axis][:, None]),
                (1, theirs[axis], self.precision[:, axis]),
            ):
                square = np.square(part)
                length[side] += square
                square *= precision
                along += square
        if self._all_tangent:
            return along / 2
        product = np.zeros_like(step)
        for other in range(k):
            turned = np.zeros_like(step)
            for axis in range(k):
                turned += own[:, axis] * (self.basis[rows, axis] @ self.basis[:, other].T)
            turned *= theirs[other]
            product += turned
        return self._joined(step, along, length, product, rows[:, None], np.arange(n))

    def between(self, heads: Rows, tails: Rows) -> Array:
        """Return squared distances between pairs of bursts.

        Parameters
        ----------
        heads, tails : (E,) array of int

        Returns
        -------
        (E,) array
        """
        out = np.empty(len(heads))
        size = max(1, PAIRS // self.basis[0].size)
        for start in range(0, len(heads), size):
            part = slice(start, start + size)
            out[part] = self._pairs(heads[part], tails[part])
        return out

    def _pairs(self, i: Rows, j: Rows) -> Array:
        one, other = self.basis[i], self.basis[j]
        step = self.points[j] - self.points[i]
        own, theirs = np.einsum("ekd,ed->ek", one, step), np.einsum("ekd,ed->ek", other, step)
        along = (np.square(own) * self.precision[i]).sum(axis=1) + (np.square(theirs) * self.precision[j]).sum(axis=1)
        if self._all_tangent:
            return along / 2
        # P_i Δ · P_j Δ, without a matrix for each pair
        product = np.einsum("ed,ed->e", np.einsum("ek,ekd->ed", own, one), np.einsum("ek,ekd->ed", theirs, other))
        length = [np.square(own).sum(axis=1), np.square(theirs).sum(axis=1)]
        return self._joined(np.square(step).sum(axis=1), along, length, product, i, j)

    def _joined(self, step: Array, along: Array, length: list[Array], product: Array, i: Rows, j: Rows) -> Array:
        """Add what is off the tangents to what is along them.

        `step` is ‖Δ‖², `along` its cost along both tangents, `length` ‖P_i Δ‖² and ‖P_j Δ‖², `product` P_i Δ · P_j Δ.
        """
        across = [self.precision[end, -1] for end in (i, j)]
        out = along
        for part, price in zip(length, across, strict=True):
            out += price * np.maximum(step - part, 0)
        out *= 0.5
        if self.off == 1:
            return out
        mean = np.maximum(step - 0.75 * (length[0] + length[1]) + 0.5 * product, 0)  # ‖m‖²
        price = 0.5 * (across[0] + across[1])
        chance = 0.25 * (self._tilts[i] * length[0] + self._tilts[j] * length[1])
        chance += self._wrong_mean[i] + self._wrong_mean[j]
        mean *= np.maximum(1 / (1 / (self.off**2 * price) + chance) - price, 0)
        out += mean
        return out


def nearest(distance: SheetDistance, n_neighbors: int, *, brute: int = BRUTE) -> tuple[Rows, Array]:
    """Find the nearest neighbours of every burst.

    Up to `brute` bursts are all compared with all. With more, candidates are near in the average metric of all bursts
    (a tree finds them), and then neighbours of neighbours are tried: N log N, and a few neighbours may be missed where
    the metric differs strongly from place to place.

    Parameters
    ----------
    distance : SheetDistance
    n_neighbors : int
        Less than N.
    brute : int, default=2000

    Returns
    -------
    near : (N, n_neighbors) array of int
        In no order.
    squared : (N, n_neighbors) array
        Squared distances.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.c_[np.arange(10.0) ** 2, np.zeros(10)]
    >>> statistics = BurstStatistics.from_jacobians(points, np.tile([[1.0], [0.0]], (10, 1, 1)))
    >>> nearest(SheetDistance(statistics), 1)[0].ravel()
    array([1, 0, 1, 2, 3, 4, 5, 6, 7, 8])
    """
    n = len(distance)
    if n > brute:
        return _by_tree(distance, n_neighbors)
    near, squared = np.empty((n, n_neighbors), dtype=np.int64), np.empty((n, n_neighbors))
    size = max(1, SLAB // n)
    for start in range(0, n, size):
        rows = np.arange(start, min(start + size, n))
        block = distance.squared(rows)
        block[np.arange(len(rows)), rows] = np.inf
        near[rows] = np.argpartition(block, n_neighbors - 1, axis=1)[:, :n_neighbors]
        squared[rows] = np.take_along_axis(block, near[rows], axis=1)
    return near, squared


def _by_tree(distance: SheetDistance, n_neighbors: int) -> tuple[Rows, Array]:
    n = len(distance)
    points = distance.points @ _average_metric(distance)
    count = min(CANDIDATES * n_neighbors, n - 1)
    found = cKDTree(points).query(points, count + 1)[1]
    near, squared = _best(distance, np.arange(n), found, n_neighbors)
    for _ in range(ROUNDS):
        changed = 0
        before = near.copy()
        reverse = _reverse(before, n_neighbors)
        size = max(1, PAIRS // (4 * n_neighbors * (n_neighbors + 1)))
        for start in range(0, n, size):
            rows = np.arange(start, min(start + size, n))
            around = np.concatenate([before[rows], reverse[rows]], axis=1)
            tried = np.concatenate([around, before[around].reshape(len(rows), -1)], axis=1)
            near[rows], squared[rows] = _best(distance, rows, tried, n_neighbors)
            changed += int((np.sort(near[rows], axis=1) != np.sort(before[rows], axis=1)).sum())
        if changed < SETTLED * near.size:
            break
    return near, squared


def _reverse(near: Rows, count: int) -> Rows:
    """Return up to `count` of those that chose each burst, (N, count); itself where there are fewer."""
    n, m = near.shape
    chosen = near.ravel()
    order = np.argsort(chosen, kind="stable")
    place = np.arange(len(order)) - np.searchsorted(chosen[order], np.arange(n))[chosen[order]]
    out = np.tile(np.arange(n)[:, None], (1, count))
    kept = place < count
    out[chosen[order][kept], place[kept]] = order[kept] // m
    return out


def _best(distance: SheetDistance, rows: Rows, tried: Rows, count: int) -> tuple[Rows, Array]:
    """Choose the nearest `count` of the candidates of each row, each counted once and not the row itself."""
    tried = np.sort(tried, axis=1)
    wrong = tried == rows[:, None]
    wrong[:, 1:] |= tried[:, 1:] == tried[:, :-1]
    squared = np.full(tried.shape, np.inf)
    row, place = np.nonzero(~wrong)
    squared[row, place] = distance.between(rows[row], tried[row, place])
    best = np.argpartition(squared, count - 1, axis=1)[:, :count]
    return np.take_along_axis(tried, best, axis=1), np.take_along_axis(squared, best, axis=1)


def _average_metric(distance: SheetDistance) -> Array:
    """Return a matrix (D, D) after which Euclidean distances are those of the average burst, the shortest tangent as 1.

    Where a measurement stretches one direction a hundred times more than another everywhere, the nearest means are no
    neighbours; in this metric they are.
    """
    n, k, dim = distance.basis.shape
    if dim > AVERAGED:
        return np.eye(dim)
    less = np.sqrt(1 - distance.precision / distance.precision[:, -1:])  # a tangent costs s_k²/s_l², all else 1
    rows = (distance.basis * less[:, :, None]).reshape(n * k, dim)
    values, vectors = np.linalg.eigh(np.eye(dim) - rows.T @ rows / n)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 1e-12)))
