"""Anchors: states that both instruments have measured, given as readings or as pairs of burst ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from pyloca._arguments import as_numbers, brief
from pyloca.errors import BurstError
from pyloca.estimator import LOCA, Data, burst_rows, feature_label, training_embedding, transform_unnamed
from pyloca.matching._precision import mean_variance, reading_variance
from pyloca.matching._support import Support
from pyloca.thresholds import FOREIGN_ANCHORS, OTHER_UNITS, UNTRUSTED

__all__ = ["COUNTED", "Anchors", "Pairs", "check_fitted", "listed", "read_anchors"]

Array = NDArray[np.float64]
NAMED = 3  # sensors at most in a message
# Of the anchors: an instrument that has changed reads otherwise everywhere. Half of them may lie in one corner where a
# decoder is worse than at all bursts that were held out.
MOST = 0.75
COUNTED = "(counted from 0, without a header)"
Pairs = tuple[Data, Data] | Sequence[tuple[Any, Any]] | ArrayLike


@dataclass(frozen=True)
class Anchors:
    """Anchors as coordinates.

    Attributes
    ----------
    A, B : (n, d) arrays
        Coordinates by each instrument.
    weights : (n,) array
        How sure each pair is, relative to the others.
    variance : (n,) array
        Of the readings alone, per coordinate, both instruments together: noise, and σ²/M of burst means.
    seen : (n,) array of bool
        Whether it lies in what each instrument was fitted to, and not where coordinates are extrapolated.
    doubts : tuple of str
        Instruments whose readings do not look like those of their fit, with the numbers that show it.
    unlike : tuple of str
        Instruments whose readings have next to no trust at most anchors, though their places were seen.
    rows : (n,) array of int
        Which of the given pairs these are, counted from 0.
    readings : (array, array), or ()
        What they were given as, (n, D) of each instrument; empty for bursts.
    """

    A: Array
    B: Array
    weights: Array
    variance: Array
    seen: NDArray[np.bool_]
    doubts: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    rows: NDArray[np.int64] = field(default_factory=lambda: np.arange(0))
    readings: tuple[Array, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.rows):
            object.__setattr__(self, "rows", np.arange(len(self.A)))

    def __len__(self) -> int:
        return len(self.A)

    def part(self, which: NDArray[np.bool_]) -> Anchors:
        """Return some of them."""
        return Anchors(
            self.A[which],
            self.B[which],
            self.weights[which],
            self.variance[which],
            self.seen[which],
            self.doubts,
            self.unlike,
            self.rows[which],
            tuple(readings[which] for readings in self.readings),
        )

    def named(self, which: NDArray[np.bool_]) -> str:
        """Say which of them, as the user finds them in a table."""
        rows = listed(self.rows[which])
        return f"the {f'anchors in rows {rows}' if which.sum() > 1 else f'anchor in row {rows}'} {COUNTED}"

    def outside(self) -> tuple[str, ...]:
        """Say which of them are not used because coordinates are extrapolated there."""
        out = ~self.seen
        if not out.any():
            return ()
        lie, were = ("lies", "was") if out.sum() == 1 else ("lie", "were")
        return (f"{self.named(out)} {lie} outside what one of the instruments was fitted to, and {were} not used",)


def listed(values: NDArray[Any]) -> str:
    """Join as in a sentence: 0, 1 and 4."""
    *most, last = map(str, values.tolist())
    return f"{', '.join(most)} and {last}" if most else last


def check_fitted(model: Any, name: str) -> None:
    """Refuse what is not a fitted model, by the name of its instrument."""
    if not isinstance(model, LOCA):
        raise TypeError(f"instrument {name!r} is a {type(model).__name__}; expected a fitted LOCA.")
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(f"instrument {name!r} is not fitted. Call fit, or load a fitted model.") from None


def read_anchors(a: LOCA, b: LOCA, anchors: Pairs, weights: ArrayLike | None, names: tuple[str, str]) -> Anchors:
    """Encode anchors by their instruments; refuse what cannot be used, before any work."""
    doubts: list[str] = []
    given: tuple[Array, ...] = ()
    if _are_readings(anchors):
        readings: Any = anchors
        ends = [_encoded(model, data, name) for model, data, name in zip((a, b), readings, names, strict=True)]
        if len(ends[0][0]) != len(ends[1][0]):
            raise ValueError(
                f"anchors have {len(ends[0][0])} readings of {names[0]!r} and {len(ends[1][0])} of {names[1]!r}; "
                "expected one of each per anchor."
            )
        given = tuple(np.asarray(data, dtype=np.float64) for data in readings if np.ndim(data) == 2)
        doubts = [told for end in zip((a, b), readings, names, strict=True) if (told := _other_units(*end))]
    else:
        ends = _by_ids(a, b, anchors, names)
    (A, variance_a, _), (B, variance_b, _) = ends
    if not len(A):
        raise ValueError("anchors are empty. Pass None to match by shape alone.")
    _refuse_twice(A, B)
    seen = [Support(training_embedding(model)).inside(Z) > 0 for model, Z in ((a, A), (b, B))]
    unlike = [
        _unlike(model, end[2], inside, name) for model, end, inside, name in zip((a, b), ends, seen, names, strict=True)
    ]
    return Anchors(
        A,
        B,
        _checked_weights(weights, len(A)),
        variance_a + variance_b,
        seen[0] & seen[1],
        tuple(doubts),
        tuple(filter(None, unlike)),
        readings=given if len(given) == 2 else (),
    )


def _are_readings(anchors: Any) -> bool:
    """Whether these are the readings of each instrument, and not pairs of ids."""
    if not isinstance(anchors, (tuple, list)) or len(anchors) != 2:
        return False
    return all(hasattr(end, "intrinsic_dim") or hasattr(end, "n_features") or np.ndim(end) >= 2 for end in anchors)


def _encoded(model: LOCA, data: Any, name: str) -> tuple[Array, Array, Array]:
    """Return coordinates, their variance by noise, and the trust in each."""
    rows = np.asarray(data) if isinstance(data, (list, tuple)) else data
    try:
        coordinates, trust = transform_unnamed(model, rows)
    except ValueError as error:
        raise type(error)(f"anchors of instrument {name!r}: {error}") from error
    variance = np.full(len(coordinates), reading_variance(model))
    if getattr(rows, "ndim", 3) != 2:  # bursts: the mean of M readings
        variance = np.full(len(coordinates), mean_variance(model))
    return coordinates, variance, trust


def _other_units(model: LOCA, data: Any, name: str) -> str:
    """Name sensors that spread far more, or less, at anchors than in the fit; "" where none is strange."""
    values = np.asarray(data, dtype=np.float64) if np.ndim(data) == 2 else np.empty((0, 0))
    if len(values) < 2:
        return ""
    if model.n_features_in_ > model.n_components_:
        # Anchors of one place spread little, and yet give readings of the kind that the fit has seen.
        trust, n_known = transform_unnamed(model, data)[1], len(model.trust_scale_.scores)
        if np.median(trust) > max(UNTRUSTED, 1.5 / (1 + n_known)):
            return ""
    elif len(values) < model.n_components_ + 2:
        return ""
    known = model.decode(training_embedding(model))
    middle, spread = known.mean(axis=0), known.std(axis=0)
    live = spread > 0
    away = np.sqrt(np.square(values - middle).mean(axis=0))[live] / spread[live]
    own = values.std(axis=0)[live] / spread[live]
    strange = (away > OTHER_UNITS) | (own < 1 / OTHER_UNITS)
    if not strange.any():
        return ""
    if strange.mean() > 0.5:
        return (
            f"readings of {name!r} at the anchors are {np.median(away):.2g} times as far from the mean of its fit as "
            f"those of the fit, and spread {np.median(own):.2g} times as much: are they in other units?"
        )
    which = np.flatnonzero(live)[strange]
    told = [
        f"{feature_label(model, int(j))} ({f:.2g} times as far from its mean in the fit, {n:.2g} times the spread)"
        for j, f, n in zip(which, away[strange], own[strange], strict=True)
    ]
    rest = f" and {len(told) - NAMED} more" if len(told) > NAMED else ""
    return f"at the anchors, some sensors of {name!r} look as if in other units: {', '.join(told[:NAMED])}{rest}"


def _unlike(model: LOCA, trust: Array, inside: NDArray[np.bool_], name: str) -> str:
    """Say that readings at nearly all anchors are unlike all that were held out, though they lie inside; "" if not.

    Trust is calibrated on single readings, with their noise: the mean of a burst is not more strange than these.
    """
    least = max(UNTRUSTED, 1.5 / (1 + len(model.trust_scale_.scores)))
    low, n = int((trust[inside] <= least).sum()), int(inside.sum())
    if low < MOST * n or binom.sf(low - 1, n, least) >= FOREIGN_ANCHORS:
        return ""
    return (
        f"the readings of {low} of {n} anchors by {name!r} are not like those that it was fitted to (median trust "
        f"{np.median(trust[inside]):.2g}), though their places lie inside: has the instrument changed since, or are "
        "columns or tables exchanged? Fit a changed one again with recalibrate"
    )


def _by_ids(a: LOCA, b: LOCA, anchors: Any, names: tuple[str, str]) -> list[tuple[Array, Array, Array]]:
    pairs = np.empty((len(anchors), 2), dtype=object)
    for i, pair in enumerate(anchors):
        if isinstance(pair, str) or np.ndim(pair) != 1 or len(pair) != 2:
            raise ValueError(
                f"anchors[{i}] is {pair!r}; expected a pair of burst ids, or anchors as two arrays of readings, "
                f"(n, {a.n_features_in_}) of {names[0]!r} and (n, {b.n_features_in_}) of {names[1]!r}."
            )
        pairs[i] = list(pair)
    ends = []
    for side, (model, name) in enumerate(zip((a, b), names, strict=True)):
        rows = np.array([_row(model, value, name) for value in pairs[:, side]], dtype=np.int64)
        values, counts = np.unique(rows, return_counts=True)
        if (counts > 1).any():
            twice = model.burst_ids_[values[counts > 1]].tolist()[0]
            raise BurstError(f"burst {twice!r} of instrument {name!r} is an anchor twice. Give each burst once.")
        lost = [label for label in model.burst_ids_[rows].tolist() if label in model.strays_]
        if lost:
            raise BurstError(
                f"burst {lost[0]!r} of instrument {name!r} was left out of its fit ({model.strays_[lost[0]]}); it "
                "cannot be an anchor."
            )
        ends.append((model.embedding_[rows], np.full(len(rows), mean_variance(model)), np.ones(len(rows))))
    return ends


def _row(model: LOCA, value: Any, name: str) -> int:
    """Look up one burst by its id, in the words of `rescale`."""
    # burst_rows looks up pairs of two different bursts; the other of this pair is any of the rest.
    other = next(label for label in model.burst_ids_.tolist() if str(label) != str(value))
    try:
        return int(burst_rows(model.burst_ids_, [(value, other)])[0, 0])
    except ValueError as error:
        raise BurstError(f"anchors of instrument {name!r}: {error}") from error


def _refuse_twice(A: Array, B: Array) -> None:
    """Refuse an anchor that is given twice: it would count twice and look like agreement."""
    both = np.column_stack([A, B])
    _, first, counts = np.unique(both, axis=0, return_index=True, return_counts=True)
    if (counts > 1).any():
        row = int(first[counts > 1].min())
        again = int(np.flatnonzero((both == both[row]).all(axis=1))[1])
        raise BurstError(
            f"the anchors in rows {row} and {again} {COUNTED} are the same pair of readings. Give each anchor once."
        )


def _checked_weights(weights: ArrayLike | None, n: int) -> Array:
    if weights is None:
        return np.ones(n)
    given = as_numbers("weights", weights)
    if given.shape != (n,) or not np.all((given > 0) & np.isfinite(given)):
        raise ValueError(f"weights must be {n} finite numbers > 0, one per anchor; got {brief(given.tolist())}.")
    return given
