"""Ids, names and units stay with the bursts, whatever is done with them."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, KFold, cross_validate, train_test_split
from sklearn.utils import _safe_indexing, indexable, resample
from sklearn.utils.validation import _num_samples

from pyloca.bursts import Bursts, open_bursts
from pyloca.errors import BurstError

NAMES, UNITS = ("p", "T", "U"), ("Pa", "", "mV")
IDS = ["run7", "run2", "run9", "run1", "run5", "run3"]
LENGTHS = {"equal": [4] * 6, "ragged": [3, 5, 4, 4, 2, 6]}


def make(kind="equal", **labels):
    random = np.random.RandomState(0)
    parts = [random.standard_normal((m, 3)) for m in LENGTHS[kind]]
    options = {"ids": IDS, "feature_names": NAMES, "units": UNITS, "burst_std": 0.1, "provenance": "by hand"}
    return Bursts(parts, **(options | labels))


def described(bursts):
    return bursts.feature_names, bursts.units, bursts.burst_std, bursts.provenance


def assert_same(first, second):
    assert described(first) == described(second)
    assert first.has_ids == second.has_ids
    np.testing.assert_array_equal(first.ids, second.ids)
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


# -- what they are called ---------------------------------------------------------------------------------------


def test_bursts_without_labels_have_numbers():
    bursts = Bursts(np.zeros((4, 3, 2)))
    assert bursts.ids.tolist() == [0, 1, 2, 3]
    assert bursts.ids.dtype == np.int64
    assert not bursts.has_ids
    assert bursts.feature_names is bursts.units is None
    assert bursts.name_of(2) == "burst 2"
    assert bursts.feature_label(1) == "feature 1"


def test_labels_that_are_given():
    bursts = make()
    assert bursts.has_ids
    assert bursts.ids.tolist() == IDS
    assert bursts.name_of(0) == "burst 'run7'"
    assert (bursts.feature_names, bursts.units) == (NAMES, UNITS)
    assert [bursts.feature_label(j) for j in range(3)] == ["p (Pa)", "T", "U (mV)"]
    assert Bursts(bursts, ids=range(10, 16)).name_of(1) == "burst 11"
    assert Bursts(np.zeros((2, 2, 1)), units=["K"]).feature_label(0) == "feature 0 (K)"


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([3, 1], [3, 1]),
        (np.array([3, 1], dtype=np.int8), [3, 1]),
        (np.array([3, 1], dtype=np.uint64), [3, 1]),
        (np.array([3, 1], dtype=object), [3, 1]),
        (np.ma.array([3, 1]), [3, 1]),
        (pd.Index(["a", "b"]), ["a", "b"]),
        (pd.Series([7, 5], index=[4, 9]), [7, 5]),
        ([1, "a"], ["1", "a"]),
        ([True, False], ["True", "False"]),
        ([1.5, 2], ["1.5", "2"]),
        (np.array(["2020-01-01", "2020-01-02"], dtype="M8[D]"), ["2020-01-01", "2020-01-02"]),
        ([b"a", "b"], ["a", "b"]),
        ([(1, 2), (3, 4)], ["(1, 2)", "(3, 4)"]),
        ([2**63, 1], [str(2**63), "1"]),
        (np.array([2**63, 1], dtype=np.uint64), [str(2**63), "1"]),
        ((label for label in "ab"), ["a", "b"]),
        (np.array(["a", 2], dtype=object), ["a", "2"]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_ids_are_integers_or_text(ids, expected):
    found = Bursts(np.zeros((2, 3, 1)), ids=ids).ids
    assert found.tolist() == expected
    assert found.dtype == np.int64 if isinstance(expected[0], int) else found.dtype.kind == "U"


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b"], r"ids has 2 labels for 3 bursts"),
        ("abc", "sequence of 3 labels"),
        (5, "sequence of 3 labels"),
        (np.zeros((3, 1)), r"ids has shape \(3, 1\)"),
        (["a", "b", "a"], "burst 'a' occurs twice in ids, at 0 and 2"),
        ([4, 7, 7], "burst 7 occurs twice in ids, at 1 and 2"),
        ([1, "1", 2], "burst '1' occurs twice"),
        (["a", None, "c"], r"ids\[1\] is missing \(None\)"),
        (["a", "b", " "], r"ids\[2\] is missing"),
        ([1.0, np.nan, 2.0], r"ids\[1\] is missing"),
        (np.array(["2020", "NaT", "2021"], dtype="M8[s]"), r"ids\[1\] is missing"),
        ([pd.NA, 1, 2], r"ids\[0\] is missing"),
        ([pd.NaT, 1, 2], r"ids\[0\] is missing"),
        (np.ma.array([1, 2, 3], mask=[0, 0, 1]), r"ids\[2\] is missing"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_ids_that_cannot_be(ids, message):
    for make_them in (
        lambda: Bursts(np.zeros((3, 2, 1)), ids=ids),
        lambda: Bursts([np.zeros((2, 1)), np.zeros((3, 1)), np.zeros((2, 1))], ids=ids),
        lambda: Bursts.from_ragged(np.zeros((7, 1)), [0, 2, 5, 7], ids=ids),
        lambda: Bursts(Bursts(np.zeros((3, 2, 1))), ids=ids),
    ):
        with pytest.raises(BurstError, match=message):
            make_them()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_names": ["a"]}, r"feature_names has 1 names \(a\) and the bursts have D = 2"),
        ({"feature_names": ["a", "a"]}, "'a' twice"),
        ({"feature_names": ["a", ""]}, "non-empty text; got ''"),
        ({"feature_names": ["a", 3]}, "non-empty text; got 3"),
        ({"feature_names": "ab"}, "sequence of 2 names"),
        ({"units": {"a": "Pa"}}, "need feature_names"),
        ({"units": {"z": "Pa"}, "feature_names": ["a", "b"]}, "'z', which is not a feature; features are a, b"),
        ({"units": ["Pa"]}, "units has 1 units and the bursts have D = 2"),
        ({"units": ["Pa", 3]}, "must be text.*got 3"),
        ({"units": "Pa"}, "mapping from name to unit"),
    ],
)
def test_names_and_units_that_cannot_be(options, message):
    with pytest.raises(BurstError, match=message):
        Bursts(np.zeros((3, 4, 2)), **options)


def test_units_by_name_and_unknown_units():
    bursts = Bursts(np.zeros((3, 4, 2)), feature_names=np.array(["a", "b"]), units={"b": "K"})
    assert bursts.units == ("", "K")
    assert Bursts(bursts, units=[None, ""]).units is None
    assert all(type(name) is str for name in bursts.feature_names)


def test_errors_about_data_name_the_burst_by_its_id():
    with pytest.raises(BurstError, match=r"^burst 'b' has D = 3 features and burst 'a' has 2"):
        Bursts([np.zeros((3, 2)), np.zeros((5, 3))], ids=["a", "b"])
    with pytest.raises(BurstError, match=r"^burst 'b' has shape \(0, 2\)"):
        Bursts([np.zeros((3, 2)), np.zeros((0, 2))], ids=["a", "b"])
    with pytest.raises(BurstError, match=r"^burst 9 is a masked array"):
        Bursts([np.zeros((3, 2)), np.ma.zeros((3, 2))], ids=[4, 9])
    with pytest.raises(BurstError, match=r"^burst 'b' has no points"):
        Bursts.from_ragged(np.zeros((4, 1)), [0, 2, 2, 4], ids=["a", "b", "c"])


# -- choosing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LENGTHS)
@pytest.mark.parametrize(
    "key",
    [slice(1, 5), slice(None, None, -2), np.array([5, 0]), [3, 1], np.arange(6) % 2 == 0, np.array(4)],
    ids=["slice", "reversed", "array", "list", "mask", "0-d"],
)
def test_a_selection_keeps_its_labels(kind, key):
    part = make(kind)[key]
    assert part.ids.tolist() == np.atleast_1d(np.array(IDS)[key]).tolist()
    assert part.has_ids
    assert described(part) == described(make(kind))
    np.testing.assert_array_equal(part[0], make(kind)[IDS.index(part.ids[0])])


def test_numbers_stay_those_of_the_whole():
    bursts = Bursts(np.zeros((40, 3, 2)))[10:20]
    assert bursts.ids.tolist() == list(range(10, 20))
    assert not bursts.has_ids
    assert bursts[[3, 1]].ids.tolist() == [13, 11]
    assert Bursts(bursts).name_of(0) == "burst 10"
    train, held = bursts.split(0.3, seed=0)
    assert sorted([*train.ids, *held.ids]) == list(range(10, 20))


def test_a_copy_under_other_labels():
    bursts = make()
    assert_same(Bursts(bursts), bursts)
    other = Bursts(bursts[:2], ids=[1, 2], feature_names=list("abc"), burst_std=0.5, provenance="new")
    assert (other.ids.tolist(), *described(other)) == ([1, 2], ("a", "b", "c"), UNITS, 0.5, "new")
    assert bursts.ids.tolist() == IDS
    assert bursts.feature_names == NAMES


def test_ids_cannot_be_changed_by_accident():
    bursts = make()
    bursts.ids[0] = "x"
    assert bursts.ids.tolist() == IDS


@pytest.mark.parametrize("kind", LENGTHS)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_copies_and_pickles(kind, again):
    bursts = make(kind).scaled([1, 2, 3])
    assert_same(again(bursts), bursts)
    assert_same(again(bursts[[4, 1]]), bursts[[4, 1]])
    assert len(again(bursts[[]])) == 0
    assert again(Bursts(np.zeros((9, 2, 1)))[5:7]).ids.tolist() == [5, 6]


def test_a_pickled_part_is_small():
    bursts = Bursts(np.zeros((1000, 30, 10)))
    assert len(pickle.dumps(bursts[:10])) < len(pickle.dumps(bursts)) / 50


# -- several as one ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", LENGTHS)
def test_concatenation_is_the_inverse_of_slicing(kind):
    bursts = make(kind)
    assert_same(Bursts.concatenate([bursts[:2], bursts[2:3], bursts[3:]]), bursts)
    scaled = bursts.scaled([1, 2, 3])
    assert_same(Bursts.concatenate([scaled[:2], scaled[2:]]), scaled)


def test_concatenation_of_unequal_lengths_and_of_arrays():
    both = Bursts.concatenate([np.zeros((2, 3, 1)), np.ones((2, 5, 1), dtype=np.float32)])
    assert both.counts.tolist() == [3, 3, 5, 5]
    assert both.ids.tolist() == [0, 1, 2, 3]
    assert not both.has_ids
    assert Bursts.concatenate([np.zeros((2, 3, 1), dtype=np.float32)] * 2)._layout.points.dtype == np.float32


def test_names_and_provenance_of_a_concatenation():
    bare = Bursts(np.zeros((2, 4, 3)), ids=["x", "y"], burst_std=0.1, provenance="elsewhere")
    both = Bursts.concatenate([bare, make()])
    assert (both.feature_names, both.units, both.provenance) == (NAMES, None, "elsewhere + by hand")
    assert both.ids.tolist() == ["x", "y", *IDS]
    assert Bursts.concatenate([Bursts(bare, feature_names=NAMES), make()]).units == UNITS  # it says what it holds


def test_two_are_added():
    bursts = make()
    assert_same(bursts[:2] + bursts[2:], bursts)
    with pytest.raises(TypeError, match="added to Bursts; got ndarray"):
        bursts + np.zeros((6, 4, 3))


def test_clashing_ids_need_keys():
    with pytest.raises(BurstError, match=r"burst 'run7' is in part 0 and in part 1; pass keys="):
        Bursts.concatenate([make(), make()])
    both = Bursts.concatenate([make(), make()], keys=["mon", 2])
    assert both.ids[[0, 6]].tolist() == ["mon/run7", "2/run7"]
    assert both.has_ids
    numbered = Bursts.concatenate([np.zeros((2, 3, 1))] * 2, keys="ab")
    assert numbered.ids.tolist() == ["a/0", "a/1", "b/0", "b/1"]
    for keys in (["a"], ["a", "a"]):
        with pytest.raises(ValueError, match="keys must be 2 different labels"):
            Bursts.concatenate([make(), make()], keys=keys)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"feature_names": ("p", "U", "T"), "units": None}, "the feature 'U' at 1 where part 0 has 'T'.*order"),
        ({"feature_names": ("p", "T", "x"), "units": None}, r"the feature 'x' at 2 where part 0 has 'U'\.$"),
        ({"units": ("hPa", "", "mV")}, "part 1 has the unit 'hPa' at 0 where part 0 has 'Pa'"),
        ({"burst_std": 0.2}, r"burst_std = 0\.2 and part 0 has 0\.1.*pass burst_std="),
    ],
)
def test_parts_that_do_not_agree(other, message):
    with pytest.raises(BurstError, match=message):
        Bursts.concatenate([make(), make(ids=range(6), **other)])


def test_other_parts_that_do_not_agree():
    with pytest.raises(BurstError, match="part 1 has no ids"):
        Bursts.concatenate([make(), make(ids=None)])
    with pytest.raises(BurstError, match="part 1 has D = 2 features and part 0 has 3"):
        Bursts.concatenate([make(), np.zeros((2, 4, 2))])
    with pytest.raises(BurstError, match="scaled differently"):
        Bursts.concatenate([make(), make(ids=range(6)).scaled([1, 2, 3])])
    for nothing in ([], [make()[:0]]):
        with pytest.raises(BurstError, match="no bursts to concatenate"):
            Bursts.concatenate(nothing)
    assert Bursts.concatenate([make(), make(ids=range(6), burst_std=0.2)], burst_std=0.3).burst_std == 0.3


# -- scaled -----------------------------------------------------------------------------------------------------

SCALE = np.array([1e5, 3.0, 0.1])


@pytest.mark.parametrize("kind", LENGTHS)
def test_scaled_bursts_are_divided_wherever_they_are_read(kind):
    bursts, scaled = make(kind), make(kind).scaled(SCALE)
    np.testing.assert_array_equal(scaled.scale, SCALE)
    for a, b in zip(bursts, scaled, strict=True):
        np.testing.assert_array_equal(b, a / SCALE)
    for positions, block in scaled.blocks(20):
        np.testing.assert_array_equal(block, [bursts[int(i)] / SCALE for i in positions])
    np.testing.assert_array_equal(scaled.to_ragged()[0], bursts.to_ragged()[0] / SCALE)
    part = scaled[[4, 1]]
    np.testing.assert_array_equal(part[0], bursts[4] / SCALE)
    np.testing.assert_array_equal(part.scaled([2, 2, 2]).scale, 2 * SCALE)
    assert described(part) == described(bursts)
    assert bursts.scale is None


def test_a_scaled_file_stays_on_disk(tmp_path):
    np.save(tmp_path / "b.npy", make().to_array())
    scaled = open_bursts(tmp_path / "b.npy").scaled(SCALE)
    assert scaled[1:]._layout.points is scaled._layout.points
    np.testing.assert_array_equal(np.asarray(scaled), make().to_array() / SCALE)


@pytest.mark.parametrize("scale", [[1, 2], 1.0, [1, 0, 1], [1, -1, 1], [1, np.nan, 1]])
def test_scales_that_cannot_be(scale):
    with pytest.raises(ValueError, match="scale") as caught:
        make().scaled(scale)
    assert not isinstance(caught.value, BurstError)


# -- arrays and scikit-learn ------------------------------------------------------------------------------------


def test_as_an_array():
    bursts = make()
    assert (bursts.shape, bursts.ndim) == ((6, 4, 3), 3)
    assert make("ragged").shape == (6, None, 3)
    assert bursts[:0].shape == (0, None, 3)
    np.testing.assert_array_equal(np.asarray(bursts), bursts.to_array())
    assert np.asarray(bursts, dtype=np.float32).dtype == np.float32
    assert not np.shares_memory(np.array(bursts), bursts._layout.points)
    with pytest.raises(BurstError, match="differ in length"):
        np.asarray(make("ragged"))
    with pytest.raises(ValueError, match="copy=False"):
        np.array(bursts, copy=False)
    assert not hasattr(bursts, "index")


@pytest.mark.parametrize("kind", LENGTHS)
@pytest.mark.parametrize("key", [[0, 3], np.array([5, 1]), slice(1, 4), np.arange(6) > 3, (2, 0), [True] + [False] * 5])
def test_scikit_learn_indexes_bursts(kind, key):
    bursts = make(kind)
    part = _safe_indexing(bursts, key)
    assert isinstance(part, Bursts)
    expected = np.array(IDS)[list(key) if isinstance(key, tuple) else key]
    assert part.ids.tolist() == expected.tolist()
    assert _num_samples(bursts) == 6
    assert indexable(bursts, None)[0] is bursts


@pytest.mark.parametrize("key", [(0, 1), (slice(None), 0), (..., 0), None, True, "run7", 1.5])
def test_keys_that_cannot_be(key):
    with pytest.raises(IndexError):
        make()[key]


class Longest(BaseEstimator):
    """Sees only `Bursts`, and remembers which."""

    def __init__(self, weight=1.0):
        self.weight = weight

    def fit(self, bursts, y=None):
        assert isinstance(bursts, Bursts)
        assert bursts.has_ids
        self.ids_ = bursts.ids
        return self

    def score(self, bursts, y=None):
        assert isinstance(bursts, Bursts)
        assert not set(bursts.ids) & set(self.ids_)
        return self.weight * float(bursts.counts.sum())


@pytest.mark.parametrize("kind", LENGTHS)
def test_scikit_learn_splits_bursts(kind):
    bursts = make(kind)
    train, test = train_test_split(bursts, test_size=2, random_state=0)
    assert sorted([*train.ids, *test.ids]) == sorted(IDS)
    assert train.feature_names == NAMES
    done = cross_validate(Longest(), bursts, cv=KFold(3), return_estimator=True)
    assert done["estimator"][0].ids_.tolist() == IDS[2:]
    search = GridSearchCV(Longest(), {"weight": [1.0, 2.0]}, cv=3, n_jobs=1).fit(bursts)
    assert search.best_params_ == {"weight": 2.0}
    assert search.best_estimator_.ids_.tolist() == IDS
    assert set(resample(bursts, random_state=0).ids) <= set(IDS)


# -- notebooks --------------------------------------------------------------------------------------------------


def test_a_notebook_shows_a_table():
    page = make("ragged", ids=["<b>", *IDS[1:]], provenance="a & b")._repr_html_()
    for words in ("6", "2 to 6", "3: p (Pa), T, U (mV)", "0.1", "&lt;b&gt;, run2", "a &amp; b"):
        assert words in page
    assert "<b>" not in page
    bare = Bursts(np.zeros((3, 2, 40)))
    assert "ids" not in bare._repr_html_()
    assert ">40<" in bare._repr_html_()
    assert "none" in bare[:0]._repr_html_()
