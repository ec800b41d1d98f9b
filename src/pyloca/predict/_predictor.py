"""A fitted model that only predicts: what `LOCA` computes of points, with NumPy alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._points import as_points, refuse_other_features
from pyloca.predict._network import Network

__all__ = ["TIE", "Predictor"]

Array = NDArray[np.float64]

# Scores are equal to this part: the rank of a held-out point must not depend on the rounding of the last digit.
TIE = 1e-9
PAIRS = 1 << 18  # distances at a time: memory does not grow with the number of points


@dataclass(frozen=True, eq=False, repr=False)
class Predictor:
    """What a fitted model knows and computes of points. `load` makes it; it never changes, so threads may share it.

    Attributes
    ----------
    n_features, n_components, intrinsic_dim : int
        D, d and k.
    feature_names, units : tuple of str or None
        Of the sensors, if known.
    feature_scale : (D,) array
        Divisor of each feature; infinite for columns that the fit left out.
    feature_shift : (D,) array
        What is decoded for columns that the fit left out; 0 for all others.
    burst_std : float
        σ, which sets the scale of the coordinates.
    burst_std_known : bool
        If false, σ was estimated, and coordinates are right up to one factor.
    findings : tuple of str
        Why the fit should not be believed; empty if no fault was found.
    encoder, decoder : Network
        For features in units of `feature_scale`.
    training : (n, d) array
        Embedded bursts of the training.
    usual : tuple of float
        Median round-trip error and median distance to `training`, of held-out points.
    scores : (m,) array
        Strangeness of held-out points, ascending.
    certificate : dict or None
        In a file of ``pyloca export``: how far it is from PyTorch.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> from pyloca.modelfile import model_to_bytes
    >>> from pyloca.predict import predictor_from_bytes
    >>> data = datasets.mushroom(n_bursts=100, n_points=20, random_state=0)
    >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
    >>> predictor = predictor_from_bytes(model_to_bytes(model), "memory")
    >>> bool(abs(predictor.encode(data.Y) - model.encode(data.Y)).max() < 1e-12)
    True
    >>> Z, J = predictor.encode_with_jacobian(data.Y[:5])
    >>> Z.shape, J.shape, predictor.decode(Z).shape, predictor.trust(data.Y[0]).shape
    ((5, 2), (5, 2, 2), (5, 2), ())
    """

    n_features: int
    n_components: int
    intrinsic_dim: int
    feature_names: tuple[str, ...] | None
    units: tuple[str, ...] | None
    feature_scale: Array
    feature_shift: Array
    burst_std: float
    burst_std_known: bool
    findings: tuple[str, ...]
    encoder: Network
    decoder: Network
    training: Array
    usual: tuple[float, float]
    scores: Array
    certificate: dict[str, Any] | None

    @cached_property
    def is_scaled(self) -> bool:
        """Whether features are divided by a scale."""
        return bool(np.any(self.feature_scale != 1))

    def encode(self, Y: ArrayLike) -> Array:
        """Compute the coordinates of points.

        Parameters
        ----------
        Y : (…, D) array
            Measurements in the units of the fit, with any leading axes. The columns of a data frame must be the
            features of the fit, in their order.

        Returns
        -------
        (…, d) array

        Raises
        ------
        ValueError
            If the last axis does not have D features, a column has another name, or a value is not finite or so large
            that its coordinates are not.
        """
        points = self._points(Y)
        rows = points.reshape(-1, self.n_features)
        return self._embed(rows).reshape(*points.shape[:-1], self.n_components)

    def encode_with_jacobian(self, Y: ArrayLike) -> tuple[Array, Array]:
        """Compute the coordinates of points and their derivatives, as the propagation of errors needs them.

        Parameters
        ----------
        Y : (…, D) array

        Returns
        -------
        values : (…, d) array
        jacobians : (…, d, D) array
            In units of the measurements.

        Raises
        ------
        ValueError
            As for `encode`.
        """
        points = self._points(Y)
        rows = points.reshape(-1, self.n_features)
        values, slopes = self._embed(rows), self.encoder.jacobian(rows)
        if self.is_scaled:
            slopes /= self.feature_scale
        lead = points.shape[:-1]
        return values.reshape(*lead, self.n_components), slopes.reshape(*lead, self.n_components, self.n_features)

    def decode(self, Z: ArrayLike) -> Array:
        """Compute the measurements at coordinates.

        Parameters
        ----------
        Z : (…, d) array

        Returns
        -------
        (…, D) array
            In the units of the fit.

        Raises
        ------
        ValueError
            If the last axis does not have d coordinates, or a value is not finite or so large that its measurements are
            not.
        """
        points = as_points(Z, self.n_components, "Z", [f"z{i}" for i in range(self.n_components)])
        rows = points.reshape(-1, self.n_components)
        with np.errstate(over="ignore", invalid="ignore"):  # refused below, by their number
            values = self.decoder.apply(rows)
            if self.is_scaled:
                left_out = np.isinf(self.feature_scale)
                values = np.where(left_out, self.feature_shift, values * np.where(left_out, 1.0, self.feature_scale))
        return _finite(values, "Z").reshape(*points.shape[:-1], self.n_features)

    def trust(self, Y: ArrayLike) -> Array:
        """Compute how far to believe the coordinates of points.

        Parameters
        ----------
        Y : (…, D) array

        Returns
        -------
        (…) array
            The fraction of held-out measurements that are at least as strange, by their round trip through the decoder
            and their distance to the training bursts: uniform between 0 and 1 for measurements of the same kind, near 0
            for those off the manifold. As ``LOCA.transform(Y, return_trust=True)``.

        Raises
        ------
        ValueError
            As for `encode`.
        """
        points = self._points(Y)
        rows = points.reshape(-1, self.n_features)
        embedded = self._embed(rows)
        with np.errstate(over="ignore", invalid="ignore"):  # infinitely far is strange enough
            errors = np.sqrt(np.square(self.decoder.apply(embedded) - rows).sum(axis=1))
            strangeness = np.maximum(errors / self.usual[0], self._gaps(embedded) / self.usual[1])
        at_least = len(self.scores) - np.searchsorted(self.scores, (1 - TIE) * strangeness, side="left")
        return np.asarray((1 + at_least) / (1 + len(self.scores))).reshape(points.shape[:-1])

    def check_features(self, names: Sequence[str] | None = None, units: Sequence[str] | None = None) -> None:
        """Refuse measurements of other sensors, in another order or in other units: once, before a service starts.

        Parameters
        ----------
        names, units : sequence of str, optional
            Those of the measurements. What they or the model do not know is not compared.

        Raises
        ------
        BurstError
            If they differ from those of the fit.
        """
        for what, given in (("names", names), ("units", units)):
            if given is not None and len(given) != self.n_features:
                raise ValueError(f"{len(given)} {what} were given; the model has {self.n_features} features.")
        refuse_other_features(self.feature_names, self.units, names, units)

    def __repr__(self) -> str:
        n = len(self.findings)
        said = f"{n} warning{'s' if n > 1 else ''}" if n else "no fault found"
        scale = "" if self.burst_std_known else ", up to one factor"
        return (
            f"<pyloca Predictor: {self.n_features} features → {self.n_components} coordinates, "
            f"σ = {self.burst_std:.4g}{scale}; {said}>"
        )

    def _points(self, Y: ArrayLike) -> Array:
        """Points in units of the feature scale."""
        points = as_points(Y, self.n_features, "Y", self.feature_names)
        return points / self.feature_scale if self.is_scaled else points

    def _embed(self, rows: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):  # refused by their number
            return _finite(self.encoder.apply(rows), "Y")

    def _gaps(self, embedded: Array) -> Array:
        """Distances to the nearest training burst, (n,)."""
        out = np.empty(len(embedded))
        rows = max(1, PAIRS // max(len(self.training), 1))
        for start in range(0, len(embedded), rows):
            part = embedded[start : start + rows]
            squares = np.zeros((len(part), len(self.training)))
            for axis in range(self.n_components):
                squares += np.square(part[:, axis, None] - self.training[:, axis])
            out[start : start + rows] = np.sqrt(squares.min(axis=1))
        return out


def _finite(values: Array, name: str) -> Array:
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values).all(axis=1)))
        raise ValueError(
            f"point {row} of {name} is so far from anything in the fit that its image is not a finite number; check "
            "its units."
        )
    return values
