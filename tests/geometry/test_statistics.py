"""Means, tangents and residuals of bursts, against np.cov and eigh."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import (
    curved_bursts,
    naive_statistics,
    outer,
    planar_bursts,
    random_rotation,
)
from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry import (
    BurstStatistics,
    JointMahalanobis,
    mahalanobis_graph,
)

SEEDS = st.integers(0, 10_000)


def assert_statistics_match(statistics, bursts, k):
    means, parts, spectra, residuals = naive_statistics(bursts, k)
    scale = spectra[:, 0].max()
    np.testing.assert_allclose(statistics.means, means, atol=1e-12 * np.abs(means).max())
    np.testing.assert_allclose(outer(statistics.tangents), parts, atol=1e-12 * scale)
    np.testing.assert_allclose(statistics.spectra, spectra, rtol=1e-9, atol=1e-13 * scale)
    np.testing.assert_allclose(statistics.residuals, residuals, atol=1e-12 * scale)


# -- statistics against np.cov and eigh -------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "dim"), [(200, 3), (9, 4), (8, 4), (5, 12), (3, 12)], ids=str)
@pytest.mark.parametrize("k", [1, 2])
def test_from_bursts_is_the_eigenvalue_decomposition_of_the_covariance(m, dim, k):
    bursts = curved_bursts(m=m, dim=dim)
    statistics = BurstStatistics.from_bursts(bursts, k)
    assert_statistics_match(statistics, bursts, k)
    assert statistics.tangents.shape == (40, k, dim)
    assert statistics.counts.tolist() == [m] * 40
    assert statistics.total is statistics.noise is statistics.instrument is None
    assert not statistics.set_aside.any()


def test_tangents_are_orthogonal_and_longest_first():
    statistics = BurstStatistics.from_bursts(curved_bursts(), 3)
    gram = np.einsum("nki,nli->nkl", statistics.tangents, statistics.tangents)
    diagonal = np.einsum("nkk->nk", gram)
    np.testing.assert_allclose(gram - diagonal[:, :, None] * np.eye(3), 0, atol=1e-13)
    assert np.all(np.diff(diagonal, axis=1) <= 0)
    basis, scale = statistics.frames()
    np.testing.assert_allclose(np.einsum("nki,nli->nkl", basis, basis), np.tile(np.eye(3), (40, 1, 1)), atol=1e-12)
    np.testing.assert_allclose(basis * scale[:, :, None], statistics.tangents, rtol=1e-12)


def test_ragged_bursts_and_their_weights():
    clouds = curved_bursts(n=30, m=40)
    lengths = np.random.RandomState(0).randint(5, 41, size=30)
    bursts = [cloud[:m] for cloud, m in zip(clouds, lengths, strict=True)]
    statistics = BurstStatistics.from_bursts(bursts, 2)
    assert_statistics_match(statistics, bursts, 2)
    np.testing.assert_array_equal(statistics.counts, lengths)
    np.testing.assert_allclose(statistics.weights, (lengths - 1) / (lengths - 1).mean())


def test_the_pass_in_chunks_is_the_pass_at_once(monkeypatch):
    bursts = curved_bursts()
    whole = BurstStatistics.from_bursts(bursts, 2)
    monkeypatch.setattr(Bursts.blocks, "__defaults__", (70,))
    assert len(list(Bursts(bursts).blocks())) > 10
    parts = BurstStatistics.from_bursts(bursts, 2)
    np.testing.assert_array_equal(parts.means, whole.means)
    np.testing.assert_allclose(outer(parts.tangents), outer(whole.tangents), atol=1e-15)


def test_k_is_all_of_one_dimension():
    bursts = np.random.RandomState(0).standard_normal((12, 6, 1))
    statistics = BurstStatistics.from_bursts(bursts)
    assert statistics.intrinsic_dim == 1
    np.testing.assert_allclose(statistics.spectra[:, 0], bursts[:, :, 0].var(axis=1, ddof=1))


def test_selection_keeps_everything():
    statistics = BurstStatistics.from_bursts(curved_bursts(), 2, measurement_noise=1e-4)
    part = statistics[[7, 3]]
    assert len(part) == 2
    assert (part.intrinsic_dim, part.n_features) == (2, 4)
    np.testing.assert_array_equal(part.means, statistics.means[[7, 3]])
    np.testing.assert_array_equal(part.tangents, statistics.tangents[[7, 3]])
    np.testing.assert_array_equal(part.residuals, statistics.residuals[[7, 3]])
    np.testing.assert_array_equal(part.total, statistics.total[[7, 3]])
    np.testing.assert_array_equal(part.noise, statistics.noise[[7, 3]])
    np.testing.assert_array_equal(part.effective_counts, statistics.effective_counts[[7, 3]])
    assert part.instrument is statistics.instrument


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ">f4", np.float64])
def test_short_floats_give_the_same_within_their_rounding(dtype):
    bursts = curved_bursts(m=50)
    exact, short = BurstStatistics.from_bursts(bursts, 2), BurstStatistics.from_bursts(bursts.astype(dtype), 2)
    error = np.finfo(np.dtype(dtype)).eps
    assert short.tangents.dtype == np.float64
    np.testing.assert_allclose(short.means, exact.means, atol=4 * error)
    np.testing.assert_allclose(outer(short.tangents), outer(exact.tangents), atol=20 * error * exact.spectra.max())


def test_integer_bursts():
    counts = np.random.RandomState(0).poisson(50, size=(15, 30, 3))
    assert_statistics_match(BurstStatistics.from_bursts(counts, 2), counts, 2)


# -- other sources ----------------------------------------------------------------------------------------------


def test_covariances_say_what_bursts_say():
    """Of bursts that do not bend; what bends add to a covariance is known from points alone."""
    bursts = planar_bursts(40, 20, dim=4)[1]
    bursts = bursts + 1e-3 * np.random.RandomState(0).standard_normal(bursts.shape)
    covariances = np.stack([np.cov(burst.T) for burst in bursts])
    measured = BurstStatistics.from_covariances(bursts.mean(axis=1), covariances, 2, counts=np.full(40, 20))
    direct = BurstStatistics.from_bursts(bursts, 2)
    np.testing.assert_allclose(outer(measured.tangents), outer(direct.tangents), atol=1e-13)
    np.testing.assert_allclose(measured.residuals, direct.residuals, atol=1e-13)
    np.testing.assert_array_equal(measured.counts, direct.counts)


def test_jacobians_are_the_limit_of_bursts():
    """Few points on the axes of a tiny cloud have the covariance σ² J Jᵀ exactly when f is linear, nearly if smooth."""
    X = np.random.RandomState(0).uniform(0.5, 1.5, size=(30, 2))

    def measure(x):
        return np.stack([x[..., 0] * x[..., 1], np.sin(x[..., 0]), x[..., 1] ** 2], axis=-1)

    jacobians = np.stack(
        [
            np.stack([X[:, 1], X[:, 0]], axis=1),
            np.stack([np.cos(X[:, 0]), 0 * X[:, 0]], axis=1),
            np.stack([0 * X[:, 0], 2 * X[:, 1]], axis=1),
        ],
        axis=1,
    )  # (N, D, k)
    std = 1e-5
    cross = std * np.sqrt(1.5) * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    direct = BurstStatistics.from_bursts(measure(X[:, None] + cross), 2)
    told = BurstStatistics.from_jacobians(measure(X), jacobians)
    np.testing.assert_allclose(outer(direct.tangents) / std**2, outer(told.tangents), atol=1e-4)
    np.testing.assert_allclose(direct.means, told.means, atol=1e-8)
    np.testing.assert_allclose(outer(told.tangents), jacobians @ jacobians.transpose(0, 2, 1), atol=1e-12)
    assert np.all(np.isinf(told.counts))
    assert np.all(told.weights == 1)


def test_jacobians_and_covariances_agree():
    random = np.random.RandomState(0)
    anchors, jacobians = random.standard_normal((12, 5)), random.standard_normal((12, 5, 3))
    told = BurstStatistics.from_jacobians(anchors, jacobians)
    square = BurstStatistics.from_covariances(anchors, jacobians @ jacobians.transpose(0, 2, 1))
    assert square.intrinsic_dim == 3
    np.testing.assert_allclose(outer(told.tangents), outer(square.tangents), atol=1e-12)


def test_a_rotation_of_the_latent_space_at_each_burst_does_not_matter():
    random = np.random.RandomState(0)
    anchors, jacobians = random.standard_normal((12, 4)), random.standard_normal((12, 4, 2))
    turned = np.stack([jacobian @ random_rotation(2, i) for i, jacobian in enumerate(jacobians)])
    first, second = (BurstStatistics.from_jacobians(anchors, j) for j in (jacobians, turned))
    np.testing.assert_allclose(outer(first.tangents), outer(second.tangents), atol=1e-12)


EYES = np.tile(np.eye(2), (12, 1, 1))
SKEW = np.array(EYES)
SKEW[4] = [[1, 0.5], [0, 1]]
INDEFINITE = np.array(EYES)
INDEFINITE[5] = [[1, 0], [0, -0.5]]
SPOILT = np.array(EYES)
SPOILT[6, 0, 0] = np.nan


@pytest.mark.parametrize(
    ("covariances", "options", "words"),
    [
        (SKEW, {}, "covariance 4 is not symmetric"),
        (INDEFINITE, {}, "covariance 5 has the negative eigenvalue -0.5"),
        (SPOILT, {}, r"covariances\[6\] is not finite"),
        (1e200 * EYES, {}, r"covariances\[0\] is too large to be squared"),
        (EYES[:, :1], {}, r"covariances has shape \(12, 1, 2\)"),
        (EYES[0], {}, "covariances has shape"),
        (EYES, {"intrinsic_dim": 3}, "from 1 to D = 2; got 3"),
        (EYES, {"intrinsic_dim": 0}, "from 1 to D = 2; got 0"),
        (EYES, {"counts": np.ones(12)}, r"counts\[0\] is 1; a covariance needs at least 2 points"),
        (EYES, {"counts": np.full(5, 9)}, r"counts has shape \(5,\); expected \(12,\)"),
    ],
)
def test_bad_covariances_are_refused(covariances, options, words):
    with pytest.raises(BurstError, match=words):
        BurstStatistics.from_covariances(np.arange(24.0).reshape(12, 2), covariances, **options)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((12, 3, 2), "jacobians has shape"),
        ((12, 2, 3), "from 1 to D = 2; got 3"),
        ((11, 2, 1), "jacobians has shape"),
        ((12, 2), "jacobians has shape"),
    ],
)
def test_bad_jacobians_are_refused(shape, words):
    with pytest.raises(BurstError, match=words):
        BurstStatistics.from_jacobians(np.zeros((12, 2)), np.ones(shape))


def test_a_singular_jacobian_is_named():
    jacobians = np.array(EYES)
    jacobians[8] = [[1, 1], [1, 1]]
    with pytest.raises(BurstError, match=r"burst 8 .*spans only 1 of the k = 2"):
        BurstStatistics.from_jacobians(np.zeros((12, 2)), jacobians)


# -- what is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named(value, k):
    bursts = curved_bursts()
    bursts[17, 3, 1] = value
    with pytest.raises(BurstError, match=r"1 cell without a finite number \(feature 1: 1 cell in burst 17\)"):
        BurstStatistics.from_bursts(bursts, k)


def test_a_bad_value_among_ragged_bursts_is_named_by_its_place():
    bursts = [np.random.RandomState(i).standard_normal((5 + i % 3, 2)) for i in range(15)]
    bursts[10][2, 0] = np.nan
    with pytest.raises(BurstError, match="feature 0: 1 cell in burst 10"):
        BurstStatistics.from_bursts(bursts, 2)
    with pytest.raises(BurstError, match="1 cell in burst 10"):  # by its id, wherever it now stands
        BurstStatistics.from_bursts(Bursts([*bursts, *bursts])[[12, 11, 13, 14, 10, *range(15, 25)]], 2)


def test_bad_values_are_counted():
    bursts = curved_bursts()
    bursts[[3, 9]] = np.nan
    with pytest.raises(BurstError, match="feature 0: 40 cells in bursts 3, 9; feature 1: 40 cells in bursts 3, 9;"):
        BurstStatistics.from_bursts(bursts, 2)


@pytest.mark.parametrize("n", [1, 9])
def test_too_few_bursts(n):
    with pytest.raises(BurstError, match=f"there are {n} bursts; at least 10"):
        BurstStatistics.from_bursts(curved_bursts()[:n], 2)


def test_ten_bursts_are_enough():
    assert len(BurstStatistics.from_bursts(curved_bursts()[:10], 2)) == 10


def test_too_few_points_a_burst():
    with pytest.raises(BurstError, match=r"burst 0 \(and 39 more\) has 3 points; k = 3 tangents need at least 4"):
        BurstStatistics.from_bursts(curved_bursts(m=3), 3)
    ragged = list(curved_bursts())
    ragged[6] = ragged[6][:2]
    with pytest.raises(BurstError, match=r"burst 6 \(and 0 more\) has 2 points; k = 2"):
        BurstStatistics.from_bursts(ragged, 2)


def test_k_plus_one_points_are_enough():
    assert_statistics_match(BurstStatistics.from_bursts(curved_bursts(m=3), 2), curved_bursts(m=3), 2)


@pytest.mark.parametrize("k", [None, 1])
def test_one_point_a_burst_is_refused(k):
    with pytest.raises(BurstError, match="has 1 points; k = 1 tangents need at least 2"):
        BurstStatistics.from_bursts(curved_bursts(m=1), k)


@pytest.mark.parametrize("k", [0, 5, -1, 2.0, "2", True])
def test_a_k_that_cannot_be(k):
    with pytest.raises(BurstError, match="intrinsic_dim must be an integer from 1 to D = 4"):
        BurstStatistics.from_bursts(curved_bursts(), k)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9])
@pytest.mark.parametrize("k", [None, 2])
def test_a_burst_of_identical_points_is_named(value, k):
    bursts = curved_bursts()
    bursts[23] = value
    with pytest.raises(BurstError, match=r"burst 23 \(and 0 more\) has no spread: its points are identical"):
        BurstStatistics.from_bursts(bursts, k)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1])
def test_all_points_identical(value):
    with pytest.raises(BurstError, match="has no spread"):
        BurstStatistics.from_bursts(np.full((12, 5, 3), value))


def test_a_flat_burst_is_named():
    bursts = curved_bursts()
    bursts[5] = bursts[5, :1] + np.linspace(0, 1, 20)[:, None] * [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(BurstError, match=r"burst 5 \(and 0 more\) spans only 1 of the k = 2 directions"):
        BurstStatistics.from_bursts(bursts, 2)


# -- units ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_units_do_not_matter(factor):
    _, bursts = planar_bursts(40, 20, dim=4)
    bursts = bursts + 1e-3 * curved_bursts(seed=5)
    plain, scaled = BurstStatistics.from_bursts(bursts), BurstStatistics.from_bursts(factor * bursts)
    assert scaled.intrinsic_dim == plain.intrinsic_dim == 2
    np.testing.assert_allclose(scaled.means / factor, plain.means, rtol=1e-12)
    np.testing.assert_allclose(outer(scaled.tangents) / factor**2, outer(plain.tangents), atol=1e-12 * 4e-4)
    np.testing.assert_allclose(scaled.residuals / factor**2, plain.residuals, rtol=1e-6)


# -- invariances ------------------------------------------------------------------------------------------------


@given(seed=SEEDS, shift=st.floats(-100, 100))
def test_a_rigid_motion_of_the_measurements_carries_over(seed, shift):
    bursts, rotation = curved_bursts(n=12, seed=seed), random_rotation(4, seed)
    plain, moved = (BurstStatistics.from_bursts(b, 2) for b in (bursts, bursts @ rotation + shift))
    np.testing.assert_allclose(moved.means, plain.means @ rotation + shift, atol=1e-11)
    np.testing.assert_allclose(outer(moved.tangents), rotation.T @ outer(plain.tangents) @ rotation, atol=1e-11)
    distances = [JointMahalanobis(s).squared(np.arange(12)) for s in (plain, moved)]
    np.testing.assert_allclose(distances[1], distances[0], rtol=1e-7, atol=1e-6)


@given(seed=SEEDS)
def test_the_order_of_points_and_of_bursts_does_not_matter(seed):
    bursts = curved_bursts(n=12, seed=seed)
    random = np.random.RandomState(seed)
    order = random.permutation(12)
    shuffled = np.stack([random.permutation(bursts[i]) for i in order])
    plain, other = BurstStatistics.from_bursts(bursts, 2), BurstStatistics.from_bursts(shuffled, 2)
    np.testing.assert_allclose(other.means, plain.means[order], atol=1e-13)
    np.testing.assert_allclose(outer(other.tangents), outer(plain.tangents)[order], atol=1e-12)
    first, second = mahalanobis_graph(plain, 3), mahalanobis_graph(other, 3)
    known = {frozenset(edge) for edge in zip(first.heads.tolist(), first.tails.tolist(), strict=True)}
    found = {frozenset(order[list(edge)].tolist()) for edge in zip(second.heads, second.tails, strict=True)}
    assert found == known
