"""Bursts in Zarr version 3, read chunk by chunk and written so that damage is noticed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyloca._optional import need
from pyloca.bursts._lazy import as_lazy
from pyloca.errors import BurstError

if TYPE_CHECKING:
    from pyloca.bursts._container import Bursts

__all__ = ["create_array", "open_zarr", "replace_folder", "write_zarr"]

CHUNK = 1 << 20  # numbers in a chunk: 8 MB, a few of which every worker holds
KEY = "pyloca"  # attribute of a group that pyloca wrote
STATISTICS = "pyloca-statistics"  # that of statistics, which `pyloca.geometry` reads
AXES = {"bursts": ("burst", "point", "feature"), "points": ("row", "feature")}


def open_zarr(path: Path) -> tuple[set[str], Callable[[str], Any]]:
    """Open a Zarr group, or an array (N, M, D), as named arrays.

    Parameters
    ----------
    path : Path

    Returns
    -------
    names : set of str
    get : callable
        Gives the array of a name: lazily for `bursts` and `points`, in memory for all others.

    Raises
    ------
    BurstError
        If it is not such a group, or was altered or damaged.
    """
    zarr = need("zarr", "scale")
    try:
        found = zarr.open(str(path), mode="r")
    except Exception as error:  # garbage raises errors of many kinds
        raise BurstError(f"not a readable Zarr group ({str(error)[:200]}).") from error
    if isinstance(found, zarr.Array):
        return {"bursts"}, lambda name: as_lazy(found, name)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not recognized as a component")  # a damaged array is then missing
        arrays = set(found.array_keys())
        described = _described(found, arrays)

    def get(name: str) -> Any:
        if name not in arrays:
            return np.asarray(described[name])
        lazy = as_lazy(found[name], name)
        assert lazy is not None
        return lazy if name in AXES else lazy[:] if lazy.ndim else np.asarray(found[name][()])

    return arrays | set(described), get


def _described(group: Any, arrays: set[str]) -> dict[str, Any]:
    """Small facts beside the arrays: those that pyloca wrote, with their checksum, or plain attributes."""
    attributes = dict(group.attrs)
    if STATISTICS in attributes:
        raise BurstError("it holds statistics of bursts, which only `fit` accepts; raw bursts are needed here.")
    ours = attributes.get(KEY)
    if ours is None and not any(KEY in group[name].attrs for name in arrays):
        wanted = ("feature_names", "units", "burst_std", "provenance")
        return {name: attributes[name] for name in wanted if name in attributes}
    ours = ours if isinstance(ours, dict) else {}
    facts = ours.get("facts")
    if not isinstance(facts, dict) or ours.get("sha256") != _digest(facts, _shapes(group)):
        raise BurstError("its metadata do not match their checksum; the file was altered or damaged, or is incomplete.")
    return facts


def _shapes(group: Any) -> dict[str, Any]:
    return {name: [list(group[name].shape), str(group[name].dtype)] for name in sorted(group.array_keys())}


def _digest(facts: dict[str, Any], shapes: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps([facts, shapes], sort_keys=True).encode()).hexdigest()


def write_zarr(bursts: Bursts, arrays: dict[str, NDArray[Any]], path: Path) -> Path:
    """Write bursts to a Zarr group, chunk by chunk: to a folder beside it, which then takes its place.

    Parameters
    ----------
    bursts : Bursts
        Read in parts, so that they may be larger than memory.
    arrays : dict of str to array
        What describes them.
    path : Path

    Returns
    -------
    Path

    Raises
    ------
    OSError
        If the folder cannot be written.
    """
    zarr = need("zarr", "scale")
    small = ("feature_names", "units", "burst_std", "provenance")
    facts = {name: arrays[name].tolist() for name in small if name in arrays}

    def write(folder: Path) -> None:
        group = zarr.open_group(str(folder), mode="w")
        ragged, dim = bursts.is_ragged, bursts.n_features
        counts = bursts.counts
        shape = (int(counts.sum()), dim) if ragged else (len(bursts), int(counts[0]), dim)
        target = create_array(group, "points" if ragged else "bursts", shape, np.dtype(np.float64))
        per_part = max(1, int(target.chunks[0] // (counts.mean() if ragged else 1)))
        at = 0
        for start in range(0, len(bursts), per_part):
            part = bursts[start : start + per_part]
            values = part.to_ragged()[0] if ragged else part.to_array()
            target[at : at + len(values)] = values
            at += len(values)
        if ragged:
            arrays["offsets"] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        for name in sorted(set(arrays) - set(small) - {"bursts", "points"}):
            values = arrays[name]
            if values.dtype.kind == "U":
                values = values.astype(np.dtypes.StringDType())
            create_array(group, name, values.shape, values.dtype)[...] = values
        group.attrs[KEY] = {"facts": facts, "sha256": _digest(facts, _shapes(group))}

    return replace_folder(path, write)


def create_array(group: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], rows: int | None = None) -> Any:
    """Create an array in a group, chunked along its first axis, whose chunks carry checksums.

    A chunk that is missing is read as NaN, not as zeros.

    Parameters
    ----------
    group : zarr.Group
    name : str
    shape : tuple of int
    dtype : dtype
    rows : int, optional
        Rows in a chunk; None: as many as make about 8 MB.

    Returns
    -------
    zarr.Array

    Examples
    --------
    >>> import zarr
    >>> create_array(zarr.group(), "bursts", (5, 4, 3), np.dtype(float), rows=2).chunks
    (2, 4, 3)
    """
    codecs = need("zarr.codecs", "scale")
    wide = max(1, int(np.prod(shape[1:], dtype=np.int64)))
    length = min(shape[0], max(1, CHUNK // wide) if rows is None else rows) if shape else 0
    return group.create_array(
        name,
        shape=shape,
        chunks=(max(1, length), *(max(1, size) for size in shape[1:])),
        dtype=dtype,
        fill_value=np.nan if dtype.kind == "f" else None,
        compressors=(codecs.ZstdCodec(level=1), codecs.Crc32cCodec()),
        dimension_names=AXES.get(name),
        attributes={KEY: True},  # a group that has lost its checksum is then not taken for one of others
        config={"write_empty_chunks": True},
    )


def replace_folder(path: Path, write: Callable[[Path], None]) -> Path:
    """Write a folder beside the target, which then takes its place; what was there stays until it is complete.

    Parameters
    ----------
    path : Path
        Of a Zarr folder, or of nothing yet.
    write : callable
        Takes the path of a folder that does not exist yet, and makes it.

    Returns
    -------
    Path

    Raises
    ------
    OSError
        If there is no such place, or something else is there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     replace_folder(Path(folder, "x.zarr"), Path.mkdir).is_dir()
    True
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no directory {path.parent}.")
    if path.exists() and not (path.is_dir() and (path / "zarr.json").is_file()):
        raise FileExistsError(f"cannot write {path}: it exists and is not a Zarr folder. Choose another name.")
    with _workplace(path) as work:
        write(work / "new")
        if path.exists():
            os.rename(path, work / "old")
        try:
            os.rename(work / "new", path)
        except BaseException:
            _restore(path, work)
            raise
    return path


@contextmanager
def _workplace(path: Path) -> Iterator[Path]:
    """Make a hidden folder beside the target, one writer at a time, and remove it; a killed writer's is taken over."""
    work = path.with_name(f".{path.name}.writing")
    work.mkdir(exist_ok=True)
    handle = os.open(work, os.O_RDONLY) if hasattr(os, "O_DIRECTORY") else None  # Windows opens no folders
    try:
        if handle is not None:
            _lock(handle, path)
        _restore(path, work)
        for left in work.iterdir():
            shutil.rmtree(left)
        yield work
        shutil.rmtree(work, ignore_errors=True)
    except BlockingIOError:
        raise
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    finally:
        if handle is not None:
            os.close(handle)


def _lock(handle: int, path: Path) -> None:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BlockingIOError(f"cannot write {path}: another process is writing it.") from None


def _restore(path: Path, work: Path) -> None:
    """Put back what was moved away, if nothing has taken its place."""
    if (work / "old").exists() and not path.exists():
        os.rename(work / "old", path)
