"""Files of bursts: every format back bit for bit, and every damaged file refused by name."""

import sys

import h5py
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from pyloca import BurstError, Bursts
from pyloca.bursts import open_bursts, save_bursts

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


def test_npy_is_mapped(tmp_path):
    path = save_bursts(equal(), tmp_path / "bursts.npy")
    array = open_bursts(path)._points
    while not isinstance(array, np.memmap):  # np.asarray wraps it in a plain view of the same memory
        array = array.base
        assert array is not None
    assert array.mode == "r"


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
        ("burst_id,x,x\n1,2,3\n", "two columns have one name"),
        ("burst_id;x\n0;1\n", "there is no column 'burst_id'.*Cells are separated by commas"),
        ("0,1\n0,2\n", "line 1 has numbers where the names of the columns are expected"),
        ("burst_id\n0\n", "there is no column of measurements beside 'burst_id'"),
        ('burst_id,x\n"0,1\n', "is not valid CSV"),
        ("burst_id,x\n0,\0\n", "line 2 has"),
        ("burst_id,x\n", "the table has no rows"),
        ("burst_id,x\n0,1\n0,1,2\n", "line 3 has 3 cells; line 1 names 2 columns"),
        ("burst_id,x\n0,1\n1\n", "line 3 has 1 cells"),
        ("burst_id,x\n0,1\n0,word\n", "line 3 has 'word' where a number is expected"),
        ("burst_id,x\n0,\n", "line 2 has '' where a number is expected"),
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
    with pytest.raises(BurstError, match=r"read from \.npy, \.npz, \.csv, \.parquet, \.h5, \.hdf5 files"):
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
