"""Points and embeddings as files: CSV to read by eye and in pipes, .npy for the rest."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from pyloca._files import write_atomically
from pyloca.bursts import Bursts, open_bursts
from pyloca.bursts._files import BURST_ID, read_csv
from pyloca.errors import BurstError

__all__ = ["Points", "read_bursts", "read_points", "write_points"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Rows of numbers, with the column of burst numbers that they may have come with."""

    values: Array
    ids: list[str] | None = None


def read_bursts(path: str, burst_id: str) -> Bursts:
    """Bursts from a file, or as CSV from standard input when the path is "-"."""
    if path == "-":
        try:
            return read_csv(sys.stdin, burst_id)
        except BurstError as error:
            raise BurstError(f"standard input: {error}") from None
    return open_bursts(path, burst_id=burst_id)


def read_points(path: str) -> Points:
    """Points (n, D) from .npy, or from CSV with a header line, or from CSV on standard input for "-"."""
    name = "standard input" if path == "-" else path
    if path != "-" and not Path(path).is_file():
        raise BurstError(f"{path}: there is no such file.")
    try:
        if path != "-" and Path(path).suffix.lower() == ".npy":
            values = np.load(path, mmap_mode="r", allow_pickle=False)
            if values.ndim != 2 or values.dtype.kind not in "fiu":
                raise BurstError(f"has shape {values.shape} and dtype {values.dtype}; expected numbers (n, D).")
            return Points(np.asarray(values, dtype=np.float64))
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8-sig")
    except BurstError as error:
        raise BurstError(f"{name}: {error}") from None
    except (OSError, ValueError) as error:
        raise BurstError(f"{name}: cannot be read as points (is it .npy or .csv?).") from error
    return _points_from_csv(text, name)


def _points_from_csv(text: str, name: str) -> Points:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if len(lines) < 2:
        raise BurstError(f"{name}: expected a header line and rows of numbers.")
    header = [cell.strip().strip('"') for cell in lines[0][1].split(",")]
    place = header.index(BURST_ID) if BURST_ID in header else None
    ids: list[str] = []
    rows: list[list[float]] = []
    for number, line in lines[1:]:
        cells = line.split(",")
        if len(cells) != len(header):
            raise BurstError(f"{name}: line {number} has {len(cells)} cells; line 1 names {len(header)} columns.")
        if place is not None:
            ids.append(cells.pop(place).strip())
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError as error:
            raise BurstError(f"{name}: line {number}: {error}.") from None
    return Points(np.array(rows), ids if place is not None else None)


def write_points(points: Points, prefix: str, output: Path | None) -> None:
    """Write rows to .npy or CSV; without a path, CSV to standard output."""
    if output is not None and output.suffix.lower() == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, points.values, allow_pickle=False)
        write_atomically(output, buffer.getvalue())
        return
    names = [f"{prefix}{i}" for i in range(points.values.shape[1])]
    lines = [",".join(names if points.ids is None else [BURST_ID, *names])]
    for i, row in enumerate(points.values.tolist()):
        cells = [repr(value) for value in row]
        lines.append(",".join(cells if points.ids is None else [points.ids[i], *cells]))
    text = "\n".join(lines)
    if output is None:
        click.echo(text)
    else:
        write_atomically(output, f"{text}\n".encode())
