"""Recordings in files: columns by name, rows by number, time stamps that must be evenly spaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Table
from pyloca.cli._column_options import Columns, some
from pyloca.cli._data import read_array, read_samples, say_left_out
from pyloca.errors import BurstError

__all__ = ["Recordings", "read_array", "read_recordings"]

Array = NDArray[np.float64]
EVEN = 0.1  # of the time between samples: clocks that tremble by less are good enough


class Recordings(NamedTuple):
    """What files of recordings hold.

    Attributes
    ----------
    values : list of (T, D) arrays
    names : list of D str, optional
    dt : float, optional
        Time between samples, if there are time stamps; in seconds if they are dates.
    """

    values: list[Array]
    names: list[str] | None
    dt: float | None


def read_recordings(data: Sequence[str], time: str | None, columns: Columns) -> Recordings:
    """Read recordings with the same columns; constant columns and text are left out and named."""
    tables = [read_samples(path, time, columns) for path in data]
    first = tables[0]
    for path, table in zip(data, tables, strict=True):
        if table.names != first.names:
            raise BurstError(
                f"{path}: its columns are {some(table.names)}; those of {data[0]} are {some(first.names)}. "
                "Choose columns that all files have with --columns."
            )
        _refuse_gaps(path, table)
    gaps = [_spacing(path, time, table.labels) for path, table in zip(data, tables, strict=True) if table.labels]
    for path, gap in zip(data, gaps, strict=False):
        if abs(gap - gaps[0]) > EVEN * gaps[0]:
            raise BurstError(f"{path}: samples are {gap:g} apart, in {data[0]} {gaps[0]:g}; resample one of them.")
    every = np.concatenate([table.values for table in tables])
    if time is None and first.names:
        _refuse_clocks(tables)
    constant = (every == every[0]).all(axis=0)  # (D,)
    if constant.all():
        raise BurstError(f"{data[0]}: no column of numbers ever changes: {some(first.names)}.")
    left_out = dict.fromkeys(first.text_columns, "text")
    left_out |= {name: "constant" for name, same in zip(first.names, constant, strict=False) if same}
    say_left_out(left_out)
    values = [np.ascontiguousarray(table.values[:, ~constant]) for table in tables]
    names = [name for name, same in zip(first.names, constant, strict=True) if not same] if first.names else None
    return Recordings(values, names, float(np.mean(gaps)) if gaps else None)


def _refuse_gaps(path: str, table: Table) -> None:
    bad = ~np.isfinite(table.values)
    if bad.any():
        row, column = np.argwhere(bad)[0]
        name = repr(table.names[column]) if table.names else str(column)
        raise BurstError(
            f"{path}: row {row + 1} has {table.values[row, column]} in column {name} ({bad.any(axis=1).sum()} such "
            f"rows of {len(bad)}). Cut the recording there and pass the parts as several files, or fill the gap."
        )


def _refuse_clocks(tables: Sequence[Table]) -> None:
    """Refuse a column that grows by the same amount from row to row: it is not a sensor."""
    steps = np.concatenate([np.diff(table.values, axis=0) for table in tables])
    if not len(steps):
        return
    usual = np.median(steps, axis=0)
    for j in np.flatnonzero((np.abs(steps - usual) <= EVEN * np.abs(usual)).all(axis=0) & (usual != 0)):
        name = tables[0].names[j]
        raise BurstError(
            f"'{name}' grows by {usual[j]:g} from row to row, as a time stamp or a counter does; "
            f"say --time {name}, or leave it out: --exclude {name}."
        )


def _spacing(path: str, time: str | None, stamps: Sequence[str]) -> float:
    """Time between samples; uneven ones are refused by row."""
    times = _times(path, time, stamps)
    if len(times) < 2:
        raise BurstError(f"{path}: there is only {len(times)} row.")
    gaps = np.diff(times)
    usual = float(np.median(gaps))
    bad = np.flatnonzero(~(np.abs(gaps - usual) <= EVEN * usual) | (gaps <= 0))
    if len(bad):
        row = int(bad[0]) + 1
        raise BurstError(
            f"{path}: row {row + 1} ({time} = {stamps[row]}) comes {gaps[row - 1]:g} after row {row}; the usual "
            f"distance is {usual:g} ({len(bad)} of {len(gaps)} distances differ from it by more than {EVEN:.0%}). "
            "Samples must be evenly spaced: cut the recording at gaps and pass the parts as several files, or resample."
        )
    return usual


def _times(path: str, time: str | None, stamps: Sequence[str]) -> Array:
    """Time stamps as numbers; dates in seconds."""
    try:
        return np.array(stamps, dtype=np.float64)
    except ValueError:
        pass
    try:
        dates = np.array([stamp.strip().removesuffix("Z") for stamp in stamps], dtype="datetime64[ns]")
    except ValueError as error:
        raise BurstError(f"{path}: column {time!r} holds neither numbers nor dates (ISO 8601): {error}.") from error
    return np.asarray((dates - dates[0]) / np.timedelta64(1, "s"), dtype=np.float64)
