"""Fits to bursts whose perturbations are known."""

import warnings

import numpy as np
import pytest

from pyloca import LOCA, Bursts, TrustWarning, datasets
from pyloca.bursts import from_function, from_positions, save_bursts, sensor_array
from pyloca.errors import BurstError
from pyloca.geometry import burst_means
from pyloca.inspection import inspect_bursts
from pyloca.metrics import stress
from pyloca.selection import estimate_burst_std, estimate_intrinsic_dim

SMALL = {"hidden_layers": (12,), "tol": 0.2, "random_state": 0}


def instrument(x):
    return np.c_[x[:, 0] + 0.3 * x[:, 1] ** 2, x[:, 1] + 0.2 * np.sin(2 * x[:, 0]), 0.5 * x[:, 0] * x[:, 1]]


X = np.random.RandomState(0).uniform(size=(150, 2))


@pytest.fixture(scope="module")
def bursts():
    return from_function(instrument, X, 0.02, 15, random_state=0)


@pytest.fixture(scope="module")
def model(bursts):
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrustWarning)
        return LOCA(**SMALL).fit(bursts)


def test_coordinates_are_far_better_and_nothing_is_found(model, bursts):
    plain = LOCA(**SMALL).fit(bursts.without_perturbations())
    assert stress(X, model.embedding_) < 0.05 * stress(X, plain.embedding_)
    assert model.diagnostics_.findings == ()


def test_transform_gives_the_same_bits(model, bursts, tmp_path):
    np.testing.assert_array_equal(model.transform(bursts), model.embedding_)
    np.testing.assert_array_equal(model.transform(bursts[40:50]), model.embedding_[40:50])
    np.testing.assert_array_equal(model.transform(save_bursts(bursts, tmp_path / "b.npz")), model.embedding_)
    assert not np.array_equal(model.transform(bursts.without_perturbations()), model.embedding_)


@pytest.mark.slow
def test_sigma_does_not_set_the_scale(model, bursts):
    other = LOCA(burst_std=0.05, **SMALL).fit(bursts)
    assert other.burst_std_ == 0.05
    np.testing.assert_allclose(np.linalg.norm(np.ptp(other.embedding_, axis=0)),
                               np.linalg.norm(np.ptp(model.embedding_, axis=0)), rtol=0.05)  # fmt: skip
    assert stress(X, other.embedding_) < 1e-4
    # bursts of another size are as white as those of the fit
    wide = from_function(instrument, X[:50], 0.04, 15, random_state=1)
    assert model.score(wide) == pytest.approx(model.score(bursts), abs=0.01)


@pytest.mark.slow
def test_perturbations_may_be_of_any_shape_and_differ_between_bursts():
    random = np.random.RandomState(0)
    z = random.uniform(0.5, 2, size=(150, 1, 2)) * [0.05, 0.01] * random.standard_normal((150, 15, 2))
    points = instrument((X[:, None] + z).reshape(-1, 2)).reshape(150, 15, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrustWarning)
        fitted = LOCA(**SMALL).fit(Bursts(points, perturbations=z))
        assert stress(X, fitted.embedding_) < 1e-5
        fitted = LOCA(**SMALL).fit(sensor_array(instrument, X, 0.01, stencil=[[0, 0], [1, 0], [0, 4]]))
        assert stress(X, fitted.embedding_) < 1e-4


def test_options_that_do_not_go_with_it(bursts):
    with pytest.raises(ValueError, match=r'solver="paper" .* Pass bursts.without_perturbations\(\)'):
        LOCA(solver="paper", max_iter=1).fit(bursts)
    with pytest.raises(ValueError, match="regression averages the noise"):
        LOCA(measurement_noise="estimate").fit(bursts)
    with pytest.raises(BurstError, match="not intrinsic_dim = 1"):
        LOCA(intrinsic_dim=1).fit(bursts)
    with pytest.raises(BurstError, match="n_components = 1 cannot hold"):
        LOCA(1).fit(bursts)


def test_estimates_are_about_the_clouds(bursts):
    assert int(estimate_intrinsic_dim(bursts, random_state=0)) == 2
    plain = estimate_burst_std(bursts.without_perturbations())
    assert float(estimate_burst_std(bursts)) == float(plain)


def test_noise_is_averaged_and_is_not_a_finding(bursts):
    points = bursts.to_array()
    size = points.std(axis=1).mean()
    noisy = points + 0.5 * size * np.random.RandomState(1).standard_normal(points.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrustWarning)
        fitted = LOCA(**SMALL).fit(Bursts(noisy, perturbations=bursts.perturbations))
    assert stress(X, fitted.embedding_) < 1e-3


def test_bursts_of_little_but_noise_are_a_finding(bursts):
    points = bursts.to_array()
    noisy = points + 4 * points.std(axis=1).mean() * np.random.RandomState(1).standard_normal(points.shape)
    with pytest.warns(TrustWarning, match="regression on the known perturbations tells the size"):
        LOCA(**SMALL).fit(Bursts(noisy[:, :8], perturbations=bursts.perturbations[:, :8]))


@pytest.mark.slow
def test_a_survey_of_noisy_readings():
    random = np.random.RandomState(0)
    places = random.uniform(size=(1500, 2))
    readings = np.round(instrument(places) + 0.05 * random.standard_normal((1500, 3)), 1)  # quantized, too
    bursts = from_positions(places, readings, 0.15, anchors=150)
    fitted = LOCA(**SMALL).fit(bursts)
    there = places[[np.argmin(np.abs(places - b[0]).sum(axis=1)) for b in _anchors(bursts, places, readings)]]
    assert np.sqrt(stress(there, fitted.embedding_)) < 0.03
    assert fitted.diagnostics_.sampling_floor > 1e-3  # the error of the regression


@pytest.mark.parametrize("radius, words", [(0.15, ""), (0.5, "bursts are as large as the data")])
def test_noise_that_a_regression_averages_is_not_the_size_of_a_burst(radius, words):
    random = np.random.RandomState(1)
    places = random.uniform(size=(2000, 2))
    readings = np.c_[instrument(places), -instrument(places)]
    noisy = readings + 0.2 * random.standard_normal(readings.shape)
    bursts = from_positions(places, noisy, radius, anchors=150)
    inside = np.mean([burst.var(axis=0).sum() for burst in bursts])
    assert inside > 0.25 * (inside + burst_means(bursts).var(axis=0).sum())  # all of it, with the noise
    found = " ".join(inspect_bursts(bursts).remarks)
    assert words in found if words else found == ""


def _anchors(bursts, places, readings):
    """The place of each anchor, from the first of its readings and that reading's displacement."""
    for burst, z in zip(bursts, bursts.perturbations, strict=True):
        same = [place for place in places[(readings == burst[0]).all(axis=1)]]
        near = [place - z[0] for place in same]
        yield [min(near, key=lambda place: np.abs(places - place).sum(axis=1).min())]


def test_the_paper_has_no_perturbations():
    data = datasets.mushroom(100, 20, random_state=0)
    again = from_function(data.measure, data.X, 0.01, 20, random_state=1)
    assert data.bursts.perturbed_dim is None
    assert again.perturbed_dim == 2
