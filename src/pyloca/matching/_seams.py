"""Errors of several encoders, as far as their disagreement at anchors tells: what takes the seams out of a fusion.

The error of encoder i is a smooth field e_i: a Gaussian process with the variance that its fit expects of itself and
waves about as long as half of what it has seen. An anchor between i and j observes e_i(x) − e_j(x), with noise. The
expected fields given all anchors follow in closed form (kriging), and so do their remaining variances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar
from sklearn.gaussian_process.kernels import Matern

__all__ = ["Seams", "solve_seams"]

Array = NDArray[np.float64]

SMOOTH = 1.5  # of Matérn's kernel: fields with one derivative
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
        if not len(self.places):
            return np.zeros_like(places), np.full(len(places), self.variances[instrument])
        factor = cho_factor(self._covariance())
        cross = self._cross(instrument, places)  # (n, m)
        expected = cross @ cho_solve(factor, self.differences)
        explained = np.einsum("nm,mn->n", cross, cho_solve(factor, cross.T))
        return expected, np.maximum(self.variances[instrument] - explained, 0.0)

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

    def _covariance(self) -> Array:
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
