"""A match of an instrument before and after it changed, laid onto the places that its sensors tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pyloca.estimator import training_embedding
from pyloca.matching._anchors import Anchors
from pyloca.matching._elastic import PLACES, spread_out
from pyloca.matching._joint import Edge, refine
from pyloca.matching._matched import Match
from pyloca.matching._precision import look
from pyloca.matching._rigid import freedom, inverse, procrustes
from pyloca.matching._sensors import WAVES, Sensors, read_sensors
from pyloca.matching._solution import PRIOR_DEGREES, unrefined
from pyloca.matching._support import Support
from pyloca.thresholds import CONTRADICTED

__all__ = ["laid_onto", "sensors_of"]

Array = NDArray[np.float64]

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

    Two fits have long waves of their own, which no rigid map undoes. Bursts share the errors of their places, so that
    all of them together count as `WAVES` observations of these.
    """
    if sensors.doubt:
        return found, sensors
    old, new, d = look(found.a), look(found.b), found.a.n_components_
    some = np.array(spread_out(sensors.places, sensors.places.mean(axis=0), PLACED))
    A, B, n = sensors.places[some], found.b.embedding_[sensors.rows[some]], len(some)
    size = found.rigid.scale**2
    shared = size * np.square(sensors.errors[some]) * n / WAVES
    edges = [Edge(0, 1, A, B, size * old.rough_at(A) + new.rough_at(B) + shared)]
    if anchors is not None:
        right = anchors.part(found.used)
        variance = right.variance + size * old.rough_at(right.A) + new.rough_at(right.B)
        edges.append(Edge(0, 1, right.A, right.B, variance / (right.weights / right.weights.mean())))
    free = np.ones((2, freedom(d, scale=True)), dtype=bool)
    free[0, -1], free[1] = found.scaled, False
    start = unrefined(old, new, procrustes(A, B, scale=found.scaled), B.mean(axis=0))
    joint, cost = refine(start, (old.seen, new.seen), edges, free, PRIOR_DEGREES)
    if cost > CONTRADICTED * d * sum(len(edge.A) for edge in edges):
        return found, replace(sensors, doubt="no smooth displacement of the new fit agrees with them")
    chosen = replace(found.candidates[found.chosen or 0], rigid=joint.maps[0])
    ends = (A, B, np.ones(n, dtype=bool)) if anchors is None else (anchors.A, anchors.B, found.used)
    laid = replace(
        found,
        candidates=(chosen,),
        chosen=0,
        how=f"{found.how} and sensors",
        residuals=np.linalg.norm(ends[1] - joint.maps[0].apply(ends[0]), axis=1),
        used=ends[2],
        joint=joint,
        continuous=False,
    )
    return laid, sensors
