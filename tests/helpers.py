"""Small data sets with a known truth, and comparisons that forgive what no method can know."""

import functools
import warnings

import numpy as np
import torch

from pyloca import LOCA, TrustWarning
from pyloca.geometry import BurstStatistics
from pyloca.networks import MLP, Standardized

HANG = 900  # seconds; a time-out ends what hangs, never what is slow because the machine is busy

# `python -c RUN_PYLOCA …` is `pyloca …` that heeds Ctrl-C: a child inherits an ignored SIGINT, which is what the tests
# themselves have when they run as a background job of a shell.
RUN_PYLOCA = """
import signal
from pyloca.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


def assert_same_up_to_rigid_motion(Z, X, tol):
    """Z is X rotated, reflected and shifted, to a largest distance of `tol` between points (in the units of X)."""
    Z, X = np.asarray(Z, dtype=np.float64), np.asarray(X, dtype=np.float64)
    assert Z.shape == X.shape
    Z, X = Z - Z.mean(axis=0), X - X.mean(axis=0)
    left, _, right = np.linalg.svd(Z.T @ X)
    worst = np.linalg.norm(Z @ (left @ right) - X, axis=1).max()
    assert worst <= tol, f"points differ by up to {worst:.3g} after the best rigid motion; allowed are {tol:.3g}"


def random_rotation(dim, seed):
    """An orthogonal matrix (dim, dim), reflections included."""
    return np.linalg.qr(np.random.RandomState(seed).standard_normal((dim, dim)))[0]


def latent_bursts(n, m, k, std, seed):
    """Latents X (n, k) uniform in a unit cube and Gaussian clouds around them (n, m, k)."""
    random = np.random.RandomState(seed)
    X = random.uniform(size=(n, k))
    return X, X[:, None] + std * random.standard_normal((n, m, k))


def linear_map(k, dim, seed):
    """A matrix (k, dim) that stretches directions by 1 to 2: a measurement with no curvature."""
    random = np.random.RandomState(seed)
    left, right = random_rotation(k, seed), random_rotation(dim, seed + 1)
    return left @ np.diag(random.uniform(1, 2, size=k)) @ right[:k]


def planar_bursts(n=60, m=30, seed=0, *, k=2, dim=3, std=0.01):
    """Latents X (n, k) and bursts (n, m, dim) of a linear measurement: everything about them is known exactly."""
    X, clouds = latent_bursts(n, m, k, std, seed)
    return X, clouds @ linear_map(k, dim, seed)


def planar_statistics(n=200, k=2, dim=3, seed=0):
    """Latents X (n, k) and the exact statistics of a linear measurement of them, σ = 1."""
    X = np.random.RandomState(seed).uniform(size=(n, k))
    A = linear_map(k, dim, seed)
    return X, BurstStatistics.from_jacobians(X @ A, np.tile(A.T, (n, 1, 1)))


def naive_statistics(bursts, k):
    """Means, A_iᵀ A_i, their leading eigenvalues and residual traces, burst by burst with np.cov, eigh and lstsq."""
    means, parts, spectra, residuals = [], [], [], []
    for burst in bursts:
        burst = np.asarray(burst, dtype=np.float64)
        means.append(burst.mean(axis=0))
        tangents, rest = _naive_tangents(burst - burst.mean(axis=0), k)
        parts.append(tangents.T @ tangents)
        spectra.append(np.linalg.eigvalsh(parts[-1])[::-1][:k])
        residuals.append(rest)
    return np.array(means), np.array(parts), np.array(spectra), np.array(residuals)


def _naive_tangents(points, k):
    m, dim = points.shape
    tangents, rest = _naive_principal(points, k)
    if m < 2 * (1 + k + k * (k + 1) // 2):
        return tangents, rest
    lengths = np.linalg.norm(tangents, axis=1)
    long = int(np.sum(0.1 * lengths > lengths[-1]))
    if long:  # bends along long directions go first
        _, _, quadratic = _naive_bends(points @ tangents[:long].T / lengths[:long] ** 2, points)
        points = points - quadratic
        points = points - points.mean(axis=0)
        tangents, rest = _naive_principal(points, k)
        tangents[long:] *= np.sqrt((m - 1) / (m - 1 - long * (long + 1) // 2))
    if dim > k:
        slopes, ratio, _ = _naive_bends(points @ tangents.T / np.sum(tangents**2, axis=1), points)
        tangents = slopes if ratio > 4 else tangents
    return tangents, rest


def _naive_principal(points, k):
    values, vectors = np.linalg.eigh(np.cov(points.T).reshape(points.shape[1], points.shape[1]))
    order = np.argsort(values)[::-1][:k]
    return np.sqrt(values[order])[:, None] * vectors[:, order].T, values.sum() - values[order].sum()


def _naive_bends(z, points):
    """Slopes of 1, z, products of z; the F ratio of the products; what they explain of the points."""
    m, k = z.shape
    products = np.stack([z[:, i] * z[:, j] for i in range(k) for j in range(i, k)], axis=1)
    linear, known = np.c_[np.ones(m), z], np.c_[np.ones(m), z, products]
    found = np.linalg.lstsq(known, points, rcond=None)[0]
    left = np.sum((points - known @ found) ** 2)
    before = np.sum((points - linear @ np.linalg.lstsq(linear, points, rcond=None)[0]) ** 2)
    count = products.shape[1]
    ratio = (before - left) / max(left, np.finfo(float).tiny) * (m - 1 - k - count) / count
    return found[1 : 1 + k], ratio, products @ found[1 + k :]


def outer(tangents):
    """A_iᵀ A_i of tangents (N, k, D): what does not depend on the signs and order of tangents."""
    return np.einsum("nki,nkj->nij", tangents, tangents)


# -- problems for the solvers -----------------------------------------------------------------------------------


def smooth_map(x):
    """A bent sheet in R³: (n, 2) → (n, 3), with no symmetry that could hide a mistake."""
    return np.stack([x[:, 0] + 0.3 * np.sin(2 * x[:, 1]), x[:, 1] + 0.2 * x[:, 0] ** 2, x[:, 0] * x[:, 1]], axis=1)


def smooth_jacobian(x):
    """(n, 3, 2): derivatives of `smooth_map`."""
    one = np.ones(len(x))
    return np.stack(
        [
            np.stack([one, 0.6 * np.cos(2 * x[:, 1])], axis=1),
            np.stack([0.4 * x[:, 0], one], axis=1),
            np.stack([x[:, 1], x[:, 0]], axis=1),
        ],
        axis=1,
    )


def smooth_statistics(n=150, seed=0):
    """Latents X (n, 2) in [−1, 1]² and exact statistics of `smooth_map`, σ = 1: data with no noise at all."""
    X = np.random.RandomState(seed).uniform(-1, 1, size=(n, 2))
    return X, BurstStatistics.from_jacobians(smooth_map(X), smooth_jacobian(X))


def short_fit(model, bursts):
    """Fit a model that has no time to become good: its `TrustWarning` is true and beside the point."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return model.fit(bursts)


