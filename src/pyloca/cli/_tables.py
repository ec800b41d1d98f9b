"""Points and embeddings as files: CSV to read by eye and in pipes, .npy for the rest."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from pyloca._atomic import write_atomically
from pyloca.bursts import BURST_ID, Bursts, Table, open_bursts, read_csv, read_table, table_text
from pyloca.errors import BurstError

__all__ = ["TRUST", "read_bursts", "read_points", "write_points"]

Array = NDArray[np.float64]
STDIN = "standard input"
TRUST = "trust"  # the column that ``pyloca transform --trust`` adds


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Errors say which file they are about."""
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


def read_bursts(path: str, burst_id: str) -> Bursts:
    """Bursts from a file, or as CSV from standard input when the path is "-"."""
    if path != "-":
        return open_bursts(path, burst_id=burst_id)
    with _named(STDIN):
        return read_csv(sys.stdin, burst_id)


def read_points(path: str) -> tuple[Array, list[str] | None]:
    """Points (n, D) from .npy, or from CSV with a header line ("-": standard input), and their burst numbers."""
    if path == "-":
        with _named(STDIN):
            return _coordinates(read_table(sys.stdin, BURST_ID))
    with _named(path):
        if Path(path).suffix.lower() == ".npy":
            return _read_npy(path), None
        with open(path, encoding="utf-8", newline="") as file:
            return _coordinates(read_table(file, BURST_ID))


def _coordinates(table: Table) -> tuple[Array, list[str] | None]:
    """All columns but `TRUST`, which is said of a point and no part of it."""
    kept = [column for column, name in enumerate(table.names) if name != TRUST]
    return table.values[:, kept], table.labels


def _read_npy(path: str) -> Array:
    try:
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise BurstError("not a readable .npy file of numbers; it was cut short, or holds Python objects.") from error
    if values.ndim != 2 or values.dtype.kind not in "fiu":
        raise BurstError(f"has shape {values.shape} and dtype {values.dtype}; expected numbers (n, D).")
    return np.asarray(values, dtype=np.float64)


def write_points(values: Array, names: list[str], output: Path | None, labels: list[str] | None = None) -> None:
    """Write rows to .npy or CSV; without a path, CSV to standard output."""
    if output is not None and output.suffix.lower() == ".npy":
        buffer = io.BytesIO()
        np.save(buffer, values, allow_pickle=False)
        write_atomically(output, buffer.getvalue())
        return
    text = table_text(Table(names, values, labels), BURST_ID)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_atomically(output, text.encode())
