"""Small tables that go with a command: CSV with or without a header, cell by cell."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from pyloca.cli._text import read_text
from pyloca.errors import BurstError

__all__ = ["number", "read_cells"]


def read_cells(path: Path) -> list[tuple[int, list[str]]]:
    """Read the rows that are not empty, each with the number of its line."""
    try:
        table = csv.reader(io.StringIO(read_text(str(path)), newline=""))
        return [(table.line_num, [cell.strip() for cell in row]) for row in table if any(row)]
    except (OSError, BurstError, csv.Error) as error:
        raise BurstError(f"{path}: cannot be read as CSV ({error}).") from error


def number(cell: str) -> float | None:
    """Return the number in a cell; None if there is none."""
    try:
        return float(cell)
    except ValueError:
        return None
