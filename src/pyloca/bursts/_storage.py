"""Bursts in files: arrays (.npy, .npz, .zarr), long tables (.csv, .parquet) and HDF5. Nothing here unpickles."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import brief
from pyloca._atomic import write_atomically
from pyloca._optional import need
from pyloca._points import is_labelled
from pyloca.bursts._container import Bursts
from pyloca.bursts._csv import Table, csv_header, read_table, table_text
from pyloca.bursts._labelled import from_xarray
from pyloca.bursts._labels import burst_name, check_choice, choose_columns, repeated_at
from pyloca.bursts._lazy import LazyRows
from pyloca.bursts._missing import Missing, check_missing, drop_missing, settle_missing
from pyloca.bursts._noise import select_noise
from pyloca.bursts._tables import BURST_ID, OnText, as_array, from_columns, take_perturbations, text_columns_found
from pyloca.bursts._zarr import open_zarr, write_zarr
from pyloca.errors import BurstError

__all__ = ["as_bursts", "column_names", "open_bursts", "read_csv", "read_parquet", "save_bursts"]

UNIT = b"units"  # key of a unit in the metadata of a Parquet column
# Arrays beside the points in .npz and HDF5.
DESCRIBED = ("ids", "feature_names", "units", "perturbations", "noise", "effective_counts")
COPY = "Only what lies in the file itself is read: copy the data into it."
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # what pandas adds to a Parquet file; it is not a measurement


@dataclass(frozen=True)
class Wanted:
    """What to read from a file."""

    burst_id: str
    columns: Sequence[str] | None
    exclude: Sequence[str]
    on_text: OnText
    missing: Missing


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
        return write_zarr(bursts, _described(bursts), path)
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


# -- arrays -----------------------------------------------------------------------------------------------------


def _read_npy(path: Path, wanted: Wanted) -> Bursts:
    bursts = _select(Bursts(np.load(path, mmap_mode="r", allow_pickle=False)), wanted)
    return drop_missing(bursts) if wanted.missing == "drop" else bursts


def _read_npz(path: Path, wanted: Wanted) -> Bursts:
    # opened here, because np.load leaves the file open when it cannot read it
    with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        bursts = _select(_from_named(set(archive), lambda name: archive[name]), wanted)
    return settle_missing(bursts, wanted.missing)


def _read_hdf5(path: Path, wanted: Wanted) -> Bursts:
    h5py = need("h5py", "hdf5")
    with h5py.File(path, "r") as file:
        bursts = _select(_from_named(set(file), lambda name: _own_numbers(h5py, file, name)), wanted)
    return settle_missing(bursts, wanted.missing)


def _read_zarr(path: Path, wanted: Wanted) -> Bursts:
    bursts = _select(_from_named(*open_zarr(path)), wanted)
    return drop_missing(bursts) if wanted.missing == "drop" else bursts


def _own_numbers(h5py: Any, file: Any, name: str) -> NDArray[Any]:
    """Read a dataset that lies in this very file; HDF5 would follow links and storage to any other, without a word."""
    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise BurstError(f"`{name}` is a link. {COPY}")
    found = file[name]
    if not isinstance(found, h5py.Dataset):
        raise BurstError(f"`{name}` is a {type(found).__name__.lower()}; expected a dataset.")
    if found.is_virtual or found.external:
        raise BurstError(f"the numbers of `{name}` are in other files ({_elsewhere(found)}). {COPY}")
    return np.asarray(found[()])


def _elsewhere(found: Any) -> str:
    files = [source.file_name for source in found.virtual_sources()] if found.is_virtual else found.external
    return ", ".join(str(one if isinstance(one, str) else one[0]) for one in files[:3])


def _from_named(names: set[str], get: Callable[[str], NDArray[Any]]) -> Bursts:
    described: dict[str, Any] = {name: get(name) for name in DESCRIBED if name in names}
    if "burst_std" in names:
        described["burst_std"] = float(get("burst_std"))
    if "provenance" in names:
        text = get("provenance")[()]
        described["provenance"] = text.decode() if isinstance(text, bytes) else str(text)
    for name in {"feature_names", "units"} & set(described):  # HDF5 has text as bytes
        described[name] = [cell.decode() if isinstance(cell, bytes) else cell for cell in described[name].tolist()]
    if "bursts" in names:
        return Bursts(get("bursts"), **described)
    if {"points", "offsets"} <= names:
        return Bursts.from_ragged(get("points"), get("offsets"), **described)
    listed = ", ".join(sorted(names)) or "nothing"
    raise BurstError(f"holds {listed}; expected `bursts` (N, M, D), or `points` (n, D) and `offsets` (N + 1).")


def _select(bursts: Bursts, wanted: Wanted) -> Bursts:
    """Select features by name."""
    if wanted.columns is None and not wanted.exclude:
        return bursts
    if bursts.feature_names is None:
        raise BurstError("its features have no names, so none can be chosen by columns= or exclude=.")
    names = choose_columns(bursts.feature_names, "", wanted.columns, wanted.exclude)
    places = [bursts.feature_names.index(name) for name in names]
    units = None if bursts.units is None else tuple(bursts.units[j] for j in places)
    points = bursts._points
    # contiguous, because sums depend on the layout, in the last digit
    points = points.select(places) if isinstance(points, LazyRows) else np.ascontiguousarray(points[..., places])
    noise = bursts._noise and (select_noise(*bursts._noise, places), bursts._noise[1])
    return bursts._like(_points=points, feature_names=tuple(names), units=units, _noise=noise)


def _write_npy(bursts: Bursts, file: io.BytesIO) -> None:
    np.save(file, bursts.to_array(), allow_pickle=False)
    if bursts.has_ids or bursts.feature_names is not None:
        warnings.warn(
            "a .npy file holds numbers only: ids, feature names and units are not written. Use .npz to keep them.",
            UserWarning,
            stacklevel=3,
        )


def _write_npz(bursts: Bursts, file: io.BytesIO) -> None:
    arrays = _described(bursts)
    if bursts.is_ragged:
        arrays["points"], arrays["offsets"] = bursts.to_ragged()
    else:
        arrays["bursts"] = bursts.to_array()
    np.savez(file, allow_pickle=False, **arrays)


def _described(bursts: Bursts) -> dict[str, NDArray[Any]]:
    """Return what is known of bursts beside their points."""
    arrays: dict[str, NDArray[Any]] = {}
    if bursts.has_ids or not np.array_equal(bursts.ids, np.arange(len(bursts))):
        arrays["ids"] = _unique_ids(bursts)
    if bursts.feature_names is not None:
        arrays["feature_names"] = np.array(bursts.feature_names)
    if bursts.units is not None:
        arrays["units"] = np.array(bursts.units)
    if bursts.perturbed_dim is not None:
        known = bursts.perturbations
        arrays["perturbations"] = np.concatenate(known) if isinstance(known, list) else np.asarray(known)
    if bursts.burst_std is not None:
        arrays["burst_std"] = np.array(bursts.burst_std)
    if bursts.noise is not None:
        arrays["noise"] = bursts.noise
    if bursts.provenance:
        arrays["provenance"] = np.array(bursts.provenance)
    if bursts.effective_counts is not None:
        arrays["effective_counts"] = bursts.effective_counts
    return arrays


# -- tables -----------------------------------------------------------------------------------------------------


def _read_csv_file(path: Path, wanted: Wanted) -> Bursts:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return read_csv(
            file,
            wanted.burst_id,
            wanted.columns,
            exclude=wanted.exclude,
            on_text=wanted.on_text,
            missing=wanted.missing,
        )


def read_csv(
    file: TextIO,
    burst_id: str = BURST_ID,
    columns: Sequence[str] | None = None,
    *,
    exclude: Sequence[str] = (),
    on_text: OnText = "raise",
    perturbations: Sequence[str] = (),
    missing: Missing = "raise",
) -> Bursts:
    r"""Read bursts from a long table in CSV with a header line.

    Parameters
    ----------
    file : text file
        Open it with ``newline=""``.
    burst_id, columns, exclude, on_text, perturbations, missing
        As for `open_bursts`.

    Returns
    -------
    Bursts

    Raises
    ------
    BurstError
        If the text is not such a table; the message names line, column and cell.

    Examples
    --------
    >>> import io
    >>> bursts = read_csv(io.StringIO("run,p,T\n7,1.5,20\n7,1.6,21\n4,2.5,30\n"), "run")
    >>> bursts.ids.tolist(), bursts.feature_names
    ([7, 4], ('p', 'T'))
    """
    check_missing(missing)
    both = columns if columns is None else [*columns, *perturbations]
    table = read_table(file, burst_id, both, exclude, needed=True)
    if table.text_columns:
        text_columns_found(dict.fromkeys(table.text_columns, "text"), on_text)
    values = dict(zip(table.names, table.values.T, strict=True))
    out = from_columns({burst_id: np.array(table.labels), **values}, burst_id, None, ())
    left_out = f"; left out as text: {', '.join(table.text_columns)}" if table.text_columns else ""
    named = Bursts(out, ids=_as_integers(out.ids), provenance=out.provenance + left_out)
    return take_perturbations(settle_missing(named, missing), perturbations)


def _as_integers(labels: NDArray[np.str_]) -> NDArray[Any]:
    """Convert texts to integers if all of them are written as integers are; '007' is a name."""
    try:
        numbers = labels.astype(np.int64)
    except (ValueError, OverflowError):
        return labels
    return numbers if np.array_equal(numbers.astype(np.str_), labels) else labels


def read_parquet(
    file: BinaryIO,
    label: str,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    *,
    needed: bool = False,
) -> Table:
    """Read the rows of a Parquet table, as `read_table` does those of CSV.

    Parameters
    ----------
    file : binary file
    label, columns, exclude, needed
        As for `read_table`; a column that does not hold numbers is an error.

    Returns
    -------
    Table

    Raises
    ------
    BurstError
        If the file is not such a table.

    Examples
    --------
    >>> import io
    >>> import pandas as pd
    >>> file = io.BytesIO(pd.DataFrame({"id": ["a", "b"], "x": [1.0, 2.5]}).to_parquet())
    >>> table = read_parquet(file, "id")
    >>> table.names, table.values.tolist(), table.labels
    (['x'], [[1.0], [2.5]], ['a', 'b'])
    """
    try:
        table = _parquet_columns(file, label)
    except (ValueError, OSError) as error:  # pyarrow's own errors are of these kinds
        raise BurstError(f"not a readable .parquet file ({error}).") from error
    if needed and label not in table:
        raise BurstError(f"there is no column {label!r}; the table has {', '.join(table)}.")
    others = [name for name in table if name != label]
    row = "".join(table) + "#"  # a name that no column has
    n = len(next(iter(table.values()), ()))
    # Rows in order, as bursts of one row each, so that columns are chosen and checked as everywhere else.
    rows = from_columns({**{name: table[name] for name in others}, row: np.arange(n)}, row, columns, exclude)
    used = rows.feature_names or ()
    labels = [str(cell) for cell in table[label].tolist()] if label in table else None
    return Table(list(used), rows.to_ragged()[0], labels, (), tuple(name for name in others if name not in used))


def _parquet_columns(file: Path | BinaryIO, label: str) -> dict[str, NDArray[Any]]:
    # its own reader of one file: read_table would look for partitions in the path
    table = need("pyarrow.parquet", "table").ParquetFile(file).read()
    names = [name for name in table.column_names if not PANDAS_INDEX.fullmatch(name) or name == label]
    return {name: as_array(table[name]) for name in names}


def _read_parquet(path: Path, wanted: Wanted) -> Bursts:
    columns = _parquet_columns(path, wanted.burst_id)
    out = from_columns(columns, wanted.burst_id, wanted.columns, wanted.exclude, None, wanted.on_text)
    schema = need("pyarrow.parquet", "table").ParquetFile(path).schema_arrow
    units = [(schema.field(name).metadata or {}).get(UNIT, b"").decode() for name in out.feature_names or ()]
    return settle_missing(Bursts(out, units=units), wanted.missing)


def _long(bursts: Bursts) -> tuple[NDArray[Any], NDArray[np.float64], list[str]]:
    points, _ = bursts.to_ragged()
    names = list(bursts.feature_names or [f"y{j}" for j in range(bursts.n_features)])
    if BURST_ID in names:
        raise BurstError(f"a feature is called {BURST_ID!r}, which is the column of ids; give it another name.")
    return np.repeat(_unique_ids(bursts), bursts.counts), points, names


def _unique_ids(bursts: Bursts) -> NDArray[Any]:
    ids = bursts.ids
    double = repeated_at(ids)
    if double is not None:
        raise BurstError(
            f"{burst_name(ids[double])} was chosen twice, and ids in a file must be unique; "
            "give the bursts others with Bursts(bursts, ids=range(len(bursts)))."
        )
    return ids


def _write_csv(bursts: Bursts, file: io.BytesIO) -> None:
    ids, points, names = _long(bursts)
    file.write(table_text(Table(names, points, [str(label) for label in ids.tolist()]), BURST_ID).encode())


def _write_parquet(bursts: Bursts, file: io.BytesIO) -> None:
    parquet, arrow = need("pyarrow.parquet", "table"), need("pyarrow", "table")
    ids, points, names = _long(bursts)
    units = bursts.units or ("",) * len(names)
    fields = [
        arrow.field(name, arrow.float64(), metadata={UNIT: unit.encode()} if unit else None)
        for name, unit in zip(names, units, strict=True)
    ]
    label = arrow.array(ids.tolist(), arrow.int64() if ids.dtype.kind == "i" else arrow.string())
    schema = arrow.schema([arrow.field(BURST_ID, label.type), *fields])
    parquet.write_table(arrow.table([label, *points.T.copy()], schema=schema), file)


READERS: dict[str, Callable[[Path, Wanted], Bursts]] = {
    ".npy": _read_npy,
    ".npz": _read_npz,
    ".csv": _read_csv_file,
    ".parquet": _read_parquet,
    ".h5": _read_hdf5,
    ".hdf5": _read_hdf5,
    ".zarr": _read_zarr,
}
WRITERS: dict[str, Callable[[Bursts, io.BytesIO], None]] = {
    ".npy": _write_npy,
    ".npz": _write_npz,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
