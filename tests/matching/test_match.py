"""`match` of fitted models: what it finds, what it says, what it refuses."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from helpers import random_rotation
from instruments import SIGMA, fit, gauge, plan, sheet
from pyloca import LOCA, TrustWarning
from pyloca._sealed import file_kind
from pyloca.errors import BurstError, MatchError, ModelFileError
from pyloca.matching import Match, _by_anchors, match

NEW = plan(200, 77)
SPREAD = np.array([[0.1, 0.1], [1.9, 0.2], [0.3, 2.8], [1.0, 0.6], [0.6, 1.6]])
ERROR = 0.06  # of mapped coordinates, where the plan is 2 x 3


def anchors(X=SPREAD):
    return sheet(X), gauge(X)


def quietly(*given, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return match(*given, **options)


@pytest.fixture(scope="module")
def five(a, b):
    return match(a, b, anchors())


def rms(difference):
    return np.sqrt(np.square(difference).sum(axis=-1).mean())


# -- with anchors -----------------------------------------------------------------------------------------------


def test_readings_are_predicted_both_ways(five):
    assert rms(five.a_to_b(sheet(NEW)) - gauge(NEW)) < 1000 * ERROR
    assert rms(five.b_to_a(gauge(NEW)) - sheet(NEW)) < ERROR
    assert (five.how, five.chosen, five.scaled, five.used.all()) == ("anchors", 0, False, True)
    assert five.candidates[0].overlap > 0.95


def test_coordinates_are_those_of_the_first(five, a):
    np.testing.assert_array_equal(five.coordinates(sheet(NEW), "a"), a.transform(sheet(NEW)))
    assert rms(five.coordinates(gauge(NEW), "b") - a.transform(sheet(NEW))) < ERROR
    assert five.coordinates(gauge(NEW), "b", return_trust=True)[1].shape == (200,)


def test_predictions_have_errors_and_trust(five):
    found = five.predict(sheet(NEW), "a", "b")
    np.testing.assert_array_equal(found.values, five.a_to_b(sheet(NEW)))
    low, high = found.interval(0.95)
    assert ((low <= gauge(NEW)) & (gauge(NEW) <= high)).mean() > 0.85
    assert 0.3 < rms(found.values - gauge(NEW)) / rms(found.standard_errors) < 1.7
    assert np.median(found.trust) > 0.2
    back = five.predict(gauge(NEW), "b", "a")
    np.testing.assert_allclose(back.values, five.b_to_a(gauge(NEW)))
    assert back.coordinate_errors == pytest.approx(five.predict(sheet(NEW), "a", "b").coordinate_errors, rel=0.2)


def test_what_anchors_tell_of_the_encoders_errors_is_subtracted(a, b):
    """Twenty anchors: predictions at these are exact, and between them better than by the rigid map alone."""
    X = plan(20, 12)
    found = quietly(a, b, anchors(X))
    at = found.predict(sheet(X[found.used]), "a", "b").coordinates - b.transform(gauge(X[found.used]))
    assert rms(at) < 0.2 * rms(found.residuals[found.used][:, None])
    rigid = rms(found.rigid.apply(a.transform(sheet(NEW))) - b.transform(gauge(NEW)))
    told = found.predict(sheet(NEW), "a", "b")
    assert rms(told.coordinates - b.transform(gauge(NEW))) < 0.8 * rigid
    assert found.standard_error < found.rigid_error
    # there and back again
    there = found.joint.common(a.transform(sheet(NEW)), 0)
    np.testing.assert_allclose(found.joint.own(there, 0), a.transform(sheet(NEW)), atol=1e-9)


def test_to_itself_is_the_round_trip(five, a):
    found = five.predict(sheet(NEW), "a", "a")
    np.testing.assert_allclose(found.values, a.decode(a.transform(sheet(NEW))))
    assert found.coordinate_errors.max() == 0


def test_what_an_instrument_has_not_seen_is_not_trusted(five):
    outside = np.array([[1.6, 2.6]])  # the notch of the L
    assert five.predict(sheet(outside), "a", "b").trust < 0.01


def test_the_stated_error_of_the_map_is_that_of_repeated_anchors(a, b):
    """Predictions all over the plan, from ten sets of anchors: their errors against the stated ones."""
    off, stated = [], []
    for seed in range(10):
        told = quietly(a, b, anchors(plan(6, seed))).predict(sheet(NEW), "a", "b")
        off.append(np.square(told.coordinates - b.transform(gauge(NEW))).mean())
        stated.append(np.square(told.coordinate_errors).mean())
    assert 0.2 < np.mean(off) / np.mean(stated) < 2.0


def test_pairs_of_ids(a, b):
    found = match(a, b, [(i, f"run {i}") for i in range(10)])
    assert rms(found.a_to_b(sheet(NEW)) - gauge(NEW)) < 1000 * ERROR


def test_bursts_are_anchors_too(a, b):
    random = np.random.RandomState(5)
    clouds = [(SPREAD[:, None] + SIGMA * random.standard_normal((5, 40, 2))).reshape(-1, 2) for _ in range(2)]
    found = match(a, b, (sheet(clouds[0]).reshape(5, 40, 3), gauge(clouds[1]).reshape(5, 40, 2)))
    assert rms(found.a_to_b(sheet(NEW)) - gauge(NEW)) < 1000 * ERROR


def test_a_wrong_pair_that_rigid_maps_do_not_show_is_found(a, b, monkeypatch):
    """A fit that is wrong by long waves makes residuals of right pairs as large; no displacement explains the wrong."""
    find = _by_anchors.robust_procrustes

    def blind(A, *given, **options):
        return replace(find(A, *given, **options), right=np.ones(len(A), dtype=bool))

    monkeypatch.setattr(_by_anchors, "robust_procrustes", blind)
    X = plan(20, 5)
    bent = X + 0.1 * np.column_stack([np.sin(2 * X[:, 1]), np.zeros(20)])
    off = X.copy()
    off[3, 1] += 0.3 if X[3, 1] < 1.5 else -0.3
    with pytest.warns(TrustWarning, match=r"the anchor in row 3 \(counted from 0, .*\) contradicts the others"):
        found = match(a, b, (sheet(bent), gauge(off)))
    assert np.flatnonzero(~found.used).tolist() == [3]


def test_a_fifth_of_the_anchors_may_be_wrong(a, b):
    X = np.concatenate([SPREAD[:2], plan(8, 5)])
    readings = sheet(X), gauge(X[[1, 0, *range(2, 10)]])
    with pytest.warns(TrustWarning, match=r"anchors in rows 0 and 1 \(.*\) contradict the others and were left out"):
        found = match(a, b, readings)
    assert found.used.tolist() == [False, False] + [True] * 8
    assert rms(found.a_to_b(sheet(NEW)) - gauge(NEW)) < 1000 * ERROR


def test_anchors_that_do_not_belong_together_are_no_answer(a, b):
    X = plan(8, 5)
    with pytest.warns(TrustWarning, match="do not belong together"):
        found = match(a, b, (sheet(X), gauge(X[::-1])))
    with pytest.raises(MatchError, match="same order"):
        found.a_to_b(sheet(NEW))


def test_weights_count(a, b):
    X = plan(6, 5)
    shifted = gauge(X + np.where(np.arange(6)[:, None] == 2, 0.04, 0.0))
    light = np.where(np.arange(6) == 2, 1e-6, 1.0)
    even, weighted = quietly(a, b, (sheet(X), shifted)), quietly(a, b, (sheet(X), shifted), weights=light)
    truth = quietly(a, b, (sheet(X[light == 1]), gauge(X[light == 1])))
    shift = [rms(one.rigid.apply(a.embedding_) - truth.rigid.apply(a.embedding_)) for one in (even, weighted)]
    assert shift[1] < 1e-3 < shift[0]


def test_the_scale_is_free_only_without_a_known_sigma(a, free):
    found = match(a, free, anchors())
    assert found.scaled and found.rigid.scale == pytest.approx(free.burst_std_ / SIGMA, rel=0.1)
    assert rms(found.a_to_b(sheet(NEW)) - gauge(NEW)) < 1000 * ERROR


# -- what does not matter ---------------------------------------------------------------------------------------


def test_the_order_of_anchors_does_not_matter(a, b, five):
    order = [3, 0, 4, 2, 1]
    again = match(a, b, anchors(SPREAD[order]))
    np.testing.assert_allclose(again.a_to_b(sheet(NEW)), five.a_to_b(sheet(NEW)), rtol=1e-9)


def test_units_do_not_matter(a, five):
    metres = fit(lambda x: gauge(x) / 1000, np.concatenate([plan(150, 0)[:10], plan(140, 1)]), 1)
    found = match(a, metres, (sheet(SPREAD), gauge(SPREAD) / 1000))
    assert rms(1000 * found.a_to_b(sheet(NEW)) - five.a_to_b(sheet(NEW))) < 1000 * ERROR / 2  # of two fits
    assert found.standard_error == pytest.approx(five.standard_error, rel=0.2)


def test_coordinates_of_a_model_may_be_turned_and_shifted(a, b, five):
    """The same model in other coordinates predicts the same."""
    turned = turn(b, random_rotation(2, 3), np.array([5.0, -7.0]))
    again = match(a, turned, anchors())
    np.testing.assert_allclose(again.a_to_b(sheet(NEW)), five.a_to_b(sheet(NEW)), rtol=1e-6)
    np.testing.assert_allclose(again.residuals, five.residuals, rtol=1e-6)
    assert again.standard_error == pytest.approx(five.standard_error, rel=1e-6)


def test_back_and_forth_are_one_map(a, b, five):
    other = match(b, a, anchors()[::-1])
    # the field of errors is told where A places an anchor, or where B does: equal to second order
    np.testing.assert_allclose(other.b_to_a(sheet(NEW)), five.a_to_b(sheet(NEW)), atol=5)


# -- by shape ---------------------------------------------------------------------------------------------------


def test_without_anchors_an_asymmetric_plan_is_matched(a, b):
    found = match(a, b)
    assert (found.how, found.chosen, found.ambiguous) == ("shape", 0, False)
    assert rms(found.a_to_b(sheet(NEW)) - gauge(NEW)) < 1000 * 3 * ERROR
    assert found.p_value > 0.01


def test_one_and_two_anchors_are_completed_by_shape(a, b):
    for n in (1, 2):
        found = match(a, b, anchors(SPREAD[:n]))
        assert found.how == "anchors and shape"
        assert rms(found.a_to_b(sheet(NEW)) - gauge(NEW)) < 1000 * 3 * ERROR


def test_anchors_on_a_line_are_completed_by_shape(a, b):
    line = np.linspace([0.4, 0.2], [0.4, 2.8], 5)
    with pytest.warns(TrustWarning, match="5 anchors are on one line"):
        found = match(a, b, anchors(line))
    assert found.how == "anchors and shape" and found.chosen == 0
    assert rms(found.a_to_b(sheet(NEW)) - gauge(NEW)) < 1000 * 3 * ERROR


@pytest.mark.slow
def test_a_square_is_ambiguous_and_nothing_is_chosen(square):
    other = fit(sheet, np.random.RandomState(4).uniform(0, 1.7, size=(150, 2)), 4)
    with pytest.warns(TrustWarning, match="8 ways"):
        found = match(other, square)
    assert found.ambiguous and len(found.possible) == 8 and found.chosen is None
    with pytest.raises(MatchError, match=r"choose\(i\)"):
        found.a_to_b(sheet(NEW))
    with pytest.raises(MatchError):
        found.coordinates(gauge(NEW), "b")
    assert found.coordinates(sheet(NEW), "a").shape == (200, 2)  # its own
    assert found.choose(3).a_to_b(sheet(NEW)).shape == (200, 2)
    with pytest.raises(ValueError, match="from 0 to"):
        found.choose(99)
    # three anchors decide
    three = match(other, square, anchors(np.array([[0.2, 0.2], [1.5, 0.3], [0.4, 1.4]])))
    assert three.chosen == 0


def test_different_rooms_are_not_matched(a, square):
    with pytest.warns(TrustWarning, match="not matched"):
        found = match(a, square)
    assert found.chosen is None and found.p_value < 0.01 and not found.possible
    with pytest.raises(MatchError, match="anchors would tell"):
        found.b_to_a(gauge(NEW))
    assert "NO ANSWER" in str(found)


# -- partly seen ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_only_the_overlap_speaks(a):
    """B has seen the lower part of the plan."""
    part = plan(260, 8)
    part = part[part[:, 1] < 1.5]
    low = fit(gauge, part, 8)
    shared = np.array([[0.1, 0.1], [1.9, 0.2], [0.3, 1.3], [1.0, 0.6], [0.6, 1.1]])
    found = match(a, low, anchors(shared))
    prediction = found.predict(sheet(NEW), "a", "b")
    seen = NEW[:, 1] < 1.5
    assert rms(prediction.values[seen] - gauge(NEW)[seen]) < 1000 * ERROR
    assert (prediction.trust[NEW[:, 1] > 1.8] < 0.02).all()
    assert quietly(a, low).chosen is None  # not the same set of states
    outside = plan(60, 9)
    outside = outside[outside[:, 1] > 2.2][:5]
    with pytest.raises(MatchError, match="no overlap"):
        match(a, low, anchors(outside))
    mixed = np.concatenate([shared, outside[:2]])
    with pytest.warns(TrustWarning, match=r"anchors in rows 5 and 6 \(.*\) lie outside"):
        again = match(a, low, anchors(mixed))
    np.testing.assert_allclose(again.rigid.shift, found.rigid.shift, rtol=1e-9)


# -- files and looks --------------------------------------------------------------------------------------------


def test_one_file_holds_both_models(five, tmp_path):
    path = five.save(tmp_path / "m.safetensors")
    again = Match.load(path)
    np.testing.assert_array_equal(again.a_to_b(sheet(NEW)), five.a_to_b(sheet(NEW)))
    np.testing.assert_array_equal(
        again.predict(gauge(NEW), "b", "a").standard_errors, five.predict(gauge(NEW), "b", "a").standard_errors
    )
    assert str(again) == str(five)
    assert file_kind(path) == "pyloca-match"
    again.save(tmp_path / "n.safetensors")
    assert (tmp_path / "n.safetensors").read_bytes() == path.read_bytes()


def test_a_match_without_an_answer_is_saved_as_such(a, square, tmp_path):
    found = quietly(a, square)
    again = Match.load(found.save(tmp_path / "m.safetensors"))
    assert str(again) == str(found) and again.chosen is None


def test_loaded_models_match_as_fitted_ones(a, b, five, tmp_path):
    loaded = [LOCA.load(model.save(tmp_path / f"{name}.safetensors")) for name, model in (("a", a), ("b", b))]
    again = match(*loaded, anchors())
    np.testing.assert_array_equal(again.a_to_b(sheet(NEW)), five.a_to_b(sheet(NEW)))


def test_damaged_and_foreign_files_are_refused(five, a, tmp_path):
    path = five.save(tmp_path / "m.safetensors")
    content = bytearray(path.read_bytes())
    content[-10] ^= 1
    (tmp_path / "damaged.safetensors").write_bytes(content)
    with pytest.raises(ModelFileError, match="checksum"):
        Match.load(tmp_path / "damaged.safetensors")
    a.save(tmp_path / "a.safetensors")
    with pytest.raises(ModelFileError, match="not a pyloca match: it holds a pyloca model"):
        Match.load(tmp_path / "a.safetensors")
    with pytest.raises(ModelFileError, match="not a pyloca model"):
        LOCA.load(path)
    with pytest.raises(ModelFileError, match="No such file"):
        Match.load(tmp_path / "missing.safetensors")
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(ModelFileError, match="not a pyloca match file"):
        Match.load(tmp_path / "text.safetensors")
    assert file_kind(tmp_path / "text.safetensors") == ""


def test_looks(five, a, square):
    html = five._repr_html_()
    assert html.count("<svg") == 1 and "standard error" in html and "<script" not in html
    assert "candidate 0" in five.plot().axes[0].get_title(loc="left")
    refused = quietly(a, square, names=("<b>", "$x$"))
    assert "&lt;b&gt;" in refused._repr_html_() and "NO ANSWER" in refused._repr_html_()
    assert len(refused.plot().axes) >= 1


# -- bad input --------------------------------------------------------------------------------------------------


def test_bad_input_is_named(a, b):
    Ya, Yb = anchors()
    with pytest.raises(NotFittedError, match="instrument 'b' is not fitted"):
        match(a, LOCA())
    with pytest.raises(TypeError, match="instrument 'b' is a ndarray"):
        match(a, Yb)
    with pytest.raises(ValueError, match="same model"):
        match(a, a)
    with pytest.raises(ValueError, match="two different names"):
        match(a, b, names=("x", "x"))
    with pytest.raises(ValueError, match="5 readings of 'a' and 4 of 'b'"):
        match(a, b, (Ya, Yb[:4]))
    with pytest.raises(ValueError, match=r"rows 1 and 5 .* are the same pair"):
        match(a, b, (Ya[[0, 1, 2, 3, 4, 1]], Yb[[0, 1, 2, 3, 4, 1]]))
    with pytest.raises(ValueError, match="'run 3' of instrument 'b' is an anchor twice"):
        match(a, b, [(3, "run 3"), (4, "run 3"), (5, "run 5")])
    with pytest.raises(BurstError, match=r"instrument 'b'.*no burst 'run x'"):
        match(a, b, [(3, "run x"), (4, "run 4"), (5, "run 5")])
    with pytest.raises(ValueError, match=r"instrument 'b'.*NaN"):
        match(a, b, (Ya, np.where(np.arange(5)[:, None] == 2, np.nan, Yb)))
    with pytest.raises(ValueError, match=r"instrument 'a'.*features"):
        match(a, b, (Yb, Yb))
    with pytest.raises(ValueError, match="anchors are empty"):
        match(a, b, [])
    with pytest.raises(ValueError, match="weights must be 5"):
        match(a, b, (Ya, Yb), weights=[1, 2])
    with pytest.raises(ValueError, match="weights must be 5"):
        match(a, b, (Ya, Yb), weights=[1, 2, 0, 1, 1])
    with pytest.raises(ValueError, match="there are none"):
        match(a, b, weights=[1.0])
    with pytest.raises(ValueError, match="unevenness"):
        match(a, b, unevenness=0.5)
    with pytest.raises(ValueError, match="expected a pair of burst ids"):
        match(a, b, [1, 2, 3])
    found = match(a, b, (Ya, Yb))
    with pytest.raises(ValueError, match="no instrument 'c'"):
        found.predict(Ya, "a", "c")


def test_different_dimensions_are_named(a):
    X = np.random.RandomState(0).uniform(size=(60, 1))
    clouds = X[:, None] + 0.01 * np.random.RandomState(1).standard_normal((60, 20, 1))
    line = LOCA(1, burst_std=0.01, hidden_layers=(5,), random_state=0).fit(np.concatenate([clouds, clouds**2], axis=2))
    with pytest.raises(MatchError, match="d = 2 coordinates and 'b' has 1"):
        match(a, line)


def turn(model, rotation, shift):
    """A copy of a model in other coordinates z R + t."""
    from pyloca.matching._moved import moved_model
    from pyloca.metrics import RigidMap

    return moved_model(model, RigidMap(rotation, shift))


@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_anchors_in_other_units_are_called_that(a, b, factor):
    X = plan(12, 77)
    with pytest.raises(MatchError, match=r"'b' at the anchors .* other units"), warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        match(a, b, (sheet(X), factor * gauge(X))).a_to_b(sheet(X))


def test_one_sensor_in_other_units_is_named(a, b):
    """Of three, so that most of them look right."""
    X = plan(12, 77)
    with pytest.raises(MatchError, match=r"some sensors of 'a' look as if in other units: feature 1 \("):
        match(a, b, (sheet(X) * [1, 1000, 1], gauge(X)))


def test_a_soft_part_may_swing_and_a_stiff_one_may_not(a):
    """Anchors that only a large bend explains: refused for stiff fits, and not where bursts allow the bend."""
    from dataclasses import replace

    from pyloca.matching._anchors import Anchors
    from pyloca.matching._precision import look
    from pyloca.matching._solution import Settings
    from pyloca.matching._solve import solve

    A = a.embedding_[np.random.RandomState(0).permutation(150)[:30]]
    turned = A.copy()
    turned[:, 0] += 1.2 * np.sin(3 * (A[:, 1] - A[:, 1].mean()))
    anchors = Anchors(A, turned, np.ones(30), np.full(30, 1e-4), np.ones(30, dtype=bool))
    stiff = look(a)
    assert not solve(stiff, stiff, anchors, Settings(False, False, 3.0, 0)).candidates[0].possible
    seen = replace(stiff.seen, weights=1e-3 * stiff.seen.weights)
    soft = replace(stiff, seen=seen, root=np.linalg.cholesky(seen.expansion(np.zeros(stiff.elastic.size))[1]))
    found = solve(soft, soft, anchors, Settings(False, False, 3.0, 0))
    assert found.how == "anchors" and found.candidates[0].possible


def test_one_anchor_and_the_shape_are_weighed(a, b):
    """The map need not pass through the anchor, and its errors there are not forgotten."""
    several = [match(a, b, (sheet(X), gauge(X))) for X in (plan(1, seed) for seed in range(5, 10))]
    found = several[0]
    assert found.how == "anchors and shape" and found.chosen == 0
    np.testing.assert_array_equal(found.rigid.shift, found.joint.maps[0].shift)
    assert found.joint.degrees == 10
    without = rms(match(a, b).a_to_b(sheet(NEW)) - gauge(NEW))
    assert np.median([rms(one.a_to_b(sheet(NEW)) - gauge(NEW)) for one in several]) < min(without, 2000 * ERROR)
    assert found.choose(0) is found


# -- anchors that are all wrong in the same way -------------------------------------------------------------------

CORNERS = np.array([[0.1, 0.2], [0.7, 0.2], [0.7, 2.6], [0.1, 2.6]])


@pytest.mark.parametrize("order", [[1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
def test_rows_in_another_order_are_told_by_the_shape(a, b, order):
    """Corners of a rectangle fit a wrong map as well; the plan does not."""
    with pytest.warns(TrustWarning, match=r"The shapes contradict the anchors.*another order"):
        found = match(a, b, (sheet(CORNERS), gauge(CORNERS[order])))
    assert found.chosen is None and not found.possible
    with pytest.raises(MatchError, match=r"another order, 1 in place of|2 in place of|3 in place of"):
        found.a_to_b(sheet(NEW))
    assert rms(found.choose(0).a_to_b(sheet(NEW)) - gauge(NEW)) > 500
    assert str(found).count("contradict") == 1


def test_a_table_that_begins_with_another_row_is_told(a, b):
    """A grid of places, walked along: each row of one table is beside the next of the other."""
    walked = np.stack(np.meshgrid([0.1, 0.7], np.linspace(0.2, 2.6, 5), indexing="ij"), axis=-1).reshape(-1, 2)
    given = sheet(walked[1:]), gauge(walked[:-1])
    with pytest.warns(TrustWarning, match="shapes contradict the anchors.* one further down"):
        assert match(a, b, given).chosen is None


def test_exchanged_columns_are_told(a):
    """A gauge whose columns are alike: exchanged, they are readings of another place."""

    def even(x):
        return np.stack([x[:, 0] - x[:, 1], x[:, 0] + x[:, 1]], axis=1)

    model = fit(even, plan(150, 1), 1)
    places = np.array([[0.1, 0.1], [0.7, 0.3], [0.3, 0.9], [0.6, 0.6], [0.15, 0.6]])
    with pytest.warns(TrustWarning, match="feature 0 and feature 1 of 'b' exchanged"):
        match(a, model, (sheet(places), even(places)[:, ::-1]))


def test_right_anchors_of_parts_of_one_form_are_not_doubted():
    """Two instruments have seen different parts of the same form; their anchors lie where they overlap."""
    one = fit(sheet, plan(150, 1), 1)
    other = fit(lambda x: gauge(x - [0, 1.5]), plan(150, 2) + np.array([0, 1.5]), 2)
    both = np.array([[0.1, 1.6], [0.7, 1.7], [0.4, 2.2], [0.2, 2.8], [0.65, 2.5], [0.3, 1.9]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrustWarning)
        found = match(one, other, (sheet(both), gauge(both - [0, 1.5])))
    assert found.chosen == 0


def test_two_of_six_may_be_exchanged(a, b):
    X = np.concatenate([SPREAD, [[1.6, 0.9]]])
    with pytest.warns(TrustWarning, match=r"anchors in rows 0 and 2 \(.*\) contradict the others"):
        found = match(a, b, (sheet(X), gauge(X[[2, 1, 0, 3, 4, 5]])))
    assert rms(found.a_to_b(sheet(NEW)) - gauge(NEW)) < 1000 * 2 * ERROR


def test_a_sigma_in_other_units_is_asked_about(a):
    cm = fit(gauge, plan(150, 1), 1, known=False, burst_std=100 * SIGMA)
    times = r"(9\d|10\d)(\.\d)? times"
    with pytest.warns(TrustWarning, match=rf"'b' are {times} as large as those of 'a' .*burst_std in the same"):
        assert match(a, cm, anchors()).chosen is None
    with pytest.warns(TrustWarning, match=rf"'b' spread over {times} as much as those of 'a': is burst_std"):
        assert match(a, cm).chosen is None


def test_arrays_for_models_with_names_need_no_names(a):
    """Columns are in the order of the fit; a data frame is still checked by name."""
    pd = pytest.importorskip("pandas")
    named = fit(gauge, plan(150, 1), 1, feature_names=["u", "v"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = match(named, a, (gauge(SPREAD), sheet(SPREAD)))
        found.predict(gauge(NEW), "a", "b")
        found.b_to_a(sheet(NEW))
        expected = found.coordinates(gauge(NEW), "a")
        np.testing.assert_array_equal(found.coordinates(pd.DataFrame(gauge(NEW), columns=["u", "v"]), "a"), expected)
    with pytest.raises(ValueError, match="same order"):
        found.coordinates(pd.DataFrame(gauge(NEW), columns=["v", "u"]), "a")


def test_errors_grow_where_a_reading_is_not_to_be_trusted(five):
    """One of three sensors is off: trust falls, and stated errors are no longer far too small."""
    clean = five.predict(sheet(NEW), "a", "b")
    wrong, stated = [], []
    for sensor in np.eye(3):
        strange = five.predict(sheet(NEW) + 0.2 * sensor, "a", "b")
        assert np.median(strange.trust) < 0.05
        wrong.append(np.square(strange.coordinates - five.b.transform(gauge(NEW))).mean())
        stated.append(np.square(strange.coordinate_errors).mean())
    assert (
        0.3 < np.mean(wrong) / np.mean(stated) < 2 and np.mean(wrong) > 10 * np.square(clean.coordinate_errors).mean()
    )


def test_two_anchors_of_one_place_are_not_in_other_units(a, square):
    """They spread little; what is wrong is that they are too few for instruments of different rooms."""
    with pytest.raises(MatchError, match="anchors would tell: 1 more than the 2 given") as told:
        quietly(a, square, anchors(np.array([[0.3, 0.3], [0.35, 0.3]]))).a_to_b(sheet(NEW))
    assert "units" not in str(told.value)
