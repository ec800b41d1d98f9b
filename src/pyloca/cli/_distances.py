"""Known distances between bursts, from a CSV file: two ids and a distance per row."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pyloca.cli._text import read_text
from pyloca.errors import BurstError
from pyloca.estimator import burst_rows

__all__ = ["read_distances"]


def read_distances(path: Path, ids: NDArray[Any]) -> tuple[list[tuple[str, str]], list[float]]:
    """Read pairs of ids and their distances; a first row without a number in its third column is a header.

    Bursts are looked up in `ids`, so that a fit need not end before a wrong one is found.
    """
    try:
        table = csv.reader(io.StringIO(read_text(str(path)), newline=""))
        rows = [(line, [cell.strip() for cell in row]) for line, row in enumerate(table, 1) if any(row)]
    except (OSError, BurstError, csv.Error) as error:
        raise BurstError(f"{path}: cannot be read as CSV ({error}).") from error
    if rows and len(rows[0][1]) == 3 and _number(rows[0][1][2]) is None:
        rows = rows[1:]
    if not rows:
        raise BurstError(f"{path}: holds no distances; expected rows of two burst ids and the distance between them.")
    pairs, distances = [], []
    for line, cells in rows:
        number = _number(cells[2]) if len(cells) == 3 else None
        if number is None or not 0 < number < float("inf"):
            raise BurstError(
                f"{path}: line {line} is {','.join(cells)!r}; expected two burst ids and a distance > 0, such as "
                f"{ids[0]},{ids[-1]},2.5."
            )
        try:
            burst_rows(ids, [cells[:2]])
        except ValueError as error:
            raise BurstError(f"{path}: line {line}: {error}") from None
        pairs.append((cells[0], cells[1]))
        distances.append(number)
    return pairs, distances


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
