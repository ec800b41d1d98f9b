"""`recalibrate`: old coordinates are kept, drift is told from noise."""

import re
import warnings

import numpy as np
import pytest

from helpers import random_rotation
from instruments import SIGMA, fit, gauge, plan, sheet
from pyloca import LOCA, TrustWarning
from pyloca.errors import BurstError, MatchError
from pyloca.matching import Match, recalibrate
from pyloca.matching._moved import moved_model
from pyloca.matching._sensors import read_sensors
from pyloca.metrics import RigidMap

X = plan(150, 31)
SPREAD = np.array([[0.1, 0.1], [1.9, 0.2], [0.3, 2.8], [1.0, 0.6], [0.6, 1.6]])


def bursts(measure, states=X, seed=31):
    clouds = states[:, None] + SIGMA * np.random.RandomState(seed).standard_normal((len(states), 40, 2))
    return measure(clouds.reshape(-1, 2)).reshape(len(states), 40, -1)


def drifted(x):
    """Gains, an offset, and a replaced sensor."""
    y = sheet(x) * [1.1, 0.9, 1.0] + [0.0, 0.2, 0.0]
    return np.column_stack([y[:, :2], np.exp(y[:, 2])])


def rms(difference):
    return np.sqrt(np.square(difference).sum(axis=-1).mean())


def test_old_coordinates_are_kept_through_drift(a):
    found = recalibrate(a, bursts(drifted), (sheet(SPREAD), drifted(SPREAD)))
    assert found.drifted and found.p_value < 0.01 and found.how == "anchors" and found.start == "old weights"
    assert rms(found.model.transform(drifted(X)) - a.transform(sheet(X))) < 0.08
    assert np.nanmedian(found.displacement) > 0.05  # the old model would be off
    # it is a plain model: it decodes, trusts, and is saved
    assert rms(found.model.decode(found.model.transform(drifted(X))) - drifted(X)) < 0.05
    assert np.median(found.model.transform(drifted(X), return_trust=True)[1]) > 0.2
    assert "more than noise" in str(found) and "drift" in found._repr_html_()
    assert found.plot().axes[0].get_title(loc="left") == "drift"


def test_no_drift_is_not_called_drift(a, tmp_path):
    found = recalibrate(a, bursts(sheet))
    assert not found.drifted and found.how == "shape and sensors"
    assert rms(found.refitted.transform(sheet(X)) - a.transform(sheet(X))) < 0.2
    # a second fit would only add its own errors
    assert found.kept and found.model is a and "old one is kept" in str(found)
    np.testing.assert_array_equal(found.coordinates(sheet(X)), a.transform(sheet(X)))
    again = LOCA.load(found.model.save(tmp_path / "new.safetensors"))
    np.testing.assert_array_equal(again.transform(sheet(X)), found.model.transform(sheet(X)))


def many(x):
    """D = 7: more sensors than places need."""
    centres = np.array([[0, 0], [2, 0], [0, 3], [1, 1], [2, 2], [0.5, 2], [1.5, 0.5]])
    return np.exp(-np.square(x[:, None] - centres).sum(axis=2) / 8)


@pytest.fixture(scope="module")
def seven():
    return fit(many, plan(150, 5), 5)


GAINS, OFFSETS = np.array([1.1, 0.9, 1.0, 1.2, 0.95, 1.05, 0.85]), np.array([0, 0.05, -0.05, 0, 0.1, 0, 0])


def test_sensors_tell_old_coordinates_without_anchors(seven, tmp_path):
    def now(x):
        return GAINS * many(x) + OFFSETS

    found = recalibrate(seven, bursts(now))
    assert found.drifted and found.how == found.match.how == "shape and sensors" and not found.sensors.doubt
    np.testing.assert_allclose(found.sensors.gains, GAINS, atol=0.03)
    np.testing.assert_allclose(found.sensors.offsets, OFFSETS, atol=0.03)
    off = rms(found.coordinates(now(X)) - seven.transform(many(X)))
    assert off < 0.03 < rms(found.model.transform(now(X)) - seven.transform(many(X)))  # the new fit has its own waves
    assert off < 3 * np.sqrt(2) * found.match.standard_error
    assert "a gain and an offset explain 7 of 7" in str(found) and "60 of 60 bursts as anchors" in str(found.match)
    again = Match.load(found.match.save(tmp_path / "match.safetensors"))
    np.testing.assert_array_equal(again.coordinates(now(X), "new"), found.coordinates(now(X)))


