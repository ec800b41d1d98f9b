"""Out-of-sample extension: embedding points that the method was not fitted to."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from pyloca.baselines._kernels import CUT, Euclidean, Metric, max_min, slabs
from pyloca.errors import TrustWarning

__all__ = ["GeometricHarmonics", "HarmonicExtension", "nystrom", "warn_outside"]

Array = NDArray[np.float64]

CENTRES = 1000  # points that carry the harmonics
PROBE = 500  # points on which the scale is chosen
SCALES = 4.0 ** np.arange(1, 9)  # candidates for ε, in units of the squared max–min spacing
CONDITION = 1e-9  # harmonics whose eigenvalue is below this fraction of the first amplify rounding errors
HELD_OUT = 5  # every fifth point is held out to score a scale
LEFT_OVER = 6  # neighbours from which residuals are interpolated
OUTSIDE = 2.0  # a point this many spacings away from all training points is not among them


def nystrom(
    points: Array, metric: Metric, epsilon: float, weights: Array, vectors: Array, *, dense: bool, spacing: float
) -> Array:
    """Return Σ_j p(y, y_j) v_j, p(y, y_j) ∝ exp(−‖y − y_j‖²/2ε) w_j, for every row y of `points` (n, D) → (n, m).

    Coordinates are λᵗ ψ, and P ψ = λ ψ at the training points, so `vectors` are λᵗ⁻¹ ψ. The exponent is relative to the
    nearest training point, so a point far from all of them gets the coordinates of the nearest, not 0/0.
    """
    out = np.empty((len(points), vectors.shape[1]))
    nearest = np.empty(len(points))
    for rows in slabs(len(points), len(metric)):
        squared = metric.squared_from(points[rows])
        nearest[rows] = squared.min(axis=1)
        if not dense:  # as the kernel among the training points was cut
            squared[(squared > -2 * epsilon * np.log(CUT)) & (squared > nearest[rows, None])] = np.inf
        kernel = np.exp((nearest[rows, None] - squared) / (2 * epsilon)) * weights
        out[rows] = kernel @ vectors / kernel.sum(axis=1)[:, None]
    warn_outside(nearest, spacing)
    return out


def warn_outside(nearest: Array, spacing: float) -> None:
    """Warn about points whose squared distance to the training points exceeds that between training points."""
    far = np.flatnonzero(nearest > OUTSIDE**2 * spacing)
    if len(far):
        times = np.sqrt(nearest.max() / spacing)
        warnings.warn(
            f"{len(far)} of {len(nearest)} points (first: {far[0]}) lie outside the range of the training points, up "
            f"to {times:.1f} times their largest spacing away: their coordinates are extrapolated. Fit to points that "
            "cover this range.",
            TrustWarning,
            stacklevel=4,
        )


class HarmonicExtension:
    """Mixin that gives a method `transform` by geometric harmonics."""

    def _remember(self, points: Array, embedding: Array, random: np.random.RandomState) -> None:
        self._harmonics = GeometricHarmonics(points, embedding, random)

    def _extend(self, points: Array) -> Array:
        return self._harmonics(points)


class GeometricHarmonics:
    """Extend values at the training points by eigenfunctions of a Gaussian kernel (Coifman and Lafon 2006).

    f(y) = Σ_l ⟨f, φ_l⟩ / λ_l · Σ_j k(y, y_j) φ_l(j), over the l that do not amplify rounding errors. The scale of the
    kernel is the one that extends best from four fifths of the points to the rest. Residuals at the training points,
    where the function is not smooth, are interpolated by inverse squared distances, so that training points keep their
    values.
    """

    def __init__(self, points: Array, values: Array, random: np.random.RandomState) -> None:
        self._given = points, values, int(random.randint(2**31 - 1))
        self._made = False  # built on demand: they cost as much as a fit, and new points are not always needed

    def _make(self) -> None:
        points, values, seed = self._given
        random = np.random.RandomState(seed)
        self._spacing = max_min(Euclidean(points))
        self._mean = values.mean(axis=0)
        order = random.permutation(len(points))
        probe, centres = order[:PROBE], np.sort(order[:CENTRES])
        held = np.arange(len(probe)) % HELD_OUT == 0
        self.epsilon, best = self._spacing, np.inf
        for scale in SCALES:
            known, asked = probe[~held], probe[held]
            rule = _harmonics(Euclidean(points[known]), values[known] - self._mean, scale * self._spacing)
            guess = _kernel(Euclidean(points[known]), points[asked], scale * self._spacing) @ rule
            error = float(np.square(guess - (values[asked] - self._mean)).sum())
            if error < best:
                self.epsilon, best = scale * self._spacing, error
        self._centres = Euclidean(points[centres])
        self._rule = _harmonics(self._centres, values[centres] - self._mean, self.epsilon)
        self._neighbors = NearestNeighbors(n_neighbors=min(LEFT_OVER, len(points))).fit(points)
        self._left = values - self._smooth(points)
        self._made = True

    def _smooth(self, points: Array) -> Array:
        out = np.empty((len(points), self._rule.shape[1]))
        for rows in slabs(len(points), len(self._centres)):
            out[rows] = self._mean + _kernel(self._centres, points[rows], self.epsilon) @ self._rule
        return out

    def __call__(self, points: Array) -> Array:
        """Extend to points (n, D) → (n, m)."""
        if not self._made:
            self._make()
        distance, near = self._neighbors.kneighbors(points)
        squared = np.square(distance)
        warn_outside(squared[:, 0], self._spacing)
        weight = 1 / (squared + 1e-12 * self._spacing)
        weight /= weight.sum(axis=1, keepdims=True)
        return self._smooth(points) + np.einsum("nj,njm->nm", weight, self._left[near])


def _kernel(metric: Euclidean, points: Array, epsilon: float) -> Array:
    return np.exp(metric.squared_from(points) / (-2 * epsilon))


def _harmonics(metric: Euclidean, values: Array, epsilon: float) -> Array:
    """Return Σ_l φ_l ⟨φ_l, f⟩ / λ_l, which a row of the kernel is multiplied by."""
    kernel = np.exp(metric.squared(np.arange(len(metric))) / (-2 * epsilon))
    eigenvalues, vectors = scipy.linalg.eigh(kernel, driver="evd", overwrite_a=True, check_finite=False)
    keep = eigenvalues > CONDITION * eigenvalues[-1]
    vectors = vectors[:, keep]
    return vectors @ ((vectors.T @ values) / eigenvalues[keep, None])
