"""Rigid maps of coordinates: the best one for pairs of points, its derivative, inverse and composition."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm, logm

from pyloca.metrics import RigidMap

__all__ = ["composed", "freedom", "inverse", "moved", "parameter_jacobian", "parameters", "procrustes"]

Array = NDArray[np.float64]


def procrustes(
    A: Array, B: Array, weights: Array | None = None, *, scale: bool = False, mirrored: bool = False
) -> RigidMap:
    """Minimise Σ w_i ‖B_i − (c A_i R + t)‖² over R in O(d), t, and c > 0 if `scale`; A and B are (n, d).

    `mirrored`: over R of the other orientation than the best one.
    """
    w = np.ones(len(A)) if weights is None else weights
    a_mean, b_mean = np.average(A, axis=0, weights=w), np.average(B, axis=0, weights=w)
    a, b = A - a_mean, B - b_mean
    left, singular, right = np.linalg.svd((w[:, None] * a).T @ b)
    if mirrored:
        left[:, -1], singular[-1] = -left[:, -1], -singular[-1]
    rotation, stretch = left @ right, float(singular.sum())
    spread = float((w * np.square(a).sum(axis=1)).sum())
    factor = stretch / spread if scale and spread > 0 and stretch > 0 else 1.0
    return RigidMap(rotation, b_mean - factor * a_mean @ rotation, factor)


def inverse(rigid: RigidMap) -> RigidMap:
    """Return the map back: z ↦ (z − shift) Rᵀ / scale."""
    back = rigid.rotation.T
    return RigidMap(back, -rigid.shift @ back / rigid.scale, 1 / rigid.scale)


def composed(first: RigidMap, then: RigidMap) -> RigidMap:
    """Return z ↦ then(first(z))."""
    return RigidMap(first.rotation @ then.rotation, then.apply(first.shift), first.scale * then.scale)


def freedom(d: int, *, scale: bool = False) -> int:
    """Count the parameters of a rigid map of R^d near a given one: d(d − 1)/2 turns, d shifts, perhaps a factor."""
    return d * (d - 1) // 2 + d + int(scale)


def moved(rigid: RigidMap, parameters: Array, centre: Array) -> RigidMap:
    """Move `rigid` by small parameters: turns in each plane about `centre` (of the target), shifts, log of a factor."""
    d = len(centre)
    turns = d * (d - 1) // 2
    skew = np.zeros((d, d))
    for value, (i, j) in zip(parameters[:turns], combinations(range(d), 2), strict=True):
        skew[i, j], skew[j, i] = value, -value
    factor = float(np.exp(parameters[turns + d])) if len(parameters) > turns + d else 1.0
    turn = expm(skew)
    shift = centre - factor * centre @ turn + parameters[turns : turns + d]
    return composed(rigid, RigidMap(turn, shift, factor))


def parameters(start: RigidMap, end: RigidMap, centre: Array, *, scale: bool) -> Array:
    """Invert `moved`: the parameters that lead from one map to another nearby."""
    d = len(centre)
    turn = start.rotation.T @ end.rotation
    skew = np.real(np.asarray(logm(turn)))
    skew = (skew - skew.T) / 2
    factor = end.scale / start.scale
    shift = end.shift - factor * start.shift @ turn - (centre - factor * centre @ turn)
    values = [skew[i, j] for i in range(d) for j in range(i + 1, d)]
    return np.array([*values, *shift, *([np.log(factor)] if scale else [])])


def parameter_jacobian(points: Array, centre: Array, *, scale: bool = False) -> Array:
    """Return the derivative (n, d, p) of mapped points (n, d) with respect to the parameters of `moved`, at zero."""
    n, d = points.shape
    offset = points - centre
    columns = []
    for i, j in combinations(range(d), 2):
        column = np.zeros((n, d))
        column[:, j], column[:, i] = offset[:, i], -offset[:, j]
        columns.append(column)
    columns += [np.tile(unit, (n, 1)) for unit in np.eye(d)]
    if scale:
        columns.append(offset)
    return np.stack(columns, axis=2)
