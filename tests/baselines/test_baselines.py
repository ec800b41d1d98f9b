"""The methods that LOCA is compared with."""

import warnings
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import estimator_checks_generator

from helpers import assert_same_up_to_rigid_motion, naive_squared, planar_bursts, planar_statistics, smooth_statistics
from pyloca import BurstError, BurstStatistics, TrustWarning
from pyloca.baselines import (
    AnisotropicDiffusionMaps,
    Autoencoder,
    BurstAlignment,
    DiffusionMaps,
    IntrinsicIsomap,
    RiemannianRelaxation,
    _diffusion_maps,
    _kernels,
)
from pyloca.baselines._extension import GeometricHarmonics
from pyloca.baselines._kernels import Euclidean, max_min
from pyloca.baselines._relaxation import dual_metric, laplacian, relaxation_loss
from pyloca.metrics import stress

ALL = [
    DiffusionMaps,
    AnisotropicDiffusionMaps,
    IntrinsicIsomap,
    RiemannianRelaxation,
    BurstAlignment,
    Autoencoder,
]


NEEDS_BURSTS = [AnisotropicDiffusionMaps, IntrinsicIsomap, BurstAlignment]


def grid(n, m=None, seed=None):
    """Points (n m, 2) of a flat grid with unit steps; with a seed, shaken a little."""
    x = np.stack(np.meshgrid(np.arange(float(n)), np.arange(float(m or n)), indexing="ij"), axis=-1).reshape(-1, 2)
    return x if seed is None else x + np.random.RandomState(seed).uniform(-0.2, 0.2, size=x.shape)


def exact_bursts(X, dim=3, seed=0):
    """Statistics of an isometric linear measurement of X in R^dim, σ = 1."""
    k = X.shape[1]
    frame = np.linalg.qr(np.random.RandomState(seed).standard_normal((dim, k)))[0].T  # (k, dim)
    return BurstStatistics.from_jacobians(X @ frame, np.tile(frame.T, (len(X), 1, 1)))


def naive_diffusion_map(squared, epsilon, alpha, t, d):
    """Eigenvectors of P = D⁻¹K by NumPy's general solver, with Σ π ψ² = 1."""
    K = np.exp(-squared / (2 * epsilon))
    q = K.sum(axis=1)
    K = K / np.outer(q, q) ** alpha
    degree = K.sum(axis=1)
    values, vectors = np.linalg.eig(K / degree[:, None])
    order = np.argsort(-values.real)[1 : d + 1]
    values, vectors = values.real[order], vectors.real[:, order]
    vectors /= np.sqrt((degree / degree.sum()) @ vectors**2)
    return values**t * vectors, values


# -- diffusion maps ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("t", [0, 1, 3])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_diffusion_maps_against_the_naive_twin(alpha, t, dense, monkeypatch):
    monkeypatch.setattr(_diffusion_maps, "is_dense", lambda metric, epsilon: dense)
    Y = np.random.RandomState(0).uniform(size=(150, 2)) * [1, 0.6]
    model = DiffusionMaps(3, alpha=alpha, t=t, bandwidth_factor=2, random_state=0).fit(Y)
    squared = naive_squared(Y)
    if not dense:
        squared[np.exp(-squared / (2 * model.bandwidth_)) < _kernels.CUT] = np.inf
    expected, values = naive_diffusion_map(squared, model.bandwidth_, alpha, t, 3)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    signs = np.sign((expected * model.embedding_).sum(axis=0))
    np.testing.assert_allclose(model.embedding_, expected * signs, atol=1e-6 * np.abs(expected).max())


def test_anisotropic_diffusion_maps_against_the_naive_twin():
    _, statistics = smooth_statistics(120)
    model = AnisotropicDiffusionMaps(2, bandwidth_factor=3, random_state=0).fit(statistics)
    C = [np.linalg.pinv(A.T @ A, rcond=1e-8) for A in statistics.tangents]
    y = statistics.means
    squared = np.array(
        [[0.5 * (a - b) @ (P + Q) @ (a - b) for b, Q in zip(y, C, strict=True)] for a, P in zip(y, C, strict=True)]
    )
    expected, values = naive_diffusion_map(squared, model.bandwidth_, 0, 1, 2)
    np.testing.assert_allclose(model.eigenvalues_, values, rtol=1e-8)
    signs = np.sign((expected * model.embedding_).sum(axis=0))
    np.testing.assert_allclose(model.embedding_, expected * signs, atol=1e-6)


