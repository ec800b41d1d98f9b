"""Bursts, rows and coordinates in files: columns by name, CSV for people and pipes, .npy for the rest."""

from __future__ import annotations

import csv
import io
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import LARGEST
from pyloca._atomic import write_atomically
from pyloca.bursts import (
    BURST_ID,
    Bursts,
    Table,
    column_names,
    count_missing,
    open_bursts,
    read_csv,
    read_parquet,
    read_table,
    table_text,
)
from pyloca.cli._column_options import Columns, some
from pyloca.cli._main import require
from pyloca.cli._text import read_text
from pyloca.errors import BurstError
from pyloca.estimator import LOCA

__all__ = [
    "TRUST",
    "Labels",
    "burst_id_of",
    "holds_bursts",
    "is_table",
    "read_array",
    "read_bursts",
    "read_bursts_like",
    "read_coordinates",
    "read_rows_like",
    "read_samples",
    "read_static",
    "say_left_out",
    "write_rows",
]

Array = NDArray[np.float64]
Labels = Sequence[Any] | NDArray[Any]
STDIN = "standard input"
TRUST = "trust"  # the column that ``pyloca transform --trust`` adds
BURSTS = (".npz", ".h5", ".hdf5", ".zarr")  # files that hold bursts, not rows
ROWS = 50  # fewer rows may be in order by chance, or because they were sorted
INDEX = "__index_level_"  # what pandas adds to a Parquet file; it is not a measurement


class Text(io.StringIO):
    """CSV from a pipe, kept because it can be read only once."""

    def __init__(self, content: str, name: str) -> None:
        super().__init__(content, newline="")
        self.name = name


Source = str | Text  # a path, or the content of a pipe


def is_table(data: str) -> bool:
    """Whether this is a table with named columns: CSV, Parquet, or a pipe, which has no suffix."""
    return Path(data).suffix.lower() in (".csv", ".parquet", "")


def holds_bursts(data: str) -> bool:
    """Whether a file holds bursts rather than rows of measurements."""
    suffix = Path(data).suffix.lower()
    if suffix != ".npy":
        return suffix in BURSTS
    with _named(data):
        return _load(data).ndim == 3


def burst_id_of(model: LOCA, columns: Columns) -> str:
    """Return the column that names bursts: the requested one, or that of the fit."""
    return columns.burst_id or str(_remembered(model).get("burst_id", BURST_ID))


# -- bursts -----------------------------------------------------------------------------------------------------


def read_bursts(data: str, columns: Columns) -> tuple[Bursts, dict[str, str]]:
    """Read bursts to fit; also return the columns of a table that carry no information, name → reason."""
    source = _source(data)
    burst_id = columns.burst_id or BURST_ID
    header = _header(source) if is_table(data) else None
    if header and len(header) > 1 and burst_id not in header:  # one name: `read_csv` says what separates the cells
        raise BurstError(
            f"{_name(source)}: there is no column '{burst_id}'; the table has {', '.join(header)}. "
            "Say which of them names the burst of a row: --burst-id NAME."
        )
    bursts = _bursts(source, burst_id, columns, columns.names, columns.exclude, columns.perturbations)
    if header is None or columns.names is not None:
        return bursts, {}
    names = np.array(bursts.feature_names)
    expected = {burst_id, *columns.exclude, *columns.perturbations, *names}
    left_out = {name: "text" for name in header if name not in expected}
    points, offsets = bursts.to_ragged()
    _say_clocks(points, names.tolist())
    constant = (points == points[0]).all(axis=0)  # (D,)
    if constant.any():
        if constant.all():
            raise BurstError(f"{_name(source)}: no column of numbers ever changes: {some(names.tolist())}.")
        left_out |= dict.fromkeys(names[constant].tolist(), "constant")
        units = None if bursts.units is None else np.array(bursts.units)[~constant].tolist()
        bursts = Bursts.from_ragged(
            np.ascontiguousarray(points[:, ~constant]),  # sums depend on the layout, in the last digit
            offsets,
            ids=bursts.ids,
            feature_names=names[~constant].tolist(),
            units=units,
            perturbations=bursts.perturbations,
            provenance=f"{bursts.provenance}; left out as constant: {', '.join(names[constant])}",
        )
    return bursts, left_out


