"""Bursts from points that were not measured as bursts: tables with a burst column, and bare clouds."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import NearestNeighbors

from pyloca._arguments import check_count
from pyloca.bursts._container import Bursts
from pyloca.bursts._experiments import as_points
from pyloca.errors import BurstError, TrustWarning

__all__ = ["from_columns", "from_neighbors", "from_table"]


def from_table(frame: Any, burst_id: str = "burst_id", columns: Sequence[str] | None = None) -> Bursts:
    """A long table, one row a measurement: rows with the same `burst_id` are a burst, in order of first appearance.

    `frame` is a pandas or polars data frame, an Arrow table or a mapping of columns. `columns` are the measurements;
    None takes all but `burst_id`.
    """
    if hasattr(frame, "column_names"):  # Arrow
        table = {name: frame[name].to_numpy() for name in frame.column_names}
    elif isinstance(frame, Mapping):
        table = {str(name): np.asarray(values) for name, values in frame.items()}
    else:
        table = {str(name): np.asarray(frame[name]) for name in frame.columns}
    return from_columns(table, burst_id, columns)


def from_columns(table: Mapping[str, NDArray[Any]], burst_id: str, columns: Sequence[str] | None) -> Bursts:
    """`from_table` of plain columns."""
    if burst_id not in table:
        raise BurstError(f"there is no column {burst_id!r}; the table has {', '.join(table) or 'none'}.")
    chosen = [name for name in table if name != burst_id] if columns is None else list(columns)
    missing = [name for name in chosen if name not in table]
    if missing:
        raise BurstError(f"there is no column {missing[0]!r} in the table.")
    if not chosen:
        raise BurstError(f"there is no column of measurements beside {burst_id!r}.")
    ids = table[burst_id]
    if len(ids) == 0:
        raise BurstError("the table has no rows.")
    values = []
    for name in chosen:
        column = table[name]
        if column.dtype.kind not in "fiu":
            raise BurstError(f"column {name!r} has dtype {column.dtype}; expected numbers. Leave it out of columns=.")
        values.append(column.astype(np.float64))
    if ids.dtype.kind == "f" and not np.isfinite(ids).all():
        raise BurstError(f"row {int(np.flatnonzero(~np.isfinite(ids))[0])} has no {burst_id}.")
    try:
        _, first, label = np.unique(ids, return_index=True, return_inverse=True)
    except TypeError as error:  # text and numbers in one column
        raise BurstError(f"column {burst_id!r} mixes kinds of values ({error}).") from error
    rank = np.argsort(np.argsort(first))[label]  # 0, 1, … in order of appearance
    order = np.argsort(rank, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(rank))])
    points = np.stack(values, axis=1)[order]
    return Bursts.from_ragged(points, offsets, provenance=f"from_table: rows by {burst_id}")


def from_neighbors(points: ArrayLike, k: int) -> Bursts:
    """Each point with its `k` nearest as a burst: for when there are no repeated measurements.

    It is assumed that the points lie as densely in every latent direction, everywhere. Where they do not, their density
    is taken for a property of the instrument, and the coordinates are those in which it is uniform. σ is not known.
    """
    Y = as_points(points, "points")
    check_count("k", k, 2)
    if k >= len(Y):
        raise BurstError(f"k = {k} neighbours cannot be found among {len(Y)} points.")
    warnings.warn(
        f"bursts are made of the {k} nearest neighbours of each point, not measured: coordinates are right only if the "
        "points lie equally densely in all latent directions, everywhere, and their scale is not known.",
        TrustWarning,
        stacklevel=2,
    )
    near = NearestNeighbors(n_neighbors=k + 1).fit(Y).kneighbors(Y, return_distance=False)
    return Bursts(Y[near], provenance=f"from_neighbors: {k} nearest points, assumed to be as dense in all directions")
