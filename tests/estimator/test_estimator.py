"""LOCA as users and scikit-learn see it: parameters, σ, what it says of itself."""

import re
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from helpers import (
    fitted,
    latent_bursts,
    planar_bursts,
    random_rotation,
    short_fit,
    tiny_loca,
)
from pyloca import LOCA, BurstStatistics, TrustWarning
from pyloca.errors import BurstError
from pyloca.metrics import stress
from pyloca.selection import estimate_burst_std

# -- the contract of an estimator -------------------------------------------------------------------------------


def test_the_constructor_only_stores():
    callbacks, module = [], nn.Linear(3, 2)
    given = {
        "n_components": 5,
        "burst_std": "no number",
        "intrinsic_dim": -3,
        "solver": "no solver",
        "encoder": module,
        "decoder": 7,
        "hidden_layers": [1],
        "activation": "no activation",
        "decoder_activation": 3,
        "feature_scale": 8,
        "measurement_noise": "x",
        "max_strays": "all",
        "validation_fraction": 7,
        "tol": -1,
        "max_iter": -1,
        "random_state": "x",
        "device": "nowhere",
        "verbose": -1,
        "callbacks": callbacks,
    }
    model = LOCA(**given)
    assert model.get_params() == given
    assert model.callbacks is callbacks
    assert model.encoder is module
    assert vars(model) == given  # nothing else is made


def test_defaults_are_the_documented_ones():
    assert LOCA().get_params() == {
        "n_components": 2,
        "burst_std": None,
        "intrinsic_dim": None,
        "solver": "fast",
        "encoder": None,
        "decoder": None,
        "hidden_layers": (50, 50),
        "activation": "tanh",
        "decoder_activation": None,
        "feature_scale": "auto",
        "measurement_noise": None,
        "max_strays": 0.01,
        "validation_fraction": 0.1,
        "tol": None,
        "max_iter": None,
        "random_state": None,
        "device": "auto",
        "verbose": 0,
        "callbacks": (),
    }


def test_a_clone_has_the_parameters_and_no_fit():
    model, Y = fitted()
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(Y)
    assert copy.set_params(n_components=3, tol=0.1) is copy
    assert (copy.n_components, copy.tol) == (3, 0.1)
    with pytest.raises(ValueError, match="Invalid parameter 'sigma'"):
        copy.set_params(sigma=1)


def test_fit_makes_everything_and_returns_itself():
    _, bursts = planar_bursts(40, 20)
    model = tiny_loca()
    parameters = model.get_params()
    assert short_fit(model, bursts) is model
    assert model.get_params() == parameters
    assert model.n_features_in_ == 3
    assert model.n_components_ == model.intrinsic_dim_ == 2
    assert model.burst_std_ == 0.01
    assert model.embedding_.shape == (40, 2)
    assert model.embedding_.dtype == np.float64
    assert len(model.validation_indices_) == 4
    assert model.n_iter_ == 60
    assert model.converged_ is False
    assert isinstance(model.encoder_, nn.Module)
    assert isinstance(model.decoder_, nn.Module)
    assert not model.encoder_.training
    assert model.diagnostics_.whitening_loss == pytest.approx(-model.score(bursts[model.validation_indices_]))


def test_the_embedding_is_of_the_burst_means():
    _, bursts = planar_bursts(40, 20)
    model = tiny_loca()
    with pytest.warns(TrustWarning):
        Z = model.set_params(max_iter=2).fit_transform(bursts)
    np.testing.assert_array_equal(Z, model.embedding_)
    np.testing.assert_allclose(Z, model.transform(bursts.mean(axis=1)), rtol=0, atol=1e-14)


def test_a_second_fit_forgets_the_first():
    model = short_fit(tiny_loca(), planar_bursts(40, 20)[1])
    short_fit(model, planar_bursts(30, 20, dim=5)[1])
    assert model.n_features_in_ == 5
    assert model.embedding_.shape == (30, 2)
    fresh = short_fit(tiny_loca(), planar_bursts(30, 20, dim=5)[1])
    np.testing.assert_array_equal(model.embedding_, fresh.embedding_)


