"""Tangent planes of noisy bursts from the means of their neighbours.

Noise tilts the tangents of a burst, but hardly moves means, which average it. Neighbouring means lie on the surface, so
that a quadratic fitted to them tells its plane where the points of a burst cannot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pyloca.bursts import Bursts
from pyloca.geometry._local import Local, look_along
from pyloca.geometry._noise import Noise, Whitener
from pyloca.geometry._sample import sample_rows
from pyloca.thresholds import TILTED_PLANE

__all__ = ["Planes", "near_planes", "own_tilts", "planes_of_means", "straighten"]

Array = NDArray[np.float64]

NEAR = 3.5  # neighbours per coefficient of the quadratic, at least
ALIKE = 2.0  # times the least error within which the smallest neighbourhood is taken
TRIED = 100  # bursts with which the number of neighbours is chosen
BETTER = 10.0  # times by which the plane of the neighbours must be less wrong than the own: what it loses is lost
KEPT = 0.5  # part of its signal that a burst must have along the plane of its neighbours, or its own is kept


class Planes(NamedTuple):
    """Planes of b bursts, as slopes of quadratics y = c + Σ_j t_j s_j + … through the means around them.

    Attributes
    ----------
    slopes : (b, k, D) array
        s_j.
    misfits : (b, r, D) array
        What the quadratic leaves of the means: rows whose squares add up to its variance.
    errors : (b, k, k) array
        Covariance of the slopes, in units of that variance.
    rough : (b,) array
        That variance over the spread of the means: large where the surface has more dimensions, or crumples.
    """

    slopes: Array
    misfits: Array
    errors: Array
    rough: Array

    def seen(self, whitener: Whitener) -> tuple[Array, Array]:
        """Return the planes in white coordinates, and how wrong they are there.

        Parameters
        ----------
        whitener : Whitener

        Returns
        -------
        rows : (b, k, D) array
            Orthonormal.
        tilts : (b, k, k) array
            Covariance of the error of the rows, summed over all directions off the plane: squares of angles.
        """
        slopes, misfits = whitener.white(self.slopes), whitener.white(self.misfits)
        columns, upper = np.linalg.qr(slopes.transpose(0, 2, 1))
        rows = columns.transpose(0, 2, 1)
        off = misfits - np.einsum("bnd,bkd,bke->bne", misfits, rows, rows, optimize=True)
        size = np.maximum(np.abs(upper).max(axis=(1, 2)), 1e-300)[:, None, None]
        lower = upper.transpose(0, 2, 1) + 1e-9 * size * np.eye(upper.shape[1])  # slopes = lower @ rows
        half = np.linalg.solve(lower, self.errors)
        tilts = np.linalg.solve(lower, half.transpose(0, 2, 1)) * np.square(off).sum(axis=(1, 2))[:, None, None]
        return rows, tilts / np.maximum(np.trace(tilts, axis1=1, axis2=2), 1.0)[:, None, None]


def near_planes(
    means: Array, rows: NDArray[np.int64], k: int, noise: Noise | None = None, floor: Array | None = None
) -> NDArray[np.int64] | None:
    """Choose the bursts whose means tell the planes of some bursts.

    So many that the planes are least wrong: few where the surface bends, more where means lie close to each other and
    noise moves them.

    Parameters
    ----------
    means : (N, D) array
    rows : (b,) array of int
        Bursts.
    k : int
        Dimension of the planes.
    noise : Noise, optional
        If it is known, with its `floor` (D,): planes must also be right in white coordinates.

    Returns
    -------
    (b, n) array of int or None
        Each burst and its neighbours; None if there are too few bursts.
    """
    fewest = _fewest(k)
    sizes = [fewest * 2**i for i in range(5) if 2 * fewest * 2**i < len(means)]
    if not sizes or means.shape[1] == k:
        return None
    tree, some = cKDTree(means), rows[sample_rows(len(rows), TRIED)]
    around = tree.query(means[some], sizes[-1])[1]
    metrics = [_plain(means.shape[1])]
    if noise is not None and floor is not None:
        metrics.append(noise.whitener(means[some], floor))
    wrong = []
    for n in sizes:
        planes = planes_of_means(means, around[:, :n], k)
        wrong.append(sum(float(np.trace(planes.seen(one)[1], axis1=1, axis2=2).mean()) for one in metrics))
    # errors of larger neighbourhoods are the same for many bursts, and do not average
    return np.asarray(tree.query(means[rows], sizes[int(np.argmax(np.array(wrong) <= ALIKE * min(wrong)))])[1])


def _plain(dim: int) -> Whitener:
    return Whitener(np.ones((1, dim)), np.zeros((1, dim)))


def planes_of_means(means: Array, near: NDArray[np.int64], k: int) -> Planes:
    """Fit quadratics to the means around some bursts.

    Parameters
    ----------
    means : (N, D) array
    near : (b, n) array of int
        A burst and its neighbours; the burst first.
    k : int
        Dimension of the planes.

    Returns
    -------
    Planes
    """
    steps = means[near] - means[near[:, :1]]
    n, (first, second) = near.shape[1], np.triu_indices(k)
    slopes = np.linalg.svd(steps - steps.mean(axis=1, keepdims=True), full_matrices=False)[2][:, :k]
    for _ in range(2):  # the second time along the plane that the first has found
        at = np.einsum("bnd,bkd->bnk", steps, np.linalg.qr(slopes.transpose(0, 2, 1))[0].transpose(0, 2, 1))
        at = at / np.maximum(np.sqrt(np.square(at).sum(axis=2).mean(axis=1)), 1e-300)[:, None, None]
        radius = np.sqrt(np.square(at).sum(axis=2))
        weights = np.sqrt(np.maximum(1 - np.power(radius / (1.05 * radius.max(axis=1, keepdims=True)), 3), 0) ** 3)
        terms = np.concatenate([np.ones_like(at[:, :, :1]), at, at[:, :, first] * at[:, :, second]], axis=2)
        terms, values = terms * weights[:, :, None], steps * weights[:, :, None]
        normal = np.einsum("bnp,bnq->bpq", terms, terms)
        # means on a line do not tell a plane: a large error says so
        inverse = np.linalg.inv(normal + 1e-9 * n * np.eye(terms.shape[2]))
        found = inverse @ np.einsum("bnp,bnd->bpd", terms, values)
        slopes = found[:, 1 : 1 + k]
    misfits = (values - terms @ found) / np.sqrt(max(n - terms.shape[2], 1))
    # A surface that bends otherwise than a quadratic does so for all neighbours alike, and more the farther they are:
    # more of them do not average it. The square agrees with planes that are known.
    systematic = np.square(n / _fewest(k))
    spread = np.square(steps - steps.mean(axis=1, keepdims=True)).sum(axis=2).mean(axis=1)
    rough = np.square(misfits).sum(axis=(1, 2)) / np.maximum(spread, 1e-300)
    if n > means.shape[1]:  # the same squares in any direction
        misfits = np.asarray(np.linalg.qr(misfits, mode="r"))
    return Planes(slopes, misfits, systematic * inverse[:, 1 : 1 + k, 1 : 1 + k], rough)


def _fewest(k: int) -> int:
    return int(np.ceil(NEAR * (1 + k + k * (k + 1) // 2)))


def own_tilts(shares: Array, freedom: Array, dim: int, k: int) -> Array:
    """Compute the squared angle, in white coordinates, by which noise tilts the tangents of bursts.

    Parameters
    ----------
    shares : array
        Part of the variance along tangents that is noise.
    freedom : array
        M − 1.
    dim, k : int
        D and k.

    Returns
    -------
    array
        Like `shares`.
    """
    return np.asarray(np.minimum((dim - k) * shares / (freedom * np.square(np.maximum(1 - shares, 1e-3))), 1.0))


def straighten(seen: Local, bursts: Bursts, noise: Noise, floor: Array) -> None:
    """Look again at bursts whose tangents noise has tilted, along the planes of their neighbours; in place."""
    k, dim = seen.tangents.shape[1:]
    # White coordinates tell how much of the signal a wrong plane loses, those of the data where it points.
    own = seen.tilts + own_tilts(_shares(seen), np.maximum(seen.counts - 1, 1), bursts.n_used, k)
    tilted = np.flatnonzero(own > TILTED_PLANE)
    near = near_planes(seen.means, tilted, k, noise, floor) if len(tilted) else None
    if near is None:
        return
    plain = _plain(dim)
    for rows, block in bursts[tilted].blocks():
        chosen = tilted[rows]
        white = noise.whitener(block.mean(axis=1), floor)
        fitted = planes_of_means(seen.means, near[rows], k)
        planes, lost = fitted.seen(white)
        wrong = np.trace(lost + fitted.seen(plain)[1], axis1=1, axis2=2)
        again = look_along(block, planes, white)
        before, after = (np.square(t).sum(axis=(1, 2)) for t in (seen.tangents[chosen], again.tangents))
        good = (after > KEPT * before) & (BETTER * wrong < own[chosen])
        for array, values in zip(seen, again, strict=True):
            array[chosen[good]] = values[good]


def _shares(seen: Local) -> Array:
    inverse = np.linalg.inv(np.linalg.cholesky(seen.total))
    return np.asarray(np.linalg.eigvalsh(inverse @ seen.noise @ inverse.transpose(0, 2, 1))[:, -1])
