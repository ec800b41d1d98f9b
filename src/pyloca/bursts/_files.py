"""Bursts in files: arrays (.npy, .npz), long tables (.csv, .parquet) and HDF5. Nothing here unpickles."""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._atomic import write_atomically
from pyloca.bursts._container import Bursts
from pyloca.bursts._csv import Table, read_table, table_text
from pyloca.bursts._points import from_columns
from pyloca.errors import BurstError

__all__ = ["as_bursts", "open_bursts", "read_csv", "save_bursts"]

BURST_ID = "burst_id"


def open_bursts(path: str | os.PathLike[str], *, burst_id: str = BURST_ID) -> Bursts:
    """Read bursts from a file, by its suffix.

    ``.npy``
        (N, M, D), memory-mapped, so that it may be larger than memory.
    ``.npz``
        `bursts` (N, M, D), or `points` (n, D) and `offsets` (N + 1) when they differ in length.
    ``.csv``, ``.parquet``
        A long table, one row a measurement: the column `burst_id` and the features. Parquet needs ``pyloca[table]``.
    ``.h5``, ``.hdf5``
        As .npz. Needs ``pyloca[hdf5]``.
    """
    path = Path(path)
    if path.suffix.lower() not in READERS:
        raise BurstError(f"{path}: bursts are read from {', '.join(READERS)} files; got the suffix {path.suffix!r}.")
    if not path.is_file():
        raise BurstError(f"{path}: {'is a directory; expected a file' if path.is_dir() else 'there is no such file'}.")
    try:
        return READERS[path.suffix.lower()](path, burst_id)
    except BurstError as error:
        raise BurstError(f"{path}: {error}") from None
    except ModuleNotFoundError:
        raise
    except Exception as error:  # libraries raise many kinds on garbage; all mean the same to the user
        reason = "it is no such file, or holds Python objects" if "pickle" in str(error) else str(error)
        raise BurstError(f"{path}: not a readable {path.suffix} file of numbers ({reason}).") from error


def as_bursts(data: Bursts | ArrayLike | Sequence[ArrayLike] | str | os.PathLike[str]) -> Bursts:
    """Bursts from whatever holds them: themselves, an array, a list of arrays, or the path to a file."""
    return open_bursts(data) if isinstance(data, (str, os.PathLike)) else Bursts(data)


def save_bursts(bursts: Bursts | ArrayLike | Sequence[ArrayLike], path: str | os.PathLike[str]) -> Path:
    """Write bursts to .npy (equal lengths), .npz, .csv or .parquet; the file appears whole or not at all.

    Every number is read back as it was, in float64.
    """
    path = Path(path)
    if path.suffix.lower() not in WRITERS:
        raise BurstError(f"{path}: bursts are written to {', '.join(WRITERS)} files; got the suffix {path.suffix!r}.")
    buffer = io.BytesIO()
    WRITERS[path.suffix.lower()](Bursts(bursts), buffer)
    return write_atomically(path, buffer.getvalue())


# -- arrays -----------------------------------------------------------------------------------------------------


def _read_npy(path: Path, _: str) -> Bursts:
    return Bursts(np.load(path, mmap_mode="r", allow_pickle=False))


def _read_npz(path: Path, _: str) -> Bursts:
    # opened here, because np.load leaves the file open when it cannot read it
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        return _from_named(set(archive), lambda name: archive[name])


def _read_hdf5(path: Path, _: str) -> Bursts:
    h5py = _need("h5py", "hdf5")
    with h5py.File(path, "r") as file:
        names = {name for name in file if isinstance(file[name], h5py.Dataset)}
        return _from_named(names, lambda name: file[name][()])


def _from_named(names: set[str], get: Callable[[str], NDArray[Any]]) -> Bursts:
    if "bursts" in names:
        return Bursts(get("bursts"))
    if {"points", "offsets"} <= names:
        return Bursts.from_ragged(get("points"), get("offsets"))
    listed = ", ".join(sorted(names)) or "nothing"
    raise BurstError(f"holds {listed}; expected `bursts` (N, M, D), or `points` (n, D) and `offsets` (N + 1).")


def _write_npy(bursts: Bursts, file: io.BytesIO) -> None:
    np.save(file, bursts.to_array(), allow_pickle=False)


def _write_npz(bursts: Bursts, file: io.BytesIO) -> None:
    if bursts.is_ragged:
        points, offsets = bursts.to_ragged()
        np.savez(file, points=points, offsets=offsets)
    else:
        np.savez(file, bursts=bursts.to_array())


# -- tables -----------------------------------------------------------------------------------------------------


def _read_csv_file(path: Path, burst_id: str) -> Bursts:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return read_csv(file, burst_id)


def read_csv(file: TextIO, burst_id: str = BURST_ID) -> Bursts:
    """Bursts from a long table in CSV with a header line; an error names the line."""
    table = read_table(file, burst_id, needed=True)
    columns = dict(zip(table.names, table.values.T, strict=True))
    return from_columns({burst_id: np.array(table.labels), **columns}, burst_id, None)


def _read_parquet(path: Path, burst_id: str) -> Bursts:
    parquet = _need("pyarrow.parquet", "table")
    table = parquet.read_table(path)
    return from_columns({name: table[name].to_numpy() for name in table.column_names}, burst_id, None)


def _long(bursts: Bursts) -> tuple[NDArray[np.int64], NDArray[np.float64], list[str]]:
    points, _ = bursts.to_ragged()
    names = [f"y{i}" for i in range(bursts.n_features)]
    return np.repeat(np.arange(len(bursts)), bursts.counts), points, names


def _write_csv(bursts: Bursts, file: io.BytesIO) -> None:
    ids, points, names = _long(bursts)
    file.write(table_text(Table(names, points, [str(i) for i in ids]), BURST_ID).encode())


def _write_parquet(bursts: Bursts, file: io.BytesIO) -> None:
    parquet, arrow = _need("pyarrow.parquet", "table"), _need("pyarrow", "table")
    ids, points, names = _long(bursts)
    columns = {BURST_ID: ids, **{name: points[:, i] for i, name in enumerate(names)}}
    parquet.write_table(arrow.table(columns), file)


def _need(module: str, extra: str) -> Any:
    """Import an optional package, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        name = module.partition(".")[0]
        raise ModuleNotFoundError(
            f"this needs {name}, which is not installed: pip install 'pyloca[{extra}]'"
        ) from error


READERS: dict[str, Callable[[Path, str], Bursts]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": _read_csv_file,
    ".parquet": _read_parquet,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
}
WRITERS: dict[str, Callable[[Bursts, io.BytesIO], None]] = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
