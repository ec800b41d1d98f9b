"""Arrays in files, read piece by piece: a file that changes in the meantime is an error, not the end of the process."""

from __future__ import annotations

import mmap
import os
import weakref
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pyloca.errors import BurstError

__all__ = ["FileArray", "on_disk"]


class FileArray:
    """An array in a file that is indexed along its first axis; what is not asked for is not read.

    A memory map would do the same, but of a file that was cut it kills the process (SIGBUS).

    Parameters
    ----------
    path : str
    offset : int
        Where the numbers begin, in bytes.
    dtype : dtype
    shape : tuple of int
    """

    def __init__(self, path: str, offset: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.path, self.offset, self.dtype, self.shape = path, offset, dtype, shape
        self._handle = os.open(path, os.O_RDONLY)  # as long as this lives: who replaces the file does no harm
        weakref.finalize(self, os.close, self._handle)
        self._changed = os.fstat(self._handle).st_mtime_ns

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of numbers."""
        return int(np.prod(self.shape))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> NDArray[Any]:
        """Read rows: one by its number, or those of a slice, or of an array of numbers ≥ 0."""
        if isinstance(key, tuple):
            return np.asarray(self)[key]
        if isinstance(key, (int, np.integer)):
            return self[np.array([key])][0]
        rows = np.arange(*key.indices(len(self))) if isinstance(key, slice) else np.asarray(key, dtype=np.int64)
        out = np.empty((len(rows), *self.shape[1:]), dtype=self.dtype)
        starts = np.r_[0, np.flatnonzero(np.diff(rows) != 1) + 1] if len(rows) else []
        for start, end in zip(starts, [*starts[1:], len(rows)], strict=False):  # rows that lie together, at once
            self._read(int(rows[start]), out[start:end])
        return out

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)

    def _read(self, row: int, out: NDArray[Any]) -> None:
        """Fill `out` from this row on."""
        left = out.reshape(-1).view(np.uint8).data
        place = self.offset + row * out[0].nbytes
        while len(left):
            n = os.preadv(self._handle, [left], place)
            if n == 0:
                raise BurstError(
                    f"{self.path}: the file shrank to {os.fstat(self._handle).st_size:,} bytes while it was read, "
                    f"from {self.offset + self.size * self.dtype.itemsize:,}. Read it again once it is complete."
                )
            left, place = left[n:], place + n
        if os.fstat(self._handle).st_mtime_ns != self._changed:
            raise BurstError(f"{self.path}: the file changed while it was read. Read it again once it is complete.")


def on_disk(data: Any) -> NDArray[Any] | FileArray:
    """Return an array; of a map of a file that is only read, a `FileArray`.

    Parameters
    ----------
    data : array-like

    Returns
    -------
    array or FileArray
    """
    mapped = isinstance(data, np.memmap) and data.mode == "r" and data.filename is not None and data.size > 0
    if not mapped or not hasattr(os, "preadv") or not data.flags.c_contiguous:
        return np.asarray(data)
    base: Any = data
    while not isinstance(base, mmap.mmap):
        base = base.base
    start = data.offset - data.offset % mmap.ALLOCATIONGRANULARITY  # where the map begins in the file
    inside = data.ctypes.data - np.frombuffer(base, dtype=np.uint8).ctypes.data
    return FileArray(os.fspath(data.filename), start + inside, data.dtype, data.shape)
