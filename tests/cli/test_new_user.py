"""A new user's table, from the shell alone: three commands to a report and to coordinates of new rows.

Read it from top to bottom. The table is what an instrument leaves behind: `run_id`, a time stamp, who was on duty, six
sensors in mixed units, and a setting that was never touched. Each run is one state of the system, measured 5 to 40
times while it trembled. Two things that nobody measured, u and v, decide what all six sensors show.
"""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers import HANG
from lab import HEADER, SENSORS, write_lab
from pyloca.metrics import calibrate

pytestmark = pytest.mark.slow  # a fit of 300 runs

COMMANDS = """\
pyloca fit runs.csv --burst-id run_id --exclude t -d 2 -o model.safetensors --embedding z.csv
pyloca report model.safetensors runs.csv -o report.html
pyloca transform model.safetensors new.csv -o new_z.csv
"""
FIT, REPORT, TRANSFORM = (line.split()[1:] for line in COMMANDS.splitlines())


def read(path):
    """Header, ids and numbers of a CSV file."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, [row[0] for row in rows], np.array([row[1:] for row in rows], dtype=float)


def pyloca(folder, *arguments):
    """What a person types: a process of its own, in the folder of the data."""
    command = [sys.executable, "-m", "pyloca", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=HANG, check=False)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A folder with runs.csv of 300 runs and new.csv of 20 more; and the truth about both."""
    folder = tmp_path_factory.mktemp("lab")
    truth, new = write_lab(folder)
    return folder, truth, new


@pytest.fixture(scope="module")
def fitted(lab):
    """Command 1: from the file to a model and to coordinates of the runs."""
    return pyloca(lab[0], *FIT)


def test_1_fit(lab, fitted):
    folder, truth, _ = lab
    assert fitted.returncode == 0, fitted.stderr
    assert fitted.stdout == "" and "Warning" not in fitted.stderr
    # It says what it did not use, and what it did about the units.
    lines = fitted.stderr.splitlines()
    assert lines[0] == "Left out: operator (text), gain (constant)."
    (scales,) = [line for line in lines if line.startswith("Each sensor divided by its spread: strain_mV 4")]
    assert all(name in scales for name in SENSORS)
    assert "verdict          no fault found" in lines
    # One row per run, with its id; the coordinates are u and v, turned and scaled.
    header, ids, Z = read(folder / "z.csv")
    assert header == ["run_id", "z0", "z1"]
    assert ids == [f"run-{i:03d}" for i in range(300)]
    assert typical_error(truth, Z, calibrate(truth, Z, scale=True)) < 0.05  # of a square of side 2


def test_2_report(lab, fitted):
    """Command 2 reads the file that fit read, and need not be told again what its columns are."""
    done = pyloca(lab[0], *REPORT)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr.startswith("Page: report.html")
    assert "Warning" not in done.stderr
    page = (lab[0] / "report.html").read_text(encoding="utf-8")
    assert "<!doctype html>" in page[:100].lower() and len(page) > 100_000


def test_3_transform(lab, fitted):
    """Command 3: every row of a new table gets coordinates in the same picture, and keeps its id."""
    folder, truth, new = lab
    done = pyloca(folder, *TRANSFORM)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    header, ids, Z = read(folder / "new_z.csv")
    assert header == ["run_id", "z0", "z1"]
    assert ids == read_ids(folder / "new.csv")
    known = read(folder / "z.csv")[2]
    assert typical_error(new, Z, calibrate(truth, known, scale=True)) < 0.05


def test_the_first_page_says_the_same():
    page = (Path(__file__).parents[2] / "docs" / "start.md").read_text(encoding="utf-8")
    told = [line.partition("#")[0].strip() for line in page.splitlines()]
    assert all(command in told for command in COMMANDS.splitlines())


# -- and when the next table looks different --------------------------------------------------------------------


def test_columns_in_another_order_are_found_by_name(lab, fitted):
    folder = lab[0]
    order = [*SENSORS[::-1], "gain", "operator", "run_id", "t"]
    rewrite(folder / "new.csv", folder / "swapped.csv", order)
    done = pyloca(folder, "transform", "model.safetensors", "swapped.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == pyloca(folder, "transform", "model.safetensors", "new.csv").stdout


def test_a_missing_column_is_named(lab, fitted):
    folder = lab[0]
    rewrite(folder / "new.csv", folder / "lost.csv", [name for name in HEADER if name != "gap_m"])
    done = pyloca(folder, "transform", "model.safetensors", "lost.csv")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("Error: lost.csv: there is no column 'gap_m' in the table; it has run_id, t,")


def test_columns_that_the_fit_has_not_seen_are_named_and_ignored(lab, fitted):
    folder = lab[0]
    rewrite(folder / "new.csv", folder / "more.csv", [*HEADER, "batch", "valve"])
    done = pyloca(folder, "transform", "model.safetensors", "more.csv")
    assert done.returncode == 0
    assert done.stderr == "Ignored, because the model was fitted without: batch, valve.\n"
    assert done.stdout == pyloca(folder, "transform", "model.safetensors", "new.csv").stdout


def test_no_ids_no_time_stamp_no_operator_is_no_obstacle(lab, fitted):
    folder = lab[0]
    rewrite(folder / "new.csv", folder / "bare.csv", SENSORS)
    done = pyloca(folder, "transform", "model.safetensors", "bare.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "z0,z1"


def test_one_row_per_run_and_back_to_the_sensors(lab, fitted):
    folder = lab[0]
    done = pyloca(folder, "transform", "model.safetensors", "runs.csv", "--bursts")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (folder / "z.csv").read_text()  # every digit
    done = pyloca(folder, "transform", "model.safetensors", "new.csv", "--bursts", "--trust", "-o", "runs_z.csv")
    assert (done.returncode, done.stderr) == (0, "")
    header, ids, _ = read(folder / "runs_z.csv")
    assert header == ["run_id", "z0", "z1", "trust"]
    assert ids == [f"new-{i:02d}" for i in range(20)]
    done = pyloca(folder, "inverse", "model.safetensors", "runs_z.csv", "-o", "back.csv")
    assert (done.returncode, done.stderr) == (0, "")
    header, ids, back = read(folder / "back.csv")
    assert header == ["run_id", *SENSORS] and ids[3] == "new-03"
    rows, numbers = read_ids(folder / "new.csv"), read_sensors(folder / "new.csv")
    mean = numbers[[name == "new-03" for name in rows]].mean(axis=0)
    np.testing.assert_array_less(np.abs(back[3] - mean) / numbers.std(axis=0), 0.1)


# -- helpers ----------------------------------------------------------------------------------------------------


def typical_error(truth, Z, rigid):
    """Root mean squared distance to the truth after a rigid motion and one factor."""
    return np.sqrt(np.square(rigid.apply(Z) - truth).sum(axis=1).mean())


def rewrite(old, new, names):
    """The same rows with other columns: reordered, fewer, or more (filled with 1)."""
    with old.open(newline="") as source, new.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval=1.0, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(csv.DictReader(source))


def read_ids(path):
    with path.open(newline="") as file:
        return [row["run_id"] for row in csv.DictReader(file)]


def read_sensors(path):
    with path.open(newline="") as file:
        return np.array([[float(row[name]) for name in SENSORS] for row in csv.DictReader(file)])