def tiny_loca(**options):
    """A LOCA that fits in a tenth of a second: one small layer, few iterations."""
    return LOCA(
        **{"n_components": 2, "burst_std": 0.01, "hidden_layers": (8,), "max_iter": 60, "random_state": 0} | options
    )


def random_model(n_features=3, d=2, *, hidden=(8, 6), activation="tanh", skip=True, tail=False, seed=0):
    """A LOCA with random weights and scalings: for what only needs some encoder and some decoder."""
    random = np.random.RandomState(seed)
    model = LOCA(n_components=d)
    model.n_features_in_, model.n_components_ = n_features, d
    model.feature_scale_, model.units_ = np.ones(n_features), None
    for name, n_in, n_out in (("encoder_", n_features, d), ("decoder_", d, n_features)):
        network = MLP(n_in, hidden, n_out, activation, skip=skip, linear_tail=tail).double()
        for parameter in network.parameters():
            parameter.data = torch.tensor(random.normal(size=tuple(parameter.shape)) / np.sqrt(parameter.shape[-1]))
        scales = (random.normal(size=n_in), 1.7, random.normal(size=n_out), 0.6)
        setattr(model, name, Standardized(network, *scales))
    return model


def curved_bursts(n=40, m=20, dim=4, seed=0):
    """Bursts of a bent surface, all of whose D covariance eigenvalues are positive and apart."""
    _, clouds = latent_bursts(n, m, 2, 0.1, seed)
    mix = np.random.RandomState(seed + 1).standard_normal((2, dim))
    return np.sin(2 * clouds @ mix) + clouds[..., :1] ** 2


def naive_squared(Y):
    return np.array([[np.sum((a - b) ** 2) for b in Y] for a in Y])


@functools.cache
def fitted(dim=3, hidden=(8,), solver="fast"):
    """A model of a plane in R^dim and points to encode, which no test may change."""
    _, bursts = planar_bursts(40, 20, dim=dim)
    model = short_fit(tiny_loca(hidden_layers=hidden, solver=solver, max_iter=20), bursts)
    Y = bursts.reshape(-1, dim) + 0.01 * np.random.RandomState(0).standard_normal((800, dim))
    return model, np.concatenate([Y * (1 + 0.01 * i) for i in range(13)])  # 10,400 points
