"""A fit from its data to its attributes: prepare, choose d, train, and once more where d or k was too small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from pyloca._arguments import is_integer
from pyloca.checks import suggest_components
from pyloca.estimator._candidates import MORE, compare_components
from pyloca.estimator._parameters import check_parameters
from pyloca.estimator._prepare import Prepared, left_out, noise_of, prepare, refuse_unfit, told_noise
from pyloca.estimator._reading import Data
from pyloca.estimator._sound import with_strays
from pyloca.estimator._tangents import ends_later, one_tangent_more
from pyloca.estimator._training import train
from pyloca.findings import hidden_tangent
from pyloca.geometry import BurstStatistics
from pyloca.solvers import CheckpointFile

__all__ = ["fitted_attributes"]

_SHAPE = {"curved", "folded", "uneven_shape", "poor_fit"}  # findings that another d may cure


def fitted_attributes(
    model: Any, X: Data, static: Data | None, checkpoint: Callable[[dict[str, Any]], CheckpointFile] | None
) -> dict[str, Any]:
    """Fit to bursts, and return the fitted attributes; `model` stays as it is.

    Parameters
    ----------
    model : LOCA
    X, static : bursts
        As for `LOCA.fit`.
    checkpoint : callable, optional
        Makes the checkpoint file of a training with these settings.

    Returns
    -------
    dict of str to Any
    """
    check_parameters(model)
    ready = prepare(model, X, static)
    bursts, statistics, scale, known = ready.bursts, ready.statistics, ready.scale, ready.burst_std
    refuse_unfit(model, statistics)
    d, compared = _choose_components(model, statistics, known)
    notes, constants = left_out(ready)
    settings: dict[str, Any] = {"burst_std": statistics.burst_std(known), "notes": notes, "constants": constants}
    fitted = train(model, bursts, statistics, scale, n_components=d, checkpoint=checkpoint, **settings)
    found = {finding.name for finding in fitted["diagnostics_"].findings}
    if model.n_components == "auto" and not compared and _SHAPE & found:
        better = _compare_components(model, statistics, known)  # the alignment found it flat, and the fit did not
        if better != d:
            fitted = train(model, bursts, statistics, scale, n_components=better, **settings)
    if model.intrinsic_dim is None and _misses_a_tangent(model, fitted, ready):
        fitted = one_tangent_more(
            fitted, lambda k: fitted_attributes(_like(model, intrinsic_dim=k), X, static, checkpoint=None)
        )
        if fitted["intrinsic_dim_"] != statistics.intrinsic_dim:
            return fitted
    told = told_noise(ready, model.measurement_noise, static)
    fitted["diagnostics_"] = replace(fitted["diagnostics_"], noise=told)
    read = {"noise_": noise_of(ready), "spike_rule_": ready.spikes, "burst_std_known_": known is not None}
    return with_strays(fitted, ready) | read


def _misses_a_tangent(model: Any, fitted: dict[str, Any], ready: Prepared) -> bool:
    """Whether a tangent may be hidden beside those that were found, and the coordinates may have room for it."""
    if ready.bursts is None:
        return False
    if model.n_components != "auto":  # with d = k that was asked for nothing is missed, and the findings know it
        found = {finding.name for finding in fitted["diagnostics_"].findings}
        if not found or "unfinished" in found or fitted["n_components_"] == fitted["intrinsic_dim_"]:
            return False
        if "large_bursts" not in found:
            return ends_later(ready.bursts, ready.statistics.intrinsic_dim)
    return hidden_tangent(ready.statistics, ready.bursts) is not None


def _like(model: Any, **parameters: Any) -> Any:
    """Return an unfitted estimator with other parameters."""
    return type(model)(**(model.get_params(deep=False) | parameters))


def _choose_components(model: Any, statistics: BurstStatistics, burst_std: float | None) -> tuple[int, bool]:
    """Choose d; the second value tells whether fits were compared."""
    k = statistics.intrinsic_dim
    if model.n_components == "auto":
        if suggest_components(statistics, burst_std).n_components == k:
            return k, False
        return _compare_components(model, statistics, burst_std), True
    return int(model.n_components), False


def _compare_components(model: Any, statistics: BurstStatistics, burst_std: float | None) -> int:
    k = statistics.intrinsic_dim
    same: dict[str, Any] = {"burst_std": burst_std, "intrinsic_dim": k, "verbose": 0, "callbacks": ()}
    # noise, scale and strays have already been removed from the statistics
    same |= {"measurement_noise": None, "feature_scale": None, "max_strays": 0.0}
    if not is_integer(model.random_state, 0):  # candidates are compared on the same held-out bursts
        same["random_state"] = int(check_random_state(model.random_state).randint(np.iinfo(np.int32).max))
    models = {d: _like(model, **same, n_components=d) for d in range(k, k + MORE + 1)}
    return compare_components(models, statistics, statistics.counts).n_components