def test_names_of_the_coordinates():
    model, Y = fitted()
    assert model.get_feature_names_out().tolist() == ["loca0", "loca1"]
    frame = clone(model).set_output(transform="pandas")
    with pytest.raises(NotFittedError):
        frame.get_feature_names_out()
    short_fit(frame, planar_bursts(40, 20)[1])
    out = frame.transform(Y[:5])
    assert isinstance(out, pd.DataFrame)
    assert out.columns.tolist() == ["loca0", "loca1"]
    np.testing.assert_array_equal(out.to_numpy(), frame.set_output(transform="default").transform(Y[:5]))


def test_a_data_frame_is_encoded_like_its_values():
    model, Y = fitted()
    frame = pd.DataFrame(Y[:7], columns=["a", "b", "c"])
    with pytest.warns(UserWarning, match="X has feature names, but LOCA was fitted without feature names"):
        np.testing.assert_array_equal(model.transform(frame), model.transform(Y[:7]))


def test_in_a_pipeline():
    _, bursts = planar_bursts(40, 20)
    pipeline = make_pipeline(tiny_loca(max_iter=200), StandardScaler()).fit(bursts)
    out = pipeline.transform(bursts.mean(axis=1))
    np.testing.assert_allclose(out.mean(axis=0), 0, atol=1e-10)
    np.testing.assert_allclose(out.std(axis=0), 1, atol=1e-10)
    assert pipeline.get_feature_names_out().tolist() == ["loca0", "loca1"]
    pipeline.set_params(loca__tol=0.5)
    assert pipeline[0].tol == 0.5


def test_parameters_can_be_searched():
    _, bursts = planar_bursts(60, 20)
    scores = [
        short_fit(tiny_loca(**options), bursts[:40]).score(bursts[40:])
        for options in ParameterGrid({"max_iter": [1, 200]})
    ]
    assert scores[1] > scores[0]


# -- before fit -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["transform", "inverse_transform", "score", "save", "get_feature_names_out"])
def test_nothing_works_before_fit(method, tmp_path):
    argument = {"save": [tmp_path / "model.safetensors"], "get_feature_names_out": []}.get(method, [np.ones((3, 3))])
    with pytest.raises(NotFittedError, match="This LOCA instance is not fitted yet"):
        getattr(LOCA(), method)(*argument)
    assert not list(tmp_path.iterdir())


# -- σ ----------------------------------------------------------------------------------------------------------


def test_without_burst_std_coordinates_are_right_up_to_scale():
    X, bursts = planar_bursts(80, 100)
    model = tiny_loca(burst_std=None, max_iter=300).fit(bursts)
    assert model.burst_std_ == estimate_burst_std(bursts).burst_std
    assert stress(X, model.embedding_, scale=True) < 1e-3
    assert stress(X, model.embedding_) > 1e-2  # the measurement stretches by 1 to 2
    known = tiny_loca(burst_std=model.burst_std_, max_iter=300).fit(bursts)
    np.testing.assert_array_equal(known.embedding_, model.embedding_)


@pytest.mark.parametrize("burst_std", [0.001, 0.02])
def test_burst_std_is_the_unit_of_the_coordinates(burst_std):
    """Twice the σ, twice the coordinates: it alone sets the scale."""
    _, bursts = planar_bursts(60, 30)
    expected = burst_std / 0.01 * short_fit(tiny_loca(), bursts).embedding_
    found = short_fit(tiny_loca(burst_std=burst_std), bursts).embedding_
    # Rounding differs between processors and grows with the iterations: 1.4e-6 of the extent was seen.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * np.ptp(expected))


