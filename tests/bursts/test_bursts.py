"""Bursts: what they hold, what is refused, how they are sliced, split, read and written."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from pyloca.bursts import Bursts, open_bursts, save_bursts
from pyloca.errors import BurstError, PylocaError


@pytest.fixture
def equal():
    return np.random.RandomState(0).standard_normal((7, 4, 3))


@pytest.fixture
def ragged():
    random = np.random.RandomState(1)
    return [random.standard_normal((m, 2)) for m in (3, 5, 3, 4, 5, 3)]


# -- what it holds ----------------------------------------------------------------------------------------------


def test_equal_bursts(equal):
    bursts = Bursts(equal)
    assert len(bursts) == 7
    assert bursts.n_features == 3
    assert bursts.counts.tolist() == [4] * 7
    assert not bursts.is_ragged
    assert repr(bursts) == "Bursts(N=7, M=4, D=3)"
    np.testing.assert_array_equal(bursts[2], equal[2])
    np.testing.assert_array_equal(bursts[-1], equal[6])
    np.testing.assert_array_equal(np.stack(list(bursts)), equal)
    np.testing.assert_array_equal(bursts.to_array(), equal)


def test_ragged_bursts(ragged):
    bursts = Bursts(ragged)
    assert len(bursts) == 6
    assert bursts.n_features == 2
    assert bursts.counts.tolist() == [3, 5, 3, 4, 5, 3]
    assert bursts.is_ragged
    assert repr(bursts) == "Bursts(N=6, M=3..5, D=2)"
    for burst, expected in zip(bursts, ragged, strict=True):
        np.testing.assert_array_equal(burst, expected)


def test_points_and_offsets_are_the_inverse_of_from_ragged(ragged):
    points, offsets = Bursts(ragged).to_ragged()
    assert offsets.tolist() == [0, 3, 8, 11, 15, 20, 23]
    again = Bursts.from_ragged(points, offsets)
    for burst, expected in zip(again, ragged, strict=True):
        np.testing.assert_array_equal(burst, expected)


def test_a_list_of_equal_bursts_is_not_ragged(equal):
    bursts = Bursts(list(equal))
    assert not bursts.is_ragged
    np.testing.assert_array_equal(bursts.to_array(), equal)


def test_nested_python_lists():
    bursts = Bursts([[[0, 1], [2, 3]], [[4, 5], [6, 7]]])
    np.testing.assert_array_equal(bursts[1], [[4, 5], [6, 7]])


def test_bursts_of_bursts_is_the_same_data(equal):
    np.testing.assert_array_equal(Bursts(Bursts(equal)[2:5]).to_array(), equal[2:5])


def test_one_point_a_burst_is_a_container_all_the_same():
    assert Bursts(np.zeros((3, 1, 2))).counts.tolist() == [1, 1, 1]


# -- slicing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        slice(1, 5),
        slice(None, None, -2),
        np.array([5, 0, 5]),
        [3, 1],
        np.array([True, False, True, False, False, True]),
        np.array(4),
    ],
    ids=["slice", "reversed", "repeated", "list", "mask", "0-d"],
)
def test_selection_of_equal_and_ragged(key, equal, ragged):
    chosen = np.atleast_1d(np.arange(6)[key])
    part = Bursts(equal[:6])[key]
    assert isinstance(part, Bursts)
    np.testing.assert_array_equal(part.to_array(), equal[chosen])
    part = Bursts(ragged)[key]
    assert [len(burst) for burst in part] == part.counts.tolist() == [len(ragged[i]) for i in chosen]
    for burst, i in zip(part, chosen, strict=True):
        np.testing.assert_array_equal(burst, ragged[i])


def test_selection_of_a_selection(ragged):
    part = Bursts(ragged)[1:][[3, 0]]
    np.testing.assert_array_equal(part[0], ragged[4])
    np.testing.assert_array_equal(part[1], ragged[1])
    points, offsets = part.to_ragged()
    assert offsets.tolist() == [0, 5, 10]
    np.testing.assert_array_equal(points, np.concatenate([ragged[4], ragged[1]]))


def test_ragged_selection_of_one_length_fits_an_array(ragged):
    part = Bursts(ragged)[[0, 2, 5]]
    assert not part.is_ragged
    np.testing.assert_array_equal(part.to_array(), np.stack([ragged[0], ragged[2], ragged[5]]))


def test_selection_shares_memory(equal):
    assert np.shares_memory(Bursts(equal)[1:4]._layout.points, equal)


def test_a_burst_is_a_copy(equal):
    before = equal.copy()
    Bursts(equal)[0][:] = 0
    np.testing.assert_array_equal(equal, before)


def test_index_out_of_range(equal):
    with pytest.raises(IndexError):
        Bursts(equal)[7]


def test_an_empty_selection_is_a_container():
    nothing = Bursts(np.zeros((5, 3, 2)))[[]]
    assert len(nothing) == 0
    assert not nothing.is_ragged
    assert list(nothing.blocks()) == []
    assert "N=0" in repr(nothing)


# -- blocks -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_numbers", [1, 8, 14, 18, 1 << 22])
@pytest.mark.parametrize("kind", ["equal", "ragged", "shuffled"])
def test_blocks_cover_each_burst_once(kind, max_numbers, equal, ragged):
    source = {"equal": list(equal), "ragged": ragged, "shuffled": [ragged[i] for i in (5, 1, 3, 0)]}[kind]
    bursts = Bursts(ragged)[[5, 1, 3, 0]] if kind == "shuffled" else Bursts(source)
    seen = []
    for rows, block in bursts.blocks(max_numbers):
        assert block.dtype == np.float64
        assert block.shape[0] == 1 or block.size <= max_numbers
        for row, burst in zip(rows, block, strict=True):
            np.testing.assert_array_equal(burst, source[row])
        seen.extend(rows.tolist())
    assert sorted(seen) == list(range(len(source)))


def test_blocks_read_a_file_forwards(ragged):
    for rows, _ in Bursts(ragged).blocks():
        assert np.all(np.diff(rows) > 0)


# -- train and validation ---------------------------------------------------------------------------------------


def test_split_is_a_partition_drawn_by_the_seed():
    values = np.arange(50, dtype=float)
    bursts = Bursts(values[:, None, None] * np.ones((1, 2, 1)))
    train, held = bursts.split(0.2, seed=3)
    first, second = train.to_array()[:, 0, 0], held.to_array()[:, 0, 0]
    assert len(held) == 10
    assert np.all(np.diff(first) > 0)
    assert np.all(np.diff(second) > 0)
    np.testing.assert_array_equal(np.sort(np.r_[first, second]), values)
    np.testing.assert_array_equal(bursts.split(0.2, seed=3)[1].to_array(), held.to_array())
    assert bursts.split(0.2, seed=4)[1].to_array()[:, 0, 0].tolist() != second.tolist()


def test_split_goes_on_where_a_generator_stands():
    bursts = Bursts(np.arange(40.0)[:, None, None] * np.ones((1, 2, 1)))
    random = np.random.RandomState(0)
    once, twice = bursts.split(0.5, random)[1], bursts.split(0.5, random)[1]
    assert once.to_array().tolist() != twice.to_array().tolist()


def test_split_without_validation(equal):
    train, held = Bursts(equal).split(0.0)
    assert (len(train), len(held)) == (7, 0)


@pytest.mark.parametrize("n", [1, 2, 10])
def test_split_trains_on_at_least_one_burst(n):
    train, held = Bursts(np.zeros((n, 2, 1))).split(0.99, seed=0)
    assert len(train) >= 1
    assert len(train) + len(held) == n


@pytest.mark.parametrize("fraction", [-0.1, 1.0, 1.5, float("nan")])
def test_split_refuses_a_fraction_outside_0_to_1(fraction, equal):
    with pytest.raises(ValueError, match="the fraction to hold out"):
        Bursts(equal).split(fraction)


# -- what numbers may look like ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "variant",
    [
        lambda a: np.asfortranarray(a),
        lambda a: a.astype(">f8"),
        lambda a: a.astype(np.longdouble),
        lambda a: np.repeat(a, 2, axis=0)[::2],
        lambda a: a[::-1][::-1],
        lambda a: a.tolist(),
    ],
    ids=["fortran", "big-endian", "longdouble", "strided", "reversed", "lists"],
)
def test_layouts_that_change_nothing(variant, equal):
    for data in (variant(equal), list(variant(equal))):
        bursts = Bursts(data)
        np.testing.assert_array_equal(bursts.to_array(), equal)
        assert bursts.to_array().dtype == np.dtype("=f8")
        assert bursts[0].dtype == np.dtype("=f8")
        np.testing.assert_array_equal(next(iter(bursts.blocks()))[1], equal)


def test_read_only_input(equal):
    equal.setflags(write=False)
    np.testing.assert_array_equal(Bursts(equal).to_array(), equal)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16, ">i4"])
def test_integers_are_numbers(dtype):
    values = np.arange(24).reshape(4, 3, 2)
    bursts = Bursts(values.astype(dtype))
    assert bursts[0].dtype == np.float64
    np.testing.assert_array_equal(bursts.to_array(), values)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_short_floats_are_widened_before_arithmetic(dtype, equal):
    np.testing.assert_array_equal(Bursts(equal.astype(dtype)).to_array(), equal.astype(dtype).astype(np.float64))


# -- what is refused --------------------------------------------------------------------------------------------


def test_errors_are_value_errors():
    assert issubclass(BurstError, ValueError)
    assert issubclass(BurstError, PylocaError)


def test_one_burst_alone_is_told_what_to_do():
    with pytest.raises(BurstError) as caught:
        Bursts(np.zeros((200, 3)))
    assert str(caught.value).startswith(
        "bursts has shape (200, 3); expected (N, M, D). For one burst pass bursts[None];"
    )


@pytest.mark.parametrize("shape", [(), (5,), (2, 2, 2, 2)])
def test_wrong_number_of_axes(shape):
    with pytest.raises(BurstError, match=r"expected \(N, M, D\)"):
        Bursts(np.zeros(shape))


@pytest.mark.parametrize("shape", [(0, 3, 2), (3, 0, 2), (3, 2, 0)])
def test_nothing_in_it(shape):
    with pytest.raises(BurstError, match="which is empty"):
        Bursts(np.zeros(shape))


@pytest.mark.parametrize("data", [[], ()])
def test_an_empty_list(data):
    with pytest.raises(BurstError, match="which is empty"):
        Bursts(data)


@pytest.mark.parametrize("dtype", [object, bool, complex, "U3", "M8[s]"])
def test_what_is_not_real_numbers(dtype):
    with pytest.raises(BurstError, match=r"has dtype .*expected real numbers"):
        Bursts(np.zeros((3, 2, 2)).astype(dtype))


def test_an_object_array_of_bursts_is_told_to_be_a_list():
    data = np.empty(2, dtype=object)
    data[0], data[1] = np.zeros((2, 2)), np.zeros((3, 2))
    with pytest.raises(BurstError, match="pass a list of"):
        Bursts(data)


def test_mixed_dimensions_name_the_burst():
    with pytest.raises(BurstError, match=r"^burst 2 has D = 3 features and burst 0 has 2; all must agree\.$"):
        Bursts([np.zeros((3, 2)), np.zeros((5, 2)), np.zeros((4, 3))])


def test_an_empty_burst_among_others_is_named():
    with pytest.raises(BurstError, match=r"^burst 1 has shape \(0, 2\); expected \(M_i, D\) with M_i, D ≥ 1\.$"):
        Bursts([np.zeros((3, 2)), np.zeros((0, 2)), np.zeros((4, 2))])


def test_a_burst_without_features_among_others_is_named():
    with pytest.raises(BurstError, match=r"burst 1 has shape \(4, 0\); expected \(M_i, D\)"):
        Bursts([np.zeros((3, 2)), np.zeros((4, 0)), np.zeros((4, 2))])


def test_a_burst_of_too_many_axes_among_others_is_named():
    with pytest.raises(BurstError, match=r"burst 2 has shape \(1, 3, 2\); expected \(M_i, D\)"):
        Bursts([np.zeros((3, 2)), np.zeros((4, 2)), np.zeros((1, 3, 2))])


def test_a_ragged_burst_of_words_is_named():
    with pytest.raises(BurstError, match="burst 1 has dtype"):
        Bursts([np.zeros((3, 2)), np.full((2, 2), "x")])


def test_a_list_of_flat_arrays_is_not_told_a_made_up_dimension():
    with pytest.raises(BurstError, match=r"burst 0 has shape \(3,\)") as caught:
        Bursts([np.zeros(3), np.zeros(4)])
    assert "-1" not in str(caught.value)


def test_a_burst_with_rows_of_unequal_length_is_named():
    with pytest.raises(BurstError, match="burst 1"):
        Bursts([[[1.0, 2.0], [3.0, 4.0]], [[1.0, 2.0], [3.0]]])


@pytest.mark.parametrize(
    ("points", "offsets", "words"),
    [
        (np.zeros((4, 2, 1)), [0, 4], "points has shape"),
        (np.zeros((4, 2)), [0.0, 4.0], "integers"),
        (np.zeros((4, 2)), [[0, 4]], "integers"),
        (np.zeros((4, 2)), [0], "integers"),
        (np.zeros((4, 2)), [1, 4], "run from 0 to the number of points, 4"),
        (np.zeros((4, 2)), [0, 3], "they run from 0 to 3"),
        (np.zeros((4, 2)), [0, 2, 2, 4], "burst 1 has no points"),
        (np.zeros((4, 2)), [0, 3, 2, 4], "burst 1 has no points"),
        (np.zeros((0, 2)), [0, 0], "burst 0 has no points"),
        (np.zeros((4, 2), dtype=bool), [0, 4], "points has dtype bool"),
    ],
)
def test_bad_points_and_offsets(points, offsets, words):
    with pytest.raises(BurstError, match=words):
        Bursts.from_ragged(points, offsets)


def test_ragged_bursts_do_not_fit_an_array(ragged):
    with pytest.raises(BurstError, match="differ in length"):
        Bursts(ragged).to_array()


# -- files ------------------------------------------------------------------------------------------------------


def test_npy_is_read(tmp_path, equal):
    path = tmp_path / "bursts.npy"
    np.save(path, equal)
    bursts = open_bursts(path)
    np.testing.assert_array_equal(bursts.to_array(), equal)
    np.testing.assert_array_equal(open_bursts(str(path)).to_array(), equal)


def test_npz_of_equal_and_ragged(tmp_path, equal, ragged):
    np.savez(tmp_path / "equal.npz", bursts=equal)
    np.testing.assert_array_equal(open_bursts(tmp_path / "equal.npz").to_array(), equal)
    points, offsets = Bursts(ragged).to_ragged()
    np.savez_compressed(tmp_path / "ragged.npz", points=points, offsets=offsets)
    for burst, expected in zip(open_bursts(tmp_path / "ragged.npz"), ragged, strict=True):
        np.testing.assert_array_equal(burst, expected)


def test_npz_with_other_names_is_told_what_is_in_it(tmp_path, equal):
    np.savez(tmp_path / "a.npz", data=equal, points=equal[0])
    with pytest.raises(BurstError, match=r"holds data, points; expected `bursts`"):
        open_bursts(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz")
    with pytest.raises(BurstError, match="holds nothing"):
        open_bursts(tmp_path / "b.npz")


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(BurstError, match="no such file"):
        open_bursts(tmp_path / "nowhere.npy")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(BurstError, match="is a directory; expected a file"):
        open_bursts(tmp_path / "folder.npy")


def test_an_unknown_suffix(tmp_path):
    (tmp_path / "bursts.mat").write_bytes(b"x")
    with pytest.raises(BurstError, match=r"suffix '\.mat'"):
        open_bursts(tmp_path / "bursts.mat")


class Bomb:
    exploded = False

    def __reduce__(self):
        return (setattr, (Bomb, "exploded", True))


def test_pickles_are_never_opened(tmp_path):
    data = np.empty((1, 1, 1), dtype=object)
    data[0, 0, 0] = Bomb()
    np.save(tmp_path / "a.npy", data, allow_pickle=True)
    np.savez(tmp_path / "b.npz", bursts=data)
    (tmp_path / "c.npy").write_bytes(pickle.dumps(Bomb()))
    for name in ("a.npy", "b.npz", "c.npy"):
        with pytest.raises(BurstError, match=name):
            open_bursts(tmp_path / name)
    assert not Bomb.exploded


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize("keep", [0, 5, 60, 0.5, -1])
def test_truncated_files(tmp_path, equal, suffix, keep):
    whole = tmp_path / f"whole{suffix}"
    if suffix == ".npy":
        np.save(whole, equal)
    else:
        np.savez(whole, bursts=equal)
    content = whole.read_bytes()
    cut = tmp_path / f"cut{suffix}"
    cut.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    with pytest.raises(BurstError, match=f"cut.*not a readable {suffix} file"):
        open_bursts(cut)


@pytest.mark.parametrize(("right", "wrong"), [(".npy", ".npz"), (".npz", ".npy")])
def test_a_file_under_the_other_suffix(tmp_path, equal, right, wrong):
    path = tmp_path / f"bursts{right}"
    if right == ".npy":
        np.save(path, equal)
    else:
        np.savez(path, bursts=equal)
    path = path.rename(path.with_suffix(wrong))
    with pytest.raises(BurstError, match="bursts"):
        open_bursts(path)


def test_a_bad_shape_in_a_file_names_the_file(tmp_path):
    np.save(tmp_path / "flat.npy", np.zeros((20, 3)))
    with pytest.raises(BurstError, match=r"flat\.npy: bursts has shape \(20, 3\)"):
        open_bursts(tmp_path / "flat.npy")


def test_an_array_is_saved_as_bursts(tmp_path):
    points = np.random.RandomState(0).uniform(size=(5, 4, 3))
    np.testing.assert_array_equal(open_bursts(save_bursts(points, tmp_path / "b.csv")).to_array(), points)


# -- quick to start ---------------------------------------------------------------------------------------------

ALONE = """
import sys, types
from importlib.util import find_spec
package = types.ModuleType("pyloca")  # its own __init__ may import more
package.__path__ = find_spec("pyloca").submodule_search_locations
sys.modules["pyloca"] = package
import pyloca.bursts
print(*{name.partition(".")[0] for name in sys.modules})
"""


def test_the_package_alone_imports_only_numpy():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    heavy = {"sklearn", "scipy", "torch", "tqdm", "pandas", "pyarrow", "h5py"}
    assert not heavy & set(done.stdout.split())
