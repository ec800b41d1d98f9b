"""Noise, spikes, strays, gaps and known distances from the shell, as a person runs it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from pyloca import LOCA, Bursts
from pyloca.bursts import save_bursts
from pyloca.cli import cli

NAMES = ["p1", "p2", "q", "T", "u"]
IDS = [f"run{i}" for i in range(200)]
NOISE = np.array([0.02, 0, 0, 12.0, 0])
TINY = ["-d", 2, "--hidden-layers", 8, "--max-iter", 60, "-q"]  # not finished: the exit code is 4


def sensors(x):
    a, b = x[..., 0], x[..., 1]
    return np.stack(
        [a + 0.3 * b**2, b + 0.2 * np.sin(3 * a), np.sin(2 * a + b), 1000 * np.cos(2 * b - a), a * b], axis=-1
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("dirty")
    random = np.random.RandomState(0)
    X = random.uniform(size=(200, 2))
    clean = sensors(X[:, None] + 0.02 * random.standard_normal((200, 30, 2)))

    def noise(*shape):
        return NOISE * random.standard_normal((*shape, 5))

    def write(name, points, ids=IDS, names=NAMES):
        save_bursts(Bursts(points, ids=ids, feature_names=names), path / name)

    noisy = clean + noise(200, 30)
    write("noisy.csv", noisy)
    still = sensors(X[:20])[:, None] + noise(20, 50)
    write("static.csv", still[:, :, ::-1], IDS[:20], NAMES[::-1])  # in another order
    np.save(path / "static.npy", still)
    write("short.csv", still[:, :, :3], IDS[:20], NAMES[:3])
    apart = clean.copy()
    apart[17] += 50
    apart[40, :, :] = apart[40, :1]
    spikes = random.uniform(size=(200, 30)) < 0.02
    apart[spikes] += 0.4 * random.standard_normal((spikes.sum(), 5)) * [1, 1, 1, 1000, 1]
    write("dirty.csv", apart)
    lines = (path / "noisy.csv").read_text().splitlines()
    lines[5], lines[50] = (lines[row].rsplit(",", 1)[0] + cell for row, cell in ((5, ","), (50, ",NaN")))
    (path / "gaps.csv").write_text("\n".join(lines))
    rows = [(i, j, np.linalg.norm(X[i] - X[j])) for i, j in [(0, 1), (2, 3), (5, 9), (20, 30)]]
    (path / "pairs.csv").write_text("a,b,distance\n" + "".join(f"run{i},run{j},{far}\n" for i, j, far in rows))
    return path


def run(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments], prog_name="pyloca")


def line(text, name):
    return next(row for row in text.splitlines() if row.startswith(name))


# -- noise --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "origin"),
    [
        (["--measurement-noise", "estimate"], "estimated: "),
        (["--measurement-noise", "0.02,0,0,12,0"], "as given: "),
        (["--static", "static.csv"], "measured in the static bursts: "),
        (["--static", "static.npy"], "measured in the static bursts: "),
    ],
)
def test_inspect_tells_the_noise_of_each_sensor_the_loudest_first(options, origin, folder):
    options = [folder / option if option.startswith("static.") else option for option in options]
    done = run("inspect", folder / "noisy.csv", "-d", 2, "--units", "T=K", *options)
    assert done.exit_code == 0, done.output
    told = line(done.stdout, "noise  ")
    assert origin + "p1 0.02, T 12 K" in told and "tangent" in told
    assert "k = 2" in done.stdout and "NOTE" not in done.stdout


def test_noise_of_single_sensors_is_not_called_a_tangent(folder):
    done = run("inspect", folder / "noisy.csv", "-d", 2)
    assert "noise of single sensors explains the others (p1, T)" in line(done.stdout, "NOTE")


def test_a_fit_with_static_bursts_says_so_and_keeps_it(folder, tmp_path):
    model = tmp_path / "m.safetensors"
    files = ["--static", folder / "static.csv", "--distances", folder / "pairs.csv", "-o", model]
    done = run("fit", folder / "noisy.csv", *TINY, *files, "--json")
    assert done.exit_code == 4, done.output
    assert "noise            measured in the static bursts: p1 0.02, T 12" in done.stderr
    assert "Scale: factor" in done.stderr and "from 4 distances" in done.stderr
    facts = json.loads(done.stdout)
    assert facts["noise"].startswith("measured") and facts["rescaling"] is not None
    again = LOCA.load(model)
    assert again.diagnostics_.noise == facts["noise"]
    np.testing.assert_allclose(again.noise_.deviations[[0, 3]], NOISE[[0, 3]], rtol=0.1)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--measurement-noise", "0.1,0.2"], 2, "has shape (2,); with N = 200 bursts of D = 5 sensors"),
        (["--measurement-noise", "-1"], 2, "expected 'estimate', a number ≥ 0"),
        (["--measurement-noise", "1,"], 2, "or one for each sensor such as 0.1,0.1,25; got '1,'"),
        (["--measurement-noise", "guess"], 2, "got 'guess'"),
        (["--measurement-noise", "5000"], 3, "noise"),
        (["--static", "nowhere.csv"], 2, "'nowhere.csv' does not exist"),
        (["--static", "short.csv"], 3, "there is no column 'T', 'u'"),
        (["--static", "static.csv", "--measurement-noise", "estimate"], 2, "give one of them"),
        (["--static", "static.csv", "--burst-id", "u"], 3, "u"),
        (["--max-strays", "2"], 2, "max_strays must be a fraction of the bursts"),
        (["--missing", "ignore"], 2, "'ignore' is not one of 'raise', 'drop'"),
        (["--perturbations", "dx"], 3, "no column 'dx' of perturbations"),
    ],
)
@pytest.mark.parametrize("command", ["inspect", "fit"])
def test_what_goes_wrong(command, options, code, message, folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = run(command, "noisy.csv", *options, *(["--json", *TINY] if command == "fit" else []))
    assert done.exit_code == code, done.output
    assert message in done.stderr and "Traceback" not in done.stderr


def test_the_paper_solver_does_not_ignore_noise(folder):
    done = run("fit", folder / "noisy.csv", *TINY, "--json", "--solver", "paper", "--static", folder / "static.csv")
    assert done.exit_code == 2 and "cannot take their measurement noise into account" in done.stderr


def test_noise_per_sensor_is_kept_in_a_config(folder):
    done = run("fit", folder / "noisy.csv", "--measurement-noise", "0.02,0,0,12,0", "--print-config")
    assert "measurement_noise = [0.02, 0.0, 0.0, 12.0, 0.0]" in done.stdout


# -- spikes, strays, gaps -----------------------------------------------------------------------------------------


def test_points_set_aside_and_strays_are_told_by_inspect(folder):
    done = run("inspect", folder / "dirty.csv")
    assert done.exit_code == 0, done.output
    assert "points (1." in line(done.stdout, "set aside") and "as spikes" in line(done.stdout, "set aside")
    assert "left out          burst 'run17' lies apart" in done.stdout
    assert "left out          burst 'run40' " in done.stdout
    done = run("inspect", folder / "dirty.csv", "--max-strays", 0)
    assert done.exit_code == 3 and "burst 'run40'" in done.stderr


def test_points_set_aside_and_strays_are_told_by_fit(folder):
    done = run("fit", folder / "dirty.csv", *TINY, "--json")
    assert done.exit_code == 4, done.output
    told = " ".join(done.stderr.split())
    assert "2 of 200 bursts are not used: 'run17' (lies apart" in told and "'run40' (" in told
    assert "as spikes, in " in told
    facts = json.loads(done.stdout)
    assert set(facts["strays"]) == {"run17", "run40"} and facts["set_aside"] > 50
    assert run("fit", folder / "dirty.csv", *TINY, "--json", "--max-strays", 0).exit_code == 3


def test_gaps_are_refused_or_dropped(folder):
    done = run("inspect", folder / "gaps.csv")
    assert done.exit_code == 3 and "u: 2 cells in bursts 'run0', 'run1'" in done.stderr
    done = run("inspect", folder / "gaps.csv", "--missing", "drop", "--measurement-noise", "estimate")
    assert done.exit_code == 0, done.output
    assert "dropped 2 of 6,000 points (u: 2 cells" in done.stderr and "M = 29..30" in done.stdout
