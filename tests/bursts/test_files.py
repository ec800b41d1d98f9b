"""Files of bursts: every format back bit for bit, and every damaged file refused by name."""

import os
import sys

import h5py
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from pyloca import BurstError, Bursts
from pyloca.bursts import column_names, open_bursts, save_bursts
from pyloca.bursts._on_disk import FileArray

FORMATS = ["npy", "npz", "csv", "parquet"]


def same(first, second):
    assert len(first) == len(second)
    for a, b in zip(first, second, strict=True):
        assert a.tobytes() == b.tobytes()


def equal():
    return Bursts(np.random.RandomState(0).standard_normal((12, 5, 3)) * 10.0 ** np.arange(-200, 201, 200))


def ragged():
    random = np.random.RandomState(1)
    return Bursts([random.standard_normal((random.randint(2, 9), 2)) for _ in range(15)])


@pytest.mark.parametrize("suffix", FORMATS)
def test_equal_bursts_come_back_bit_for_bit(suffix, tmp_path):
    path = save_bursts(equal(), tmp_path / f"bursts.{suffix}")
    same(open_bursts(path), equal())
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", FORMATS[1:])
def test_ragged_bursts_come_back_bit_for_bit(suffix, tmp_path):
    same(open_bursts(save_bursts(ragged(), tmp_path / f"bursts.{suffix}")), ragged())


def test_ragged_bursts_do_not_fit_an_array(tmp_path):
    with pytest.raises(BurstError, match="differ in length"):
        save_bursts(ragged(), tmp_path / "bursts.npy")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("names", [{"bursts"}, {"points", "offsets"}])
def test_hdf5_is_read(names, tmp_path):
    bursts = ragged()
    points, offsets = bursts.to_ragged()
    with h5py.File(tmp_path / "b.h5", "w") as file:
        if "bursts" in names:
            file["bursts"] = equal().to_array()
        else:
            file["points"], file["offsets"] = points, offsets
    same(open_bursts(tmp_path / "b.h5"), equal() if "bursts" in names else bursts)


@pytest.mark.skipif(not hasattr(os, "preadv"), reason="Windows does not let anybody cut a file that is mapped")
class TestNpyOnDisk:
    @pytest.fixture
    def array(self):
        return np.random.RandomState(0).standard_normal((50, 40, 30)).astype(">f4")

    @pytest.fixture
    def path(self, tmp_path, array):
        np.save(tmp_path / "bursts.npy", array)
        return tmp_path / "bursts.npy"

    def test_it_stays_in_its_file(self, path, array):
        bursts = open_bursts(path)
        assert isinstance(bursts._layout.points, FileArray)
        for key in (slice(None), slice(3, 40, 7), slice(10, 3, -1), [4, 5, 6, 2, 9, 9], slice(0, 0)):
            np.testing.assert_array_equal(bursts._layout.points[key], array[key])
        np.testing.assert_array_equal(bursts[-1], array[-1])
        np.testing.assert_array_equal(bursts[::-3].to_array(), array[::-3])
        np.testing.assert_array_equal(np.concatenate([block for _, block in bursts.blocks(4000)]), array)

    def test_maps_of_users(self, path, array):
        mapped = np.load(path, mmap_mode="r")
        assert isinstance(Bursts(mapped)._layout.points, FileArray)
        np.testing.assert_array_equal(Bursts(mapped[7:31])[2], array[9])  # the map begins before the slice
        np.testing.assert_array_equal(Bursts(mapped[:, ::2]).to_array(), array[:, ::2])
        np.testing.assert_array_equal(Bursts(np.load(path, mmap_mode="c")).to_array(), array)

    def test_columns_first(self, tmp_path, array):
        np.save(tmp_path / "f.npy", np.asfortranarray(array))
        np.testing.assert_array_equal(open_bursts(tmp_path / "f.npy").to_array(), array)

    def test_a_file_that_is_cut(self, path):
        bursts = open_bursts(path)
        os.truncate(path, 100_000)
        with pytest.raises(BurstError, match=r"bursts.npy: the file shrank to 100,000 bytes while it was read"):
            bursts.to_array()

    def test_a_file_that_is_changed(self, path):
        bursts = open_bursts(path)
        os.utime(path, ns=(1, 1))
        with pytest.raises(BurstError, match=r"bursts.npy: the file changed while it was read"):
            list(bursts.blocks())

    def test_a_file_that_is_replaced(self, path, array, tmp_path):
        bursts = open_bursts(path)
        np.save(tmp_path / "new.npy", np.zeros_like(array))
        os.replace(tmp_path / "new.npy", path)
        np.testing.assert_array_equal(bursts.to_array(), array)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("external link", "is a link"), ("soft link", "is a link"), ("virtual", "in other files"), ("raw", "raw.bin")],
)
def test_hdf5_does_not_leave_its_file(tmp_path, kind, words):
    data = np.ones((5, 4, 3))
    with h5py.File(tmp_path / "real.h5", "w") as file:
        file["bursts"] = data
    (tmp_path / "raw.bin").write_bytes(data.tobytes())
    with h5py.File(tmp_path / "b.h5", "w") as file:
        if kind == "external link":
            file["bursts"] = h5py.ExternalLink("real.h5", "/bursts")
        elif kind == "soft link":
            file["other"] = h5py.ExternalLink("real.h5", "/")
            file["bursts"] = h5py.SoftLink("/other/bursts")
        elif kind == "virtual":
            layout = h5py.VirtualLayout(shape=data.shape, dtype=data.dtype)
            layout[:] = h5py.VirtualSource(str(tmp_path / "real.h5"), "bursts", shape=data.shape)
            file.create_virtual_dataset("bursts", layout)
        else:
            raw = [(str(tmp_path / "raw.bin"), 0, data.nbytes)]
            file.create_dataset("bursts", shape=data.shape, dtype=data.dtype, external=raw)
    with pytest.raises(BurstError, match=rf"b\.h5: .*{words}.*copy them into it"):
        open_bursts(tmp_path / "b.h5")


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_pipe_with_a_suffix(tmp_path):
    os.mkfifo(tmp_path / "b.csv")
    with pytest.raises(BurstError, match="exists but is not a regular file"):
        open_bursts(tmp_path / "b.csv")


