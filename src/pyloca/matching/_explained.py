"""Does a fit explain bursts? They are compared with those that it held out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from pyloca.checks import whitening
from pyloca.estimator import LOCA, Reading, training_embedding
from pyloca.findings import data_size, round_trip_errors

__all__ = ["Explained", "explained"]

Array = NDArray[np.float64]

TOLERATED = 1.5  # times the round-trip errors of held-out bursts, which had a say in the size of the decoder


@dataclass(frozen=True)
class Explained:
    """How bursts look to a fit, beside those that it held out.

    Attributes
    ----------
    whitening_p, round_trip_p : float
        That they are as round under its encoder, and as well given back by its decoder.
    losses, errors : float
        Median whitening loss and round-trip error, in units of those held out.
    width : float
        Median size of the bursts under the encoder, in units of σ.
    """

    whitening_p: float
    round_trip_p: float
    losses: float
    errors: float
    width: float


def explained(model: LOCA, read: Reading, rows: NDArray[np.int64]) -> Explained:
    """Compare losses and round trips of some bursts under a model with those of bursts that it held out."""
    statistics, found = read.statistics[rows], model.diagnostics_
    held_out = model.validation_indices_
    if not len(held_out):
        held_out = np.flatnonzero(np.isfinite(found.losses))
    white = whitening(read.encoder, statistics, model.burst_std_)
    # That of the readings of the fit; a decoder that was not trained does not tell it.
    size = max(data_size(_as_seen(model, model.decode(training_embedding(model)))), data_size(statistics.means))
    errors = round_trip_errors(read.decoder, statistics.means, read.embed()[rows], size)
    fewer = _fewer_points(model, statistics.counts)
    compared = (
        (white.losses / fewer, found.losses[held_out]),
        (errors / np.sqrt(fewer) / TOLERATED, found.errors[held_out]),
    )
    p = [float(mannwhitneyu(new, old, alternative="greater").pvalue) for new, old in compared]
    times = [float(np.median(new) / max(np.median(old), np.finfo(float).tiny)) for new, old in compared]
    width = float(np.exp(np.median(np.log(np.maximum(white.stretches, np.finfo(float).tiny)).mean(axis=1))))
    return Explained(p[0], p[1], times[0], TOLERATED * times[1], width)


def _fewer_points(model: LOCA, counts: Array) -> Array:
    """Return how many times fewer points each burst has than those of the fit; 1 where it has more, or is exact."""
    k, found = model.intrinsic_dim_, model.diagnostics_
    usual = found.sampling_floor / found.tails
    if not usual > 0:
        return np.ones(len(counts))
    return np.maximum(k * (k + 1) / 2 / (counts - 1) / usual, 1.0)


def _as_seen(model: LOCA, readings: Array) -> Array:
    """Return readings as the networks of `model` see them; columns that were left out are 0."""
    scale = model.feature_scale_
    return np.where(np.isinf(scale), 0.0, readings / np.where(np.isinf(scale), 1.0, scale))