@pytest.mark.parametrize("burst_std", [0, -1, 0.0, np.nan, np.inf, "1", True, [0.1]])
def test_burst_std_that_cannot_be(burst_std):
    with pytest.raises(ValueError, match="burst_std must be a number > 0, or None to estimate it; got"):
        tiny_loca(burst_std=burst_std).fit(planar_bursts(40, 20)[1])


# -- what the fit says of itself --------------------------------------------------------------------------------


def test_a_fit_that_should_not_be_believed_says_so_where_it_was_called():
    with pytest.warns(TrustWarning, match="training was ended by max_iter") as caught:
        tiny_loca(max_iter=2).fit(planar_bursts(40, 100)[1])
    assert caught[0].filename == __file__


def test_noise_is_removed_when_asked():
    """In ten dimensions of noise, bursts look larger than they are and coordinates come out short without it."""
    X, clouds = latent_bursts(80, 100, 2, 0.01, 0)
    bursts = clouds @ random_rotation(10, 0)[:2]
    bursts += 0.005 * np.random.RandomState(0).standard_normal(bursts.shape)
    size = {}
    for noise in (None, "estimate", 0.005):
        expected = pytest.warns(TrustWarning, match="noise of the instrument") if noise is None else nullcontext()
        with expected:
            model = tiny_loca(measurement_noise=noise, max_iter=300, intrinsic_dim=2).fit(bursts)
        size[noise] = np.sqrt(model.embedding_.var(axis=0).sum() / X.var(axis=0).sum())
    assert size[None] < 0.93
    assert size["estimate"] == pytest.approx(1, abs=0.04)
    assert size[0.005] == pytest.approx(1, abs=0.04)


# -- what a fresh eye found -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("default:training was ended by max_iter")
def test_a_fit_without_a_decoder_says_so():
    _, bursts = planar_bursts(60, 30)
    with pytest.warns(TrustWarning, match="in stage 'whiten', after 150 .* decoder is not trained") as caught:
        model = tiny_loca(max_iter=150).fit(bursts)
    assert caught[0].filename == __file__
    assert "decoder is not trained" in str(model.diagnostics_)


def test_a_decoder_that_was_cut_short_is_said_so():
    """Only your own can be: ours is solved for."""
    _, bursts = planar_bursts(60, 30)
    torch.manual_seed(0)
    own = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 3))
    whole = tiny_loca(max_iter=None, decoder=own).fit(bursts)
    assert whole.converged_
    with pytest.warns(TrustWarning, match="in stage 'decode'"):
        cut = tiny_loca(max_iter=whole.n_iter_ - 50, decoder=own).fit(bursts)
    assert not cut.converged_ and [f.name for f in cut.diagnostics_.findings] == ["unfinished"]
    assert "The decoder was cut short" in cut.diagnostics_.warnings[0]


def test_pieces_are_named_by_the_numbers_of_the_user():
    """Held-out bursts do not shift them."""
    _, bursts = planar_bursts(100, 20)
    bursts[-40:] += 50
    with pytest.raises(BurstError, match="fall into 2 pieces") as caught:
        tiny_loca().fit(bursts)
    first, second = (int(word) for word in re.findall(r"such as (\d+)", str(caught.value)))
    assert first < 60 <= second


@pytest.mark.parametrize("shift", [50, 1e3])
def test_one_stray_burst_is_named(shift):
    _, bursts = planar_bursts(100, 20)
    model = tiny_loca(validation_fraction=0, max_strays=0)
    bursts[37] += shift
    with pytest.raises(BurstError, match=r"1 bursts such as 37\).* Remove small pieces"):
        model.fit(bursts)


