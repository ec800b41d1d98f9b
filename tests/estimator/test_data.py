"""What LOCA can be fitted to, and what it refuses, by name."""

import numpy as np
import pytest
from torch import nn

from helpers import (
    assert_same_up_to_rigid_motion,
    latent_bursts,
    planar_bursts,
    short_fit,
    smooth_statistics,
    tiny_loca,
)
from pyloca import TrustWarning
from pyloca.errors import BurstError
from pyloca.metrics import stress

# -- data of every kind -----------------------------------------------------------------------------------------


def test_bursts_however_they_lie_in_memory():
    _, bursts = planar_bursts(40, 20)
    expected = short_fit(tiny_loca(), bursts).embedding_
    read_only = bursts.copy()
    read_only.flags.writeable = False
    same = {
        "Fortran": np.asfortranarray(bursts),
        "big-endian": bursts.astype(">f8"),
        "read-only": read_only,
        "reversed twice": np.ascontiguousarray(bursts[::-1])[::-1],
        "nested lists": bursts.tolist(),
    }
    for name, given_bursts in same.items():
        np.testing.assert_allclose(
            short_fit(tiny_loca(), given_bursts).embedding_, expected, rtol=0, atol=1e-9, err_msg=name
        )


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_path_is_read(tmp_path, suffix):
    _, bursts = planar_bursts(40, 20)
    path = tmp_path / f"bursts{suffix}"
    np.save(path, bursts) if suffix == ".npy" else np.savez(path, bursts=bursts)
    expected = short_fit(tiny_loca(), bursts)
    for given_path in (path, str(path)):
        model = short_fit(tiny_loca(), given_path)
        np.testing.assert_array_equal(model.embedding_, expected.embedding_)
        assert model.score(given_path) == expected.score(bursts)


def test_integer_bursts():
    X, bursts = planar_bursts(60, 60)
    counts = np.round(1e4 * bursts).astype(np.int32)
    model = tiny_loca(max_iter=300).fit(counts)
    assert stress(X, model.embedding_) < 5e-3


def test_half_precision_bursts():
    X, clouds = latent_bursts(60, 60, 2, 0.05, 0)
    model = tiny_loca(max_iter=300, burst_std=0.05).fit(clouds.astype(np.float16))
    assert stress(X, model.embedding_) < 5e-3


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_units_of_the_measurement(factor):
    X, bursts = planar_bursts(60, 60)
    model = tiny_loca(max_iter=900).fit(factor * bursts)
    assert stress(X, model.embedding_) < 5e-3
    plain = tiny_loca(max_iter=900).fit(bursts)
    assert_same_up_to_rigid_motion(model.embedding_, plain.embedding_, 0.05)
    back = model.inverse_transform(model.embedding_) / factor
    np.testing.assert_allclose(back, bursts.mean(axis=1), atol=0.05)


def test_measurements_far_from_the_origin():
    X, bursts = planar_bursts(60, 60)
    model = tiny_loca(max_iter=300).fit(bursts + 1e6)
    assert stress(X, model.embedding_) < 5e-3


def test_the_fewest_bursts():
    model = short_fit(tiny_loca(), planar_bursts(10, 20)[1])
    assert np.isfinite(model.embedding_).all()


def test_a_dimension_of_one():
    X, bursts = planar_bursts(60, 60, k=1, dim=1)
    model = tiny_loca(n_components=1, max_iter=300).fit(bursts)
    assert stress(X, model.embedding_) < 5e-3
    assert model.transform(bursts).shape == (60, 1)
    assert model.encode(bursts).shape == (60, 60, 1)


# -- data that is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named(value):
    _, bursts = planar_bursts(40, 20)
    bursts[7, 3, 1] = value
    with pytest.raises(
        BurstError, match=r"1 cell without a finite number \(feature 1: 1 cell in burst 7\).*Repair the cells"
    ):
        tiny_loca().fit(bursts)


def test_a_value_whose_square_overflows_is_named():
    _, bursts = planar_bursts(40, 20)
    with pytest.raises(BurstError, match=r"burst 0 has .* at point 0, feature 0\. Measure in a larger unit"):
        tiny_loca().fit(1e300 * bursts)


def test_bursts_with_too_few_points():
    """M = k + 1 is the least: 3 points for k = 2."""
    with pytest.raises(BurstError, match=r"burst 0 \(and 39 more\) has 2 points; k = 2 tangents need at least 3"):
        tiny_loca(intrinsic_dim=2).fit(planar_bursts(40, 2)[1])
    short_fit(tiny_loca(intrinsic_dim=2), planar_bursts(40, 3)[1])


def test_one_point_is_no_burst():
    with pytest.raises(BurstError, match=r"burst 0 \(and 39 more\) has 1 points; .* need at least 2"):
        tiny_loca().fit(planar_bursts(40, 1)[1])


def test_a_burst_of_identical_points():
    _, bursts = planar_bursts(40, 20)
    bursts[11] = bursts[11, 0]
    with pytest.raises(BurstError, match=r"burst 11 \(and 0 more\) has no spread: its points are identical"):
        tiny_loca(max_strays=0).fit(bursts)


def test_a_burst_that_lost_a_direction():
    _, bursts = planar_bursts(40, 20)
    bursts[11] = bursts[11, 0] + np.linspace(-0.01, 0.01, 20)[:, None]
    with pytest.raises(BurstError, match=r"burst 11 \(and 0 more\) spans only 1 of the k = 2 directions"):
        tiny_loca(max_strays=0).fit(bursts)


def test_an_array_of_two_axes():
    with pytest.raises(
        BurstError, match=r"bursts has shape \(20, 3\); expected \(N, M, D\)\. For one burst pass bursts\[None\]"
    ):
        tiny_loca().fit(planar_bursts(40, 20)[1][0])


