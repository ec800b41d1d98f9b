"""Input of an estimator: points, bursts in any form, or statistics; and bursts as its networks see them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted
from torch import nn

from pyloca._arguments import as_numbers
from pyloca._points import refuse_other_features
from pyloca.bursts import Bursts, as_bursts, column_names, open_bursts
from pyloca.errors import BurstError
from pyloca.geometry import (
    BurstStatistics,
    Noise,
    burst_means,
    feature_scale,
    find_strays,
    holds_statistics,
    look_at_columns,
    read_statistics,
    set_aside,
)
from pyloca.networks import Standardized, apply_rows

__all__ = [
    "Data",
    "Reading",
    "as_source",
    "choose_scale",
    "divisors",
    "holds_bursts",
    "in_own_units",
    "inner",
    "means_like",
    "read",
    "read_like",
    "with_burst_std",
]

Array = NDArray[np.float64]
Data = Bursts | BurstStatistics | ArrayLike | Sequence[ArrayLike] | str | os.PathLike[str]


@dataclass(frozen=True)
class Reading:
    """Bursts as the networks of a fitted model see them: each feature divided by its scale.

    Attributes
    ----------
    bursts : Bursts or None
        Raw bursts; None when only statistics were given.
    statistics : BurstStatistics
    encoder, decoder : torch.nn.Module
        The networks of the model, for measurements in these units.
    n_components : int
    strays : dict of int to str
        Positions of the bursts that a fit would leave out, and why. Their statistics may have no tangents.

    Examples
    --------
    See `read_like`.
    """

    bursts: Bursts | None
    statistics: BurstStatistics
    encoder: nn.Module
    decoder: nn.Module
    n_components: int
    strays: dict[int, str] = field(default_factory=dict)

    @property
    def sound(self) -> NDArray[np.int64]:
        """Positions of the bursts that are not strays."""
        return np.delete(np.arange(len(self.statistics)), list(self.strays))

    def without_strays(self) -> Reading:
        """Leave out the strays.

        Returns
        -------
        Reading
        """
        if not self.strays:
            return self
        bursts = None if self.bursts is None else self.bursts[self.sound]
        return replace(self, bursts=bursts, statistics=self.statistics[self.sound], strays={})

    def embed(self) -> Array:
        """Embed the burst means.

        Returns
        -------
        (N, d) array
        """
        return apply_rows(self.encoder, self.statistics.means, self.n_components)


def as_source(data: Data) -> Bursts | BurstStatistics:
    """Convert any form of bursts to `Bursts`; statistics are returned as they are."""
    if isinstance(data, BurstStatistics):
        return data
    if isinstance(data, (str, os.PathLike)) and holds_statistics(data):
        return read_statistics(data)
    if hasattr(data, "columns") and hasattr(data, "iloc"):
        raise BurstError(
            "a data frame does not say which rows are a burst; use pyloca.bursts.from_table(frame, burst_id=...)."
        )
    return as_bursts(data)


def with_burst_std(data: Bursts | BurstStatistics, burst_std: float | None) -> Bursts | BurstStatistics:
    """Set σ of bursts with known perturbations, whose tangents are σ J: coordinates are then free of σ."""
    if burst_std is None or isinstance(data, BurstStatistics) or data.perturbed_dim is None:
        return data
    return Bursts(data, burst_std=burst_std)


def holds_bursts(X: Any) -> bool:
    """Whether `transform` is given bursts, and not points (n, D)."""
    if isinstance(X, (Bursts, BurstStatistics, str, os.PathLike)):
        return True
    if isinstance(X, (list, tuple)):
        return bool(X) and np.ndim(X[0]) == 2
    return getattr(X, "ndim", None) == 3


def choose_scale(asked: str | ArrayLike | None, data: Bursts | BurstStatistics) -> NDArray[np.float64] | None:
    """Choose the divisor of each feature, (D,); None leaves the features alone, infinity leaves one out.

    A constant is always left out, any other column that does not measure the state by "auto" only.
    """
    if isinstance(asked, str):
        return feature_scale(data)
    constant = look_at_columns(data).constant
    if asked is None:
        return np.where(constant, np.inf, 1.0) if constant.any() and not constant.all() else None
    scale = as_numbers("feature_scale", asked)
    if scale.shape != (data.n_features,):
        raise ValueError(
            f"feature_scale has shape {scale.shape}; expected ({data.n_features},), one number per feature."
        )
    if constant.any() and not constant.all():
        return np.where(constant, np.inf, scale)
    return None if np.all(scale == 1) else scale


def in_own_units(model: Any, values: Array) -> Array:
    """Return measurements as the networks see them in the units of the data.

    Parameters
    ----------
    model : LOCA
        Fitted.
    values : (…, D) array

    Returns
    -------
    (…, D) array
        A column that was left out is its mean.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=20, random_state=0).bursts
    >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(bursts)
    >>> in_own_units(model, read_like(model, bursts[:7]).statistics.means).shape
    (7, 2)
    """
    scale = model.feature_scale_
    if np.all(scale == 1):
        return values
    unused = np.isinf(scale)
    if not unused.any():
        return np.asarray(values * scale)
    return np.where(unused, model.decoder_.out_shift.numpy(), values * np.where(unused, 1.0, scale))


def read(
    data: Bursts | BurstStatistics,
    scale: Array | None,
    *,
    intrinsic_dim: int | None,
    measurement_noise: Noise | str | None,
    static: Bursts | None = None,
    **options: Any,
) -> tuple[Bursts | None, BurstStatistics]:
    """Return raw bursts (None if only statistics were given) and their statistics, in units of `scale`.

    The noise is in the units of `data`.
    """
    noise = measurement_noise.scaled(scale) if isinstance(measurement_noise, Noise) else measurement_noise
    if isinstance(data, BurstStatistics):
        if intrinsic_dim is not None and intrinsic_dim != data.intrinsic_dim:
            raise BurstError(
                f"the BurstStatistics have k = {data.intrinsic_dim} tangents per burst; k = {intrinsic_dim} is needed. "
                "Compute them again with that intrinsic_dim."
            )
        if static is not None:
            raise BurstError("static bursts tell the noise of raw bursts; BurstStatistics were given.")
        return None, data.scaled(scale).without_noise(noise)  # which has refused what cannot be used
    bursts = data if scale is None else data.scaled(scale)
    if static is not None and static.n_features != data.n_features:
        raise BurstError(f"the static bursts have {static.n_features} features; the bursts have {data.n_features}.")
    still = static if static is None or scale is None else static.scaled(scale)
    options |= {"measurement_noise": noise, "static": still}
    return bursts, BurstStatistics.from_bursts(bursts, intrinsic_dim, **options)


def read_like(model: Any, data: Data) -> Reading:
    """Read bursts of the same instrument as `model` was fitted to, as its networks see them.

    Parameters
    ----------
    model : LOCA
        Fitted.
    data : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics, or path

    Returns
    -------
    Reading

    Raises
    ------
    BurstError
        If the bursts cannot be used, or their features are not those of the fit.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=20, random_state=0).bursts
    >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(bursts)
    >>> read_like(model, bursts[:7]).embed().shape
    (7, 2)
    """
    check_is_fitted(model)
    source = with_burst_std(_source_like(model, data), model.burst_std_)
    _refuse_other_features(model, source)
    bursts, statistics = read(
        _cleaned_like(model, source),
        divisors(model),
        intrinsic_dim=model.intrinsic_dim_,
        measurement_noise=model.noise_,
        max_strays=model.max_strays,
        min_bursts=1,
    )
    networks = inner(model, "encoder"), inner(model, "decoder")
    strays = find_strays(statistics, model.max_strays, bursts=bursts)
    return Reading(bursts, statistics, *networks, model.n_components_, strays)


def means_like(model: Any, data: Data) -> Array:
    """Return burst means (N, D) as the networks of `model` see them: all that is needed to embed bursts."""
    source = _source_like(model, data)
    _refuse_other_features(model, source)
    source = _cleaned_like(model, source)
    scale = divisors(model)
    if isinstance(source, BurstStatistics):
        return source.means if scale is None else source.means / scale
    return burst_means(source if scale is None else source.scaled(scale))


def _source_like(model: Any, data: Data) -> Bursts | BurstStatistics:
    """Bursts from whatever holds them; a table is read by the columns of the fit."""
    table = getattr(model, "table_", None)
    if table is None or not isinstance(data, (str, os.PathLike)) or not hasattr(model, "feature_names_in_"):
        return as_source(data)
    moved = table.get("perturbations", ())
    if moved and not set(moved) <= set(column_names(data) or ()):
        moved = ()  # without displacements bursts are placed at their means, as those of an array are
    features = model.feature_names_in_.tolist()
    return open_bursts(data, burst_id=table["burst_id"], columns=features, perturbations=moved)


def _cleaned_like(model: Any, source: Bursts | BurstStatistics) -> Bursts | BurstStatistics:
    """Leave out what the rule of the fit calls a spike."""
    return source if isinstance(source, BurstStatistics) else set_aside(source, model.spike_rule_)


def inner(model: Any, name: str) -> nn.Module:
    """Return the encoder or decoder of `model` without the feature scale around it."""
    module: nn.Module = getattr(model, f"{name}_")
    if divisors(model) is None:
        return module
    assert isinstance(module, Standardized)
    return module.network


def divisors(model: Any) -> Array | None:
    """Return what each feature is divided by before the networks of `model` see it; None if by nothing."""
    scale: Array = model.feature_scale_
    return None if np.all(scale == 1) else scale


def _refuse_other_features(model: Any, source: Bursts | BurstStatistics) -> None:
    expected = model.n_features_in_
    if source.n_features != expected:
        raise BurstError(  # scikit-learn's own wording
            f"X has {source.n_features} features, but {type(model).__name__} is expecting {expected} features as input."
        )
    refuse_other_features(getattr(model, "feature_names_in_", None), model.units_, source.feature_names, source.units)
