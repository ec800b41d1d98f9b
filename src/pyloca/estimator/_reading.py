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

from pyloca.bursts import Bursts, as_bursts, column_names, open_bursts, split_indices
from pyloca.errors import BurstError
from pyloca.findings import no_displacement, noise_words
from pyloca.geometry import (
    BurstStatistics,
    Noise,
    SpikeRule,
    as_noise,
    burst_means,
    connected_graph,
    feature_scale,
    find_spikes,
    find_strays,
    look_at_columns,
    sample_rows,
)
from pyloca.networks import Standardized, apply_rows
from pyloca.thresholds import CONNECTED, MIN_BURSTS

__all__ = [
    "Data",
    "Prepared",
    "Reading",
    "as_source",
    "choose_scale",
    "divisors",
    "holds_bursts",
    "in_own_units",
    "inner",
    "left_out",
    "means_like",
    "noise_of",
    "prepare",
    "read",
    "read_like",
    "refuse_unfit",
    "told_noise",
    "with_burst_std",
]

Array = NDArray[np.float64]
MIN_TRAINING = 8  # bursts left to train on
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


def _without_spikes(data: Bursts | BurstStatistics) -> tuple[Bursts | BurstStatistics, SpikeRule | None]:
    """Return the bursts without spikes, and the rule by which those of new bursts are to be found; None if none is."""
    # A regression on known perturbations sees its outliers itself, in the residuals.
    if isinstance(data, BurstStatistics) or data.screened or data.perturbed_dim is not None:
        return data, None
    rule = find_spikes(data)
    return _follow(data, rule), rule


def _follow(data: Bursts, rule: SpikeRule | None) -> Bursts:
    """Set aside what `rule` calls a spike, and let nobody look for others."""
    if data.screened or data.perturbed_dim is not None:
        return data
    return data.set_points_aside([], []) if rule is None else rule.clean(data)


def holds_bursts(X: Any) -> bool:
    """Whether `transform` is given bursts, and not points (n, D)."""
    if isinstance(X, (Bursts, BurstStatistics, str, os.PathLike)):
        return True
    if isinstance(X, (list, tuple)):
        return bool(X) and np.ndim(X[0]) == 2
    return getattr(X, "ndim", None) == 3


def choose_scale(asked: str | ArrayLike | None, data: Bursts | BurstStatistics) -> NDArray[np.float64] | None:
    """Choose the divisor of each feature, (D,); None leaves the features alone, infinity leaves one out.

    A constant is always left out, any other column that is no measurement by "auto" only.
    """
    if isinstance(asked, str):
        return feature_scale(data)
    constant = look_at_columns(data).constant
    if asked is None:
        return np.where(constant, np.inf, 1.0) if constant.any() and not constant.all() else None
    scale = np.asarray(asked, dtype=np.float64)
    if scale.shape != (data.n_features,):
        raise ValueError(
            f"feature_scale has shape {scale.shape}; expected ({data.n_features},), one number per feature."
        )
    if constant.any() and not constant.all():
        return np.where(constant, np.inf, scale)
    return None if np.all(scale == 1) else scale


def left_out(ready: Prepared) -> tuple[tuple[str, ...], Array | float]:
    """Say which columns a fit leaves out and why; also what the decoder returns for them, (D,)."""
    scale, data = ready.scale, ready.source[ready.rows]
    if scale is None or not np.isinf(scale).any():
        return (), 0.0
    look, features = look_at_columns(data), np.flatnonzero(np.isinf(scale))
    usual = np.where(look.constant, look.means[0], look.means.mean(axis=0))
    note = (
        f"left out, because they are no measurement of the state: {look.listed(features.tolist(), data)}. "
        "The model takes these columns, but they have no influence."
    )
    return (note,), np.where(np.isinf(scale), usual, 0.0)


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
                f"the BurstStatistics have k = {data.intrinsic_dim} tangents per burst; k = {intrinsic_dim} is needed."
            )
        if static is not None:
            raise BurstError("static bursts tell the noise of raw bursts; BurstStatistics were given.")
        return None, data.scaled(scale).without_noise(noise)  # which has refused what cannot be used
    bursts = data if scale is None else data.scaled(scale)
    still = static if static is None or scale is None else static.scaled(scale)
    options |= {"measurement_noise": noise, "static": still}
    return bursts, BurstStatistics.from_bursts(bursts, intrinsic_dim, **options)


