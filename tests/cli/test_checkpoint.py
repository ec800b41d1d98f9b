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


def test_an_interrupt_before_the_first_checkpoint_leaves_the_earlier_one(folder, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(LOCA, "fit", interrupt)
    done = run("fit", "bursts.npy", "-o", "m.safetensors", *SMALL)
    assert done.exit_code == 130
    assert "The training is saved" not in done.stderr  # it is not of this fit
    assert (folder / "m.safetensors.checkpoint").read_bytes() == b"hours of work"


def test_all_files_of_a_checkpoint_are_deleted_once_the_model_is_written(folder):
    (folder / "m.safetensors.checkpoint.previous").write_bytes(b"hours of work, less ten seconds")
    options = ["--max-iter", "150", "--checkpoint-every", "0", *SMALL]
    assert run("fit", "bursts.npy", "-o", "m.safetensors", *options).exit_code == 4
    assert sorted(path.name for path in folder.iterdir()) == ["bursts.npy", "m.safetensors"]


def test_a_model_that_cannot_be_written_costs_no_checkpoint(folder, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(LOCA, "save", fail)
    done = run("fit", "bursts.npy", "-o", "m.safetensors", "--max-iter", "150", *SMALL)
    assert done.exit_code == 1 and "No space left on device" in done.stderr
    assert (folder / "m.safetensors.checkpoint").stat().st_size > 1000  # that of this fit
    assert (folder / "m.safetensors.checkpoint.previous").read_bytes() == b"hours of work"


def test_a_name_that_only_the_checkpoint_makes_too_long_ends_no_fit(folder):
    name = "m" * 233 + ".safetensors"
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = run("fit", "bursts.npy", "-o", name, "--max-iter", "150", *SMALL)
    assert done.exit_code == 4, done.stderr
    assert f"Warning: the checkpoint '{name}.checkpoint' cannot be written (File name too long)." in done.stderr
    assert (folder / name).exists()


def test_a_damaged_checkpoint_is_told(folder):
    done = run("fit", "bursts.npy", "-o", "m.safetensors", "--resume", *SMALL)
    assert done.exit_code == 5
    assert "m.safetensors.checkpoint: not a pyloca checkpoint file" in done.stderr
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