@pytest.mark.parametrize("dtype", [object, bool, complex, "U8"])
def test_bursts_that_are_not_numbers(dtype):
    with pytest.raises(BurstError, match=r"bursts has dtype .*; expected real numbers"):
        tiny_loca().fit(np.ones((40, 20, 3), dtype=int).astype(dtype))


@pytest.mark.parametrize("n", [1, 9])
def test_too_few_bursts(n):
    with pytest.raises(BurstError, match=f"there are {n} bursts; at least 10 are needed"):
        tiny_loca().fit(planar_bursts(n, 20)[1])


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BurstError, match="there is no such file"):
        tiny_loca().fit(tmp_path / "bursts.npy")


def test_two_pieces():
    _, bursts = planar_bursts(80, 20)
    bursts[40:] += 50
    with pytest.raises(BurstError, match=r"the bursts fall into 2 pieces that do not touch .*Fit each piece alone"):
        tiny_loca().fit(bursts)


def test_more_components_than_the_data_can_ask_for():
    """Günther: a surface never needs more than 10 dimensions; nor can few bursts show many."""
    with pytest.raises(
        BurstError, match=r"n_components = 11 is more than 40 bursts .* k = 2 can ask for; use at most 10"
    ):
        tiny_loca(n_components=11).fit(planar_bursts(40, 20)[1])
    with pytest.raises(BurstError, match=r"n_components = 9 is more than 10 bursts .*use at most 8"):
        tiny_loca(n_components=9).fit(planar_bursts(10, 20)[1])


def test_fewer_components_than_tangents():
    with pytest.raises(
        BurstError, match=r"n_components = 1 cannot hold bursts that span k = 2 directions; use n_components=2 or more"
    ):
        tiny_loca(n_components=1, intrinsic_dim=2).fit(planar_bursts(40, 20)[1])
    with pytest.raises(BurstError, match="n_components = 1 cannot hold bursts that span k = 2"):
        tiny_loca(n_components=1, burst_std=1.0).fit(smooth_statistics(40)[1])


@pytest.mark.parametrize("seed", range(3))
def test_fewer_components_than_the_spectra_show(seed):
    """k is sought up to n_components only; that half of every burst lies beyond it must be said one way or another."""
    with pytest.raises((BurstError, TrustWarning)):  # warnings are errors here
        tiny_loca(n_components=1, max_iter=200).fit(planar_bursts(100, 100, seed=seed)[1])


def test_an_intrinsic_dimension_that_the_statistics_do_not_have():
    with pytest.raises(BurstError, match="the BurstStatistics have k = 2 tangents per burst; k = 1 is needed"):
        tiny_loca(intrinsic_dim=1).fit(smooth_statistics(40)[1])


def test_too_few_bursts_are_left_for_training():
    with pytest.raises(ValueError, match="validation_fraction"):
        tiny_loca(validation_fraction=0.9).fit(planar_bursts(12, 20)[1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_components": 0}, r"n_components must be an integer of at least 1, or .auto.; got 0"),
        ({"n_components": 2.0}, r"n_components must be an integer of at least 1, or .auto.; got 2.0"),
        ({"n_components": True}, r"n_components must be an integer of at least 1, or .auto.; got True"),
        ({"n_components": "two"}, r"n_components must be an integer of at least 1, or .auto.; got 'two'"),
        ({"intrinsic_dim": 0}, "intrinsic_dim must be an integer of at least 1, or None; got 0"),
        ({"intrinsic_dim": 4}, "intrinsic_dim must be an integer from 1 to D = 3; got 4"),
        ({"solver": "adam"}, "solver must be one of fast, paper; got 'adam'"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1, or None; got 0"),
        ({"max_iter": 1.5}, "max_iter must be an integer of at least 1, or None; got 1.5"),
        ({"tol": 1}, r"tol must be in \[0, 1\), or None; got 1"),
        ({"tol": np.nan}, r"tol must be in \[0, 1\), or None; got nan"),
        ({"validation_fraction": 1.0}, r"validation_fraction must be in \[0, 1\); got 1.0"),
        ({"validation_fraction": None}, r"validation_fraction must be in \[0, 1\); got None"),
        ({"activation": "relu"}, "activation must be one of elu, leaky_relu, sigmoid, softplus, tanh; got 'relu'"),
        ({"decoder_activation": "relu"}, "activation must be one of elu, .*; got 'relu'"),
        ({"hidden_layers": (8, 0)}, r"hidden_layers must be integers of at least 1; got \(8, 0\)"),
        (
            {"measurement_noise": -1.0},
            'measurement_noise must be None, "estimate", a number ≥ 0 or an array of these; got -1.0',
        ),
        ({"device": "mps"}, "the fast solver needs float64, which MPS lacks"),
        ({"random_state": "seed"}, "random_state must be an integer from 0"),
    ],
)
def test_parameters_that_cannot_be(options, words):
    with pytest.raises(ValueError, match=words):
        tiny_loca(**options).fit(planar_bursts(40, 20)[1])


@pytest.mark.parametrize("solver", ["fast", "paper"])
@pytest.mark.parametrize(
    "modules", [{"encoder": nn.Linear(3, 3)}, {"encoder": nn.Linear(2, 2)}, {"decoder": nn.Linear(2, 2)}], ids=str
)
def test_modules_of_the_wrong_size_are_refused_before_training(modules, solver):
    name = next(iter(modules))
    with pytest.raises(ValueError, match=name):
        tiny_loca(solver=solver, **modules).fit(planar_bursts(40, 20)[1])