@dataclass(frozen=True)
class Prepared:
    """Data as a fit sees them, before any training.

    Attributes
    ----------
    bursts : Bursts or None
        Raw bursts in units of `scale`; None when only statistics were given.
    statistics : BurstStatistics
        The same.
    scale : (D,) array or None
        Divisor of each feature.
    burst_std : float or None
        σ if it is known, by the model or the bursts.
    source : Bursts or BurstStatistics
        All bursts as they came; the above are of the sound ones, exactly as if there had been no others.
    rows : (n,) array of int
        Positions of the sound bursts among all.
    strays : dict of int to str
        Positions of the others, and why they are left out.
    spikes : SpikeRule or None
        The rule by which points were set aside; None if there were no spikes.
    """

    bursts: Bursts | None
    statistics: BurstStatistics
    scale: Array | None
    burst_std: float | None
    source: Bursts | BurstStatistics
    rows: NDArray[np.int64]
    strays: dict[int, str]
    spikes: SpikeRule | None

    @property
    def ids(self) -> NDArray[Any]:
        """Ids of all bursts."""
        return self.source.ids


def prepare(model: Any, data: Data, static: Data | None = None) -> Prepared:
    """Read bursts as ``model.fit`` does: the one way from data to statistics, for fits and for a look before them.

    Parameters
    ----------
    model : LOCA
        Only its parameters are used.
    data : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics, or path
    static : bursts in any form, optional
        Taken while nothing was perturbed: they tell the measurement noise.

    Returns
    -------
    Prepared

    Raises
    ------
    BurstError
        If the bursts cannot be used.
    ValueError
        If a parameter does not match the data.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=20, random_state=0).bursts
    >>> prepare(LOCA(2), bursts).statistics.intrinsic_dim
    2
    """
    source, rule = _without_spikes(with_burst_std(as_source(data), model.burst_std))
    options: dict[str, Any] = {
        "intrinsic_dim": model.intrinsic_dim,
        "measurement_noise": _noise(model.measurement_noise, source),
        "static": None if static is None else _raw(static),
    }
    if model.n_components != "auto" and not isinstance(source, BurstStatistics):
        options["max_dim"] = model.n_components
    scale = choose_scale(model.feature_scale, source)
    try:
        bursts, statistics = read(source, scale, max_strays=model.max_strays, **options)
        strays = find_strays(statistics, model.max_strays)
        rows = np.delete(np.arange(len(source)), list(strays))
        if strays:
            if len(rows) < MIN_BURSTS:
                raise BurstError(
                    f"{len(rows)} bursts are left without {len(strays)} that cannot be used "
                    f"({statistics.listed(list(strays))}); at least {MIN_BURSTS} are needed. Measure more."
                )
            # Again from the beginning: a burst far away also spoils the scales of the features.
            scale = choose_scale(model.feature_scale, source[rows])
            bursts, statistics = read(source[rows], scale, **options)
    except BurstError as error:
        still = None if isinstance(source, BurstStatistics) else no_displacement(source)
        if still is not None:  # a cause of which the error tells only a symptom
            raise BurstError(still.message) from error
        raise
    known = model.burst_std if model.burst_std is not None or bursts is None else bursts.burst_std
    return Prepared(bursts, statistics, scale, known, source, rows, strays, rule)


def _raw(static: Data) -> Bursts:
    source = as_source(static)
    if isinstance(source, BurstStatistics):
        raise BurstError("static must be raw bursts, whose points tell the noise; BurstStatistics were given.")
    return source


def noise_of(ready: Prepared) -> Noise | None:
    """Return the noise that was taken into account, in the units of the measurements."""
    noise = ready.statistics.instrument
    if noise is None or ready.scale is None:
        return noise
    unused = np.isinf(ready.scale)  # which has no noise, and does not tell places apart
    noise = noise.scaled(1 / np.where(unused, 1.0, ready.scale))
    return noise if noise.unit is None else replace(noise, unit=np.where(unused, np.inf, noise.unit))


