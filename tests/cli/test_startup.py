"""Help and wrong usage answer at once: they import nothing that takes time. `benchmarks/startup.py` has the seconds."""

import inspect
import subprocess
import sys

import pytest

from helpers import HANG
from pyloca import LOCA
from pyloca.cli._reproduce import EXPERIMENTS as NAMES
from pyloca.cli._settings import DEFAULTS
from pyloca.paper.experiments import EXPERIMENTS

HEAVY = ("torch", "sklearn", "numpy", "scipy", "matplotlib", "tqdm", "pandas")

# Runs the command line, then says which heavy packages it has imported.
RUN = f"""
import sys
from pyloca.cli import main
try:
    main()
finally:
    print("imported:", *(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("--help", 0),
        ("--version", 0),
        ("fit --help", 0),
        ("transform --help", 0),
        ("report --help", 0),
        ("reproduce --help", 0),
        ("export --help", 0),
        ("fit data.csv --print-config", 0),
        ("", 2),
        ("fti", 2),
        ("fit", 2),
        ("fit data.csv", 2),
        ("fit data.csv --frobnicate", 2),
        ("fit data.csv --solver slow", 2),
        ("fit data.csv -d two --json", 2),
        ("transform model.safetensors", 2),
        ("reproduce mushrom", 2),
        ("export model.safetensors -o model.txt", 2),
        ("reproduce --seeds x", 2),
    ],
)
def test_nothing_heavy_is_imported(arguments, code):
    command = [sys.executable, "-c", RUN, *arguments.split()]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=HANG, check=False)
    assert done.returncode == code, done.stderr
    assert done.stderr.splitlines()[-1] == "imported:"


def test_the_settings_are_those_of_the_estimator():
    """They stand twice so that help need not import LOCA."""
    elsewhere = {"self", "encoder", "decoder", "callbacks", "verbose"}
    parameters = inspect.signature(LOCA.__init__).parameters
    expected = {name: p.default for name, p in parameters.items() if name not in elsewhere}
    assert expected | {"random_state": 0} == DEFAULTS
    assert tuple(EXPERIMENTS) == NAMES
