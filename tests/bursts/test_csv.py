"""Tables in CSV: what is read, what is left out, and what each kind of damage is called."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyloca.bursts import Table, open_bursts, read_csv, read_table, table_text
from pyloca.bursts import _csv as reader
from pyloca.errors import BurstError


def read(text, *arguments, **options):
    return read_table(io.StringIO(text, newline=""), "id", *arguments, **options)


TABLE = "id,t,p [Pa],note\na,0,1.5,good\na,1,1e-3,\nb,2,-inf,not 1\n"


def test_numbers_labels_and_columns_of_text():
    table = read(TABLE)
    assert table.names == ["t", "p [Pa]"]  # a name is kept as it stands
    np.testing.assert_array_equal(table.values, [[0, 1.5], [1, 1e-3], [2, -np.inf]])
    assert table.labels == ["a", "a", "b"]
    assert table.text_columns == table.left_out == ("note",)


def test_columns_by_name_in_the_order_that_is_asked_for():
    table = read(TABLE, ["p [Pa]", "t"])
    assert table.names == ["p [Pa]", "t"]
    np.testing.assert_array_equal(table.values[:, 1], [0, 1, 2])
    assert (table.text_columns, table.left_out) == ((), ("note",))
    table = read(TABLE, exclude=["t"])
    assert (table.names, table.text_columns, table.left_out) == (["p [Pa]"], ("note",), ("t", "note"))


def test_cells_of_columns_that_nobody_asked_for_may_be_anything():
    table = read("id,x,y\na,1,2\nb,word,3\n", ["y"])
    np.testing.assert_array_equal(table.values, [[2], [3]])
    assert table.left_out == ("x",)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (TABLE, {"columns": ["note"]}, r"line 2 has 'good' where a number is expected, in column 'note'"),
        (TABLE, {"columns": ["q", "t", "r"]}, "there is no column 'q', 'r' in the table; it has id, t, p"),
        (TABLE, {"exclude": ["q"]}, "there is no column 'q'"),
        (TABLE, {"columns": ["id"]}, "'id', which holds the ids"),
        (TABLE, {"columns": []}, "no column of measurements beside 'id'"),
        ("id,x\na,word\nb,other\n", {}, "there is no column of numbers, only of text or empty: x"),
        ("id,x,y\na,1,word\nb,2,3\n", {}, r"line 2 has 'word' where a number is expected, in column 'y'"),
        ("id;x\na;1\n", {}, "cells of line 1 are separated by semicolons"),
        ("id\tx\na\t1\n", {}, "cells of line 1 are separated by tabs"),
        (",id,x\n0,a,1\n", {}, r"column 1 has no name in line 1.*to_csv\(index=False\)"),
        ("id,x\na,1_5\nb,2\n", {}, "line 2 has '1_5' where a number"),
        ("id,x\na,0x10\nb,2\n", {}, "line 2 has '0x10' where a number"),
        ("id,x\na,1\nb,2\n ,3\n", {}, "line 4 has no id"),
        ('id,x\na,1\n"b\nc",2\nd,oops\n', {}, "line 5 has 'oops'"),
        ('id,x\na,"1"2\n', {}, "is not valid CSV"),
        ("id,x\na,1\nb,2,3\n", {}, "line 3 has 3 cells; line 1 names 2 columns"),
        ("id,x\na,1,5\nb,2,3\n", {}, "line 2 has 3 cells"),
        ("id,x\na,1\nb,\0\n", {}, "line 3 has a NUL byte"),
    ],
)
def test_damage_is_named(text, options, message):
    with pytest.raises(BurstError, match=message):
        read(text, **options)


def test_wrong_arguments():
    with pytest.raises(TypeError, match=r"columns must be a sequence of names; got 't'. Pass \['t'\]"):
        read(TABLE, "t")
    with pytest.raises(ValueError, match="columns and exclude both name 't'") as caught:
        read(TABLE, ["t"], ["t"])
    assert not isinstance(caught.value, BurstError)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_quotes_blank_lines_and_ends_of_lines(end):
    text = end.join(['\ufeff"id","x, y"', '"a ""1""","1.5"', "", " b ,+2e0 ", "", ""])
    table = read(text)
    assert (table.names, table.labels) == (["x, y"], ['a "1"', "b"])
    np.testing.assert_array_equal(table.values, [[1.5], [2]])


def test_a_column_without_a_name_can_be_left_out():
    assert read(",id,x\n0,a,1\n", exclude=[""]).names == read(",id,x\n0,a,1\n", ["x"]).names == ["x"]


def test_a_hash_is_no_comment():
    assert read("id,x\n#1,1\nb,2\n").labels == ["#1", "b"]
    with pytest.raises(BurstError, match="line 2 has '1#2'"):
        read("id,x,y\nb,1#2,3\nc,2,3\n")


CELLS = st.sampled_from(
    ["1", "-2.5e-3", "nan", " 7 ", "inf", "", "word", "1_5", '"3"', '"a,b"', '"x""y"', "0x1", "1 2", "é", "12"]
)


@given(rows=st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=6), ragged=st.booleans())
def test_both_parsers_agree(rows, ragged):
    """NumPy's parser accepts nothing that the careful one refuses, and reads the same."""
    lines = ["id,x,y", *(",".join(row) for row in rows)]
    text = "\n".join(lines) + (",1\n" if ragged else "\n")

    def outcome():
        try:
            table = read(text)
        except BurstError as error:
            return str(error)
        return table.names, table.labels, table.text_columns, table.left_out, table.values.tobytes()

    found = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "_fast", lambda *_: None)
        assert outcome() == found


def test_what_is_written_is_read():
    values = np.random.RandomState(0).standard_normal((50, 3)) * 10.0 ** np.arange(-200, 201, 200)
    table = Table(["a", "b", "c"], values, [f"r {i}" for i in range(50)])
    again = read(table_text(table, "id"))
    assert again.values.tobytes() == values.tobytes()
    assert (again.names, again.labels) == (table.names, table.labels)


def test_ids_that_are_integers_are_read_as_integers():
    assert read_csv(io.StringIO("burst_id,x\n3,1\n3,2\n-1,5\n")).ids.tolist() == [3, -1]
    for labels in (["007", "008"], ["1.0", "2"], ["1", "b"], ["+1", "2"], [str(2**70), "1"]):
        rows = "".join(f"{label},1\n" for label in labels)
        assert read_csv(io.StringIO(f"burst_id,x\n{rows}")).ids.tolist() == labels


def test_text_columns_of_bursts_are_refused_all_at_once_or_left_out(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("run,p,who,T,site\n7,1,Ann,20,N\n7,2,Bo,21,N\n4,3,Ann,22,S\n")
    with pytest.raises(BurstError, match=r"'who' \(text\), 'site' \(text\).*exclude=\['who', 'site'\]") as caught:
        open_bursts(path, burst_id="run")
    assert str(path) in str(caught.value)
    with pytest.warns(UserWarning, match="are left out: 'who' .text., 'site' .text."):
        bursts = open_bursts(path, burst_id="run", on_text="warn")
    assert bursts.feature_names == ("p", "T")
    assert bursts.provenance.endswith("left out as text: who, site")
    assert open_bursts(path, burst_id="run", columns=["T", "p"]).feature_names == ("T", "p")
    assert open_bursts(path, burst_id="run", exclude=["who", "site"]).ids.tolist() == [7, 4]
    with pytest.raises(ValueError, match="on_text must be"):
        open_bursts(path, burst_id="run", on_text="ignore")
