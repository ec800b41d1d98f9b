"""A match of an instrument before and after it changed, laid onto the places that its sensors tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pyloca.estimator import training_embedding
from pyloca.matching._anchors import Anchors
from pyloca.matching._elastic import PLACES, spread_out
from pyloca.matching._matched import Match
from pyloca.matching._precision import look
from pyloca.matching._rigid import freedom, inverse
from pyloca.matching._sensors import Sensors, read_sensors
from pyloca.matching._solution import Settings
from pyloca.matching._solve import solve
from pyloca.matching._support import Support

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


def laid_onto(found: Match, sensors: Sensors, settings: Settings) -> tuple[Match, Sensors]:
    """Fit map and displacements to the places that sensors tell; where there is a doubt, the match stays as it is.

    Two fits have long waves of their own, which no rigid map undoes.
    """
    if sensors.doubt:
        return found, sensors
    some = np.array(spread_out(sensors.places, sensors.places.mean(axis=0), PLACED))
    A, B, n = sensors.places[some], found.b.embedding_[sensors.rows[some]], len(some)
    anchors = Anchors(A, B, np.ones(n), np.zeros(n), np.ones(n, dtype=bool))
    placed = solve(look(found.a), look(found.b), anchors, settings)
    if placed.how != "anchors" or not placed.candidates[0].possible:
        return found, replace(sensors, doubt="no smooth displacement of the new fit agrees with them")
    # Bursts share the errors of their places, which therefore do not look like errors of anchors: they come on top.
    shared = np.array([np.square(sensors.errors).mean(), 0.0])
    laid = replace(
        found,
        candidates=placed.candidates,
        chosen=0,
        how=f"{found.how} and sensors",
        residuals=placed.residuals,
        used=placed.used,
        joint=replace(placed.joint, rough=placed.joint.rough + shared),
        continuous=False,
    )
    return laid, sensors
