"""`diagnose`: all checks of a fitted model on bursts, its own or new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from pyloca.bursts import Bursts
from pyloca.diagnostics._causes import Fit, find_causes
from pyloca.diagnostics._gaps import largest_gap
from pyloca.diagnostics._model import FittedModel
from pyloca.diagnostics._report import Diagnostics
from pyloca.diagnostics._whitening import sampled_stretch, whitening
from pyloca.geometry import BurstStatistics
from pyloca.networks import apply_rows

__all__ = ["diagnose", "diagnose_fit", "round_trip_errors"]

Array = NDArray[np.float64]


def diagnose(model: FittedModel, bursts: Any) -> Diagnostics:
    """Check a fitted `model` on `bursts`: those it was fitted to, or others of the same instrument.

    The same checks as in ``model.diagnostics_``, with figures of all these bursts.
    """
    raw, statistics = model._read_like(bursts)
    return diagnose_fit(model.encoder_, statistics, model.burst_std_, decoder=model.decoder_, bursts=raw)


def diagnose_fit(
    encoder: nn.Module,
    statistics: BurstStatistics,
    burst_std: float,
    held_out: NDArray[np.int64] | None = None,
    *,
    decoder: nn.Module | None = None,
    bursts: Bursts | None = None,
    restarts: tuple[str, ...] = (),
) -> Diagnostics:
    """Figures of the bursts `held_out` (None: of all); causes are looked for in all: training does not hide them."""
    white = whitening(encoder, statistics, burst_std)
    rows = np.arange(len(statistics)) if held_out is None else held_out
    seen = white[rows]
    low, high = np.quantile(seen.stretches, [0.05, 0.95])
    errors = None if decoder is None else round_trip_errors(decoder, statistics.means, white.embedding)
    fit = Fit(statistics, burst_std, encoder, white, bursts, errors)
    return Diagnostics(
        float(np.average(seen.losses, weights=statistics.weights[rows])),
        float(np.median(seen.losses)),
        float(seen.floors.mean()),
        (float(low), float(high)),
        find_causes(fit),
        restarts,
        None if errors is None else (float(np.median(errors[rows])), float(errors[rows].max())),
        sampled_stretch(float(np.median(statistics.counts[rows])), fit.k),
        largest_gap(white.embedding) if fit.d == fit.k else None,  # a surface in space has space around it
        white.losses,
        white.p_values,
        white.conditions,
    )


def round_trip_errors(decoder: nn.Module, means: Array, embedding: Array) -> Array:
    """‖γ(ρ(μ_i)) − μ_i‖ as a part of the data's size (root mean square distance from its centre), (N,)."""
    size = float(np.sqrt(np.square(means - means.mean(axis=0)).sum(axis=1).mean())) or 1.0
    return np.asarray(np.linalg.norm(apply_rows(decoder, embedding, means.shape[1]) - means, axis=1) / size)
