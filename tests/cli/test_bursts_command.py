"""``pyloca bursts``: recordings from the shell."""

import numpy as np
import pytest
from click.testing import CliRunner

from pyloca.bursts import open_bursts
from pyloca.cli import cli


def run(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments], prog_name="pyloca")


def write(path, times):
    values = np.cumsum(np.random.RandomState(0).standard_normal((len(times), 2)), axis=0)
    rows = [f"{t},{a},{b},fine" for t, (a, b) in zip(times, values, strict=True)]
    path.write_text("\n".join(["t,p,T,note", *rows]) + "\n")
    return path


def test_a_recording_becomes_bursts(tmp_path):
    table = write(tmp_path / "r.csv", np.arange(1000) / 100)
    done = run("bursts", table, "--time", "t", "--diffusion", 10, "--units", "p=Pa", "-o", tmp_path / "b.npz")
    assert done.exit_code == 0, done.output
    assert "N = 49, M = 20, D = 2" in done.stderr and "lag 1" in done.stderr
    bursts = open_bursts(tmp_path / "b.npz")
    assert bursts.feature_label(0) == "p (Pa)" and abs(bursts.burst_std - 1) < 1e-6


def test_uneven_times_and_clocks_are_refused(tmp_path):
    table = write(tmp_path / "r.csv", [*range(100), *range(105, 900)])
    done = run("bursts", table, "--time", "t", "-o", tmp_path / "b.npz")
    assert done.exit_code == 3 and "row 101" in done.stderr
    done = run("bursts", write(tmp_path / "s.csv", range(900)), "-o", tmp_path / "b.npz")
    assert done.exit_code == 3 and "--time t" in done.stderr
    assert run("bursts", table, "--eps", "2", "-o", tmp_path / "b.npz").exit_code == 2


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--window", "abc"], 2, "expected 'auto' or an integer of at least 2; got 'abc'"),
        (["--window", "5000"], 3, "a window of 5000 steps needs 5001"),
        (["--window", "auto", "--time", "clock"], 3, "there is no column 'clock'"),
        (["-o", "b.txt"], 2, "expected a .npz or .npy or .csv or .parquet file"),
    ],
)
def test_wrong_options_of_a_recording(options, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "r.csv", np.arange(1000) / 100)
    done = run("bursts", "r.csv", "--time", "t", "-o", "b.npz", *options)
    assert done.exit_code == code and message in done.stderr, done.output
    assert not (tmp_path / "b.npz").exists()
