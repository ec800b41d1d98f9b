"""An interrupted fit goes on where it was: in Python by an exception, from the shell by real signals."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
import torch

from helpers import HANG, RUN_PYLOCA, planar_bursts
from pyloca import LOCA, ModelFileError, TrustWarning
from pyloca.metrics import stress
from pyloca.solvers import _checkpoint, _paper


def interrupt(stage, iteration):
    """A callback that is a Ctrl-C at the first check of `stage` at or after `iteration`."""

    def callback(record):
        if record["stage"] == stage and record["iteration"] >= iteration:
            raise KeyboardInterrupt

    return callback


def fit_twice(path, bursts, callback, **options):
    """A fit that is interrupted, and one that goes on from its checkpoint."""
    options = {"burst_std": 0.01, "random_state": 0, "hidden_layers": (16,)} | options
    with pytest.raises(KeyboardInterrupt):
        LOCA(2, **options, callbacks=[callback]).fit(bursts, checkpoint=path)
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    return LOCA(2, **options), LOCA(2, **options).fit(bursts, checkpoint=path)


# -- the fast solver --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["whiten", "decode"])
def test_a_resumed_fit_is_as_good(stage, tmp_path):
    X, bursts = planar_bursts(200, 30)
    fresh, resumed = fit_twice(tmp_path / "c", bursts, interrupt(stage, 0))
    whole = fresh.fit(bursts)
    assert stress(X, resumed.embedding_) < max(2 * stress(X, whole.embedding_), 1e-6)
    assert resumed.converged_ and not resumed.diagnostics_.warnings
    # the history is that of both runs, and nothing that was finished is done again
    stages = [record["stage"] for record in resumed.history_]
    assert stages[: stages.index(stage) + 1] == [r["stage"] for r in whole.history_][: stages.index(stage) + 1]
    assert np.all(np.diff([record["iteration"] for record in resumed.history_]) > 0)
    assert np.all(np.diff([record["seconds"] for record in resumed.history_]) > 0)


@pytest.mark.slow
def test_a_large_set_is_resumed_too(monkeypatch, tmp_path):
    """Stages on a subset, then a finish on all."""
    monkeypatch.setattr("pyloca.solvers._descent.STAGED_BURSTS", 100)
    X, bursts = planar_bursts(200, 30)
    _, resumed = fit_twice(tmp_path / "c", bursts, interrupt("whiten", 0))
    assert stress(X, resumed.embedding_) < 1e-4


@pytest.mark.slow
def test_a_fit_that_max_iter_ended_goes_on_with_more(tmp_path):
    _, bursts = planar_bursts(100, 30)
    options = {"burst_std": 0.01, "random_state": 0, "hidden_layers": (8,)}
    with pytest.warns(TrustWarning, match="decoder is not trained"):
        short = LOCA(2, max_iter=260, **options).fit(bursts, checkpoint=tmp_path / "c")
    more = LOCA(2, **options).fit(bursts, checkpoint=tmp_path / "c")
    assert (short.n_iter_, short.converged_, more.converged_) == (260, False, True)
    assert more.history_[: len(short.history_)] == short.history_


def test_the_file_is_written_now_and_then(monkeypatch, tmp_path):
    """Also without an interruption that can be caught: a power cut loses seconds."""
    monkeypatch.setattr(_checkpoint, "EVERY", 0.0)
    seen = []
    _, bursts = planar_bursts(100, 30)
    model = LOCA(2, burst_std=0.01, random_state=0, hidden_layers=(8,), max_iter=300)
    model.callbacks = [lambda record: seen.append((record["stage"], (tmp_path / "c").exists()))]
    with pytest.warns(TrustWarning):
        model.fit(bursts, checkpoint=tmp_path / "c")
    assert {there for stage, there in seen if stage.startswith("fit")} == {False}
    assert {there for stage, there in seen if stage == "whiten"} == {True}


# -- the paper solver -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epoch", [2, 8])
@pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")  # a dozen epochs make no good fit
def test_the_paper_solver_goes_on_bit_for_bit(epoch, monkeypatch, tmp_path):
    """At the first rate and at the second, with both Adams, the best weights and the shuffling."""
    monkeypatch.setattr(_paper, "CHECK_EVERY", 2)
    monkeypatch.setattr(_paper, "PATIENCE", 4)
    monkeypatch.setattr(_paper, "LEARNING_RATES", (30.0, 1e-3))
    _, bursts = planar_bursts(30, 10)

    def callback(record):
        if record["iteration"] == epoch:
            raise KeyboardInterrupt

    fresh, resumed = fit_twice(tmp_path / "c", bursts, callback, solver="paper", hidden_layers=(5,), max_iter=16)
    whole = fresh.fit(bursts)
    assert len({record["stage"] for record in whole.history_}) == 2
    np.testing.assert_array_equal(resumed.embedding_, whole.embedding_)
    for mine, other in zip(resumed.decoder_.parameters(), whole.decoder_.parameters(), strict=True):
        assert torch.equal(mine, other)
    assert [r["validation_loss"] for r in resumed.history_] == [r["validation_loss"] for r in whole.history_]


# -- refused ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A checkpoint of a fit of planar bursts, and the bursts."""
    path = tmp_path_factory.mktemp("kept") / "c"
    _, bursts = planar_bursts(60, 20)
    fit_twice(path, bursts, interrupt("whiten", 0))
    return path, bursts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"burst_std": 0.02}, r"burst_std was 0\.01 and is 0\.02"),
        ({"hidden_layers": (8,)}, r"hidden_layers was \[16\] and is \[8\]"),
        ({"random_state": 1}, "seed was"),
        ({"solver": "paper"}, "solver was fast and is paper"),
        ({"validation_fraction": 0.2}, "held_out was 6 and is 12"),
    ],
)
def test_other_settings_are_refused(options, message, kept):
    path, bursts = kept
    options = {"burst_std": 0.01, "random_state": 0, "hidden_layers": (16,)} | options
    with pytest.raises(ModelFileError, match=message):
        LOCA(2, **options).fit(bursts, checkpoint=path)
    assert path.exists()


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b[::-1], lambda b: b * [1, 1, 1.01]])
def test_other_data_is_refused(change, kept):
    path, bursts = kept
    with pytest.raises(ModelFileError, match="is of another fit"):
        LOCA(2, burst_std=0.01, random_state=0, hidden_layers=(16,)).fit(change(bursts), checkpoint=path)


