"""A fit of many features: what comes back takes and returns all of them."""

import numpy as np
import pytest
from torch import nn

from helpers import short_fit, tiny_loca
from pyloca import LOCA
from pyloca.report import explorer


@pytest.fixture(scope="module")
def many():
    random = np.random.RandomState(0)
    x = random.uniform(size=(60, 1, 2)) + 0.01 * random.standard_normal((60, 20, 2))
    y = np.concatenate([x, 0.3 * np.square(x)], axis=2) @ np.linalg.qr(random.standard_normal((64, 4)))[0].T
    return y + 3


@pytest.fixture(scope="module")
def model(many):
    return short_fit(tiny_loca(max_iter=None), many)


def test_a_reduced_fit_takes_and_returns_all_features(model, many):
    assert model.n_features_in_ == 64
    assert "of 64 directions" in str(model.diagnostics_)
    means = many.mean(axis=1)
    np.testing.assert_array_equal(model.transform(many), model.embedding_)
    np.testing.assert_allclose(model.encode(means[:5]), model.embedding_[:5])
    assert model.diagnostics_.round_trip[0] < 0.02
    assert np.abs(model.decode(model.embedding_) - means).max() < 0.1 * means.std(axis=0).max() * 8
    values, slopes = model.encode_with_jacobian(means[:1])
    step = 1e-6 * np.random.RandomState(0).standard_normal(64)
    moved = (model.encode(means[:1] + step) - model.encode(means[:1] - step)) / 2
    np.testing.assert_allclose(slopes[0] @ step, moved[0], rtol=1e-4)
    assert values.shape == (1, 2)


@pytest.mark.parametrize("scale", [None, np.linspace(1, 2, 64)], ids=["as it is", "scaled"])
def test_it_is_saved_and_loaded(scale, many, tmp_path):
    model = short_fit(tiny_loca(feature_scale=scale), many)
    again = LOCA.load(model.save(tmp_path / "m.safetensors"))
    np.testing.assert_array_equal(again.transform(many), model.embedding_)
    np.testing.assert_array_equal(again.decode(model.embedding_), model.decode(model.embedding_))


def test_it_runs_in_a_page(model, many):
    """The page multiplies with the second linear layer after the others (`network.js`)."""
    data = explorer(model, many.mean(axis=1), title="many").data
    assert data["decoder"]["tail"]["weight"]["shape"][0] == 64
    assert data["decoder"]["out_shift"]["shape"] == [64]


def test_your_own_network_sees_all_features(many):
    own = nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Linear(8, 2))
    assert "of 64 directions" not in str(short_fit(tiny_loca(encoder=own), many).diagnostics_)