def _say_clocks(points: Array, names: list[str]) -> None:
    """Name columns that grow from the first row to the last, as no sensor does over ROWS rows or more."""
    if len(points) < ROWS:
        return
    growing = (np.diff(points, axis=0) >= 0).all(axis=0) & (points[0] < points[-1])
    for name, grows in zip(names, growing, strict=True):
        if grows:
            click.echo(
                f"'{name}' grows from row to row, as a time stamp or a counter does; if it is one, "
                f"leave it out: --exclude {name}.",
                err=True,
            )


def say_left_out(left_out: dict[str, str]) -> None:
    """Name the columns that are not used, and why."""
    if left_out:
        click.echo(f"Left out: {some([f'{name} ({why})' for name, why in left_out.items()])}.", err=True)


def read_bursts_like(model: LOCA, data: str, columns: Columns) -> Bursts:
    """Read bursts with the sensors that a model was fitted to, by name where both have names."""
    source = _source(data)
    burst_id = burst_id_of(model, columns)
    header = _header(source)
    known, moved = _known(model, columns), _perturbations(model, columns, header)
    if known is None or header is None:
        bursts = _bursts(source, burst_id, columns, columns.names, columns.exclude, moved)
        if is_table(data) and columns.names is None:
            read = {burst_id, *columns.exclude, *moved, *(bursts.feature_names or ())}
            say_left_out({name: "text" for name in header or () if name not in read})
        return bursts
    bursts = _bursts(source, burst_id, columns, known, (), moved)
    _say_ignored(model, columns, (name for name in header if name not in {burst_id, *known, *moved}))
    return bursts


def read_static(data: str, columns: Columns, bursts: Bursts) -> Bursts:
    """Read bursts taken while nothing was perturbed, with the sensors of `bursts`, by name where both have names."""
    source = _source(data)
    burst_id, header = columns.burst_id or BURST_ID, _header(source)
    if is_table(data) and header and len(header) > 1 and burst_id not in header:
        raise BurstError(
            f"{data}: there is no column '{burst_id}'; the table has {', '.join(header)}. Static bursts need "
            "the same column as the others."
        )
    if header is None or bursts.feature_names is None:
        return _bursts(source, burst_id, columns, columns.names, columns.exclude, ())
    return _bursts(source, burst_id, columns, bursts.feature_names, (), ())


def _perturbations(model: LOCA, columns: Columns, header: list[str] | None) -> tuple[str, ...]:
    """Return the columns of displacements: the requested ones, or those of the fit if the table has them."""
    if columns.perturbations:
        return columns.perturbations
    remembered = tuple(_remembered(model).get("perturbations", ()))
    missing = [name for name in remembered if name not in (header or ())]
    if missing:
        click.echo(f"No column {some(missing)} of displacements: bursts are placed at their means.", err=True)
    return () if missing else remembered


def _bursts(
    source: Source,
    burst_id: str,
    columns: Columns,
    names: Sequence[str] | None,
    exclude: Sequence[str],
    moved: Sequence[str],
) -> Bursts:
    bursts = _read(source, burst_id, names, exclude, moved, columns.missing)
    if columns.missing == "drop":
        click.echo(f"{_name(source)}: {bursts.provenance}.", err=True)
    return bursts


def _read(
    source: Source,
    burst_id: str,
    names: Sequence[str] | None,
    exclude: Sequence[str],
    moved: Sequence[str],
    missing: Literal["raise", "drop"],
) -> Bursts:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "columns that do not hold numbers", UserWarning)  # `say_left_out` names them
        if isinstance(source, str):
            return open_bursts(
                source,
                burst_id=burst_id,
                columns=names,
                exclude=exclude,
                on_text="warn",
                perturbations=moved,
                missing=missing,
            )
        with _named(source.name):
            source.seek(0)
            return read_csv(
                source, burst_id, names, exclude=exclude, on_text="warn", perturbations=moved, missing=missing
            )


# -- rows -------------------------------------------------------------------------------------------------------


