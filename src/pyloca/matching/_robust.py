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
from pyloca.thresholds import OFF_ANCHORS, WRONG_PAIR

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

    The map is the one with the least sum of the smallest h squared residuals, found from many small subsets by
    concentration steps (Rousseeuw and Van Driessen), and then fitted to all pairs whose residual it explains. Half of
    the pairs may be wrong, less d / 2; where more are, a bare majority decides if `prior` alone explains it, and no
    other one.

    `prior` (n,) is the expected variance of each residual per coordinate, worth `prior_degrees` observations; residuals
    and prior together give the variance that is reported, as a multiple of the mean of `prior`.
    """
    n, d = A.shape
    pairs = _Pairs(A, B, weights * prior.mean() / prior, prior, prior_degrees, scale)
    if n < d + 2:  # nothing tells the wrong pair from the right ones
        return pairs.fitted(np.ones(n, dtype=bool))
    subsets = _subsets(n, d + 1, seed)
    found = pairs.fitted(pairs.agreeing(*pairs.trimmed(subsets, (n + d + 2) // 2)))
    if pairs.explained(found.right) or n // 2 + 1 < d + 2:
        return found
    kept = pairs.majority(subsets)
    if kept is None:
        return found
    fewer = pairs.fitted(pairs.agreeing(kept, float(pairs.squares(pairs.map(kept))[kept].sum())))
    return fewer if pairs.explained(fewer.right) else found


@dataclass(frozen=True)
class _Pairs:
    """Pairs of points, and what is known of their residuals."""

    A: Array
    B: Array
    weights: Array  # inverse variances, relative to the mean of `prior`
    prior: Array
    prior_degrees: float
    scale: bool

    @property
    def expected(self) -> float:
        return float(self.prior.mean())

    def degrees(self, n: int) -> int:
        """Return the degrees of freedom of the residuals of n pairs."""
        d = self.A.shape[1]
        return d * n - freedom(d, scale=self.scale)

    def squares(self, rigid: RigidMap) -> Array:
        """Return the squared residuals (n,), weighted."""
        return np.asarray(np.square(self.B - rigid.apply(self.A)).sum(axis=1) * self.weights)

    def map(self, kept: NDArray[np.int64]) -> RigidMap:
        """Fit the map to some of the pairs."""
        return procrustes(self.A[kept], self.B[kept], self.weights[kept], scale=self.scale)

    def explained(self, right: NDArray[np.bool_]) -> bool:
        """Whether `prior` explains the residuals of some of the pairs."""
        kept, dof = np.flatnonzero(right), max(self.degrees(int(right.sum())), 1)
        most = self.expected * dof * float(f.isf(OFF_ANCHORS, dof, self.prior_degrees))
        return float(self.squares(self.map(kept))[kept].sum()) <= most

    def trimmed(self, subsets: list[NDArray[np.int64]], h: int) -> tuple[NDArray[np.int64], float]:
        """Return the h pairs with the least sum of squares that was found, and that sum, as large as of other pairs."""
        n, d = self.A.shape
        # Two steps from every subset, and to the end from the best of them.
        quick = [self._concentrate(subset, h, 2) for subset in subsets]
        quick.sort(key=lambda found: found[0])
        ends = (self._concentrate(kept, h, STEPS) for _, kept in quick[:FINISHED])
        least, kept = min(ends, key=lambda found: found[0])
        # Trimming makes the kept residuals small: corrected by what it does to Gaussian ones.
        edge = chi2.ppf(h / n, d)
        return kept, least * (h / n) / float(chi2.cdf(edge, d + 2))

    def agreeing(self, kept: NDArray[np.int64], squares: float) -> NDArray[np.bool_]:
        """Return which pairs (n,) are explained by the map of those kept, step by step."""
        d = self.A.shape[1]
        for _ in range(STEPS):
            dof = max(self.degrees(len(kept)), 1)
            total = (self.prior_degrees * self.expected + squares) / (self.prior_degrees + dof)
            # Errors of encoders are smooth fields: pairs of one region agree better among themselves than with others
            # that are just as right. So a pair is wrong only if the fits' own errors do not explain it either.
            variance = max(total, self.expected) * self.prior / self.expected
            strange = _strangeness(self.A, self.B, self.weights, kept, variance, scale=self.scale)
            right = strange <= f.isf(WRONG_PAIR, d, self.prior_degrees + dof)
            right[np.argsort(strange, kind="stable")[: d + 1]] = True
            if np.array_equal(np.flatnonzero(right), kept):
                break
            kept = np.flatnonzero(right)
            squares = float(self.squares(self.map(kept))[kept].sum())
        return np.asarray(right)

    def majority(self, subsets: list[NDArray[np.int64]]) -> NDArray[np.int64] | None:
        """Return the bare majority of the pairs that `prior` explains; None if there is none, or another as likely."""
        h = len(self.A) // 2 + 1
        dof, known = self.degrees(h), self.prior_degrees * self.expected
        ends = {tuple(kept.tolist()): squares for squares, kept in (self._concentrate(s, h, STEPS) for s in subsets)}
        (least, best), *others = sorted((squares, kept) for kept, squares in ends.items())
        if least > self.expected * dof * float(f.isf(OFF_ANCHORS, dof, self.prior_degrees)):
            return None
        rival = min((squares for squares, _ in others), default=np.inf)
        odds = (self.prior_degrees + dof) / 2 * np.log((known + rival) / (known + least))
        return np.array(best) if odds > -np.log(OFF_ANCHORS) else None

    def fitted(self, right: NDArray[np.bool_]) -> Robust:
        """Fit the map to pairs that are right."""
        rigid = self.map(np.flatnonzero(right))
        degrees = self.prior_degrees + max(self.degrees(int(right.sum())), 0)
        squares = float(self.squares(rigid)[right].sum())
        return Robust(rigid, right, (self.prior_degrees * self.expected + squares) / degrees, degrees)

    def _concentrate(self, subset: NDArray[np.int64], h: int, steps: int) -> tuple[float, NDArray[np.int64]]:
        kept, last = subset, np.inf
        for _ in range(steps):
            squared = self.squares(self.map(kept))
            kept = np.sort(np.argsort(squared, kind="stable")[:h])
            total = float(squared[kept].sum())
            if not total < last * (1 - 1e-9):
                break
            last = total
        return last, kept


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


def _subsets(n: int, size: int, seed: int) -> list[NDArray[np.int64]]:
    if comb(n, size) <= STARTS:
        return [np.array(rows) for rows in combinations(range(n), size)]
    random = np.random.RandomState(seed)
    return [random.choice(n, size, replace=False) for _ in range(STARTS)]
