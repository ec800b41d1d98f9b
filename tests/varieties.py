"""Small fitted models of every kind: activations, solvers, units, columns left out, many features."""

import copy
import functools

import numpy as np

from helpers import planar_bursts, short_fit, tiny_loca
from pyloca import Bursts
from pyloca.modelfile import model_to_bytes
from pyloca.networks import ACTIVATIONS
from pyloca.predict import predictor_from_bytes

KINDS = [*sorted(ACTIVATIONS), "paper", "affine", "units", "left_out", "many_features", "curved"]


@functools.cache
def fitted(kind):
    """A fitted LOCA, which no test may change."""
    dim = {"left_out": 4, "many_features": 60}.get(kind, 3)
    bursts = planar_bursts(50, 20, dim=dim)[1]
    options = {"max_iter": 400, "tol": 0.25, "hidden_layers": (7, 5)}
    data = bursts
    if kind in ACTIVATIONS:
        options |= {"activation": kind}
    elif kind == "paper":
        options |= {"solver": "paper", "max_iter": 3}
    elif kind == "affine":
        options |= {"hidden_layers": ()}
    elif kind == "units":
        names = {"feature_names": ("pressure", "t */ \n??/", "height"), "units": ("Pa", "°C", "")}
        data = Bursts(bursts * [1e5, 1.0, 1e-3] + [1e6, 20.0, 0.0], **names)
    elif kind == "left_out":
        bursts[:, :, 1] = 7.0  # a constant
        data = Bursts(bursts * [1e3, 1.0, 1.0, 1e-3], feature_names=("a", "b", "c", "d"))
    elif kind == "curved":
        options |= {"n_components": 3}
    return short_fit(tiny_loca(**options), data)


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
    """Measurements on the manifold and anywhere, in the units of the fit; and coordinates around the embedding."""
    model, random = in_float64(kind), np.random.RandomState(0)
    Z = model.embedding_[random.randint(len(model.embedding_), size=n)]
    Z = Z + 0.3 * Z.std() * random.standard_normal(Z.shape)
    Y = model.decode(Z)
    return Y + random.choice([0.0, 0.03, 0.3, 3.0], size=(n, 1)) * Y.std(axis=0) * random.standard_normal(Y.shape), Z
