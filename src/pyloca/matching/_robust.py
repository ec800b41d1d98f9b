"""Rigid maps from pairs of which some are wrong: least trimmed squares, then all pairs that agree with it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, f

from pyloca.matching._rigid import freedom, parameter_jacobian, procrustes
from pyloca.metrics import RigidMap
from pyloca.thresholds import WRONG_PAIR

__all__ = ["Robust", "robust_procrustes"]

Array = NDArray[np.float64]

STARTS = 150  # subsets of d + 1 pairs at most
FINISHED = 10  # of them, the best ones, from which steps go on to the end
STEPS = 20  # of concentration; they end by themselves


@dataclass(frozen=True)
class Robust:
    """A rigid map, and which pairs made it.

    Attributes
    ----------
    rigid : RigidMap
    right : (n,) array of bool
        Pairs that were used.
    variance : float
        Of a residual, per coordinate.
    degrees : float
        Degrees of freedom of `variance`.
    """

    rigid: RigidMap
    right: NDArray[np.bool_]
    variance: float
    degrees: float


def robust_procrustes(
    A: Array, B: Array, weights: Array, prior: Array, prior_degrees: float, *, scale: bool, seed: int = 0
) -> Robust:
    """Fit B ≈ rigid(A), leaving out pairs that do not belong together.

    Half of the pairs may be wrong, less d: the map is the one with the least sum of the smallest h squared residuals,
    found from many small subsets by concentration steps (Rousseeuw and Van Driessen), and then fitted to all pairs
    whose residual it explains.

    `prior` (n,) is the expected variance of each residual per coordinate, worth `prior_degrees` observations; residuals
    and prior together give the variance that is reported, as a multiple of the mean of `prior`.
    """
    n, d = A.shape
    p = freedom(d, scale=scale)
    relative = prior / prior.mean()
    w = weights / relative
    right = np.ones(n, dtype=bool)
    if n >= d + 2:  # with fewer, nothing tells the wrong pair from the right ones
        h = (n + d + 2) // 2
        # Two steps from every subset, and to the end from the best of them.
        quick = [_concentrate(A, B, w, subset, h, scale, 2) for subset in _subsets(n, d + 1, seed)]
        quick.sort(key=lambda found: found[0])
        best = min(
            (_concentrate(A, B, w, kept, h, scale, STEPS) for _, kept in quick[:FINISHED]), key=lambda found: found[0]
        )
        kept = best[1]
        # Trimming makes the kept residuals small: corrected by what it does to Gaussian ones.
        edge = chi2.ppf(h / n, d)
        shrunk = chi2.cdf(edge, d + 2) / (h / n)
        squares = best[0] / shrunk
        for _ in range(STEPS):
            dof = max(d * len(kept) - p, 1)
            total = (prior_degrees * prior.mean() + squares) / (prior_degrees + dof)
            # Errors of encoders are smooth fields: pairs of one region agree better among themselves than with others
            # that are just as right. So a pair is wrong only if the fits' own errors do not explain it either.
            total = max(total, float(prior.mean()))
            strange = _strangeness(A, B, w, kept, total * relative, scale=scale)
            right = strange <= f.isf(WRONG_PAIR, d, prior_degrees + dof)
            right[np.argsort(strange, kind="stable")[: d + 1]] = True
            if np.array_equal(np.flatnonzero(right), kept):
                break
            kept = np.flatnonzero(right)
            rigid = procrustes(A[kept], B[kept], w[kept], scale=scale)
            squares = float((np.square(B - rigid.apply(A)).sum(axis=1) * w)[kept].sum())
    rigid = procrustes(A[right], B[right], w[right], scale=scale)
    squared = (np.square(B - rigid.apply(A)).sum(axis=1) * w)[right]
    dof = max(d * int(right.sum()) - p, 0)
    variance = (prior_degrees * float(prior.mean()) + float(squared.sum())) / (prior_degrees + dof)
    return Robust(rigid, right, variance, prior_degrees + dof)


def _strangeness(A: Array, B: Array, w: Array, kept: NDArray[np.int64], variance: Array, *, scale: bool) -> Array:
    """Squared residuals of all pairs (n,) under the map of those kept, in units of what they should be: an F ratio.

    A pair that was not kept is also off by the error of the map at its place, which is large far from those kept.
    """
    rigid = procrustes(A[kept], B[kept], w[kept], scale=scale)
    placed, d = rigid.apply(A), A.shape[1]
    slopes = parameter_jacobian(placed, B[kept].mean(axis=0), scale=scale)  # (n, d, p)
    known = np.einsum("n,ndp,ndq->pq", 1 / variance[kept], slopes[kept], slopes[kept])
    map_error = slopes @ np.linalg.pinv(known) @ slopes.transpose(0, 2, 1)  # (n, d, d)
    map_error[kept] *= -1
    total = variance[:, None, None] * np.eye(d) + map_error
    off = B - placed
    # A pair that fixes the map by itself has no residual, and no expected one.
    return np.asarray(np.einsum("ni,nij,nj->n", off, np.linalg.pinv(total, hermitian=True), off) / d)


def _concentrate(
    A: Array, B: Array, w: Array, subset: NDArray[np.int64], h: int, scale: bool, steps: int
) -> tuple[float, NDArray[np.int64]]:
    kept, last = subset, np.inf
    for _ in range(steps):
        rigid = procrustes(A[kept], B[kept], w[kept], scale=scale)
        squared = np.square(B - rigid.apply(A)).sum(axis=1) * w
        kept = np.sort(np.argsort(squared, kind="stable")[:h])
        total = float(squared[kept].sum())
        if not total < last * (1 - 1e-9):
            break
        last = total
    return last, kept


def _subsets(n: int, size: int, seed: int) -> list[NDArray[np.int64]]:
    if comb(n, size) <= STARTS:
        return [np.array(rows) for rows in combinations(range(n), size)]
    random = np.random.RandomState(seed)
    return [random.choice(n, size, replace=False) for _ in range(STARTS)]
