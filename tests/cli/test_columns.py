"""Columns of tables: which are read, what is said about the others, and what the model remembers."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from helpers import planar_bursts
from pyloca import LOCA, Bursts
from pyloca.bursts import save_bursts
from pyloca.cli import cli

SMALL = ["--burst-std", "0.01", "--hidden-layers", "8", "--max-iter", "40", "-q"]  # too short to be believed: exit 4
DISTRUSTED = 4


def run(*arguments, stdin=None):
    return CliRunner().invoke(cli, [str(a) for a in arguments], input=stdin, prog_name="pyloca")


def write(path, order=("run", "a", "b", "c", "note", "gain"), n=30, m=8):
    """A table of n runs with columns in any order."""
    bursts = planar_bursts(n, m)[1]
    lines = [",".join(order)]
    for i, burst in enumerate(bursts):
        for a, b, c in burst:
            row = {"run": f"r{i}", "a": a, "b": 1e5 * b, "c": c, "note": "fine", "gain": 2, "t": i / 7}
            lines.append(",".join(str(row[name]) for name in order))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("columns")
    write(folder / "runs.csv")
    done = run("fit", folder / "runs.csv", "--burst-id", "run", "-o", folder / "m.safetensors", *SMALL)
    assert done.exit_code == DISTRUSTED, done.output
    np.save(folder / "b.npy", planar_bursts(30, 8)[1])
    done = run("fit", folder / "b.npy", "-o", folder / "nameless.safetensors", *SMALL)
    assert done.exit_code == DISTRUSTED, done.output
    return folder


def test_the_model_remembers_the_columns(folder):
    model = LOCA.load(folder / "m.safetensors")
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.table_ == {"burst_id": "run", "exclude": ["note", "gain"]}
    assert not hasattr(LOCA.load(folder / "nameless.safetensors"), "table_")


def test_columns_asked_for_are_read_and_no_others(folder):
    options = ["--burst-id", "run", "--columns", "c,a,b", "--units", "b=Pa,c=K", "--json", *SMALL]
    done = run("fit", folder / "runs.csv", *options)
    facts = json.loads(done.stdout)
    assert facts["feature_names"] == ["c", "a", "b"]
    assert facts["units"] == ["K", "", "Pa"]
    assert facts["left_out"] == {}
    assert "Left out" not in done.stderr
    assert "divided by its spread: c (K) 0." in done.stderr and "b (Pa) " in done.stderr


def test_a_scale_can_be_given_and_is_kept_in_a_config(folder, tmp_path):
    done = run("fit", folder / "runs.csv", "--burst-id", "run", "--feature-scale", "1,1e5,1", "--json", *SMALL)
    assert json.loads(done.stdout)["feature_scale"] == [1, 1e5, 1]
    assert "Each sensor divided by the given number: a 1, b 1e+05, c 1." in done.stderr
    for value in ("none", "auto", "1,2"):
        printed = run("fit", "x", "--feature-scale", value, "--print-config").stdout
        (tmp_path / "c.toml").write_text(printed)
        assert run("fit", "x", "--config", tmp_path / "c.toml", "--print-config").stdout == printed
    (tmp_path / "c.toml").write_text('feature_scale = "none"')
    done = run("fit", folder / "b.npy", "--config", tmp_path / "c.toml", "--json", *SMALL)
    assert json.loads(done.stdout)["feature_scale"] == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["transform", "report", "inspect"])
def test_the_file_of_the_fit_needs_no_options(command, folder, tmp_path):
    """In any order, also from standard input; what is new is named once."""
    other = write(tmp_path / "o.csv", ("t", "gain", "c", "b", "note", "a", "run"))

    def ask(data, stdin=None):
        if command == "inspect":
            return run("inspect", data, "--model", folder / "m.safetensors", stdin=stdin)
        output = ["-o", tmp_path / "page.html"] if command == "report" else []
        return run(command, folder / "m.safetensors", data, *output, stdin=stdin)

    expected = 4 if command == "report" else 0  # the page says that this fit was cut short
    first = ask(folder / "runs.csv")
    assert first.exit_code == expected, first.stderr
    assert "Ignored" not in first.stderr and "Left out" not in first.stderr
    for done in (ask(other), ask("-", other.read_text())):
        assert done.exit_code == expected, done.stderr
        assert done.stderr.count("Ignored, because the model was fitted without: t.\n") == 1
        assert done.stdout == first.stdout
    lost = write(tmp_path / "lost.csv", ("run", "a", "c"))
    done = ask(lost)
    assert done.exit_code == 3
    assert f"Error: {lost}: there is no column 'b' in the table; it has run, a, c." in done.stderr


def test_an_excluded_column_is_not_mentioned(folder, tmp_path):
    other = write(tmp_path / "o.csv", ("run", "t", "a", "b", "c"))
    assert run("transform", folder / "m.safetensors", other, "--exclude", "t").stderr == ""


def test_a_model_without_names_takes_columns_by_position(folder, tmp_path):
    table = write(tmp_path / "o.csv", ("a", "b", "c", "note", "run"))
    done = run("transform", folder / "nameless.safetensors", table, "--burst-id", "run")
    assert done.exit_code == 0 and done.stderr.startswith("Left out: note (text).\n")
    assert "240 of 240 rows are unlike anything in the fit" in done.stderr  # b is 10⁵ times what the model knows
    assert done.stdout.splitlines()[0] == "run,z0,z1"
    chosen = run("transform", folder / "nameless.safetensors", table, "--burst-id", "run", "--columns", "a,b,c")
    assert chosen.stdout == done.stdout and "Left out" not in chosen.stderr
    swapped = run("transform", folder / "nameless.safetensors", table, "--burst-id", "run", "--columns", "c,b,a")
    assert swapped.stdout != done.stdout
    whole = run("transform", folder / "nameless.safetensors", table, "--burst-id", "run", "--bursts")
    assert whole.exit_code == 0 and whole.stderr.startswith("Left out: note (text).\n")
    assert len(whole.stdout.splitlines()) == 31


def test_arrays_with_names_are_matched_by_name_too(folder, tmp_path):
    bursts = planar_bursts(30, 8)[1] * [1, 1e5, 1]
    ids = [f"r{i}" for i in range(30)]
    save_bursts(Bursts(bursts[:, :, [2, 0, 1]], feature_names=["c", "a", "b"], ids=ids), tmp_path / "b.npz")
    done = run("transform", folder / "m.safetensors", tmp_path / "b.npz")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == run("transform", folder / "m.safetensors", folder / "runs.csv", "--bursts").stdout


def test_coordinates_are_found_by_name(folder):
    model = folder / "m.safetensors"
    plain = run("inverse", model, "-", stdin="run,z0,z1\nr1,0.1,0.2\n")
    assert plain.stdout.splitlines()[0] == "run,a,b,c"
    done = run("inverse", model, "-", stdin="z1,trust,run,comment,z0\n0.2,1,r1,good,0.1\n")
    assert (done.stdout, done.stderr) == (plain.stdout, "Ignored, because the model was fitted without: comment.\n")
    assert run("inverse", model, "-", stdin="run,u,v\nr1,0.1,0.2\n").stdout == plain.stdout


def test_a_time_stamp_is_pointed_at(folder, tmp_path):
    """It is a column of numbers like any other, but no sensor grows from the first row to the last."""
    table = write(tmp_path / "t.csv", ("run", "t", "a", "b", "c"))
    done = run("inspect", table, "--burst-id", "run")
    assert "'t' grows from row to row, as a time stamp or a counter does" in done.stderr
    assert "--exclude t." in done.stderr
    assert run("inspect", table, "--burst-id", "run", "--exclude", "t").stderr == ""


def test_the_column_of_ids_is_asked_for(folder):
    for data, stdin in ((folder / "runs.csv", None), ("-", (folder / "runs.csv").read_text())):
        done = run("fit", data, "--json", stdin=stdin)
        assert done.exit_code == 3
        assert "there is no column 'burst_id'; the table has run, a, b, c, note, gain." in done.stderr
        assert "--burst-id NAME" in done.stderr


def test_other_tables_are_not_coordinates(folder):
    done = run("inverse", folder / "m.safetensors", folder / "runs.csv")
    assert done.exit_code == 3
    assert "there is no column z0, z1, and a, b, c, gain are not 2 coordinates." in done.stderr


def test_a_name_with_a_comma_stands_in_quotes(folder, tmp_path):
    text = (folder / "runs.csv").read_text().replace("run,a,b,c,", 'run,"a, left",b,c,', 1)
    done = run("fit", "-", "--burst-id", "run", "--columns", '"a, left",b,c', "--json", *SMALL, stdin=text)
    assert json.loads(done.stdout)["feature_names"] == ["a, left", "b", "c"]


# -- known perturbations ----------------------------------------------------------------------------------------


def write_steps(path, names=("dx", "dy")):
    random = np.random.RandomState(0)
    lines = [",".join(["burst_id", "a", "b", "c", *names])]
    for i, x in enumerate(random.uniform(size=(30, 2))):
        for z in 0.01 * random.standard_normal((8, 2)):
            a, b = x + z
            lines.append(",".join(map(str, [i, a + b**2, b, a * b, *z[: len(names)]])))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_of_displacements(tmp_path):
    table, model = write_steps(tmp_path / "steps.csv"), tmp_path / "m.safetensors"
    options = ["--perturbations", "dx,dy", "--embedding", tmp_path / "z.csv", *SMALL[2:]]
    done = run("fit", table, "-o", model, *options)
    assert done.exit_code in (0, DISTRUSTED), done.output
    assert LOCA.load(model).table_["perturbations"] == ["dx", "dy"]
    assert list(LOCA.load(model).feature_names_in_) == ["a", "b", "c"]
    # the model remembers them
    again = run("transform", model, table, "--bursts")
    assert (again.stdout, again.stderr) == ((tmp_path / "z.csv").read_text(), "")
    np.testing.assert_array_equal(LOCA.load(model).transform(table), LOCA.load(model).embedding_)
    assert run("transform", model, table).stderr == ""
    # a table without them is read, and said to be
    other = write_steps(tmp_path / "other.csv", ())
    done = run("transform", model, other, "--bursts")
    assert "No column dx, dy of displacements: bursts are placed at their means" in done.stderr
    assert "k = 2" in run("inspect", table, "--perturbations", "dx,dy").stdout


def test_wrong_columns_of_displacements(tmp_path):
    table = write_steps(tmp_path / "steps.csv")
    done = run("inspect", table, "--perturbations", "dx,dz")
    assert (done.exit_code, "no column 'dz' of perturbations" in done.stderr) == (3, True)
    done = run("inspect", table, "--perturbations", "dx", "--exclude", "dx")
    assert (done.exit_code, "--perturbations names 'dx'" in done.stderr) == (2, True)


# -- missing cells ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gaps(folder):
    """The table of the fit with 'NA' in two cells of 'a', an empty cell in 'b', and a run without 'c'."""
    rows = [line.split(",") for line in (folder / "runs.csv").read_text().splitlines()]
    for line, column, cell in [(3, 1, "NA"), (10, 1, "NA"), (10, 2, ""), *((i, 3, "nan") for i in range(17, 25))]:
        rows[line][column] = cell
    path = folder / "gaps.csv"
    path.write_text("\n".join(map(",".join, rows)) + "\n")
    return path


COUNTED = "a: 2 cells in bursts 'r0', 'r1'; b: 1 cell in burst 'r1'; c: 8 cells in burst 'r2'"


def test_missing_cells_are_counted_by_every_command(folder, gaps):
    model = folder / "m.safetensors"
    for command in (
        ["inspect", gaps, "--burst-id", "run"],
        ["fit", gaps, "--burst-id", "run", "--json", *SMALL],
        ["transform", model, gaps, "--bursts"],
        ["report", model, gaps, "-o", folder / "gaps.html"],
    ):
        done = run(*command)
        assert done.exit_code == 3, done.output
        assert COUNTED in done.stderr and "--missing drop" in done.stderr


def test_points_with_missing_cells_are_dropped_with_a_word(folder, gaps):
    said = f"dropped 10 of 240 points ({COUNTED}); burst 'r2' lost all points and is left out"
    done = run("inspect", gaps, "--burst-id", "run", "--missing", "drop")
    assert done.exit_code == 0, done.output
    assert said in done.stderr and said in done.stdout and "N = 29, M = 7..8" in done.stdout
    done = run("fit", gaps, "--burst-id", "run", "--missing", "drop", "--json", *SMALL)
    assert said in done.stderr and json.loads(done.stdout)["bursts"] == 29
    done = run("transform", folder / "m.safetensors", gaps, "--bursts", "--missing", "drop")
    assert said in done.stderr and len(done.stdout.splitlines()) == 30 and "r2," not in done.stdout
    content = gaps.read_text()
    piped = run("inspect", "-", "--burst-id", "run", "--missing", "drop", stdin=content)
    assert said in piped.stderr


def test_rows_are_not_dropped(folder, gaps):
    done = run("transform", folder / "m.safetensors", gaps)
    assert done.exit_code == 3
    assert "10 of 240 rows have cells that are empty, not finite or beyond 1e+100 (by sensor: a: 2, b: 1, c: 8)" in (
        done.stderr
    )
    assert "The first of them is row 3 below the header, of burst" in done.stderr
    done = run("transform", folder / "m.safetensors", gaps, "--missing", "drop")
    assert done.exit_code == 3
    assert "10 of 240 rows have missing cells (a: 2; b: 1; c: 8)" in done.stderr and "add --bursts" in done.stderr


def test_semicolons_are_named(folder):
    text = (folder / "runs.csv").read_text().replace(",", ";")
    (folder / "semicolons.csv").write_text(text)
    for data, stdin in ((folder / "semicolons.csv", None), ("-", text)):
        done = run("inspect", data, "--burst-id", "run", stdin=stdin)
        assert done.exit_code == 3 and "separated by semicolons; expected commas" in done.stderr
