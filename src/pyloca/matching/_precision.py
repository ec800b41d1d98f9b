"""How far the coordinates of a model are from an isometry, by what the fit says of itself."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from pyloca.estimator import LOCA, training_embedding
from pyloca.findings import data_size

__all__ = ["coordinate_variance", "decoder_variance", "mean_variance", "reading_variance", "spacing"]

Array = NDArray[np.float64]


def spacing(points: Array, k: int) -> float:
    """Median distance to the 2k-th neighbour: one step on a grid of k dimensions."""
    near = min(2 * k, len(points) - 1)
    return float(np.median(cKDTree(points).query(points, near + 1)[0][:, -1]))


def coordinate_variance(model: LOCA) -> float:
    """Compute the expected variance, per coordinate, of embedded states about a rigid image of the true ones.

    A burst tells the local stretch to √(loss / 2k); errors of bursts on the way from one place to another add up
    like a random walk of steps as long as their spacing, 2k abreast if the embedding cannot bend (d = k), and what
    the loss has beyond sampling, and the chance in that, is a misfit that does not average out. So the relative
    variance of a length L is v = loss / 2k · h / L (/ 2k) + misfit / 2k, and places that are apart as two random
    states are differ by L √v. Half of that variance belongs to each. What the decoder cannot give back counts as
    well: it is not smaller than that.
    """
    found, k = model.diagnostics_, model.intrinsic_dim_
    places = training_embedding(model)
    length = float(np.sqrt(2 * places.var(axis=0).sum()))  # root mean square distance of two states
    abreast = 2 * k if model.n_components_ == k else 1
    local = max(found.median_loss, 0.0) / (2 * k) / abreast
    judged = len(model.validation_indices_) or len(places)
    chance = found.sampling_floor * np.sqrt(2 / (k * (k + 1) / 2) / judged)  # of a mean of so many losses
    misfit = max(found.whitening_loss - found.sampling_floor - 2 * chance, 0.0) / (2 * k)
    walk = length**2 * (local * min(1.0, spacing(places, k) / length) + misfit) / 2
    held_out = model.embedding_[model.validation_indices_] if len(model.validation_indices_) else places
    back = model.encode(model.decode(held_out)) - held_out
    return walk + float(np.square(back).mean()) + (1e-9 * length) ** 2


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
