"""`diagnose`: all checks of a fitted model on bursts, its own or new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from pyloca.bursts import Bursts
from pyloca.diagnostics._causes import Fit, find_causes
from pyloca.diagnostics._model import FittedModel
from pyloca.diagnostics._report import Diagnostics
from pyloca.diagnostics._whitening import whitening
from pyloca.geometry import BurstStatistics

__all__ = ["diagnose", "diagnose_fit"]

FEW = 30  # bursts that have no neighbourhoods to speak of


def diagnose(model: FittedModel, bursts: Any) -> Diagnostics:
    """Check a fitted `model` on `bursts`: those it was fitted to, or others of the same instrument.

    The same checks as in ``model.diagnostics_``, with figures of all these bursts.
    """
    raw, statistics = model._read_like(bursts)
    return diagnose_fit(model.encoder_, statistics, model.burst_std_, bursts=raw)


def diagnose_fit(
    encoder: nn.Module,
    statistics: BurstStatistics,
    burst_std: float,
    held_out: NDArray[np.int64] | None = None,
    *,
    bursts: Bursts | None = None,
    restarts: tuple[str, ...] = (),
) -> Diagnostics:
    """Figures of the bursts `held_out` (None: of all); causes are looked for in all: training does not hide them."""
    white = whitening(encoder, statistics, burst_std)
    rows = np.arange(len(statistics)) if held_out is None else held_out
    seen = white[rows]
    low, high = np.quantile(seen.stretches, [0.05, 0.95])
    fit = Fit(statistics, burst_std, encoder, white, bursts)
    return Diagnostics(
        float(np.average(seen.losses, weights=statistics.weights[rows])),
        float(np.median(seen.losses)),
        float(seen.floors.mean()),
        (float(low), float(high)),
        find_causes(fit) if len(statistics) >= FEW else (),
        restarts,
        white.losses,
        white.p_values,
        white.conditions,
    )
