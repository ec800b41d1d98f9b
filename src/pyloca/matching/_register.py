"""Rigid registration of two embedded sets by the shape of their supports, without any pair of points."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import logm, orthogonal_procrustes
from scipy.optimize import minimize
from scipy.stats import ortho_group

from pyloca.matching._rigid import freedom, inverse, moved, parameters
from pyloca.matching._same import SameSupport, same_density
from pyloca.matching._support import Support, even, thinned
from pyloca.metrics import RigidMap
from pyloca.thresholds import OTHER_STATES

__all__ = ["Registered", "Registration"]

Array = NDArray[np.float64]

MOST = 600  # points of each set: an outline is known by them, and a candidate costs a millisecond
ANGLES = 60  # starts in the plane, of each orientation
ROTATIONS = 500  # starts in more dimensions, of each orientation
REFINED = 32  # starts that are refined
WORSE = 0.15  # overlap by which a start may lie below the best and still be refined
TIE = 1e-6  # a grid rotation decides what pairs leave open, and nothing else
PULL = 0.02  # overlap that a pair is worth when it is off by one standard error
CLEARLY, BEHIND = 4.0, 0.01  # standard deviations, and at least this overlap, by which an optimum is worse than another
MOST_TESTED = 12  # more optima than this are a continuum
SPLITS = 6  # halvings behind a standard error


@dataclass(frozen=True)
class Registered:
    """A local optimum of the overlap.

    Attributes
    ----------
    rigid : RigidMap
    overlap : float
        Mean of the part of A inside the support of B and of the part of B inside that of A.
    p_value : float
        Probability of such a difference of the supports if they are one; nan if another optimum is clearly better.
    possible : bool
        Whether the shapes allow it.
    density_p : float
        The same of the densities; nan if they were not compared.
    """

    rigid: RigidMap
    overlap: float
    p_value: float = np.nan
    possible: bool = False
    density_p: float = np.nan


class Registration:
    """Two embedded sets (n, d), and all rigid maps of A onto B that their shapes allow.

    Parameters
    ----------
    A, B : (n, d) arrays
    error : float
        Standard error of a coordinate, of A and B together: sets are thinned so that it is below their spacing.
    scale : bool
        Whether the map may scale.
    pairs : (n, d) array, (n, d) array, float; optional
        A few points of A, where they are in B, and the variance of their distance per coordinate: too few to fix the
        map, but it must agree with them.
    unevenness : float
        How many times as densely one may have sampled some place as the other.
    seed : int
    """

    def __init__(
        self,
        A: Array,
        B: Array,
        *,
        error: float = 0.0,
        scale: bool = False,
        pairs: tuple[Array, Array, float] | None = None,
        unevenness: float = 3.0,
        seed: int = 0,
    ) -> None:
        self.d, self.scale, self.seed, self.error, self.pairs = A.shape[1], scale, seed, error, pairs
        self.a = Support(thinned(A, error, MOST, seed))
        self.b = Support(thinned(B, error, MOST, seed))
        self.even_a, self.even_b = even(self.a), even(self.b)
        self.centre = self.even_b.mean(axis=0)
        self.size = float(np.sqrt(self.even_b.var(axis=0).sum()))
        self.unevenness = unevenness

    # -- one map ----------------------------------------------------------------------------------------------------

    def overlap(self, rigid: RigidMap) -> float:
        """Return the mean of the part of A inside B and of the part of B inside A, by area."""
        return (self._covered_a(rigid) + self._covered_b(rigid)) / 2

    def _covered_a(self, rigid: RigidMap) -> float:
        return float(self.b.inside(rigid.apply(self.even_a)).mean())

    def _covered_b(self, rigid: RigidMap) -> float:
        # In the coordinates of A a known scale is 1; with an unknown one the radius goes along.
        return float(self.a.inside(inverse(rigid).apply(self.even_b)).mean())

    def same(self, rigid: RigidMap, *, brief: bool = False) -> SameSupport:
        """Test whether the supports are the same under this map."""
        return SameSupport(
            rigid.apply(self.a.points),
            self.b.points,
            unevenness=self.unevenness,
            slack=self.error,
            seed=self.seed,
            brief=brief,
        )

    def density_p(self, rigid: RigidMap) -> float:
        """Test whether the densities are the same under this map."""
        return same_density(rigid.apply(self.a.points), self.b.points, seed=self.seed)

    def misfit(self, rigid: RigidMap) -> float:
        """Return Σ ‖B_i − rigid(A_i)‖² / variance over the pairs: χ² with n d degrees of freedom."""
        if self.pairs is None:
            return 0.0
        A, B, variance = self.pairs
        return float(np.square(B - rigid.apply(A)).sum()) / variance

    def refined(self, rigid: RigidMap, iterations: int = 150) -> RigidMap:
        """Climb to the nearest optimum of the overlap."""
        p = freedom(self.d, scale=self.scale)
        turns = self.d * (self.d - 1) // 2
        step = max(self.a.radius * rigid.scale, self.b.radius)
        unit = np.full(p, step)
        unit[:turns] /= self.size
        unit[turns + self.d :] /= self.size

        def cost(x: Array) -> float:
            there = moved(rigid, x * unit, self.centre)
            return PULL * self.misfit(there) - self.overlap(there)

        simplex = np.vstack([np.zeros(p), np.eye(p)]) - 1 / (p + 2)
        options = {"initial_simplex": simplex, "maxfev": iterations, "xatol": 1e-3, "fatol": 1e-5}
        found = minimize(cost, np.zeros(p), method="Nelder-Mead", options=options)
        return moved(rigid, found.x * unit, self.centre)

    def distance(self, one: RigidMap, other: RigidMap) -> float:
        """Root mean square distance between the images of A under two maps."""
        return float(np.sqrt(np.square(one.apply(self.even_a) - other.apply(self.even_a)).sum(axis=1).mean()))

    # -- all maps ---------------------------------------------------------------------------------------------------

    def search(self) -> list[Registered]:
        """Return all distinct optima of the overlap that are near the best, the best first."""
        return self.climb([self._placed(rotation) for rotation in _rotations(self.d, self.seed)])

    def climb(self, starts: list[RigidMap]) -> list[Registered]:
        """Refine the best of the starts; return distinct optima, the best first."""
        ranked = sorted(((self.overlap(start), -i) for i, start in enumerate(starts)), reverse=True)
        chosen: list[RigidMap] = []
        for overlap, i in ranked:
            if len(chosen) == REFINED or overlap < ranked[0][0] - 2 * WORSE:
                break
            chosen.append(starts[-i])
        quick = [self.refined(start, 25 * self.d) for start in chosen]
        found: list[Registered] = []
        best = max(self.overlap(rigid) for rigid in quick)
        for rigid in sorted(quick, key=self.overlap, reverse=True):
            if self.overlap(rigid) < best - WORSE or any(self._same(rigid, one.rigid) for one in found):
                continue
            finer = self.refined(rigid)
            if not any(self._same(finer, one.rigid) for one in found):
                found.append(Registered(finer, self.overlap(finer)))
        found.sort(key=lambda one: -one.overlap)
        return self.judged(found)

    def judged(self, found: list[Registered]) -> list[Registered]:
        """Say which optima, the best first, the shapes allow: those like the best whose supports may be the same."""
        best = self.same(found[0].rigid)
        behind = max(BEHIND, CLEARLY * np.sqrt(2) * best.spread)
        told = []
        for i, one in enumerate(found):
            worse = found[0].overlap - one.overlap > behind or best.p_value < OTHER_STATES
            if i and (worse or i >= MOST_TESTED):
                told.append(replace(one, possible=not worse))
                continue
            p = best.p_value if i == 0 else self.same(one.rigid, brief=True).p_value
            told.append(replace(one, p_value=p, possible=p >= OTHER_STATES))
        return told

    def _placed(self, rotation: Array) -> RigidMap:
        """Put A onto B with about this rotation: by the pairs if there are any, else by the middles of the supports."""
        if self.pairs is not None:
            A, B, variance = self.pairs
            a, b = A - A.mean(axis=0), B - B.mean(axis=0)
            left, extent, right = np.linalg.svd(a.T @ b)
            extent = np.where(extent > len(A) * variance, extent, 0.0)  # less than its errors: that says nothing
            if extent[0] > 0:
                told = left * (extent / extent[0]) @ right
                rotation = orthogonal_procrustes(np.eye(self.d), told + TIE * rotation)[0]
            factor = self.size / float(np.sqrt(self.even_a.var(axis=0).sum())) if self.scale else 1.0
            return RigidMap(rotation, B.mean(axis=0) - factor * A.mean(axis=0) @ rotation, factor)
        middle = self.even_a.mean(axis=0)
        factor = self.size / float(np.sqrt(self.even_a.var(axis=0).sum())) if self.scale else 1.0
        return RigidMap(rotation, self.centre - factor * middle @ rotation, factor)

    def _same(self, one: RigidMap, other: RigidMap) -> bool:
        return self.distance(one, other) < 1.5 * max(self.a.radius * one.scale, self.b.radius)

    def connected(self, one: RigidMap, other: RigidMap) -> bool:
        """Whether one map turns into the other without losing overlap, as for a disc."""
        turn = one.rotation.T @ other.rotation
        if np.linalg.det(turn) < 0:
            return False
        half = np.real(np.asarray(logm(turn))) / 2
        skew = (half - half.T) / 2
        values = np.array([skew[i, j] for i in range(self.d) for j in range(i + 1, self.d)])
        between = moved(one, np.concatenate([values, np.zeros(self.d + int(self.scale))]), self.centre)
        shift = self.centre - between.apply(self.even_a).mean(axis=0)
        between = RigidMap(between.rotation, between.shift + shift, between.scale)
        least = min(self.overlap(one), self.overlap(other))
        return self.overlap(between) > least - 0.02

    def continuous(self, maps: list[RigidMap]) -> bool:
        """Whether maps belong to a continuum: most of them turn into their nearest without losing overlap."""
        joined = 0
        for one in maps:
            like = [m for m in maps if m is not one and np.linalg.det(m.rotation.T @ one.rotation) > 0]
            joined += bool(like) and self.connected(one, min(like, key=lambda m: self.distance(one, m)))
        return joined > len(maps) / 2

    # -- its error --------------------------------------------------------------------------------------------------

    def covariance(self, rigid: RigidMap) -> Array:
        """Covariance of the parameters of `moved` at an optimum, from fits to random halves of both sets."""
        random = np.random.RandomState(self.seed)
        p = freedom(self.d, scale=self.scale)
        total = np.zeros(p)
        for _ in range(SPLITS):
            rows = [random.permutation(len(points)) for points in (self.a.points, self.b.points)]
            ends = []
            for half in (slice(0, None, 2), slice(1, None, 2)):
                part = Registration(
                    self.a.points[rows[0][half]],
                    self.b.points[rows[1][half]],
                    scale=self.scale,
                    pairs=self.pairs,
                    seed=self.seed,
                )
                part.centre, part.size = self.centre, self.size
                ends.append(parameters(rigid, part.refined(rigid), self.centre, scale=self.scale))
            total += np.square(ends[0] - ends[1]) / 4
        return np.diag(total / SPLITS)


def _rotations(d: int, seed: int) -> list[Array]:
    """Return rotations and reflections that cover O(d)."""
    if d == 1:
        return [np.eye(1), -np.eye(1)]
    flip = np.diag([1.0] * (d - 1) + [-1.0])
    if d == 2:
        turns = [
            np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]])
            for t in np.linspace(0, 2 * np.pi, ANGLES, endpoint=False)
        ]
        return turns + [flip @ turn for turn in turns]
    random = ortho_group.rvs(d, size=2 * ROTATIONS, random_state=seed)
    return list(random)