@pytest.mark.parametrize("dense", [True, False])
def test_a_ring_has_cosine_and_sine(dense, monkeypatch):
    monkeypatch.setattr(_diffusion_maps, "is_dense", lambda metric, epsilon: dense)
    angle = 2 * np.pi * np.arange(200) / 200
    model = DiffusionMaps(4, t=0, random_state=0).fit(np.c_[np.cos(angle), np.sin(angle)])
    Z = model.embedding_
    for pair, order in ((Z[:, :2], 1), (Z[:, 2:], 2)):
        np.testing.assert_allclose(np.linalg.norm(pair, axis=1), np.sqrt(2), rtol=1e-5)  # √2 cos and √2 sin
        basis = np.c_[np.cos(order * angle), np.sin(order * angle)]
        np.testing.assert_allclose(basis @ np.linalg.lstsq(basis, pair, rcond=None)[0], pair, atol=1e-5)
    assert model.eigenvalues_[0] == pytest.approx(model.eigenvalues_[1], rel=1e-8)
    assert model.eigenvalues_[2] == pytest.approx(model.eigenvalues_[3], rel=1e-8)


def test_a_rectangle_has_cosines():
    """Neumann eigenfunctions cos(m π x/a) cos(n π y/b), in the order of (m/a)² + (n/b)²."""
    X = grid(50, 30)
    model = DiffusionMaps(4, t=0, alpha=1, bandwidth_factor=2, random_state=0).fit(X)
    x, y = np.pi * (X[:, 0] + 0.5) / 50, np.pi * (X[:, 1] + 0.5) / 30
    for i, expected in enumerate([np.cos(x), np.cos(y), np.cos(x) * np.cos(y), np.cos(2 * x)]):
        assert abs(np.corrcoef(model.embedding_[:, i], expected)[0, 1]) > 0.995
    # −log λ is the Laplacian's eigenvalue times ε/2
    rates = -np.log(model.eigenvalues_)
    np.testing.assert_allclose(rates / rates[0], [1, (50 / 30) ** 2, 1 + (50 / 30) ** 2, 4], rtol=0.05)


@pytest.mark.parametrize("method", [DiffusionMaps, AnisotropicDiffusionMaps])
@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("options", [{}, {"alpha": 1.0}, {"t": 3}, {"bandwidth": "auto"}, {"bandwidth_factor": 5.0}])
def test_nystrom_returns_the_training_points(method, dense, options, monkeypatch):
    monkeypatch.setattr(_diffusion_maps, "is_dense", lambda metric, epsilon: dense)
    _, statistics = smooth_statistics(200)
    model = method(2, random_state=0, **options).fit(statistics)
    size = np.abs(model.embedding_).max()
    np.testing.assert_allclose(model.transform(statistics.means), model.embedding_, atol=1e-6 * size)


def test_nystrom_between_training_points():
    angle = 2 * np.pi * np.arange(400) / 400
    ring = np.c_[np.cos(angle), np.sin(angle)]
    all_of_them = DiffusionMaps(2, bandwidth=0.01, random_state=0).fit(ring)
    half = DiffusionMaps(2, bandwidth=0.01, random_state=0).fit(ring[::2])
    new = half.transform(ring[1::2])
    np.testing.assert_allclose(np.linalg.norm(new, axis=1), np.linalg.norm(half.embedding_, axis=1).mean(), rtol=1e-3)
    assert all_of_them.eigenvalues_[0] == pytest.approx(half.eigenvalues_[0], rel=1e-3)


