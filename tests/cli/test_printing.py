"""Names in files do not command the terminal, messages stay short, and no output is an input."""

import os
import subprocess
import sys

import pytest
from benchmarks.files.writing import SAME
from click.testing import CliRunner

from helpers import HANG, planar_bursts
from pyloca import Bursts
from pyloca.bursts import save_bursts
from pyloca.cli import cli
from pyloca.cli._printing import printable, shortened

RED, BELL, TITLE = "\x1b[31m", "\x07", "\x1b]0;owned\x07"


def run(*arguments):
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="pyloca")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("σ = 3 ± 1\n\tµm", "σ = 3 ± 1\n\tµm"),
        (f"{RED}x", r"\x1b[31mx"),
        ("a\rb", r"a\rb"),
        ("\x9b2J", r"\x9b2J"),
        ("\u202eabc", r"\u202eabc"),
        ("\x00\x7f", r"\x00\x7f"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text, seen):
    assert printable(text) == seen


def test_the_middle_of_a_long_message_is_left_out():
    assert shortened("x" * 4000) == "x" * 4000
    long = shortened("a" + "x" * 9_000_000 + "z")
    assert long[0] == "a"
    assert long[-1] == "z"
    assert "[9,000,002 characters in all]" in long
    assert len(long) < 4100


@pytest.fixture
def hostile(tmp_path):
    """Bursts whose names and ids are commands to a terminal; one of them has no spread."""
    data = planar_bursts(30, 10)[1]
    data[3] = data[3, :1]
    names = [f"p{TITLE}", f"q{RED}", "r\u202e"]
    return save_bursts(
        Bursts(data, ids=[f"{RED}{i}{BELL}" for i in range(30)], feature_names=names), tmp_path / "bursts.npz"
    )


def controls(text):
    return [character for character in text if not character.isprintable() and character not in "\n\t\r"]


@pytest.mark.parametrize("command", ["inspect", "fit", "transform"])
def test_hostile_names(hostile, tmp_path, command):
    options = {
        "inspect": [hostile, "--columns", "nosuch"],
        "fit": [hostile, "--json", "--max-strays", "0"],
        "transform": [tmp_path / f"m{BELL}.safetensors", hostile],
    }
    result = run(command, *options[command])
    assert result.exit_code in (3, 5)
    assert controls(result.stderr) == []
    assert r"\x" in result.stderr  # click itself strips colours where there is no terminal


@pytest.mark.skipif(os.name == "nt", reason="Windows has no pseudo-terminals")
def test_data_on_a_terminal():
    """What goes to a terminal is printable; in a pipe data stay as they are."""
    import pty

    say = "cli.command('say')(lambda: click.echo('\\x1b[31mid')); cli(['say'])"
    command = [sys.executable, "-c", f"import click; from pyloca.cli import cli; {say}"]
    leader, follower = pty.openpty()
    subprocess.run(command, stdout=follower, timeout=HANG, check=True)
    os.close(follower)
    shown = os.read(leader, 1000)
    os.close(leader)
    assert shown.strip() == rb"\x1b[31mid"


def test_a_table_of_many_columns(tmp_path):
    path = tmp_path / "wide.csv"
    names = [f"a_rather_long_name_of_a_column_{i}" for i in range(20_000)]
    path.write_text(",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    result = run("fit", path, "--json")
    assert result.exit_code == 3
    assert "there is no column 'burst_id'" in result.stderr
    assert len(result.stderr) < 5000


@pytest.mark.parametrize("arguments", SAME, ids=" ".join)
def test_an_output_is_no_input(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    for name in {name for command in SAME for name in command if "." in name} - {"link.csv", "./b.csv"}:
        (tmp_path / name).write_text("# content")
    (tmp_path / "link.csv").symlink_to("a.csv")
    result = run(*arguments)
    assert result.exit_code == 2
    assert "write to another file" in result.stderr
    assert all(path.read_text() == "# content" for path in tmp_path.iterdir())


def test_the_message_names_the_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("inspect", "b.npy", "--plot", "p.png", "--model", "p.png")  # neither is there yet
    assert "'p.png' is also --model; write to another file." in result.stderr