def read_rows_like(model: LOCA, data: str, columns: Columns) -> tuple[Array, Labels | None]:
    """Read measurements (n, D) of the sensors that a model was fitted to, and the burst of each row, if named."""
    source = _source(data)
    with _named(_name(source)):
        if isinstance(source, str) and Path(source).suffix.lower() == ".npy":
            if columns.names is not None or columns.exclude:
                raise BurstError("a .npy file has no column names, so none can be chosen.")
            return _whole(_read_npy(source), [], columns), None
        known = _known(model, columns)
        names, exclude = (columns.names, columns.exclude) if known is None else (known, ())
        table = _read_rows(source, burst_id_of(model, columns), names, exclude, needed=columns.burst_id is not None)
        _whole(table.values, table.names, columns)
        _refuse_bad_rows(model, table)
    if known is None:
        say_left_out(dict.fromkeys(table.text_columns, "text"))
    else:
        _say_ignored(model, columns, table.left_out)
    return table.values, table.labels


def read_samples(data: str, time: str | None, columns: Columns) -> Table:
    """Read the rows of a recording in their order; the labels are its time stamps, as text, if a column has them."""
    source = _source(data)
    with _named(_name(source)):
        if isinstance(source, str) and Path(source).suffix.lower() == ".npy":
            if time is not None or columns.names is not None or columns.exclude:
                raise BurstError("a .npy file has no column names, so none can be chosen.")
            return Table([], _read_npy(source))
        label = "".join(_header(source) or ()) + "#" if time is None else time  # a name that no column has
        return _read_rows(source, label, columns.names, columns.exclude, needed=time is not None)


def read_array(data: str) -> Array:
    """Read an array (n, D) from a .npy file."""
    with _named(data):
        return _read_npy(data)


def _refuse_bad_rows(model: LOCA, table: Table) -> None:
    """Name the first row that has no coordinates as a user finds it in the table, by its burst if it has a name."""
    bad = ~(np.abs(table.values) <= LARGEST)  # nan is not
    if not bad.any() or table.values.shape[1] != model.n_features_in_:
        return
    cells = ", ".join(f"{table.names[j]}: {bad[:, j].sum()}" for j in np.flatnonzero(bad.any(axis=0)))
    n, first = int(bad.any(axis=1).sum()), int(np.argmax(bad.any(axis=1)))
    burst = "" if table.labels is None else f", of burst '{table.labels[first]}'"
    raise BurstError(
        f"{n:,} of {len(bad):,} rows have cells that are empty, not finite or beyond {LARGEST:g} (by sensor: {cells}). "
        f"The first of them is row {first + 1:,} below the header{burst}. There is one row of coordinates for each row "
        "of the table: remove or repair these rows."
    )


def _whole(values: Array, names: Sequence[str], columns: Columns) -> Array:
    """Refuse to drop rows: each row of the output belongs to one of the input."""
    if columns.missing == "drop":
        found = count_missing(Bursts(values[:, None], feature_names=names or None))  # each row as a burst
        if found:
            cells = "; ".join(f"{name}: {n:,}" for name, n in found.cells.items())
            raise BurstError(
                f"{found.n_points:,} of {found.of_points:,} rows have missing cells ({cells}), and transform gives one "
                "row for each: --missing drop is for bursts (add --bursts). Repair or remove these rows."
            )
    return values


def read_coordinates(model: LOCA, data: str, columns: Columns) -> tuple[Array, Labels | None]:
    """Read coordinates (n, d), the columns z0, z1, … or, if there are none, all; and the burst of each row."""
    source = _source(data)
    with _named(_name(source)):
        if isinstance(source, str) and Path(source).suffix.lower() == ".npy":
            return _read_npy(source), None
        burst_id = burst_id_of(model, columns)
        names = [f"z{i}" for i in range(model.n_components_)]
        header = _header(source) or ()
        chosen = names if any(name in header for name in names) else None
        exclude = [TRUST] if chosen is None and TRUST in header else []  # describes a point, but is not a coordinate
        table = _read_rows(source, burst_id, chosen, exclude, needed=columns.burst_id is not None)
        if chosen is None and len(table.names) != len(names):
            raise BurstError(
                f"there is no column {', '.join(names)}, and {some(table.names)} are not {len(names)} coordinates."
            )
    say_left_out(dict.fromkeys(table.text_columns, "text"))
    _say_ignored(model, Columns(exclude=(TRUST,)), table.left_out if chosen else ())
    return table.values, table.labels


