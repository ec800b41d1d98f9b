"""A fitted model that only predicts: what `LOCA` computes of points, with NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._html import text_card
from pyloca._points import as_points, refuse_other_features
from pyloca.predict._network import Network

__all__ = ["TIE", "Predictor"]

Array = NDArray[np.float64]

# Scores are equal to this part: the rank of a held-out point must not depend on the rounding of the last digit.
TIE = 1e-9
SHOWN = 8  # sensors that are listed
BLOCK = 1 << 18  # numbers per temporary array: memory does not grow with the number of points


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
        lead, rows = self._rows(Y)
        return self._embed(rows).reshape(*lead, self.n_components)

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
        lead, rows = self._rows(Y)

        def slope(part: slice) -> Array:
            found = self.encoder.jacobian(self._scaled(rows[part]))
            return found / self.feature_scale if self.is_scaled else found

        values, slopes = self._embed(rows), _in_blocks(len(rows), self.n_components * self.encoder.widest, slope)
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
        left_out = np.isinf(self.feature_scale)
        used = np.where(left_out, 0.0, self.feature_scale)

        def decoded(part: slice) -> Array:
            values = self.decoder.apply(rows[part])
            return values * used + self.feature_shift if self.is_scaled else values

        values = _in_blocks(len(rows), self.decoder.widest, decoded)
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
        lead, rows = self._rows(Y)
        embedded = self._embed(rows)

        def strangeness(part: slice) -> Array:
            errors = np.sqrt(np.square(self.decoder.apply(embedded[part]) - self._scaled(rows[part])).sum(axis=1))
            squares = np.zeros((len(errors), len(self.training)))
            for axis in range(self.n_components):
                squares += np.square(embedded[part, axis, None] - self.training[:, axis])
            return np.maximum(errors / self.usual[0], np.sqrt(squares.min(axis=1)) / self.usual[1])

        scores = _in_blocks(len(rows), max(self.decoder.widest, len(self.training)), strangeness)
        at_least = len(self.scores) - np.searchsorted(self.scores, (1 - TIE) * scores, side="left")
        return np.asarray((1 + at_least) / (1 + len(self.scores))).reshape(lead)

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
        return f"<Predictor: {self.n_features} features → {self.n_components} coordinates>"

    def __str__(self) -> str:
        names = self.feature_names or [f"feature {i}" for i in range(self.n_features)]
        units = self.units or ("",) * self.n_features
        sensors = [f"{name} ({unit})" if unit else name for name, unit in zip(names, units, strict=True)]
        known = "known" if self.burst_std_known else "estimated: coordinates are right up to one factor"
        facts = [
            ("features", ", ".join(sensors[:SHOWN]) + f" and {self.n_features - SHOWN} more" * (len(sensors) > SHOWN)),
            ("dimensions", f"k = {self.intrinsic_dim} directions per burst, d = {self.n_components} coordinates"),
            ("σ", f"{self.burst_std:.4g} ({known})"),
            ("training", f"{len(self.training)} bursts"),
            *([("WARNING", finding) for finding in self.findings] or [("verdict", "no fault found")]),
        ]
        return text_card(facts)

    def _rows(self, Y: ArrayLike) -> tuple[tuple[int, ...], Array]:
        """Return leading axes, and points as rows."""
        points = as_points(Y, self.n_features, "Y", self.feature_names)
        return points.shape[:-1], points.reshape(-1, self.n_features)

    def _scaled(self, rows: Array) -> Array:
        return rows / self.feature_scale if self.is_scaled else rows

    def _embed(self, rows: Array) -> Array:
        values = _in_blocks(len(rows), self.encoder.widest, lambda part: self.encoder.apply(self._scaled(rows[part])))
        return _finite(values, "Y")


def _in_blocks(n: int, width: int, function: Callable[[slice], Array]) -> Array:
    """Compute rows block by block, `width` numbers per row at a time; overflows are refused, or strange, later."""
    step = max(1, BLOCK // width)
    with np.errstate(over="ignore", invalid="ignore"):
        first = function(slice(0, step))
        if n <= step:
            return first
        out = np.empty((n, *first.shape[1:]))
        out[:step] = first
        for start in range(step, n, step):
            out[start : start + step] = function(slice(start, start + step))
    return out


def _finite(values: Array, name: str) -> Array:
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values).all(axis=1)))
        raise ValueError(
            f"point {row} of {name} is so far from anything in the fit that its image is not a finite number; check "
            "its units."
        )
    return values
