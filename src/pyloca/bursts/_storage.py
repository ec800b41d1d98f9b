"""Bursts in files: arrays (.npy, .npz, .zarr), long tables (.csv, .parquet) and HDF5. Nothing here unpickles."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from pyloca._arguments import brief
from pyloca._atomic import write_atomically
from pyloca._optional import need
from pyloca._points import is_labelled
from pyloca.bursts._array_files import (
    described_arrays,
    read_hdf5,
    read_npy,
    read_npz,
    read_zarr,
    write_npy,
    write_npz,
)
from pyloca.bursts._container import Bursts
from pyloca.bursts._csv import csv_header
from pyloca.bursts._labelled import from_xarray
from pyloca.bursts._labels import check_choice
from pyloca.bursts._missing import Missing, check_missing
from pyloca.bursts._table_files import read_csv_file, read_parquet_file, write_csv, write_parquet
from pyloca.bursts._tables import BURST_ID, OnText, take_perturbations
from pyloca.bursts._wanted import Wanted
from pyloca.bursts._zarr import write_zarr
from pyloca.errors import BurstError

__all__ = ["as_bursts", "column_names", "open_bursts", "save_bursts"]

READERS: dict[str, Callable[[Path, Wanted], Bursts]] = {
    ".npy": read_npy,
    ".npz": read_npz,
    ".csv": read_csv_file,
    ".parquet": read_parquet_file,
    ".h5": read_hdf5,
    ".hdf5": read_hdf5,
    ".zarr": read_zarr,
}
WRITERS: dict[str, Callable[[Bursts, io.BytesIO], None]] = {
    ".npy": write_npy,
    ".npz": write_npz,
    ".csv": write_csv,
    ".parquet": write_parquet,
}


def open_bursts(
    path: str | os.PathLike[str],
    *,
    burst_id: str = BURST_ID,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    on_text: OnText = "raise",
    perturbations: Sequence[str] = (),
    missing: Missing = "raise",
) -> Bursts:
    r"""Read bursts from a file, by its suffix.

    ``.npy``
        (N, M, D), memory-mapped, so that it may be larger than memory.
    ``.npz``
        `bursts` (N, M, D), or `points` (n, D) and `offsets` (N + 1) when they differ in length; with them, if known,
        `ids` (N), `feature_names` (D), `units` (D), `burst_std`, `perturbations` (N, M, k) or (n, k), `noise`,
        `effective_counts` (N) and `provenance`.
    ``.csv``, ``.parquet``
        A long table, one row per measurement: the column `burst_id` and the features. In CSV ids that are all integers
        are read as such. Parquet needs ``pyloca[table]``; the unit of a column is its metadata ``units``.
    ``.h5``, ``.hdf5``
        As .npz. Needs ``pyloca[hdf5]``.
    ``.zarr``
        A group with the arrays of .npz, or one array (N, M, D); read in parts, so that it may be larger than memory.
        Names, units, σ and provenance may be attributes. Needs ``pyloca[scale]``.

    Parameters
    ----------
    path : path
    burst_id : str
        Column of a table that names the burst of each row.
    columns : sequence of str, optional
        Features to read, by name and in this order; None reads all.
    exclude : sequence of str
        Features to leave out, by name.
    on_text : {"raise", "warn"}
        What to do about columns of a table that do not hold numbers when no `columns` are given: refuse the file, or
        leave them out with a warning.
    perturbations : sequence of str
        Columns that are the latent displacement of each row, which you set; see `Bursts`.
    missing : {"raise", "drop"}
        What to do about points with a missing cell (NaN or infinite; in CSV also empty, NA, null): refuse the file,
        saying how many there are of each sensor, or leave these points out, as `drop_missing` does. A .npy or .zarr
        file, which may be larger than memory, is not read before it is used, so there "raise" leaves the error to
        `LOCA.fit`.

    Returns
    -------
    Bursts
        With the ids, names and units that the file holds.

    Raises
    ------
    BurstError
        If the file is missing or damaged; the message names the file, and the line or burst.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "runs.csv")
    ...     _ = path.write_text("run,p,operator\n7,1.5,Ann\n7,1.6,Ann\n4,2.5,Bo\n")
    ...     open_bursts(path, burst_id="run", exclude=["operator"])
    Bursts(N=2, M=1..2, D=1)
    """
    check_choice(columns, exclude)
    if on_text not in ("raise", "warn"):
        raise ValueError(f'on_text must be "raise" or "warn"; got {brief(on_text)}.')
    check_missing(missing)
    path = _readable(path)
    both = columns if columns is None else [*columns, *perturbations]

    def read() -> Bursts:
        found = READERS[path.suffix.lower()](path, Wanted(burst_id, both, exclude, on_text, missing))
        return take_perturbations(found, perturbations)

    return _naming(path, read)


def column_names(path: str | os.PathLike[str]) -> tuple[str, ...] | None:
    r"""Read the names of the columns of a table, or of the features of another file; None when it has none.

    Parameters
    ----------
    path : path
        Any file that `open_bursts` reads. Only the header of a table is read.

    Returns
    -------
    tuple of str, or None

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "runs.csv")
    ...     _ = path.write_text("run,p,T\n7,1.5,20\n")
    ...     column_names(path)
    ('run', 'p', 'T')
    """
    path = _readable(path)

    def header() -> tuple[str, ...] | None:
        if path.suffix.lower() == ".csv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                return tuple(csv_header(file))
        if path.suffix.lower() == ".parquet":
            return tuple(need("pyarrow.parquet", "table").read_schema(path).names)
        return open_bursts(path).feature_names

    return _naming(path, header)


def as_bursts(data: Bursts | ArrayLike | Sequence[ArrayLike] | str | os.PathLike[str]) -> Bursts:
    """Convert an array, a list of arrays, or the path to a file to `Bursts`; `Bursts` are returned as they are.

    Parameters
    ----------
    data : Bursts, array of shape (N, M, D), list of arrays of shape (M_i, D), or path
        Arrays of NumPy, Zarr and Dask, and `xarray.DataArray` with the dimensions burst, point and feature.

    Returns
    -------
    Bursts

    Examples
    --------
    >>> import numpy as np
    >>> as_bursts(np.zeros((3, 4, 2)))
    Bursts(N=3, M=4, D=2)
    """
    if isinstance(data, (str, os.PathLike)):
        return open_bursts(data)
    return from_xarray(data) if is_labelled(data) else Bursts(data)


def save_bursts(bursts: Bursts | ArrayLike | Sequence[ArrayLike], path: str | os.PathLike[str]) -> Path:
    """Write bursts to .npy (equal lengths), .npz, .csv, .parquet or .zarr, atomically.

    Every number is read back as it was, in float64. Ids and names are written too, except to .npy, units to .npz,
    .zarr and .parquet, and σ, perturbations, noise, effective counts and provenance to .npz and .zarr. Zarr (needs
    ``pyloca[scale]``) is written in parts, so bursts may be larger than memory.

    Parameters
    ----------
    bursts : Bursts, or what they can be made of
    path : path

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    BurstError
        If the suffix is another one, or if a burst was chosen twice, so that its id is not unique.

    Warns
    -----
    UserWarning
        If ids or names are lost in a .npy file, or perturbations or effective counts in any but .npz.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> bursts = Bursts(np.zeros((2, 3, 1)), ids=["a", "b"], feature_names=["p"], units=["Pa"])
    >>> with TemporaryDirectory() as folder:
    ...     again = open_bursts(save_bursts(bursts, Path(folder, "bursts.npz")))
    >>> again.ids.tolist(), again.feature_label(0)
    (['a', 'b'], 'p (Pa)')
    """
    path = Path(path)
    if path.suffix.lower() not in (*WRITERS, ".zarr"):
        listed = ", ".join((*WRITERS, ".zarr"))
        raise BurstError(f"{path}: bursts are written to {listed} files; got the suffix {path.suffix!r}.")
    bursts, buffer = as_bursts(bursts), io.BytesIO()
    if path.suffix.lower() == ".zarr":
        return write_zarr(bursts, described_arrays(bursts), path)
    if bursts.perturbed_dim is not None and path.suffix.lower() != ".npz":
        lost = f"perturbations are not written to {path.suffix} files. Use .npz to keep them."
        warnings.warn(lost, UserWarning, stacklevel=2)
    if bursts.effective_counts is not None and path.suffix.lower() != ".npz":
        warnings.warn(
            f"a {path.suffix} file does not hold effective counts: its points will count as independent samples. Use "
            ".npz to keep them.",
            UserWarning,
            stacklevel=2,
        )
    WRITERS[path.suffix.lower()](bursts, buffer)
    return write_atomically(path, buffer.getvalue())


def _readable(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    if path.suffix.lower() not in READERS:
        raise BurstError(f"{path}: bursts are read from {', '.join(READERS)} files; got the suffix {path.suffix!r}.")
    if not (path.is_file() or (path.suffix.lower() == ".zarr" and path.is_dir())):
        there = "is a directory; expected a file" if path.is_dir() else "exists but is not a regular file"
        raise BurstError(f"{path}: {there if path.exists() else 'there is no such file'}.")
    return path


def _naming(path: Path, read: Callable[[], Any]) -> Any:
    """Prefix errors with the file they are about."""
    try:
        return read()
    except BurstError as error:
        raise BurstError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None
    except (ModuleNotFoundError, Warning):
        raise
    except Exception as error:  # libraries raise many kinds of errors on garbage; all mean the same to the user
        reason = "it is another kind of file, or holds Python objects" if "pickle" in str(error) else str(error)
        raise BurstError(f"{path}: not a readable {path.suffix} file of numbers ({reason}).") from error