def test_several_bursts_at_each_station():
    """Five bursts at every node of a grid: neighbours at distance 0 are not all there is."""
    random = np.random.RandomState(0)
    X = np.repeat(np.stack(np.meshgrid(np.arange(8), np.arange(8)), axis=-1).reshape(-1, 2) / 8, 5, axis=0)
    model = tiny_loca(max_iter=900).fit(X[:, None] + 0.01 * random.standard_normal((320, 100, 2)))
    assert stress(X, model.embedding_) < 5e-3
    with pytest.raises(BurstError, match="all bursts have the same mean"):
        tiny_loca().fit(np.repeat(planar_bursts(60, 20)[1][:1], 60, axis=0))


def test_statistics_are_scored_as_they_were_fitted():
    _, clouds = latent_bursts(80, 60, 2, 0.01, 0)
    bursts = clouds @ random_rotation(6, 0)[:2]
    bursts += 0.003 * np.random.RandomState(0).standard_normal(bursts.shape)
    model = tiny_loca(measurement_noise="estimate", intrinsic_dim=2, max_iter=250).fit(bursts)
    # not the same: planes of neighbouring means can replace tilted tangents only where there are points, and statistics
    # that do not know of the noise take some of it for bends
    assert model.score(BurstStatistics.from_bursts(bursts, 2)) == pytest.approx(model.score(bursts), rel=0.05)
    with pytest.raises(BurstError, match="have k = 1 tangents per burst; k = 2 is needed"):
        model.score(BurstStatistics.from_bursts(bursts, 1))


def test_a_callback_may_return_numpys_true():
    _, bursts = planar_bursts(60, 20)
    model = tiny_loca(callbacks=[lambda record: np.bool_(record["iteration"] >= 50)], max_iter=None).fit(bursts)
    assert model.n_iter_ == 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_layers": 50}, "hidden_layers must be integers"),
        ({"hidden_layers": "ab"}, "hidden_layers must be integers"),
        ({"hidden_layers": None}, "hidden_layers must be integers"),
        ({"callbacks": print}, "callbacks must be a sequence of functions"),
        ({"callbacks": None}, "callbacks must be a sequence of functions"),
        ({"solver": ["fast"]}, "solver must be one of"),
        ({"activation": ["tanh"]}, "activation must be one of"),
        ({"decoder_activation": "relu"}, "decoder_activation must be one of"),
        ({"device": None}, "device None cannot be used here"),
        ({"device": "foo"}, "device 'foo' cannot be used here"),
        ({"measurement_noise": [1]}, r"measurement_noise has shape \(1,\); .* it must be None"),
        ({"measurement_noise": True}, "measurement_noise must be None"),
        ({"measurement_noise": "foo"}, "measurement_noise must be None"),
        ({"encoder": "mlp"}, "encoder must be an instance of torch.nn.Module"),
        ({"decoder": nn.Linear}, "decoder must be an instance of torch.nn.Module"),
    ],
    ids=str,
)
def test_more_parameters_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        tiny_loca(**options).fit(planar_bursts(40, 20)[1])


def test_a_subclass_loads_as_itself(tmp_path):
    class Sub(LOCA):
        pass

    model = Sub(2, burst_std=0.01, hidden_layers=(8,), max_iter=50, random_state=0)
    short_fit(model, planar_bursts(40, 20)[1]).save(tmp_path / "sub.safetensors")
    assert type(Sub.load(tmp_path / "sub.safetensors")) is Sub
    with pytest.raises(FileNotFoundError, match=r"there is no directory .*nowhere"):
        model.save(tmp_path / "nowhere" / "sub.safetensors")


def test_masked_points_are_not_read():
    model, Y = fitted()
    with pytest.raises(ValueError, match="X is a masked array"):
        model.transform(np.ma.masked_array(Y[:3], mask=True))


def test_dropout_and_batch_norm_are_as_in_evaluation():
    """Training on all bursts at once has no batches and no coin tosses: the same seed gives the same bits."""
    encoder = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 2))
    _, bursts = planar_bursts(40, 20)
    first, second = (short_fit(tiny_loca(encoder=encoder, max_iter=60), bursts).embedding_ for _ in range(2))
    np.testing.assert_array_equal(first, second)
