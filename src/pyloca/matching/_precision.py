"""How far coordinates and readings of a model are from the truth, by what the fit says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from pyloca.errors import BurstError
from pyloca.estimator import LOCA, Data, Reading, read_like, training_embedding
from pyloca.findings import data_size
from pyloca.matching._elastic import Elastic, Seen, elastic, seen, some_places
from pyloca.matching._explained import explained
from pyloca.matching._smooth import smooth
from pyloca.matching._support import Support
from pyloca.thresholds import FOREIGN_BURSTS, STRANGE_BURSTS

__all__ = [
    "Instrument",
    "decoder_slopes",
    "decoder_variance",
    "look",
    "mean_variance",
    "off_manifold",
    "reading_variance",
]

Array = NDArray[np.float64]

STEP = 1e-4  # of the size of the embedding, for derivatives of a decoder
# Of the variance of the round trip, where bursts tell how rough an encoder is: the rest is the decoder's, whose error
# is in each prediction already. With all of it, intervals of fusions held 98 to 99 % (`python -m benchmarks matching
# --only fusion`).
ENCODER_PART = 0.1


@dataclass(frozen=True)
class Instrument:
    """A fitted model and how far its shape is open.

    Attributes
    ----------
    model : LOCA
    seen : Seen
    root : (q, q) array
        Lower Cholesky factor of the information about displacements.
    least : float
        Variance of coordinates that displacements do not describe, by the round trip through the decoder.
    """

    model: LOCA
    seen: Seen
    root: Array
    least: float

    @property
    def elastic(self) -> Elastic:
        """Displacements of its embedding."""
        return self.seen.elastic

    def variance_at(self, Z: Array) -> Array:
        """Return the expected variance (n,), per coordinate, of places about a rigid image of the true ones."""
        n, d = Z.shape
        rows = self.elastic.rows(Z).reshape(n * d, -1)
        spread = np.square(solve_triangular(self.root, rows.T, lower=True)).sum(axis=0)
        return np.asarray(spread.reshape(n, d).mean(axis=1) + self.least)

    @cached_property
    def variance(self) -> float:
        """The same on average over the states that were seen."""
        return float(self.variance_at(some_places(self.model)).mean())

    @property
    def rough(self) -> float:
        """The part of it that is the same everywhere and not a displacement."""
        return self.least

    def rough_at(self, Z: Array) -> Array:
        """Return all that displacements do not describe at places (n, d): large where the encoder is extrapolated."""
        return self.rough + self.elastic.residual(Z)


def look(model: LOCA, bursts: Data | None = None) -> Instrument:
    """Look at what a fit says of its errors; `bursts`, those it was fitted to, tell more."""
    shape = elastic(model, fine=bursts is not None)
    read = None if bursts is None else read_like(model, bursts).without_strays()
    if read is not None:
        _check_seen(model, read)
    told = seen(model, shape, read)
    if read is not None:
        told, at = smooth(told)
        if model.n_components_ == model.intrinsic_dim_:
            told = told.unbiased(at)
    root = np.asarray(np.linalg.cholesky(told.expansion(np.zeros(shape.size))[1]), dtype=np.float64)
    held_out = model.embedding_[model.validation_indices_]
    if not len(held_out):
        held_out = training_embedding(model)
    back = model.encode(model.decode(held_out)) - held_out
    least = float(np.square(back).mean()) * (1.0 if bursts is None else ENCODER_PART)
    return Instrument(model, told, root, least + (1e-9 * shape.length) ** 2)


def _check_seen(model: LOCA, read: Reading) -> None:
    """Refuse bursts that a fit does not explain: whatever the refinement made of them would be wrong."""
    inside = Support(training_embedding(model)).inside(read.embed()) > 0
    outside = float((~inside).mean())
    if outside > STRANGE_BURSTS:
        raise BurstError(
            f"{outside:.0%} of the {len(inside)} bursts lie where the model has not been fitted. Give those it "
            "was fitted to, in the same units."
        )
    told = explained(model, read, np.flatnonzero(inside))
    if 2 * min(told.round_trip_p, told.whitening_p) >= FOREIGN_BURSTS:
        return
    if 2 * told.round_trip_p < FOREIGN_BURSTS:  # which another σ leaves as they are
        what = f"the decoder gives them back {told.errors:.2g} times as badly as bursts that the fit held out"
        cause = "Are columns in another order or in other units"
    else:
        what = (
            f"the encoder does not make them round: their loss is {told.losses:.2g} times that of bursts that the fit "
            f"held out, and they are {told.width:.2g} times as large"
        )
        cause = "Have they another burst_std, or are columns in another order"
    raise BurstError(
        f"they are not bursts of its fit: {what}. {cause}? Give the bursts that it was fitted to. If the instrument "
        "has changed since, fit it again with recalibrate, and fuse that model."
    )


def mean_variance(model: LOCA) -> float:
    """Variance σ²/M of the place of a burst mean about the state itself, per coordinate, 0 for known geometry."""
    found, k = model.diagnostics_, model.intrinsic_dim_
    return float(model.burst_std_**2 * found.sampling_floor / found.tails / (k * (k + 1) / 2))


def reading_variance(model: LOCA) -> float:
    """Variance of the coordinates of one reading by measurement noise, per coordinate; 0 where none was told."""
    if model.noise_ is None:
        return 0.0
    places = training_embedding(model)
    sample = model.decode(places[:: max(1, len(places) // 100)])
    slopes = model.encode_with_jacobian(sample)[1] * model.noise_.deviations  # (n, d, D)
    return float(np.square(slopes).sum(axis=2).mean())


def off_manifold(model: LOCA, rows: Array, Z: Array) -> Array:
    """Covariances (n, d, d) of coordinates Z (n, d) of readings that lie off the manifold.

    `rows` (n, D) are the readings as the networks see them. What is off in D − d directions is taken to be off as much
    in each of the d others, where it cannot be seen.
    """
    live = np.isfinite(model.feature_scale_)
    scale = np.where(live, model.feature_scale_, 0.0)
    dim, d = int(live.sum()), Z.shape[1]
    if dim <= d:
        return np.zeros((len(Z), d, d))
    off = rows[:, live] - model.decode(Z)[:, live] / model.feature_scale_[live]
    excess = np.maximum(np.square(off).sum(axis=1) - model.trust_scale_.round_trip**2, 0.0) / (dim - d)
    slopes = model.encode_with_jacobian(rows * scale)[1] * scale  # (n, d, D)
    return np.asarray(excess[:, None, None] * slopes @ slopes.transpose(0, 2, 1))


def decoder_variance(model: LOCA) -> Array:
    """Variance (D,) of a decoded reading about the true one at the right coordinates, per sensor.

    The file of a model knows the round-trip errors of its burst means, held out ones among them, as one length each;
    sensors share it in the units in which the fit saw them.
    """
    found, dim = model.diagnostics_, model.n_features_in_
    scale = np.where(np.isinf(model.feature_scale_), 0.0, model.feature_scale_)
    if not len(found.errors):
        return np.square(model.trust_scale_.round_trip * scale) / dim
    places = training_embedding(model)
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = np.where(scale > 0, model.decode(places) / scale, 0.0)
    held_out = found.errors[model.validation_indices_] if len(model.validation_indices_) else found.errors
    return np.square(data_size(seen) * scale) * float(np.square(held_out).mean()) / dim


def decoder_slopes(model: LOCA, Z: Array) -> Array:
    """Return the derivatives (n, D, d) of decoded readings at places (n, d), by central differences."""
    step = STEP * float(np.sqrt(training_embedding(model).var(axis=0).sum()))
    ends = [model.decode(Z + step * unit) - model.decode(Z - step * unit) for unit in np.eye(Z.shape[1])]
    return np.stack(ends, axis=2) / (2 * step)
