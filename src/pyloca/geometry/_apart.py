"""Bursts that lie apart from all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree

from pyloca.geometry._graph import BurstGraph, JointMahalanobis, mahalanobis_graph, relative_lengths, usual_neighbors
from pyloca.geometry._sample import sample_rows
from pyloca.geometry._statistics import BurstStatistics
from pyloca.thresholds import (
    APART,
    BRIDGE,
    OFF_SURFACE,
    REACH,
    STEEP,
    TOO_FAR,
    TOO_SMALL,
    TOO_WIDE,
    TURNED,
    WITNESSES,
)

__all__ = ["find_apart"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

JOINED = 2000  # bursts that are joined by a graph; others are compared with these
SLAB = 1 << 18  # distances that are held at a time


def find_apart(statistics: BurstStatistics, allowed: int) -> dict[int, str]:
    """Find bursts that no edge of the neighbour graph joins to the others, or that lie far from them.

    Two bursts are joined as in `connected_graph`: by an edge of at most 10 times the reach of either end. A burst that
    is joined only by edges of more than 2.5 times the reach is looked at more closely, since sparse places have such
    edges too. It is a stray if it lies beyond a gap of twice the size of the data and three times the widest gap in
    them, if its neighbours see it off their tangents, where their curvature does not explain it, or if it lies among
    them and is far smaller or flatter.

    Parameters
    ----------
    statistics : BurstStatistics
        Of bursts with k tangents each.
    allowed : int
        Largest number of strays; if there are more, they are a part of the data, and none are returned.

    Returns
    -------
    dict of int to str
        Positions and reasons.
    """
    others = _Others.of(statistics, allowed)
    if len(others.doubtful) == 0 or len(others.doubtful) > len(statistics) // 2:
        return {}
    seen = [_Seen.of(statistics, int(row), others) for row in others.doubtful]
    joined = _joined(statistics, others, seen)
    cut = {one.row: one.shape(statistics, others) or one.words(others) for one in seen if one.row not in joined}
    if len(cut) > allowed:
        return {}
    beyond = _beyond(statistics, others, allowed)
    off = {one.row: one.fault(statistics, others, one.row in beyond) for one in seen if one.row in joined}
    off = {row: why for row, why in off.items() if why}
    return cut | off if len(cut) + len(off) <= allowed else cut


@dataclass(frozen=True)
class _Others:
    """Bursts that lie together, and those in doubt."""

    rows: Rows  # (n,) of the bursts that lie together
    reach: Array  # (n,)
    nearest: float  # distance to the nearest neighbour, median
    basis: Array  # (n, k, D)
    scale: Array  # (n, k)
    means: Array  # (n, D)
    size: float  # root mean square distance of the means from their centre
    gap: float  # the widest that must be crossed to come from one to all others, by straight steps between means
    doubtful: Rows

    @classmethod
    def of(cls, statistics: BurstStatistics, allowed: int) -> _Others:
        n = len(statistics)
        rows = sample_rows(n, JOINED)
        sample = statistics[rows]
        graph = mahalanobis_graph(sample, usual_neighbors(statistics.intrinsic_dim))
        relative, reach = relative_lengths(graph)
        near = relative <= APART
        joined = BurstGraph(len(rows), graph.heads[near], graph.tails[near], graph.lengths[near])
        _, piece = connected_components(joined.adjacency(), directed=False)
        sizes = np.bincount(piece)
        together = (sizes > allowed)[piece] | (piece == np.argmax(sizes))
        shortest = np.full(len(rows), np.inf)
        np.minimum.at(shortest, graph.heads, graph.lengths)
        np.minimum.at(shortest, graph.tails, graph.lengths)
        basis, scale = sample[together].frames()
        doubtful = rows[~together]
        if n > JOINED:
            out = np.setdiff1d(np.arange(n), rows)
            doubtful = np.sort(np.r_[doubtful, out[_far(statistics, out, sample[together], reach[together])]])
        kept = rows[together]
        nearest, means = float(np.median(shortest[together])), statistics.means[kept]
        size = float(np.sqrt(np.square(means - means.mean(axis=0)).sum(axis=1).mean()))
        steps = np.linalg.norm(sample.means[joined.heads] - sample.means[joined.tails], axis=1)
        inside = together[joined.heads]
        tree = minimum_spanning_tree(
            BurstGraph(len(rows), joined.heads[inside], joined.tails[inside], steps[inside]).adjacency()
        )
        gap = float(tree.data.max(initial=0))
        return cls(kept, reach[together], nearest, basis, scale, means, size, gap, doubtful)


def _far(statistics: BurstStatistics, rows: Rows, near: BurstStatistics, reach: Array) -> NDArray[np.bool_]:
    """Tell which of `rows` lie far from all bursts that are `near` each other."""
    metric = JointMahalanobis(near)
    size = max(1, SLAB // len(near))
    far = np.zeros(len(rows), dtype=bool)
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        squared = metric.squared_to(statistics[rows[part]])
        far[part] = (squared / np.square(np.maximum(reach, np.finfo(float).tiny))).min(axis=1) > APART**2
    return far


@dataclass(frozen=True)
class _Seen:
    """A burst in doubt, as it and the others see their distance."""

    row: int
    distance: Array  # (n,) joint Mahalanobis distance to the others
    theirs: Array  # (n,) the same by their covariances alone
    reach: float

    @classmethod
    def of(cls, statistics: BurstStatistics, row: int, others: _Others) -> _Seen:
        step = others.means - statistics.means[row]
        basis, scale = (part[0] for part in statistics[[row]].frames())
        own = _squared(step, np.einsum("kd,nd->nk", basis, step), scale[None])
        theirs = _squared(step, np.einsum("nkd,nd->nk", others.basis, step), others.scale)
        joint = np.sqrt((own + theirs) / 2)
        reach = float(np.partition(joint, min(REACH, len(joint)) - 1)[min(REACH, len(joint)) - 1])
        return cls(row, joint, np.sqrt(theirs), reach)

    def touches(self, others: _Others, n_neighbors: int) -> bool:
        """Tell whether an edge to one of its nearest bursts is short enough, as in `connected_graph`."""
        near = np.argsort(self.distance)[:n_neighbors]
        return bool(np.any(self.distance[near] <= BRIDGE * np.minimum(others.reach[near], self.reach)))

    def words(self, others: _Others) -> str:
        """Say how far away it is."""
        away = self.distance.min()
        return (
            f"lies apart: its nearest neighbour is {f'{away:.3g}' if away < 1e3 else f'{away:,.0f}'} burst sizes away, "
            f"that of others {others.nearest:.2g}"
        )

    def shape(self, statistics: BurstStatistics, others: _Others) -> str:
        """Say that it is where others are, and only its own covariance makes all steps long; "" if it is not."""
        if np.min(self.theirs / others.reach) > APART:
            return ""
        near = np.argsort(self.theirs)[:REACH]
        part = np.sqrt(statistics.spectra[self.row]) / np.median(others.scale[near], axis=0)
        if part[0] < TOO_SMALL:
            return f"is far smaller than its neighbours: {part[0]:.2g} of their size"
        if part[-1] < TOO_SMALL:
            return f"is nearly flat: its last direction is {part[-1]:.2g} of the size of its neighbours'"
        return ""

    def fault(self, statistics: BurstStatistics, others: _Others, beyond: bool) -> str:
        """Say what is wrong with it if edges do join it to the others; "" if nothing is."""
        if beyond:
            return self.words(others)
        if statistics.n_used > statistics.intrinsic_dim and all(
            self._off(statistics, others, int(j)) for j in np.argsort(self.theirs)[:WITNESSES]
        ):
            return self.words(others)
        return self.shape(statistics, others)

    def _off(self, statistics: BurstStatistics, others: _Others, witness: int) -> bool:
        step = others.means - others.means[witness]
        inside = np.linalg.norm(step @ others.basis[witness].T, axis=1)
        outside = np.sqrt(np.maximum(np.square(step).sum(axis=1) - np.square(inside), 0))
        length = _squared(step, step @ others.basis[witness].T, others.scale[witness][None])
        near = np.argsort(length)[1 : REACH + 1]
        here = statistics.means[self.row] - others.means[witness]
        along = float(np.linalg.norm(others.basis[witness] @ here))
        off = float(np.sqrt(max(here @ here - along**2, 0)))
        # A surface leaves its tangent as the square of the step, but it is not extended beyond where that is steep.
        bend = outside[near].max() * max(1, along / float(np.median(inside[near]))) ** 2
        if off <= min(OFF_SURFACE * bend, STEEP * along):
            return False
        # Over a wide gap a surface may turn; then the burst beyond it still sees the others along its own tangents.
        own = float(np.linalg.norm(statistics[[self.row]].frames()[0][0] @ here))
        return bool(np.sqrt(max(here @ here - own**2, 0)) > TURNED * own)


def _beyond(statistics: BurstStatistics, others: _Others, allowed: int) -> set[int]:
    """Find the bursts in doubt that lie beyond a gap, coming from the others by the shortest steps.

    Sparse outskirts are reached by gaps that widen little by little; a stray by one that is far wider than any before.
    """
    left, means = others.doubtful, statistics.means[others.doubtful]
    distance = np.array([np.linalg.norm(others.means - mean, axis=1).min() for mean in means])
    widest = others.gap
    while len(left):
        nearest = int(np.argmin(distance))
        if len(left) <= allowed and distance[nearest] > TOO_WIDE * widest:
            return set(left[distance > TOO_FAR * others.size].tolist())
        widest = max(widest, float(distance[nearest]))
        distance = np.minimum(distance, np.linalg.norm(means - means[nearest], axis=1))
        rest = np.arange(len(left)) != nearest
        left, means, distance = left[rest], means[rest], distance[rest]
    return set()


def _squared(step: Array, inside: Array, scale: Array) -> Array:
    """Squared length of steps (n, D) with parts `inside` (n, k) along tangents of size `scale`, in units of σ²."""
    rest = np.maximum(np.square(step).sum(axis=1) - np.square(inside).sum(axis=1), 0)
    return np.asarray(np.square(inside / scale).sum(axis=1) + rest / np.square(scale[:, -1]))


def _joined(statistics: BurstStatistics, others: _Others, seen: list[_Seen]) -> set[int]:
    """Find the bursts in doubt that edges join to the others, directly or through each other."""
    joined = {one.row for one in seen if one.touches(others, 4 * usual_neighbors(statistics.intrinsic_dim))}
    waiting = [one for one in seen if one.row not in joined]
    if not joined or not waiting:
        return joined
    metric = JointMahalanobis(statistics[[one.row for one in seen]])
    place = {one.row: i for i, one in enumerate(seen)}
    between = np.sqrt(metric.squared(np.arange(len(seen))))
    reach = np.array([one.reach for one in seen])
    link = between <= BRIDGE * np.minimum(reach[:, None], reach)
    inside = np.array([one.row in joined for one in seen])
    while True:
        more = ~inside & link[:, inside].any(axis=1)
        if not more.any():
            return {row for row, i in place.items() if inside[i]}
        inside |= more
