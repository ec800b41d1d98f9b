"""Arrays that are not in memory (Zarr, Dask): rows are read when they are wanted."""

from __future__ import annotations

import logging
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from pyloca._workers import worker_errors
from pyloca.errors import BurstError

__all__ = ["DaskRows", "LazyRows", "ZarrRows", "along_rows", "as_lazy"]

LOGGER = logging.getLogger("pyloca")


class LazyRows(ABC):
    """As much of NumPy's interface as `Bursts` needs, for an array (N, M, D) or (n, D) that is read by rows.

    Parameters
    ----------
    array : array of Zarr or Dask
    start, stop : int
        The rows that are meant.
    places : sequence of int, optional
        The features that are meant; None: all.
    """

    def __init__(self, array: Any, start: int, stop: int, places: Sequence[int] | None = None) -> None:
        self.array, self.start, self.stop, self.places = array, start, stop, places

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of what is meant."""
        inner = tuple(self.array.shape[1:])
        if self.places is not None:
            inner = (*inner[:-1], len(self.places))
        return (self.stop - self.start, *inner)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""
        return np.dtype(self.array.dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of numbers."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, key: Any) -> NDArray[Any]:
        if isinstance(key, (int, np.integer)):
            return self[int(key) : int(key) + 1 or None][0]
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self._chosen(self._read(self.start + start, self.start + max(start, stop)))
            key = np.arange(start, stop, step)
        rows = np.asarray(key)
        if len(rows) and np.array_equal(rows, np.arange(rows[0], rows[0] + len(rows))):  # a slice needs no gather
            return self[int(rows[0]) : int(rows[-1]) + 1]
        return self._chosen(self._take(self.start + rows))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)

    def _chosen(self, values: NDArray[Any]) -> NDArray[Any]:
        # contiguous, because sums depend on the layout in the last digit
        return values if self.places is None else np.ascontiguousarray(values[..., list(self.places)])

    def select(self, places: Sequence[int]) -> LazyRows:
        """Choose features; nothing is read."""
        chosen = list(places) if self.places is None else [self.places[j] for j in places]
        return type(self)(self.array, self.start, self.stop, chosen)

    def window(self, start: int, stop: int) -> LazyRows:
        """Choose rows; nothing is read."""
        return type(self)(self.array, self.start + start, self.start + stop, self.places)

    @abstractmethod
    def _read(self, start: int, stop: int) -> NDArray[Any]:
        """Read rows that follow each other."""

    @abstractmethod
    def _take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Read any rows."""

    def on_workers(self, client: Any) -> Any:
        """Return what a task of this client is given to read these rows: this object, or a future of an array."""
        return self


