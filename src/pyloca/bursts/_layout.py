"""Where the points of bursts lie: in one memory, a file or a store, of which some bursts and points are meant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts._arrays import offsets_of
from pyloca.bursts._lazy import LazyRows

__all__ = ["Layout"]


@dataclass(frozen=True, eq=False)
class Layout:
    """Some bursts of a memory; choosing others neither copies nor reads anything.

    Attributes
    ----------
    points : array, `FileArray` or `LazyRows`
        (N', M, D) if bursts have one length, or else (n, D) with offsets.
    offsets : (N' + 1,) array of int, or None
    rows : (N,) array of int
        Which bursts of the memory are meant.
    aside : (a,) array of int, or None
        Sorted numbers, in memory, of the points that are set aside; None: they have not been searched.
    perturbations : array or None
        Known perturbations, laid out as the points: (N', M, k), or (n, k) with offsets.
    """

    points: Any
    offsets: NDArray[np.int64] | None
    rows: NDArray[np.int64]
    aside: NDArray[np.int64] | None = None
    perturbations: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, points: Any, offsets: NDArray[np.int64] | None = None) -> Layout:
        """Mean all bursts of a memory."""
        return cls(points, offsets, np.arange(len(points) if offsets is None else len(offsets) - 1))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_lazy(self) -> bool:
        """Whether points are read when they are wanted."""
        return isinstance(self.points, LazyRows)

    @property
    def n_aside(self) -> NDArray[np.int64]:
        """Number of points of each burst that are set aside, (N,)."""
        if self.aside is None or not len(self.aside):
            return np.zeros(len(self), dtype=np.int64)
        starts, ends = self.bounds()
        return np.searchsorted(self.aside, ends) - np.searchsorted(self.aside, starts)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of points of each burst, (N,), without those set aside."""
        starts, ends = self.bounds()
        return ends - starts - self.n_aside

    def bounds(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where bursts begin and end in memory, in points."""
        if self.offsets is None:
            m = self.points.shape[1]
            return self.rows * m, self.rows * m + m
        return self.offsets[self.rows], self.offsets[self.rows + 1]

    # -- reading ------------------------------------------------------------------------------------------------

    def burst(self, position: int) -> NDArray[Any]:
        """Read one burst, (M_i, D)."""
        row = int(self.rows[position])
        if self.offsets is None:
            burst = self.points[row]
            start = row * len(burst)
        else:
            start, end = self.offsets[row : row + 2]
            burst = self.points[start:end]
        if self.aside is None or not len(self.aside):
            return burst
        low, high = np.searchsorted(self.aside, [start, start + len(burst)])
        left = np.ones(len(burst), dtype=bool)
        left[self.aside[low:high] - start] = False
        return burst[left]

    def stack(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Read bursts of one length, (b, M, D)."""
        some = replace(self, rows=self.rows[positions])
        rows = some.rows
        if self.offsets is not None or some.n_aside.any():
            return np.stack([some.burst(i) for i in range(len(some))])
        if len(rows) > 1 and np.all(np.diff(rows) == 1):  # a slice of the file needs no gather
            return self.points[rows[0] : rows[-1] + 1]
        return self.points[rows]

    def stack_perturbations(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """Return perturbations of bursts of one length, (b, M, k)."""
        return replace(self, points=self.perturbations).stack(positions)

    def join(self) -> NDArray[Any]:
        """Read all bursts, one after the other, (n, D)."""
        here = self.loaded()
        empty = here.points[:0].reshape(0, here.points.shape[-1])
        return np.concatenate([empty, *(here.burst(i) for i in range(len(here)))])

    def groups(self, max_numbers: int) -> Iterator[NDArray[np.int64]]:
        """Yield positions of bursts of equal length, so many that they have at most this many numbers."""
        counts = self.counts
        if len(counts) == 0:
            return
        # A stable sort keeps bursts of one length in the order of the file, so a disk is read forwards.
        order = np.argsort(counts, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(counts[order])) + 1):
            size = max(1, max_numbers // (int(counts[group[0]]) * self.points.shape[-1]))
            yield from (group[start : start + size] for start in range(0, len(group), size))

    # -- moving -------------------------------------------------------------------------------------------------

    def perturbed(self, values: NDArray[np.float64]) -> Layout:
        """Return the same bursts with these perturbations, (n, k) of their points in order."""
        here = self if self._is_plain() else self.plain()
        flat = here.offsets is not None
        return replace(here, perturbations=values if flat else values.reshape(*here.points.shape[:2], -1))

    def plain(self) -> Layout:
        """Return these bursts alone in a memory of their own, without the points that were set aside."""
        here = self.loaded()
        points, offsets = here._own()
        aside = None if self.aside is None else np.empty(0, dtype=np.int64)  # they are gone
        moves = None if here.perturbations is None else replace(here, points=here.perturbations)._own()[0]
        return replace(Layout.of(points, offsets), aside=aside, perturbations=moves)

    def _is_plain(self) -> bool:
        """Whether all bursts of the memory are meant, in order, with all their points."""
        n = len(self.points) if self.offsets is None else len(self.offsets) - 1
        return np.array_equal(self.rows, np.arange(n)) and (self.aside is None or not len(self.aside))

    def _own(self) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        counts = self.counts
        if self.offsets is None and (len(counts) == 0 or np.all(counts == counts[0])):
            return self.stack(np.arange(len(self))), None
        return self.join(), offsets_of(counts)

    def loaded(self) -> Layout:
        """Return the same bursts in memory; those that are there already as they are."""
        if not self.is_lazy:
            return self
        if self.offsets is None:
            return self._moved(self.points[self.rows], None)
        starts, ends = self.bounds()
        return self._moved(self.points[_ranges(starts, ends)], offsets_of(ends - starts))

    def window(self) -> Layout:
        """Return bursts that follow each other in a store as all bursts of a part of it; others as they are."""
        rows = self.rows
        if not len(rows) or not self.is_lazy or np.any(np.diff(rows) != 1):
            return self
        first, last = int(rows[0]), int(rows[-1]) + 1
        if self.offsets is None:
            return self._moved(self.points.window(first, last), None)
        offsets = self.offsets[first : last + 1]
        return self._moved(self.points.window(int(offsets[0]), int(offsets[-1])), offsets - offsets[0])

    def _moved(self, points: NDArray[Any] | LazyRows, offsets: NDArray[np.int64] | None) -> Layout:
        """Return these bursts with their points elsewhere, one after the other."""
        aside, moves = self.aside, self.perturbations
        starts, ends = self.bounds()
        if moves is not None:
            moves = moves[self.rows if offsets is None else _ranges(starts, ends)]
        if aside is not None:
            low, high = np.searchsorted(aside, starts), np.searchsorted(aside, ends)
            shift = offsets_of(ends - starts)[:-1] - starts
            aside = aside[_ranges(low, high)] + np.repeat(shift, high - low)
        return replace(Layout.of(points, offsets), aside=aside, perturbations=moves)


def _ranges(starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Join the ranges from each start to its end."""
    sizes = ends - starts
    return np.arange(sizes.sum()) + np.repeat(starts - offsets_of(sizes)[:-1], sizes)
