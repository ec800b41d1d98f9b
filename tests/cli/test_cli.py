"""The command line: real processes where signals and exit codes matter, click's runner elsewhere."""

import json
import os
import signal
import subprocess
import sys
import tomllib
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

import pyloca
from helpers import HANG, RUN_PYLOCA
from pyloca import BurstError, ConvergenceError, ModelFileError, PylocaError, TrustWarning, _atomic
from pyloca.cli import cli, require
from pyloca.paper import demo

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "default", "PYTHONIOENCODING": "utf-8"}


def pyloca_process(*arguments):
    command = [sys.executable, "-m", "pyloca", *arguments]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, encoding="utf-8", timeout=HANG)


def run(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="pyloca")


@pytest.fixture
def small(monkeypatch):
    """The demo on a tenth of its data, stopped early."""
    examples = [
        replace(example, draw=partial(example.draw, n_bursts=200), parameters={"max_iter": 60})
        for example in demo.EXAMPLES
    ]
    monkeypatch.setattr(demo, "EXAMPLES", examples)


# -- usage ------------------------------------------------------------------------------------------------------------


def test_version_of_a_real_process():
    done = pyloca_process("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"pyloca {pyloca.__version__}\n", "")


@pytest.mark.slow
def test_an_unknown_command_of_a_real_process():
    done = pyloca_process("dmeo")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "No such command 'dmeo'. Did you mean 'demo'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_like_no_other_gets_the_list():
    result = run("frobnicate")
    assert result.exit_code == 2
    assert "There are: bursts, demo" in result.stderr


@pytest.mark.parametrize("arguments", [("--help",), ("-h",)])
def test_help_names_commands_and_exit_codes(arguments):
    result = run(*arguments)
    assert result.exit_code == 0
    assert "demo" in result.stdout
    assert "130 interrupted" in " ".join(result.stdout.split())
    assert result.stderr == ""


@pytest.mark.parametrize("command", [(), *((name,) for name in cli.commands)])
def test_examples_in_help_stand_on_lines_of_their_own(command):
    """Click keeps lines after a backspace; a raw docstring would print the letters instead."""
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "\\b" not in result.stdout and "\b" not in result.stdout
    assert command or "    pyloca inspect bursts.csv\n" in result.stdout


@pytest.mark.parametrize(
    ("words", "begun", "expected"),
    [([], "in", ["inspect", "inverse"]), (["fit"], "--res", ["--resume"]), (["fit", "x", "--solver"], "f", ["fast"])],
)
def test_the_shell_completes_commands_options_and_choices(words, begun, expected):
    complete = BashComplete(cli, {}, "pyloca", "_PYLOCA_COMPLETE")
    assert [item.value for item in complete.get_completions(words, begun)] == expected


@pytest.mark.slow
def test_the_script_for_the_shell_is_printed():
    environment = ENVIRONMENT | {"_PYLOCA_COMPLETE": "zsh_source"}
    command = [sys.executable, "-m", "pyloca"]
    done = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", timeout=HANG)
    assert done.stdout.startswith("#compdef pyloca")
    assert "_PYLOCA_COMPLETE=bash_source pyloca" in " ".join(run("--help").stdout.split())


def test_help_of_demo():
    result = run("demo", "--help")
    assert result.exit_code == 0
    for option in ("-o, --output", "--seed", "--json", "--debug"):
        assert option in result.stdout


@pytest.mark.parametrize(
    "arguments", [("--frobnicate",), ("demo", "--frobnicate"), ("demo", "--seed", "-1"), ("demo", "--seed", "x")]
)
def test_wrong_arguments(arguments, monkeypatch):
    monkeypatch.setattr(demo, "run_demo", lambda *_: pytest.fail("fitted all the same"))
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error" in result.stderr


def test_an_output_that_is_a_file_is_refused_before_any_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "run_demo", lambda *_: pytest.fail("fitted all the same"))
    (tmp_path / "file").write_text("mine")
    for output in (tmp_path / "file", tmp_path / "file" / "below"):
        result = run("demo", "-o", output)
        assert result.exit_code == 2, result.output
        assert str(output) in result.stderr.replace("\n", "")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.slow
def test_without_matplotlib_the_demo_names_the_extra(tmp_path):
    code = "import sys; sys.modules['matplotlib'] = None; from pyloca.cli import main; main()"
    command = [sys.executable, "-c", code, "demo", "-o", str(tmp_path / "out")]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, encoding="utf-8", timeout=HANG)
    assert done.returncode == 2
    assert "pip install 'pyloca[report]'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_help_to_a_full_disk_ends_without_a_traceback():
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "pyloca", "--help"]
        done = subprocess.run(command, env=ENVIRONMENT, stdout=full, stderr=subprocess.PIPE, timeout=HANG)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_require_is_silent_about_what_is_there():
    assert require("numpy", "none") is None


