"""Small fitted models of every kind: activations, solvers, units, columns left out, many features."""

import copy
import functools

import numpy as np

from helpers import latent_bursts, linear_map, short_fit, smooth_map, tiny_loca
from pyloca import Bursts
from pyloca.modelfile import model_to_bytes
from pyloca.networks import ACTIVATIONS
from pyloca.predict import predictor_from_bytes

KINDS = [*sorted(ACTIVATIONS), "paper", "affine", "units", "left_out", "many_features", "curved", "line"]


@functools.cache
def measured(kind):
    """Bursts (60, 30, D) of a bent sheet: a flat one would make encoders linear."""
    clouds = latent_bursts(60, 30, 2, 0.01, 0)[1]
    bursts = smooth_map(2 * clouds.reshape(-1, 2)).reshape(60, 30, 3)
    if kind == "line":
        clouds = latent_bursts(60, 30, 1, 0.01, 0)[1]
        return np.concatenate([clouds, 0.3 * np.sin(3 * clouds)], axis=2)
    if kind == "units":
        return bursts * [1e5, 1.0, 1e-3] + [1e6, 20.0, 0.0]
    if kind == "left_out":
        bursts = bursts @ linear_map(3, 4, 0)
        bursts[:, :, 1] = 7.0  # a constant
        return bursts * [1e3, 1.0, 1.0, 1e-3]
    return bursts @ linear_map(3, 60, 0) if kind == "many_features" else bursts


@functools.cache
def fitted(kind):
    """A fitted LOCA, which no test may change."""
    options = {"max_iter": 400, "tol": 0.1, "hidden_layers": (7, 5)}
    labels = {}
    if kind in ACTIVATIONS:
        options |= {"activation": kind}
    elif kind == "paper":
        options |= {"solver": "paper", "max_iter": 3}
    elif kind == "affine":
        options |= {"hidden_layers": ()}
    elif kind == "units":
        labels = {"feature_names": ("pressure", "t */ \n??/", "height"), "units": ("Pa", "°C", "")}
    elif kind == "left_out":
        labels = {"feature_names": ("a", "b", "c", "d")}
    elif kind in ("curved", "line"):
        options |= {"n_components": 3 if kind == "curved" else 1}
    return short_fit(tiny_loca(**options), Bursts(measured(kind), **labels))


@functools.cache
def predictor(kind):
    """The same in NumPy."""
    return predictor_from_bytes(model_to_bytes(fitted(kind)), kind)


@functools.cache
def in_float64(kind):
    """A fitted LOCA that computes in float64, also where it was trained in float32."""
    model = copy.deepcopy(fitted(kind))
    model.encoder_.double()
    model.decoder_.double()
    return model


def points(kind, n=40):
    """Measurements like those of the fit and unlike them; and coordinates around the embedding."""
    model, random = in_float64(kind), np.random.RandomState(0)
    rows = measured(kind).reshape(-1, model.n_features_in_)
    Y = rows[random.randint(len(rows), size=n)]
    Y = Y + random.choice([0.0, 0.01, 0.3], size=(n, 1)) * rows.std(axis=0) * random.standard_normal(Y.shape)
    Z = model.embedding_[random.randint(len(model.embedding_), size=n)]
    return Y, Z + 0.3 * Z.std() * random.standard_normal(Z.shape)