def test_two_runs_agree_in_sign_and_order():
    _, statistics = smooth_statistics(150)
    first, second = (DiffusionMaps(3, random_state=seed).fit(statistics).embedding_ for seed in (0, 1))
    np.testing.assert_allclose(first, second, atol=1e-6)
    shuffled = np.random.RandomState(0).permutation(150)
    third = DiffusionMaps(3, random_state=0).fit(statistics[shuffled]).embedding_
    np.testing.assert_allclose(third, first[shuffled], atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_invariance_to_rigid_motions(seed):
    Y = np.random.RandomState(seed).uniform(size=(100, 3))
    rotation = np.linalg.qr(np.random.RandomState(seed).standard_normal((3, 3)))[0]
    plain, moved = (
        DiffusionMaps(2, random_state=0).fit_transform(Y),
        DiffusionMaps(2, random_state=0).fit_transform(Y @ rotation + 7),
    )
    np.testing.assert_allclose(moved, plain, atol=1e-6)


# -- intrinsic Isomap -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_landmarks", [60, 1000])
def test_isomap_is_exact_on_a_flat_grid(n_landmarks):
    X = grid(12)
    model = IntrinsicIsomap(2, burst_std=1.0, n_landmarks=n_landmarks, random_state=0).fit(exact_bursts(X))
    assert_same_up_to_rigid_motion(model.embedding_, X, 1e-6)
    assert model.stress_ < 1e-7


def test_isomap_on_a_bent_sheet():
    """Without refinement geodesics are too long; with it local distances are right."""
    X, statistics = smooth_statistics(400)
    rough = IntrinsicIsomap(2, burst_std=1.0, max_iter=0, random_state=0).fit(statistics)
    fine = IntrinsicIsomap(2, burst_std=1.0, random_state=0).fit(statistics)
    assert stress(X, fine.embedding_) < 0.3 * stress(X, rough.embedding_)
    assert stress(X, fine.embedding_) < 1e-3
    assert fine.stress_ < rough.stress_


# -- Riemannian relaxation --------------------------------------------------------------------------------------


def test_dual_metric_against_the_naive_twin():
    Y = np.random.RandomState(0).uniform(size=(60, 2))
    generator = laplacian(Euclidean(Y), 0.02)
    Z = np.random.RandomState(1).standard_normal((60, 3))
    dense = generator.toarray()
    naive = [0.5 * sum(dense[i, j] * np.outer(Z[j] - Z[i], Z[j] - Z[i]) for j in range(60)) for i in range(60)]
    np.testing.assert_allclose(dual_metric(generator, Z), naive, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("d", "k"), [(2, 2), (3, 2), (2, 1)])
def test_relaxation_gradient_against_finite_differences(d, k):
    Y = np.random.RandomState(0).uniform(size=(40, 2))
    generator = laplacian(Euclidean(Y), 0.02)
    Z = 0.3 * np.random.RandomState(1).standard_normal((40, d))
    value, gradient = relaxation_loss(generator, Z, k)
    H = dual_metric(generator, Z)
    eigenvalues = np.linalg.eigvalsh(H)[:, ::-1]
    assert value == pytest.approx(
        np.mean(np.square(eigenvalues[:, :k] - 1).sum(axis=1) + np.square(eigenvalues[:, k:]).sum(axis=1))
    )
    direction = np.random.RandomState(2).standard_normal(Z.shape)
    step = 1e-6
    ends = [relaxation_loss(generator, Z + s * step * direction, k)[0] for s in (1, -1)]
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(float((gradient * direction).sum()), rel=1e-6)


def test_the_laplacian_of_a_sheet_sees_its_metric():
    """H of the identity embedding is the identity, at the edge of the sheet too."""
    X = grid(30, seed=0)
    metric = Euclidean(X)
    H = dual_metric(laplacian(metric, 4 * max_min(metric)), X)
    inside = ((X > 8) & (X < 21)).all(axis=1)
    np.testing.assert_allclose(H[inside].mean(axis=0), np.eye(2), atol=0.05)


@pytest.mark.slow
def test_relaxation_keeps_a_flat_sheet_flat():
    X = grid(20, seed=1)
    model = RiemannianRelaxation(2, init=X, random_state=0).fit(X)
    assert stress(X, model.embedding_) < 0.01 * X.var(axis=0).sum()
    in_space = RiemannianRelaxation(3, intrinsic_dim=2, init=np.c_[X, np.zeros(len(X))], random_state=0).fit(X)
    assert np.abs(np.linalg.svd(in_space.embedding_ - in_space.embedding_.mean(axis=0))[1][2]) < 1e-6


@pytest.mark.slow
def test_relaxation_lowers_its_loss_on_a_cylinder():
    """A closed band in the plane is squeezed on one side; in space it is a cylinder, which is isometric."""
    angle, height = (grid(40, 8) / [40, 8]).T
    Y = np.c_[np.cos(2 * np.pi * angle), np.sin(2 * np.pi * angle), height]
    model = RiemannianRelaxation(3, intrinsic_dim=2, random_state=0).fit(Y)
    history = model.loss_history_
    assert history[-1] < 0.1 * history[0]
    assert all(later <= earlier for earlier, later in pairwise(history))
    assert model.loss_history_[-1] < 0.05


@pytest.mark.slow
def test_relaxation_takes_the_metric_of_the_bursts():
    """The same points, stretched twofold in one direction: bursts know it, the observed space does not."""
    X = grid(15, seed=2)
    A = np.diag([2.0, 1.0])
    statistics = BurstStatistics.from_jacobians(X @ A, np.tile(A.T, (len(X), 1, 1)))
    with_bursts = RiemannianRelaxation(2, burst_std=1.0, random_state=0).fit(statistics).embedding_
    without = RiemannianRelaxation(2, random_state=0).fit(X @ A).embedding_
    assert stress(X, with_bursts) < 0.3
    assert stress(X @ A, without) < 1
    assert stress(X, without, scale=True) > 3


# -- alignment and autoencoder ----------------------------------------------------------------------------------


def test_burst_alignment_is_the_alignment():
    X, statistics = planar_statistics(200)
    model = BurstAlignment(2, burst_std=1.0, random_state=0).fit(statistics)
    assert_same_up_to_rigid_motion(model.embedding_, X, 1e-6)
    assert model.strain_ < 1e-6


@pytest.mark.slow
def test_the_autoencoder_reconstructs_and_does_not_measure():
    _, bursts = planar_bursts(200, 20)
    model = Autoencoder(2, max_iter=300, random_state=0).fit(bursts)
    assert model.loss_ < 1e-3
    means = bursts.mean(axis=1)
    np.testing.assert_allclose(model.inverse_transform(model.transform(means)), means, atol=0.1)
    np.testing.assert_array_equal(model.transform(means), model.embedding_)
    with pytest.raises(ValueError, match="Z has 3 features"):
        model.inverse_transform(means)


# -- new points -------------------------------------------------------------------------------------------------


def test_geometric_harmonics_extend_a_smooth_function():
    random = np.random.RandomState(0)
    Y = random.uniform(size=(800, 2))
    values = np.c_[np.sin(3 * Y[:, 0]) * Y[:, 1], Y[:, 0] ** 2]
    extend = GeometricHarmonics(Y, values, random)
    new = random.uniform(0.05, 0.95, size=(300, 2))
    expected = np.c_[np.sin(3 * new[:, 0]) * new[:, 1], new[:, 0] ** 2]
    np.testing.assert_allclose(extend(new), expected, atol=2e-4)
    np.testing.assert_allclose(extend(Y), values, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("method", ALL)
def test_new_points_near_and_far(method):
    _, bursts = planar_bursts(150, 20)
    model = method(2, random_state=0).fit(bursts)
    means = bursts.mean(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near = model.transform(means[:10] + 1e-3)
    # Relaxation leaves an embedding of few points jagged; harmonics are smooth.
    allowed = 0.25 if method is RiemannianRelaxation else 0.1
    assert np.abs(near - model.embedding_[:10]).max() < allowed * np.abs(model.embedding_).max()
    with pytest.warns(TrustWarning, match=r"1 of 2 points \(first: 1\) lie outside"):
        far = model.transform(np.stack([means[0], means[0] + 100]))
    assert np.isfinite(far).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ALL)
def test_the_contract(method):
    _, bursts = planar_bursts(60, 20)
    model = method(2, random_state=0)
    with pytest.raises(NotFittedError):
        model.transform(bursts[0])
    Z = model.fit_transform(bursts)
    assert Z is model.embedding_ and Z.shape == (60, 2)
    assert model.n_features_in_ == 3
    name = method.__name__.lower()
    assert model.get_feature_names_out().tolist() == [f"{name}0", f"{name}1"]
    np.testing.assert_array_equal(clone(model).fit_transform(bursts), Z)  # the same seed, the same bits
    with pytest.raises(ValueError, match="2 features"):
        model.transform(bursts[0, :, :2])
    with pytest.raises(ValueError, match="NaN"):
        model.transform(np.full((2, 3), np.nan))


POINT_METHODS = [
    DiffusionMaps(bandwidth_factor=10, random_state=0),
    RiemannianRelaxation(bandwidth_factor=10, max_iter=20, random_state=0),
    Autoencoder(max_iter=20, random_state=0),
]
NOT_RUN = {"check_array_api_input": "needs array-api-strict and a switch set before SciPy is imported"}


def check_name(check):
    return (check.func if hasattr(check, "func") else check).__name__


CHECKS = [
    (model, check)
    for model in POINT_METHODS
    for model, check in estimator_checks_generator(model)
    if check_name(check) not in NOT_RUN
]


@pytest.mark.parametrize(
    ("model", "check"), CHECKS, ids=lambda value: check_name(value) if callable(value) else type(value).__name__
)
def test_scikit_learns_estimator_checks(model, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks transform points far from those they fitted
        check(model)


def test_number_of_estimator_checks():
    assert len(CHECKS) >= 3 * 40


# -- bad input --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", NEEDS_BURSTS)
def test_points_where_bursts_are_needed(method):
    with pytest.raises(BurstError, match=r"needs bursts of shape \(N, M, D\); got points of shape \(50, 3\)"):
        method().fit(np.random.RandomState(0).standard_normal((50, 3)))


SPOILT = [
    (lambda b: np.where(np.arange(60)[:, None, None] == 7, np.nan, b), "20 cells in burst 7"),
    (lambda b: b[:5], "5 bursts; at least 10"),
    (lambda b: np.where(np.arange(60)[:, None, None] == 7, 1.0, b), "burst 7 .* no spread"),
    (lambda b: np.concatenate([b, b + 1e3]), "2 pieces"),
]


@pytest.mark.parametrize(
    ("method", "spoil", "message"),
    [
        pytest.param(method, spoil, message, id=f"{method.__name__}-{message}")
        for method in ALL
        for spoil, message in SPOILT
        if (method, message) != (Autoencoder, "2 pieces")  # it does not care for distances
    ],
)
def test_bad_bursts(method, spoil, message):
    _, bursts = planar_bursts(60, 20)
    with pytest.raises(BurstError, match=message):
        method(2).fit(spoil(bursts))


@pytest.mark.parametrize("method", [DiffusionMaps, RiemannianRelaxation])
def test_disconnected_points_are_named(method):
    Y = np.random.RandomState(0).uniform(size=(60, 2))
    with pytest.raises(BurstError, match="the points fall into 2 pieces"):
        method(2).fit(np.concatenate([Y, Y + 100]))


@pytest.mark.parametrize("method", [DiffusionMaps, RiemannianRelaxation, Autoencoder])
def test_bad_points(method):
    Y = np.random.RandomState(0).uniform(size=(60, 3))
    for bad, message in [
        (Y[:5], "minimum of 10"),
        (np.where(Y[3, 1] == Y, np.nan, Y), "NaN"),
        (np.ones((60, 3)), "identical"),
        (Y[0], "Expected 2D"),
    ]:
        with pytest.raises(ValueError, match=message):
            method(2).fit(bad)


@pytest.mark.parametrize("method", ALL)
def test_duplicate_points(method):
    _, bursts = planar_bursts(60, 20)
    Z = method(2, random_state=0).fit_transform(np.concatenate([bursts, bursts[:20]]))
    assert np.isfinite(Z).all()
    np.testing.assert_allclose(Z[60:], Z[:20], atol=2e-2 * np.abs(Z).max())


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (DiffusionMaps, {"n_components": 0}, "n_components must be an integer"),
        (DiffusionMaps, {"n_components": 59}, "too large for 60 points"),
        (DiffusionMaps, {"bandwidth": "wide"}, '"max-min", "auto" or a number'),
        (DiffusionMaps, {"bandwidth": -1.0}, "bandwidth must be a number > 0"),
        (DiffusionMaps, {"bandwidth_factor": 0}, "bandwidth_factor must be a number > 0"),
        (DiffusionMaps, {"alpha": np.nan}, "alpha must be a number"),
        (DiffusionMaps, {"t": "1"}, "t must be a number"),
        (AnisotropicDiffusionMaps, {"n_components": 1}, "n_components = 1"),
        (IntrinsicIsomap, {"n_neighbors": 0}, "n_neighbors must be"),
        (IntrinsicIsomap, {"burst_std": 0.0}, "burst_std must be"),
        (IntrinsicIsomap, {"n_landmarks": 2}, "n_landmarks must be an integer of at least 3"),
        (RiemannianRelaxation, {"init": "random"}, 'init must be "spectral"'),
        (RiemannianRelaxation, {"init": np.zeros((3, 2))}, r"init has shape \(3, 2\)"),
        (RiemannianRelaxation, {"intrinsic_dim": 3}, "cannot hold k = 3"),
        (BurstAlignment, {"n_neighbors": 2.5}, "n_neighbors must be"),
        (Autoencoder, {"activation": "relu6"}, "activation must be one of"),
        (Autoencoder, {"max_iter": 0}, "max_iter must be"),
    ],
)
def test_bad_parameters(method, options, message):
    _, bursts = planar_bursts(60, 20)
    with pytest.raises(ValueError, match=message):
        method(**options).fit(bursts)
