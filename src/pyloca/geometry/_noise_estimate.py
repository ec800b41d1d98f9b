"""Measurement noise from bursts: from what lies off their tangents, or from static bursts.

Off the tangents a burst is noise (and a little curvature). Tangents turn from place to place, so bursts together show
the noise of every sensor, also along the tangents: a factor analysis in which each burst has k factors of its own and
all share the noise. EM solves it: in white coordinates, noise along a burst's tangents is replaced by what the others
say it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree

from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry._means import burst_means
from pyloca.geometry._noise import FLOOR, Noise, as_noise
from pyloca.geometry._refusals import check_k, refuse_bad_values, refuse_short
from pyloca.geometry._sample import sample_rows
from pyloca.geometry._spectra import BurstSpectra, intrinsic_dim_from_spectra
from pyloca.thresholds import (
    ABOVE_NOISE,
    CORRELATED,
    CURVED_GROWTH,
    MAY_BE_CURVATURE,
    NOISE_ERROR,
    NOISE_FREEDOM,
    POINTS,
    PROBE,
    UNEVEN_ERRORS,
)

if TYPE_CHECKING:
    from pyloca.geometry._statistics import BurstStatistics

__all__ = ["given_noise", "inside_variance", "noise_and_k"]

Array = NDArray[np.float64]

BURSTS, NUMBERS = 300, 1 << 21  # bursts that an estimate looks at, and numbers in them
ROUNDS, SETTLED = 300, 1e-4  # of EM: it ends when no variance changes by more than this part
MOST_SENSORS = 24  # for which noise that is correlated between sensors is looked for: D (D + 1) / 2 numbers
SIMULATED = 20_000  # numbers in a burst of noise up to which its eigenvalues are simulated
FOLLOWED = 3  # times that the noise is estimated, each time with its change from place to place taken out


def noise_and_k(
    bursts: Bursts,
    measurement_noise: Any,
    static: Bursts | ArrayLike | None,
    intrinsic_dim: int | None,
    max_dim: int | None,
) -> tuple[Noise | None, int]:
    """Find the noise in bursts, None if none is asked for, and k."""
    if intrinsic_dim is not None:
        check_k(intrinsic_dim, bursts.n_used)
    noise: Noise | None
    if static is not None:
        noise = _from_static(Bursts(static), bursts)
    elif isinstance(measurement_noise, str) and measurement_noise == "estimate":
        return _estimate(bursts, intrinsic_dim, max_dim)
    else:
        noise = given_noise(bursts, measurement_noise)
    try:
        return noise, _choose_k(bursts, intrinsic_dim, max_dim, noise)
    except BurstError as error:
        words = _words(bursts, max_dim) if noise is None else ""
        if words:
            raise BurstError(words) from error
        raise


def _words(bursts: Bursts, max_dim: int | None) -> str:
    """Say that noise hides k, if there is noise that does; else ""."""
    try:
        noise, k = _estimate(bursts, None, max_dim)
    except BurstError:
        return ""
    level = noise.levels.mean(axis=0)
    deviations = np.sqrt(level if level.ndim == 1 else np.diag(level))
    loudest = [j for j in np.argsort(-deviations)[:5].tolist() if deviations[j] > 0]
    loud = ", ".join(f"{bursts.feature_label(j)}: {deviations[j]:.2g}" for j in loudest)
    return (
        f"the bursts contain measurement noise (standard deviations {loud}) beside k = {k} tangents, and their "
        "spectrum does not tell one from the other. Pass measurement_noise='estimate', the noise as an array, or "
        "static=…, bursts taken while nothing was perturbed."
    )


def given_noise(data: Bursts | BurstStatistics, measurement_noise: Any) -> Any:
    """Put noise that was given into one form, tied to its bursts; leave None and "estimate" alone.

    Parameters
    ----------
    data : Bursts or BurstStatistics
    measurement_noise : None, "estimate", Noise, float or array
        As `pyloca.LOCA` takes it.

    Returns
    -------
    None, "estimate" or Noise

    Raises
    ------
    ValueError
        If an array has another shape than the data ask for.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> given_noise(bursts, 0.5).levels
    array([[0.25, 0.25]])
    """
    asked = isinstance(measurement_noise, str) and measurement_noise == "estimate"
    if measurement_noise is None or asked or isinstance(measurement_noise, Noise):
        return measurement_noise
    noise = as_noise(measurement_noise, len(data), data.n_features, data.feature_names)
    if len(noise.levels) == 1:
        return noise
    return noise.placed(burst_means(data) if isinstance(data, Bursts) else data.means)


def inside_variance(bursts: Bursts) -> Array:
    """Compute the mean variance inside a burst of each feature, (D,), over a sample."""
    sample = bursts[sample_rows(len(bursts), PROBE)]
    total = np.zeros(bursts.n_features)
    for rows, block in sample.blocks():
        refuse_bad_values(sample, rows, block)
        total += block[:, :POINTS].var(axis=1).sum(axis=0)
    # above 0, so that a feature that is left out can be divided by its own
    least = max(np.finfo(float).eps ** 2 * float(total.max()), np.finfo(float).tiny)
    return np.maximum(total, least) / len(sample)


def _choose_k(bursts: Bursts, intrinsic_dim: int | None, max_dim: int | None, noise: Noise | None) -> int:
    counts, dim = bursts.counts, bursts.n_used
    if intrinsic_dim is not None:
        return check_k(intrinsic_dim, dim)
    if counts.min() < 2:
        refuse_short(bursts, 1)
    step = max(1, len(bursts) // PROBE)
    probe = bursts[np.arange(0, len(bursts), step)]
    spectra = BurstSpectra.empty(probe.counts, dim, bursts.n_features)
    floor = None if noise is None else FLOOR * inside_variance(bursts)
    for rows, block in probe.blocks():
        refuse_bad_values(probe, rows, block)
        if noise is not None and floor is not None:
            means = block.mean(axis=1)
            block = noise.whitener(means, floor).white(block - means[:, None])
        spectra.add(rows, block)
    return intrinsic_dim_from_spectra(spectra, dim, max_dim) if noise is None else _k_above_noise(spectra, max_dim)


def _k_above_noise(spectra: BurstSpectra, max_dim: int | None) -> int:
    """Count the directions that stand out of noise of variance 1 and are not curvature."""
    dim, level = spectra.n_features, np.median(spectra.values, axis=0)
    before = np.arange(len(level))
    edge = np.array([_largest_of_noise(dim - int(b), int(np.median(spectra.counts)) - 1) for b in before])
    hidden = level < ABOVE_NOISE * edge
    hidden[1:] |= spectra.growth.mean(axis=0)[1:] > 1 + CURVED_GROWTH / before[1:]
    k = int(np.argmax(hidden)) if hidden.any() else len(level)
    if k == 0:
        raise BurstError(
            f"measurement noise hides the bursts: their largest eigenvalue is {level[0]:.3g} times the noise (median), "
            f"and noise alone has {edge[0]:.3g}. Take larger bursts, or average several readings; if the noise was "
            "given, check its unit."
        )
    if max_dim is not None and k > max_dim:
        raise BurstError(
            f"the bursts span k = {k} directions that stand out of the noise, more than n_components = {max_dim} can "
            f"hold (eigenvalues in units of the noise, median {level[: k + 1]}). Use n_components={k}; if the noise is "
            "larger than was given, pass measurement_noise='estimate' or static bursts."
        )
    return k


@cache
def _largest_of_noise(dim: int, freedom: int) -> float:
    """Compute the median of the largest eigenvalue of pure noise of variance 1."""
    if dim * freedom > SIMULATED:  # Marchenko and Pastur
        return float(np.square(1 + np.sqrt(dim / freedom)))
    draws = np.random.RandomState(0).standard_normal((200, freedom, dim))
    return float(np.median(np.square(np.linalg.svd(draws, compute_uv=False)[:, 0]))) / freedom


# -- bursts taken while nothing was perturbed ---------------------------------------------------------------------


def _from_static(static: Bursts, bursts: Bursts) -> Noise:
    """Pool static bursts; where their noise differs from place to place, per sensor, follow it."""
    if static.n_features != bursts.n_features:
        raise BurstError(f"the static bursts have {static.n_features} features; the bursts have {bursts.n_features}.")
    for name, other in zip(static.feature_names or (), bursts.feature_names or (), strict=False):
        if name != other:
            raise BurstError(f"the static bursts have {name!r} where the bursts have {other!r}; put columns in order.")
    dim, freedom = static.n_features, float((static.counts - 1).sum())
    if freedom < 10:
        raise BurstError(
            f"the static bursts have {freedom:.0f} degrees of freedom (points less bursts); at least 10 are needed to "
            "measure the noise."
        )
    means, variances = np.empty((len(static), dim)), np.empty((len(static), dim))
    scatter = np.zeros((dim, dim)) if freedom >= 5 * dim else None
    for rows, block in static.blocks():
        refuse_bad_values(static, rows, block)
        means[rows] = block.mean(axis=1)
        centred = block - means[rows, None]
        variances[rows] = np.square(centred).sum(axis=1)
        if scatter is not None:
            scatter += np.einsum("bmd,bme->de", centred, centred)
    level = variances.sum(axis=0) / freedom
    noisy = level > FLOOR * FLOOR * inside_variance(bursts)  # the others have rounding errors only
    base = np.where(noisy, level, 0) if scatter is None else np.where(np.outer(noisy, noisy), scatter / freedom, 0)
    if not noisy.any():
        return Noise(base[None])
    behind = np.tile((static.counts - 1)[:, None], (1, dim)) * noisy.astype(np.float64)
    ratios = np.where(noisy, variances / np.where(noisy, level, 1), 0)
    size = _growth(means, ratios.sum(axis=1, keepdims=True), behind.sum(axis=1, keepdims=True))
    ratios = ratios if size is None else ratios / size
    return _placed(base, means, np.ones((1, 1)) if size is None else size, _growth(means, ratios, behind))


# -- what lies off the tangents -----------------------------------------------------------------------------------


@dataclass
class _Sample:
    """Some bursts as factors (b, r, D) whose rows have the scatter of the centred burst, by length."""

    bursts: Bursts
    rows: list[NDArray[np.int64]]
    factors: list[Array]
    freedoms: list[int]  # M − 1


@dataclass
class _Split:
    """Noise covariance, and what the sample shows beside it: off-tangent squares and their degrees of freedom."""

    noise: Array  # (D,) or (D, D)
    squares: Array  # (n, D) of white residuals
    freedom: Array  # (n, D) behind them
    error: float  # relative error of a tangent's variance
    correlation: float


def _draw(bursts: Bursts) -> _Sample:
    size = int(np.clip(NUMBERS // max(int(np.median(bursts.counts)) * bursts.n_features, 1), 20, BURSTS))
    sample = bursts[sample_rows(len(bursts), size)]
    out = _Sample(sample, [], [], [])
    for rows, block in sample.blocks():
        refuse_bad_values(sample, rows, block)
        centred = block - block.mean(axis=1, keepdims=True)
        if centred.shape[1] > centred.shape[2]:
            centred = np.asarray(np.linalg.qr(centred, mode="r"))
        out.rows.append(rows)
        out.factors.append(centred)
        out.freedoms.append(block.shape[1] - 1)
    return out


def _estimate(bursts: Bursts, intrinsic_dim: int | None, max_dim: int | None) -> tuple[Noise, int]:
    dim, points = bursts.n_used, int(np.median(bursts.counts))
    most = min(dim - 1, points - 3, max_dim or dim)
    given = intrinsic_dim is not None
    # The largest k first: with a smaller one, a tangent that hardly turns would pass for noise.
    wanted = list(range(min(most, 8), 0, -1)) if intrinsic_dim is None else [intrinsic_dim]
    if most < 1 or (intrinsic_dim is not None and intrinsic_dim > min(dim - 1, points - 3)):
        raise BurstError(
            f"measurement_noise cannot be estimated: bursts of {points} points in D = {dim} directions"
            + (f" with k = {intrinsic_dim} tangents" if given else "")
            + " leave nothing off the tangents. Pass the noise, or static bursts taken while nothing was perturbed."
        )
    sample = _draw(bursts)
    floor = FLOOR * inside_variance(bursts)
    why = "what lies off the tangents is not noise that sensors have of their own"
    for full in (False, True):
        if full and dim > MOST_SENSORS:
            break
        for k in wanted:
            split, noise = _follow(sample, k, floor, full=full)
            if split.error > NOISE_ERROR:
                amount = f"{split.error:.0%}" if split.error < 1 else "100% or more"
                why = (
                    "the tangents hardly turn from burst to burst, so noise along them cannot be told from signal (an "
                    f"error of it could change their variance by {amount})"
                )
                continue
            if not full and split.correlation > CORRELATED and dim <= MOST_SENSORS:
                continue  # noise that is correlated between sensors
            found = _directions_above(bursts, None if given else max_dim, noise)
            if found == k or (given and found > 0):
                return noise, int(k)
            if given:
                why = (
                    "it would take all of a burst, as it does where every sensor sees one latent variable alone, whose "
                    "signal cannot be told from noise"
                )
    raise BurstError(
        f"measurement_noise cannot be estimated: {why}. Pass it as an array, or take static bursts while nothing is "
        f"perturbed and pass static=…{'' if given else '; if k is known, pass intrinsic_dim'}."
    )


def _directions_above(bursts: Bursts, max_dim: int | None, noise: Noise) -> int:
    """Count the directions that stand out of the noise; 0 if none do, or more than `max_dim`."""
    try:
        return _choose_k(bursts, None, max_dim, noise)
    except BurstError:
        return 0


def _factor(sample: _Sample, k: int, floor: Array, *, full: bool) -> _Split:
    """Estimate noise shared by all bursts, each with k tangents of its own, by EM."""
    n, dim = len(sample.bursts), len(floor)
    covariance = np.diag(floor / FLOOR)
    weight = sum(len(rows) * (freedom - k) for rows, freedom in zip(sample.rows, sample.freedoms, strict=True))
    squares, left = np.zeros((n, dim)), np.zeros((n, dim))
    for _ in range(ROUNDS):
        lower = np.linalg.cholesky(covariance) if full else np.diag(np.sqrt(np.diag(covariance)))
        back = np.linalg.inv(lower)
        white = np.zeros((dim, dim))
        tangents: list[tuple[Array, Array]] = []
        for rows, factor, freedom in zip(sample.rows, sample.factors, sample.freedoms, strict=True):
            turned = factor @ back.T
            _, singular, directions = np.linalg.svd(turned, full_matrices=False)
            rest, leading = directions[:, k:] * singular[:, k:, None], directions[:, :k]
            used = max(freedom - k, 1)
            squares[rows] = np.square(rest).sum(axis=1)
            left[rows] = used * (1 - np.square(leading).sum(axis=1))
            white += np.einsum("brd,bre->de", rest, rest) + used * np.einsum("bkd,bke->de", leading, leading)
            tangents.append((leading, singular[:, :k] / np.sqrt(freedom)))
        white /= weight
        step = white if full else np.diag(np.diag(white))
        if not full:  # the same fixed point, reached sooner
            ratio = squares.sum(axis=0) / np.maximum(left.sum(axis=0), 1e-3 * weight)
            step = np.diag(ratio)
        after = lower @ step @ lower.T
        if full:  # no direction below the floor: bursts may not fill all of them
            values, vectors = np.linalg.eigh(after / np.sqrt(np.outer(floor, floor)))
            after = (vectors * np.maximum(values, 1)) @ vectors.T * np.sqrt(np.outer(floor, floor))
        else:
            after += np.diag(np.maximum(floor - np.diag(after), 0))
        change = np.abs(np.diag(after) / np.diag(covariance) - 1).max()
        covariance = (after + after.T) / 2
        if change < SETTLED:
            break
    noise = covariance if full else np.diag(covariance)
    silent = np.diag(covariance) < MAY_BE_CURVATURE * floor / FLOOR
    noise = np.where(np.logical_or.outer(silent, silent) if full else silent, 0.0, noise)
    error = _error(tangents, weight / max(n, 1), n, full=full, noisy=~silent)
    noisy = white[~silent][:, ~silent]
    size = np.sqrt(np.diag(noisy))
    off = noisy / np.outer(size, size) - np.eye(len(noisy))
    return _Split(noise, squares, left, error, float(np.abs(off).max(initial=0.0)))


def _error(
    tangents: list[tuple[Array, Array]], freedom: float, n: int, *, full: bool, noisy: NDArray[np.bool_]
) -> float:
    """Compute the relative error of a tangent's variance that the error of the noise causes, for a typical burst."""
    leading = np.concatenate([rows for rows, _ in tangents])
    lengths = np.concatenate([lengths for _, lengths in tangents])
    dim = leading.shape[2]
    if not noisy.any() or dim > 10 * MOST_SENSORS:  # so many sensors say enough about each other
        return 0.0
    off = np.eye(dim) - np.einsum("bkd,bke->bde", leading, leading)
    last = leading[:, -1]
    if full:
        a, b = np.triu_indices(dim)
        pair = np.where(a == b, 1.0, np.sqrt(2.0))
        # how P⊥ S P⊥ depends on S, over symmetric matrices in an orthonormal basis
        rows = (off[:, a][:, :, a] * off[:, b][:, :, b] + off[:, a][:, :, b] * off[:, b][:, :, a]) / 2
        information = np.einsum("nij,i,j->ij", rows, pair, pair) / len(rows)
        along = last[:, a] * last[:, b] * pair
    else:
        information = np.square(off).mean(axis=0)
        along = np.square(last)
    values, vectors = np.linalg.eigh(information)
    # Tangents also turn because they are estimated, which says nothing about the noise.
    k, size, points = leading.shape[1], np.square(lengths[:, -1]), freedom + leading.shape[1]
    if np.median(size) < ABOVE_NOISE * _largest_of_noise(dim - k + 1, int(points)):
        return np.inf  # the signal was taken for noise, so that tangents are those of noise alone
    tilt = np.minimum((dim - k) * size / (points * np.square(np.maximum(size - 1, 1e-3))), 1)
    chance = float(np.square(np.median(tilt))) * (1 + 2 / (dim - k))
    values = np.where(values > 2 * chance, values - chance, 0)
    spread = np.square(along @ vectors) / np.maximum(values, 1e-12)
    errors = np.sqrt(2 * spread.sum(axis=1) / (freedom * n))
    share = np.minimum(np.square(last * noisy).sum(axis=1) / np.square(lengths[:, -1]), 0.9)
    return float(np.median(errors * share / (1 - share)))


