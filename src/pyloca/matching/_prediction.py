"""Readings of one instrument predicted from those of another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.stats import t as student

from pyloca.estimator import LOCA, Data, rows_as_fitted, training_embedding, transform_unnamed
from pyloca.matching._joint import Joint
from pyloca.matching._precision import decoder_slopes, decoder_variance, off_manifold

__all__ = ["Prediction", "predict"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """Predicted readings with their errors.

    Attributes
    ----------
    values : (n, D) array
        Readings of the target instrument.
    standard_errors : (n, D) array
        Of the values: errors of both encoders, of the map, of the anchors behind it and of the decoder; and of a
        reading that lies off the manifold, where the source has more sensors than coordinates to see that.
    trust : (n,) array
        The smaller of two: the source instrument's trust in the reading, and the part of the target's held-out points
        that lie at least as far from its training bursts. Near 0 outside the overlap.
    coordinates : (n, d) array
        In the coordinates of the target.
    coordinate_errors : (n,) array
        Standard error of these, per coordinate.
    degrees : float
        Degrees of freedom of the standard errors.

    Examples
    --------
    >>> Prediction(np.zeros((1, 1)), np.ones((1, 1)), np.ones(1), np.zeros((1, 2)), np.ones(1), 1e9).interval(0.95)[1]
    array([[1.95996399]])
    """

    values: Array
    standard_errors: Array
    trust: Array
    coordinates: Array
    coordinate_errors: Array
    degrees: float

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return intervals that hold the reading with a given probability, sensor by sensor.

        Parameters
        ----------
        level : float, default=0.95

        Returns
        -------
        low, high : (n, D) arrays
        """
        width = float(student.ppf((1 + level) / 2, self.degrees)) * self.standard_errors
        return self.values - width, self.values + width


def predict(source: LOCA, target: LOCA, joint: Joint, data: Data, i: int, j: int) -> Prediction:
    """Encode by instrument i, carry over to instrument j, decode."""
    Z, trust = transform_unnamed(source, data)
    W, errors = joint.carried(Z, i, j)
    if i != j:
        first, last = joint.maps[i], joint.maps[j]
        turn = first.rotation @ last.rotation.T
        strange = off_manifold(source, rows_as_fitted(source, data), Z)
        errors = errors + (first.scale / last.scale) ** 2 * turn.T @ strange @ turn
    spread = decoder_variance(target) + _pushed_variance(target, W, errors)
    per_coordinate = np.sqrt(np.trace(errors, axis1=1, axis2=2) / W.shape[1])
    inside = _support_trust(target, W)
    return Prediction(target.decode(W), np.sqrt(spread), np.minimum(trust, inside), W, per_coordinate, joint.degrees)


def _pushed_variance(target: LOCA, W: Array, errors: Array) -> Array:
    """Variances (n, D) of decoded readings from covariances (n, d, d) of coordinates."""
    slopes = decoder_slopes(target, W)
    return np.asarray(np.einsum("nDi,nij,nDj->nD", slopes, errors, slopes))


def _support_trust(model: LOCA, W: Array) -> Array:
    """Return the part of held-out points that lie at least as far from the training bursts as places W (n, d)."""
    scale = model.trust_scale_
    score = cKDTree(training_embedding(model)).query(W)[0] / scale.gap
    at_least = len(scale.scores) - np.searchsorted(scale.scores, score, side="left")
    return np.asarray((1 + at_least) / (1 + len(scale.scores)))