def test_a_table_by_another_name(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('station,"x",y\nb,1,2\na,3,4\nb,5,6e-3\n\n', encoding="utf-8-sig")
    bursts = open_bursts(path, burst_id="station")
    np.testing.assert_array_equal(bursts[0], [[1, 2], [5, 6e-3]])
    np.testing.assert_array_equal(bursts[1], [[3, 4]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("x,y\n1,2\n", "there is no column 'burst_id'; line 1 names x, y"),
        ("burst_id,x,x\n1,2,3\n", "two columns have the same name"),
        ("burst_id;x\n0;1\n", "the cells of line 1 are separated by semicolons; expected commas"),
        ("0,1\n0,2\n", "line 1 has numbers where the names of the columns are expected"),
        ("burst_id\n0\n", "there is no column of measurements beside 'burst_id'"),
        ('burst_id,x\n"0,1\n', "is not valid CSV"),
        ("burst_id,x\n0,\0\n", "line 2 has"),
        ("burst_id,x\n", "the table has no rows"),
        ("burst_id,x\n0,1\n0,1,2\n", "line 3 has 3 cells; line 1 names 2 columns"),
        ("burst_id,x\n0,1\n1\n", "line 3 has 1 cells"),
        ("burst_id,x\n0,1\n0,word\n", "line 3 has 'word' where a number is expected"),
        ("burst_id,x\n0,\n", "there is no column of numbers, only of text or empty: x"),
        ("burst_id,x\n,1\n", "line 2 has no burst_id"),
    ],
)
def test_damaged_csv(text, message, tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(BurstError, match=message) as caught:
        open_bursts(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("suffix", ["npy", "npz", "parquet", "h5"])
@pytest.mark.parametrize("keep", [0, 1, 7, 60, -1])
def test_a_file_that_is_cut_short(suffix, keep, tmp_path):
    path = tmp_path / f"b.{suffix}"
    if suffix == "h5":
        with h5py.File(path, "w") as file:
            file["bursts"] = equal().to_array()
    else:
        save_bursts(equal(), path)
    path.write_bytes(path.read_bytes()[: keep if keep >= 0 else -8])
    with pytest.raises(BurstError, match=str(path)):
        open_bursts(path)


@pytest.mark.parametrize("suffix", ["npy", "npz", "csv", "parquet", "h5"])
@given(content=st.binary(max_size=300))
def test_garbage_is_refused_and_nothing_else_happens(suffix, content, tmp_path_factory):
    path = tmp_path_factory.mktemp("garbage") / f"b.{suffix}"
    path.write_bytes(content)
    with pytest.raises(BurstError):
        open_bursts(path)


@given(
    array=arrays(
        st.sampled_from(["f2", "f4", "f8", ">f8", "i2", "u1"]),
        array_shapes(min_dims=3, max_dims=3, max_side=6),
        elements=st.integers(0, 100),
    )
)
def test_any_shape_and_dtype_survives(array, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes")
    for suffix in ("npz", "csv", "parquet"):
        path = save_bursts(Bursts(array), folder / f"b.{suffix}")
        np.testing.assert_array_equal(open_bursts(path).to_array(), array.astype(np.float64))


def test_text_that_is_not_utf8(tmp_path):
    (tmp_path / "b.csv").write_bytes("burst_id,größe\n0,1\n".encode("latin-1"))
    with pytest.raises(BurstError, match=r"is not valid UTF-8 .* at byte 11"):
        open_bursts(tmp_path / "b.csv")


def test_cells_in_quotes_and_other_scripts(tmp_path):
    (tmp_path / "b.csv").write_text('"burst_id",größe\n"Köln, Süd",1\n早,2\n"Köln, Süd",3\n', encoding="utf-8")
    np.testing.assert_array_equal(open_bursts(tmp_path / "b.csv")[0], [[1], [3]])


def test_unknown_suffixes_and_missing_files(tmp_path):
    with pytest.raises(BurstError, match=r"read from \.npy, \.npz, \.csv, \.parquet, \.h5, \.hdf5, \.zarr files"):
        open_bursts(tmp_path / "b.mat")
    with pytest.raises(BurstError, match="there is no such file"):
        open_bursts(tmp_path / "b.npy")
    with pytest.raises(BurstError, match="written to"):
        save_bursts(equal(), tmp_path / "b.h5")


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    pd.DataFrame({"burst_id": [0], "x": [1.0]}).to_parquet(tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs pyarrow.*pip install 'pyloca\[table\]'"):
        open_bursts(tmp_path / "t.parquet")


# -- ids, names and units ---------------------------------------------------------------------------------------


def labelled(source, **changes):
    d = source.n_features
    names = ["pressure", "température", "U, mean"][:d]
    options = {"ids": [f"run {i}" for i in range(len(source))], "feature_names": names, "units": {names[0]: "Pa"}}
    return Bursts(source, **(options | changes))


@pytest.mark.parametrize("suffix", FORMATS[1:])
@pytest.mark.parametrize("source", [equal, ragged])
@pytest.mark.parametrize("ids", ["text", "integers"])
def test_labels_are_written_and_read(suffix, source, ids, tmp_path):
    changes = {} if ids == "text" else {"ids": np.arange(len(source()))[::-1] * 7}
    bursts = labelled(source(), **changes)
    found = open_bursts(save_bursts(bursts, tmp_path / f"b.{suffix}"))
    same(found, bursts)
    assert found.has_ids
    assert found.ids.tolist() == bursts.ids.tolist()
    assert found.feature_names == bursts.feature_names
    assert found.units == (None if suffix == "csv" else bursts.units)


def test_numbers_of_a_part_are_kept(tmp_path):
    for suffix in FORMATS[1:]:
        assert open_bursts(save_bursts(equal()[5:9], tmp_path / f"b.{suffix}")).ids.tolist() == [5, 6, 7, 8]
    assert not open_bursts(save_bursts(equal(), tmp_path / "c.npz")).has_ids


def test_npy_says_what_it_cannot_hold(tmp_path):
    with pytest.warns(UserWarning, match=r"ids, feature names and units are not written. Use \.npz"):
        save_bursts(labelled(equal()), tmp_path / "b.npy")
    same(open_bursts(tmp_path / "b.npy"), equal())


@pytest.mark.parametrize("suffix", FORMATS[1:])
def test_a_burst_that_was_chosen_twice_cannot_be_written(suffix, tmp_path):
    with pytest.raises(BurstError, match="burst 'run 3' was chosen twice"):
        save_bursts(labelled(equal())[[3, 1, 3]], tmp_path / f"b.{suffix}")
    again = Bursts(labelled(equal())[[3, 1, 3]], ids=range(3))
    same(open_bursts(save_bursts(again, tmp_path / f"b.{suffix}")), again)


def test_a_feature_cannot_be_called_as_the_ids_are(tmp_path):
    with pytest.raises(BurstError, match="a feature is called 'burst_id'"):
        save_bursts(labelled(ragged(), feature_names=["burst_id", "x"], units=None), tmp_path / "b.csv")


def test_hdf5_has_labels_too(tmp_path):
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["bursts"] = equal().to_array()
        file["ids"] = [f"run {i}" for i in range(12)]
        file["feature_names"], file["units"] = ["p", "T", "U"], ["Pa", "", "mV"]
    bursts = open_bursts(tmp_path / "b.h5", columns=["U", "p"])
    assert (bursts.name_of(3), bursts.feature_names, bursts.units) == ("burst 'run 3'", ("U", "p"), ("mV", "Pa"))
    np.testing.assert_array_equal(bursts.to_array(), equal().to_array()[..., [2, 0]])


@pytest.mark.parametrize("suffix", FORMATS[1:])
def test_features_are_chosen_by_name(suffix, tmp_path):
    path = save_bursts(labelled(equal()), tmp_path / f"b.{suffix}")
    for options in ({"columns": ["U, mean", "pressure"]}, {"exclude": ["température"]}):
        bursts = open_bursts(path, **options)
        assert set(bursts.feature_names) == {"U, mean", "pressure"}
        place = bursts.feature_names.index("pressure")
        np.testing.assert_array_equal(bursts.to_array()[..., place], equal().to_array()[..., 0])
    with pytest.raises(BurstError, match=r"b\..*there is no column 'x'"):
        open_bursts(path, columns=["x"])
    with pytest.raises(ValueError, match="both name"):
        open_bursts(path, columns=["x"], exclude=["x"])
    assert set(column_names(path)) - {"burst_id"} == set(labelled(equal()).feature_names)


def test_features_without_names_cannot_be_chosen(tmp_path):
    path = save_bursts(equal(), tmp_path / "b.npy")
    assert column_names(path) is None
    for options in ({"columns": ["x"]}, {"exclude": ["x"]}):
        with pytest.raises(BurstError, match=r"b\.npy: its features have no names"):
            open_bursts(path, **options)


def test_labels_in_a_file_are_checked(tmp_path):
    points = equal().to_array()
    for labels, message in [
        ({"ids": np.array(["a"] * 12)}, "burst 'a' occurs twice"),
        ({"ids": np.arange(5)}, "ids has 5 labels for 12 bursts"),
        ({"feature_names": np.array(["a", "b"])}, r"feature_names has 2 names \(a, b\)"),
        ({"units": np.array([1, 2, 3])}, "a unit must be text"),
    ]:
        np.savez(tmp_path / "b.npz", bursts=points, **labels)
        with pytest.raises(BurstError, match=rf"b\.npz: {message}"):
            open_bursts(tmp_path / "b.npz")


def test_the_index_that_pandas_adds_to_a_parquet_file_is_no_measurement(tmp_path):
    frame = pd.DataFrame({"burst_id": ["a", "a", "b"], "x": [1.0, 2, 3]}, index=[5, 7, 9])
    frame.to_parquet(tmp_path / "t.parquet")
    assert open_bursts(tmp_path / "t.parquet").feature_names == ("x",)


def test_text_in_a_parquet_file(tmp_path):
    frame = pd.DataFrame({"burst_id": ["a", "a", "b"], "x": [1.0, 2, 3], "note": ["u", "v", None]})
    frame.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(BurstError, match=r"'note' \(object\).*exclude=\['note'\]"):
        open_bursts(tmp_path / "t.parquet")
    with pytest.warns(UserWarning, match="'note'"):
        assert open_bursts(tmp_path / "t.parquet", on_text="warn").feature_names == ("x",)
