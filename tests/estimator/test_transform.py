"""Encoding, decoding and scoring with a fitted LOCA."""

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from helpers import (
    fitted,
    planar_bursts,
    planar_statistics,
    short_fit,
    tiny_loca,
)
from pyloca import BurstStatistics
from pyloca.errors import BurstError

# -- transform --------------------------------------------------------------------------------------------------


SHAPES = [(3, (8,), "fast"), (2, (50, 50), "fast"), (17, (50, 50), "fast"), (17, (33, 7), "fast"), (17, (50,), "paper")]


@pytest.mark.parametrize(("dim", "hidden", "solver"), SHAPES, ids=str)
@given(n=st.integers(1, 10_000), start=st.integers(0, 300))
@example(n=1, start=0)
@example(n=63, start=0)
@example(n=64, start=1)
@example(n=65, start=2)
@example(n=4095, start=1)
@example(n=4096, start=0)
@example(n=4097, start=3)
@example(n=10_000, start=7)
def test_a_batch_is_its_points_one_by_one(dim, hidden, solver, n, start):
    """Bit for bit: coordinates do not depend on what else is in the call."""
    model, Y = fitted(dim, hidden, solver)
    batch = model.transform(Y[start : start + n])
    assert batch.shape == (n, 2)
    assert batch.dtype == np.float64
    for i in {0, 1, 2, 3, 62, 63, 64, 65, 4094, 4095, 4096, 4097, n // 3, n // 2, n - 2, n - 1} & set(range(n)):
        np.testing.assert_array_equal(model.transform(Y[start + i][None])[0], batch[i])
    back = model.inverse_transform(batch)
    for i in {0, n // 3, n // 2, n - 1}:
        np.testing.assert_array_equal(model.inverse_transform(batch[i][None])[0], back[i])


def test_points_in_bursts_are_encoded_like_points():
    model, Y = fitted()
    out = model.encode(Y[:600].reshape(20, 30, 3))
    assert out.shape == (20, 30, 2)
    np.testing.assert_array_equal(out.reshape(600, 2), model.transform(Y[:600]))
    np.testing.assert_array_equal(model.decode(out).reshape(600, 3), model.inverse_transform(out.reshape(-1, 2)))


@pytest.mark.parametrize("shape", [(0, 3), (0, 5, 3), (4, 0, 3)])
def test_no_points_are_encoded_to_none(shape):
    model, _ = fitted()
    assert model.encode(np.empty(shape)).shape == (*shape[:-1], 2)


def test_the_encoder_does_not_see_how_an_array_lies_in_memory():
    model, Y = fitted()
    Y = Y[:100]
    expected = model.transform(Y)
    read_only = Y.copy()
    read_only.flags.writeable = False
    same = {
        "list": Y.tolist(),
        "Fortran": np.asfortranarray(Y),
        "big-endian": Y.astype(">f8"),
        "read-only": read_only,
        "strided": np.repeat(Y, 2, axis=0)[::2],
        "reversed twice": np.ascontiguousarray(Y[::-1])[::-1],
        "columns reversed twice": np.ascontiguousarray(Y[:, ::-1])[:, ::-1],
        "long double": Y.astype(np.longdouble),
    }
    for name, given_points in same.items():
        np.testing.assert_array_equal(model.transform(given_points), expected, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ">f4", np.int8, np.uint64, ">i4"])
def test_other_numbers_are_widened(dtype):
    model, Y = fitted()
    points = (10 * Y[:50]).astype(dtype)
    np.testing.assert_array_equal(model.transform(points), model.transform(points.astype(np.float64)))


def test_points_are_left_alone():
    model, Y = fitted()
    before = Y.copy()
    model.transform(Y)
    np.testing.assert_array_equal(Y, before)


@pytest.mark.parametrize("dtype", [object, bool, complex, "U8", "M8[s]"])
def test_points_that_are_not_numbers(dtype):
    model, _ = fitted()
    with pytest.raises(ValueError, match=r"Y has dtype .*; expected real numbers"):
        model.encode(np.ones((4, 3), dtype=int).astype(dtype))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -1e120])
@pytest.mark.parametrize("method", ["transform", "inverse_transform", "encode", "encode_with_jacobian", "decode"])
def test_points_that_are_not_finite(method, value):
    model, _ = fitted()
    points = np.zeros((4, 2 if method in ("decode", "inverse_transform") else 3))
    points[2, 1] = value
    with pytest.raises(ValueError, match=r"contains NaN, infinity.*[:;] remove or repair these (points|rows)"):
        getattr(model, method)(points)


@pytest.mark.parametrize("dim", [2, 4])
def test_points_of_another_dimension(dim):
    model, _ = fitted()
    for points in (np.ones((5, dim)), np.ones((5, 2, dim))):
        with pytest.raises(ValueError, match=f"X has {dim} features, but LOCA is expecting 3 features as input"):
            model.transform(points)


@pytest.mark.parametrize("shape", [(), (3,), (2, 2, 2, 3)])
def test_points_of_another_shape(shape):
    model, _ = fitted()
    with pytest.raises(ValueError, match=r"Expected 2D array|dim <= 2 is required"):
        model.transform(np.ones(shape))


def test_embedded_points_of_another_dimension():
    model, _ = fitted()
    with pytest.raises(ValueError, match=r"Z has shape \(5, 3\); expected \(…, 2\)"):
        model.inverse_transform(np.ones((5, 3)))


# -- score ------------------------------------------------------------------------------------------------------


def test_score_is_minus_the_mean_likelihood_loss():
    _, bursts = planar_bursts(60, 30)
    model = short_fit(tiny_loca(), bursts[:40])
    statistics = BurstStatistics.from_bursts(bursts[40:], 2)
    means = torch.tensor(statistics.means)
    jacobians = torch.func.vmap(torch.func.jacrev(model.encoder_))(means).detach().numpy()
    pushed = np.einsum("nkD,ndD->nkd", statistics.tangents, jacobians) / 0.01
    gram = np.einsum("nkd,nld->nkl", pushed, pushed)
    losses = np.trace(gram, axis1=1, axis2=2) - np.linalg.slogdet(gram)[1] - 2
    assert model.score(bursts[40:]) == pytest.approx(-losses.mean(), rel=1e-10)
    assert model.score(statistics) == pytest.approx(-losses.mean(), rel=1e-10)
    assert model.score(bursts[:1]) <= 0  # one burst can be scored, though not fitted


def test_bursts_of_another_dimension_are_not_scored():
    model, _ = fitted()
    with pytest.raises(BurstError, match="X has 4 features, but LOCA is expecting 3 features"):
        model.score(planar_bursts(20, 10, dim=4)[1])


def test_statistics_of_another_dimension_are_not_scored():
    model, _ = fitted()
    with pytest.raises(ValueError, match="4 features, but LOCA is expecting 3 features"):
        model.score(planar_statistics(20, dim=4)[1])
