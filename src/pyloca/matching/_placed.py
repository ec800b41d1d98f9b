"""A match of an instrument before and after it changed, laid onto the places that its sensors tell."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pyloca.errors import MatchError, TrustWarning
from pyloca.estimator import training_embedding
from pyloca.matching._anchors import Anchors
from pyloca.matching._elastic import PLACES, spread_out
from pyloca.matching._joint import Edge, refine
from pyloca.matching._match import match
from pyloca.matching._matched import Match
from pyloca.matching._precision import look
from pyloca.matching._rigid import freedom, inverse, procrustes
from pyloca.matching._sensors import WAVES, Sensors, read_sensors
from pyloca.matching._solution import PRIOR_DEGREES, unrefined
from pyloca.matching._support import Support
from pyloca.thresholds import CONTRADICTED

__all__ = ["laid_onto", "sensors_of", "weighed"]

Array = NDArray[np.float64]

HALF = 0.5  # of the anchors: if no more agree with the sensors, one of both is wrong as a whole
ORDER = "Are both tables of anchors in the same order, and is the first from before the change?"
PLACED = 60  # bursts at most that the new embedding is laid onto; displacements have long waves


def sensors_of(found: Match, means: Array) -> Sensors:
    """Ask sensors where the new bursts are; `means` (N, D) of these are as the networks of the old model see them."""
    old, new, d = found.a, found.b.embedding_, found.a.n_components_
    back = inverse(found.rigid)
    rows = np.flatnonzero(np.isfinite(new).all(axis=1))
    rows = rows[Support(training_embedding(old)).inside(back.apply(new[rows])) > 0]
    rows = rows[:: max(1, -(-len(rows) // PLACES))]
    scale = np.where(np.isinf(old.feature_scale_), 0.0, old.feature_scale_)  # a column that was left out
    # Of the map to new coordinates; those of the way back are the same, turned.
    variances = found.joint.covariance.diagonal()[: freedom(d, scale=found.scaled)].copy()
    turns = d * (d - 1) // 2
    if turns:
        variances[:turns] = variances[:turns].mean()
    variances[turns : turns + d] = back.scale**2 * variances[turns : turns + d].mean()
    error = found.rigid_error * back.scale
    return read_sensors(old, means[rows] * scale, new[rows], rows, back, variances, error)


def laid_onto(found: Match, sensors: Sensors, anchors: Anchors | None) -> tuple[Match, Sensors]:
    """Fit map and displacements to the places that sensors tell, and to anchors; where there is a doubt, stay.

    Two fits have long waves of their own, which no rigid map undoes. Bursts share the errors of their places, which
    therefore do not look like errors of anchors: they come on top. Beside anchors, which have their own, all bursts
    together count as `WAVES` observations of these.
    """
    if sensors.doubt:
        return found, sensors
    old, new, d = look(found.a), look(found.b), found.a.n_components_
    some = np.array(spread_out(sensors.places, sensors.places.mean(axis=0), PLACED))
    A, B, n = sensors.places[some], found.b.embedding_[sensors.rows[some]], len(some)
    size = found.rigid.scale**2
    variance = size * old.rough_at(A) + new.rough_at(B)
    edges = [Edge(0, 1, A, B, variance)]
    if anchors is not None:
        right = anchors.part(found.used)
        own = right.variance + size * old.rough_at(right.A) + new.rough_at(right.B)
        relative = right.weights / right.weights.mean()
        shared = size * np.square(sensors.errors[some]) * n / WAVES
        edges = [Edge(0, 1, A, B, variance + shared), Edge(0, 1, right.A, right.B, own / np.minimum(relative, 1.0))]
    free = np.ones((2, freedom(d, scale=True)), dtype=bool)
    free[0, -1], free[1] = found.scaled, False
    start = unrefined(old, new, procrustes(A, B, scale=found.scaled), B.mean(axis=0))
    joint, cost = refine(start, (old.seen, new.seen), edges, free, PRIOR_DEGREES)
    if cost > CONTRADICTED * d * sum(len(edge.A) for edge in edges):
        return found, replace(sensors, doubt="no smooth displacement of the new fit agrees with them")
    on_top = np.array([np.square(sensors.errors).mean(), 0.0])
    joint = replace(joint, rough=joint.rough + on_top)
    chosen = replace(found.candidates[found.chosen or 0], rigid=joint.maps[0])
    ends = (A, B) if anchors is None else (anchors.A, anchors.B)
    residuals = np.linalg.norm(ends[1] - joint.maps[0].apply(ends[0]), axis=1)
    laid = replace(
        found,
        candidates=(chosen,),
        chosen=0,
        how=f"{found.how} and sensors",
        residuals=residuals if anchors is None else np.where(anchors.seen, residuals, np.nan),
        used=np.ones(n, dtype=bool) if anchors is None else found.used,
        joint=joint,
        continuous=False,
    )
    return laid, sensors


def weighed(
    found: Match, means: Array, anchors: Anchors, unevenness: float, random_state: int
) -> tuple[Match, Sensors]:
    """Put the new model where anchors and sensors say; refuse anchors that the sensors contradict.

    Sensors are asked from the map of the anchors, and if they have a doubt there, from those of the shape: where a fit
    is bent, right anchors lead astray, and some look wrong. It is the sensors then that tell which are right.
    """
    sensors = None if found.chosen is None else sensors_of(found, means)
    if sensors is not None and not sensors.doubt:
        right = _agreeing(found, sensors, anchors)
        if right[anchors.seen].mean() > HALF:
            return laid_onto(_with(found, anchors, right), sensors, anchors)
        word = f"the anchors contradict the sensors, of which {sensors.told}. {ORDER}"
        doubted = replace(sensors, doubt="most anchors contradict them")
        return replace(found, warnings=(*found.warnings, word)), doubted
    rivals = list(_by_shape(found, means, unevenness, random_state))
    for other, told in rivals:
        right = _agreeing(other, told, anchors)
        if right[anchors.seen].mean() > HALF:
            return laid_onto(_with(replace(other, how=found.how), anchors, right), told, anchors)
    if sensors is None:
        raise MatchError(found.refusal())
    if rivals:
        raise MatchError(
            f"the anchors contradict the sensors. Under a map of the shape, {rivals[0][1].told}, and at most half of "
            f"the anchors agree with it. {ORDER} If the anchors are right all the same, take their map with choose=0 "
            "(--choose 0 in the shell)."
        )
    return found, sensors


def _by_shape(found: Match, means: Array, unevenness: float, random_state: int) -> Iterator[tuple[Match, Sensors]]:
    """Yield maps of the shapes with which sensors agree, and what these tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        shape = match(found.a, found.b, names=found.names, unevenness=unevenness, random_state=random_state)
    for i, one in enumerate(() if shape.continuous else shape.candidates):
        if one.possible:
            other = shape.choose(i)
            told = sensors_of(other, means)
            if not told.doubt:
                yield other, told


def _agreeing(found: Match, sensors: Sensors, anchors: Anchors) -> NDArray[np.bool_]:
    """Return which anchors (n,) lie where the sensors put them."""
    laid, told = laid_onto(found, sensors, None)
    if told.doubt:
        return np.zeros(len(anchors), dtype=bool)
    there, errors = laid.joint.carried(anchors.A, 0, 1)
    d = there.shape[1]
    total = errors + anchors.variance[:, None, None] * np.eye(d)
    apart = anchors.B - there
    strange = np.einsum("ni,nij,nj->n", apart, np.linalg.inv(total), apart) / d
    return np.asarray(anchors.seen & (strange <= CONTRADICTED))


def _with(found: Match, anchors: Anchors, right: NDArray[np.bool_]) -> Match:
    """Return the match with these anchors, and what is to be said of the others."""
    words = anchors.outside()
    wrong = anchors.seen & ~right
    if wrong.any():
        verbs = ("contradicts", "was") if wrong.sum() == 1 else ("contradict", "were")
        words = (*words, f"{anchors.named(wrong)} {verbs[0]} the sensors and {verbs[1]} left out")
    return replace(found, used=right, warnings=words)
