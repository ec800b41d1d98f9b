"""Measurement noise of any shape: one covariance for all bursts, or one for each place.

A burst is looked at in coordinates in which its noise is white (`whitener`); `_local` splits its covariance there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh_tridiagonal, solve_triangular
from scipy.spatial import cKDTree

from pyloca._arguments import as_numbers, brief
from pyloca.errors import BurstError
from pyloca.thresholds import HIDDEN

__all__ = ["FLOOR", "Noise", "Whitener", "as_noise", "refuse_hidden"]

Array = NDArray[np.float64]

# A sensor without noise is not infinitely precise: its bursts bend. This part of the variance inside bursts is added to
# the noise where coordinates are chosen; it is not subtracted.
FLOOR = 1e-4

ROUNDING = 1e-9  # part of a sensor's spread that is no noise
DRAWS = 51  # of noise alone, with which bursts are compared

FORMS = 'None, "estimate", a number ≥ 0, standard deviations (D,) or (N, D), or covariances (D, D) or (N, D, D)'


@dataclass(frozen=True)
class Noise:
    """Noise covariances at some places, or one for all.

    Attributes
    ----------
    levels : (p, D) array of variances, or (p, D, D) array of covariances
        One for each place.
    places : (p, D) array or None
        Measurements at which they hold; None: p = 1, and the noise is the same everywhere.
    unit : (D,) array or None
        Divisors of the features when places are compared.

    Examples
    --------
    >>> import numpy as np
    >>> noise = as_noise(np.array([0.1, 0.2]), n=5, n_features=2)
    >>> noise.at(np.zeros((5, 2))).tolist()
    [[0.010000000000000002, 0.04000000000000001]]
    """

    levels: Array
    places: Array | None = None
    unit: Array | None = None

    @property
    def full(self) -> bool:
        """Whether covariances are known, and not only variances."""
        return self.levels.ndim == 3

    @property
    def deviations(self) -> Array:
        """Standard deviation of each sensor, (D,), from the mean variance of all places."""
        level = self.levels.mean(axis=0)
        return np.asarray(np.sqrt(np.diag(level) if self.full else level))

    def loudest(self, means: Array, least: float) -> list[int]:
        """List the sensors by their noise as a part of their spread, the loudest first.

        Parameters
        ----------
        means : (N, D) array
            Of the bursts; deviations in Pa and in K cannot be compared.
        least : float
            Sensors with less than this part are left out.

        Returns
        -------
        list of int
        """
        spread = means.std(axis=0)
        part = self.deviations / np.where(spread > 0, spread, 1.0)
        return [int(j) for j in np.argsort(-part, kind="stable") if part[j] > max(least * part.max(), ROUNDING)]

    def at(self, means: Array) -> Array:
        """Return the noise at some measurements, that of the nearest place.

        Parameters
        ----------
        means : (b, D) array

        Returns
        -------
        (b, D) or (b, D, D) array
            With a leading axis of 1 when the noise is the same everywhere.
        """
        if self.places is None:
            return self.levels
        unit = np.ones(means.shape[1]) if self.unit is None else self.unit
        return self.levels[cKDTree(self.places / unit).query(means / unit)[1]]

    def scaled(self, scale: Array | None) -> Noise:
        """Return the noise of features divided by `scale`.

        Parameters
        ----------
        scale : (D,) array or None
            A feature that is divided by infinity has no noise and does not tell places apart.

        Returns
        -------
        Noise
        """
        if scale is None:
            return self
        levels = self.levels / (np.outer(scale, scale) if self.full else np.square(scale))
        places = None if self.places is None else self.places / scale
        unit = None
        if self.unit is not None:
            unit = np.divide(self.unit, scale, out=np.ones_like(self.unit), where=np.isfinite(scale))
        return replace(self, levels=levels, places=places, unit=unit)

    def placed(self, means: Array) -> Noise:
        """Tie noise that was given per burst to the means of these bursts.

        Parameters
        ----------
        means : (N, D) array

        Returns
        -------
        Noise
        """
        if len(self.levels) == 1 or self.places is not None:
            return self
        spread = means.std(axis=0)
        return replace(self, places=means, unit=np.where(spread > 0, spread, 1.0))

    def whitener(self, means: Array, floor: Array) -> Whitener:
        """Return the change to coordinates in which the noise of some bursts, and a floor, are white.

        Parameters
        ----------
        means : (b, D) array
        floor : (D,) array
            Variances that are added to the noise.

        Returns
        -------
        Whitener
        """
        noise = self.at(means)
        if not self.full:
            return Whitener(np.asarray(np.sqrt(noise + floor)), noise)
        return Whitener(np.asarray(np.linalg.cholesky(noise + np.diag(floor)), dtype=np.float64), noise)


@dataclass(frozen=True)
class Whitener:
    """Linear change to coordinates in which the noise is white.

    Attributes
    ----------
    factor : (1 or b, D) or (1 or b, D, D) array
        L, diagonal or lower triangular, with L Lᵀ the noise covariance and its floor.
    noise : (1 or b, D) or (1 or b, D, D) array
        Variances or covariances of the noise.
    """

    factor: Array
    noise: Array

    def white(self, rows: Array) -> Array:
        """Return rows (b, m, D) in white coordinates, L⁻¹ y."""
        if self.factor.ndim == 2:
            return np.asarray(rows / self.factor[:, None])
        if len(self.factor) == 1:
            flat = rows.reshape(-1, rows.shape[-1])
            return np.asarray(solve_triangular(self.factor[0], flat.T, lower=True).T.reshape(rows.shape))
        return np.asarray(np.linalg.solve(self.factor, rows.transpose(0, 2, 1)).transpose(0, 2, 1))

    def back(self, rows: Array) -> Array:
        """Return rows (b, m, D) of white coordinates in those of the data, L u."""
        if self.factor.ndim == 2:
            return np.asarray(rows * self.factor[:, None])
        return np.asarray(
            np.einsum("bmd,bed->bme", rows, np.broadcast_to(self.factor, (len(rows), *self.factor.shape[1:])))
        )

    @property
    def noise_trace(self) -> Array:
        """Trace of the noise covariance in white coordinates, (1 or b,)."""
        if self.factor.ndim == 2:
            return np.asarray((self.noise / np.square(self.factor)).sum(axis=1))
        half = np.linalg.solve(self.factor, self.noise)  # L⁻¹ S
        return np.asarray(np.trace(np.linalg.solve(self.factor, half.transpose(0, 2, 1)), axis1=1, axis2=2))

    def noise_along(self, rows: Array) -> Array:
        """Return the covariance (b, k, k) of the noise along directions (b, k, D) of white coordinates."""
        if self.factor.ndim == 2:
            share = self.noise / np.square(self.factor)
            return np.asarray(np.einsum("bkd,bld->bkl", rows * share[:, None], rows))
        if len(self.factor) == 1:
            dual = solve_triangular(self.factor[0], np.eye(rows.shape[-1]), lower=True)  # L⁻¹
            share = dual @ self.noise[0] @ dual.T
            return np.asarray(np.einsum("bkd,de,ble->bkl", rows, share, rows))
        inner = np.linalg.solve(self.factor.transpose(0, 2, 1), rows.transpose(0, 2, 1))  # L⁻ᵀ u
        return np.asarray(np.einsum("bdk,bde,bel->bkl", inner, self.noise, inner))


def as_noise(value: Any, n: int, n_features: int, feature_names: Sequence[str] | None = None) -> Noise:
    """Check noise that was given, and put it into one form.

    Parameters
    ----------
    value : float, (D,), (N, D), (D, D) or (N, D, D) array
        A number, (D,) and (N, D) hold standard deviations; (D, D) and (N, D, D) covariances. If N = D, a symmetric
        matrix is taken for a covariance.
    n : int
        N.
    n_features : int
        D.
    feature_names : sequence of D str, optional
        For messages.

    Returns
    -------
    Noise

    Raises
    ------
    ValueError
        If the shape is none of these, or the values are not those of a noise.

    Examples
    --------
    >>> as_noise(0.1, n=5, n_features=2).levels.round(4).tolist()
    [[0.01, 0.01]]
    >>> as_noise([[0.01, 0.005], [0.005, 0.02]], n=5, n_features=2).full
    True
    """
    if isinstance(value, (str, bool)) or value is None:
        raise ValueError(f"measurement_noise must be {FORMS}; got {brief(value)}.")
    array = as_numbers("measurement_noise", value)
    d = n_features
    if array.ndim == 0:
        array = np.full(d, float(array))
    square = array.shape == (d, d) and (n != d or np.array_equal(array, array.T))
    if not (array.shape == (d,) or square or array.shape in ((n, d), (n, d, d))):
        raise ValueError(
            f"measurement_noise has shape {array.shape}; with N = {n} bursts of D = {d} sensors it must be {FORMS}."
        )
    if not np.isfinite(array).all():
        raise ValueError("measurement_noise has values that are not finite; expected numbers ≥ 0.")
    if square or array.ndim == 3:
        levels = array[None] if square else array
        _refuse_no_covariance(levels)
        return Noise((levels + levels.transpose(0, 2, 1)) / 2)
    if (array < 0).any():
        feature = int(np.argwhere(array < 0)[0][-1])
        name = f"feature {feature}" if feature_names is None else feature_names[feature]
        raise ValueError(f"measurement_noise must be {FORMS}; it is {array.min():g} for {name}.")
    return Noise(np.square(np.atleast_2d(array)))


def _refuse_no_covariance(levels: Array) -> None:
    size = np.abs(levels).max(axis=(1, 2))
    skew = np.abs(levels - levels.transpose(0, 2, 1)).max(axis=(1, 2))
    negative = np.linalg.eigvalsh((levels + levels.transpose(0, 2, 1)) / 2)[:, 0] < -1e-8 * size
    for wrong, words in ((skew > 1e-8 * size, "is not symmetric"), (negative, "has a negative eigenvalue")):
        if wrong.any():
            which = f" of burst {int(np.argmax(wrong))}" if len(levels) > 1 else ""
            raise ValueError(
                f"measurement_noise{which} {words}: an array with a last axis pair (D, D) holds covariances. Pass "
                "standard deviations as (D,)."
            )


def refuse_hidden(shares: Array, k: int, n_features: int, count: float) -> None:
    """Refuse bursts that are nearly all noise along a tangent; `shares` (N,) are the largest noise shares.

    The leading directions of few points of noise alone have more than the variance of the noise: `count` is how many
    points a typical burst has.
    """
    typical = float(np.median(shares))
    if typical > HIDDEN * min(1.0, _share_of_noise_alone(k, n_features, count)):
        raise BurstError(
            f"the measurement noise is {min(typical, 1):.0%} of the variance of a typical burst along one of its "
            f"k = {k} tangents, as in noise alone: nothing is left to learn from. Take larger bursts, average several "
            "readings, or lower intrinsic_dim; if the noise was given, check its unit."
        )


def _share_of_noise_alone(k: int, dim: int, count: float) -> float:
    """Compute the noise share (median) along the k-th direction of bursts of white noise, which `_local` would find."""
    if not np.isfinite(count):
        return 1.0
    freedom, random = int(count) - 1, np.random.RandomState(0)
    small, large = min(dim, freedom), max(dim, freedom)
    if small < k:
        return 1.0
    # Eigenvalues of Wishart matrices are those of a random tridiagonal matrix (Dumitriu and Edelman)
    found = []
    for _ in range(DRAWS):
        diagonal = random.chisquare(large - np.arange(small))
        below = random.chisquare(np.arange(small - 1, 0, -1)) if small > 1 else np.zeros(0)
        main = diagonal + np.append(0, below)
        found.append(
            eigvalsh_tridiagonal(main, np.sqrt(diagonal[:-1] * below), select="i", select_range=(small - k,) * 2)
        )
    lean = 1 + (dim - k) / freedom  # as in `split_noise`
    return float(lean * freedom / np.median(found))
