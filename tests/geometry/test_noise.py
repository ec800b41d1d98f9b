"""Measurement noise: its forms, what a noisy burst shows, and estimates of it from bursts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import outer, planar_bursts, random_rotation
from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics, Noise, as_noise
from pyloca.geometry._factor_analysis import _both_sides
from pyloca.geometry._local import look
from pyloca.paper.experiments._measurements import smooth_map

SEEDS = st.integers(0, 10_000)
STD = np.array([0.004, 0.008, 0.002, 0.006, 0.003, 0.005])  # of six sensors


def smooth_bursts(seed=0, n=300, m=40, dim=6, k=2, std=0.02, width=3.0):
    """Bursts (n, m, dim) of a smooth map whose tangents turn, without noise."""
    random = np.random.RandomState(seed)
    f = smooth_map(k, dim, random)
    X = width * random.uniform(size=(n, 1, k)) + std * random.standard_normal((n, m, k))
    return f(X.reshape(-1, k)).reshape(n, m, dim)


def covariance(dim=6, seed=0):
    """Noise covariance that is correlated between sensors."""
    root = np.diag(STD[:dim]) @ (np.eye(dim) + 0.25 * np.random.RandomState(seed).standard_normal((dim, dim)))
    return root @ root.T


def noise_like(bursts, factor, seed=1):
    """Noise factor · z, with z standard normal."""
    return np.random.RandomState(seed).standard_normal(bursts.shape) @ np.asarray(factor).T


def estimated(bursts, k=2, **options):
    return BurstStatistics.from_bursts(bursts, k, **options).instrument


# -- forms ------------------------------------------------------------------------------------------------------


def test_a_number_is_the_standard_deviation_of_every_sensor():
    noise = as_noise(0.5, n=7, n_features=3)
    assert not noise.full
    assert noise.places is None
    np.testing.assert_allclose(noise.levels, np.full((1, 3), 0.25))


@pytest.mark.parametrize("n", [5, 3], ids=["N=5", "N=D"])
def test_standard_deviations_are_squared_and_covariances_are_not(n):
    std, each = np.array([0.1, 0.2, 0.4]), np.arange(1.0, 1 + 3 * n).reshape(n, 3)
    matrix = covariance(3)
    np.testing.assert_allclose(as_noise(std, n, 3).levels, std[None] ** 2)
    np.testing.assert_allclose(as_noise(each, n, 3).levels, each**2)
    np.testing.assert_allclose(as_noise(matrix, n, 3).levels, matrix[None])
    np.testing.assert_allclose(as_noise(np.tile(matrix, (n, 1, 1)), n, 3).levels, np.tile(matrix, (n, 1, 1)))
    assert as_noise(matrix, n, 3).full


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("loud", "'loud'"),
        (True, "True"),
        (None, "None"),
        ({"a": 1}, "dict"),
        (np.ones(4), r"shape \(4,\); with N = 7 bursts of D = 3 sensors"),
        (np.ones((2, 3)), r"shape \(2, 3\)"),
        (np.ones((7, 2, 2)), r"shape \(7, 2, 2\)"),
        (-0.5, "-0.5"),
        ([0.1, -0.2, 0.3], "-0.2 for depth"),
        ([0.1, np.nan, 0.3], "not finite"),
        (np.inf, "not finite"),
        (np.triu(np.ones((3, 3))), "not symmetric"),
        (np.diag([1.0, 1.0, -1.0]), "negative eigenvalue"),
    ],
    ids=str,
)
def test_what_is_not_noise_is_refused(value, words):
    with pytest.raises(ValueError, match=words):
        as_noise(value, 7, 3, ("width", "depth", "height"))


def test_a_bad_covariance_is_refused_by_its_burst():
    covariances = np.tile(np.eye(3), (7, 1, 1))
    covariances[4, 0, 0] = -1
    with pytest.raises(ValueError, match="of burst 4 has a negative eigenvalue"):
        as_noise(covariances, 7, 3)


def test_noise_that_is_the_same_everywhere():
    noise = as_noise(STD, 10, 6)
    means = np.random.RandomState(0).standard_normal((10, 6))
    assert noise.placed(means) is noise
    np.testing.assert_allclose(noise.at(means), STD[None] ** 2)


def test_noise_per_burst_holds_near_its_burst():
    random = np.random.RandomState(0)
    means, std = random.standard_normal((10, 3)) * [1, 100, 0.01], random.uniform(1, 2, (10, 3))
    noise = as_noise(std, 10, 3).placed(means)
    order = random.permutation(10)
    near = means[order] + 1e-3 * means.std(axis=0)
    np.testing.assert_allclose(noise.at(near), std[order] ** 2)
    assert noise.placed(means[::-1]) is noise


@pytest.mark.parametrize("form", ["variances", "covariances"])
def test_scaled_noise_is_the_noise_of_scaled_features(form):
    random = np.random.RandomState(0)
    means, scale = random.standard_normal((10, 3)), np.array([2.0, 0.5, 10.0])
    levels = random.uniform(1, 2, (10, 3)) if form == "variances" else np.stack([covariance(3, i) for i in range(10)])
    noise = as_noise(levels, 10, 3).placed(means)
    scaled = noise.scaled(scale)
    divisor = np.square(scale) if form == "variances" else np.outer(scale, scale)
    np.testing.assert_allclose(scaled.at(means / scale), noise.at(means) / divisor)
    back = scaled.scaled(1 / scale)
    for name in ("levels", "places", "unit"):
        np.testing.assert_allclose(getattr(back, name), getattr(noise, name))
    assert noise.scaled(None) is noise


# -- bursts in white coordinates --------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [False, True], ids=["one noise", "one per burst"])
@pytest.mark.parametrize("full", [False, True], ids=["variances", "covariances"])
def test_the_whitener_makes_noise_white(full, each):
    random = np.random.RandomState(0)
    n = 5 if each else 1
    levels = np.stack([covariance(4, i) if full else STD[:4] ** 2 * (i + 1) for i in range(n)])
    noise = Noise(levels, random.standard_normal((n, 4)) if each else None)
    means = np.zeros((5, 4)) if noise.places is None else noise.places
    white = noise.whitener(means, np.zeros(4))
    rows = random.standard_normal((5, 7, 4))
    np.testing.assert_allclose(white.back(white.white(rows)), rows, atol=1e-12)
    # L⁻¹ S L⁻ᵀ = I for every burst
    factor = white.white(np.tile(np.eye(4), (5, 1, 1)))  # rows are L⁻¹ e_d
    dense = np.broadcast_to(levels if full else levels[:, None] * np.eye(4), (5, 4, 4))
    np.testing.assert_allclose(
        np.einsum("bdi,bde,bej->bij", factor, dense, factor), np.tile(np.eye(4), (5, 1, 1)), atol=1e-9
    )
    basis = np.stack([random_rotation(4, i)[:2] for i in range(5)])
    np.testing.assert_allclose(white.noise_along(basis), np.tile(np.eye(2), (5, 1, 1)), atol=1e-9)


@given(seed=SEEDS)
def test_an_invertible_linear_change_of_the_sensors_turns_tangents_with_it(seed):
    """Mixing the sensors, and their noise with them, is no change of what bursts say."""
    random = np.random.RandomState(seed)
    noise, change = covariance(4, seed), random_rotation(4, seed) @ np.diag(random.uniform(0.2, 5, 4))
    bursts = 0.05 * random.standard_normal((8, 30, 2)) @ random.standard_normal((2, 4))
    bursts = bursts + noise_like(bursts, np.linalg.cholesky(noise), seed)
    floor, means = np.zeros(4), np.zeros((8, 4))
    one = look(bursts, 2, Noise(noise[None]).whitener(means, floor))
    two = look(bursts @ change.T, 2, Noise((change @ noise @ change.T)[None]).whitener(means, floor))
    expected = np.einsum("ij,njk,lk->nil", change, outer(one.tangents), change)
    np.testing.assert_allclose(outer(two.tangents), expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    # E and R, written out in the coordinates of the sensors
    for part in ("total", "noise"):
        first, second = (np.einsum("nka,nkl,nlb->nab", s.tangents, getattr(s, part), s.tangents) for s in (one, two))
        expected = np.einsum("ij,njk,lk->nil", change, first, change)
        np.testing.assert_allclose(second, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())


def test_signal_and_noise_add_up_to_the_burst():
    """E = I + R in the basis of the tangents, where a burst is not nearly all noise; without noise, E = I and R = 0."""
    bursts = smooth_bursts()[:20]
    whitener = Noise((STD**2)[None]).whitener(bursts.mean(axis=1), np.zeros(6))
    local = look(bursts + noise_like(bursts, np.diag(STD)), 2, whitener)
    eye = np.tile(np.eye(2), (20, 1, 1))
    np.testing.assert_allclose(local.total, eye + local.noise, atol=1e-9)
    plain = look(bursts, 2)
    np.testing.assert_array_equal(plain.total, eye)
    np.testing.assert_array_equal(plain.noise, 0 * eye)


@pytest.mark.parametrize("form", ["per sensor", "correlated", "per burst"])
def test_known_noise_is_taken_out_of_the_tangents(form):
    """The spectra of noisy bursts are those of clean ones, on average."""
    bursts = smooth_bursts()
    clean = BurstStatistics.from_bursts(bursts, 2).spectra.mean(axis=0)
    level = {"per sensor": 2 * STD, "correlated": 4 * covariance(), "per burst": np.tile(2 * STD, (300, 1))}[form]
    factor = np.linalg.cholesky(level) if form == "correlated" else 2 * np.diag(STD)
    noisy = bursts + noise_like(bursts, factor)
    raw = BurstStatistics.from_bursts(noisy, 2).spectra.mean(axis=0)
    known = BurstStatistics.from_bursts(noisy, 2, measurement_noise=level).spectra.mean(axis=0)
    assert abs(known[1] / clean[1] - 1) < 0.05
    assert abs(known[1] / clean[1] - 1) < 0.5 * abs(raw[1] / clean[1] - 1)


def test_noise_per_burst_stays_with_its_burst_when_spikes_are_set_aside():
    bursts = smooth_bursts()
    std = np.outer(np.linspace(0.5, 2, 300), STD)
    noisy = bursts + std[:, None] * noise_like(bursts, np.eye(6))
    noisy[::20, 3] += 3.0
    statistics = BurstStatistics.from_bursts(noisy, 2, measurement_noise=std)
    assert statistics.set_aside.sum() == 15
    np.testing.assert_allclose(statistics.instrument.at(statistics.means), std**2)


@pytest.mark.parametrize(("m", "dim", "k"), [(40, 6, 2), (6, 17, 2), (20, 50, 3), (10, 2, 2), (300, 4, 1)])
@pytest.mark.parametrize("seed", range(3))
def test_bursts_of_noise_alone_are_refused(m, dim, k, seed):
    """Also when they have few points, whose leading directions stand out of the noise by chance."""
    noise = 0.1 * np.random.RandomState(seed).standard_normal((200, m, dim))
    with pytest.raises(BurstError, match=r"the measurement noise is \d+% of the variance of a typical burst along one"):
        BurstStatistics.from_bursts(noise, k, measurement_noise=0.1)
    if k < dim and m > 6:
        with pytest.raises(BurstError, match="measurement noise hides the bursts"):
            BurstStatistics.from_bursts(noise, measurement_noise=0.1)


@pytest.mark.parametrize(("m", "dim", "k"), [(40, 6, 2), (6, 17, 2), (20, 50, 3), (10, 2, 2), (300, 4, 1)])
def test_bursts_a_few_times_larger_than_the_noise_are_not_refused(m, dim, k):
    random = np.random.RandomState(0)
    noisy = random.standard_normal((200, m, dim))
    noisy[:, :, :k] += 3 * random.standard_normal((200, m, k))
    statistics = BurstStatistics.from_bursts(noisy, k, measurement_noise=1.0)
    assert np.median(statistics.noise_shares) < 0.8


# -- effective counts -------------------------------------------------------------------------------------------


def test_effective_counts_without_noise_are_the_counts():
    statistics = BurstStatistics.from_bursts(smooth_bursts(n=30), 2)
    np.testing.assert_array_equal(statistics.effective_counts, statistics.counts)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_effective_counts_are_those_of_clean_bursts_with_the_same_error(k):
    """A noise-free burst of M_e points has E‖S − I‖² = k (k + 1) / (M_e − 1); so has Ê − R of a noisy burst of M."""
    random, m = np.random.RandomState(k), 30
    root = random.standard_normal((k, k))
    noise = root @ root.T / k
    total = np.eye(k) + noise
    statistics = BurstStatistics(
        np.zeros((1, k)), np.eye(k)[None], np.array([float(m)]), np.zeros(1), total=total[None], noise=noise[None]
    )
    points = random.standard_normal((20_000, m, k)) @ np.linalg.cholesky(total).T
    centred = points - points.mean(axis=1, keepdims=True)
    signal = np.einsum("nmi,nmj->nij", centred, centred) / (m - 1) - noise
    error = np.square(signal - np.eye(k)).sum(axis=(1, 2)).mean()
    assert k * (k + 1) / (statistics.effective_counts[0] - 1) == pytest.approx(error, rel=0.03)


# -- estimates from the bursts themselves -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_noise_of_each_sensor_is_estimated(seed):
    bursts = smooth_bursts(seed)
    noise = estimated(bursts + noise_like(bursts, np.diag(STD)), measurement_noise="estimate")
    assert not noise.full
    np.testing.assert_allclose(np.sqrt(noise.levels.mean(axis=0)), STD, rtol=0.15)


def test_k_is_found_together_with_the_noise():
    bursts = smooth_bursts()
    noisy = bursts + noise_like(bursts, np.diag(STD))
    statistics = BurstStatistics.from_bursts(noisy, measurement_noise="estimate")
    assert statistics.intrinsic_dim == 2
    np.testing.assert_allclose(np.sqrt(statistics.instrument.levels.mean(axis=0)), STD, rtol=0.15)


@pytest.mark.parametrize("seed", [0, 1])
def test_correlated_noise_is_estimated(seed):
    bursts, truth = smooth_bursts(seed), covariance(seed=seed)
    noisy = bursts + noise_like(bursts, np.linalg.cholesky(truth))
    statistics = BurstStatistics.from_bursts(noisy, 2, measurement_noise="estimate")
    assert statistics.instrument.full
    found, size = statistics.instrument.levels.mean(axis=0), np.sqrt(np.diag(truth))
    np.testing.assert_allclose(np.sqrt(np.diag(found)), size, rtol=0.15)
    np.testing.assert_allclose(found / np.outer(size, size), truth / np.outer(size, size), atol=0.3)
    # what it means for the bursts: the signal along tangents
    known = BurstStatistics.from_bursts(noisy, 2, measurement_noise=truth)
    np.testing.assert_allclose(statistics.spectra.mean(axis=0), known.spectra.mean(axis=0), rtol=0.02)


@pytest.mark.parametrize("full", [False, True], ids=["per sensor", "correlated"])
def test_noise_as_large_as_the_bursts_is_estimated_off_planes_of_means(full):
    """The tangents of such bursts are tilted by noise; the means of their neighbours are not."""
    bursts = smooth_bursts(n=400, std=0.01, width=1.0)
    size = np.sqrt(bursts.var(axis=1).sum(axis=1).mean() / 2)
    truth = covariance(seed=1) if full else np.diag(STD**2)
    truth *= 6 * size**2 / np.trace(truth)
    noisy = bursts + noise_like(bursts, np.linalg.cholesky(truth))
    statistics = BurstStatistics.from_bursts(noisy, max_dim=2, measurement_noise="estimate")
    assert statistics.intrinsic_dim == 2
    assert statistics.instrument.full == full
    level = statistics.instrument.levels.mean(axis=0)
    np.testing.assert_allclose(np.diag(level) if full else level, np.diag(truth), rtol=0.15)
    # the signal left along the tangents is that of the clean bursts
    clean = BurstStatistics.from_bursts(bursts, 2)
    found = np.einsum("nkd,nkl,nle->nde", statistics.tangents, statistics.total - statistics.noise, statistics.tangents)
    np.testing.assert_allclose(np.trace(found, axis1=1, axis2=2).mean(), clean.spectra.sum(axis=1).mean(), rtol=0.08)


@pytest.mark.parametrize(("dim", "k"), [(3, 1), (5, 1), (5, 2)])
@pytest.mark.parametrize("part", [0.5, 1.0])
def test_correlated_noise_of_a_linear_instrument_is_refused(dim, k, part):
    """Along tangents that never turn, noise and signal are the same to any method."""
    _, bursts = planar_bursts(n=300, m=40, k=k, dim=dim, std=0.02)
    noise = noise_like(bursts, np.linalg.cholesky(covariance(dim)))
    noise *= part * np.sqrt(bursts.var(axis=1).sum(axis=1).mean() / k / noise.var())
    with pytest.raises(BurstError, match="cannot be estimated"):
        BurstStatistics.from_bursts(bursts + noise, max_dim=k, measurement_noise="estimate")


def test_a_k_that_is_too_small_is_not_explained_by_noise():
    """Bursts of two tangents, one of them hidden: refused, rather than taken for bursts of one."""
    random = np.random.RandomState(0)
    X = random.uniform(size=(300, 2))
    step = random.standard_normal((300, 40, 2)) * [0.02, 0.0005]
    bursts = (X[:, None] + step) @ random_rotation(5, 1)[:2]
    noisy = bursts + noise_like(bursts, 0.01 * np.eye(5))
    with pytest.raises(BurstError, match="cannot be estimated"):
        BurstStatistics.from_bursts(noisy, max_dim=2, measurement_noise="estimate")


@pytest.mark.parametrize("full", [False, True])
def test_information_is_the_derivative_of_what_is_seen(full):
    """`_both_sides` against the sum of V S V for a basis of matrices S."""
    random = np.random.RandomState(0)
    matrices, used = random.standard_normal((7, 3, 3)), random.uniform(size=7)
    matrices = matrices + matrices.transpose(0, 2, 1)
    a, b = np.triu_indices(3) if full else (np.arange(3), np.arange(3))
    basis = []
    for i, j in zip(a, b, strict=True):
        one = np.zeros((3, 3))
        one[i, j] = one[j, i] = 1 if i == j else np.sqrt(0.5)
        basis.append(one)
    expected = [
        [np.sum(other * np.einsum("n,nij,jk,nkl->il", used, matrices, one, matrices)) for one in basis]
        for other in basis
    ]
    np.testing.assert_allclose(_both_sides(matrices, used, full=full), expected, rtol=1e-12)


@pytest.mark.parametrize("std", [0.02, 0.1])
def test_noise_cannot_be_estimated_when_tangents_do_not_turn(std):
    """Correlated noise along tangents that are the same everywhere is signal to any method."""
    _, bursts = planar_bursts(n=300, m=40, k=2, dim=6, std=std)
    noisy = bursts + noise_like(bursts, np.linalg.cholesky(covariance()))
    with pytest.raises(
        BurstError, match=r"cannot be estimated: the tangents hardly turn .*Pass it as an array, or take"
    ):
        BurstStatistics.from_bursts(noisy, 2, measurement_noise="estimate")


def test_noise_of_sensors_that_carry_all_the_signal_cannot_be_estimated():
    """Their signal is not seen by any other sensor, so it could as well be noise of their own."""
    X = np.random.RandomState(0).uniform(size=(80, 1, 2)) + 0.01 * np.random.RandomState(1).standard_normal(
        (80, 100, 2)
    )
    bursts = np.concatenate([X, np.zeros((80, 100, 8))], axis=2)
    noisy = bursts + noise_like(bursts, 0.005 * np.eye(10))
    with pytest.raises(BurstError, match="cannot be estimated"):
        BurstStatistics.from_bursts(noisy, 2, measurement_noise="estimate")
    known = BurstStatistics.from_bursts(noisy, 2, measurement_noise=0.005)
    np.testing.assert_allclose(known.spectra.mean(axis=1).mean(), 1e-4, rtol=0.05)


def test_noise_cannot_be_estimated_when_nothing_is_off_the_tangents():
    _, bursts = planar_bursts(k=2, dim=2)
    with pytest.raises(BurstError, match="D = 2 directions with k = 2 tangents leave nothing off the tangents"):
        BurstStatistics.from_bursts(bursts, 2, measurement_noise="estimate")


# -- estimates from static bursts -------------------------------------------------------------------------------


def static_bursts(std, n=100, m=20, seed=2):
    """Static bursts (n, m, 6) at places of the smooth map; `std` (n, 6) or (6,)."""
    places = smooth_bursts(seed=0, n=n, m=2, std=0.0)[:, :1]
    std = np.broadcast_to(std, (n, 6))
    return places + std[:, None] * np.random.RandomState(seed).standard_normal((n, m, 6))


def test_static_bursts_tell_the_noise():
    bursts = smooth_bursts()
    noise = estimated(bursts + noise_like(bursts, np.diag(STD)), static=static_bursts(STD))
    assert noise.places is None
    assert not noise.full  # correlations of few points are chance
    np.testing.assert_allclose(np.sqrt(noise.levels[0]), STD, rtol=0.1)


def test_static_bursts_tell_correlations():
    bursts, truth = smooth_bursts(), covariance()
    static = static_bursts(0.0) + noise_like(np.empty((100, 20, 6)), np.linalg.cholesky(truth))
    noise = estimated(bursts, static=static)
    assert noise.full
    size = np.sqrt(np.diag(truth))
    np.testing.assert_allclose(noise.levels[0] / np.outer(size, size), truth / np.outer(size, size), atol=0.15)


def test_static_bursts_tell_noise_that_grows():
    """Threefold along the first sensor; levels at the bursts are near the truth there."""
    bursts = smooth_bursts()
    quiet = static_bursts(0.0, n=400)[:, 0]
    low, high = np.quantile(quiet[:, 0], [0.05, 0.95])

    def growth(y):
        return 1 + 2 * np.clip((y[:, :1] - low) / (high - low), 0, 1)

    static = static_bursts(growth(quiet) * STD, n=400)
    noise = estimated(bursts, static=static)
    means = bursts.mean(axis=1)
    found = np.sqrt(noise.at(means))
    truth = growth(means) * STD
    error = np.abs(np.log(found / truth))
    assert np.median(error) < 0.15
    assert np.quantile(error, 0.95) < 0.4
    assert found[:, 0].max() / found[:, 0].min() > 2


def test_what_static_bursts_cannot_tell():
    bursts = Bursts(smooth_bursts(n=30), feature_names=list("abcdef"))
    with pytest.raises(BurstError, match="static bursts have 5 features; the bursts have 6"):
        estimated(bursts, static=static_bursts(STD)[:, :, :5])
    with pytest.raises(BurstError, match="static bursts have 'b' where the bursts have 'a'"):
        estimated(bursts, static=Bursts(static_bursts(STD), feature_names=list("bacdef")))
    with pytest.raises(BurstError, match=r"9 degrees of freedom .* at least 10"):
        estimated(bursts, static=static_bursts(STD, n=3, m=4))
