"""The user's own columns that a page can colour bursts by, one value per burst."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca.errors import BurstError

__all__ = ["Columns", "as_columns", "read_colours"]

Columns = Mapping[str, ArrayLike | Sequence[str]]

ID = "burst_id"  # the column of ids, wherever it is; the first column if none has this name


def as_columns(columns: Columns, n: int) -> dict[str, NDArray[Any]]:
    """Read columns as arrays (n,) of float64, NaN where a value is missing, or of text, "" where it is.

    Parameters
    ----------
    columns : mapping of str to a sequence of n numbers or texts
    n : int
        Number of bursts.

    Returns
    -------
    dict of str to (n,) array

    Raises
    ------
    ValueError
        If a column does not have one value per burst.

    Examples
    --------
    >>> as_columns({"operator": ["Ann", None], "day": [1, 2]}, 2)
    {'operator': array(['Ann', ''], dtype='<U3'), 'day': array([1., 2.])}
    """
    out: dict[str, NDArray[Any]] = {}
    for name, given in columns.items():
        values = np.asarray(given)
        if values.shape != (n,):
            raise ValueError(f"column {str(name)!r} has shape {values.shape}; expected ({n},), one value per burst.")
        known = [None if _is_missing(value) else value for value in values]
        numbers = all(value is None or (isinstance(value, Real) and not isinstance(value, bool)) for value in known)
        if values.dtype.kind in "fiu" or (values.dtype.kind == "O" and numbers):
            out[str(name)] = np.array([np.nan if value is None else float(value) for value in known])
        else:
            out[str(name)] = np.array(["" if value is None else str(value) for value in known])
    return out


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal to itself nor different
        return True


def read_colours(path: str | os.PathLike[str], ids: Sequence[Any] | NDArray[Any]) -> dict[str, NDArray[Any]]:
    r"""Read columns of a CSV table and join them to bursts by their ids.

    Parameters
    ----------
    path : path
        A CSV file with a header line. The column ``burst_id``, or the first one if none has this name, holds
        the ids; every other column is one to colour by: numbers if every cell is a number or empty, else text.
    ids : sequence of N labels
        Ids of the bursts. A burst that is not in the file has no value; rows of other bursts are ignored.

    Returns
    -------
    dict of str to (N,) array
        For ``user_report(..., columns=...)``: float64 with NaN, or text with "", where there is no value.

    Raises
    ------
    BurstError
        If the file cannot be read as such a table, names a burst twice, or has none of the bursts.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "shifts.csv")
    ...     _ = file.write_text("burst_id,operator,hour\nb,Ann,7\na,Bob,\n")
    ...     read_colours(file, ["a", "b"])
    {'operator': array(['Bob', 'Ann'], dtype='<U3'), 'hour': array([nan,  7.])}
    """
    names, rows = _read(Path(path))
    place = names.index(ID) if ID in names else 0
    found: dict[str, list[str]] = {}
    for number, cells in rows:
        if cells[place] in found:
            raise BurstError(f"{path}: line {number} names burst {cells[place]!r} a second time.")
        found[cells[place]] = cells
    labels = [str(label) for label in np.asarray(ids).tolist()]
    known = [found.get(label) for label in labels]
    if not any(known):
        raise BurstError(
            f"{path}: column {names[place]!r} has none of the bursts (first row: {next(iter(found))!r}; first burst: "
            f"{labels[0] if labels else 'there is none'!r})."
        )
    columns = {}
    for column, name in enumerate(names):
        if column != place:
            columns[name] = _numbers_or_texts(["" if cells is None else cells[column] for cells in known])
    return columns


def _numbers_or_texts(cells: list[str]) -> NDArray[Any]:
    try:
        return np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.array(cells)


def _read(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Read the names of the columns, and the rows with their line numbers."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(file, strict=True)
            names = [name.strip() for name in next(lines, [])]
            rows = [(lines.line_num, [cell.strip() for cell in cells]) for cells in lines if any(cells)]
    except OSError as error:
        raise BurstError(f"{path}: cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise BurstError(f"{path}: is not valid UTF-8 ({error.reason} at byte {error.start}).") from error
    except csv.Error as error:
        raise BurstError(f"{path}: is not valid CSV ({error}).") from error
    if len(names) < 2 or not all(names) or len(set(names)) < len(names):
        raise BurstError(
            f"{path}: line 1 is {','.join(names)!r}; expected the names of an id column and of at least one more, each "
            "different and separated by commas."
        )
    if not rows:
        raise BurstError(f"{path}: the table has no rows.")
    for number, cells in rows:
        if len(cells) != len(names):
            raise BurstError(f"{path}: line {number} has {len(cells)} cells; line 1 names {len(names)} columns.")
    return names, rows
