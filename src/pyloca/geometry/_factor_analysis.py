"""Noise from what lies off the tangents of bursts: a factor analysis with k factors per burst and noise that all share.

With tangents known, what lies off them is linear in the noise, and its likelihood has one maximum, found by scoring.
Tangents turn from place to place, so that bursts together show the noise of every sensor, also along the tangents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from pyloca.bursts import Bursts
from pyloca.geometry._noise import FLOOR, Noise, Whitener
from pyloca.geometry._planes import Planes, own_tilts
from pyloca.geometry._refusals import refuse_bad_values
from pyloca.geometry._sample import sample_rows
from pyloca.geometry._spectra import largest_of_noise
from pyloca.thresholds import ABOVE_NOISE, CORRELATION_ERRORS, CORRELATION_KNOWN, MAY_BE_CURVATURE, PLANE_LEAK

__all__ = ["MOST_SENSORS", "Sample", "Split", "draw", "split_off"]

Array = NDArray[np.float64]

BURSTS, NUMBERS = 1000, 1 << 21  # bursts that an estimate looks at, and numbers in them
ROUNDS, SETTLED = 100, 1e-4  # of scoring: it ends when no variance changes by more than this part
QUICK = 15  # rounds after which steps are halved: tangents change with the noise, and a full step may go too far
SLOW = 1e-5  # what is hardly seen off the tangents changes slowly, and the error tells that it is not known
HIDDEN_SHARE = 0.98  # beyond this noise share of a tangent, its signal is chance
MOST = 10.0  # factor by which a step changes a variance
FEW_SENSORS = 240  # more of them say enough about each other
MOST_SENSORS = 24  # for which noise that is correlated between sensors is looked for: D (D + 1) / 2 numbers


@dataclass
class Sample:
    """Some bursts as factors (b, r, D) whose rows have the scatter of the centred burst, by length."""

    bursts: Bursts
    chosen: NDArray[np.int64]  # which bursts these are
    rows: list[NDArray[np.int64]]
    factors: list[Array]
    freedoms: list[int]  # M − 1

    def parts(self) -> Iterator[tuple[NDArray[np.int64], Array, int]]:
        """Yield rows, factors and degrees of freedom, one length after the other."""
        return zip(self.rows, self.factors, self.freedoms, strict=True)

    def divided(self, sizes: Array) -> Sample:
        """Divide each burst by the root of its size, (n,)."""
        parts = zip(self.rows, self.factors, strict=True)
        return replace(self, factors=[factor / np.sqrt(sizes[rows])[:, None, None] for rows, factor in parts])


@dataclass
class Split:
    """Noise covariance, and what the sample shows beside it.

    Attributes
    ----------
    noise : (D,) or (D, D) array
    squares, freedom : (n, D) array
        Of white residuals: sums of squares, and degrees of freedom behind them.
    error : float
        Relative error of a tangent's variance that the error of the noise causes, for a typical burst.
    correlation : float
        Largest correlation between white residuals of two sensors.
    tilt : float
        Squared angle by which the tangents of a typical burst are wrong.
    kept : float
        Part of the bursts that count: those whose planes leave little signal off them.
    """

    noise: Array
    squares: Array
    freedom: Array
    error: float
    correlation: float
    tilt: float
    kept: float


def draw(bursts: Bursts) -> Sample:
    """Draw a sample of bursts."""
    size = int(np.clip(NUMBERS // max(int(np.median(bursts.counts)) * bursts.n_features, 1), 20, BURSTS))
    chosen = sample_rows(len(bursts), size)
    sample = bursts[chosen]
    out = Sample(sample, chosen, [], [], [])
    for rows, block in sample.blocks():
        refuse_bad_values(sample, rows, block)
        centred = block - block.mean(axis=1, keepdims=True)
        if centred.shape[1] > centred.shape[2]:
            centred = np.asarray(np.linalg.qr(centred, mode="r"))
        out.rows.append(rows)
        out.factors.append(centred)
        out.freedoms.append(block.shape[1] - 1)
    return out


@dataclass
class _Seen:
    """A sample in white coordinates."""

    leading: Array  # (n, k, D), orthonormal, the last one the shortest
    lengths: Array  # (n, k), standard deviations along them
    weights: Array  # (n, k), of what goes together along a tangent and off it
    tilts: Array  # (n, k, k), squared angles by which they are wrong
    squares: Array  # (n, D), of residuals
    used: Array  # (n,), degrees of freedom off the tangents, per direction
    scatter: Array  # (D, D), of all residuals; 0 if there are many sensors
    cross: Array  # (D, D), of residuals with what lies along the tangents, weighted


def _look(sample: Sample, k: int, whitener: Whitener, planes: Array | None, tilts: Array | None) -> _Seen:
    """Look at a sample in coordinates in which the noise is white, along planes (n, k, D) or the own tangents."""
    n, dim = len(sample.bursts), sample.factors[0].shape[2]
    shapes = ((n, k, dim), (n, k), (n, k), (n, k, k), (n, dim), (n,), (dim, dim), (dim, dim))
    out = _Seen(*(np.zeros(shape) for shape in shapes))
    for rows, factor, freedom in sample.parts():
        turned = whitener.white(factor)
        if planes is None or tilts is None:
            _, singular, directions = np.linalg.svd(turned, full_matrices=False)
            rest, leading, singular = directions[:, k:] * singular[:, k:, None], directions[:, :k], singular[:, :k]
            out.used[rows] = max(freedom - k, 1)
            shares = np.minimum(freedom / np.square(singular), 1)
            out.tilts[rows] = own_tilts(shares, np.array(freedom), dim, k)[:, :, None] * np.eye(k)
        else:
            inside = np.einsum("brd,bkd->brk", turned, planes[rows])
            rest = turned - np.einsum("brk,bkd->brd", inside, planes[rows])
            _, singular, axes = np.linalg.svd(inside, full_matrices=False)
            leading = axes @ planes[rows]
            # Signal is not correlated with what lies off the plane, unless the plane is wrong.
            values = np.square(singular) / freedom
            signal = np.maximum(values - 1, 0)
            wrong = np.einsum("bkl,blm,bkm->bk", axes, tilts[rows], axes, optimize=True)
            leak = (wrong * signal).sum(axis=1) / (dim - k)  # of the signal, off a wrong plane
            part = 1 / (1 + np.square(leak / PLANE_LEAK))
            out.used[rows] = part * freedom
            weights = 1 / (np.maximum(values, 1) + freedom * np.square(signal) * wrong / (dim - k))
            out.tilts[rows] = axes @ tilts[rows] @ axes.transpose(0, 2, 1)
            rest = rest * np.sqrt(part)[:, None, None]
            inside = inside * np.sqrt(part)[:, None, None]
            together = np.einsum("bkl,brl,brd->bkd", axes, inside, rest, optimize=True)
            out.weights[rows] = weights
            if dim <= FEW_SENSORS:
                out.cross += np.einsum("bk,bkd,bke->de", weights, leading, together, optimize=True)
        out.leading[rows], out.lengths[rows] = leading, singular / np.sqrt(freedom)
        out.squares[rows] = np.square(rest).sum(axis=1)
        if dim <= FEW_SENSORS:
            out.scatter += np.einsum("brd,bre->de", rest, rest)
    return out


def split_off(sample: Sample, k: int, floor: Array, planes: Planes | None = None, *, full: bool) -> Split:
    """Estimate noise shared by all bursts, each with tangents of its own, or along planes that are known.

    Parameters
    ----------
    sample : Sample
    k : int
        Tangents per burst.
    floor : (D,) array
        Least variances.
    planes : Planes, optional
        Of the sample.
    full : bool
        Whether noise may be correlated between sensors.

    Returns
    -------
    Split
    """
    dim = len(floor)
    noise, tilts = floor / FLOOR, None
    if full:
        noise = np.diag(noise)
    for step_number in range(ROUNDS):
        whitener = Noise(noise[None]).whitener(np.empty((1, dim)), np.zeros(dim))
        rows = None
        if planes is not None:
            rows, tilts = planes.seen(whitener)
        seen = _look(sample, k, whitener, rows, tilts)
        step = _score(seen, 1.0 if step_number < QUICK else 0.5, full=full)
        if full:  # no direction below the floor: bursts may not fill all of them
            lower, unit = whitener.factor[0], np.sqrt(np.outer(floor, floor))
            values, vectors = np.linalg.eigh(lower @ step @ lower.T / unit)
            noise = (vectors * np.maximum(values, 1)) @ vectors.T * unit
            inner = solve_triangular(lower, solve_triangular(lower, noise, lower=True).T, lower=True)
            change = np.abs(inner - np.eye(dim)).max()
        else:
            before, noise = noise, np.maximum(noise * step, floor)
            change = np.abs(noise / before - 1).max()
        if change < SETTLED:
            break
    variances = np.diag(noise) if full else noise
    silent = variances < MAY_BE_CURVATURE * floor / FLOOR
    along = np.square(seen.leading).sum(axis=1)  # (n, D), how far each sensor lies along the tangents
    wrong = np.diagonal(seen.tilts, axis1=1, axis2=2)
    return Split(
        np.where(np.logical_or.outer(silent, silent) if full else silent, 0.0, noise),
        seen.squares,
        seen.used[:, None] * (1 - along),
        _error(seen, full=full, noisy=~silent, own=planes is None),
        0.0 if full else _correlation(seen, ~silent),
        float(np.median(wrong.sum(axis=1))),
        float(seen.used.mean() / sum(len(rows) * f for rows, _, f in sample.parts()) * len(wrong)),
    )


def _correlation(seen: _Seen, noisy: NDArray[np.bool_]) -> float:
    """Estimate the largest correlation between two noisy sensors, 0 where it may be chance."""
    dim = len(noisy)
    if dim > MOST_SENSORS or not noisy.any():
        return 0.0
    a, b, pair = _pairs(dim)
    information = _information(seen, full=True, surely=True)
    values, vectors = np.linalg.eigh(information)
    known = values > CORRELATION_KNOWN * seen.used.sum()  # in other directions, nothing can be said
    inverse = (vectors[:, known] / values[known]) @ vectors[:, known].T
    found = inverse @ (_missing(seen)[a, b] * pair) / pair
    errors = np.sqrt(2 * np.diag(inverse)) / pair
    counts = (a != b) & noisy[a] & noisy[b] & (np.abs(found) > CORRELATION_ERRORS * errors)
    return float(np.abs(found[counts]).max(initial=0.0))


def _missing(seen: _Seen) -> Array:
    """Compute what is seen beyond white noise, (D, D)."""
    dim, total = seen.squares.shape[1], seen.used.sum()
    left = np.eye(dim) * total - np.einsum("n,nkd,nke->de", seen.used, seen.leading, seen.leading)
    return np.asarray(seen.scatter - left + seen.cross + seen.cross.T)


def _information(seen: _Seen, *, full: bool, surely: bool = False) -> Array:
    """Compute how what is seen depends on the noise S: over diagonal or symmetric S, in an orthonormal basis.

    Off the tangents Σ P⊥ S P⊥, and P S P⊥ with weights: all of V S V, V = P⊥ + A, but for A S A along the tangents.
    Tangents also turn because they are wrong, which says nothing about the noise: (A + B) S (A + B) instead of A S A is
    without what errors B of the tangents seem to say, and `surely` without twice as much.
    """
    off = np.eye(seen.leading.shape[2]) - np.einsum("bkd,bke->bde", seen.leading, seen.leading)
    along = np.einsum("bk,bkd,bke->bde", seen.weights, seen.leading, seen.leading, optimize=True)
    out = _both_sides(off + along, seen.used, full=full)
    if surely:
        along = along + 2 * np.einsum("bkl,bkd,ble->bde", seen.tilts, seen.leading, seen.leading, optimize=True)
    return out - _both_sides(along, seen.used, full=full)


def _both_sides(matrices: Array, used: Array, *, full: bool) -> Array:
    """Compute how the weighted sum of V S V, V symmetric (n, D, D), depends on S."""
    if not full:
        return np.asarray(np.einsum("n,nde->de", used, np.square(matrices)))
    n, dim = matrices.shape[:2]
    flat = matrices.reshape(n, -1)
    both = ((used[:, None] * flat).T @ flat).reshape(dim, dim, dim, dim)  # [i, j, l, m]: V_ij V_lm
    a, b, pair = _pairs(dim)
    one, other = both[a[:, None], a, b[:, None], b], both[a[:, None], b, b[:, None], a]
    return np.asarray((one + other) / 2 * np.outer(pair, pair))


def _score(seen: _Seen, power: float, *, full: bool) -> Array:
    """Take a step of Fisher's scoring, or the root of one; return the noise in white coordinates, (D,) or (D, D)."""
    dim, total = seen.squares.shape[1], seen.used.sum()
    if not full and dim > FEW_SENSORS:
        left = total - np.einsum("n,nkd->d", seen.used, np.square(seen.leading))
        return np.asarray(seen.squares.sum(axis=0) / np.maximum(left, SLOW * total))
    missing = _missing(seen)
    information = _information(seen, full=full)
    information += SLOW * total * np.eye(len(information))
    if not full:
        return np.asarray(np.clip(1 + np.linalg.solve(information, np.diag(missing)), 1 / MOST, MOST) ** power)
    a, b, pair = _pairs(dim)
    step = np.zeros((dim, dim))
    step[a, b] = np.linalg.solve(information, missing[a, b] * pair) / pair
    values, vectors = np.linalg.eigh(step + step.T - np.diag(np.diag(step)))
    return np.asarray((vectors * np.clip(1 + values, 1 / MOST, MOST) ** power) @ vectors.T)


