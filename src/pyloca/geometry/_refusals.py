"""What burst statistics refuse, by the id of the burst and the name of the sensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import LARGEST, as_numbers, brief, is_integer
from pyloca.bursts import Bursts, count_missing
from pyloca.errors import BurstError
from pyloca.thresholds import MIN_BURSTS

__all__ = [
    "allowed_strays",
    "as_counts",
    "as_finite",
    "check_k",
    "labels_of",
    "may_be_left_out",
    "refuse_bad_values",
    "refuse_few",
    "refuse_missing",
    "refuse_options",
    "refuse_short",
]


def allowed_strays(n: int, max_strays: float) -> int:
    """Count how many of n bursts may be left out: the given part, and one more, so that small sets may have a stray."""
    if not 0 <= max_strays < 0.5:
        raise ValueError(f"max_strays must be a fraction of the bursts in [0, 0.5); got {max_strays!r}.")
    return int(max_strays * n) + 1 if max_strays > 0 else 0


def may_be_left_out(allowed: int, max_strays: float) -> str:
    """Say how many bursts may be left out; "" if none."""
    return f"At most {allowed} may be left out (max_strays = {max_strays:g}; raise it to leave out more)." * (
        allowed > 0
    )


def refuse_short(bursts: Bursts, k: int, max_strays: float = 0.0) -> None:
    """Refuse bursts of too few points for k tangents, if they are more than may be left out."""
    counts = bursts.counts
    short = np.flatnonzero(counts < k + 1)
    allowed = allowed_strays(len(counts), max_strays)
    if len(short) > allowed:
        i = short[0]
        raise BurstError(
            f"{bursts.name_of(i)} (and {len(short) - 1} more) has {counts[i]} points; k = {k} tangents need at "
            f"least {k + 1}. Take more points, or remove these bursts{', or lower intrinsic_dim' if k > 1 else ''}. "
            f"{may_be_left_out(allowed, max_strays)}".rstrip()
        )


def refuse_options(bursts: Bursts, intrinsic_dim: int | None, max_dim: int | None, noise: Any, static: Any) -> None:
    """Refuse options that contradict known perturbations."""
    k = check_k(int(bursts.perturbed_dim or 0), bursts.n_features)
    if intrinsic_dim is not None and intrinsic_dim != k:
        raise BurstError(
            f"the perturbations have k = {k} directions, not intrinsic_dim = {intrinsic_dim}. Leave intrinsic_dim out."
        )
    if max_dim is not None and max_dim < k:
        raise BurstError(
            f"n_components = {max_dim} cannot hold perturbations in k = {k} directions; use n_components={k} or more."
        )
    if noise is not None or static is not None:
        raise ValueError(
            "measurement noise, given or from static bursts, is subtracted from covariances, and bursts with known "
            "perturbations have none: their regression averages the noise. Leave it out, or pass "
            "bursts.without_perturbations()."
        )


def check_k(k: int, dim: int) -> int:
    """Refuse what is not an integer from 1 to D."""
    if not is_integer(k, 1) or k > dim:
        raise BurstError(f"intrinsic_dim must be an integer from 1 to D = {dim}; got {brief(k)}.")
    return int(k)


def refuse_few(n: int, least: int = MIN_BURSTS) -> None:
    """Refuse fewer bursts than `least`."""
    if n < least:
        raise BurstError(f"there are {n} bursts; at least {least} are needed. Measure more.")


def refuse_bad_values(bursts: Bursts, rows: NDArray[np.int64], block: NDArray[np.float64]) -> None:
    """Refuse values that are not finite, all bursts at once, or too large to be squared; `rows` are positions."""
    bad = np.argwhere(~(np.abs(block) <= LARGEST))  # nan is not
    if not len(bad):
        return
    refuse_missing(bursts)
    b, point, feature = bad[0]
    raise BurstError(
        f"{bursts.name_of(int(rows[b]))} has {block[b, point, feature]} at point {point}, "
        f"{bursts.feature_label(int(feature))}. Measure in a larger unit: squares would overflow."
    )


def refuse_missing(bursts: Bursts) -> None:
    """Refuse values that are not finite, all bursts at once."""
    missing = count_missing(bursts)
    if missing:
        raise BurstError(f"the bursts have {missing.refusal}") from None


def labels_of(
    means: NDArray[np.float64], ids: Sequence[Any] | NDArray[Any] | None, feature_names: Sequence[str] | None
) -> dict[str, Any]:
    """Check names by the rules of `Bursts`, taking each mean as a burst of one point."""
    named = Bursts(means[:, None], ids=ids, feature_names=feature_names)
    return {"ids": named.ids, "feature_names": named.feature_names}


def as_finite(array: ArrayLike, name: str, ndim: int) -> NDArray[np.float64]:
    """Return finite real numbers with `ndim` axes."""
    array = as_numbers(name, array, BurstError)
    if array.ndim != ndim:
        raise BurstError(f"{name} has shape {array.shape}; expected {ndim} axes.")
    bad = np.argwhere(~(np.abs(array) <= LARGEST))
    if len(bad):
        large = np.isfinite(array[tuple(bad[0])])
        wrong = "too large to be squared; use a larger unit" if large else "not finite; remove or repair it"
        raise BurstError(f"{name}[{bad[0][0]}] is {wrong}.")
    return array


def as_counts(counts: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """Points per burst, (N,); infinite where the covariance is known exactly."""
    if counts is None:
        return np.full(n, np.inf)
    counts = as_numbers("counts", counts, BurstError)
    counts = np.full(n, counts) if counts.ndim == 0 else counts
    if counts.shape != (n,):
        raise BurstError(f"counts has shape {counts.shape}; expected ({n},), one number per burst.")
    few = np.flatnonzero(~(counts >= 2))  # nan is not, inf is: a covariance that is known exactly
    if len(few):
        raise BurstError(f"counts[{few[0]}] is {counts[few[0]]:g}; a covariance needs at least 2 points.")
    return counts
