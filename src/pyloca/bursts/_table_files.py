"""Files of long tables, one row per point: CSV and Parquet."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from pyloca._optional import need
from pyloca.bursts._container import Bursts
from pyloca.bursts._csv import Table, read_table, table_text
from pyloca.bursts._labels import unique_ids
from pyloca.bursts._missing import Missing, check_missing, settle_missing
from pyloca.bursts._tables import BURST_ID, OnText, as_array, from_columns, take_perturbations, text_columns_found
from pyloca.bursts._wanted import Wanted
from pyloca.errors import BurstError

__all__ = ["read_csv", "read_csv_file", "read_parquet", "read_parquet_file", "write_csv", "write_parquet"]

UNIT = b"units"  # key of a unit in the metadata of a Parquet column
PANDAS_INDEX = re.compile(r"__index_level_\d+__")  # what pandas adds to a Parquet file; it is not a measurement


def read_csv_file(path: Path, wanted: Wanted) -> Bursts:
    """Read a table in CSV."""
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


def read_parquet_file(path: Path, wanted: Wanted) -> Bursts:
    """Read a table in Parquet, with its units."""
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
    return np.repeat(unique_ids(bursts.ids), bursts.counts), points, names


def write_csv(bursts: Bursts, file: io.BytesIO) -> None:
    """Write ids, names and points."""
    ids, points, names = _long(bursts)
    file.write(table_text(Table(names, points, [str(label) for label in ids.tolist()]), BURST_ID).encode())


def write_parquet(bursts: Bursts, file: io.BytesIO) -> None:
    """Write ids, names, units and points."""
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
