"""Comparison of bursts with their neighbours, with or without a fit."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from pyloca.checks import Whitening, lost_bursts
from pyloca.findings._diagnostics import Finding
from pyloca.findings._sampling import belonging, few_bursts
from pyloca.geometry import BurstGraph, BurstStatistics, mahalanobis_graph, sample_rows
from pyloca.thresholds import (
    ALIKE,
    BELONG,
    CLUSTERED,
    CROSSED,
    FEW,
    FEWEST,
    JUMP,
    JUMP_ERRORS,
    JUMP_ERRORS_CURVE,
    LEAST_STRANGE,
    LONELY,
    MANY_CROSSED,
    MANY_JUMPS,
    MANY_LOST,
    MANY_TURNED,
    MOST,
    NEIGHBORS,
    PARALLEL,
    SAMPLE,
    SENSELESS,
    SOME_GIANTS,
    SPARSE,
    STRANGE,
    THROUGH,
    TILTED,
    UNLIKELY,
    WHITE_BY_CHANCE,
)

__all__ = ["Neighborhood"]

Array = NDArray[np.float64]


class Neighborhood:
    """Bursts (a sample of them) compared with their neighbours.

    Each check returns a `Finding`, or None when nothing is wrong.

    Parameters
    ----------
    statistics : BurstStatistics
    white : Whitening, optional
        How white a fit made the bursts, if there is a fit.
    folded : bool, default=False
        Whether its embedding overlaps itself: lost bursts are then a part of that, and no outliers.

    Attributes
    ----------
    rows : (n,) array of int
        Positions of the bursts in the sample.
    statistics : BurstStatistics
        Of the sample.
    graph : BurstGraph
        Of the sample.

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> statistics = BurstStatistics.from_bursts(bursts, 2)
    >>> Neighborhood(statistics).unrelated() is None  # neighbours are alike
    True
    """

    def __init__(self, statistics: BurstStatistics, white: Whitening | None = None, *, folded: bool = False) -> None:
        n, self.folded = len(statistics), folded
        self.losses = np.zeros(n) if white is None else white.losses
        self.all_lost = np.zeros(n, dtype=bool) if white is None else lost_bursts(white)
        # an encoder that makes a burst white has made sense of it
        self.unlikely = np.ones(n, dtype=bool) if white is None else white.p_values < UNLIKELY
        self.rows = sample_rows(n, SAMPLE)
        self.lost = self.all_lost[self.rows]
        self.all, self.statistics = statistics, statistics[self.rows]
        self.graph: BurstGraph = mahalanobis_graph(self.statistics, NEIGHBORS, off=1.0)

    @property
    def _sound(self) -> NDArray[np.bool_]:
        """Edges between bursts that are not lost."""
        return ~(self.lost[self.graph.heads] | self.lost[self.graph.tails])

    def unrelated(self) -> Finding | None:
        """Check for shuffled bursts, which are no more like their neighbours than like any other burst.

        Returns
        -------
        Finding or None
        """
        if len(self.rows) < SPARSE:
            return None
        random = np.random.RandomState(0)
        strangers = random.randint(len(self.rows), size=(2, len(self.graph.heads)))
        near, far = self._differences(self.graph.heads, self.graph.tails), self._differences(*strangers)
        if np.median(far) < max(STRANGE * self._sampled_difference(), LEAST_STRANGE):
            return None  # all bursts are alike: shuffling would change nothing
        alike = float(np.mean(near < random.permutation(far)))
        # Where the measurement bends within the reach of the neighbours, they are unlike each other as well; but the
        # step to the nearest of them still follows the tangents.
        if not ALIKE.passed(alike) or belonging(self.statistics) >= BELONG:
            return None
        return Finding(
            "unrelated",
            f"bursts are no more like their neighbours than like any other burst (more alike in {alike:.0%} of pairs; "
            "50 % is chance): the clouds do not belong to their positions. Check that the bursts were not shuffled, "
            "that neighbours are near enough to be measured alike, and that no single points are far off: a few such "
            "points give a burst a direction of their own.",
        )

    def _differences(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> Array:
        """‖C_i − C_j‖² / (‖C_i‖² + ‖C_j‖²), without a D×D matrix."""
        one, other = self.statistics.tangents[i], self.statistics.tangents[j]

        def product(a: Array, b: Array) -> Array:
            return np.square(np.einsum("ekd,eld->ekl", a, b)).sum(axis=(1, 2))

        size = product(one, one) + product(other, other)
        return (size - 2 * product(one, other)) / size

    def _sampled_difference(self) -> float:
        """Compute how much two samples of one covariance differ."""
        spectra = self.statistics.spectra
        evenness = spectra.sum(axis=1) ** 2 / np.square(spectra).sum(axis=1)
        return float(np.median((1 + evenness) / (self.statistics.sampled_counts - 1)))

    @cached_property
    def _cosines(self) -> Array:
        """Cosines of the largest angle between the tangents at both ends of each edge."""
        if self.statistics.n_used == self.statistics.intrinsic_dim:
            return np.ones(len(self.graph.heads))
        basis, _ = self.statistics.frames()
        products = np.einsum("ekd,eld->ekl", basis[self.graph.heads], basis[self.graph.tails])
        cosines = np.linalg.svd(products, compute_uv=False)[:, -1]
        if self.statistics.tilts is None:
            return np.asarray(cosines)
        tilted = self.statistics.tilts > TILTED  # whose angles tell of noise
        return np.where(tilted[self.graph.heads] | tilted[self.graph.tails], 1.0, cosines)

    @cached_property
    def _loners(self) -> NDArray[np.bool_]:
        """Whether each burst is parallel to few of its neighbours, while most of these are to theirs.

        Where sheets cross, a burst is parallel to its own sheet. Where the measurement bends within the spacing of the
        bursts, or in many dimensions, of which the largest angle counts, no burst is parallel to its neighbours.
        """
        heads, tails, n = self.graph.heads, self.graph.tails, len(self.rows)
        if n < SPARSE:
            return np.zeros(n, dtype=bool)
        ends, others = np.r_[heads, tails], np.r_[tails, heads]
        degree = np.bincount(ends, minlength=n)
        parallel = np.bincount(ends, np.tile(self._cosines > PARALLEL, 2), n) / degree
        around = np.bincount(ends, parallel[others], n) / degree
        return np.asarray((parallel < LONELY) & (around > MOST) & self.unlikely[self.rows])

    def crossing(self) -> Finding | None:
        """Check for near readings with different tangents: two sheets that run through each other.

        A kink is none: a network follows it.

        Returns
        -------
        Finding or None
        """
        if len(self.rows) < SPARSE:
            return None
        heads, tails, close = self.graph.heads, self.graph.tails, self._close
        crossed = close & (self._cosines < CROSSED)
        share = crossed.sum() / max(close.sum(), 1)
        if not (share >= MANY_CROSSED and crossed.sum() >= FEWEST and THROUGH.passed(self._through(crossed))):
            return None
        where = np.unique(self.rows[np.r_[heads[crossed], tails[crossed]]])
        ends = self.rows[[heads[crossed][0], tails[crossed][0]]]
        return Finding(
            "crossing",
            f"sheets of the measurement cross: {share:.1%} of near neighbours, such as {self.all.listed(ends)}, have "
            "tangents more than 60° apart. One reading has two meanings there, and no encoder can be right on both. "
            "Add a sensor that tells the sheets apart, or fit them separately.",
            tuple(int(i) for i in where[:50]),
        )

    def few_bursts(self) -> Finding | None:
        """Check whether the measurement turns between neighbouring bursts by more than can be followed.

        Returns
        -------
        Finding or None
        """
        if len(self.rows) < SPARSE:
            return None
        turned = self._close & (self._cosines < PARALLEL)
        share = float(turned.sum() / max(self._close.sum(), 1))
        if share < MANY_TURNED:
            return None
        return few_bursts(
            self.all,
            f"{share:.0%} of near neighbours have tangents more than 37° apart, so that what lies between them is "
            "guessed",
        )

    @cached_property
    def _close(self) -> NDArray[np.bool_]:
        """Edges between near neighbours, without single bad bursts."""
        heads, tails = self.graph.heads, self.graph.tails
        length = np.linalg.norm(self.statistics.means[heads] - self.statistics.means[tails], axis=1)
        # An outlier has few parallels, or is lost alone; where sheets cross many bursts are lost together.
        single = self._loners if self.folded or self._clustered() else self._loners | self.lost
        return np.asarray(~single[heads] & ~single[tails] & (length <= np.median(length)))

    def _through(self, crossed: NDArray[np.bool_]) -> float:
        """Compute the part of crossed edges at which both sheets go on beyond the other end.

        At a kink of the measurement, or at bends that are finer than the spacing of the bursts, near tangents differ as
        well; but there a sheet ends where the other begins: no parallel neighbour lies farther in the same direction.
        """
        heads, tails = np.r_[self.graph.heads, self.graph.tails], np.r_[self.graph.tails, self.graph.heads]
        basis, scale = self.statistics.frames()
        steps = self.statistics.means[tails] - self.statistics.means[heads]
        steps = np.einsum("ekd,ed->ek", basis[heads], steps) / scale[heads]  # along the tangents of the head
        order = np.argsort(heads, kind="stable")
        bounds = np.searchsorted(heads[order], np.arange(len(self.rows) + 1))
        parallel = np.tile(self._cosines > PARALLEL, 2)

        def goes_on(edge: int) -> bool:
            around = order[bounds[heads[edge]] : bounds[heads[edge] + 1]]
            farthest = (steps[around[parallel[around]]] @ steps[edge]).max(initial=0.0)
            return bool(farthest >= steps[edge] @ steps[edge])

        edges, back = np.flatnonzero(crossed), len(self.graph.heads)
        return float(np.mean([goes_on(edge) and goes_on(edge + back) for edge in edges.tolist()]))

    def _clustered(self) -> bool:
        """Whether lost bursts have lost neighbours, more than by chance."""
        heads, tails = self.lost[self.graph.heads], self.lost[self.graph.tails]
        ends = int(heads.sum() + tails.sum())
        both = 2 * int((heads & tails).sum()) / max(ends, 1)
        return both > CLUSTERED + 2 * float(self.lost.mean())

    @cached_property
    def _jumps(self) -> Array:
        """Logarithm of the growth common to all directions of a burst along each edge; 0 where some shrink."""
        heads, tails = self.graph.heads, self.graph.tails
        # from both ends, so that an angle between the tangents, by curvature or noise, is not taken for shrinking
        logs = (self._growth(heads, tails) - self._growth(tails, heads)[:, ::-1]) / 2
        same = (logs > 0).all(axis=1) | (logs < 0).all(axis=1)
        # of each edge by itself: the error of a regression differs from burst to burst
        variance = (self.statistics.intrinsic_dim + 1) / (2 * (self.statistics.sampled_counts - 1))
        error = np.sqrt((variance[heads] + variance[tails]) / 2)
        errors = JUMP_ERRORS_CURVE if self.statistics.intrinsic_dim == 1 else JUMP_ERRORS
        least = np.maximum(JUMP, errors * error)
        size = np.where(same, np.abs(logs).min(axis=1), 0)
        return np.where(size > least, size, 0)

    def _growth(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> Array:
        """Logarithms by which directions of a burst grow along edges, as the tangents at the start see it, (E, k)."""
        basis, scale = self.statistics.frames()
        ratio = np.einsum("ekd,eld->ekl", self.statistics.tangents[end], basis[start]) / scale[start][:, None, :]
        return np.asarray(np.log(np.maximum(np.linalg.svd(ratio, compute_uv=False), 1e-12)))

    @cached_property
    def giants(self) -> NDArray[np.bool_]:
        """Whether each burst is much larger or smaller than most neighbours, while these agree with each other."""
        heads, tails, n = self.graph.heads, self.graph.tails, len(self.rows)
        if n < FEW:
            return np.zeros(n, dtype=bool)
        ends, others = np.r_[heads, tails], np.r_[tails, heads]
        degree = np.bincount(ends, minlength=n)
        jumping = np.bincount(ends, np.tile(self._jumps > 0, 2), n) / degree
        around = np.bincount(ends, jumping[others], n) / degree
        return np.asarray((jumping > 1 - LONELY) & (around < LONELY))

    def outliers(self) -> Finding | None:
        """Check for bursts unlike their neighbours in size, or many that are lost or turned, each among good ones.

        Returns
        -------
        Finding or None
        """
        wrong, giants = self.all_lost.copy(), self.rows[self.giants]
        wrong[self.rows[self._loners]] = True
        some_lost = FEWEST <= wrong.sum() < MOST * len(wrong)
        many = MANY_LOST.passed(wrong.mean()) and some_lost and not (self.folded or self._clustered())
        some = SOME_GIANTS.passed(len(giants) / len(self.rows)) and len(giants) >= FEWEST
        if not many and not some:
            return None
        wrong = wrong if many else np.zeros(len(wrong), dtype=bool)
        wrong[giants] = True
        worst = np.flatnonzero(wrong)
        worst = worst[np.argsort(-self.losses[worst], kind="stable")]
        return Finding(
            "outliers",
            f"{wrong.mean():.0%} of the bursts are outliers: far from white, or unlike all their neighbours, "
            f"such as {self.all.listed(worst[:5])}. Look at them (one point that is far off spoils a "
            "burst), and fit again without them. If the fit has not seen these bursts, they may come from another "
            "instrument.",
            tuple(int(i) for i in worst),
        )

    def uneven_size(self) -> Finding | None:
        """Check whether σ changes: all directions of a burst grow or shrink at once from one neighbour to the next.

        A measurement does not do that so suddenly: where it is singular, one direction shrinks and others do not. Among
        few bursts (SPARSE) it may, and then an encoder can follow it, and leaves bursts white at both ends.

        Returns
        -------
        Finding or None
        """
        heads, tails, giants = self.graph.heads, self.graph.tails, self.giants
        sound = self._sound & ~giants[heads] & ~giants[tails]
        jump = sound & (self._jumps > 0)
        if len(self.rows) < SPARSE:
            # Bursts on either side of a border jump to several on the other; around one odd burst, only that does.
            degree = np.bincount(np.r_[heads[jump], tails[jump]], minlength=len(self.rows))
            jump &= (degree[heads] > 1) & (degree[tails] > 1)
        share = jump.sum() / max(sound.sum(), 1)
        apart = _disjoint(heads[jump], tails[jump])  # one odd burst is at the end of all its jumps
        if len(self.rows) < FEW or not (MANY_JUMPS.passed(share) and apart >= FEWEST):
            return None
        ends = np.unique(np.r_[heads[jump], tails[jump]])  # a burst at the end of many jumps counts once
        unlikely = int(self.unlikely[self.rows[ends]].sum())
        by_chance = binom.sf(unlikely - 1, len(ends), UNLIKELY) > WHITE_BY_CHANCE
        white = unlikely < SENSELESS * len(ends) or by_chance
        # Where noise was removed, sizes have errors of their own.
        if white and (len(self.rows) < SPARSE or self.statistics.noise is not None):
            return None
        where = self.rows[ends]
        return Finding(
            "uneven_size",
            f"bursts are not of one size: between {share:.1%} of neighbours all directions grow at once, by a "
            f"factor of {np.exp(np.median(self._jumps[jump])):.2g} or more, as at {self.all.name_of(int(where[0]))}. σ "
            "is not the same everywhere; fit the parts with equal σ separately, or scale their clouds to one σ.",
            tuple(int(i) for i in where[:50]),
        )


def _disjoint(heads: NDArray[np.int64], tails: NDArray[np.int64]) -> int:
    """Count edges that have no end in common, taken as they come."""
    used: set[int] = set()
    count = 0
    for head, tail in zip(heads.tolist(), tails.tolist(), strict=True):
        if head not in used and tail not in used:
            used |= {head, tail}
            count += 1
    return count
