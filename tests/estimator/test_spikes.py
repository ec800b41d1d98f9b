"""Spikes in the bursts of a fit: set aside, said so, and known again."""

import warnings

import numpy as np
import pytest

from helpers import latent_bursts, smooth_map
from pyloca import LOCA, Bursts, BurstStatistics, TrustWarning
from pyloca.geometry import SpikeRule
from pyloca.metrics import stress

N, M = 150, 25
X, CLOUDS = latent_bursts(N, M, 2, 0.02, 0)
CLEAN = smooth_map(CLOUDS.reshape(-1, 2)).reshape(N, M, 3)
NAMES = [f"run {i}" for i in range(N)]
SMALL = {"burst_std": 0.02, "hidden_layers": (10,), "random_state": 0}


def spiked(part=0.03, seed=1):
    """Points with jumps of 5 in one sensor, and where they are, (N, M)."""
    random = np.random.RandomState(seed)
    where = random.uniform(size=(N, M)) < part
    points = CLEAN.copy()
    points[where, 1] += 5 * random.choice([-1, 1], size=where.sum())
    return points, where


def fit(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return LOCA(**SMALL | options).fit(data)


@pytest.fixture(scope="module")
def model():
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrustWarning)  # spikes that were set aside do no harm
        return LOCA(**SMALL).fit(Bursts(spiked()[0], ids=NAMES))


def test_they_are_set_aside_and_said(model):
    _, where = spiked()
    np.testing.assert_array_equal(model.set_aside_, where.sum(axis=1))
    assert stress(X, model.embedding_) < 2e-3
    words = model.diagnostics_.set_aside
    worst = int(np.argmax(where.sum(axis=1)))
    assert words.startswith(f"{where.sum()} of {N * M:,} points")
    assert f"most in burst 'run {worst}': {where[worst].sum()} of {M}" in words
    assert words in str(model.diagnostics_)


def test_a_fit_is_that_of_the_other_points(model):
    points, where = spiked()
    others = Bursts([burst[~spikes] for burst, spikes in zip(points, where, strict=True)])
    short = [fit(data, max_iter=60) for data in (Bursts(points), others)]
    np.testing.assert_allclose(short[0].embedding_, short[1].embedding_, rtol=0, atol=1e-8)


def test_transform_of_the_same_bursts_is_the_same(model):
    points, where = spiked()
    np.testing.assert_array_equal(model.transform(points), model.embedding_)
    np.testing.assert_array_equal(model.transform(points[:7]), model.embedding_[:7])
    clean = model.transform([burst[~spikes] for burst, spikes in zip(points, where, strict=True)])
    np.testing.assert_allclose(clean, model.embedding_, rtol=0, atol=1e-9)


def test_one_new_burst_is_cleaned_by_the_rule_of_the_fit(model):
    """A burst alone could not tell a spike; the rule does not need the others."""
    points, where = spiked(seed=7)
    rows = np.flatnonzero(where.any(axis=1))[:5]
    clean = [points[row][~where[row]].mean(axis=0) for row in rows]
    for row, mean in zip(rows, clean, strict=True):
        np.testing.assert_allclose(model.transform(points[row][None])[0], model.encode(mean), atol=1e-9)
    assert model.score(points) == pytest.approx(model.score(CLEAN), abs=0.02)


def test_a_file_keeps_the_rule(model, tmp_path):
    points, _ = spiked(seed=7)
    again = LOCA.load(model.save(tmp_path / "m.safetensors"))
    assert (again.spike_rule_.distance, again.spike_rule_.least_size) == (
        model.spike_rule_.distance,
        model.spike_rule_.least_size,
    )
    np.testing.assert_equal(again.spike_rule_.scale, model.spike_rule_.scale)
    np.testing.assert_array_equal(again.set_aside_, model.set_aside_)
    assert again.diagnostics_.set_aside == model.diagnostics_.set_aside
    for one, other in zip(again.transform(points, return_trust=True), model.transform(points, return_trust=True),
                          strict=True):  # fmt: skip
        np.testing.assert_array_equal(one, other)
    assert again.score(points) == model.score(points)


