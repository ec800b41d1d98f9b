"""The scale of a finished embedding from a few known distances."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from scipy.stats import t as student
from torch import nn

from pyloca._arguments import as_numbers, brief
from pyloca.errors import BurstError
from pyloca.estimator._reading import divisors, inner
from pyloca.findings import Diagnostics, Finding, Rescaling
from pyloca.networks import Standardized
from pyloca.thresholds import DISAGREE

__all__ = ["burst_rows", "rescaled"]

Array = NDArray[np.float64]

ROBUST = 4  # with fewer distances, nothing tells the wrong one from the right ones
HUBER = 1.345  # residuals beyond this many standard deviations count less: 95 % efficient on Gaussian ones
TWO_SIDED = 0.975, 1.959964  # of Student's law and of the normal law


def rescaled(model: Any, pairs: ArrayLike, distances: ArrayLike) -> dict[str, Any]:
    """Return the fitted attributes of `model` that a new scale changes, by name, with their new values."""
    rows = burst_rows(model.burst_ids_, pairs)
    known = _lengths(distances, len(rows))
    embedded = np.linalg.norm(model.embedding_[rows[:, 0]] - model.embedding_[rows[:, 1]], axis=1)
    bad = np.flatnonzero(~(embedded > 0))  # nan, where a burst has no coordinates, is not
    if len(bad):
        raise BurstError(f"{_named(model, rows[bad[0]])} have no distance in the embedding. Remove this pair.")
    logs, expected = np.log(known / embedded), _expected_errors(model, embedded)
    middle, error = _location(logs, expected)
    factor = float(np.exp(middle))
    ids = model.burst_ids_.tolist()
    rescaling = Rescaling(
        factor,
        factor * error,
        tuple((ids[i], ids[j]) for i, j in rows.tolist()),
        tuple(known.tolist()),
        tuple(np.exp(logs).tolist()),
    )
    findings = [_disagreement(model, rows, logs, expected), _other_sigma(model, rescaling)]
    trust_scale = replace(model.trust_scale_, gap=factor * model.trust_scale_.gap)
    return {
        "encoder_": _stretched(model, "encoder", out=factor),
        "decoder_": _stretched(model, "decoder", into=factor),
        "embedding_": factor * model.embedding_,
        "burst_std_": factor * model.burst_std_,
        "burst_std_known_": True,
        "diagnostics_": _diagnostics(model.diagnostics_, factor, [f for f in findings if f is not None]),
        "trust_scale_": trust_scale,
        "rescaling_": rescaling,
    }


# -- which bursts, and how far ----------------------------------------------------------------------------------------


def burst_rows(ids: NDArray[Any], pairs: ArrayLike) -> NDArray[np.int64]:
    """Look up pairs of bursts.

    Parameters
    ----------
    ids : (N,) array
        Ids of the bursts.
    pairs : (n, 2) array
        Two ids per row. Where ids are text, integers are rows already.

    Returns
    -------
    (n, 2) array of int

    Raises
    ------
    BurstError
        If there is no such burst.
    ValueError
        If the shape is wrong, or a pair names one burst twice.

    Examples
    --------
    >>> burst_rows(np.array(["a", "b", "c"]), [("c", "a"), ("b", "c")]).tolist()
    [[2, 0], [1, 2]]
    """
    given = np.asarray(pairs, dtype=object)
    if given.ndim != 2 or given.shape[1] != 2 or not len(given):
        raise ValueError(f"pairs has shape {given.shape}; expected (n, 2), two bursts per distance.")
    numbers = all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in given.flat)
    if numbers and ids.dtype.kind != "i":
        ids = np.arange(len(ids))
    known = {value: row for row, value in enumerate(ids.tolist())}
    rows = [known.get(value if numbers else _label(value, ids)) for value in given.flat]
    if None in rows:
        raise BurstError(_unknown(given.flat[rows.index(None)], ids))
    out = np.array(rows, dtype=np.int64).reshape(-1, 2)
    same = np.flatnonzero(out[:, 0] == out[:, 1])
    if len(same):
        raise ValueError(f"a pair names one burst twice, {given[same[0], 0]!r}; expected two bursts.")
    return out


def _label(value: Any, ids: NDArray[Any]) -> Any:
    """Convert a name to the kind of `ids`: the text of an integer names the burst with this number, as in a table."""
    if ids.dtype.kind == "i" and isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return value
    return value if isinstance(value, (int, np.integer)) and ids.dtype.kind == "i" else str(value)


def _unknown(value: Any, ids: NDArray[Any]) -> str:
    names = [str(label) for label in ids.tolist()]
    close = difflib.get_close_matches(str(value), names, n=1, cutoff=0)
    return f"there is no burst {value!r}; did you mean {close[0]!r}? There are {len(names)} bursts."


def _lengths(distances: ArrayLike, n: int) -> Array:
    known = as_numbers("distances", distances)
    if known.shape != (n,):
        raise ValueError(f"distances has shape {known.shape} for {n} pairs; expected ({n},), one per pair.")
    if not np.all((known > 0) & (known < np.inf)):
        raise ValueError(f"distances must be finite numbers > 0; got {brief(known.tolist())}.")
    return known


def _named(model: Any, pair: NDArray[np.int64]) -> str:
    one, other = model.burst_ids_[pair].tolist()
    return f"bursts {one!r} and {other!r}"


# -- the factor and its error -----------------------------------------------------------------------------------------


def _expected_errors(model: Any, lengths: Array) -> Array:
    """Relative errors of embedded lengths (n,), from what the fit says of itself.

    A burst tells the local stretch to √(loss / 2k), by sampling; on the way from one burst to another lie L / h of
    them, h apart, and 2k abreast on a flat sheet; a surface that may bend is held by those in line alone. What the loss
    has beyond sampling is a misfit, which does not average out. And the mean of M points lies σ / √M beside the place
    of a burst. How often two standard errors hold the truth: ``python -m benchmarks dirty``, "five known distances".
    """
    found, k = model.diagnostics_, model.intrinsic_dim_
    places = model.embedding_[np.isfinite(model.embedding_).all(axis=1)]
    near = min(2 * k, len(places) - 1)  # neighbours one spacing away on a grid
    spacing = float(np.median(cKDTree(places).query(places, near + 1)[0][:, -1]))
    local = max(found.median_loss, np.finfo(float).eps) / (2 * k) / (2 * k if model.n_components_ == k else 1)
    misfit = max(found.median_loss - found.sampling_floor, 0) / (2 * k)
    beside = 2 * model.burst_std_**2 * found.sampling_floor / found.tails / (k * (k + 1) / 2)  # two ends, 1/M each
    return np.sqrt(local * np.minimum(1, spacing / lengths) + misfit + beside / np.square(lengths))


def _location(logs: Array, expected: Array) -> tuple[float, float]:
    """Location of log-ratios (n,) and its standard error.

    A mean weighted by 1 / `expected`²; Huber's from four on, so that one wrong distance does not move it. The spread is
    that of the residuals, beside which the expected error counts as one more, and which alone it is for one distance.
    """
    n, precision = len(logs), 1 / np.square(expected)
    weights = np.ones(n)
    middle = float(np.average(logs, weights=precision))
    if n >= ROBUST:
        middle = _weighted_median(logs, precision)
        for _ in range(50):  # converges in a few
            residuals = (logs - middle) / expected
            scale = max(1.4826 * float(np.median(np.abs(residuals))), np.finfo(float).eps)
            weights = HUBER * scale / np.maximum(np.abs(residuals), HUBER * scale)
            middle = float(np.average(logs, weights=weights * precision))
    residuals = np.sqrt(weights) * (logs - middle) / expected
    spread = np.sqrt((1 + np.square(residuals).sum()) / n)
    # Few residuals: widened such that two standard errors hold as much of Student's law as of the normal one.
    widened = 1.0 if n == 1 else float(student.ppf(TWO_SIDED[0], n)) / TWO_SIDED[1]
    return middle, widened * float(spread / np.sqrt((weights * precision).sum()))


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(cumulated, cumulated[-1] / 2)])


# -- what does not agree ----------------------------------------------------------------------------------------------


def _disagreement(model: Any, rows: NDArray[np.int64], logs: Array, expected: Array) -> Finding | None:
    """Check for a distance that differs from the others by more than the embedding's error explains."""
    n = len(logs)
    if n < 2:
        return None
    off = np.empty(n)  # log-ratio of each against that of all others, and in standard deviations
    errors = np.empty(n)
    for i in range(n):
        others = np.arange(n) != i
        middle, _ = _location(logs[others], expected[others])
        off[i] = logs[i] - middle
        errors[i] = np.sqrt(expected[i] ** 2 + 1 / (1 / np.square(expected[others])).sum())
    worst = int(np.argmax(np.abs(off) / errors))
    if np.abs(off[worst]) <= DISAGREE * errors[worst]:
        return None
    by = f"{abs(np.expm1(off[worst])):.0%} {'longer' if off[worst] > 0 else 'shorter'}"
    which = "the others say" if n > 2 else "the other distance says"
    return Finding(
        "distances",
        f"the known distances disagree: that of {_named(model, rows[worst])} is {by} than {which}, "
        f"where the error of the embedding explains {errors[worst]:.0%}. Check "
        f"{'this distance' if n > 2 else 'both'}; if it is right, bursts are not isotropic, or the embedding is not an "
        "isometry between these places.",
        tuple(int(i) for i in rows[worst]),
    )


