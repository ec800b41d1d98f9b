"""The map of two models by anchors that fix it, wrong ones among them left out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, f

from pyloca.matching._anchors import Anchors
from pyloca.matching._joint import Edge, Joint, refine
from pyloca.matching._precision import Instrument
from pyloca.matching._rigid import freedom, procrustes
from pyloca.matching._robust import robust_procrustes
from pyloca.matching._solution import (
    PRIOR_DEGREES,
    Candidate,
    Settings,
    Solution,
    expected_variance,
    relative_size,
    unrefined,
)
from pyloca.thresholds import CONTRADICTED, HIDDEN_PAIR, OFF_ANCHORS, OTHER_SIGMA, UNRELATED_PAIRS, WRONG_PAIR

__all__ = ["by_anchors"]

Array = NDArray[np.float64]

TRIED = 5000  # sets of pairs that may be wrong together


def by_anchors(a: Instrument, b: Instrument, anchors: Anchors, settings: Settings) -> Solution | None:
    """Fit the map to anchors; None if they do not fix it."""
    n, d = anchors.A.shape
    if n < d + 1:
        return None
    size, p = relative_size(a, b, settings.scale) ** 2, freedom(d, scale=settings.scale)
    expected = expected_variance(a, b, anchors, settings)
    found = robust_procrustes(
        anchors.A, anchors.B, anchors.weights, expected, PRIOR_DEGREES, scale=settings.scale, seed=settings.seed
    )
    free = np.ones((2, freedom(d, scale=True)), dtype=bool)
    free[0, -1], free[1] = settings.scale, False
    relative = anchors.weights / anchors.weights.mean()
    doubt = expected * np.maximum(1 / relative - 1, 0.0)  # of anchors that count less than others
    variance = anchors.variance + size * a.rough_at(anchors.A) + b.rough_at(anchors.B) + doubt

    def refined(used: NDArray[np.bool_], *, mirrored: bool = False) -> tuple[Joint, float, Edge]:
        A, B = anchors.A[used], anchors.B[used]
        rigid = procrustes(A, B, (relative / expected)[used], scale=settings.scale, mirrored=mirrored)
        edge = Edge(0, 1, A, B, variance[used])
        start = unrefined(a, b, rigid, B.mean(axis=0))
        return *refine(start, (a.seen, b.seen), (edge,), free, PRIOR_DEGREES), edge

    def judged(used: NDArray[np.bool_]) -> tuple[Solution | None, bool]:
        A, B = anchors.A[used], anchors.B[used]
        # In a plane, anchors on one line fit the mirror image as well.
        both = [refined(used, mirrored=mirrored)[:2] for mirrored in (False, True)]
        (joint, cost), (_, other) = sorted(both, key=lambda one: one[1])
        degrees = max(d * len(A) - p, 1)
        fixed = other - cost > chi2.isf(OFF_ANCHORS, 1) * max(cost / degrees, 1.0)
        if not fixed and cost <= CONTRADICTED * degrees:
            return None, False
        rigid = joint.maps[0]
        residuals = np.linalg.norm(anchors.B - rigid.apply(anchors.A), axis=1)
        apart, spread = float(np.square(residuals[used]).sum()) / (d * len(A)), float(B.var(axis=0).sum()) / d
        # A soft part, such as a room behind a door, may have swung far: no rigid map fits, and yet the bursts allow it.
        chance = float(chi2.sf(cost, degrees))
        possible = fixed and (apart < UNRELATED_PAIRS * spread or chance >= OFF_ANCHORS)
        sound = possible and cost <= CONTRADICTED * degrees
        words = _doubts(anchors, used, apart, spread, cost / degrees, possible=possible)
        if not sound:
            words = _other_sigma(anchors, expected, settings) or words
        candidate = Candidate(rigid, np.nan, anchors_p=chance, possible=possible)
        return Solution((candidate,), "anchors", residuals, used, joint, words=words), sound

    told, sound = judged(_agreeing(found.right, refined, d, p))
    if told is None or sound:
        return told
    fewer = _without_few(anchors, expected / relative, refined, p)
    rest, sound = (None, False) if fewer is None else judged(fewer)
    return rest if sound else told


def _agreeing(
    used: NDArray[np.bool_], refined: Callable[[NDArray[np.bool_]], tuple[Joint, float, Edge]], d: int, freedom: int
) -> NDArray[np.bool_]:
    """Leave out further pairs, one by one, that no displacement explains though it explains the others.

    A fit that is wrong by long waves hides a wrong pair from every rigid map: the residuals of right pairs are as
    large. With displacements they are small, and the wrong pair is as far off as before.
    """
    joint, cost, edge = refined(used)
    while used.sum() > d + 2:
        n, rows = int(used.sum()), np.flatnonzero(used)
        if chi2.sf(cost, d * n - freedom) >= OFF_ANCHORS:
            break
        off = joint.left_out(edge, (PRIOR_DEGREES + cost) / joint.degrees)
        fewer = used.copy()
        fewer[rows[off.argmax()]] = False
        without, less, rest = refined(fewer)
        degrees = PRIOR_DEGREES + max(d * (n - 1) - freedom, 0)
        if (cost - less) / d < (PRIOR_DEGREES + less) / degrees * f.isf(HIDDEN_PAIR, d, degrees):
            break
        used, joint, cost, edge = fewer, without, less, rest
    return used


def _without_few(
    anchors: Anchors, expected: Array, refined: Callable[[NDArray[np.bool_]], tuple[Joint, float, Edge]], p: int
) -> NDArray[np.bool_] | None:
    """Return all pairs but the fewest, less than half, without which the fits' own errors explain the others; or None.

    Two that were exchanged hide each other: without one of them, the other is as wrong as before. But where fits are
    bent, right pairs of one place contradict those of another; they agree among themselves, as wrong ones do not.
    """
    n, d = anchors.A.shape

    def rigid_cost(kept: NDArray[np.bool_]) -> float:
        A, B, w = anchors.A[kept], anchors.B[kept], 1 / expected[kept]
        apart = B - procrustes(A, B, w, scale=p > freedom(d)).apply(A)
        return float((w * np.square(apart).sum(axis=1)).sum())

    cost = refined(np.ones(n, dtype=bool))[1]
    for m in range(1, 1 + n - max(d + 2, n // 2 + 1)):
        if comb(n, m) > TRIED:
            break
        tried = [~np.isin(np.arange(n), rows) for rows in combinations(range(n), m)]
        kept = min(tried, key=rigid_cost)
        less, dof = refined(kept)[1], d * (n - m) - p
        strange = (cost - less) / (d * m) * (PRIOR_DEGREES + dof) / (PRIOR_DEGREES + less)
        if chi2.sf(less, dof) < OFF_ANCHORS or strange < f.isf(WRONG_PAIR, d * m, PRIOR_DEGREES + dof):
            continue
        return None if m > d and chi2.sf(rigid_cost(~kept), d * m - p) >= OFF_ANCHORS else kept
    return None


def _doubts(
    anchors: Anchors, used: NDArray[np.bool_], apart: float, spread: float, factor: float, *, possible: bool
) -> tuple[str, ...]:
    """Say what is wrong with anchors whose residuals have this variance per coordinate, and cost this per degree."""
    if not possible:
        return (
            f"the anchors do not belong together: after the best rigid map they are still {np.sqrt(apart):.3g} "
            f"apart per coordinate, where they spread over {np.sqrt(spread):.3g}. Are the pairs in the same order? "
            "If they are, one of the fits is bent where its bursts do not hold it, as between rooms that are joined "
            "far from the anchors.",
        )
    words = []
    if not used.all():
        verbs = ("contradicts", "was") if (~used).sum() == 1 else ("contradict", "were")
        words.append(f"{anchors.named(~used)} {verbs[0]} the others and {verbs[1]} left out")
    if factor > CONTRADICTED:
        words.append(
            f"the anchors are {np.sqrt(apart):.3g} apart per coordinate after the best rigid map, "
            f"{np.sqrt(factor):.2g} times as much as the fits' own errors explain: an anchor, a σ or one of the fits "
            "is wrong"
        )
    return tuple(words)


def _other_sigma(anchors: Anchors, expected: Array, settings: Settings) -> tuple[str, ...]:
    """Say by what factor coordinates differ, if a factor is all that anchors ask for."""
    n, d = anchors.A.shape
    if settings.scale or n < d + 2:
        return ()
    found = robust_procrustes(
        anchors.A, anchors.B, anchors.weights, expected, PRIOR_DEGREES, scale=True, seed=settings.seed
    )
    factor = found.rigid.scale
    explained = CONTRADICTED * max(factor, 1.0) ** 2 * float(expected.mean())
    if max(factor, 1 / factor) < OTHER_SIGMA or found.variance > explained:
        return ()  # a fit that is bent asks for a factor as well
    large, small = settings.names[::-1] if factor > 1 else settings.names
    return (
        f"the coordinates of {large!r} are {max(factor, 1 / factor):.3g} times as large as those of {small!r} where "
        "anchors compare them: is burst_std in the same units for both? If one of them is not known, fit without it",
    )