def test_a_rule_of_an_earlier_version_is_read(model, tmp_path, monkeypatch):
    """It knew no usual size."""
    facts = {"distance": model.spike_rule_.distance, "least_size": 0.0}
    monkeypatch.setattr("pyloca.modelfile._rule_facts", lambda rule: facts)
    again = LOCA.load(model.save(tmp_path / "m.safetensors"))
    assert again.spike_rule_ == SpikeRule(**facts)
    np.testing.assert_array_equal(again.transform(spiked()[0]), model.embedding_)


def test_a_scaled_rule_is_kept(tmp_path):
    units = np.array([1.0, 1e4, 1e-3])
    points = spiked()[0] * units
    model = fit(Bursts(points, units=["m", "Pa", "V"]), max_iter=40)
    assert model.spike_rule_ is not None and model.spike_rule_.scale is not None
    np.testing.assert_array_equal(model.transform(points), model.embedding_)
    again = LOCA.load(model.save(tmp_path / "m.safetensors"))
    np.testing.assert_array_equal(again.spike_rule_.scale, model.spike_rule_.scale)
    np.testing.assert_array_equal(again.transform(points), model.embedding_)


def test_clean_bursts_keep_every_bit():
    """No spikes: the fit is that of bursts which nobody may search."""
    model = fit(CLEAN, max_iter=60)
    searched_by_nobody = fit(Bursts(CLEAN).set_points_aside([], []), max_iter=60)
    assert searched_by_nobody.spike_rule_ is None
    assert not model.set_aside_.any()
    assert model.diagnostics_.set_aside == ""
    np.testing.assert_array_equal(model.embedding_, searched_by_nobody.embedding_)
    np.testing.assert_array_equal(model.transform(CLEAN), model.embedding_)
    np.testing.assert_array_equal(model.embedding_, model.encode(CLEAN.mean(axis=1)))


def test_new_bursts_of_a_clean_fit_are_cleaned_one_by_one(tmp_path):
    """By a distance that no burst of the fit comes near, whichever other bursts are there."""
    model = fit(CLEAN, max_iter=40)
    points, where = spiked()
    got = model.transform(points)
    kept = np.array([burst[~spikes].mean(axis=0) for burst, spikes in zip(points, where, strict=True)])
    np.testing.assert_allclose(got, model.encode(kept), rtol=0, atol=1e-9)
    row = int(np.argmax(where.sum(axis=1)))
    np.testing.assert_array_equal(model.transform(points[row][None])[0], got[row])
    assert model.score(points) == pytest.approx(model.score(CLEAN), abs=0.02)
    again = LOCA.load(model.save(tmp_path / "m.safetensors"))
    assert again.spike_rule_ == model.spike_rule_
    np.testing.assert_array_equal(again.transform(points), got)


def test_new_bursts_are_left_alone_where_nobody_may_look():
    model = fit(Bursts(CLEAN).set_points_aside([], []), max_iter=40)
    points, _ = spiked()
    np.testing.assert_array_equal(model.transform(points), model.encode(points.mean(axis=1)))


def test_beside_strays():
    points, where = spiked()
    points[40] += 200.0
    points[90] = points[90, 0]
    model = fit(points, max_iter=60)
    assert list(model.strays_) == [40, 90]
    sound = np.delete(np.arange(N), [40, 90])
    np.testing.assert_array_equal(model.set_aside_[sound], where.sum(axis=1)[sound])
    np.testing.assert_array_equal(model.transform(points), model.embedding_)


def test_statistics_are_taken_as_they_are(model):
    statistics = BurstStatistics.from_bursts(spiked()[0], 2)
    assert statistics.set_aside.sum() == spiked()[1].sum()
    other = fit(statistics, max_iter=40)
    assert other.spike_rule_ is None
    np.testing.assert_array_equal(other.set_aside_, statistics.set_aside)


def test_automatic_components_and_the_paper_solver():
    points, where = spiked()
    for options in ({"solver": "paper", "max_iter": 3}, {"n_components": "auto", "max_iter": 60}):
        model = fit(points, **options)
        np.testing.assert_array_equal(model.set_aside_, where.sum(axis=1))
        np.testing.assert_array_equal(model.transform(points), model.embedding_)
