"""What bursts and features are called: checks of ids, names and units, said in one way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import brief
from pyloca.errors import BurstError

__all__ = [
    "Labels",
    "Units",
    "as_labels",
    "burst_name",
    "check_choice",
    "check_feature_names",
    "check_ids",
    "check_units",
    "is_missing",
    "missing_at",
    "names_of_frames",
    "repeated_at",
    "unique_ids",
]

Labels = Sequence[Any] | NDArray[Any]
Units = Mapping[str, str] | Sequence[str | None]


def burst_name(label: Any) -> str:
    """Name a burst for a message: by its number, or by its id in quotes."""
    return f"burst {int(label)}" if isinstance(label, (int, np.integer)) else f"burst {str(label)!r}"


# -- ids --------------------------------------------------------------------------------------------------------


def check_ids(ids: Labels, n_bursts: int) -> NDArray[Any]:
    """Ids of N bursts as an array (N,) of int64 or of text; none is missing and no two are alike."""
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise BurstError(f"ids must be a sequence of {n_bursts} labels; got {brief(ids)}.")
    if isinstance(ids, np.ndarray) and ids.ndim != 1:
        raise BurstError(f"ids has shape {np.shape(ids)}; expected ({n_bursts},), one label per burst.")
    values = ids if isinstance(ids, np.ndarray) else list(ids)
    if len(values) != n_bursts:
        raise BurstError(f"ids has {len(values)} labels for {n_bursts} bursts; expected one per burst.")
    place = missing_at(values)
    if place is not None:
        raise BurstError(f"ids[{place}] is missing ({values[place]!r}); every burst needs an id.")
    labels = as_labels(values)
    double = repeated_at(labels)
    if double is not None:
        first = int(np.flatnonzero(labels == labels[double])[0])
        raise BurstError(
            f"{burst_name(labels[double])} occurs twice in ids, at {first} and {double}; ids must be unique."
        )
    return labels


def missing_at(values: Labels) -> int | None:
    """Position of the first label that is none: None, NaN, NaT, masked, or empty text."""
    kind = values.dtype.kind if isinstance(values, np.ndarray) else ""
    if np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
        bad = np.ma.getmaskarray(values)
    elif kind and kind in "iub":
        return None
    elif kind and kind in "fcmM":
        bad = ~np.isfinite(values)
    elif kind == "U":
        bad = np.strings.str_len(np.strings.strip(values)) == 0
    else:
        bad = np.array([is_missing(value) for value in values], dtype=bool)
    return int(np.argmax(bad)) if bad.any() else None


def is_missing(value: Any) -> bool:
    """Whether this is None, NaN, NaT, pandas.NA, masked, or empty text."""
    if isinstance(value, (str, bytes)):
        return not value.strip()
    if value is None or value is np.ma.masked:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal to itself nor different
        return True


def as_labels(values: Labels) -> NDArray[Any]:
    """Convert labels to int64 if all are integers, else to text (``str`` of each): neither needs pickle in a file."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iU":
        return np.array(values, dtype=np.int64 if values.dtype.kind == "i" else None)
    if all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values):
        with suppress(OverflowError):  # what is larger than int64 becomes text
            return np.array([int(value) for value in values], dtype=np.int64)
    return np.array([_text(value) for value in values], dtype=np.str_)


def _text(value: Any) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def repeated_at(labels: NDArray[Any]) -> int | None:
    """Position of the first label that stood before."""
    _, first = np.unique(labels, return_index=True)
    if len(first) == len(labels):
        return None
    again = np.ones(len(labels), dtype=bool)
    again[first] = False
    return int(np.argmax(again))


def unique_ids(ids: NDArray[Any]) -> NDArray[Any]:
    """Return ids as they go into a file, where no two may be alike."""
    double = repeated_at(ids)
    if double is not None:
        raise BurstError(
            f"{burst_name(ids[double])} was chosen twice, and ids in a file must be unique; "
            "give the bursts new ids with Bursts(bursts, ids=range(len(bursts)))."
        )
    return ids


# -- features ---------------------------------------------------------------------------------------------------