def _read_rows(
    source: Source, label: str, names: Sequence[str] | None, exclude: Sequence[str], *, needed: bool
) -> Table:
    if not isinstance(source, str):
        source.seek(0)
        return read_table(source, label, names, exclude, needed=needed)
    suffix = Path(source).suffix.lower()
    if suffix == ".parquet":
        return _read_parquet(source, label, names, exclude, needed=needed)
    if suffix != ".csv":
        raise BurstError(f"rows are read from .csv, .parquet and .npy files; got the suffix {suffix!r}.")
    return read_table(Text(read_text(source), source), label, names, exclude, needed=needed)


def _read_parquet(path: str, label: str, names: Sequence[str] | None, exclude: Sequence[str], *, needed: bool) -> Table:
    require("pyarrow", "table")
    with open(path, "rb") as file:
        return read_parquet(file, label, names, exclude, needed=needed)


def _read_npy(path: str) -> Array:
    values = _load(path, mapped=False)  # of a map of a file that is cut meanwhile the process would die
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        raise BurstError(f"has shape {values.shape} and dtype {values.dtype}; expected numbers (n, D).")
    return np.asarray(values, dtype=np.float64)


def _load(path: str, *, mapped: bool = True) -> NDArray[Any]:
    try:
        values: NDArray[Any] = np.load(path, mmap_mode="r" if mapped else None, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise BurstError("not a readable .npy file of numbers; it is truncated, or holds Python objects.") from error
    return values


def write_rows(values: Array, names: list[str], output: Path | None, labels: Labels | None, label: str) -> None:
    """Write rows to .npy, or to CSV with `label` as the first column; without a path, CSV to standard output."""
    if output is not None and output.suffix.lower() == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, values, allow_pickle=False)
        write_atomically(output, buffer.getvalue())
        return
    cells = None if labels is None else [str(cell) for cell in np.asarray(labels).tolist()]
    text = table_text(Table(names, values, cells), label)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_atomically(output, text.encode())


# -- what a model remembers -------------------------------------------------------------------------------------


def _remembered(model: LOCA) -> dict[str, Any]:
    """Return `burst_id` and `exclude` of the table of the fit; nothing when it was not a table."""
    found: dict[str, Any] = getattr(model, "table_", {})
    return found


def _known(model: LOCA, columns: Columns) -> list[str] | None:
    """Return the names of the sensors that a model needs; None when it was fitted to numbers without names."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return None
    for name in names:
        if name in columns.exclude or (columns.names is not None and name not in columns.names):
            option = "--exclude" if name in columns.exclude else "--columns"
            raise click.UsageError(f"the model was fitted to the column '{name}', which {option} leaves out.")
    return [str(name) for name in names]


def _say_ignored(model: LOCA, columns: Columns, names: Iterable[str]) -> None:
    """Name columns that the fit has not seen."""
    table = _remembered(model)
    expected = {*table.get("exclude", ()), *table.get("perturbations", ()), *columns.exclude, *columns.perturbations}
    extra = [name for name in names if name not in expected]
    if extra:
        click.echo(f"Ignored, because the model was fitted without: {some(extra)}.", err=True)


# -- sources ----------------------------------------------------------------------------------------------------


def _source(data: str) -> Source:
    """Return the path of a file, or the content of standard input ("-") or of another pipe, such as /dev/fd/63."""
    if Path(data).suffix:
        return data
    name = STDIN if data == "-" else data
    with _named(name):
        return Text(read_text(data), name)


def _name(source: Source) -> str:
    return source if isinstance(source, str) else source.name


def _header(source: Source) -> list[str] | None:
    """Read the names of columns or features, if a file has them."""
    if not isinstance(source, str):
        source.seek(0)
        return [name.strip() for name in next(csv.reader(source), [])]  # `read_csv` says what is wrong with it
    names = column_names(source)
    return None if names is None else [name for name in names if not name.startswith(INDEX)]


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Prefix errors with the file they are about."""
    try:
        yield
    except BurstError as error:
        raise BurstError(f"{name}: {error}") from None
    except IsADirectoryError:
        raise BurstError(f"{name}: is a directory; expected a file.") from None
    except FileNotFoundError:
        raise BurstError(f"{name}: there is no such file.") from None
    except OSError as error:
        raise BurstError(f"{name}: cannot be read ({error.strerror or error}).") from error
