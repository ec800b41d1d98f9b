"""Known distances between bursts, from a CSV file: two ids and a distance per row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from pyloca.cli._rows import number, read_cells
from pyloca.errors import BurstError
from pyloca.estimator import burst_rows

__all__ = ["read_distances"]


def read_distances(path: Path, ids: NDArray[Any]) -> tuple[list[tuple[str, str]], list[float]]:
    """Read pairs of ids and their distances; a first row without a number in its third column is a header.

    Bursts are looked up in `ids`, so that a fit need not end before a wrong one is found.
    """
    rows = read_cells(path)
    if rows and len(rows[0][1]) == 3 and number(rows[0][1][2]) is None:
        rows = rows[1:]
    if not rows:
        raise BurstError(f"{path}: holds no distances; expected rows of two burst ids and the distance between them.")
    pairs, distances = [], []
    for line, cells in rows:
        distance = number(cells[2]) if len(cells) == 3 else None
        if distance is None or not 0 < distance < float("inf"):
            raise BurstError(
                f"{path}: line {line} is {','.join(cells)!r}; expected two burst ids and a distance > 0, such as "
                f"{ids[0]},{ids[-1]},2.5."
            )
        try:
            burst_rows(ids, [cells[:2]])
        except ValueError as error:
            raise BurstError(f"{path}: line {line}: {error}") from None
        pairs.append((cells[0], cells[1]))
        distances.append(distance)
    return pairs, distances