def told_noise(ready: Prepared, asked: Any, static: Data | None) -> str:
    """Say which noise was taken into account, in the units of the measurements, and where it is known from.

    Parameters
    ----------
    ready : Prepared
    asked : None, "estimate", float or array
        `measurement_noise` of the model.
    static : bursts in any form, or None
        As they were given to `prepare`.

    Returns
    -------
    str
        As `pyloca.findings.noise_words` gives it; empty when no noise was taken into account.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=20, random_state=0).bursts.without_perturbations()
    >>> told_noise(prepare(LOCA(2, measurement_noise=1e-4), bursts), 1e-4, None)[:40]
    'as given: feature 0 0.0001, feature 1 0.'
    """
    if static is not None:
        origin = "measured in the static bursts"
    elif isinstance(asked, str):
        origin = "estimated"
    else:
        origin = "stored with the bursts" if asked is None else "as given"
    return noise_words(ready.statistics, origin, ready.scale)


def _noise(asked: Any, source: Bursts | BurstStatistics) -> Any:
    """Put noise that was given into one form, in the units of the measurements; leave None and "estimate" alone."""
    if asked is None and isinstance(source, Bursts) and source.perturbed_dim is None:
        asked = source.noise  # which the bursts know to be in them
    if asked is None or (isinstance(asked, str) and asked == "estimate") or isinstance(asked, Noise):
        return asked
    noise = as_noise(asked, len(source), source.n_features, source.feature_names)
    if len(noise.levels) == 1:
        return noise
    return noise.placed(source.means if isinstance(source, BurstStatistics) else burst_means(source))


def refuse_unfit(model: Any, statistics: BurstStatistics) -> None:
    """Raise what ``model.fit`` refuses of statistics that could be computed.

    Parameters
    ----------
    model : LOCA
        Only its parameters are used.
    statistics : BurstStatistics

    Raises
    ------
    BurstError
        If there are too few bursts to train on, if `n_components` does not match k, or if the bursts fall into pieces.

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=20, random_state=0).bursts
    >>> refuse_unfit(LOCA(1), prepare(LOCA(2), bursts).statistics)
    Traceback (most recent call last):
    ...
    pyloca.errors.BurstError: n_components = 1 cannot hold bursts that span k = 2 directions; ...
    """
    n, k = len(statistics), statistics.intrinsic_dim
    left = len(split_indices(n, model.validation_fraction, 0)[0])
    if left < MIN_TRAINING:
        raise BurstError(
            f"{left} of the {n} bursts are left for training; {MIN_TRAINING} are needed. "
            "Lower validation_fraction, or measure more bursts."
        )
    if model.n_components != "auto":
        d = int(model.n_components)
        if d < k:
            raise BurstError(
                f"n_components = {d} cannot hold bursts that span k = {k} directions; use n_components={k} or more."
            )
        # Günther (1989): every smooth k-dimensional manifold embeds isometrically in this many dimensions.
        enough = min(max(k * (k + 5) // 2, k * (k + 3) // 2 + 5), n - 2)
        if d > enough:
            raise BurstError(
                f"n_components = {d} is more than {n} bursts of intrinsic dimension k = {k} can ask for; "
                f"use at most {enough}."
            )
    connected_graph(statistics[sample_rows(n, CONNECTED)])


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
    return Reading(bursts, statistics, *networks, model.n_components_, find_strays(statistics, model.max_strays))


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
    return source if isinstance(source, BurstStatistics) else _follow(source, model.spike_rule_)


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
    for feature, (unit, other) in enumerate(zip(model.units_ or (), source.units or (), strict=False)):
        if unit and other and unit != other:
            raise BurstError(
                f"feature {feature if source.feature_names is None else source.feature_names[feature]!r} is in "
                f"{other}; the model was fitted to {unit}. Convert it."
            )
    known, names = getattr(model, "feature_names_in_", None), source.feature_names
    if known is None or names is None or list(names) == list(known):
        return
    if sorted(names) == sorted(known):
        raise BurstError(
            f"the bursts have the features of the fit in a different order: {', '.join(names)}; expected "
            f"{', '.join(known)}. Put the columns in this order."
        )
    missing = [name for name in known if name not in names]
    extra = [name for name in names if name not in known]
    raise BurstError(
        f"the bursts do not have the features of the fit: {', '.join(missing)} missing, {', '.join(extra)} unknown."
    )
