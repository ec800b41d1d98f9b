"""`Bursts`: N clouds of repeated measurements in R^D, equal or ragged, in memory or on disk."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca.errors import BurstError

__all__ = ["Bursts"]

# Numbers read at once: 32 MB in float64, large enough for BLAS, small beside any data set.
CHUNK = 1 << 22


class Bursts:
    """N bursts of measurements in R^D.

    Parameters
    ----------
    data : array of shape (N, M, D), or a sequence of N arrays of shape (M_i, D)
        Real numbers. A memory-mapped array is kept as it is and read in chunks, so the data may exceed memory.
    burst_std : float, optional
        σ, the standard deviation of a burst in the latent space, where it is known; `LOCA` uses it if it is given none.
    provenance : str, optional
        Where the bursts come from and what was assumed, in words.

    Notes
    -----
    Indexing with an integer gives one burst, an array (M_i, D) in float64; indexing with a slice, a mask or an integer
    array gives another `Bursts` on the same memory. Only shapes and dtypes are checked here. Values are checked where
    they are read, in the one pass that makes `BurstStatistics`, so that a file larger than memory is not read twice.

    Examples
    --------
    >>> import numpy as np
    >>> bursts = Bursts(np.zeros((5, 3, 2)))
    >>> len(bursts), bursts.n_features, bursts[1:3].counts.tolist()
    (5, 2, [3, 3])
    """

    _points: NDArray[Any]
    _offsets: NDArray[np.int64] | None
    _index: NDArray[np.int64]
    burst_std: float | None
    provenance: str

    def __init__(
        self,
        data: ArrayLike | Sequence[ArrayLike] | Bursts,
        *,
        burst_std: float | None = None,
        provenance: str = "",
    ) -> None:
        if burst_std is not None and not 0 < burst_std < np.inf:
            raise BurstError(f"burst_std must be a number > 0, or None when it is not known; got {burst_std!r}.")
        self.burst_std, self.provenance = burst_std, provenance
        if isinstance(data, Bursts):
            self._points, self._offsets, self._index = data._points, data._offsets, data._index
            self.burst_std = data.burst_std if burst_std is None else burst_std
            self.provenance = provenance or data.provenance
            return
        if np.ma.isMaskedArray(data):
            raise BurstError("bursts is a masked array; remove the masked points and pass a list of (M_i, D) arrays.")
        if isinstance(data, (list, tuple)):
            parts = [_part(part, i) for i, part in enumerate(data)]
            if len({part.shape for part in parts}) > 1:
                self._init_ragged(*_concatenate(parts))
                return
            data = np.stack(parts) if parts else np.empty((0, 0, 0))
        # np.asarray would forget that a memory-mapped array is one, which is harmless: it stays lazy.
        array = _real(np.asarray(data), "bursts")
        if array.ndim != 3:
            hint = (
                " For one burst pass bursts[None]; for bursts of unequal length pass a list of (M_i, D) arrays."
                if array.ndim == 2
                else ""
            )
            raise BurstError(f"bursts has shape {array.shape}; expected (N, M, D).{hint}")
        n, m, dim = array.shape
        if n == 0 or m == 0 or dim == 0:
            raise BurstError(f"bursts has shape {array.shape}: there is nothing in it. Expected N, M, D ≥ 1.")
        self._points = array
        self._offsets = None
        self._index = np.arange(n)

    def _init_ragged(self, points: NDArray[Any], offsets: NDArray[np.int64]) -> None:
        self._points, self._offsets, self._index = points, offsets, np.arange(len(offsets) - 1)

    @classmethod
    def from_ragged(
        cls, points: ArrayLike, offsets: ArrayLike, *, burst_std: float | None = None, provenance: str = ""
    ) -> Bursts:
        """Bursts of unequal length: burst i is ``points[offsets[i]:offsets[i + 1]]``."""
        points = _real(np.asarray(points), "points")
        if points.ndim != 2 or points.shape[1] == 0:
            raise BurstError(f"points has shape {points.shape}; expected (n, D) with offsets of length N + 1.")
        offsets = np.asarray(offsets)
        if offsets.ndim != 1 or len(offsets) < 2 or not np.issubdtype(offsets.dtype, np.integer):
            raise BurstError(f"offsets must be N + 1 whole numbers; got shape {offsets.shape}, dtype {offsets.dtype}.")
        offsets = offsets.astype(np.int64)
        if offsets[0] != 0 or offsets[-1] != len(points):
            raise BurstError(
                f"offsets must run from 0 to the number of points, {len(points)}; "
                f"they run from {offsets[0]} to {offsets[-1]}."
            )
        short = np.flatnonzero(np.diff(offsets) < 1)
        if len(short):
            raise BurstError(
                f"burst {short[0]} has no points (offsets {offsets[short[0]]} to {offsets[short[0] + 1]}). "
                "Remove empty bursts and keep the offsets in increasing order."
            )
        out = cls.__new__(cls)
        out.burst_std, out.provenance = burst_std, provenance
        out._init_ragged(points, offsets)
        return out

    # -- what it holds ------------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        """D, the dimension of the measurements."""
        return int(self._points.shape[-1])

    @property
    def counts(self) -> NDArray[np.int64]:
        """M_i, the number of points of each burst, shape (N,)."""
        if self._offsets is None:
            return np.full(len(self), self._points.shape[1], dtype=np.int64)
        return np.diff(self._offsets)[self._index]

    @property
    def is_ragged(self) -> bool:
        """Whether the bursts differ in length."""
        counts = self.counts
        return len(counts) > 0 and bool(np.any(counts != counts[0]))

    def __len__(self) -> int:
        return len(self._index)

    def __repr__(self) -> str:
        counts = self.counts
        if len(counts) == 0:
            return f"Bursts(N=0, D={self.n_features})"
        size = f"M={counts.min()}..{counts.max()}" if self.is_ragged else f"M={counts[0]}"
        return f"Bursts(N={len(self)}, {size}, D={self.n_features})"

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            return self._burst(int(self._index[key])).astype(np.float64)
        out = Bursts.__new__(Bursts)
        out.burst_std, out.provenance = self.burst_std, self.provenance
        rows = np.atleast_1d(self._index[key])
        if isinstance(key, bool) or key is None or rows.ndim != 1:
            raise IndexError(f"bursts are chosen by a number, a slice, a mask or a list of numbers; got {key!r}.")
        out._points, out._offsets, out._index = self._points, self._offsets, rows
        return out

    def __iter__(self) -> Iterator[NDArray[np.float64]]:
        return (self[i] for i in range(len(self)))

    def _burst(self, row: int) -> NDArray[Any]:
        if self._offsets is None:
            return self._points[row]
        return self._points[self._offsets[row] : self._offsets[row + 1]]

    # -- reading in bulk ----------------------------------------------------------------------------------------

    def blocks(self, max_numbers: int = CHUNK) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Bursts of equal length together: (positions in this object, float64 array (b, M, D)), chunk by chunk.

        A chunk has at most `max_numbers` numbers, or is one burst.
        """
        counts = self.counts
        if len(counts) == 0:
            return
        # A stable sort keeps bursts of one length in the order of the file, so a disk is read forwards.
        order = np.argsort(counts, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(counts[order])) + 1):
            size = max(1, max_numbers // (int(counts[group[0]]) * self.n_features))
            for start in range(0, len(group), size):
                rows = group[start : start + size]
                yield rows, self._stack(rows)
                _forget_pages(self._points)

    def _stack(self, positions: NDArray[np.int64]) -> NDArray[np.float64]:
        rows = self._index[positions]
        if self._offsets is None:
            if len(rows) > 1 and np.all(np.diff(rows) == 1):  # a slice of the file needs no gather
                return np.asarray(self._points[rows[0] : rows[-1] + 1], dtype=np.float64)
            return np.asarray(self._points[rows], dtype=np.float64)
        return np.stack([self._burst(int(row)) for row in rows]).astype(np.float64)

    def to_array(self) -> NDArray[np.float64]:
        """All bursts as one array (N, M, D); an error when they differ in length."""
        if not len(self):
            raise BurstError("there are no bursts.")
        if self.is_ragged:
            raise BurstError("the bursts differ in length and do not fit one (N, M, D) array; use to_ragged().")
        return self._stack(np.arange(len(self)))

    def to_ragged(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """``points`` (n, D) and ``offsets`` (N + 1,) of all bursts, in order."""
        if not len(self):
            raise BurstError("there are no bursts.")
        points = np.concatenate([self._burst(int(row)) for row in self._index]).astype(np.float64)
        return points, np.concatenate([[0], np.cumsum(self.counts)])

    def split(self, fraction: float, seed: int | np.random.RandomState | None = None) -> tuple[Bursts, Bursts]:
        """Training and validation bursts: `fraction` of them, drawn by `seed`, are held out. Order is kept."""
        train, held_out = split_indices(len(self), fraction, seed)
        return self[train], self[held_out]


def _forget_pages(array: NDArray[Any]) -> None:
    """What was read of a mapped file need not stay in memory; a file larger than that would fill it."""
    base: Any = array
    while base is not None and not isinstance(base, mmap.mmap):
        if isinstance(base, np.memmap) and base.mode != "r":
            return  # changes that were never meant for the file (mode "c") would be lost
        base = getattr(base, "base", None)
    if base is not None and hasattr(base, "madvise"):  # not on Windows
        base.madvise(mmap.MADV_DONTNEED)


def split_indices(
    n: int, fraction: float, seed: int | np.random.RandomState | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sorted positions of the training and of the held-out items; at least one of n is trained on."""
    if not 0 <= fraction < 1:
        raise BurstError(f"the fraction to hold out must be in [0, 1); got {fraction}.")
    random = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
    order = random.permutation(n)
    n_held = min(round(fraction * n), n - 1)
    return np.sort(order[n_held:]), np.sort(order[:n_held])


def _real(array: NDArray[Any], name: str) -> NDArray[Any]:
    """Refuse what is not real numbers; booleans and complex numbers are mistakes more often than measurements."""
    if array.dtype.kind not in "fiu":
        raise BurstError(
            f"{name} has dtype {array.dtype}; expected real numbers. "
            "Convert with astype(float); for bursts of unequal length pass a list of (M_i, D) arrays."
        )
    return array


def _part(part: ArrayLike, i: int) -> NDArray[Any]:
    if np.ma.isMaskedArray(part):
        raise BurstError(f"burst {i} is a masked array; remove its masked points.")
    try:
        return np.asarray(part)
    except ValueError as error:
        raise BurstError(f"burst {i} is not an array of numbers ({error}).") from error


def _concatenate(parts: list[NDArray[Any]]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    for i, part in enumerate(parts):
        _real(part, f"burst {i}")
        if part.ndim != 2 or part.size == 0:
            raise BurstError(f"burst {i} has shape {part.shape}; expected (M_i, D) with M_i, D ≥ 1.")
        if part.shape[1] != parts[0].shape[1]:
            raise BurstError(
                f"burst {i} has D = {part.shape[1]} features and burst 0 has {parts[0].shape[1]}; all must agree."
            )
    return np.concatenate(parts), np.concatenate([[0], np.cumsum([len(part) for part in parts])])
