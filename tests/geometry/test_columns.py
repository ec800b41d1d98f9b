"""Columns that do not measure the state: which are seen, which are not, and what a fit does with them."""

import warnings

import numpy as np
import pytest

from helpers import planar_bursts, short_fit, tiny_loca
from pyloca import LOCA, TrustWarning
from pyloca.bursts import Bursts, from_function
from pyloca.geometry import BurstStatistics, Noise, feature_scale, look_at_columns
from pyloca.inspection import inspect_bursts

N, M = 120, 12


def sensors(seed=0, *, n=N, m=M):
    return planar_bursts(n, m, seed)[1]


def ticks(n=N, m=M):
    return np.tile(np.arange(float(m)), (n, 1))


def started(n=N, m=M, *, random):
    return 50.0 * m * random.permutation(n)[:, None] + ticks(n, m)


COLUMNS = {
    "constant": lambda random: np.full((N, M), 20.5),
    "between": lambda random: np.repeat(random.permutation(N)[:, None] / 7, M, axis=1),
    "set point": lambda random: np.repeat(np.round(random.uniform(size=(N, 1)), 1), M, axis=1),
    "clock": lambda random: started(random=random),
    "epoch": lambda random: 1.7e9 + 1e-3 * started(random=random),
    "jitter": lambda random: started(random=random) + 0.1 * random.standard_normal((N, M)),
    "backwards": lambda random: -started(random=random),
    "restarts": lambda random: ticks(),
    "noise": lambda random: random.standard_normal((N, M)),
    "faint noise": lambda random: 1e-4 * random.standard_normal((N, M)),
    "dither": lambda random: np.sin(2 * np.pi * (ticks() / 5 + random.uniform(size=(N, 1)))),
}
KINDS = {"set point": "between", "epoch": "clock", "jitter": "clock", "backwards": "clock"}
KINDS |= dict.fromkeys(("restarts", "noise", "faint noise", "dither"), "inside")


def with_column(name, seed=0, place=1):
    column = COLUMNS[name](np.random.RandomState(1000 + seed))
    return np.insert(sensors(seed), place, column, axis=2)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", COLUMNS)
def test_such_columns_are_left_out(name, seed):
    look = look_at_columns(Bursts(with_column(name, seed)))
    assert look.left_out == look.suspects == {1: KINDS.get(name, name)}
    scale = feature_scale(Bursts(with_column(name, seed)))
    assert np.isinf(scale).tolist() == [False, True, False, False]


def test_a_clock_in_ragged_bursts():
    """Its mean depends on the length of the burst, its steps do not."""
    random = np.random.RandomState(0)
    parts = [part[: random.randint(5, M)] for part in sensors()]
    parts = [np.c_[part, np.arange(len(part))] for part in parts]
    assert list(look_at_columns(Bursts(parts)).left_out) == [3]


def healthy():
    random = np.random.RandomState(5)
    points = sensors()
    yield "plain", points
    yield "short", points[:, :3]
    yield "sorted by a sensor", np.take_along_axis(points, np.argsort(points[:, :, :1], axis=1), axis=1)
    yield "quantized", np.round(points, 2)
    yield "clipped", np.minimum(points, np.quantile(points, 0.7, axis=(0, 1)))
    partly = np.maximum(points - np.quantile(points, 0.9, axis=(0, 1)), 0)
    yield "sees a part of the field", np.concatenate([points, partly], axis=2)
    yield "noise of a burst's size", points + 0.01 * random.standard_normal(points.shape)
    spiky = points.copy()
    spiky[random.uniform(size=points.shape[:2]) < 0.05, 0] += 10.0
    yield "spikes in one sensor", spiky
    pixels = points @ random.standard_normal((3, 500)) + 0.3 * random.standard_normal((N, M, 500))
    yield "many faint pixels", pixels
    yield "a line of sensors", from_function(lambda x: np.c_[x, x**2], np.linspace(0, 1, 60)[:, None], 0.01, n_points=9)
    x = np.linspace(0, 3, 60)[:, None] + 0.01 * np.arange(5.0)
    yield "an array in order", np.stack([x, np.sin(x)], axis=2)


@pytest.mark.parametrize(("name", "data"), list(healthy()), ids=[name for name, _ in healthy()])
def test_sensors_are_kept(name, data):
    assert look_at_columns(Bursts(data)).left_out == {}


def test_what_is_constant_in_a_sample_is_looked_at_in_all_bursts():
    data = np.insert(sensors(n=1500, m=4), 1, 7.0, axis=2)
    assert look_at_columns(Bursts(data)).left_out == {1: "constant"}
    data[[17, 901], :, 1] = 8.0
    assert look_at_columns(Bursts(data)).left_out == {1: "between"}
    data[[17, 901], 2, 1] = 9.0
    assert look_at_columns(Bursts(data)).left_out.get(1) != "constant"


def test_nothing_is_left_out_when_nothing_would_be_left():
    random = np.random.RandomState(0)
    assert look_at_columns(Bursts(random.standard_normal((N, M, 3)))).left_out == {}
    assert feature_scale(Bursts(np.full((N, M, 2), 3.0))) is None
    values = np.full((N, M, 2), np.nan)
    assert look_at_columns(Bursts(values)).left_out == {} and feature_scale(Bursts(values)) is None


def test_statistics_know_constants_and_labels():
    for name in ("constant", "between"):
        statistics = BurstStatistics.from_bursts(Bursts(with_column(name)), 2)
        assert look_at_columns(statistics).left_out == {1: name}


