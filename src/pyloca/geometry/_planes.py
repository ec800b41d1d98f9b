"""Tangent planes of noisy bursts from the means of their neighbours.

Noise tilts the tangents of a burst, but hardly moves means, which average it. Neighbouring means lie along the surface,
so that their differences tell its plane where the points of a burst cannot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pyloca.bursts import Bursts
from pyloca.geometry._local import Local, look_along
from pyloca.geometry._noise import Noise, Whitener
from pyloca.thresholds import TILTED_PLANE

__all__ = ["straighten"]

Array = NDArray[np.float64]

NEAR = 4  # neighbours per tangent
BETTER = 3.0  # times by which the plane of the neighbours must be less wrong than the own
KEPT = 0.5  # part of its signal that a burst must have along the plane of its neighbours, or its own is kept


def straighten(seen: Local, bursts: Bursts, noise: Noise, floor: Array) -> None:
    """Look again at bursts whose tangents noise has tilted, along the planes of their neighbours; in place."""
    k, dim = seen.tangents.shape[1:]
    tilted = np.flatnonzero(seen.tilts > TILTED_PLANE)
    n_near = NEAR * k
    if not len(tilted) or dim == k or len(bursts) <= 2 * n_near:
        return
    unit = float(np.sqrt(seen.means.var(axis=0).mean())) or 1.0
    near = cKDTree(seen.means / unit).query(seen.means[tilted] / unit, n_near + 1)[1][:, 1:]
    for rows, block in bursts[tilted].blocks():
        chosen = tilted[rows]
        white = noise.whitener(block.mean(axis=1), floor)
        steps = white.white(seen.means[near[rows]] - seen.means[chosen, None])
        planes = np.linalg.svd(steps, full_matrices=False)[2][:, :k]
        again = look_along(block, planes, white)
        before, after = (np.square(t).sum(axis=(1, 2)) for t in (seen.tangents[chosen], again.tangents))
        good = (after > KEPT * before) & (BETTER * _bend(white, steps, planes) < seen.tilts[chosen])
        for array, values in zip(seen, again, strict=True):
            array[chosen[good]] = values[good]


def _bend(white: Whitener, steps: Array, planes: Array) -> Array:
    """Compute the squared angle between neighbouring means and their plane, in the data: it is as wrong as this."""
    along = np.einsum("bnd,bkd->bnk", steps, planes)
    inside = white.back(np.einsum("bnk,bkd->bnd", along, planes))
    off = white.back(steps) - inside
    return np.asarray(np.square(off).sum(axis=(1, 2)) / np.maximum(np.square(inside).sum(axis=(1, 2)), 1e-300))
