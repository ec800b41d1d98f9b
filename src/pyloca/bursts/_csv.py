"""One reader and one writer of tables in CSV, for bursts and for points."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts._labels import check_unique_columns, choose_columns
from pyloca.errors import BurstError

__all__ = ["Table", "csv_header", "read_table", "table_text"]

# What people and programs write where a reading is missing, in lower case; it is read as NaN.
NO_NUMBER = {"", "na", "n/a", "#n/a", "#na", "<na>", "nan", "-nan", "null", "none"}
NUMBER_AHEAD = re.compile(r"\s*[+-]?(\d|\.\d|nan|inf)", re.IGNORECASE)  # all that `float` takes begins like this


@dataclass(frozen=True)
class Table:
    """Rows of numbers in named columns, and the label of each row, if any.

    Attributes
    ----------
    names : list of str
        Of the columns that were read as numbers.
    values : (n, D)
        NaN where a cell is empty, or says that there is no number ("NA", "nan", "null", …).
    labels : list of str, optional
        The column that names the rows.
    text_columns : tuple of str
        Columns without a single number, which were left out because no `columns` were asked for.
    left_out : tuple of str
        All columns that were not read: these, and those that were excluded or not asked for.

    Examples
    --------
    >>> import numpy as np
    >>> table = Table(["pressure"], np.array([[101.3], [99.8]]), labels=["r7", "r2"])
    >>> table.names, table.values.shape
    (['pressure'], (2, 1))
    """

    names: list[str]
    values: NDArray[np.float64]  # (n, D)
    labels: list[str] | None = None
    text_columns: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def read_table(
    file: TextIO,
    label: str,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] = (),
    *,
    needed: bool = False,
) -> Table:
    r"""Read a CSV table with a header line.

    Parameters
    ----------
    file : text file
        Open it with ``newline=""``.
    label : str
        Name of the column that holds the names of rows; it is read as text.
    columns : sequence of str, optional
        Columns to read, in this order. None reads all but `label` that hold numbers.
    exclude : sequence of str
        Columns to leave out.
    needed : bool
        Whether a table without the column `label` is an error.

    Returns
    -------
    Table

    Raises
    ------
    BurstError
        If the text is not such a table; the message names line, column and cell.

    Examples
    --------
    >>> import io
    >>> table = read_table(io.StringIO("id,x,note\na,1,good\nb,2.5,bad\n"), "id")
    >>> table.names, table.values.tolist(), table.labels, table.text_columns
    (['x'], [[1.0], [2.5]], ['a', 'b'], ('note',))
    """
    try:
        # Read at once: bytes that are not UTF-8 are then counted from the beginning of the file.
        text = file.read().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise BurstError(f"is not valid UTF-8 ({error.reason} at byte {error.start}).") from error
    if "\0" in text:
        raise BurstError(f"line {text.count(chr(10), 0, text.index(chr(0))) + 1} has a NUL byte; expected text.")
    try:
        return _read(text, label, columns, exclude, needed)
    except csv.Error as error:
        raise BurstError(f"is not valid CSV ({error}).") from error


def csv_header(file: TextIO) -> list[str]:
    """Names of the columns of a CSV table; the file is left at the line after them."""
    names = [name.strip() for name in next(csv.reader(file, strict=True), [])]
    if not any(names):
        raise BurstError("the file is empty; expected a header line with the names of the columns.")
    if len(names) == 1:
        for mark, word in ((";", "semicolons"), ("\t", "tabs")):
            if mark in names[0]:
                raise BurstError(
                    f"the cells of line 1 are separated by {word}; expected commas. Write the table with commas and "
                    "decimal points, or read it with pandas.read_csv(path, sep=…, decimal=…) and use from_table."
                )
    check_unique_columns(names)
    if all(_is_number(name) for name in names):
        raise BurstError("line 1 has numbers where the names of the columns are expected; add a header line.")
    return names


def _read(text: str, label: str, columns: Sequence[str] | None, exclude: Sequence[str], needed: bool) -> Table:
    file = io.StringIO(text, newline="" if "\r" in text else "\n")  # alike without "\r", and the latter is faster
    names = csv_header(file)
    if needed and label not in names:
        hint = " Cells are separated by commas." if len(names) == 1 else ""
        raise BurstError(f"there is no column {label!r}; line 1 names {', '.join(names)}.{hint}")
    chosen = choose_columns(names, label, columns, exclude)
    if "" in chosen:
        raise BurstError(
            f"column {names.index('') + 1} has no name in line 1. If it is the index of a pandas frame, write the "
            "table with to_csv(index=False); else leave it out with exclude=[''], or name the measurements with "
            "columns=[…]."
        )
    if not text[file.tell() :].strip():
        raise BurstError("the table has no rows.")
    wanted = [names.index(name) for name in chosen]
    place = names.index(label) if label in names else None
    if '"' in text:  # NumPy is lenient about quotes
        for _ in csv.reader(io.StringIO(text, newline=""), strict=True):
            pass
    values, labels, words = _fast(file, len(names), wanted, place, columns is None) or _slow(
        text, names, wanted, place, label, columns is None
    )
    if columns is None:
        words += [j for j in wanted if j not in words and np.isnan(values[:, j]).all()]
    kept = [j for j in wanted if j not in words]
    if not kept:
        raise BurstError(f"there is no column of numbers, only of text or empty: {', '.join(names[j] for j in words)}.")
    used = {*kept, place}
    return Table(
        [names[j] for j in kept],
        values[:, kept],
        labels,
        tuple(names[j] for j in words),
        tuple(name for j, name in enumerate(names) if j not in used),
    )


Parsed = tuple[NDArray[np.float64], list[str] | None, list[int]]  # (n, columns of the file), labels, columns of text


def _fast(file: TextIO, n_columns: int, wanted: list[int], place: int | None, may_be_text: bool) -> Parsed | None:
    """Parse the table with NumPy; None when something is wrong with it, which `_slow` will name."""
    start = file.tell()
    first = next((cells for cells in csv.reader(file) if any(cells)), [])
    file.seek(start)
    if len(first) != n_columns:
        return None
    kept: dict[int, list[str]] = {}
    converters: dict[int | str, Callable[[str], float]] = {j: _ignore for j in range(n_columns) if j not in wanted}
    words = [j for j in wanted if may_be_text and not _is_number(first[j])]
    for j in [*words, *([] if place is None else [place])]:
        kept[j] = []
        converters[j] = _keep(kept[j])
    try:
        values = np.loadtxt(file, delimiter=",", comments=None, quotechar='"', converters=converters, ndmin=2)
    except ValueError:
        return None
    if values.shape[1] != n_columns or not all(_is_text(kept[j]) for j in words):
        return None
    labels = None if place is None else [cell.strip() for cell in kept[place]]
    return None if labels is not None and not all(labels) else (values, labels, words)


def _ignore(_: str) -> float:
    return 0.0


def _keep(cells: list[str]) -> Callable[[str], float]:
    return lambda cell: cells.append(cell) or 0.0  # type: ignore[func-returns-value]


def _slow(text: str, names: list[str], wanted: list[int], place: int | None, label: str, may_be_text: bool) -> Parsed:
    """Parse the table cell by cell, so that an error can name the line and the cell."""
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    next(lines)
    numbers: list[int] = []
    rows: list[list[str]] = []
    for cells in lines:
        if not cells or cells == [""]:
            continue
        if len(cells) != len(names):
            raise BurstError(f"line {lines.line_num} has {len(cells)} cells; line 1 names {len(names)} columns.")
        if place is not None and not cells[place].strip():
            raise BurstError(f"line {lines.line_num} has no {label}.")
        rows.append(cells)
        numbers.append(lines.line_num)
    if not rows:
        raise BurstError("the table has no rows.")
    words = [j for j in wanted if may_be_text and _is_text([cells[j] for cells in rows])]
    values = np.zeros((len(rows), len(names)))
    numeric = [j for j in wanted if j not in words]
    for i, cells in enumerate(rows):
        for j in numeric:
            if _is_gap(cells[j]):
                values[i, j] = np.nan
            elif _is_number(cells[j]):
                values[i, j] = float(cells[j])
            else:
                raise BurstError(
                    f"line {numbers[i]} has {cells[j]!r} where a number is expected, in column {names[j]!r}. "
                    "Correct it (a missing reading is an empty cell, or NA), or leave the column out if it is not a "
                    "measurement."
                )
    return values, None if place is None else [cells[place].strip() for cells in rows], words


def _is_text(cells: Sequence[str]) -> bool:
    """Whether this is a column of words: no cell is a number."""
    return not any(_is_number(cell) and not _is_gap(cell) for cell in set(cells))


def _is_gap(cell: str) -> bool:
    return cell.strip().lower() in NO_NUMBER


def _is_number(text: str) -> bool:
    # `float` takes 1_5 for 15, as in Python's own source; in a table it is a slip
    if "_" in text or not NUMBER_AHEAD.match(text):
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True


def table_text(table: Table, label: str) -> str:
    """Write a table as CSV: numbers with all their digits, so that they are read back as they were.

    Parameters
    ----------
    table : Table
    label : str
        Name of the column of its labels, which comes first.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> print(table_text(Table(["x"], np.array([[0.1]]), ["a"]), "id"), end="")
    id,x
    a,0.1
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    rows: Sequence[Sequence[object]] = table.values.tolist()
    if table.labels is None:
        writer.writerow(table.names)
        writer.writerows(rows)
    else:
        writer.writerow([label, *table.names])
        writer.writerows([text, *row] for text, row in zip(table.labels, rows, strict=True))
    return file.getvalue()