def check_feature_names(names: Sequence[str] | NDArray[Any], n_features: int) -> tuple[str, ...]:
    """D names, none of them empty, no two alike."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise BurstError(f"feature_names must be a sequence of {n_features} names; got {brief(names)}.")
    out = list(names)
    for name in out:
        if not isinstance(name, str) or not name.strip():
            raise BurstError(f"feature_names must be non-empty text; got {brief(name)}.")
    if len(out) != n_features:
        raise BurstError(
            f"feature_names has {len(out)} names ({_listed(out)}) and the bursts have D = {n_features} features."
        )
    double = next((name for i, name in enumerate(out) if name in out[:i]), None) if len(set(out)) < len(out) else None
    if double is not None:
        raise BurstError(f"feature_names has {str(double)!r} twice; names must be unique.")
    return tuple(str(name) for name in out)


def names_of_frames(parts: Sequence[Any]) -> list[str] | None:
    """Names that a list of data frames has in common; None when its parts are arrays."""
    names = [[str(name) for name in part.columns] if hasattr(part, "columns") else None for part in parts]
    for i, found in enumerate(names):
        if found != names[0]:
            raise BurstError(
                f"the columns of part {i} are {', '.join(found or ['not named'])}; those of part 0 are "
                f"{', '.join(names[0] or ['not named'])}. All must agree, in the same order."
            )
    return names[0] if names else None


def check_units(units: Units, n_features: int, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return one unit per feature, "" where it is not known; None when no unit is known."""
    if isinstance(units, Mapping):
        if names is None:
            raise BurstError("units by name need feature_names; pass them, or a sequence of D units.")
        unknown = [str(name) for name in units if name not in names]
        if unknown:
            raise BurstError(f"units names {unknown[0]!r}, which is not a feature; features are {_listed(names)}.")
        units = [units.get(name) for name in names]
    elif isinstance(units, (str, bytes)) or not isinstance(units, Iterable):
        raise BurstError(f"units must be a mapping from name to unit or a sequence of D units; got {brief(units)}.")
    out = ["" if unit is None else unit for unit in units]
    for unit in out:
        if not isinstance(unit, str):
            raise BurstError(f"a unit must be text, or None where it is not known; got {brief(unit)}.")
    if len(out) != n_features:
        raise BurstError(f"units has {len(out)} units and the bursts have D = {n_features} features.")
    return tuple(str(unit) for unit in out) if any(out) else None


# -- columns of a table -----------------------------------------------------------------------------------------


def check_unique_columns(names: Sequence[str]) -> None:
    """Refuse a table in which two columns have the same name."""
    if len(set(names)) < len(names):
        raise BurstError(f"two columns have the same name: {', '.join(names)}.")


def check_choice(columns: Sequence[str] | None, exclude: Sequence[str]) -> None:
    """Refuse a bare name in place of a sequence, and a column that is both asked for and excluded."""
    for name, given in (("columns", columns), ("exclude", exclude)):
        if isinstance(given, str):
            raise TypeError(f"{name} must be a sequence of names; got {brief(given)}. Pass [{brief(given)}].")
    both = [name for name in columns or () if name in exclude]
    if both:
        raise ValueError(f"columns and exclude both name {both[0]!r}.")


def choose_columns(
    names: Sequence[str], label: str, columns: Sequence[str] | None, exclude: Sequence[str]
) -> list[str]:
    """Choose the columns of measurements: `columns` in that order, or all but `label`; without the excluded ones."""
    check_choice(columns, exclude)
    missing = [name for name in [*(columns or ()), *exclude] if name not in names]
    if missing:
        raise BurstError(
            f"there is no column {', '.join(map(repr, missing))} in the table; it has {', '.join(names) or 'none'}."
        )
    if columns is not None and label in columns:
        raise BurstError(f"columns names {label!r}, which holds the ids of the bursts and is not a measurement.")
    chosen = [name for name in names if name != label] if columns is None else list(columns)
    chosen = [name for name in chosen if name not in exclude]
    if not chosen:
        raise BurstError(f"there is no column of measurements beside {label!r}.")
    return chosen


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f", … ({len(names)} in all)" if len(names) > most else ""
    return ", ".join(names[:most]) + more
