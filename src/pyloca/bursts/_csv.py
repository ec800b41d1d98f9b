"""One reader and one writer of tables in CSV, for bursts and for points."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from pyloca.errors import BurstError

__all__ = ["Table", "read_table", "table_text"]


@dataclass(frozen=True)
class Table:
    """Rows of numbers under names, and the text that stood beside each row, if any."""

    names: list[str]
    values: NDArray[np.float64]  # (n, D)
    labels: list[str] | None = None


def read_table(file: TextIO, label: str, *, needed: bool = False) -> Table:
    """A CSV table with a header line. The column `label`, which may be `needed`, is text; an error names the line."""
    try:
        return _read(file, label, needed)
    except csv.Error as error:
        raise BurstError(f"is no CSV ({error}).") from error
    except UnicodeDecodeError as error:
        raise BurstError(f"is no text in UTF-8 ({error.reason} at byte {error.start}).") from error


def _read(file: TextIO, label: str, needed: bool) -> Table:
    lines = csv.reader(file, strict=True)
    names = [name.strip().removeprefix("\ufeff") for name in next(lines, [])]
    if not any(names):
        raise BurstError("the file is empty; expected a header line with the names of the columns.")
    if len(set(names)) < len(names):
        raise BurstError(f"two columns have one name: {', '.join(names)}.")
    if all(_is_number(name) for name in names):
        raise BurstError("line 1 has numbers where the names of the columns are expected; add a header line.")
    if needed and label not in names:
        hint = " Cells are separated by commas." if len(names) == 1 else ""
        raise BurstError(f"there is no column {label!r}; line 1 names {', '.join(names)}.{hint}")
    if names == [label]:
        raise BurstError(f"there is no column of measurements beside {label!r}.")
    place = names.index(label) if label in names else None
    labels: list[str] = []
    rows: list[list[float]] = []
    for cells in lines:
        if not cells or cells == [""]:
            continue
        number = lines.line_num
        if len(cells) != len(names):
            raise BurstError(f"line {number} has {len(cells)} cells; line 1 names {len(names)} columns.")
        if place is not None:
            labels.append(cells.pop(place).strip())
            if not labels[-1]:
                raise BurstError(f"line {number} has no {label}.")
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError:
            wrong = next(cell for cell in cells if not _is_number(cell))
            raise BurstError(f"line {number} has {wrong!r} where a number is expected.") from None
    if not rows:
        raise BurstError("the table has no rows.")
    if place is None:
        return Table(names, np.array(rows))
    return Table([name for name in names if name != label], np.array(rows), labels)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def table_text(table: Table, label: str) -> str:
    """The table as CSV: numbers with all their digits, so that they are read back as they were."""
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
