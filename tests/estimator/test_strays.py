"""Bursts that a fit leaves out: named, without trust, and without any influence on the others."""

import dataclasses
import warnings

import numpy as np
import pytest

from pyloca import LOCA, Bursts, TrustWarning, datasets
from pyloca.errors import BurstError
from pyloca.findings import Finding, clipped
from pyloca.geometry import BurstStatistics, find_strays
from pyloca.geometry._rails import Rails
from pyloca.inspection import inspect_bursts

DATA = datasets.mushroom(n_bursts=120, n_points=20, random_state=0)
POINTS = DATA.bursts.to_array()
NAMES = np.array([f"run {i}" for i in range(120)])
BAD = 30, 77  # as many as may be left out of 120: 1 % and one more
REST = np.delete(np.arange(120), BAD)
SMALL = {"burst_std": 0.01, "hidden_layers": (10,), "max_iter": 60, "random_state": 0}


def fit(bursts, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # of fits that are too short to be good
        return LOCA(**SMALL | options).fit(bursts)


def spoiled(kind):
    """The bursts, of which two are spoiled."""
    points = list(POINTS.copy())
    for row in BAD:
        middle = points[row].mean(axis=0)
        if kind == "short":
            points[row] = points[row][:2]
        elif kind == "identical":
            points[row] = np.tile(middle, (20, 1))
        elif kind == "flat":
            points[row] = middle + np.linspace(-0.01, 0.01, 20)[:, None] * [1.0, 0.5]
        else:
            points[row] = points[row] + [40.0, -25.0]
    return Bursts(points, ids=NAMES)


WORDS = {
    "short": "2 points",
    "identical": "no spread",
    "flat": "spans only 1 of the k = 2 directions",
    "apart": "lies apart: its nearest neighbour is",
}


@pytest.fixture(scope="module")
def without():
    return fit(Bursts(POINTS, ids=NAMES)[REST])


@pytest.mark.parametrize("kind", WORDS)
def test_a_fit_is_that_of_the_others_bit_for_bit(kind, without):
    bursts = spoiled(kind)
    model = fit(bursts, intrinsic_dim=2)
    assert list(model.strays_) == ["run 30", "run 77"]
    assert all(WORDS[kind] in reason for reason in model.strays_.values()), model.strays_
    np.testing.assert_array_equal(model.embedding_[REST], without.embedding_)
    np.testing.assert_array_equal(model.diagnostics_.trust[REST], without.diagnostics_.trust)
    np.testing.assert_array_equal(model.diagnostics_.losses[REST], without.diagnostics_.losses)
    np.testing.assert_array_equal(model.burst_ids_[model.validation_indices_],
                                  without.burst_ids_[without.validation_indices_])  # fmt: skip
    assert model.diagnostics_.trust[list(BAD)].tolist() == [0, 0]
    assert np.isfinite(model.embedding_).all()
    assert np.isnan(model.diagnostics_.losses[list(BAD)]).all()
    np.testing.assert_array_equal(model.transform(bursts), model.embedding_)
    assert model.score(bursts) == pytest.approx(without.score(bursts[REST]), abs=1e-12)


def test_a_clipped_burst():
    top = int(np.argmax(POINTS.mean(axis=1)[:, 0]))
    points = POINTS.copy()
    points[..., 0] = np.minimum(points[..., 0], np.median(points[top, :, 0]))
    at_end = (points[..., 0] == points[..., 0].max()).sum(axis=1)
    expected = np.flatnonzero(at_end >= 2)
    assert top in expected and len(expected) <= 2
    bursts, rest = Bursts(points), np.delete(np.arange(120), expected)
    model = fit(bursts)
    assert list(model.strays_) == expected.tolist()
    assert "is clipped: feature 0 has its largest reading, " in model.strays_[top]
    np.testing.assert_array_equal(model.embedding_[rest], fit(bursts[rest]).embedding_)
    np.testing.assert_array_equal(model.transform(bursts), model.embedding_)


SENSORS = DATA.X @ [[1.0, 0.2, 0.5], [-0.3, 1.0, 0.5]]  # linear, so that tiny fits are good


def rail(part):
    """Bursts of three sensors, the first of which ends where it cuts bursts in a part of the places."""
    cloud = 0.01 * np.random.RandomState(1).standard_normal((120, 20, 2)) @ [[1.0, 0.2, 0.5], [-0.3, 1.0, 0.5]]
    points = SENSORS[:, None] + cloud
    end = np.quantile(points[..., 0], 1 - part)
    points[..., 0] = np.minimum(points[..., 0], end)
    return points, end


def test_more_clipped_bursts_than_may_be_left_out_are_named():
    points, end = rail(0.1)
    bursts = Bursts(points, ids=NAMES, feature_names=["p", "q", "r"])
    model = fit(bursts)
    cut = NAMES[((points[..., 0] == end).sum(axis=1) >= 2)].tolist()
    assert model.strays_ == {} and len(cut) > 2
    words = model.diagnostics_.clipped
    assert words.startswith(
        f"{len(cut)} of 120 bursts are clipped, but used: burst {cut[0]!r} (p has its largest reading"
    )
    assert f"{end:.4g}" in words and "max_strays=0." in words
    assert "bursts are clipped, but used" in str(model.diagnostics_)
    assert any(words in remark for remark in inspect_bursts(bursts).remarks)
    again = float(words.split("max_strays=")[1].split()[0])
    assert list(fit(bursts, max_strays=again).strays_) == cut


def test_the_end_of_a_scaled_sensor_is_in_its_own_units():
    points, end = rail(0.1)
    assert (
        f"reading, {1000 * end:.4g}, at"
        in fit(Bursts(points * [1000, 1, 1]), feature_scale=[500, 1, 1]).diagnostics_.clipped
    )


def test_flat_bursts_are_refused_for_their_clipped_sensor():
    points = POINTS.copy()
    points[..., 0] = np.minimum(points[..., 0], 1.5)
    with pytest.raises(
        BurstError, match=r"burst \d+ \(and \d+ more\) is clipped: feature 0 has its largest reading, 1.5, at 20"
    ):
        fit(points)


def smooth(points):
    return np.tanh(3 * points)


def steps(levels):
    low, high = SENSORS.min(axis=0), SENSORS.max(axis=0)
    return lambda points: np.round((points - low) / (high - low) * (levels - 1))


def label(points):
    return np.concatenate([points, np.arange(120.0)[:, None, None] + np.zeros((120, 20, 1))], axis=2)


@pytest.mark.parametrize("read", [smooth, steps(2), steps(4), steps(64), steps(4096), label])
def test_what_is_not_clipped(read):
    points = read(rail(0)[0])
    rails = Rails(Bursts(points))
    for rows, block in rails.bursts.blocks():
        rails.add(rows, block)
    assert rails.reasons() == {}


def test_a_finding_on_clipped_bursts_is_their_fault():
    statistics = BurstStatistics.from_bursts(rail(0.1)[0])
    cut = np.flatnonzero(statistics.marks != "")
    symptom = Finding("crossing", "sheets cross.", tuple(cut[:4].tolist()))
    found = clipped(statistics, symptom)
    assert found.name == "clipped" and found.bursts == tuple(cut.tolist()) and '"crossing"' in found.message
    others = np.flatnonzero(statistics.marks == "")
    assert clipped(statistics, Finding("crossing", "sheets cross.", tuple(others[:4].tolist()))) is None
    assert clipped(BurstStatistics.from_bursts(rail(0)[0]), symptom) is None


def marked_statistics(marks):
    """100 bursts with marks: `marks[i]` is the sensor that clips burst i, or None."""
    X = np.random.RandomState(0).uniform(size=(100, 2))
    statistics = BurstStatistics.from_jacobians(X, np.tile(np.eye(2), (100, 1, 1)))
    words = [
        "" if j is None else f"is clipped: feature {j} has its largest reading, 1, at 9 of 30 points" for j in marks
    ]
    return dataclasses.replace(statistics, marks=np.array(words, dtype=object))


def test_many_clipped_sensors_are_named_though_each_clips_few_bursts():
    symptom = Finding("outliers", "12 % are outliers.", tuple(range(12)))
    six = marked_statistics([i % 6 if i < 60 else None for i in range(100)])
    found = clipped(six, symptom)
    assert found.name == "clipped" and len(found.bursts) == 60 and "leave out the sensors" in found.message
    assert clipped(marked_statistics([0 if i < 60 else None for i in range(100)]), symptom) is None  # it is made so


def test_where_nearly_all_bursts_are_clipped_it_may_be_the_cause():
    symptom = Finding("outliers", "12 % are outliers.", tuple(range(12)))
    found = clipped(marked_statistics([i % 6 if i < 97 else None for i in range(100)]), symptom)
    assert found.name == "outliers" and found.bursts == symptom.bursts
    assert "97 of 100 bursts are clipped by some sensor, which may be the cause" in found.message


def outskirts(seed, n=300):
    """A linear map of places of which a tenth lie far around a small square."""
    random = np.random.RandomState(seed)
    places = random.uniform(size=(n, 2))
    dense = random.uniform(size=n) > 0.1
    places[dense] = 0.4 + 0.2 * places[dense]
    return (places[:, None] + 0.01 * random.standard_normal((n, 20, 2))) @ [[1.0, 0.2, 0.5], [-0.3, 1.0, 0.5]]


@pytest.mark.parametrize("n", [100, 300])
def test_sparse_outskirts_are_not_strays(n):
    for seed in range(4):
        assert find_strays(BurstStatistics.from_bursts(outskirts(seed, n), 2), 0.01) == {}


@pytest.mark.parametrize("step", [[0.3, -0.4, 0.5], [1.0, 1.2, 1.0]])  # the second along the tangents
def test_strays_beyond_a_gap_are(step):
    points = outskirts(0)
    points[[7, 70]] += 10 * np.array(step)
    assert list(find_strays(BurstStatistics.from_bursts(points, 2), 0.01)) == [7, 70]


def test_the_order_of_ids_is_kept_and_diagnostics_name_them():
    model = fit(spoiled("flat"))
    assert model.burst_ids_.tolist() == NAMES.tolist()
    assert [stray.burst for stray in model.diagnostics_.strays] == list(BAD)
    assert "run 30" in str(model.diagnostics_)


def test_integers_name_strays_of_bursts_without_ids():
    points = POINTS.copy()
    points[5] = points[5, 0]
    assert list(fit(points).strays_) == [5]


def test_sound_bursts_have_no_strays(without):
    assert without.strays_ == {}
    assert without.diagnostics_.strays == ()


def test_more_than_may_be_left_out_are_refused():
    points = POINTS.copy()
    points[[3, 40, 90]] = points[[3, 40, 90], :1]
    with pytest.raises(BurstError, match=r"burst 3 \(and 2 more\) has no spread.*At most 2 may be left out"):
        fit(points)
    assert list(fit(points, max_strays=0.02).strays_) == [3, 40, 90]


def test_none_may_be_left_out():
    with pytest.raises(BurstError, match=r"burst 'run 30' .*has no spread"):
        fit(spoiled("identical"), max_strays=0)
    with pytest.raises(BurstError, match="pieces that do not touch"):
        fit(spoiled("apart"), max_strays=0)


@pytest.mark.parametrize("value", [-0.1, 0.5, True, "some", None])
def test_what_max_strays_cannot_be(value):
    with pytest.raises(ValueError, match=r"max_strays must be a fraction of the bursts in \[0, 0.5\)"):
        fit(POINTS, max_strays=value)


@pytest.mark.parametrize("kind", ["flat", "apart"])
def test_files_keep_strays(kind, tmp_path):
    bursts = spoiled(kind)
    model = fit(bursts)
    again = LOCA.load(model.save(tmp_path / "m.safetensors"))
    assert again.strays_ == model.strays_
    assert again.max_strays == model.max_strays
    assert again.diagnostics_.strays == model.diagnostics_.strays
    for one, other in zip(again.transform(bursts, return_trust=True), model.transform(bursts, return_trust=True),
                          strict=True):  # fmt: skip
        np.testing.assert_array_equal(one, other)
    assert again.score(bursts) == model.score(bursts)


def test_a_burst_apart_has_no_trust_when_it_is_transformed():
    bursts = spoiled("apart")
    trust = fit(bursts).transform(bursts, return_trust=True)[1]
    assert trust[list(BAD)].max() < 0.1


@pytest.mark.slow
def test_automatic_components():
    bursts = spoiled("flat")
    model, other = fit(bursts, n_components="auto"), fit(bursts[REST], n_components="auto")
    assert model.n_components_ == other.n_components_ == 2
    np.testing.assert_array_equal(model.embedding_[REST], other.embedding_)


def test_a_checkpoint_resumes(tmp_path):
    bursts, file = spoiled("apart"), tmp_path / "c.safetensors"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        LOCA(**SMALL | {"max_iter": 20}).fit(bursts, checkpoint=file)
        model = LOCA(**SMALL).fit(bursts, checkpoint=file)
    np.testing.assert_array_equal(model.embedding_, fit(bursts).embedding_)
    assert list(model.strays_) == ["run 30", "run 77"]


def test_statistics_have_strays_too(without):
    statistics = BurstStatistics.from_bursts(spoiled("apart"))
    model = fit(statistics)
    assert list(model.strays_) == ["run 30", "run 77"]
    np.testing.assert_allclose(model.embedding_[REST], without.embedding_, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(model.transform(statistics), model.embedding_)


@pytest.mark.parametrize("solver", ["paper", "fast"])
def test_either_solver_and_scaled_features(solver):
    bursts = spoiled("apart")
    options = {"solver": solver, "feature_scale": [2.0, 0.5], "max_iter": 30}
    model, other = fit(bursts, **options), fit(bursts[REST], **options)
    assert list(model.strays_) == ["run 30", "run 77"]
    np.testing.assert_array_equal(model.embedding_[REST], other.embedding_)
    np.testing.assert_array_equal(model.transform(bursts), model.embedding_)
