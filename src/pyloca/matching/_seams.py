"""Errors of encoders, as far as their disagreement at anchors tells: what is left between two after a rigid map.

The error of encoder i is a smooth field e_i: a Gaussian process with the variance that its fit expects of itself and
waves about as long as what it has seen is wide. An anchor between i and j observes e_i(x) − e_j(x), with noise. The
expected fields given all anchors follow in closed form (kriging), and so do their remaining variances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar
from sklearn.gaussian_process.kernels import Matern

from pyloca.matching._rigid import parameter_jacobian

__all__ = ["WAVE", "Seams", "no_seams", "pair_seams", "solve_seams"]

Array = NDArray[np.float64]

SMOOTH = 1.5  # of Matérn's kernel: fields with one derivative
WAVE = 1.0  # length of the waves of an encoder's error, in root mean square distances of two of its states
INVERSIONS = 5  # steps of an iteration
NOISE = 1e-4  # least variance of an anchor, as a part of that of the fields: keeps equations solvable


@dataclass(frozen=True)
class Seams:
    """Error fields of all encoders, in the common coordinates.

    Attributes
    ----------
    places : (m, d) array
        Of the anchors.
    ends : (m, 2) array of int
        The two instruments of each.
    differences : (m, d) array
        Coordinates by the first less those by the second.
    variances, lengths : (K,) arrays
        Of the field of each instrument: variance per coordinate, and length of its waves.
    noise : (m,) array
        Variance of an anchor itself, per coordinate.
    """

    places: Array
    ends: NDArray[np.int64]
    differences: Array
    variances: Array
    lengths: Array
    noise: Array

    def errors(self, instrument: int, places: Array) -> tuple[Array, Array]:
        """Return the expected error (n, d) of an instrument's coordinates at places (n, d), and its variance (n,)."""
        weights, rest = self.weights(instrument, places)
        return weights @ self.differences, rest

    def weights(self, instrument: int, places: Array) -> tuple[Array, Array]:
        """Return what each anchor counts (n, m) for the error at places (n, d), and the variance that is left (n,)."""
        if not len(self.places):
            return np.zeros((len(places), 0)), np.full(len(places), self.variances[instrument])
        cross = self._cross(instrument, places)  # (n, m)
        weights = cho_solve(cho_factor(self.covariance()), cross.T).T
        rest = self.variances[instrument] - np.einsum("nm,nm->n", cross, weights)
        return weights, np.maximum(rest, 0.0)

    def undone(self, instrument: int, there: Array) -> Array:
        """Find places x (n, d) whose coordinates without error, x − e(x), are `there`: e is small and smooth."""
        places = there
        for _ in range(INVERSIONS):
            places = there + self.errors(instrument, places)[0]
        return places

    def log_likelihood(self, factor: float) -> float:
        """Return the log-likelihood of the differences if all variances of fields were `factor` times as large."""
        covariance = factor * self._fields() + np.diag(self.noise)
        low, lower = cho_factor(covariance, lower=True)
        weighted = cho_solve((low, lower), self.differences)
        d = self.differences.shape[1]
        return float(-np.sum(self.differences * weighted) / 2 - d * np.log(np.diag(low)).sum())

    def _signs(self, instrument: int) -> Array:
        return (self.ends[:, 0] == instrument).astype(float) - (self.ends[:, 1] == instrument)

    def _cross(self, instrument: int, places: Array) -> Array:
        kernel = Matern(length_scale=self.lengths[instrument], nu=SMOOTH)
        return np.asarray(self.variances[instrument] * kernel(places, self.places) * self._signs(instrument))

    def _fields(self) -> Array:
        total = np.zeros((len(self.places), len(self.places)))
        for i in range(len(self.variances)):
            signs = self._signs(i)
            total += signs[:, None] * self._cross(i, self.places)
        return total

    def covariance(self) -> Array:
        """Return the covariance (m, m) of the differences, the same for each coordinate."""
        return self._fields() + np.diag(self.noise)


def solve_seams(
    places: Array, ends: NDArray[np.int64], differences: Array, variances: Array, lengths: Array, noise: Array
) -> Seams:
    """Fit one factor on all variances to the anchors by likelihood: fits know their errors only roughly."""
    least = np.maximum(noise, NOISE * variances.mean())
    found = Seams(places, ends, differences, variances, lengths, least)
    if len(places) < 3:
        return found
    best = minimize_scalar(
        lambda x: -found.log_likelihood(np.exp(x)), bounds=(np.log(0.1), np.log(30)), method="bounded"
    )
    return Seams(places, ends, differences, float(np.exp(best.x)) * variances, lengths, least)


def no_seams(variance: float, d: int) -> Seams:
    """Return the error of a pair of encoders of which no anchor tells."""
    nowhere = np.empty((0, d))
    return Seams(nowhere, np.empty((0, 2), dtype=np.int64), nowhere, np.array([variance, 0.0]), np.ones(2), np.empty(0))


def pair_seams(
    placed: Array, B: Array, noise: Array, states: Array, prior: float, prior_degrees: float, *, scale: bool
) -> tuple[Seams, Array]:
    """Fit the error field of two encoders together to anchors that a rigid map has placed.

    `placed` and `B` (n, d) are coordinates of the anchors, `noise` (n,) their own variance, `states` (m, d) places of
    bursts, `prior` the variance per coordinate that the fits expect after the best rigid map, worth `prior_degrees`
    observations. Returns the field and the covariance of the parameters of the rigid map, by generalised least squares.
    """
    n, d = placed.shape
    centre = B.mean(axis=0)
    length = WAVE * float(np.sqrt(2 * states.var(axis=0).sum()))
    unit = Seams(placed, np.tile([0, 1], (n, 1)), placed - B, np.array([1.0, 0.0]), np.full(2, length), np.zeros(n))
    # A rigid map takes much of a field of long waves away: the field is larger than what is left of it.
    some = states[:: max(1, len(states) // 100)]
    left = 1 / _left_of(some, centre, length, scale=scale)
    relative = np.maximum(noise / (left * prior), NOISE)  # noise in units of the field
    correlation = unit.covariance() + np.diag(relative)
    inverse = np.linalg.inv(correlation)
    slopes = parameter_jacobian(placed, centre, scale=scale)  # (n, d, p)
    squares = float(np.einsum("nd,nm,md->", unit.differences, inverse, unit.differences))
    known = np.einsum("ndp,nm,mdq->pq", slopes, inverse, slopes)
    dof = max(d * n - slopes.shape[2], 0)
    variance = (prior_degrees * left * prior + squares) / (prior_degrees + dof)
    found = Seams(
        placed,
        unit.ends,
        unit.differences,
        np.array([variance, 0.0]),
        unit.lengths,
        np.maximum(variance * relative, noise),
    )
    return found, variance * np.linalg.pinv(known)


def _left_of(states: Array, centre: Array, length: float, *, scale: bool) -> float:
    """Return the part of the variance of a field that the best rigid map leaves, on average over states."""
    n, d = states.shape
    slopes = parameter_jacobian(states, centre, scale=scale).reshape(n * d, -1)
    basis = np.linalg.qr(slopes)[0]
    covariance = np.kron(Matern(length_scale=length, nu=SMOOTH)(states), np.eye(d))
    taken = np.trace(basis.T @ covariance @ basis)
    return float(max(1 - taken / (n * d), 1e-3))
