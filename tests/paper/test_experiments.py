"""The paper's experiments in their quick version: figures, pictures, page, files that are kept, and exit codes.

Every experiment is fitted once, by the fixture `done`; what is run again here borrows the cached model of `frame`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, is_dataclass

import numpy as np
import pytest
from click.testing import CliRunner

import pyloca
from helpers import HANG, RUN_PYLOCA
from pyloca import LOCA
from pyloca.cli import cli
from pyloca.paper.experiments import EXPERIMENTS, Merit, Result
from pyloca.paper.experiments._measurements import smooth_map, swiss_roll
from pyloca.paper.reproduce import FIGURES, Job, Run, holds, make_page, reproduce, summarize, table
from pyloca.paper.reproduce._applied import wall_lines
from pyloca.report import render

pytestmark = pytest.mark.slow  # the fixture `done` fits every experiment


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """All experiments, quick, seed 0: the output directory, the runs, and what was said."""
    output, said = tmp_path_factory.mktemp("reproduce"), []
    runs = list(reproduce(list(EXPERIMENTS), [0], output, quick=True, say=said.append))
    return output, runs, said


@pytest.fixture
def copy(done, tmp_path):
    """A directory with all that was done, to damage."""
    shutil.copytree(done[0], tmp_path / "out")
    return tmp_path / "out"


def run(*arguments):
    return CliRunner().invoke(cli, ["reproduce", *map(str, arguments)], prog_name="pyloca")


def again(output, *names):
    return list(reproduce(names, [0], output, quick=True, say=lambda _: None))


# -- results ----------------------------------------------------------------------------------------------------------


def test_every_experiment_runs_and_its_figures_are_finite(done):
    _, runs, said = done
    assert [run.job.experiment.name for run in runs] == list(EXPERIMENTS)
    assert not any(run.kept for run in runs)
    for run in runs:
        record = run.record
        assert {"pyloca", "name", "seed", "solver", "quick", "settings", "figures", "seconds"} < set(record)
        assert record["seconds"] > 0
        assert any(merit["bar"] is not None for merit in record["figures"].values())
        for merit in record["figures"].values():
            assert set(merit) == {field.name for field in fields(Merit)}
            assert np.isfinite(merit["value"])
        assert sum(text.startswith(f"[{runs.index(run) + 1}/8]") for text in said) >= 2


def test_quick_figures_are_of_the_right_size(done):
    """About five times what they are: small data is not good, but nothing is folded or collapsed."""
    figures = {name: merit["value"] for run in done[1] for name, merit in run.record["figures"].items()}
    most = {
        "mushroom": 1e-3,
        "frame": 2e-3,
        "frame, interpolation": 5e-3,
        "frame, extrapolation": 2e-3,
        "decoder": 1e-2,
        "sphere": 8e-3,
        "sphere, unseen cap": 1e-3,
        "flatten": 0.02,
        "wifi": 0.05,
    }
    assert {name: figures[name] for name in most if not figures[name] < most[name]} == {}
    assert figures["mushroom"] < figures["mushroom, A-DM"] < figures["mushroom, DM"]
    assert figures["sphere"] < figures["sphere, A-DM"] < figures["sphere, DM"]
    assert figures["dimension, sphere"] == 3
    assert figures["dimension, Swiss roll"] == 2


def test_the_coordinates_do_not_depend_on_the_instrument(done):
    figures = done[1][-1].record["figures"]
    assert figures["invariance, RMS"]["value"] < 0.02  # twice σ, on a square of side 1
    assert figures["invariance, stress"]["value"] < 3e-4


def test_a_result_has_a_json_able_part_and_a_scene():
    result = EXPERIMENTS["decoder"].run(0, quick=True)
    assert isinstance(result, Result)
    facts = json.loads(json.dumps(result.to_dict()))
    assert facts["figures"]["decoder"]["paper"] == 2.3e-4
    assert facts["settings"] == json.loads(json.dumps(EXPERIMENTS["decoder"].settings(quick=True)))
    assert result.scene["latent"].shape == (50, 200, 2)
    with pytest.raises(FrozenInstanceError):
        result.seconds = 0


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_settings_are_frozen_and_the_full_ones_differ_from_the_quick(name):
    experiment = EXPERIMENTS[name]
    assert experiment.name == name
    assert experiment.title and experiment.about.endswith(".")
    for settings in (experiment.full, experiment.quick):
        assert is_dataclass(settings)
        hash(settings)  # tuples and numbers all the way down
        with pytest.raises(FrozenInstanceError):
            setattr(settings, fields(settings)[0].name, None)
    assert experiment.full != experiment.quick


def test_the_settings_are_those_of_the_paper():
    full = {name: experiment.full for name, experiment in EXPERIMENTS.items()}
    assert (full["mushroom"].n_bursts, full["mushroom"].n_points, full["mushroom"].burst_std) == (2000, 200, 0.01)
    assert (full["sphere"].n_points, full["sphere"].paper_layers) == (400, (100, 100))
    assert (full["wifi"].n_bursts, full["wifi"].n_receivers, full["wifi"].n_transmitters) == (4000, 6, 17)
    assert full["decoder"].frame is full["frame"]
    assert full["sphere"].parameters("paper") == {
        "solver": "paper",
        "hidden_layers": (100, 100),
        "decoder_activation": "leaky_relu",
        "max_iter": None,
    }
    for experiment in EXPERIMENTS.values():  # the fast solver has its defaults: nothing is tuned to an experiment
        parameters = getattr(experiment.full, "frame", experiment.full).parameters("fast")
        assert parameters == {"solver": "fast", "hidden_layers": LOCA().hidden_layers}


def test_instruments_neither_tear_nor_flatten():
    X = np.random.RandomState(0).uniform(size=(200, 2))
    for f, dim in ((swiss_roll, 3), (smooth_map(2, 8, np.random.RandomState(0)), 8)):
        step = 1e-5
        sides = [(f(X + step * axis) - f(X - step * axis)) / (2 * step) for axis in np.eye(2)]
        stretch = np.linalg.svd(np.stack(sides, axis=2), compute_uv=False)
        assert f(X).shape == (200, dim)
        assert stretch.min() > 0.2 and stretch.max() < 8


# -- pictures and page ------------------------------------------------------------------------------------------------


def test_every_picture_is_drawn(done):
    output, runs, _ = done
    pictures = [path for run in runs for path in run.job.pictures.values()]
    assert len(pictures) == sum(map(len, FIGURES.values())) == len(list(output.glob("*.png")))
    for path in pictures:
        image = path.read_bytes()
        assert image[:8] == b"\x89PNG\r\n\x1a\n"
        assert int.from_bytes(image[16:20], "big") >= 1200


def test_the_page_has_the_table_all_pictures_and_two_live_models(done):
    page = make_page(done[1])
    assert len(page.sections) == 1 + len(EXPERIMENTS)
    assert [len(section.figures) for section in page.sections[1:]] == [len(FIGURES[name]) for name in EXPERIMENTS]
    live = [explorer for section in page.sections for explorer in section.explorers]
    assert [explorer.data["kind"] for explorer in live] == ["measurement", "floor"]
    assert "quick" in page.warnings[0]
    html = render(page)
    for name, experiment in EXPERIMENTS.items():
        assert name in html and experiment.title in html
    assert html.count("<img") == sum(map(len, FIGURES.values()))


def test_walls_are_the_outline_of_the_union():
    rooms = np.array([[0.0, 0.0, 10.0, 10.0], [10.0, 4.0, 20.0, 6.0]])  # a door of 2 between them
    walls = wall_lines(rooms, 0.5)
    steps = np.linalg.norm(np.diff(walls, axis=0), axis=1)
    assert np.nansum(steps) == pytest.approx(10 * 3 + 8 + 10 * 2 + 2, abs=2.0)
    door = (walls[:, 0] == 10) & (walls[:, 1] > 4) & (walls[:, 1] < 6)
    assert not door.any()


# -- the table --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "bar", "paper", "exact", "verdict"),
    [
        ([1, 2, 9], 2, 10, False, True),
        ([1, 2, 11], 2, 10, False, False),  # a seed misses the paper's figure
        ([1, 3, 9], 2, 10, False, False),  # the median misses the bar
        ([1, 2, 9], 2, None, False, True),
        ([1, 2, 11], 2, None, False, False),  # five times the bar, where the paper has none
        ([3, 3], 3, 3, True, True),
        ([3, 2], 3, 3, True, False),
    ],
)
def test_when_a_row_holds(values, bar, paper, exact, verdict):
    assert holds(values, bar, paper, exact) is verdict


def record(name, value, seconds=1.0, quick=False, **merit):
    return {"quick": quick, "seconds": seconds, "figures": {name: {**vars(Merit(value)), **merit}}}


def test_the_table_shows_median_worst_and_verdict():
    records = [record("a", v, seconds=v, bar=2.0, paper=None) for v in (1.5, 0.5, 2.5)]
    rows = summarize([*records, record("rival", 7e-3, paper=2e-3), record("d", 3.0, bar=3, paper=3, exact=True)])
    assert [(row.name, row.median, row.worst, row.holds) for row in rows] == [
        ("a", 1.5, 2.5, True),
        ("rival", 7e-3, 7e-3, None),
        ("d", 3.0, 3.0, True),
    ]
    lines = table(rows).splitlines()
    assert lines[0].split()[:2] == ["experiment", "paper"]
    assert lines[3].split() == ["rival", "2.0e-03", "7.0e-03", "7.0e-03", "—", "—", "—"]
    assert lines[4].split() == ["d", "3", "3", "3", "3", "1.0", "yes"]
    assert summarize([record("a", 9.0, quick=True, bar=1.0)])[0].holds is None  # a quick run is not judged


# -- what is kept -----------------------------------------------------------------------------------------------------


def test_what_was_done_is_kept(done):
    output, runs, _ = done
    before = {path: path.stat().st_mtime_ns for path in output.iterdir()}
    said = []
    kept = list(reproduce(list(EXPERIMENTS), [0], output, quick=True, say=said.append))
    assert all(run.kept for run in kept)
    assert [run.record for run in kept] == [run.record for run in runs]
    assert all(text.endswith(": kept") for text in said)
    assert {path: path.stat().st_mtime_ns for path in output.iterdir()} == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda facts: facts["settings"].update(line_points=49),
        lambda facts: facts["settings"]["frame"].update(n_bursts=301),
        lambda facts: facts.update(pyloca="0.0.1"),
        lambda facts: facts.update(figures={}),
        lambda facts: facts["figures"]["decoder"].update(value=float("nan")),
        lambda facts: facts["figures"]["decoder"].update(value="low"),
        lambda facts: facts["figures"]["decoder"].pop("value"),
        lambda facts: facts["figures"]["decoder"].update(colour="red"),
        lambda facts: facts.pop("seconds"),
        lambda facts: facts.pop("trust_warnings"),
    ],
)
def test_another_setting_version_or_a_damaged_figure_is_not_kept(copy, damage):
    job = Job(EXPERIMENTS["decoder"], 0, "fast", True, copy, drawn=True)
    facts = json.loads(job.record.read_text())
    assert job.kept() == facts
    damage(facts)
    job.record.write_text(json.dumps(facts))
    assert job.kept() is None


@pytest.mark.parametrize("content", [b"", b'{"name": "dec', b"[]", b"3", b"\xff\xfe"])
def test_a_corrupt_file_is_not_kept(copy, content):
    job = Job(EXPERIMENTS["decoder"], 0, "fast", True, copy, drawn=True)
    job.record.write_bytes(content)
    assert job.kept() is None


def test_what_is_not_kept_is_run_again(copy):
    path = copy / "decoder-fast-quick-seed0.json"
    whole = json.loads(path.read_text())
    path.write_text(json.dumps(whole)[:-9])
    assert not again(copy, "decoder")[0].kept
    assert json.loads(path.read_text())["figures"] == whole["figures"]
    assert again(copy, "decoder")[0].kept


def test_a_missing_picture_is_drawn_again(copy):
    picture = copy / "decoder-fast-quick-seed0-lines.png"
    picture.unlink()
    assert not again(copy, "decoder")[0].kept
    assert picture.is_file()


def test_only_the_first_seed_is_drawn(tmp_path):
    drawn = [Job(EXPERIMENTS["wifi"], seed, "fast", False, tmp_path, drawn=seed == 3) for seed in (3, 4)]
    assert [(job.stem, len(job.pictures), job.model is not None) for job in drawn] == [
        ("wifi-fast-seed3", 1, True),
        ("wifi-fast-seed4", 0, False),
    ]


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_keeps_prints_and_writes_the_page(copy):
    result = run("--quick", "-o", copy)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count(": kept") == len(EXPERIMENTS)
    assert "nothing is judged" in result.stderr
    assert result.stdout.split()[0] == "experiment"
    assert (copy / "index.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_json_goes_to_stdout_and_the_table_to_stderr(copy):
    result = run("decoder", "frame", "--quick", "-o", copy, "--json")
    facts = json.loads(result.stdout)
    assert (facts["pyloca"], facts["seeds"], facts["kept"]) == (pyloca.__version__, [0], 2)
    assert [row["name"] for row in facts["rows"]][:2] == ["frame", "frame, interpolation"]
    assert "experiment" in result.stderr


@pytest.mark.parametrize(("value", "code", "verdict"), [(1e-5, 0, "yes"), (3e-5, 4, "NO")])
def test_the_exit_code_tells_whether_every_bar_holds(done, tmp_path, value, code, verdict):
    """A full run whose files are there already: what is judged is what they say."""
    job = Job(EXPERIMENTS["decoder"], 0, "fast", False, tmp_path, drawn=True)
    merit = {"value": value, "bar": 2e-5, "paper": 2.3e-4, "exact": False, "unit": ""}
    facts = {**job._stamp(), "figures": {"decoder": merit}, "seconds": 1.0, "trust_warnings": []}
    job.record.write_text(json.dumps(facts))
    shutil.copy(done[0] / "decoder-fast-quick-seed0-lines.png", job.pictures["lines"])
    result = run("decoder", "--seeds", "0", "-o", tmp_path)
    assert result.exit_code == code, result.stderr
    assert result.stdout.splitlines()[-1].endswith(verdict)
    assert "A row holds if" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mushrom"], "Did you mean 'mushroom'?"),
        (["xyz"], "There are: mushroom, frame"),
        (["wifi", "--seeds", "a"], "expected seeds such as 0-9"),
        (["wifi", "--seeds", "5-2"], "not a range of seeds"),
        (["wifi", "--seeds", "0-4294967296"], "not a range of seeds"),
        (["wifi", "--solver", "slow"], "slow"),
    ],
)
def test_wrong_arguments_are_refused_before_any_work(tmp_path, arguments, message):
    result = run(*arguments, "-o", tmp_path / "out")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


def test_interrupted_it_keeps_what_was_done(done, tmp_path):
    for path in done[0].glob("mushroom*"):
        shutil.copy(path, tmp_path)
    before = {path.name for path in tmp_path.iterdir()}
    command = [sys.executable, "-c", RUN_PYLOCA, "reproduce", "mushroom", "frame", "--quick", "-o", str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, encoding="utf-8") as process:
        try:
            lines = []
            for line in process.stderr:
                lines.append(line.strip())
                if line.strip().endswith("frame, seed 0: running"):
                    break
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=HANG)
        finally:
            process.kill()
    assert process.returncode == 130, stderr
    assert lines[0] == "[1/2] mushroom, seed 0: kept"
    assert (stdout, stderr.splitlines()[-1]) == ("", "Interrupted.")
    assert {path.name for path in tmp_path.iterdir()} == before


def test_doubts_are_on_the_page(done):
    first = next(run for run in done[1] if run.job.experiment.name == "decoder")
    doubtful = Run(first.job, {**first.record, "trust_warnings": ["it is folded."]}, kept=True)
    section = make_page([doubtful]).sections[1]
    assert section.paragraphs[-1] == "Trust warning for seed 0: it is folded."