def test_a_replaced_sensor_is_named_and_left_out(seven):
    def now(x):
        y = GAINS * many(x)
        return np.column_stack([y[:, :4], -np.log(y[:, 4]), y[:, 5:]])

    found = recalibrate(seven, bursts(now))
    assert found.sensors.explained.tolist() == [True] * 4 + [False] + [True] * 2
    assert "explain 6 of 7; not feature 4" in str(found)
    assert rms(found.coordinates(now(X)) - seven.transform(many(X))) < 0.03


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda y: y**0.7,
            "not used: a gain and an offset explain [0-3] of 7|not used: gains and offsets do not settle",
        ),
        (lambda y: y[:, [0, 1, 2, 3, 5, 6, 4]], r"not used: a gain and an offset explain 4 of 7; not feature 4"),
    ],
)
def test_where_gains_and_offsets_do_not_explain_sensors_the_shape_decides(seven, change, why):
    found = recalibrate(seven, bursts(lambda x: change(many(x))))
    assert found.how == found.match.how == "shape" and re.search(why, str(found))


def test_places_that_the_shape_contradicts_are_not_used(seven):
    """Readings of places farther along: other states, or drift that looks like them."""
    Z = seven.transform(many(X))
    for shift, doubt in ((0.05, ""), (0.4, "from where the shape does")):
        back = RigidMap(np.eye(2), np.array([shift, 0.0]))
        told = read_sensors(seven, many(X), Z, np.arange(len(Z)), back, np.full(3, 0.05**2), 0.05)
        assert told.explained.all() and doubt in told.doubt and bool(told.doubt) == bool(doubt)


def test_as_many_sensors_as_coordinates_tell_nothing(b):
    found = recalibrate(b, bursts(lambda x: gauge(x) * [1.2, 1.0]))
    assert found.how == "shape" and "2 are too few to tell gains from places" in str(found)


@pytest.mark.slow
def test_sensors_decide_where_shapes_are_ambiguous():
    states = [np.random.RandomState(seed).uniform(0, 1.7, size=(150, 2)) for seed in (35, 36)]
    old = fit(many, states[0], 35)
    found = recalibrate(old, bursts(lambda x: 5 * GAINS * many(x), states[1]))  # beyond what its encoder knows
    assert found.how == "shape and sensors"
    off = found.coordinates(5 * GAINS * many(states[1])) - old.transform(many(states[1]))
    assert rms(off) < 0.05


@pytest.mark.slow
def test_a_model_that_has_not_drifted_is_replaced_where_new_places_were_seen():
    low = plan(260, 34)
    old = fit(sheet, low[low[:, 1] < 1.8][:150], 34)
    found = recalibrate(old, bursts(sheet), (sheet(SPREAD[[0, 1, 3, 4]]),) * 2)
    assert not found.drifted and not found.kept and found.model is found.refitted
    assert "cannot place" in str(found)


@pytest.mark.slow
def test_a_candidate_is_chosen_where_nothing_tells(square):
    """A square, and an encoder that does not know the new readings any more."""
    states = np.random.RandomState(32).uniform(0, 1.7, size=(150, 2))
    moved = bursts(lambda x: gauge(x) + 9000, states)
    with pytest.raises(MatchError, match=r"8 ways.* choose=I .*0: overlap 9\d\.\d%, turned by .*7: overlap"):
        recalibrate(square, moved)
    found = recalibrate(square, moved, choose=3)
    assert found.how == "shape and choice" and found.match.chosen == 3 and found.drifted
    with pytest.raises(ValueError, match="candidate=99"):
        recalibrate(square, moved, choose=99)


@pytest.mark.slow
def test_where_shapes_are_ambiguous_the_old_encoder_decides(square):
    states = np.random.RandomState(32).uniform(0, 1.7, size=(150, 2))
    found = recalibrate(square, bursts(lambda x: gauge(x) * [1.05, 1.0], states))
    assert found.how == "shape and old encoder"
    assert rms(found.model.transform(gauge(states) * [1.05, 1.0]) - square.transform(gauge(states))) < 0.2


def test_another_set_of_states_is_refused_without_anchors(a):
    states = np.random.RandomState(33).uniform((0, 0), (2, 1), size=(150, 2))
    with pytest.raises(MatchError, match="anchors would tell"):
        recalibrate(a, bursts(sheet, states))


def test_other_features_are_refused_before_any_work(a):
    with pytest.raises(BurstError, match="2 features"):
        recalibrate(a, bursts(gauge))


