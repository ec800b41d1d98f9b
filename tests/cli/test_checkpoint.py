"""`pyloca fit` and the checkpoint of an earlier fit: no mistyped option costs somebody's training."""

import warnings

import numpy as np
import pytest
from click.testing import CliRunner

from helpers import planar_bursts
from pyloca import LOCA
from pyloca.cli import cli

SMALL = ["--hidden-layers", "8", "-q"]


def run(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments], prog_name="pyloca")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    np.save(tmp_path / "bursts.npy", planar_bursts(40, 20)[1])
    (tmp_path / "m.safetensors.checkpoint").write_bytes(b"hours of work")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--tol", "5"], 2, "tol must be in [0, 1), or None; got 5.0."),
        (["--activation", "relu"], 2, "activation must be one of"),
        (["-d", "1"], 3, "Use a larger n_components"),  # only the data tell
        (["--device", "abacus"], 2, "device 'abacus' cannot be used here"),
        (["--feature-scale", "1,2"], 2, "feature_scale has shape (2,)"),
    ],
)
def test_a_fit_that_cannot_begin_leaves_it_alone(options, code, message, folder):
    done = run("fit", "bursts.npy", "-o", "m.safetensors", *options, *SMALL)
    assert done.exit_code == code, done.stderr
    assert message in " ".join(done.stderr.split())
    assert (folder / "m.safetensors.checkpoint").read_bytes() == b"hours of work"
    assert sorted(path.name for path in folder.iterdir()) == ["bursts.npy", "m.safetensors.checkpoint"]


def test_parameters_are_checked_before_the_data_are_read(folder):
    assert run("fit", "nosuch.csv", "-o", "m.safetensors", "--tol", "5").exit_code == 2


def test_a_fit_that_succeeds_leaves_none(folder):
    done = run("fit", "bursts.npy", "-o", "m.safetensors", "--max-iter", "3", *SMALL)
    assert done.exit_code == 4
    assert "Starting from scratch; --resume would continue 'm.safetensors.checkpoint'" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["bursts.npy", "m.safetensors"]


def test_an_interrupt_before_the_first_checkpoint_puts_the_earlier_one_back(folder, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(LOCA, "fit", interrupt)
    done = run("fit", "bursts.npy", "-o", "m.safetensors", *SMALL)
    assert done.exit_code == 130
    assert "The training is saved" not in done.stderr  # it is not of this fit
    assert (folder / "m.safetensors.checkpoint").read_bytes() == b"hours of work"


def test_every_warning_is_printed_once(folder, monkeypatch):
    fit = LOCA.fit

    def doubtful(self, *arguments, **options):
        for line in range(3):
            warnings.warn_explicit("the cup is cracked", UserWarning, "cup.py", line)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(LOCA, "fit", doubtful)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = run("fit", "bursts.npy", "-o", "m.safetensors", "--max-iter", "3", *SMALL)
    assert done.stderr.count("Warning: the cup is cracked") == 1