def _follow(sample: _Sample, k: int, floor: Array, *, full: bool) -> tuple[_Split, Noise]:
    """Estimate noise whose size, and then that of each sensor, may change from place to place."""
    means = np.stack([burst.mean(axis=0) for burst in sample.bursts])
    size = np.ones(len(means))  # of the noise of each burst, as a variance
    even = sample
    for _ in range(FOLLOWED):
        split = _factor(even, k, floor, full=full)
        noisy = (split.noise if split.noise.ndim == 1 else np.diag(split.noise)) > 0
        squares, freedom = split.squares[:, noisy], split.freedom[:, noisy]
        growth = _growth(means, squares.sum(axis=1, keepdims=True), freedom.sum(axis=1, keepdims=True))
        if growth is None:
            break
        size *= growth[:, 0]
        parts = zip(sample.rows, sample.factors, strict=True)
        even = replace(sample, factors=[factor / np.sqrt(size[rows])[:, None, None] for rows, factor in parts])
    sensors = _growth(means, split.squares, split.freedom)
    return split, _placed(split.noise, means, size[:, None], sensors)


def _growth(means: Array, squares: Array, freedom: Array) -> Array | None:
    """Compute by how much noise grows from place to place, (n, c); None if its levels differ only by chance.

    `squares` (n, c) are sums of squares in units of the noise, `freedom` (n, c) their degrees of freedom.
    """
    n = len(means)
    typical = max(float(freedom.mean(axis=0).max()), 1e-12)
    neighbors = int(np.ceil(NOISE_FREEDOM / typical))
    if n < max(4 * neighbors, 20):
        return None
    unit = _unit(means)
    near = cKDTree(means / unit).query(means / unit, neighbors)[1].reshape(n, neighbors)
    behind = np.maximum(freedom[near].sum(axis=1), 1e-12)
    local = squares[near].sum(axis=1) / behind
    usual = np.average(local, weights=behind, axis=0)
    local = np.divide(local, usual, out=np.ones_like(local), where=usual > 0)  # what is left out has none
    # Neighbours agree with each other more than chance would have it; a little unevenness does no harm.
    errors = np.sqrt(2 / behind)
    uneven = np.sqrt(np.mean(np.square((local - 1) / errors), axis=0)) > UNEVEN_ERRORS
    return np.where(uneven, np.maximum(local, 1e-3), 1.0) if uneven.any() else None


def _placed(base: Array, means: Array, size: Array, sensors: Array | None) -> Noise:
    """Let noise grow by the factors `size` (n, 1) of all sensors and `sensors` (n, D) of each."""
    if np.all(size == 1) and sensors is None:
        return Noise(base[None])
    growth = size * np.ones_like(means) * (1 if sensors is None else sensors)
    root = np.sqrt(growth)
    return Noise(base * growth if base.ndim == 1 else root[:, :, None] * base * root[:, None], means, _unit(means))


def _unit(means: Array) -> Array:
    spread = means.std(axis=0)
    return np.where(spread > 0, spread, 1.0)
