"""Bursts as a fit sees them, before any training: one way for `fit` and for a look before it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca._threads import one_thread
from pyloca.bursts import Bursts, split_indices
from pyloca.errors import BurstError
from pyloca.estimator._reading import Data, as_source, choose_scale, read, with_burst_std
from pyloca.findings import changed_sensor, no_displacement, noise_words
from pyloca.geometry import (
    BurstStatistics,
    Noise,
    SpikeRule,
    connected_graph,
    find_spikes,
    find_strays,
    given_noise,
    look_at_columns,
    sample_rows,
    set_aside,
)
from pyloca.thresholds import CONNECTED, MIN_BURSTS

__all__ = ["Prepared", "left_out", "noise_of", "prepare", "refuse_unfit", "told_noise"]

Array = NDArray[np.float64]
MIN_TRAINING = 8  # bursts left to train on


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
        The rule by which points are set aside, also in new bursts; None if the search for spikes is off.

    Examples
    --------
    See `prepare`.
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


@one_thread()
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
    source = with_burst_std(as_source(data), model.burst_std)
    rule, raw = None, source
    if isinstance(source, Bursts):
        rule = find_spikes(source, guard=True)
        source = set_aside(source, rule)
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
        strays = find_strays(statistics, model.max_strays, bursts=bursts)
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
    known = model.burst_std if model.burst_std is not None else statistics.known_std
    return Prepared(bursts, statistics, scale, known, source, rows, strays, _without_columns(rule, scale, raw, source))


def _without_columns(rule: SpikeRule | None, scale: Array | None, raw: Any, cleaned: Any) -> SpikeRule | None:
    """Let columns that are left out not decide what is a spike in new bursts, where the fit had none."""
    if rule is None or scale is None or not np.isinf(scale).any() or cleaned.set_aside.any():
        return rule
    rule = replace(rule, scale=np.where(np.isinf(scale), np.inf, 1.0 if rule.scale is None else rule.scale))
    return None if rule.clean(raw).set_aside.any() else rule  # it was made with these columns


def _raw(static: Data) -> Bursts:
    source = as_source(static)
    if isinstance(source, BurstStatistics):
        raise BurstError("static must be raw bursts, whose points tell the noise; BurstStatistics were given.")
    return source


def _noise(asked: Any, source: Bursts | BurstStatistics) -> Any:
    """Put noise that was given, or is known to be in the bursts, into one form, in the units of the measurements."""
    if asked is None and isinstance(source, Bursts) and source.perturbed_dim is None:
        asked = source.noise
    return given_noise(source, asked)


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


def left_out(ready: Prepared) -> tuple[tuple[str, ...], Array | float]:
    """Say which columns a fit leaves out and why; also what the decoder returns for them, (D,)."""
    scale, data = ready.scale, ready.source[ready.rows]
    if scale is None or not np.isinf(scale).any():
        return (), 0.0
    look, features = look_at_columns(data), np.flatnonzero(np.isinf(scale))
    usual = np.where(look.constant, look.means[0], look.means.mean(axis=0))
    note = (
        f"left out, because they do not measure the state: {look.listed(features.tolist(), data)}. "
        "The model takes these columns, but they have no influence."
    )
    return (note,), np.where(np.isinf(scale), usual, 0.0)


@one_thread()
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
    try:
        connected_graph(statistics[sample_rows(n, CONNECTED)])
    except BurstError as error:
        changed = changed_sensor(statistics)
        if changed is not None:  # a cause of which the error tells only a symptom
            raise BurstError(f"{changed.message} Because of it, {error}") from error
        raise