@pytest.mark.parametrize("content", [b"", b"garbage", safetensors.numpy.save({"a": np.zeros(2)})])
def test_what_is_no_checkpoint_is_refused(content, tmp_path):
    (tmp_path / "c").write_bytes(content)
    with pytest.raises(ModelFileError, match="not a checkpoint of pyloca"):
        LOCA(2, random_state=0).fit(planar_bursts(20, 10)[1], checkpoint=tmp_path / "c")


def test_a_checkpoint_needs_a_seed(tmp_path):
    with pytest.raises(ValueError, match="needs random_state"):
        LOCA(2).fit(planar_bursts(20, 10)[1], checkpoint=tmp_path / "c")


# -- signals ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send to a process")
@pytest.mark.parametrize(("name", "code", "word"), [("SIGINT", 130, "Interrupted."), ("SIGTERM", 143, "Terminated.")])
def test_a_signal_during_a_fit_and_its_resumption(name, code, word, tmp_path):
    random = np.random.RandomState(0)
    X = random.uniform(size=(800, 2))
    np.save(tmp_path / "b.npy", X[:, None] + 0.01 * random.standard_normal((800, 6, 2)))
    command = [sys.executable, "-c", RUN_PYLOCA, "fit", "b.npy", "-o", "m.safetensors", "--burst-std", "0.01"]
    options = {"cwd": tmp_path, "stderr": subprocess.PIPE, "text": True}
    options["env"] = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(command, **options) as child:
        try:
            for line in child.stderr:
                if line.startswith("whiten"):
                    break
            child.send_signal(getattr(signal, name))
            words = child.communicate(timeout=HANG)[1]
        finally:
            child.kill()
    assert child.returncode == code, words
    assert words.splitlines()[-2:] == [
        "The training is kept in 'm.safetensors.checkpoint'; --resume goes on from there.",
        word,
    ]
    assert "Traceback" not in words
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.npy", "m.safetensors.checkpoint"]
    done = subprocess.run([*command, "--resume"], **options, timeout=HANG)
    assert done.returncode == 0, done.stderr
    assert (
        done.stderr.startswith("Reading 'm.safetensors.checkpoint', to go on from it.\n")
        and "fit encoder" not in done.stderr
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.npy", "m.safetensors"]
    assert stress(X, LOCA.load(tmp_path / "m.safetensors").embedding_) < 1e-4
