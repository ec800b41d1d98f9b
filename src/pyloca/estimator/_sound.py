"""Bursts that are left out of a training: found before it, and given their place among the results after it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca.estimator._prepare import Prepared
from pyloca.findings import data_size, round_trip_errors
from pyloca.geometry import BurstStatistics, burst_means
from pyloca.networks import apply_rows

__all__ = ["training_embedding", "with_strays"]

Array = NDArray[np.float64]


def with_strays(fitted: dict[str, Any], sound: Prepared) -> dict[str, Any]:
    """Give the bursts that were left out a place among fitted attributes: coordinates by the encoder, and no trust."""
    if not sound.strays:
        return fitted | {"strays_": {}, "set_aside_": sound.statistics.set_aside}
    lost = np.array(list(sound.strays))
    scale, outside = sound.scale, sound.source[lost]
    if isinstance(outside, BurstStatistics):
        means = outside.means if scale is None else outside.means / scale
    else:
        means = burst_means(outside if scale is None else outside.scaled(scale))
    encoder, decoder = (
        fitted[name] if scale is None else fitted[name].network  # without the scale around it
        for name in ("encoder_", "decoder_")
    )
    places = apply_rows(encoder, means, fitted["n_components_"])
    errors = round_trip_errors(decoder, means, places, data_size(sound.statistics.means))
    embedding = np.empty((len(sound.source), fitted["n_components_"]))
    embedding[sound.rows], embedding[lost] = fitted["embedding_"], places
    ids = sound.source.ids
    aside = np.zeros(len(sound.source), dtype=np.int64)
    aside[sound.rows] = sound.statistics.set_aside
    return fitted | {
        "set_aside_": aside,
        "embedding_": embedding,
        "burst_ids_": ids,
        "validation_indices_": sound.rows[fitted["validation_indices_"]],
        "diagnostics_": fitted["diagnostics_"].among(sound.rows, sound.strays, ids, errors),
        "strays_": {name: sound.strays[row] for row, name in zip(lost.tolist(), ids[lost].tolist(), strict=True)},
    }


def training_embedding(model: Any) -> Array:
    """Return the embedded bursts that `model` was trained on, without those held out or left out.

    Parameters
    ----------
    model : LOCA
        Fitted.

    Returns
    -------
    (n, d) array

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=20, random_state=0).bursts
    >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(bursts)
    >>> training_embedding(model).shape
    (90, 2)
    """
    left_out = [stray.burst for stray in model.diagnostics_.strays]
    return np.delete(model.embedding_, [*model.validation_indices_.tolist(), *left_out], axis=0)