# -- in a fit -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["constant", "clock", "restarts"])
def test_a_column_that_is_left_out_has_no_influence(name, tmp_path):
    data = with_column(name)
    model = short_fit(tiny_loca(), Bursts(data, feature_names=["p", "t", "q", "r"], units=["Pa", "", "", ""]))
    assert model.n_features_in_ == 4 and np.isinf(model.feature_scale_).tolist() == [False, True, False, False]
    without = short_fit(tiny_loca(), Bursts(np.delete(data, 1, axis=2), feature_names=["p", "q", "r"]))
    assert model.embedding_.shape == without.embedding_.shape
    other = data.copy()
    other[:, :, 1] = np.random.RandomState(3).standard_normal((N, M)) * 1e6
    for of in (model.transform, lambda x: model.encode(x), lambda x: model.transform(x, return_trust=True)[1]):
        assert np.array_equal(of(other), of(data))
    assert np.array_equal(model.score(other), model.score(data))
    decoded = model.decode(model.embedding_)
    assert np.all(decoded[:, 1] == decoded[0, 1]) and np.isclose(decoded[0, 1], data[:, :, 1].mean())
    assert np.all(model.encode_with_jacobian(data[0])[1][:, :, 1] == 0)
    module = model.decoder_(model.encoder_(as_tensor(data[0]))).detach().numpy()
    assert np.allclose(module, model.decode(model.encode(data[0])))
    again = LOCA.load(model.save(tmp_path / "m.safetensors"))
    assert np.array_equal(again.transform(other), model.transform(data))
    assert np.array_equal(again.decode(model.embedding_), decoded)
    assert again.diagnostics_.notes == model.diagnostics_.notes


def as_tensor(array):
    import torch

    return torch.as_tensor(array)


def test_it_is_said():
    bursts = Bursts(with_column("restarts"), feature_names=["p", "t", "q", "r"])
    model = short_fit(tiny_loca(), bursts)
    (note,) = model.diagnostics_.notes
    assert "'t' (varies inside bursts but not between them" in note
    assert note in " ".join(str(model.diagnostics_).split())
    assert "columns" not in {finding.name for finding in model.diagnostics_.findings}
    found = inspect_bursts(bursts)
    assert any("'t' (varies inside bursts" in remark for remark in found.remarks)
    assert found.to_dict()["feature_scale"][1] is None
    assert inspect_bursts(sensors()).remarks == inspect_bursts(with_column("constant")).remarks[1:]


@pytest.mark.parametrize("name", ["clock", "set point"])
def test_a_scale_of_ones_own_keeps_all_but_constants(name):
    data = with_column(name)
    for scale in (None, [1.0, 2.0, 1.0, 1.0]):
        model = short_fit(tiny_loca(feature_scale=scale), data)
        assert np.isfinite(model.feature_scale_).all()
    model = short_fit(tiny_loca(feature_scale=None), with_column("constant"))
    assert np.isinf(model.feature_scale_).tolist() == [False, True, False, False]


@pytest.mark.slow
def test_a_clock_that_is_kept_is_the_cause_that_is_named():
    bursts = Bursts(with_column("clock") * [1, 1e-4, 1, 1], feature_names=["p", "t", "q", "r"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        model = LOCA(2, burst_std=0.01, feature_scale=None, hidden_layers=(20,), random_state=0).fit(bursts)
    (finding,) = model.diagnostics_.findings
    assert finding.name == "columns" and "'t' (grows by the same steps" in finding.message


# -- what is left out does not count as a direction ---------------------------------------------------------------


@pytest.mark.parametrize("noise", [None, 0.1, "estimate"])
def test_statistics_are_those_without_the_column(noise):
    random = np.random.RandomState(0)
    x = random.uniform(size=(120, 1, 2)) + 0.05 * random.standard_normal((120, 20, 2))
    plain = np.stack([np.sin(3 * x[..., 0]), x[..., 1], np.cos(2 * x[..., 1]) + x[..., 0], x.prod(axis=-1)], axis=2)
    plain += 0.005 * random.standard_normal(plain.shape)
    if noise == 0.1:
        noise = Noise(np.full((1, 4), 0.005**2))
    more = np.concatenate([plain, np.full((120, 20, 1), 7.0)], axis=2)
    scale = np.array([1.0, 1.0, 1.0, 1.0, np.inf])
    wider = Noise(np.array([[*noise.levels[0], 1.0]])).scaled(scale) if isinstance(noise, Noise) else noise
    expected = BurstStatistics.from_bursts(Bursts(plain), measurement_noise=noise)
    found = BurstStatistics.from_bursts(Bursts(more).scaled(scale), measurement_noise=wider)
    assert (found.n_features, found.n_used, found.intrinsic_dim) == (5, 4, expected.intrinsic_dim)
    np.testing.assert_allclose(found.spectra, expected.spectra, rtol=1e-6)
    np.testing.assert_allclose(found.residuals, expected.residuals, rtol=1e-6, atol=1e-12)
    assert not found.means[:, 4].any() and not found.tangents[..., 4].any()


def test_noise_at_places_ignores_what_is_left_out():
    places = np.array([[0.0, 5.0], [1.0, -3.0]])
    noise = Noise(np.array([[1.0, 1.0], [4.0, 1.0]]), places, np.array([2.0, 3.0])).scaled(np.array([2.0, np.inf]))
    assert noise.at(np.array([[0.4, 0.0], [0.1, 0.0]])).tolist() == [[1.0, 0.0], [0.25, 0.0]]
