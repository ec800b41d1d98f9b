"""What a direction of a burst is, by the bursts around it: tangents are directions in which neighbours lie."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

__all__ = ["moves", "unexplained_share"]

Array = NDArray[np.float64]


def unexplained_share(scores: Array, j: int) -> Array:
    """Compute which part of direction j no quadratic function of the directions before it explains.

    It is 1 for a tangent and for noise, and 0 for curvature.

    Parameters
    ----------
    scores : (b, M, r) array
        Orthonormal coordinates of the points of b bursts along their principal directions.
    j : int
        Counted from 0.

    Returns
    -------
    (b,) array
        NaN where a burst has too few points to tell.
    """
    b, m, _ = scores.shape
    before = np.sqrt(m) * scores[:, :, :j]
    one, other = np.triu_indices(j)
    known = np.concatenate([np.ones((b, m, 1)), before, before[:, :, one] * before[:, :, other]], axis=2)
    freedom = m - known.shape[2]
    if freedom < 2:
        return np.full(b, np.nan)
    basis = np.linalg.qr(known)[0]
    seen = np.einsum("bmq,bm->bq", basis, scores[:, :, j])
    return np.asarray((1 - np.square(seen).sum(axis=1)) * (m - 1) / freedom)


def moves(means: Array, directions: Array, lengths: Array, points: float, j: int) -> tuple[float, float]:
    """Compute how far neighbours lie along direction j, in units of the burst, and along the first for comparison.

    Parameters
    ----------
    means : (n, D) array
    directions : (n, r, D) array
        Principal directions of each burst.
    lengths : (n, r) array
        Standard deviations along them.
    points : float
        Points per burst, which leave an error in its mean.
    j : int
        Counted from 0.

    Returns
    -------
    ratio : float
        Mean square of what quadratic functions of the steps before leave of steps along direction j, over that along
        the first one. A tangent has 1 or more, since near means are near in the long directions first; noise has 0.
    spacing : float
        Mean square of the steps along the first direction.
    """
    n, terms = len(means), j + j * (j + 1) // 2
    count = min(max(2 * terms + 8, 10), n - 1)
    if count <= terms:
        return np.nan, np.nan
    near = cKDTree(means).query(means, count + 1)[1][:, 1:]
    tiny = np.finfo(float).tiny
    steps = np.einsum("nkd,nrd->nkr", means[near] - means[:, None], directions[:, : j + 1])
    # A direction of the size of rounding, as of a reading that is repeated, would have steps of any size.
    rounding = 100 * np.finfo(float).eps * max(float(np.abs(means).max()), float(lengths.max()), tiny)
    steps = steps / np.maximum(lengths[:, None, : j + 1], rounding)
    one, other = np.triu_indices(j)
    known = np.concatenate([steps[:, :, :j], steps[:, :, one] * steps[:, :, other]], axis=2)
    known = known / np.maximum(np.linalg.norm(known, axis=1, keepdims=True), tiny)
    basis = np.linalg.qr(known)[0]
    along = steps[:, :, j]
    left = along - np.einsum("nkq,nq->nk", basis, np.einsum("nkq,nk->nq", basis, along))
    far = float(np.median(np.square(left).sum(axis=1))) / (count - terms) - 1 / points
    spacing = float(np.median(np.square(steps[:, :, 0]).mean(axis=1))) - 1 / points
    return (far / spacing if spacing > 0 else np.nan), spacing