def _other_sigma(model: Any, found: Rescaling) -> Finding | None:
    """Check whether σ, if it was known, and the distances imply different scales."""
    if not model.burst_std_known_:
        return None
    size = float(np.linalg.norm(np.nanmax(model.embedding_, axis=0) - np.nanmin(model.embedding_, axis=0)))
    error = np.hypot(found.relative_error, _expected_errors(model, np.array([size]))[0])
    if abs(np.log(found.factor)) <= DISAGREE * error:
        return None
    return Finding(
        "distances",
        f"the known distances imply σ = {found.factor * model.burst_std_:.4g}, but σ = {model.burst_std_:.4g} was "
        f"known before: they differ by a factor of {found.factor:.3g}, where errors explain {error:.0%}. The embedding "
        "now follows the distances. Check burst_std and the unit of the distances.",
    )


# -- what a factor changes --------------------------------------------------------------------------------------------


def _diagnostics(found: Diagnostics, factor: float, findings: list[Finding]) -> Diagnostics:
    gap = found.gap
    if gap is not None:
        centre = tuple(factor * x for x in gap.centre)
        gap = replace(gap, centre=centre, radius=factor * gap.radius, spacing=factor * gap.spacing)
    kept = tuple(finding for finding in found.findings if finding.name != "distances")  # of an earlier rescaling
    return replace(found, gap=gap, findings=(*kept, *findings))


def _stretched(model: Any, name: str, **ends: float) -> nn.Module:
    """Return the encoder or decoder of `model` with another unit of its coordinates."""
    module = inner(model, name)
    if not isinstance(module, Standardized):
        module = Standardized(module, 0.0, 1.0, 0.0, 1.0)
    outer = getattr(model, f"{name}_")
    return module.stretched(**ends) if divisors(model) is None else outer.around(module.stretched(**ends))
