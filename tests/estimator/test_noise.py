"""Measurement noise in every form that LOCA takes: the same coordinates, the same file, the same score."""

import copy
import re
import warnings

import numpy as np
import pytest

from helpers import random_rotation
from pyloca import LOCA, BurstStatistics, TrustWarning, findings
from pyloca.bursts import Bursts
from pyloca.errors import BurstError

N, M, D, SIGMA = 120, 40, 6, 0.02
RANDOM = np.random.RandomState(0)
X = RANDOM.uniform(size=(N, 2))
LEVELS = np.array([0.008, 0.016, 0.020, 0.012, 0.018, 0.010])  # standard deviations of the sensors


def instrument(x):
    """A bent sheet in six sensors: its tangents turn, so that noise can be told from signal."""
    bent = np.stack([x[..., 0], x[..., 1], 0.5 * x[..., 0] ** 2, 0.4 * np.sin(2 * x[..., 1])], axis=-1)
    return bent @ (1.2 * random_rotation(6, 1)[:4])


CLEAN = instrument(X[:, None] + SIGMA * RANDOM.standard_normal((N, M, 2)))
POINTS = CLEAN + LEVELS * RANDOM.standard_normal((N, M, D))
STATIC = instrument(X[:40, None]) + LEVELS * RANDOM.standard_normal((40, M, D))
SMALL = {"burst_std": SIGMA, "intrinsic_dim": 2, "hidden_layers": (10,), "max_iter": 300, "random_state": 0}
FORMS = {
    "number": float(np.sqrt(np.mean(LEVELS**2))),
    "(D,)": LEVELS,
    "(D, D)": np.diag(LEVELS**2),
    "(N, D)": np.tile(LEVELS, (N, 1)),
    "(N, D, D)": np.tile(np.diag(LEVELS**2), (N, 1, 1)),
    "estimate": "estimate",
    "static": None,
}


def fit(data=POINTS, *, static=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # of fits that are cut short
        return LOCA(**SMALL | options).fit(data, static=static)


def size(model):
    """Size of the embedding over that of the latents: noise that is not removed makes it too small."""
    return float(np.sqrt(model.embedding_[:N].var(axis=0).sum() / X.var(axis=0).sum()))


@pytest.fixture(scope="module")
def models():
    return {
        form: fit(measurement_noise=noise, static=STATIC if form == "static" else None) for form, noise in FORMS.items()
    }


def test_without_it_coordinates_come_out_short(models):
    assert size(fit()) < 0.93 * size(models["(D,)"])


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_agree(form, models):
    model, expected = models[form], models["(D,)"]
    assert size(model) == pytest.approx(1, abs=0.12 if form == "number" else 0.08)  # one number is too much for some
    apart = [np.linalg.norm(m.embedding_[:-1] - m.embedding_[1:], axis=1) for m in (model, expected)]
    assert np.sqrt(np.mean((apart[0] - apart[1]) ** 2)) < (0.1 if form == "number" else 0.05) * np.mean(apart[1])


@pytest.mark.parametrize("form", FORMS)
def test_the_noise_that_was_used(form, models):
    noise = models[form].noise_
    level = noise.at(POINTS.mean(axis=1)).mean(axis=0)
    found = np.sqrt(np.diag(level) if noise.full else level)
    expected = np.full(D, FORMS["number"]) if form == "number" else LEVELS
    np.testing.assert_allclose(found, expected, rtol=0.3)


def test_noise_that_is_the_same_everywhere():
    for forms in (("(D,)", "(N, D)"), ("(D, D)", "(N, D, D)")):
        # the statistics agree to rounding, which a long fit would magnify
        one, other = (fit(measurement_noise=FORMS[form], max_iter=25).embedding_ for form in forms)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_keeps_it(form, models, tmp_path):
    model = models[form]
    again = LOCA.load(model.save(tmp_path / "m.safetensors"))
    for name, value in vars(model.noise_).items():
        kept = getattr(again.noise_, name)
        assert (value is None) == (kept is None)
        if value is not None:
            np.testing.assert_array_equal(kept, value)
    np.testing.assert_equal(again.measurement_noise, model.measurement_noise)
    np.testing.assert_array_equal(again.transform(POINTS), model.embedding_)
    assert again.score(POINTS) == model.score(POINTS)
    assert again.get_params().keys() == model.get_params().keys()


@pytest.mark.parametrize("form", ["(D,)", "(N, D)", "(N, D, D)", "estimate", "static"])
def test_new_bursts_are_scored_with_the_same_noise(form, models):
    random = np.random.RandomState(5)
    new = instrument(X[:30, None] + SIGMA * random.standard_normal((30, M, 2)))
    new = new + LEVELS * random.standard_normal(new.shape)
    model = models[form]
    unaware = copy.copy(model)
    unaware.noise_ = None
    assert model.score(new) > unaware.score(new) + 0.1
    assert model.score(new) == pytest.approx(model.score(POINTS), abs=0.1)


@pytest.mark.parametrize("form", ["(N, D)", "(N, D, D)"])
def test_noise_of_each_burst_beside_strays(form):
    """The noise of a burst goes with the burst, also when others are left out."""
    random = np.random.RandomState(2)
    grown = LEVELS * np.where(X[:, :1] > 0.5, 1.5, 0.7)
    points = CLEAN + grown[:, None] * random.standard_normal((N, M, D))
    bad = np.insert(points, 17, points[3] + 60.0, axis=0)
    noise = np.insert(grown, 17, grown[3], axis=0)
    if form == "(N, D, D)":
        noise, grown = (np.einsum("nd,de->nde", n**2, np.eye(D)) for n in (noise, grown))
    model, other = fit(bad, measurement_noise=noise), fit(points, measurement_noise=grown)
    assert list(model.strays_) == [17]
    np.testing.assert_allclose(np.delete(model.embedding_, 17, axis=0), other.embedding_, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(model.transform(bad), model.embedding_)
    assert model.score(bad) == pytest.approx(other.score(points), rel=1e-6)


def test_features_that_are_scaled(models):
    factor = np.array([1.0, 1e3, 1e-3, 1.0, 50.0, 0.2])
    model = fit(POINTS * factor, measurement_noise=LEVELS * factor, feature_scale=factor)
    np.testing.assert_allclose(np.sqrt(model.noise_.levels[0]), LEVELS * factor)
    assert size(model) == pytest.approx(size(models["(D,)"]), rel=0.02)


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (np.ones(5), r"measurement_noise has shape \(5,\); with N = 120 bursts of D = 6 sensors"),
        (np.ones((60, 6)), r"measurement_noise has shape \(60, 6\)"),
        (-LEVELS, r"measurement_noise must be .*; it is -0.02 for feature 0"),
        (np.full(6, np.nan), "measurement_noise has values that are not finite"),
        (np.diag(LEVELS) + np.eye(6, k=1), r"measurement_noise is not symmetric: an array with a last axis pair"),
        (-np.eye(6), "measurement_noise has a negative eigenvalue"),
        ("guess", "measurement_noise must be None"),
    ],
)
def test_what_is_refused(noise, words):
    with pytest.raises(ValueError, match=words):
        fit(measurement_noise=noise)


