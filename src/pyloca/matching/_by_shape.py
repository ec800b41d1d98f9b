"""Maps of two models by the shapes of what they saw, with anchors that do not fix the map or without any."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from pyloca.estimator import training_embedding
from pyloca.matching._anchors import Anchors
from pyloca.matching._joint import Edge, Joint, Tether, refine
from pyloca.matching._precision import Instrument
from pyloca.matching._register import Registered, Registration
from pyloca.matching._rigid import freedom
from pyloca.matching._solution import PRIOR_DEGREES, Candidate, Settings, Solution, relative_size, unrefined
from pyloca.metrics import RigidMap
from pyloca.thresholds import OFF_ANCHORS, OTHER_SIZE, OTHER_STATES

__all__ = ["by_shape"]

Array = NDArray[np.float64]

TIGHT = 1e-6  # part of the largest variance of a map's parameters below which none of them is


def by_shape(a: Instrument, b: Instrument, anchors: Anchors | None, settings: Settings) -> Solution:
    """Complete what anchors leave open by the shapes of the supports."""
    A, B = training_embedding(a.model), training_embedding(b.model)
    d, variance = A.shape[1], relative_size(a, b, settings.scale) ** 2 * a.variance + b.variance
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
    if not kept and not settings.scale:
        words += _other_sigma(A, B, settings)
    how = "shape" if anchors is None else "anchors and shape"
    free = np.zeros((2, freedom(d, scale=True)), dtype=bool)
    if anchors is not None and len(kept) == 1:
        free[0] = True
        free[0, -1] = settings.scale
        joint = _tethered(a, b, anchors, shape, best, free)
        candidates = (replace(candidates[0], rigid=joint.maps[0]), *candidates[1:])
        residuals = np.linalg.norm(anchors.B - joint.maps[0].apply(anchors.A), axis=1)
        return Solution(candidates, how, residuals, np.ones(n, dtype=bool), joint, continuous, tuple(words))
    joint, _ = refine(unrefined(a, b, best, shape.centre), (a.seen, b.seen), (), free, PRIOR_DEGREES)
    of_map = shape.covariance(best)
    joint.covariance[: len(of_map), : len(of_map)] = of_map
    return Solution(candidates, how, residuals, np.ones(n, dtype=bool), joint, continuous, tuple(words))


def _other_sigma(A: Array, B: Array, settings: Settings) -> list[str]:
    """Say by what factor the sizes of what was seen differ, if one could hardly be a part of the other."""
    factor = float(np.sqrt(B.var(axis=0).sum() / A.var(axis=0).sum()))
    if max(factor, 1 / factor) < OTHER_SIZE:
        return []
    large, small = settings.names[::-1] if factor > 1 else settings.names
    return [
        f"the coordinates of {large!r} spread over {max(factor, 1 / factor):.3g} times as much as those of {small!r}: "
        "is burst_std in the same units for both?"
    ]


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
    return refine(unrefined(a, b, alone, shape.centre), (a.seen, b.seen), (edge,), free, PRIOR_DEGREES, tether)[0]


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
