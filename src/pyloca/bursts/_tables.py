"""Bursts from long tables, one row per measurement, with a column that says which burst a row belongs to."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import brief
from pyloca.bursts._container import Bursts
from pyloca.bursts._labels import Units, as_labels, check_unique_columns, choose_columns, is_missing, missing_at
from pyloca.bursts._missing import Missing, check_missing, settle_missing
from pyloca.errors import BurstError

__all__ = ["BURST_ID", "OnText", "as_array", "from_columns", "from_table", "take_perturbations", "text_columns_found"]

BURST_ID = "burst_id"
OnText = Literal["raise", "warn"]


def from_table(
    frame: Any,
    burst_id: str = BURST_ID,
    columns: Sequence[str] | None = None,
    *,
    exclude: Sequence[str] = (),
    units: Units | None = None,
    perturbations: Sequence[str] = (),
    missing: Missing = "raise",
) -> Bursts:
    """Make bursts from a long table: rows with the same `burst_id` are a burst, in order of first appearance.

    Parameters
    ----------
    frame : pandas or polars DataFrame, Arrow table, or mapping of columns
    burst_id : str
        Column that names the burst of each row; its values become the ids of the bursts.
    columns : sequence of str, optional
        The measurements, in this order. None takes all columns but `burst_id`.
    exclude : sequence of str
        Columns that are not measurements.
    units : mapping from name to unit, or sequence of str, optional
    perturbations : sequence of str
        Columns that are not measurements but the latent displacement of each row, which you set; see `Bursts`.
    missing : {"raise", "drop"}
        What to do about rows with a missing cell (NaN, null, infinite or masked) among the measurements: refuse the
        table, saying how many there are in each column, or leave these rows out, as `drop_missing` does.

    Returns
    -------
    Bursts
        With ids and feature names.

    Raises
    ------
    BurstError
        If a column is missing or does not hold numbers, if a row has no id, if cells are missing, or if columns differ
        in length.

    Examples
    --------
    >>> bursts = from_table({"run": ["b", "b", "a", "a"], "p": [1.0, 1.5, 4.0, 4.5]}, "run", units={"p": "Pa"})
    >>> bursts.ids.tolist(), bursts.feature_label(0), bursts[1].tolist()
    (['b', 'a'], 'p (Pa)', [[4.0], [4.5]])
    """
    if not (isinstance(frame, Mapping) or hasattr(frame, "column_names") or hasattr(frame, "columns")):
        raise TypeError(f"frame must be a data frame, an Arrow table or a mapping of columns; got {brief(frame)}.")
    if hasattr(frame, "column_names"):  # Arrow
        names = list(frame.column_names)
    else:
        names = list(frame) if isinstance(frame, Mapping) else list(frame.columns)
    check_unique_columns([str(name) for name in names])
    check_missing(missing)
    plain = {str(name): as_array(frame[name]) for name in names}
    if not perturbations:
        return settle_missing(from_columns(plain, burst_id, columns, exclude, units), missing)
    both = None if columns is None else [*columns, *perturbations]
    whole = settle_missing(from_columns(plain, burst_id, both, exclude), missing)
    return Bursts(take_perturbations(whole, perturbations), units=units)


def take_perturbations(bursts: Bursts, names: Sequence[str]) -> Bursts:
    """Take some features of bursts as their perturbations."""
    if not names:
        return bursts
    known = list(bursts.feature_names or ())
    missing = [name for name in names if name not in known]
    if missing:
        raise BurstError(
            f"there is no column {', '.join(map(repr, missing))} of perturbations; the columns with numbers are "
            f"{', '.join(known) or 'not named'}."
        )
    rest = [j for j, name in enumerate(known) if name not in names]
    if not rest:
        raise BurstError("all columns are perturbations; none is left for measurements.")
    points, offsets = bursts.to_ragged()
    return Bursts.from_ragged(
        np.ascontiguousarray(points[:, rest]),  # sums depend on the layout, in the last digit
        offsets,
        ids=bursts.ids if bursts.has_ids else None,
        feature_names=[known[j] for j in rest],
        units=None if bursts.units is None else [bursts.units[j] for j in rest],
        perturbations=points[:, [known.index(name) for name in names]],
        provenance=f"{bursts.provenance}; perturbations: {', '.join(names)}",
    )


def as_array(column: Any) -> NDArray[Any]:
    """Convert a column to an array; a null among numbers becomes NaN."""
    if np.ma.isMaskedArray(column):
        return column
    if hasattr(column, "combine_chunks"):  # Arrow
        coded = str(column.type).startswith("dictionary")  # whose to_numpy takes a null for the last value
        return np.asarray(column.to_pylist() if coded else column.to_numpy())
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    numeric = bool(kind) and kind in "fiu"
    if numeric and hasattr(column, "isna") and column.isna().any():  # pandas' own integers with gaps
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    array = np.asarray(column)
    if array.dtype.kind != "O":
        return array
    return array.astype(kind + "8") if numeric else _with_gaps(array)


def _with_gaps(cells: NDArray[Any]) -> NDArray[Any]:
    """Numbers and gaps as floats; anything else is left as it is."""
    gaps = np.array([is_missing(cell) and not isinstance(cell, (str, bytes)) for cell in cells], dtype=bool)
    if gaps.all() or not all(isinstance(cell, Real) and not isinstance(cell, bool) for cell in cells[~gaps]):
        return cells
    out = np.full(cells.shape, np.nan)
    out[~gaps] = cells[~gaps].astype(np.float64)
    return out


def from_columns(
    table: Mapping[str, NDArray[Any]],
    burst_id: str,
    columns: Sequence[str] | None,
    exclude: Sequence[str],
    units: Units | None = None,
    on_text: OnText = "raise",
) -> Bursts:
    """`from_table` of plain columns, with cells that are missing left as NaN."""
    if burst_id not in table:
        raise BurstError(f"there is no column {burst_id!r}; the table has {', '.join(table) or 'none'}.")
    chosen = choose_columns(list(table), burst_id, columns, exclude)
    for name in [burst_id, *chosen]:
        if table[name].ndim != 1:
            raise BurstError(f"column {name!r} has shape {table[name].shape}; expected one value per row.")
        if len(table[name]) != len(table[burst_id]):
            raise BurstError(
                f"column {burst_id!r} has {len(table[burst_id])} rows and column {name!r} has {len(table[name])}."
            )
    if len(table[burst_id]) == 0:
        raise BurstError("the table has no rows.")
    words = [name for name in chosen if table[name].dtype.kind not in "fiu"]
    if words:
        text_columns_found({name: str(table[name].dtype) for name in words}, on_text if columns is None else "raise")
        chosen = [name for name in chosen if name not in words]
    if not chosen:
        raise BurstError(f"there is no column of numbers beside {burst_id!r}.")
    points = np.stack([_numbers(table[name]) for name in chosen], axis=1)  # (n, D)
    labels = _labels(table[burst_id], burst_id)
    # Rows of a burst mostly stand together: sorting the heads of runs is cheaper than sorting all rows.
    heads = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
    _, first, inverse = np.unique(labels[heads], return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))  # 0, 1, … in order of appearance
    burst = np.repeat(rank[inverse], np.diff(np.r_[heads, len(labels)]))  # (n,)
    if len(heads) > len(first):
        points = points[np.argsort(burst, kind="stable")]
    return Bursts.from_ragged(
        points,
        np.r_[0, np.cumsum(np.bincount(burst))],
        ids=labels[heads][np.sort(first)],
        feature_names=chosen,
        units=units,
        provenance=f"from_table: rows by {burst_id}" + (f"; left out as text: {', '.join(words)}" if words else ""),
    )


def text_columns_found(columns: Mapping[str, str], on_text: OnText) -> None:
    """Say which columns are not numbers (name → what they are), and how to leave them out."""
    listed = ", ".join(f"{name!r} ({kind})" for name, kind in columns.items())
    if on_text == "raise":
        raise BurstError(
            f"columns that do not hold numbers: {listed}. Leave them out with exclude={list(columns)!r}, "
            "or name the measurements with columns=[…]."
        )
    warnings.warn(f"columns that do not hold numbers are left out: {listed}.", UserWarning, stacklevel=2)


def _numbers(column: NDArray[Any]) -> NDArray[np.float64]:
    """Return a column as floats, with NaN where it is masked."""
    if np.ma.isMaskedArray(column):
        return np.ma.filled(column.astype(np.float64), np.nan)
    return np.asarray(column, dtype=np.float64)


def _labels(ids: NDArray[Any], burst_id: str) -> NDArray[Any]:
    row = missing_at(ids)
    if row is not None:
        raise BurstError(f"row {row} has no {burst_id}.")
    ids = np.asarray(ids)
    if ids.dtype.kind == "O" and len({isinstance(label, (str, bytes)) for label in ids}) > 1:
        raise BurstError(f"column {burst_id!r} mixes text and numbers; convert it with astype(str).")
    return as_labels(ids)
