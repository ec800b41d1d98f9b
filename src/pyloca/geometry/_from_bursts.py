"""From raw bursts to their statistics: spikes set aside, noise and k found, then one pass."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry._look import KeepParts, look_at_all
from pyloca.geometry._noise import FLOOR
from pyloca.geometry._noise_estimate import given_noise, inside_variance, noise_and_k
from pyloca.geometry._planes import straighten
from pyloca.geometry._refusals import allowed_strays, refuse_few, refuse_missing, refuse_options, refuse_short
from pyloca.geometry._regression import look_by_regression
from pyloca.geometry._scatter_rule import find_scatter
from pyloca.geometry._spikes import well_kept, without_spikes
from pyloca.geometry._tails import tails_from_fourths

__all__ = ["fields_from_bursts"]


def fields_from_bursts(
    bursts: Bursts,
    intrinsic_dim: int | None,
    *,
    max_dim: int | None,
    measurement_noise: Any,
    static: Bursts | ArrayLike | None,
    min_bursts: int,
    max_strays: float,
    keep: KeepParts | None,
) -> dict[str, Any]:
    """Compute the fields of the statistics; see `BurstStatistics.from_bursts`."""
    refuse_few(len(bursts), min_bursts)
    labels: dict[str, Any] = {
        "ids": bursts.ids,
        "feature_names": bursts.feature_names,
        "units": bursts.units,
        "known_std": bursts.burst_std,
    }
    if bursts.perturbed_dim is not None:
        refuse_options(bursts, intrinsic_dim, max_dim, measurement_noise, static)
        return labels | _fields_by_regression(bursts)
    bursts = without_spikes(bursts, keep)
    refuse_short(bursts, 1, max_strays)
    typical = well_kept(_long(bursts, max_strays))
    try:
        given = given_noise(bursts, measurement_noise)
        noise, k = noise_and_k(typical, given, static, intrinsic_dim, max_dim)
        floor = None if noise is None else FLOOR * inside_variance(bursts)
    except BurstError:
        refuse_missing(bursts)  # only a sample was read; say what all bursts lack
        raise
    refuse_short(bursts, k, max_strays)
    heavy = find_scatter(typical, k) if noise is None else None
    seen, rails = look_at_all(bursts, k, noise, floor, keep, None if heavy is None else heavy.factor)
    if noise is not None and floor is not None:
        straighten(seen, bursts, noise, floor)
    if bursts.effective_counts is not None:
        counts, tails = bursts.effective_counts, 1.0  # these counts already say how much sampling changes a burst
    else:
        counts, tails = seen.counts, tails_from_fourths(seen.fourths, seen.counts, k) if heavy is None else heavy.tails
    marks = np.full(len(bursts), "", dtype=object)
    for row, reason in rails.reasons().items():
        marks[row] = reason
    noisy = {} if noise is None else {"total": seen.total, "noise": seen.noise, "tilts": seen.tilts}
    return (
        labels
        | noisy
        | {
            "means": seen.means,
            "tangents": seen.tangents,
            "counts": counts,
            "residuals": seen.residuals,
            "instrument": noise,
            "tails": tails,
            "scatter": heavy,
            "marks": marks,
            "set_aside": bursts.set_aside,
        }
    )


def _fields_by_regression(bursts: Bursts) -> dict[str, Any]:
    seen = look_by_regression(bursts)
    return {name: getattr(seen, name) for name in ("means", "tangents", "counts", "residuals", "tilts")}


def _long(bursts: Bursts, max_strays: float) -> Bursts:
    """Leave out the shortest bursts: a spectrum is as long as the shortest burst lets it be."""
    counts, most = bursts.counts, allowed_strays(len(bursts), max_strays)
    least = min(bursts.n_used + 1, int(np.sort(counts)[min(most, len(counts) - 1)]))
    return bursts if counts.min() >= least else bursts[counts >= least]
