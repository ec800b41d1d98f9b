"""Noise that is known to be in bursts: one array for all, or one per burst; deviations or covariances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from pyloca._arguments import as_numbers
from pyloca.bursts._arrays import Array
from pyloca.errors import BurstError

__all__ = ["check_noise", "divide_noise", "join_noise", "noise_by_place", "select_noise"]

NEARBY = 25  # bursts over which the noise of a place is averaged


def check_noise(noise: ArrayLike, n: int, dim: int) -> tuple[Array, bool]:
    """Check noise of N bursts in R^D; return it as an array, and whether it has one entry per burst.

    A number, (D,) and (N, D) are standard deviations; (D, D) and (N, D, D) are covariances. Where N = D, a symmetric
    positive semi-definite array (D, D) is a covariance.
    """
    array = as_numbers("noise", noise, BurstError)
    if array.ndim == 0:
        array = np.full(dim, float(array))
    if array.shape not in ((dim,), (dim, dim), (n, dim), (n, dim, dim)):
        raise BurstError(
            f"noise has shape {array.shape}; expected a number or (D,) = ({dim},), or (N, D) = {(n, dim)} standard "
            f"deviations, or covariances {(dim, dim)} or {(n, dim, dim)}."
        )
    if not np.isfinite(array).all():
        raise BurstError("noise must be finite.")
    covariances = array.ndim == 3 or (array.shape == (dim, dim) and (n != dim or _is_covariance(array)))
    if covariances and not _is_covariance(array):
        raise BurstError("noise is not a covariance: it must be symmetric, with no negative eigenvalue.")
    if not covariances and (array < 0).any():
        raise BurstError(f"noise has a negative standard deviation, {array.min():g}.")
    return array.copy(), array.ndim == 3 or (array.ndim == 2 and not covariances)


def _is_covariance(array: Array) -> bool:
    size = np.abs(array).max(initial=0.0)
    if np.abs(array - np.swapaxes(array, -1, -2)).max(initial=0.0) > 1e-8 * size:
        return False
    return bool(np.linalg.eigvalsh(array).min(initial=0.0) >= -1e-8 * size)


def _has_covariances(noise: Array, each: bool) -> bool:
    return noise.ndim == (3 if each else 2)


def divide_noise(noise: Array, each: bool, scale: Array) -> Array:
    """Noise of features that are divided by `scale`."""
    return np.asarray(noise / (np.outer(scale, scale) if _has_covariances(noise, each) else scale))


def select_noise(noise: Array, each: bool, features: list[int]) -> Array:
    """Noise of some features."""
    chosen = noise[..., features]
    return np.ascontiguousarray(chosen[..., features, :] if _has_covariances(noise, each) else chosen)


def _as_covariances(noise: Array, each: bool, n: int) -> Array:
    """Noise as covariances, (N, D, D)."""
    if not _has_covariances(noise, each):
        noise = np.square(noise)[..., None] * np.eye(noise.shape[-1])
    return noise if each else np.broadcast_to(noise, (n, *noise.shape))


def join_noise(noises: Sequence[tuple[Array, bool]], counts: Sequence[int]) -> tuple[Array, bool]:
    """Noise of several data sets with these numbers of bursts, and whether it has one entry per burst."""
    first, each = noises[0]
    if not each and all(not e and np.array_equal(first, noise) for noise, e in noises):
        return first, False
    if not any(_has_covariances(*noise) for noise in noises):
        parts = [a if e else np.tile(a, (n, 1)) for (a, e), n in zip(noises, counts, strict=True)]
    else:
        parts = [_as_covariances(*noise, n) for noise, n in zip(noises, counts, strict=True)]
    return np.concatenate(parts), True


def noise_by_place(middles: Array, short: Array, long: Array, lag: float, longer: float) -> Array:
    """Estimate what does not grow from the clouds (N, m, D) after a time `lag` to those (N, M, D) after `longer`.

    The line through the covariances at both times meets time 0 in that of the noise, (N, D, D). It is averaged over
    neighbouring bursts.
    """
    from sklearn.neighbors import NearestNeighbors  # takes a while to import

    one, two = _covariances(short), _covariances(long)
    places = middles / np.maximum(middles.std(axis=0), np.finfo(float).tiny)
    near = NearestNeighbors(n_neighbors=min(NEARBY, len(places))).fit(places).kneighbors(places, return_distance=False)
    noise = (one - (two - one) * (lag / (longer - lag)))[near].mean(axis=1)
    values, vectors = np.linalg.eigh(noise)
    return np.asarray((vectors * np.maximum(values, 0)[:, None]) @ vectors.transpose(0, 2, 1))


def _covariances(clouds: Array) -> Array:
    centred = clouds - clouds.mean(axis=1, keepdims=True)
    return np.asarray(centred.transpose(0, 2, 1) @ centred / (clouds.shape[1] - 1))
