"""Everything that the page of a model shows, computed once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import open_bursts
from pyloca.checks import whitening
from pyloca.diagnostics import Agreement
from pyloca.errors import BurstError
from pyloca.estimator import LOCA, Data, Reading, feature_label, in_own_units, read_like, training_embedding
from pyloca.findings import Diagnostics, judge, round_trip_errors
from pyloca.geometry import BurstStatistics
from pyloca.inspection import median_spectrum
from pyloca.report._colours import Columns, as_columns

__all__ = ["Found", "Left", "find"]

Array = NDArray[np.float64]


class Left(NamedTuple):
    """A burst that a fit leaves out."""

    name: Any
    reason: str
    place: Array  # (d,)


@dataclass(frozen=True)
class Found:
    """Everything that the page shows; arrays have one row per burst that is not a stray."""

    model: LOCA
    seen: Reading
    statistics: BurstStatistics
    spectrum: Array
    Z: Array  # (N, d)
    loss: Array
    floors: Array  # 0 where sampling explains nothing
    stretch: Array  # (N, k)
    error: Array  # of the reconstruction, as a fraction of the data's size
    trust: Array
    held_out: NDArray[np.int64] | None  # None: these are not the bursts of the fit
    diagnostics: Diagnostics  # of the fit if these are its bursts, else of these bursts
    labels: Sequence[str] | None
    columns: dict[str, NDArray[Any]]  # the user's own
    agreement: Agreement | None
    strays: tuple[Left, ...] = ()

    @property
    def sampled(self) -> bool:
        """Whether sampling explains a part of the loss."""
        return bool(np.all(self.floors > 0))

    @property
    def means(self) -> Array:
        """Burst means (N, D) in the user's units."""
        return in_own_units(self.model, self.statistics.means)

    @property
    def named(self) -> bool:
        """Whether the features have names or units."""
        return hasattr(self.model, "feature_names_in_") or self.model.units_ is not None

    @property
    def sensors(self) -> list[str]:
        """The features with their units."""
        return [feature_label(self.model, i) for i in range(self.statistics.n_features)]


def find(
    model: LOCA,
    bursts: Data,
    labels: Sequence[str] | None = None,
    columns: Columns | None = None,
    agreement: Agreement | None = None,
) -> Found:
    """Compute everything that a page shows of `bursts` and a fitted `model`."""
    if isinstance(bursts, (str, os.PathLike)):
        bursts = open_bursts(bursts)
    whole = read_like(model, bursts)
    n, everywhere = len(whole.statistics), whole.embed()
    seen, rows = whole.without_strays(), whole.sound
    statistics = seen.statistics
    spectrum = np.median(statistics.spectra, axis=0) if seen.bursts is None else median_spectrum(seen.bursts)
    if labels is not None and len(labels) != n:
        raise BurstError(f"there are {len(labels)} labels for {n} bursts; give one per burst.")
    if agreement is not None and len(agreement.standard_errors) != n:
        raise ValueError(
            f"the agreement is about {len(agreement.standard_errors)} bursts; expected {n}, those of the page: "
            "agreement(model, bursts)."
        )
    Z = everywhere[rows]
    white = whitening(seen.encoder, statistics, model.burst_std_)
    floors = white.floors
    if not white.sampled:
        floors = np.zeros_like(floors)
    places = _places(model, statistics, Z)
    same = places is not None
    checked = (
        model.diagnostics_
        if same
        else judge(
            seen.encoder,
            statistics,
            model.burst_std_,
            decoder=seen.decoder,
            bursts=seen.bursts,
            scaled=isinstance(model.feature_scale, str),
        )
    )
    return Found(
        model=model,
        seen=seen,
        statistics=statistics,
        spectrum=spectrum,
        Z=Z,
        loss=white.losses,
        floors=floors,
        stretch=white.stretches,
        error=round_trip_errors(seen.decoder, statistics.means, Z),
        trust=model.trust_scale_.trust(seen.decoder, statistics.means, Z, training_embedding(model)),
        held_out=None if places is None else places[model.validation_indices_],
        diagnostics=checked,
        labels=None if labels is None else [labels[row] for row in rows],
        columns={name: values[rows] for name, values in as_columns(columns or {}, n).items()},
        agreement=None if agreement is None else _some(agreement, rows),
        strays=tuple(
            Left(whole.statistics.ids[[row]].tolist()[0], reason, everywhere[row])
            for row, reason in whole.strays.items()
        ),
    )


def _some(agreement: Agreement, rows: NDArray[np.int64]) -> Agreement:
    return Agreement(agreement.embedding[rows], agreement.embeddings[:, rows], agreement.standard_errors[rows])


def _places(model: LOCA, statistics: BurstStatistics, Z: Array) -> NDArray[np.int64] | None:
    """Positions here of the bursts of the fit, known by their ids and embedded alike; None when these are others.

    Bursts that the fit left out have the position −1.
    """
    at = {name: i for i, name in enumerate(statistics.ids.tolist())}
    kept = np.delete(np.arange(len(model.embedding_)), [stray.burst for stray in model.diagnostics_.strays])
    names = model.burst_ids_[kept].tolist()
    if len(Z) != len(kept) or not all(name in at for name in names):
        return None
    places = np.full(len(model.embedding_), -1)
    places[kept] = [at[name] for name in names]
    alike = np.allclose(Z[places[kept]], model.embedding_[kept], rtol=1e-6, atol=1e-6 * Z.std())
    return places if alike else None
