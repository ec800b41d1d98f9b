"""What a burst tells locally: its mean, its tangents, what lies off them, and how many points stand behind it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import LARGEST
from pyloca.geometry._noise import Whitener
from pyloca.geometry._scatter import reshaped
from pyloca.geometry._thin import thin_svd

__all__ = ["Local", "look", "look_along", "look_flattened", "nothing", "split_noise"]

Array = NDArray[np.float64]


class Local(NamedTuple):
    """Local pictures of b bursts.

    Attributes
    ----------
    means : (b, D) array
        μ_i.
    tangents : (b, k, D) array
        A_i, rows orthogonal and longest first, with A_iᵀ A_i the rank-k part of the burst covariance.
    residuals : (b,) array
        Trace of the covariance off the tangents.
    counts : (b,) array
        Points behind each covariance.
    total, noise : (b, k, k) array
        Covariance of the burst and of the noise in it, in the basis of the tangents: identity and 0 without noise.
    tilts : (b,) array
        Square of the angle by which noise tilts a tangent; 0 without noise.
    fourths : (b,) array
        Mean over the points of |z|⁴, z their coordinates along the k directions, of zero mean and unit variance
        (Mardia's kurtosis). Noise counts with the rest.
    """

    means: Array
    tangents: Array
    residuals: Array
    counts: Array
    total: Array
    noise: Array
    tilts: Array
    fourths: Array

    @classmethod
    def empty(cls, n: int, k: int, dim: int) -> Local:
        """Allocate local pictures of n bursts.

        Parameters
        ----------
        n, k, dim : int
            N, k and D.

        Returns
        -------
        Local
        """
        shapes = ((n, dim), (n, k, dim), (n,), (n,), (n, k, k), (n, k, k), (n,), (n,))
        return cls(*(np.empty(shape) for shape in shapes))


# A tangent keeps at least this part of its variance. The likelihood subtracts nothing and needs no such limit; the
# alignment does.
LEAST_SIGNAL = 0.1
BENDS = 4.0  # times chance that quadratic functions must explain of what lies off the tangents
LONG = 0.1  # a direction is long if this part of it is longer than the shortest
FLAT = 1e-12  # a direction so many times shorter than the longest is rounding


def look(block: Array, k: int, whitener: Whitener | None = None, factor: float | None = None) -> Local:
    """Compute the local pictures of bursts of equal length, by thin SVD.

    With noise, the k leading directions are found in coordinates in which the noise is white, and the tangents are what
    is left of the burst along them when the noise is subtracted.

    Parameters
    ----------
    block : (b, M, D) array
    k : int
        Intrinsic dimension.
    whitener : Whitener, optional
        Of the noise of these bursts.
    factor : float, optional
        Of the scatter that tangents have the shape of; None: they have that of the covariance. Not with noise.

    Returns
    -------
    Local
    """
    if whitener is not None:
        means = block.mean(axis=1)
        centred = block - means[:, None]
        white = whitener.white(centred)
        rows, singular, _ = _leading(white, k)
        leaning = np.full(len(block), float(block.shape[1]))
        out = _without_noise(means, centred, whitener, rows, singular, leaning)
        return out._replace(fourths=_fourths(np.einsum("bmd,bkd->bmk", white, rows, optimize=True), singular))
    seen, flattened = look_flattened(block, k)
    return seen if factor is None else seen._replace(tangents=reshaped(flattened, seen.tangents, factor))


def look_flattened(block: Array, k: int) -> tuple[Local, Array]:
    """Compute local pictures as `look` does without noise, and the points without their means and longest bends.

    Parameters
    ----------
    block : (b, M, D) array
    k : int
        Intrinsic dimension.

    Returns
    -------
    Local
    (b, M, D) array
    """
    means = block.mean(axis=1)
    centred = block - means[:, None]
    rows, singular, rest = _leading(centred, k)
    counts = np.full(len(block), float(block.shape[1]))
    fourths = _fourths(np.einsum("bmd,bkd->bmk", centred, rows, optimize=True), singular)
    tangents, rest, flattened = unbent(centred, rows, singular, rest)
    return Local(means, tangents, rest, counts, *_no_noise(len(block), k), fourths), flattened


def unbent(centred: Array, rows: Array, singular: Array, rest: Array) -> tuple[Array, Array, Array]:
    """Take bends out of bursts: y = μ + A z + q(z), with q quadratic, and the tangents are A alone.

    Where points are one-sided, q(z) varies along with z, and principal directions are not tangents but secants: they
    are wrong by the skewness times the bend, and coordinates by much more, since the mean of a burst on a bent surface
    tells its size. And where a burst is ten times longer in some directions than in others, its bends along the long
    ones are not small against the short ones; they are taken out first. Bursts with fewer than two points per
    coefficient are left as they are.

    Parameters
    ----------
    centred : (b, M, D) array
        Points without their means.
    rows : (b, k, D) array
        Leading directions.
    singular : (b, k) array
        Standard deviations along them.
    rest : (b,) array
        Trace of the covariance off them.

    Returns
    -------
    tangents : (b, k, D) array
        Rows orthogonal and longest first.
    rest : (b,) array
        As before, without bends along long directions.
    flattened : (b, M, D) array
        Points without bends along long directions.
    """
    m, dim, k = *centred.shape[1:], rows.shape[1]
    tangents, rest = singular[:, :, None] * rows, rest.copy()
    if m < 2 * (1 + k + k * (k + 1) // 2):
        return tangents, rest, centred
    flattened, sound = centred.copy(), singular[:, -1] > FLAT * singular[:, 0]
    n_long = np.where(sound, (singular * LONG > singular[:, -1:]).sum(axis=1), 0)
    for long in np.unique(n_long[n_long > 0]):
        chosen = np.flatnonzero(n_long == long)
        points = centred[chosen]
        scores = np.einsum("bmd,bkd->bmk", points, rows[chosen, :long], optimize=True) / singular[chosen, None, :long]
        bends, found, _ = _quadratic(scores, points)
        points = points - bends @ found[:, 1 + long :]
        points -= points.mean(axis=1, keepdims=True)
        turned, lengths, off = _leading(points, k)
        freedom = np.where(np.arange(k) < long, 1.0, (m - 1) / (m - 1 - bends.shape[2]))
        tangents[chosen], rest[chosen] = (lengths * np.sqrt(freedom))[:, :, None] * turned, off
        flattened[chosen] = points
    if dim == k:
        return tangents, rest, flattened  # any bend is a change of coordinates
    lengths = np.linalg.norm(tangents, axis=2)
    usable = np.flatnonzero(sound)
    scores = np.einsum("bmd,bkd->bmk", flattened[usable], tangents[usable], optimize=True)
    scores /= np.square(lengths[usable])[:, None]
    _, found, certain = _quadratic(scores, flattened[usable])
    bent = certain > BENDS  # where there is nothing but noise off the tangents, principal directions are best
    _, lengths, turned = np.linalg.svd(found[bent, 1 : 1 + k], full_matrices=False)  # of coordinates of unit variance
    tangents[usable[bent]] = lengths[:, :, None] * turned
    return tangents, rest, flattened


def _quadratic(scores: Array, points: Array) -> tuple[Array, Array, Array]:
    """Fit 1, z and the products of z (b, M, k) to points (b, M, D).

    Return the products, all coefficients, and how many times chance the products explain (the ratio F).
    """
    one, other = np.triu_indices(scores.shape[2])
    products = scores[:, :, one] * scores[:, :, other]
    known = np.concatenate([np.ones((*scores.shape[:2], 1)), scores, products], axis=2)
    basis, triangle = np.linalg.qr(known)
    # points that lie on a conic leave the quadratic open: two equal readings, or a ring of sensors
    size = np.abs(np.diagonal(triangle, axis1=1, axis2=2))
    sound = size.min(axis=1) > 1e-6 * size.max(axis=1)
    found = np.zeros((len(points), known.shape[2], points.shape[2]))
    along = basis.transpose(0, 2, 1) @ points  # (b, p, D)
    found[sound] = np.linalg.solve(triangle[sound], along[sound])
    (m, k), count = scores.shape[1:], products.shape[2]
    linear = np.einsum("bmk,bmd->bkd", scores, points, optimize=True) / np.square(scores).sum(axis=1)[:, :, None]
    found[~sound, 1 : 1 + k] = linear[~sound]
    explained = np.square(along[:, 1 + k :]).sum(axis=(1, 2))
    total = np.square(points).sum(axis=(1, 2))
    left = np.maximum(total - np.square(along).sum(axis=(1, 2)), np.finfo(float).eps * total)
    ratio = explained / np.maximum(left, np.finfo(float).tiny) * (m - 1 - k - count) / count
    return products, found, np.where(sound, ratio, 0.0)


def look_along(block: Array, planes: Array, whitener: Whitener) -> Local:
    """Compute the local pictures of bursts whose planes are known better than from their own points.

    Parameters
    ----------
    block : (b, M, D) array
    planes : (b, k, D) array
        Orthonormal rows in white coordinates.
    whitener : Whitener
        Of the noise of these bursts.

    Returns
    -------
    Local
    """
    means = block.mean(axis=1)
    centred = block - means[:, None]
    inside = np.einsum("bmd,bkd->bmk", whitener.white(centred), planes)
    values, axes = np.linalg.eigh(np.einsum("bmk,bml->bkl", inside, inside) / (block.shape[1] - 1))
    rows, singular = np.einsum("bkl,bkd->bld", axes[:, :, ::-1], planes), np.sqrt(np.maximum(values[:, ::-1], 1e-300))
    # planes that are known do not lean, and are not tilted
    out = _without_noise(means, centred, whitener, rows, singular, np.full(len(block), np.inf))
    return out._replace(tilts=np.zeros(len(block)), fourths=_fourths(inside @ axes[:, :, ::-1], singular))


def _without_noise(
    means: Array, centred: Array, whitener: Whitener, rows: Array, singular: Array, leaning: Array
) -> Local:
    """Take noise out of centred bursts along directions `rows`, which lean as those of `leaning` (b,) points do."""
    m = centred.shape[1]
    tangents, total, noise = split_noise(whitener, rows, singular, leaning)
    rest, tilts = _off_tangents(whitener, rows, singular, np.square(centred).sum(axis=(1, 2)) / (m - 1), m)
    return Local(
        means, tangents, rest, np.full(len(centred), float(m)), total, noise, tilts, np.full(len(rest), np.nan)
    )


def nothing(block: Array, k: int) -> Local:
    """Return the local pictures of bursts that have too few points for k tangents: means only.

    Parameters
    ----------
    block : (b, M, D) array
    k : int
        Intrinsic dimension.

    Returns
    -------
    Local
    """
    n, m, dim = block.shape
    counts, unknown = np.full(n, float(m)), np.full(n, np.nan)
    return Local(block.mean(axis=1), np.zeros((n, k, dim)), np.zeros(n), counts, *_no_noise(n, k), unknown)


def _no_noise(n: int, k: int) -> tuple[Array, Array, Array]:
    return np.tile(np.eye(k), (n, 1, 1)), np.zeros((n, k, k)), np.zeros(n)


def _fourths(inside: Array, scale: Array) -> Array:
    """Compute the mean of |z|⁴ over points (b, M, k) along principal directions, of which `scale` (b, k) is the size.

    NaN for bursts that are flat.
    """
    m = inside.shape[1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        squares = np.square(inside / scale[:, None]).sum(axis=2) * (m / (m - 1))
        found = np.square(squares).mean(axis=1)
    return np.where(scale[:, -1] > FLAT * scale[:, 0], found, np.nan)


def _leading(centred: Array, k: int) -> tuple[Array, Array, Array]:
    """Return the k leading directions (b, k, D), standard deviations along them (b, k), and the trace off them (b,)."""
    m, dim = centred.shape[1:]
    total = np.square(centred).sum(axis=(1, 2)) / (m - 1)
    if m > 2 * dim:  # the triangular factor has the same right singular vectors and is smaller
        centred = np.asarray(np.linalg.qr(centred, mode="r"))
    _, singular, rows = thin_svd(centred, k)
    singular = singular[:, :k] / np.sqrt(m - 1)
    return rows, singular, np.maximum(total - np.square(singular).sum(axis=1), 0)


def split_noise(whitener: Whitener, rows: Array, singular: Array, counts: Array) -> tuple[Array, Array, Array]:
    """Split bursts into signal and noise.

    The leading directions of few points lean towards the noise off them, and gain 1/(M − 1) of its variance.

    Parameters
    ----------
    whitener : Whitener
    rows : (b, k, D) array
        Orthonormal directions in white coordinates along which the burst is uncorrelated.
    singular : (b, k) array
        Standard deviations along them.
    counts : (b,) array
        Points behind them.

    Returns
    -------
    tangents : (b, k, D) array
        Of the signal, in the coordinates of the data.
    total, noise : (b, k, k) array
        As in `Local`.
    """
    along = whitener.noise_along(rows)
    lean = (whitener.noise_trace - np.trace(along, axis1=1, axis2=2)) / (counts - 1)
    along = along + lean[:, None, None] * np.eye(rows.shape[1])
    sizes = np.maximum(singular, FLAT * singular.max(axis=1, keepdims=True) + 1 / LARGEST)  # of a flat one, 0
    along /= sizes[:, :, None] * sizes[:, None]  # in units of the burst
    shares, axes = np.linalg.eigh(along)  # parts of the variance that are noise; (b, k), (b, k, k)
    left = np.maximum(1 - shares, LEAST_SIGNAL)
    raw = np.einsum("bkl,bkd->bld", axes, singular[:, :, None] * rows)
    turn, lengths, directions = np.linalg.svd(whitener.back(np.sqrt(left)[:, :, None] * raw), full_matrices=False)
    total, noise = (np.einsum("bla,bl,blc->bac", turn, part, turn) for part in (1 / left, shares / left))
    return lengths[:, :, None] * directions, total, noise


def _off_tangents(whitener: Whitener, rows: Array, singular: Array, trace: Array, m: int) -> tuple[Array, Array]:
    """Compute what is left off the tangents when the noise is gone, and how far noise tilts them: (b,) each.

    `rows` (b, k, D) and `singular` (b, k) are in white coordinates, `trace` (b,) is that of the covariance of the data.
    """
    k, dim = rows.shape[1:]
    lengths = np.square(whitener.back(rows)).sum(axis=2)  # (b, k), of the directions in the data
    noise = whitener.noise if whitener.noise.ndim == 2 else np.diagonal(whitener.noise, axis1=1, axis2=2)
    along = np.diagonal(whitener.noise_along(rows), axis1=1, axis2=2)
    off_noise = np.maximum(noise.sum(axis=1) - (along * lengths).sum(axis=1), 0) * max(1 - k / (m - 1), 0)
    rest = trace - (np.square(singular) * lengths).sum(axis=1)
    left = np.maximum(1 - along / np.square(singular), LEAST_SIGNAL)
    shortest = (np.square(left * singular) * lengths).min(axis=1)  # tangent, and once more what noise leaves of it
    # The noise itself is known to a tenth at best.
    return np.maximum(rest - 1.1 * off_noise, 0), off_noise / ((m - 1) * shortest) if dim > k else np.zeros(len(rest))