def _pairs(dim: int) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Return the indices of symmetric matrices, and the lengths of the basis that they stand for."""
    a, b = np.triu_indices(dim)
    return a, b, np.where(a == b, 1.0, np.sqrt(2.0))


def _error(seen: _Seen, *, full: bool, noisy: NDArray[np.bool_], own: bool) -> float:
    """Compute the relative error of a tangent's variance that the error of the noise causes, for a typical burst."""
    k, dim = seen.leading.shape[1:]
    if not noisy.any() or dim > FEW_SENSORS:
        return 0.0
    size, total = np.square(seen.lengths[:, -1]), seen.used.sum()
    if own and np.median(size) < ABOVE_NOISE * largest_of_noise(dim - k + 1, int(np.median(seen.used)) + k):
        return np.inf  # the signal was taken for noise, so that tangents are those of noise alone
    last = seen.leading[:, -1]
    a, b, pair = _pairs(dim)
    along = last[:, a] * last[:, b] * pair if full else np.square(last)
    values, vectors = np.linalg.eigh(_information(seen, full=full, surely=True))
    spread = np.square(along @ vectors) / np.maximum(values, 1e-12 * total)
    errors = np.sqrt(2 * spread.sum(axis=1))
    share = np.minimum(np.square(last * noisy).sum(axis=1) / size, HIDDEN_SHARE)
    return float(np.median(errors * share / (1 - share)))
