"""Bends of the measurement that the bursts do not sample: neighbours whose tangents and steps do not fit together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pyloca.findings._diagnostics import Finding
from pyloca.findings._round_trip import noise_of_means
from pyloca.geometry import BurstStatistics, SheetDistance, nearest, nearest_rows, sample_rows
from pyloca.thresholds import (
    ALIEN,
    BELONG,
    MANY_TURNED,
    MISJUDGED,
    MISJUDGED_ERRORS,
    MISJUDGED_STEP,
    NEIGHBORS,
    OFFSET,
    PARALLEL,
    SAMPLE,
    UNEXPLAINED_STEP,
    UNSAMPLED,
)

__all__ = ["EmbeddedSteps", "MeasuredSteps", "Sampling", "belonging", "few_bursts"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class MeasuredSteps:
    """Steps between neighbours in the measurements, and whether the bursts at both ends explain them.

    Neighbours are those by the joint Mahalanobis distance, to which a step off the tangents is like any other. On a
    surface that is sampled well, a quarter of such a step or less is off the tangents at both of its ends (they turn
    by less than a radian). Bursts with hardly any neighbour of their own kind are strays and do not count.

    Attributes
    ----------
    unexplained : (N, n) array of bool
        Whether a step leaves the tangents at both ends, so that no bend explains it.
    near : (N, n) array of int
        The neighbours.
    statistics : BurstStatistics
    leaving : (N,) array
        Part of the steps of each burst that no bend explains, also of strays.
    """

    unexplained: NDArray[np.bool_]
    near: Rows
    statistics: BurstStatistics
    leaving: Array

    @classmethod
    def of(cls, statistics: BurstStatistics) -> MeasuredSteps:
        """Compare all bursts with their neighbours.

        Parameters
        ----------
        statistics : BurstStatistics

        Returns
        -------
        MeasuredSteps
        """
        n, count = len(statistics), min(NEIGHBORS, len(statistics) - 1)
        near, squared = nearest(SheetDistance(statistics, off=1.0), count)
        costs = SheetDistance(statistics).between(np.repeat(np.arange(n), count), near.ravel())
        off = costs.reshape(n, count) > UNEXPLAINED_STEP**2 * squared
        leaving = off.mean(axis=1)
        alien = leaving > ALIEN
        if alien.mean() < 1 - ALIEN:
            off = off & ~alien[near]
            off[alien] = False
        return cls(off, near, statistics, leaving)

    @property
    def share(self) -> float:
        """Part of the steps that no bend explains."""
        return float(self.unexplained.mean())

    @property
    def share_of_parallel(self) -> float:
        """The same between bursts with parallel tangents; 0 if no neighbours are parallel.

        Where sheets cross, bursts on one sheet explain the steps between them, and the others have turned tangents.
        """
        n, count = self.near.shape
        parallel = _cosines(self.statistics, np.repeat(np.arange(n), count), self.near.ravel()) > PARALLEL
        return float(self.unexplained.ravel()[parallel].mean()) if parallel.any() else 0.0

    def parallel(self, rows: Rows) -> Array:
        """Compute the part of their neighbours whose tangents are parallel to those of some bursts.

        Parameters
        ----------
        rows : (n,) array of int

        Returns
        -------
        (n,) array
        """
        near = self.near[rows]
        cosines = _cosines(self.statistics, np.repeat(rows, near.shape[1]), near.ravel())
        return np.asarray((cosines > PARALLEL).reshape(near.shape).mean(axis=1))

    @property
    def worst(self) -> Rows:
        """Bursts, those with most of such steps first."""
        return np.argsort(-self.unexplained.mean(axis=1), kind="stable")


@dataclass(frozen=True)
class EmbeddedSteps:
    """Steps between neighbours in an embedding, compared with what the bursts at both ends say of them.

    The joint Mahalanobis distance of neighbours is their latent distance up to third order in the step, and needs no
    network. An embedding with bursts that are white and in wrong places shows here, however few they are.

    Attributes
    ----------
    misjudged : float
        Part of the steps that are longer or shorter than the bursts say, by more than sampling explains.
    turned : float
        Part of the steps between bursts whose tangents are not parallel.
    offset : float
        Part of the other steps that leave the tangents at both ends.
    """

    misjudged: float
    turned: float
    offset: float

    @classmethod
    def of(cls, statistics: BurstStatistics, embedding: Array, burst_std: float) -> EmbeddedSteps:
        """Compare bursts (a sample of them) with their neighbours in an embedding.

        Parameters
        ----------
        statistics : BurstStatistics
        embedding : (N, d) array
        burst_std : float
            σ.

        Returns
        -------
        EmbeddedSteps
        """
        n, k = len(statistics), statistics.intrinsic_dim
        rows, count = sample_rows(n, SAMPLE), min(2 * k, n - 1)
        lengths, near = (a[:, 1:].ravel() for a in cKDTree(embedding).query(embedding[rows], count + 1))
        freedom = np.maximum(np.median(statistics.sampled_counts) - 1, k + 2)
        ends, places = np.unique(np.r_[np.repeat(rows, count), near], return_inverse=True)
        statistics, (heads, near) = statistics[ends], np.split(places, 2)  # the others would only take memory
        measured = SheetDistance(statistics, off=1.0).between(heads, near)
        # Noise leaves means off their surface, which makes measured steps longer, and not those of the embedding.
        noise = noise_of_means(statistics, statistics.counts) / statistics.spectra[:, -1]
        # Where the measurement is much steeper in one direction than in another, a bend costs many steps of the other.
        clear = np.maximum(np.minimum(_along(statistics, heads, near), measured) - noise[heads] - noise[near], 0)
        # Covariances of few points are inverted: distances are too long on average, and vary, as 1 / χ² does.
        usual = 0 if np.isinf(freedom) else -0.5 * np.log1p(-(k + 1) / freedom)
        error = 0.5 / np.sqrt(freedom - k + 1)
        limit = max(MISJUDGED_STEP, MISJUDGED_ERRORS * error)
        lengths = np.square(lengths / burst_std)
        wrong = (clear > np.exp(2 * (usual + limit)) * lengths) | (measured < np.exp(2 * (usual - limit)) * lengths)
        off = SheetDistance(statistics).between(heads, near) > UNEXPLAINED_STEP**2 * measured
        parallel = _cosines(statistics, heads, near) > PARALLEL
        offset = float(off[parallel].mean()) if parallel.any() else 0.0
        return cls(float(wrong.mean()), 1 - float(parallel.mean()), offset)


class Sampling:
    """Check whether there are enough bursts for the bends of the measurement, if the fit suffers.

    Parameters
    ----------
    statistics : BurstStatistics
    embedding : (N, d) array
    burst_std : float
        σ.
    """

    def __init__(self, statistics: BurstStatistics, embedding: Array, burst_std: float) -> None:
        self.statistics, self._embedding, self._burst_std = statistics, embedding, burst_std

    @cached_property
    def measured(self) -> MeasuredSteps:
        """Steps between neighbours in the measurements."""
        return MeasuredSteps.of(self.statistics)

    @cached_property
    def embedded(self) -> EmbeddedSteps:
        """Steps between neighbours in the embedding."""
        return EmbeddedSteps.of(self.statistics, self._embedding, self._burst_std)

    @cached_property
    def misjudges(self) -> bool:
        """Whether many neighbours in the embedding lie at other distances than the bursts measure."""
        return MISJUDGED.passed(self.embedded.misjudged)

    @cached_property
    def offset(self) -> bool:
        """Whether means lie off their surface, each by its own: bursts are parallel, and steps between them leave it.

        This is no matter of sampling: bends that lie between bursts turn their tangents.
        """
        if self.embedded.turned >= MANY_TURNED:
            return False
        return max(self.embedded.offset, self.measured.share_of_parallel) >= OFFSET

    def bends(self, misplaced: bool = False) -> Finding | None:
        """Check whether bends of one sheet lie between the bursts.

        Parameters
        ----------
        misplaced : bool, default=False
            Whether it is known that parts of the data lie in wrong places.

        Returns
        -------
        Finding or None
            "few_bursts", or None when nothing is wrong.
        """
        share = self._unsampled(misplaced)
        if not share or self.measured.share_of_parallel < UNSAMPLED:
            return None
        return few_bursts(
            self.statistics,
            f"{share:.0%} of the steps between neighbours leave the tangents at both ends, as from "
            f"{self.statistics.listed(self.measured.worst[:2])}, so that bends or sheets between them were not seen "
            "and parts may be joined in a wrong order",
            self.measured.worst,
        )

    def sheets(self, misplaced: bool = False) -> Finding | None:
        """Check the same where bursts with parallel tangents do follow each other, and others may be another sheet.

        Parameters
        ----------
        misplaced : bool, default=False
            Whether it is known that parts of the data lie in wrong places.

        Returns
        -------
        Finding or None
            "few_bursts", or None when nothing is wrong.
        """
        share = self._unsampled(misplaced)
        if not share:
            return None
        return few_bursts(
            self.statistics,
            f"{share:.0%} of the steps between neighbours leave the tangents at both ends, nearly all of them between "
            f"bursts with different tangents, as from {self.statistics.listed(self.measured.worst[:2])}: the "
            "measurement turns sharply there, or its sheets cross",
            self.measured.worst,
            crossing=True,
        )

    def _unsampled(self, misplaced: bool) -> float:
        """Part of the steps that no bend explains, if they are many and the fit suffers; else 0."""
        if not (misplaced or self.misjudges):  # asked first: it looks at a sample, the steps are those of all bursts
            return 0.0
        share = self.measured.share
        return 0.0 if share < UNSAMPLED or self.offset else share


def few_bursts(
    statistics: BurstStatistics, evidence: str, where: Rows | None = None, *, crossing: bool = False
) -> Finding:
    """Say that there are too few bursts for the bends of the measurement, and what to do.

    Parameters
    ----------
    statistics : BurstStatistics
    evidence : str
    where : (n,) array of int, optional
        Bursts that show it, the worst first.
    crossing : bool, default=False
        Whether sheets may cross as well, by the evidence.

    Returns
    -------
    Finding
    """
    k, dim = statistics.intrinsic_dim, statistics.n_used
    # Whitney: in 2k + 1 dimensions hardly any surface of dimension k crosses itself.
    if crossing or dim <= 2 * k:
        advice = (
            f" But with {dim} sensors for {k} latent variable{'s' * (k > 1)}, different states may also give the same "
            "readings, and more bursts do not mend that: then add a sensor that tells them apart."
        )
    else:
        advice = ""
    if belonging(statistics) < BELONG:
        advice += " Bursts that were shuffled look the same: check that the clouds belong to their places."
    return Finding(
        "few_bursts",
        f"there are too few bursts for the bends of the measurement: {evidence}. Take more bursts (twice as many per "
        f"latent variable), most of all where the readings turn, or leave out the sensors that bend most.{advice}",
        () if where is None else tuple(int(i) for i in where[:50]),
    )


def belonging(statistics: BurstStatistics) -> float:
    """Compute how often the step to the nearest mean lies nearer to a burst's own tangents than to those of another.

    Parameters
    ----------
    statistics : BurstStatistics

    Returns
    -------
    float
        ½ for clouds that do not belong to their places, whatever lies between these; nan if the tangents fill all
        dimensions, since every step lies along them.
    """
    if statistics.n_used == statistics.intrinsic_dim:
        return float("nan")
    some = statistics[sample_rows(len(statistics), SAMPLE)]
    basis, _ = some.frames()
    steps = some.means[nearest_rows(some.means, some.means, 2)[:, 1]] - some.means
    own = np.square(np.einsum("nkd,nd->nk", basis, steps)).sum(axis=1)
    strangers = basis[np.random.RandomState(0).permutation(len(some))]
    return float(np.mean(own > np.square(np.einsum("nkd,nd->nk", strangers, steps)).sum(axis=1)))


def _along(statistics: BurstStatistics, heads: Rows, tails: Rows) -> Array:
    """Squared length of each step along the tangents, in units of σ², the mean of both ends, (E,)."""
    basis, scale = statistics.frames()
    out = np.zeros(len(heads))
    for start in range(0, len(heads), SAMPLE):
        part = slice(start, start + SAMPLE)
        steps = statistics.means[tails[part]] - statistics.means[heads[part]]
        for ends in (heads[part], tails[part]):
            out[part] += 0.5 * np.square(np.einsum("ekd,ed->ek", basis[ends], steps) / scale[ends]).sum(axis=1)
    return out


def _cosines(statistics: BurstStatistics, heads: Rows, tails: Rows) -> Array:
    """Cosine of the largest angle between the tangents of each pair, (E,)."""
    basis, _ = statistics.frames()
    out = np.empty(len(heads))
    for start in range(0, len(heads), SAMPLE):  # pictures have many features
        part = slice(start, start + SAMPLE)
        products = np.einsum("ekd,eld->ekl", basis[heads[part]], basis[tails[part]])
        out[part] = np.linalg.svd(products, compute_uv=False)[:, -1]
    return out
