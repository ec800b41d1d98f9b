"""``pyloca export``: files, words on stderr, JSON on stdout, exit codes."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from pyloca import export
from pyloca.cli import _export, cli
from pyloca.predict import load
from varieties import fitted, measured


@pytest.fixture
def model(tmp_path):
    return fitted("tanh").save(tmp_path / "model.safetensors")


def run(*arguments):
    return CliRunner().invoke(cli, ["export", *map(str, arguments)], prog_name="pyloca")


def test_the_kinds_are_those_of_the_library():
    """They stand twice so that help need not import PyTorch."""
    assert _export.SUFFIXES == export.SUFFIXES


def test_three_kinds(model, tmp_path):
    for to, name, files in (
        ("onnx", "a.onnx", ["a.onnx", "a.decoder.onnx", "a.trust.onnx"]),
        ("numpy", "a.safetensors", ["a.safetensors"]),
        ("c", "a.h", ["a.h"]),
    ):
        done = run(model, "--to", to, "-o", tmp_path / name)
        assert (done.exit_code, done.stdout) == (0, "")
        for file in files:
            assert f"{file}: {(tmp_path / file).stat().st_size:,} bytes" in done.stderr
        assert f"parity of {to} (float64" in done.stderr and "decoded training places" in done.stderr
    assert load(tmp_path / "a.safetensors").n_features == 3


def test_json_and_data(model, tmp_path):
    np.save(tmp_path / "bursts.npy", measured("tanh"))
    done = run(model, "-o", tmp_path / "a.h", "--data", tmp_path / "bursts.npy", "--json", "--dtype", "float32")
    facts = json.loads(done.stdout)
    assert facts["training"] == "training means" and facts["target"] == "c" and facts["dtype"] == "float32"
    assert set(facts["differences"]) == {"encode", "decode", "jacobian", "trust"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["model.safetensors", "-o", "a.txt"], 2, "does not say what to write"),
        (["model.safetensors", "--to", "c", "-o", "a.onnx"], 2, "expected a .h file"),
        (["model.safetensors", "--to", "numpy", "-o", "model.safetensors"], 2, "is the input file"),
        (["model.safetensors", "-o", "no/a.h"], 2, "there is no directory"),
        (["missing.safetensors", "-o", "a.h"], 5, "cannot be read"),
        (["bursts.npy", "-o", "a.h"], 5, "not a pyloca model file"),
        (["model.safetensors", "-o", "a.h", "--data", "model.safetensors"], 3, ""),
    ],
)
def test_wrong_usage_and_wrong_files(arguments, code, words, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("bursts.npy", measured("tanh"))
    before = model.read_bytes()
    done = run(*arguments)
    assert done.exit_code == code and words in done.stderr, done.stderr
    assert model.read_bytes() == before and not (tmp_path / "a.h").exists()
