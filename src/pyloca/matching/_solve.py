"""Which rigid maps two models allow: by anchors, by anchors and shape, or by shape alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, f

from pyloca.errors import MatchError
from pyloca.estimator import training_embedding
from pyloca.matching._anchors import Anchors
from pyloca.matching._joint import Edge, Joint, Tether, refine
from pyloca.matching._precision import Instrument
from pyloca.matching._register import Registered, Registration
from pyloca.matching._rigid import freedom, procrustes
from pyloca.matching._robust import robust_procrustes
from pyloca.metrics import RigidMap
from pyloca.thresholds import CONTRADICTED, HIDDEN_PAIR, OFF_ANCHORS, OTHER_STATES, UNRELATED_PAIRS

__all__ = ["Candidate", "Settings", "Solution", "solve"]

Array = NDArray[np.float64]

PRIOR_DEGREES = 8.0  # observations that the fits' own word on their errors is worth
TIGHT = 1e-6  # part of the largest variance of a map's parameters below which none of them is


@dataclass(frozen=True)
class Candidate:
    """One way to lay the coordinates of A onto those of B.

    Attributes
    ----------
    rigid : RigidMap
        Coordinates of A to coordinates of B.
    overlap : float
        Mean of the part of A inside the support of B and of the part of B inside that of A.
    p_value : float
        Of the hypothesis that both cover the same support under this map; nan where that was not tested: with enough
        anchors it need not be so, and candidates that overlap clearly less than the best are not tested.
    density_p : float
        The same for the densities; nan if they were not compared.
    anchors_p : float
        Probability of the residuals of the anchors under this map; nan without anchors.
    possible : bool
        Whether this may be the right one.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca.metrics import RigidMap
    >>> mirror = Candidate(RigidMap(np.diag([-1.0, 1.0]), np.zeros(2)), overlap=0.97, p_value=0.4)
    >>> mirror.possible, mirror.rigid.apply([[1.0, 2.0]])
    (True, array([[-1.,  2.]]))
    """

    rigid: RigidMap
    overlap: float
    p_value: float = np.nan
    density_p: float = np.nan
    anchors_p: float = np.nan
    possible: bool = True


@dataclass(frozen=True)
class Settings:
    """What `match` was asked for."""

    scale: bool
    density: bool
    unevenness: float
    seed: int


@dataclass(frozen=True)
class Solution:
    """Candidates, the best first, and what is known about their errors.

    Attributes
    ----------
    candidates : tuple of Candidate
    how : str
        "anchors", "anchors and shape" or "shape".
    residuals : (n,) array
        Distance of each anchor from where it should be, under the best candidate.
    used : (n,) array of bool
        Anchors that were used.
    joint : Joint
        Both instruments in the coordinates of B, by the best candidate.
    continuous : bool
        Whether the possible candidates are samples of a continuum.
    words : tuple of str
        What the user should know.
    """

    candidates: tuple[Candidate, ...]
    how: str
    residuals: Array
    used: NDArray[np.bool_]
    joint: Joint
    continuous: bool = False
    words: tuple[str, ...] = ()


def solve(a: Instrument, b: Instrument, anchors: Anchors | None, settings: Settings) -> Solution:
    """Find all candidates."""
    if anchors is None:
        return _by_shape(a, b, None, settings)
    seen, doubts = anchors.seen, anchors.doubts
    anchors, words = _seen(anchors)
    found = _by_anchors(a, b, anchors, settings)
    if found is None:
        found = _by_shape(a, b, anchors, settings)
    else:
        places = training_embedding(a.model), training_embedding(b.model)
        shape = Registration(*places, scale=settings.scale, seed=settings.seed)
        scored = tuple(replace(one, overlap=shape.overlap(one.rigid)) for one in found.candidates)
        found = replace(found, candidates=scored)
    if not any(one.possible for one in found.candidates):
        words = (*doubts, *words)
    used, residuals = np.zeros(len(seen), dtype=bool), np.full(len(seen), np.nan)
    used[seen], residuals[seen] = found.used, found.residuals
    return replace(found, used=used, residuals=residuals, words=(*words, *found.words))


def _size(a: Instrument, b: Instrument, scale: bool) -> float:
    """Return about how large coordinates of B are beside those of A; 1 where both σ are known."""
    sizes = [training_embedding(one.model).var(axis=0).sum() for one in (a, b)]
    return float(np.sqrt(sizes[1] / sizes[0])) if scale else 1.0


def _start(a: Instrument, b: Instrument, rigid: RigidMap, centre: Array) -> Joint:
    """Return both instruments in the coordinates of B, before anything is refined."""
    maps = rigid, RigidMap(np.eye(len(centre)), np.zeros(len(centre)))
    rough = np.array([a.rough, b.rough])
    return Joint.start(maps, (a.elastic, b.elastic), np.tile(centre, (2, 1)), rough, PRIOR_DEGREES)


def _seen(anchors: Anchors) -> tuple[Anchors, tuple[str, ...]]:
    """Leave out anchors where coordinates of one of the instruments are extrapolated."""
    seen = anchors.seen
    if not seen.any():
        cause = "; ".join(anchors.doubts) or (
            "there is no overlap to match by. Give anchors from states that both have seen."
        )
        raise MatchError(f"none of the {len(anchors)} anchors lies where both instruments were fitted: {cause}")
    if seen.all():
        return anchors, ()
    A, B, weights, variance = (part[seen] for part in (anchors.A, anchors.B, anchors.weights, anchors.variance))
    which = ", ".join(str(i) for i in np.flatnonzero(~seen))
    told = f"anchors {which} lie outside what one of the instruments was fitted to, and were not used"
    return Anchors(A, B, weights, variance, seen[seen]), (told,)


# -- by anchors -------------------------------------------------------------------------------------------------------


def _by_anchors(a: Instrument, b: Instrument, anchors: Anchors, settings: Settings) -> Solution | None:
    """Fit the map to anchors; None if they do not fix it."""
    n, d = anchors.A.shape
    if n < d + 1:
        return None
    size = _size(a, b, settings.scale) ** 2
    expected = size * a.variance_at(anchors.A) + b.variance_at(anchors.B) + anchors.variance
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
        start = _start(a, b, rigid, B.mean(axis=0))
        return *refine(start, (a.seen, b.seen), (edge,), free, PRIOR_DEGREES), edge

    used = _agreeing(found.right, refined, d, freedom(d, scale=settings.scale))
    A, B = anchors.A[used], anchors.B[used]
    # In a plane, anchors on one line fit the mirror image as well.
    both = [refined(used, mirrored=mirrored)[:2] for mirrored in (False, True)]
    (joint, cost), (_, other) = sorted(both, key=lambda one: one[1])
    degrees = max(d * len(A) - freedom(d, scale=settings.scale), 1)
    fixed = other - cost > chi2.isf(OFF_ANCHORS, 1) * max(cost / degrees, 1.0)
    if not fixed and cost <= CONTRADICTED * degrees:
        return None
    rigid = joint.maps[0]
    residuals = np.linalg.norm(anchors.B - rigid.apply(anchors.A), axis=1)
    apart, spread = float(np.square(residuals[used]).sum()) / (d * len(A)), float(B.var(axis=0).sum()) / d
    # A soft part, such as a room behind a door, may have swung far: no rigid map fits, and yet the bursts allow it.
    p = float(chi2.sf(cost, degrees))
    possible = fixed and (apart < UNRELATED_PAIRS * spread or p >= OFF_ANCHORS)
    candidate = Candidate(rigid, np.nan, anchors_p=p, possible=possible)
    words = _doubts(used, apart, spread, cost / degrees, possible=possible)
    return Solution((candidate,), "anchors", residuals, used, joint, words=words)


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


def _doubts(used: NDArray[np.bool_], apart: float, spread: float, factor: float, *, possible: bool) -> tuple[str, ...]:
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
        left = ", ".join(str(i) for i in np.flatnonzero(~used))
        words.append(f"anchors {left} contradict the others and were left out")
    if factor > CONTRADICTED:
        words.append(
            f"the anchors are {np.sqrt(apart):.3g} apart per coordinate after the best rigid map, "
            f"{np.sqrt(factor):.2g} times as much as the fits' own errors explain: an anchor, a σ or one of the fits "
            "is wrong"
        )
    return tuple(words)


# -- by shape ---------------------------------------------------------------------------------------------------------


def _by_shape(a: Instrument, b: Instrument, anchors: Anchors | None, settings: Settings) -> Solution:
    """Complete what anchors leave open by the shapes of the supports."""
    A, B = training_embedding(a.model), training_embedding(b.model)
    d, variance = A.shape[1], _size(a, b, settings.scale) ** 2 * a.variance + b.variance
    pairs = None
    if anchors is not None:
        pairs = (anchors.A, anchors.B, float((variance + anchors.variance).mean()))
    shape = Registration(
        A,
        B,
        error=float(np.sqrt(variance)),
        scale=settings.scale,
        pairs=pairs,
        unevenness=settings.unevenness,
        seed=settings.seed,
    )
    found = shape.search()
    words: list[str] = []
    n = 0 if anchors is None else len(anchors)
    p_values = [float(chi2.sf(shape.misfit(one.rigid), n * d)) if n else np.nan for one in found]
    possible = [one.possible and not p < OFF_ANCHORS for one, p in zip(found, p_values, strict=True)]
    if settings.density and any(possible):
        found, possible = _by_density(shape, found, possible, words)
    order = sorted(range(len(found)), key=lambda i: (not possible[i], -found[i].overlap))
    candidates = tuple(
        Candidate(
            found[i].rigid, found[i].overlap, found[i].p_value, found[i].density_p, p_values[i], possible=possible[i]
        )
        for i in order
    )
    kept = [one.rigid for one in candidates if one.possible]
    continuous = len(kept) > 2 and shape.continuous(kept)
    best = candidates[0].rigid
    residuals = np.empty(0) if anchors is None else np.linalg.norm(anchors.B - best.apply(anchors.A), axis=1)
    if anchors is not None and n >= d + 1:
        where = "line" if d == 2 else "plane or line"
        words.insert(0, f"the {n} anchors are on one {where}, to within their errors; give one more that is off it")
    how = "shape" if anchors is None else "anchors and shape"
    free = np.zeros((2, freedom(d, scale=True)), dtype=bool)
    if anchors is not None and len(kept) == 1:
        free[0] = True
        free[0, -1] = settings.scale
        joint = _tethered(a, b, anchors, shape, best, free)
        candidates = (replace(candidates[0], rigid=joint.maps[0]), *candidates[1:])
        residuals = np.linalg.norm(anchors.B - joint.maps[0].apply(anchors.A), axis=1)
        return Solution(candidates, how, residuals, np.ones(n, dtype=bool), joint, continuous, tuple(words))
    joint, _ = refine(_start(a, b, best, shape.centre), (a.seen, b.seen), (), free, PRIOR_DEGREES)
    of_map = shape.covariance(best)
    joint.covariance[: len(of_map), : len(of_map)] = of_map
    return Solution(candidates, how, residuals, np.ones(n, dtype=bool), joint, continuous, tuple(words))


def _tethered(
    a: Instrument, b: Instrument, anchors: Anchors, shape: Registration, best: RigidMap, free: NDArray[np.bool_]
) -> Joint:
    """Fit map and displacements to what the shapes say near one candidate and to anchors that do not fix it alone.

    An anchor is where both encoders put it, with their errors there: a map through it would be wrong by these.
    """
    shape.pairs = None
    alone = shape.refined(best)
    variances = np.diag(shape.covariance(alone))
    tether = Tether(alone, np.diag(1 / np.maximum(variances, TIGHT * variances.max())))
    variance = anchors.variance + alone.scale**2 * a.rough_at(anchors.A) + b.rough_at(anchors.B)
    relative = anchors.weights / anchors.weights.mean()
    edge = Edge(0, 1, anchors.A, anchors.B, variance / np.minimum(relative, 1.0))
    return refine(_start(a, b, alone, shape.centre), (a.seen, b.seen), (edge,), free, PRIOR_DEGREES, tether)[0]


def _by_density(
    shape: Registration, found: list[Registered], possible: list[bool], words: list[str]
) -> tuple[list[Registered], list[bool]]:
    told = [
        replace(one, density_p=shape.density_p(one.rigid)) if ok else one
        for one, ok in zip(found, possible, strict=True)
    ]
    alike = [ok and one.density_p >= OTHER_STATES for one, ok in zip(told, possible, strict=True)]
    if not any(alike):
        words.append("the densities agree under none of the candidates: the instruments sampled states differently")
        return told, possible
    return told, alike