@pytest.mark.parametrize("scale", ["auto", (1.0, 2.0, 0.5)])
def test_a_model_in_other_coordinates_is_the_same_model(scale, tmp_path):
    model = fit(sheet, plan(80, 4), 4, feature_scale=scale)
    rigid = RigidMap(random_rotation(2, 1), np.array([3.0, -4.0]), 2.5)
    moved = moved_model(model, rigid)
    Y = sheet(X)
    np.testing.assert_allclose(moved.transform(Y), rigid.apply(model.transform(Y)), atol=1e-9)
    np.testing.assert_allclose(moved.decode(moved.transform(Y)), model.decode(model.transform(Y)), atol=1e-9)
    np.testing.assert_allclose(moved.transform(Y, return_trust=True)[1], model.transform(Y, return_trust=True)[1])
    assert moved.burst_std_ == pytest.approx(2.5 * model.burst_std_)
    assert moved.score(bursts(sheet)) == pytest.approx(model.score(bursts(sheet)))
    again = LOCA.load(moved.save(tmp_path / "moved.safetensors"))
    np.testing.assert_array_equal(again.encode(Y), moved.encode(Y))


def test_weights_of_reduced_measurements_are_no_start():
    """With many features a fit sees a few directions of them, which are others for other bursts."""
    random = np.random.RandomState(0)
    mixing = random.standard_normal((3, 60))

    def wide(x):
        return sheet(x) @ mixing

    model = fit(wide, plan(80, 4), 4)
    found = recalibrate(model, bursts(wide, plan(80, 5)), (wide(SPREAD), wide(SPREAD)))
    assert found.start == "random weights" and "from random weights" in str(found)
    assert rms(found.model.transform(wide(X)) - model.transform(wide(X))) < 0.15


def test_a_module_of_ones_own_cannot_be_moved(a):
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        linear = torch.nn.Linear(3, 2)
        own = LOCA(burst_std=SIGMA, encoder=linear, max_iter=2, random_state=0).fit(bursts(sheet, X[:40]))
    with pytest.raises(MatchError, match="module of your own"):
        moved_model(own, RigidMap(np.eye(2), np.zeros(2)))


# -- anchors and sensors --------------------------------------------------------------------------------------------


def changed(x):
    return GAINS * many(x) + OFFSETS


def test_anchors_and_sensors_are_combined(seven):
    """Six anchors alone are two to three times as wrong as sensors alone."""
    places = np.concatenate([SPREAD, [[1.6, 0.9]]])
    found = recalibrate(seven, bursts(changed), (many(places), changed(places)))
    assert found.how == found.match.how == "anchors and sensors" and found.match.used.tolist() == [True] * 6
    assert rms(found.coordinates(changed(X)) - seven.transform(many(X))) < 0.03
    assert "6 of 6 anchors" in str(found.match) and "7 of 7" in str(found)


def test_what_match_warns_of_is_said(seven):
    places = np.concatenate([SPREAD, [[1.6, 0.9]]])
    with pytest.warns(TrustWarning, match=r"rows 0 and 2 \(.*\) contradict the sensors"):
        found = recalibrate(seven, bursts(changed), (many(places), changed(places[[2, 1, 0, 3, 4, 5]])))
    assert "WARNING" in str(found)
    assert rms(found.coordinates(changed(X)) - seven.transform(many(X))) < 0.03


@pytest.fixture(scope="module")
def oblong():
    """Seven sensors of a rectangle: shapes do not tell it from its mirror images."""
    states = np.random.RandomState(8).uniform((0, 0), (2, 3), size=(150, 2))
    return fit(many, states, 8)


def test_sensors_contradict_anchors_that_are_all_wrong(oblong):
    states = np.random.RandomState(9).uniform((0, 0), (2, 3), size=(150, 2))
    corners = np.array([[0.2, 0.2], [1.8, 0.2], [1.8, 2.8], [0.2, 2.8]])
    given = many(corners), changed(corners[[1, 0, 3, 2]])
    with pytest.raises(MatchError, match=r"anchors contradict the sensors.*explain 7 of 7.*same order"):
        recalibrate(oblong, bursts(changed, states), given)
    assert recalibrate(oblong, bursts(changed, states), given, choose=0).how == "anchors"
    right = recalibrate(oblong, bursts(changed, states), (given[0], changed(corners)))
    assert rms(right.coordinates(changed(states)) - oblong.transform(many(states))) < 0.05


def test_before_and_after_exchanged_are_told(seven):
    places = np.concatenate([SPREAD, [[1.6, 0.9]]])
    sensors = pytest.warns(
        TrustWarning, match=r"contradict the sensors, .*7 of 7.* is the first from before the change"
    )
    with pytest.warns(TrustWarning, match=r"anchors by '(old|new)' are not like .* tables exchanged"), sensors:
        found = recalibrate(seven, bursts(changed), (changed(places), many(places)))
    assert found.how == "anchors" and "most anchors contradict them" in str(found)
