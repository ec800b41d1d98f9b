"""Instruments of an L-shaped plan, for the tests of `pyloca.matching`."""

import warnings

import numpy as np

from pyloca import LOCA, TrustWarning
from pyloca.bursts import Bursts

SIGMA = 0.02
TURN = np.array([[0.8, 0.6], [-0.6, 0.8]])


def plan(n, seed):
    """States of an L with arms of different lengths, 2 x 3 with a notch, evenly."""
    X = np.random.RandomState(seed).uniform((0, 0), (2, 3), size=(4 * n, 2))
    return X[(X[:, 0] < 0.8) | (X[:, 1] < 1.0)][:n]


def sheet(x):
    """D = 3."""
    return np.stack([x[:, 0] + 0.1 * np.sin(x[:, 1]), x[:, 1], 0.3 * x[:, 0] * x[:, 1]], axis=1)


def gauge(x):
    """D = 2, mirrored and turned, in thousandths."""
    u = (x * [1, -1]) @ TURN
    return 1000 * np.stack([u[:, 0] + 0.05 * u[:, 1] ** 2, u[:, 1]], axis=1)


def measured(measure, X, seed, n_points=40):
    """Bursts (N, M, D) at the states X."""
    clouds = X[:, None] + SIGMA * np.random.RandomState(seed).standard_normal((len(X), n_points, 2))
    return measure(clouds.reshape(-1, 2)).reshape(len(X), n_points, -1)


def fit(measure, X, seed, *, known=True, ids=None, feature_names=None, n_points=40, **options):
    data = measured(measure, X, seed, n_points)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        settings = {"hidden_layers": (10,), "random_state": 0, "burst_std": SIGMA if known else None} | options
        return LOCA(**settings).fit(Bursts(data, ids=ids, feature_names=feature_names))
