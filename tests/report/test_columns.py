"""Columns that a page can be coloured by, and their file."""

import numpy as np
import pandas as pd
import pytest

from pyloca.errors import BurstError
from pyloca.report import read_colours
from pyloca.report._colours import as_columns


def write(path, text):
    path.write_bytes(text.encode("utf-8"))
    return path


def test_columns_are_joined_by_id(tmp_path):
    file = write(
        tmp_path / "c.csv", '\ufeffhour,burst_id,operator\r\n7,run2,Ann\r\n,run1,"Bob, the elder"\r\n9,run9,Eve\r\n'
    )
    found = read_colours(file, np.array(["run1", "run2", "run3"]))
    assert list(found) == ["hour", "operator"]
    np.testing.assert_array_equal(found["hour"], [np.nan, 7, np.nan])
    assert found["operator"].tolist() == ["Bob, the elder", "Ann", ""]


def test_without_burst_id_the_first_column_holds_the_ids(tmp_path):
    file = write(tmp_path / "c.csv", "run,value\n2,0.5\n0,1.5\n\n")
    np.testing.assert_array_equal(read_colours(file, np.arange(3))["value"], [1.5, np.nan, 0.5])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1 is ''; expected the names of an id column"),
        ("burst_id\na\n", "at least one more"),
        ("burst_id,x,x\na,1,2\n", "each different"),
        ("burst_id,x\n", "the table has no rows"),
        ("burst_id,x\na,1,2\n", "line 2 has 3 cells; line 1 names 2 columns"),
        ("burst_id,x\na,1\nb,2\na,3\n", "line 4 names burst 'a' a second time"),
        ("burst_id,x\nq,1\n", "column 'burst_id' has none of the bursts .first row: 'q'; first burst: 'a'"),
        ('burst_id,x\na,"1\n', "is not valid CSV"),
    ],
)
def test_files_that_are_no_columns(text, words, tmp_path):
    with pytest.raises(BurstError, match=words):
        read_colours(write(tmp_path / "c.csv", text), ["a", "b"])


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(BurstError, match=r"cannot be read \(No such file"):
        read_colours(tmp_path / "c.csv", ["a"])
    (tmp_path / "c.csv").write_bytes(b"burst_id,x\na,\xff\n")
    with pytest.raises(BurstError, match="is not valid UTF-8"):
        read_colours(tmp_path / "c.csv", ["a"])


def test_columns_of_any_kind():
    given = {"flag": [True, False], "day": np.array([1, 2], dtype=np.int8), "who": ["a", None], "x": [1.5, None]}
    found = as_columns(given, 2)
    assert found["flag"].tolist() == ["True", "False"]
    assert found["day"].dtype == np.float64
    assert found["who"].tolist() == ["a", ""]
    np.testing.assert_array_equal(found["x"], [1.5, np.nan])
    missing = as_columns({"a": pd.array([3, None]), "b": pd.Series(["u", pd.NA]), "c": pd.Series([None, 2.5])}, 2)
    np.testing.assert_array_equal(missing["a"], [3, np.nan])
    assert missing["b"].tolist() == ["u", ""]
    np.testing.assert_array_equal(missing["c"], [np.nan, 2.5])
    with pytest.raises(ValueError, match=r"column 'day' has shape \(3,\); expected \(2,\), one value per burst"):
        as_columns({"day": [1, 2, 3]}, 2)
