"""Arrays that users and their functions hand in: what is refused, and how they are laid out."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import LARGEST, as_numbers, brief, refuse_masked
from pyloca.bursts._labels import burst_name
from pyloca.bursts._lazy import as_lazy
from pyloca.bursts._on_disk import FileArray
from pyloca.errors import BurstError

__all__ = [
    "Array",
    "Measurement",
    "as_burst",
    "as_indices",
    "as_points",
    "check_array",
    "check_dtype",
    "check_effective_counts",
    "check_ragged",
    "forget_pages",
    "join",
    "measure",
    "offsets_of",
    "refuse_empty",
]

Array = NDArray[np.float64]
Stored = TypeVar("Stored", bound=NDArray[Any] | FileArray)
Measurement = Callable[[Array], ArrayLike]

# -- bursts -----------------------------------------------------------------------------------------------------


def check_array(array: Any) -> Any:
    """Refuse what is not (N, M, D) numbers."""
    check_dtype(array, "bursts")
    if array.ndim != 3:
        hint = (
            " For one burst pass bursts[None]; for bursts of unequal length pass a list of (M_i, D) arrays."
            if array.ndim == 2
            else ""
        )
        raise BurstError(f"bursts has shape {array.shape}; expected (N, M, D).{hint}")
    if array.size == 0:
        raise BurstError(f"bursts has shape {array.shape}, which is empty; expected N, M, D ≥ 1.")
    return array


def check_dtype(array: Any, name: str) -> Any:
    """Refuse what is not real numbers; booleans and complex numbers are mistakes more often than measurements."""
    if array.dtype.kind not in "fiu":
        raise BurstError(
            f"{name} has dtype {array.dtype}; expected real numbers. "
            "Convert with astype(float); for bursts of unequal length pass a list of (M_i, D) arrays."
        )
    return array


def as_burst(part: ArrayLike, name: str) -> NDArray[Any]:
    """One burst of a list as an array."""
    refuse_masked(name, part, BurstError)
    try:
        return np.asarray(part)
    except ValueError as error:
        raise BurstError(f"{name} is not an array of numbers ({error}).") from error


def join(parts: list[NDArray[Any]], labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Bursts of unequal length as points and offsets."""
    for part, label in zip(parts, labels, strict=True):
        name = burst_name(label)
        check_dtype(part, name)
        if part.ndim != 2 or part.size == 0:
            raise BurstError(f"{name} has shape {part.shape}; expected (M_i, D) with M_i, D ≥ 1.")
        if part.shape[1] != parts[0].shape[1]:
            raise BurstError(
                f"{name} has D = {part.shape[1]} features and {burst_name(labels[0])} has {parts[0].shape[1]}; "
                "all must agree."
            )
    return np.concatenate(parts), offsets_of(np.array([len(part) for part in parts]))


def offsets_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Compute where bursts of these lengths begin and end, (N + 1,)."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def check_ragged(points: ArrayLike, offsets: ArrayLike) -> tuple[Any, NDArray[np.int64]]:
    """Refuse what is not points (n, D) with offsets (N + 1,) from 0 to n; points may be lazy."""
    refuse_masked("points", points, BurstError)
    refuse_masked("offsets", offsets, BurstError)
    found: Any = check_dtype(as_lazy(points, "points") or np.asarray(points), "points")
    if found.ndim != 2 or found.shape[1] == 0:
        raise BurstError(f"points has shape {found.shape}; expected (n, D) with offsets of length N + 1.")
    ends = np.asarray(offsets)
    if ends.ndim != 1 or len(ends) < 2 or not np.issubdtype(ends.dtype, np.integer):
        raise BurstError(f"offsets must be N + 1 integers; got shape {ends.shape}, dtype {ends.dtype}.")
    ends = ends.astype(np.int64)
    if ends[0] != 0 or ends[-1] != len(found):
        raise BurstError(
            f"offsets must run from 0 to the number of points, {len(found)}; they run from {ends[0]} to {ends[-1]}."
        )
    return found, ends


def refuse_empty(offsets: NDArray[np.int64], labels: NDArray[Any]) -> None:
    """Refuse bursts without points, and offsets that decrease."""
    short = np.flatnonzero(np.diff(offsets) < 1)
    if len(short):
        raise BurstError(
            f"{burst_name(labels[short[0]])} has no points (offsets {offsets[short[0]]} to "
            f"{offsets[short[0] + 1]}). Remove empty bursts and keep the offsets in increasing order."
        )


def as_indices(name: str, values: ArrayLike) -> NDArray[np.int64]:
    """Convert to an array (n,) of integers."""
    found = as_numbers(name, values, BurstError)
    if found.ndim != 1 or not (np.abs(found) < 2**53).all() or np.any(found != np.round(found)):
        raise BurstError(f"{name} must be a list of integers; got {brief(values)}.")
    return found.astype(np.int64)


def check_effective_counts(counts: ArrayLike, labels: NDArray[Any]) -> Array:
    """Effective numbers of points as an array (N,): at least 2 for a covariance; ``inf`` says that it is exact."""
    found = as_numbers("effective_counts", counts, BurstError)
    if found.shape != labels.shape:
        raise BurstError(f"effective_counts has shape {found.shape}; expected ({len(labels)},), one per burst.")
    few = np.flatnonzero(~(found >= 2))  # nan is not
    if len(few):
        raise BurstError(
            f"the effective count of {burst_name(labels[few[0]])} is {found[few[0]]:g}; expected 2 or more."
        )
    return found.copy()


def forget_pages(array: NDArray[Any]) -> None:
    """Release the pages of a mapped file that were read; a file larger than memory would fill it."""
    base: Any = array
    while base is not None and not isinstance(base, mmap.mmap):
        if isinstance(base, np.memmap) and base.mode != "r":
            return  # changes that are not written to the file (mode "c") would be lost
        base = getattr(base, "base", None)
    if base is not None and hasattr(base, "madvise"):  # not on Windows
        base.madvise(mmap.MADV_DONTNEED)


# -- what builders are given ------------------------------------------------------------------------------------


def measure(f: Measurement, cloud: Array) -> Array:
    """Apply `f` to a cloud (N, M, d) → (N, M, D); the result must be finite."""
    n, m, d = cloud.shape
    Y = as_numbers("the measurement", f(cloud.reshape(n * m, d)), BurstError)
    if Y.ndim != 2 or len(Y) != n * m:
        raise BurstError(f"the measurement maps ({n * m}, {d}) to {Y.shape}; expected ({n * m}, D).")
    bad = np.flatnonzero(~np.isfinite(Y).all(axis=1))
    if len(bad):
        raise BurstError(f"the measurement is not finite in burst {bad[0] // m}, at {cloud.reshape(-1, d)[bad[0]]}.")
    return Y.reshape(n, m, -1)


def as_points(points: ArrayLike, name: str) -> Array:
    """Convert to an array (n, d) of finite numbers."""
    out = as_numbers(name, points, BurstError)
    if out.ndim != 2 or 0 in out.shape:
        raise BurstError(f"{name} has shape {out.shape}; expected (n, d).")
    bad = np.flatnonzero(~(np.abs(out) <= LARGEST).all(axis=1))  # nan is not
    if len(bad):
        wrong = f"exceeds {LARGEST:g}; use a larger unit" if np.isfinite(out[bad[0]]).all() else "is not finite"
        raise BurstError(f"{name}[{bad[0]}] {wrong}.")
    return out