# -- the demo ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_demo_writes_a_table_and_pictures(tmp_path):
    output = tmp_path / "new" / "pictures"
    result = run("demo", "-o", output, "--seed", 3)
    assert result.exit_code == 0, result.stderr
    header, _, wifi, mushroom = result.stdout.strip().splitlines()
    assert header.split() == ["data", "set", "N", "M", "D", "stress", "paper", "seconds", "in", "words"]
    assert wifi.split()[:4] == ["wifi", "200", "6", "17"]
    assert "px²" in wifi
    assert "picture only" in wifi
    assert wifi.endswith("px typical distance error on a 1000 px floor")
    assert mushroom.split()[:4] == ["mushroom", "200", "200", "2"]
    assert mushroom.split()[5] == "1.5e-05"
    assert sorted(path.name for path in output.iterdir()) == ["mushroom.png", "wifi.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n") for path in output.iterdir())
    assert str(output / "wifi.png") in result.stderr.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_demo_as_json(tmp_path):
    result = run("demo", "-o", tmp_path, "--json")
    assert result.exit_code == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["pyloca"] == pyloca.__version__
    assert facts["seed"] == 0
    wifi, mushroom = facts["results"]
    assert (wifi["name"], wifi["paper_stress"], wifi["unit"]) == ("wifi", None, "px")
    assert (mushroom["name"], mushroom["paper_stress"], mushroom["unit"]) == ("mushroom", 1.5e-5, "")
    assert mushroom["typical_error"] ** 2 == pytest.approx(mushroom["stress"])
    assert mushroom["picture"] == str(tmp_path / "mushroom.png")
    assert "data set" in result.stderr


def test_doubts_about_a_result_are_words_on_stderr(tmp_path, monkeypatch):
    def doubtful(*_):
        warnings.warn("held-out bursts are not white", TrustWarning, stacklevel=1)
        return []

    monkeypatch.setattr(demo, "run_demo", doubtful)
    result = run("demo", "-o", tmp_path, "--json")
    assert result.exit_code == 0
    assert result.stderr.startswith("Warning: held-out bursts are not white\n")
    assert json.loads(result.stdout)["results"] == []


# -- exit codes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("debug", [(), ("before",), ("after",)])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BurstError("burst 7 is empty"), 3),
        (ConvergenceError("the loss is nan"), 4),
        (ModelFileError("not a model"), 5),
        (PylocaError("something else"), 1),
        (OSError(28, "No space left on device"), 1),
        (ZeroDivisionError("a defect"), 1),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_every_error_has_its_exit_code(error, code, debug, tmp_path, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(demo, "run_demo", fail)
    before, after = ["--debug"] * ("before" in debug), ["--debug"] * ("after" in debug)
    result = run(*before, "demo", "-o", tmp_path, *after)
    assert result.exit_code == code
    assert result.stdout == ""
    assert (getattr(error, "strerror", None) or str(error)) in result.stderr
    assert ("Traceback" in result.stderr) == bool(debug)


# -- interruption -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_an_interrupt_while_writing_leaves_no_file(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_atomic.os, "replace", interrupt)
    result = run("demo", "-o", tmp_path)
    assert result.exit_code == 130
    assert result.stderr.splitlines()[-1] == "Interrupted."
    assert list(tmp_path.iterdir()) == []


LONG_DEMO = """
from dataclasses import replace
from functools import partial
from pyloca.paper import demo
demo.EXAMPLES = [replace(example, draw=partial(example.draw, n_bursts=1500)) for example in demo.EXAMPLES]
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send to a process")
@pytest.mark.parametrize(("name", "code", "word"), [("SIGINT", 130, "Interrupted."), ("SIGTERM", 143, "Terminated.")])
def test_a_signal_during_the_fit(name, code, word, tmp_path):
    command = [sys.executable, "-c", LONG_DEMO + RUN_PYLOCA, "demo", "--json", "-o", str(tmp_path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=pipe, stderr=pipe, encoding="utf-8") as process:
        try:
            for line in process.stderr:
                if line.startswith("fit encoder"):
                    break
            process.send_signal(getattr(signal, name))
            stdout, stderr = process.communicate(timeout=HANG)
        finally:
            process.kill()
    assert process.returncode == code, stderr
    assert stdout == ""
    assert stderr.splitlines()[-1] == word
    assert "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []


def test_the_console_script_heeds_signals_before_its_imports():
    script = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"]["pyloca"]
    assert script == "pyloca.__main__:main"
    source = Path("src/pyloca/__main__.py").read_text(encoding="utf-8")
    assert source.index("heed()") < source.index("from pyloca.cli import")