class ZarrRows(LazyRows):
    """Rows of a Zarr array. Damaged chunks raise a `BurstError`."""

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        return self._careful(lambda: self.array[start:stop], start, stop)

    def _take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        return self._careful(lambda: self.array.oindex[rows], int(rows.min()), int(rows.max()) + 1)

    def _careful(self, read: Any, start: int, stop: int) -> NDArray[Any]:
        try:
            return np.asarray(read())
        except Exception as error:  # codecs raise many kinds of errors on garbage; all mean the same to the user
            raise BurstError(
                f"{_path(self.array)}: {self._damaged(start, stop)} cannot be read: missing or damaged "
                f"({str(error)[:200]}). Write the file again, or restore it from a copy."
            ) from error

    def _damaged(self, start: int, stop: int) -> str:
        """Say which chunk of these rows cannot be read, by reading one after the other."""
        size = (self.array.shards or self.array.chunks)[0]
        for chunk in range(start // size, -(-stop // size)):
            rows = slice(chunk * size, min((chunk + 1) * size, self.array.shape[0]))
            try:
                self.array[rows]
            except Exception:
                key = self.array.metadata.encode_chunk_key((chunk, *[0] * (self.array.ndim - 1)))
                return f"chunk {key} (rows {rows.start} to {rows.stop - 1})"
        return f"rows {start} to {stop - 1}"


class DaskRows(LazyRows):
    """Rows of a Dask array, computed when they are wanted."""

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        with worker_errors():
            return np.asarray(self.array[start:stop].compute())

    def _take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        with worker_errors(), warnings.catch_warnings():  # a sample that touches all chunks is what is wanted
            warnings.filterwarnings("ignore", message="Slicing is producing a large chunk")
            return np.asarray(self.array[rows].compute())

    def on_workers(self, client: Any) -> Any:
        """Return a future of these rows, which stays on the worker that computes it."""
        rows = self.array[self.start : self.stop]
        return client.compute(rows if self.places is None else rows[..., list(self.places)])


def as_lazy(data: Any, name: str = "bursts") -> LazyRows | None:
    """Wrap an array of Zarr or Dask; None if it is none. Imports neither.

    Parameters
    ----------
    data : Any
    name : str
        What a message calls it.

    Returns
    -------
    LazyRows or None

    Raises
    ------
    BurstError
        If its size is not known, or chunks are missing.
    """
    if isinstance(data, LazyRows):
        return data
    kind = type(data)
    package = kind.__module__.partition(".")[0]
    if package == "zarr" and kind.__name__ == "Array":
        _refuse_missing_chunks(data)
        return ZarrRows(data, 0, int(data.shape[0]) if data.shape else 0)
    if package == "dask" and hasattr(data, "rechunk"):
        return DaskRows(along_rows(data, name), 0, int(data.shape[0]) if data.shape else 0)
    return None


def along_rows(array: Any, name: str) -> Any:
    """Rechunk an array of Dask along its first axis only, so that neither a burst nor a point is cut.

    Parameters
    ----------
    array : dask.array.Array
    name : str
        What messages call it.

    Returns
    -------
    dask.array.Array

    Raises
    ------
    BurstError
        If its size is not known.

    Examples
    --------
    >>> import dask.array as da
    >>> along_rows(da.zeros((4, 3, 2), chunks=(2, 3, 2)), "bursts").numblocks
    (2, 1, 1)
    """
    if any(np.isnan(size) for size in array.shape):
        raise BurstError(
            f"{name} is a Dask array of unknown shape {array.shape}; call {name}.compute_chunk_sizes() first."
        )
    cut = [axis for axis, sizes in enumerate(array.chunks) if axis and len(sizes) > 1]
    if not cut:
        return array
    LOGGER.warning(
        "%s is chunked along axis %s; it is rechunked along its first axis only, which moves data.",
        name,
        " and ".join(map(str, cut)),
    )
    return array.rechunk({0: "auto", **{axis: -1 for axis in range(1, array.ndim)}})


def _refuse_missing_chunks(array: Any) -> None:
    """Refuse a Zarr array of which chunks were never written: they would be read as `fill_value`."""
    written, expected = array.nchunks_initialized, array.nchunks
    if written < expected:
        raise BurstError(
            f"{_path(array)}: {expected - written} of its {expected} chunks are missing{_first_missing(array)}, and "
            f"would be read as {array.fill_value}. Copy the whole folder again; chunks that hold nothing but the fill "
            "value are written if Zarr's option array.write_empty_chunks is true."
        )


def _first_missing(array: Any) -> str:
    """Name the first chunk that a folder does not hold; "" in stores that are no folders."""
    folder = Path(_path(array))
    if not folder.is_dir():
        return ""
    sizes = array.shards or array.chunks
    counts = [-(-length // size) for length, size in zip(array.shape, sizes, strict=True)]
    keys = (array.metadata.encode_chunk_key(place) for place in np.ndindex(*counts))
    return next((f", first {key}" for key in keys if not (folder / key).is_file()), "")


def _path(array: Any) -> str:
    return str(array.store_path).removeprefix("file://")