def test_static_bursts_that_do_not_match():
    with pytest.raises(BurstError, match="the static bursts have 5 features; the bursts have 6"):
        fit(static=STATIC[:, :, :5])
    with pytest.raises(BurstError, match="static must be raw bursts"):
        fit(static=BurstStatistics.from_bursts(POINTS, 2))


def test_signal_that_cannot_be_told_from_noise_is_not_taken_for_it():
    """Each latent variable is seen by one sensor alone, and the same everywhere: its spread might be noise."""
    random = np.random.RandomState(0)
    points = np.concatenate([X[:, None] + SIGMA * random.standard_normal((N, M, 2)), np.zeros((N, M, 4))], axis=2)
    points += 0.5 * SIGMA * random.standard_normal(points.shape)
    for k in (2, None):
        with pytest.raises(BurstError, match=r"cannot be estimated|do not move towards"):  # or readings at rest
            fit(points, measurement_noise="estimate", intrinsic_dim=k)
    assert size(fit(points, measurement_noise=0.5 * SIGMA)) == pytest.approx(1, abs=0.06)


# -- what a fresh eye found -----------------------------------------------------------------------------------------


def rig(seed=0, n=200, m=30):
    """Six sensors in units of their own, two of them noisy; noise in those units."""
    random = np.random.RandomState(seed)
    x = random.uniform(size=(n, 1, 2)) + 0.02 * random.standard_normal((n, m, 2))
    a, b = x[..., 0], x[..., 1]
    sensors = [a + 0.2 * np.sin(3 * b), b, np.sin(2 * a), np.cos(2 * b) + a, a * b, np.sin(a + 2 * b)]
    unit, noise = np.array([1e5, 3.0, 1.0, 10.0, 1.0, 5.0]), np.array([0.0, 0.06, 0.0, 0.3, 0.0, 0.0])
    points = np.stack(sensors, axis=-1) * unit + noise * random.standard_normal((n, m, 6))
    return Bursts(points, feature_names=list("abcdef")), noise, random


def test_noise_in_a_refusal_is_in_the_units_of_the_data():
    bursts, _, _ = rig()
    with pytest.raises(BurstError, match="contain measurement noise") as refused:
        LOCA(2).fit(bursts)
    told = dict(re.findall(r"(\w): ([\d.e+-]+\d)", str(refused.value)))
    assert float(told["b"]) == pytest.approx(0.06, rel=0.2) and float(told["d"]) == pytest.approx(0.3, rel=0.2)


def test_noise_that_was_taken_for_tangents_is_told():
    bursts, _, _ = rig()
    statistics = BurstStatistics.from_bursts(bursts.scaled(bursts.to_array().std(axis=(0, 1))), 4)
    found = findings.noise(statistics, bursts.scaled(bursts.to_array().std(axis=(0, 1))))
    assert found.name == "noise" and "neighbouring bursts do not lie along" in found.message


def test_spikes_in_static_bursts_are_set_aside():
    bursts, noise, random = rig()
    still = bursts[:20].to_array().mean(axis=1, keepdims=True) + noise * random.standard_normal((20, 30, 6))
    spiked = still.copy()
    spiked[random.uniform(size=still.shape[:2]) < 0.02] = 0.0
    for static in (still, spiked):
        statistics = BurstStatistics.from_bursts(bursts, 2, static=Bursts(static, feature_names=list("abcdef")))
        np.testing.assert_allclose(statistics.instrument.deviations, noise, rtol=0.15, atol=1e-6)
