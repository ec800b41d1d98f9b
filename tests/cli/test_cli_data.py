"""`pyloca inspect`, `fit`, `transform` and `inverse`, as a person runs them."""

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from helpers import HANG, planar_bursts
from pyloca import LOCA, Bursts
from pyloca.bursts import save_bursts
from pyloca.cli import cli

SMALL = ["--hidden-layers", "8", "--random-state", "0", "-q"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of bursts and a model fitted to them by the command line."""
    path = tmp_path_factory.mktemp("cli")
    _, bursts = planar_bursts(80, 20)
    for suffix in ("npy", "npz", "csv", "parquet"):
        save_bursts(Bursts(bursts), path / f"bursts.{suffix}")
    np.save(path / "points.npy", bursts.mean(axis=1))
    done = run("fit", path / "bursts.csv", "--burst-std", "0.01", "-o", path / "m.safetensors", *SMALL)
    assert done.exit_code == 0, done.output
    return path


def run(*arguments, stdin=None):
    return CliRunner().invoke(cli, [str(a) for a in arguments], input=stdin, prog_name="pyloca")


def process(*arguments, **options):
    command = [sys.executable, "-m", "pyloca", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False, **options)


def table(text):
    return np.array([[float(cell) for cell in line.split(",")] for line in text.splitlines()[1:]])


# -- fit --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["npy", "npz", "csv", "parquet"])
def test_fit_is_the_same_from_every_format(suffix, folder, tmp_path):
    options = ["--burst-std", 0.01, "--feature-scale", "none", "--embedding", tmp_path / "z.csv", *SMALL]
    done = run("fit", folder / f"bursts.{suffix}", *options)
    assert done.exit_code == 0, done.output
    assert done.stdout == "" and "divided by" not in done.stderr
    found = (tmp_path / "z.csv").read_text()
    named = suffix in ("csv", "parquet")  # the others have no ids
    assert found.splitlines()[0] == ("burst_id,z0,z1" if named else "z0,z1")
    expected = LOCA(burst_std=0.01, hidden_layers=(8,), random_state=0, feature_scale=None).fit_transform(
        np.load(folder / "bursts.npy")
    )
    np.testing.assert_array_equal(table(found)[:, -2:], expected)


def test_fit_from_standard_input_and_as_json(folder):
    text = (folder / "bursts.csv").read_text()
    done = run("fit", "-", "--burst-std", 0.01, "--json", *SMALL, stdin=text)
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert (facts["bursts"], facts["n_components"], facts["burst_std"]) == (80, 2, 0.01)


def test_settings_come_from_a_file_and_options_win(folder, tmp_path):
    config = tmp_path / "c.toml"
    config.write_text("burst_std = 0.5\nhidden_layers = [8]\nrandom_state = 3\n")
    done = run("fit", folder / "bursts.npy", "--config", config, "--burst-std", 0.01, "--print-config")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert "burst_std = 0.01" in lines and "hidden_layers = [8]" in lines and "random_state = 3" in lines
    config.write_text(done.stdout)  # what is printed can be read
    assert run("fit", folder / "bursts.npy", "--config", config, "--print-config").stdout == done.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("n_component = 3", "did you mean 'n_components'?"),
        ("zzz = 1", "expected one of n_components"),
        ("= 3", "as TOML"),
    ],
)
def test_a_config_that_cannot_be(content, message, folder, tmp_path):
    (tmp_path / "c.toml").write_text(content)
    done = run("fit", folder / "bursts.npy", "--config", tmp_path / "c.toml", "--json")
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_fit_that_should_not_be_believed_exits_with_4(folder, tmp_path):
    done = run("fit", folder / "bursts.npy", "-o", tmp_path / "m.safetensors", "--max-iter", 3, *SMALL)
    assert done.exit_code == 4
    assert done.stderr.count("decoder is not trained") == 1  # said once
    assert "Warning: " not in done.stderr
    assert LOCA.load(tmp_path / "m.safetensors").n_iter_ == 3


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "bursts.npy"], 2, "nothing would be written"),
        (["fit", "bursts.npy", "-o", "m.pkl"], 2, "a model is a .safetensors file"),
        (["fit", "bursts.npy", "-o", "nowhere/m.safetensors"], 2, "cannot write"),
        (["fit", "bursts.npy", "--json", "--hidden-layers", "a"], 2, "integers such as 50,50"),
        (["fit", "bursts.npy", "--json", "--measurement-noise", "a"], 2, "expected 'estimate', a number"),
        (["fit", "bursts.npy", "--json", "--activation", "relu"], 2, "activation must be one of"),
        (["fit", "bursts.npy", "--json", "--burst-std", "-1"], 2, "burst_std must be a number > 0"),
        (["fit", "bursts.npy", "--json", "-d", "1"], 3, "n_components = 1"),
        (["fit", "nosuch.csv", "--json"], 3, "there is no such file"),
        (["fit", "bad.csv", "--json"], 3, "bad.csv: line 3 has 'word' where a number is expected"),
        (["fit", "few.csv", "--json"], 3, "at least 10 are needed"),
        (["transform", "bursts.npy", "points.npy"], 5, "not a pyloca model file"),
        (["transform", "m.safetensors", "nosuch.npy"], 3, "there is no such file"),
        (["transform", "m.safetensors", "wide.csv"], 3, "wide.csv: there is no column 'y0', 'y1', 'y2' in the table"),
        (["transform", "m.safetensors", "bursts.csv", "--exclude", "y1"], 2, "fitted to the column 'y1', which"),
        (["transform", "m.safetensors", "bursts.csv", "--columns", "y0,y1"], 2, "'y2', which --columns leaves out"),
        (["transform", "m.safetensors", "bursts.csv", "--burst-id", "run"], 3, "there is no column 'run'"),
        (["transform", "m.safetensors", "points.npy", "--columns", "y0,y1,y2"], 3, "has no column names"),
        (["transform", "m.safetensors", "notes.txt"], 3, "got the suffix '.txt'"),
        (["transform", "m.safetensors", "latin.csv"], 3, "latin.csv: is not valid UTF-8"),
        (["inverse", "m.safetensors", "points.npy"], 3, "has shape (80, 3); expected (…, 2)"),
        (["inverse", "m.safetensors", "bad.csv"], 3, "line 3"),
        (["inverse", "m.safetensors", "half.csv"], 3, "there is no column 'z1'"),
        (["fit", "bursts.csv", "--json", "--columns", "y0,y9"], 3, "there is no column 'y9'"),
        (["fit", "bursts.csv", "--json", "--columns", "y0,y1", "--exclude", "y1"], 2, "both name 'y1'"),
        (["fit", "bursts.csv", "--json", "--columns", ","], 2, "names of columns such as"),
        (["fit", "bursts.npy", "--json", "--columns", "y0"], 3, "its features have no names"),
        (["fit", "bursts.csv", "--json", "--feature-scale", "x"], 2, "expected 'auto', 'none', or a number"),
        (["fit", "bursts.csv", "--json", "--feature-scale", "1,2"], 2, "feature_scale has shape (2,); expected (3,)"),
        (["fit", "bursts.csv", "--json", "--units", "y0"], 2, "expected units such as p1=Pa"),
        (["fit", "bursts.csv", "--json", "--units", "y9=Pa"], 3, "units names 'y9', which is not a feature"),
        (["fit", "still.csv", "--json"], 3, "still.csv: no column of numbers ever changes: x, y"),
        (["inspect", "nosuch.npy"], 3, "there is no such file"),
        (["inspect", "bursts.npy", "--plot", "nowhere/p.png"], 2, "cannot write"),
        (["fti", "bursts.npy"], 2, "Did you mean 'fit'?"),
        (["fit", "bursts.npy", "--embedding", "./bursts.npy"], 2, "is the input file; write to another file"),
        (["fit", "bursts.npy", "--json", "--checkpoint", "bursts.npy"], 2, "expected a .checkpoint file"),
        (["fit", "bursts.npy", "--json", "--resume"], 2, "--resume needs a checkpoint"),
        (["fit", "bursts.npy", "--embedding", "z.parquet"], 2, "expected a .csv or .npy file"),
        (["inspect", "bursts.npy", "--plot", "/dev/null"], 2, "exists but is not a regular file"),
        (["transform", "m.safetensors", "points.npy", "-o", "points.npy"], 2, "is the input file"),
        (["transform", "m.safetensors", "bare.csv"], 3, "bare.csv: line 1 has numbers"),
        (["transform", "m.safetensors", "cut.npy"], 3, "it is truncated"),
        (["transform", "m.safetensors", "."], 3, ".: is a directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_goes_wrong_has_a_message_and_a_code(arguments, code, message, folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "bad.csv").write_text("burst_id,x,y\n0,1,2\n0,word,3\n")
    (folder / "few.csv").write_text("burst_id,x,y\n0,1,2\n0,2,3\n1,1,5\n1,6,3\n")
    (folder / "wide.csv").write_text("a,b,c,d,e\n1,2,3,4,5\n")
    (folder / "half.csv").write_text("z0,x\n1,2\n")
    (folder / "still.csv").write_text("burst_id,x,y\n" + "0,1,2\n" * 30)
    (folder / "notes.txt").write_text("a,b\n1,2\n")
    (folder / "latin.csv").write_bytes("burst_id,y0,y1,y2\nKöln,1,2,3\n".encode("latin-1"))
    (folder / "bare.csv").write_text("1,2,3\n4,5,6\n")
    (folder / "cut.npy").write_bytes((folder / "points.npy").read_bytes()[:-9])
    before = sorted(p.name for p in folder.iterdir())
    done = run(*arguments)
    assert (done.exit_code, message in done.stderr) == (code, True), done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr
    assert sorted(p.name for p in folder.iterdir()) == before


# -- transform and inverse --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_there_and_back_through_a_pipe(folder):
    """Real processes: pyloca transform m y.npy | pyloca inverse m -"""
    there = process("transform", folder / "m.safetensors", folder / "points.npy")
    assert (there.returncode, there.stderr) == (0, "")
    model, points = LOCA.load(folder / "m.safetensors"), np.load(folder / "points.npy")
    np.testing.assert_array_equal(table(there.stdout), model.encode(points))  # every digit
    back = process("inverse", folder / "m.safetensors", "-", input=there.stdout)
    assert back.stdout.splitlines()[0] == "y0,y1,y2"
    np.testing.assert_array_equal(table(back.stdout), model.decode(model.encode(points)))


def test_burst_numbers_are_passed_on_and_npy_is_written(folder, tmp_path):
    done = run("transform", folder / "m.safetensors", folder / "bursts.csv")
    assert done.stdout.splitlines()[0] == "burst_id,z0,z1"
    assert done.stdout.splitlines()[25].startswith("1,")
    done = run("transform", folder / "m.safetensors", folder / "points.npy", "-o", tmp_path / "z.npy")
    assert done.stdout == "" and np.load(tmp_path / "z.npy").shape == (80, 2)


@pytest.mark.parametrize("name", ["bursts.npy", "bursts.npz", "bursts.csv", "bursts.parquet"])
def test_bursts_are_embedded_at_their_means(name, folder):
    """Arrays of bursts always, tables with --bursts; the same bits as the fit left."""
    options = ["--bursts"] if name.endswith(("csv", "parquet")) else []
    done = run("transform", folder / "m.safetensors", folder / name, *options)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == ("burst_id,z0,z1" if options else "z0,z1")
    np.testing.assert_array_equal(table(done.stdout)[:, -2:], LOCA.load(folder / "m.safetensors").embedding_)


def test_rows_of_parquet_are_rows_of_csv(folder):
    expected = run("transform", folder / "m.safetensors", folder / "bursts.csv").stdout
    assert run("transform", folder / "m.safetensors", folder / "bursts.parquet").stdout == expected
    assert len(expected.splitlines()) == 1 + 80 * 20


# -- inspect ----------------------------------------------------------------------------------------------------


def test_inspect_says_what_it_sees(folder, tmp_path):
    done = run("inspect", folder / "bursts.csv", "--plot", tmp_path / "p.png")
    assert done.exit_code == 0, done.output
    assert "N = 80, M = 20, D = 3" in done.stdout and "k = 2" in done.stdout
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads(run("inspect", folder / "bursts.npy", "--json").stdout)
    assert facts["n_bursts"] == 80 and facts["intrinsic_dim"] == 2 and facts["outliers"] == []


def test_inspect_sees_outliers_pieces_and_noise(tmp_path):
    _, bursts = planar_bursts(80, 20)
    spoilt, centred = bursts.copy(), bursts[17] - bursts[17].mean(axis=0)
    spoilt[17] += 9 * centred
    np.save(tmp_path / "b.npy", spoilt)
    assert json.loads(run("inspect", tmp_path / "b.npy", "--json").stdout)["outliers"] == [17]
    spoilt[17] += 20 * centred  # as large as the data: left out
    np.save(tmp_path / "b.npy", spoilt)
    facts = json.loads(run("inspect", tmp_path / "b.npy", "--json").stdout)
    assert facts["outliers"] == [] and "17" in str(facts["strays"])
    np.save(tmp_path / "b.npy", np.concatenate([bursts, bursts + 100]))
    assert "2 pieces" in run("inspect", tmp_path / "b.npy").stdout
    noisy = bursts + 0.02 * np.random.RandomState(0).standard_normal(bursts.shape)
    np.save(tmp_path / "b.npy", noisy)
    assert "the noise of the instrument is" in run("inspect", tmp_path / "b.npy", "--intrinsic-dim", 2).stdout


def test_transform_with_trust(folder):
    plain = run("transform", folder / "m.safetensors", folder / "points.npy")
    done = run("transform", folder / "m.safetensors", folder / "points.npy", "--trust")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0] == "z0,z1,trust"
    found = table(done.stdout)
    np.testing.assert_array_equal(found[:, :2], table(plain.stdout))
    assert 0 < found[:, 2].min() <= found[:, 2].max() <= 1
    back = run("inverse", folder / "m.safetensors", "-", stdin=done.stdout)
    assert back.stdout == run("inverse", folder / "m.safetensors", "-", stdin=plain.stdout).stdout


def test_the_number_of_components_may_be_found(folder):
    done = run("fit", folder / "bursts.csv", "-d", "auto", "--burst-std", 0.01, "--json", *SMALL)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["n_components"] == 2
    for wrong in ("0", "two"):
        done = run("fit", folder / "bursts.csv", "-d", wrong, "--json")
        assert done.exit_code == 2
        assert f"or 'auto'; got '{wrong}'" in done.stderr
