"""Real signals: Ctrl-C once and twice, SIGTERM and SIGKILL, during a fit and during start-up."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from helpers import HANG
from pyloca import LOCA

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="Windows has no signals to send to a process"),
]

# The command, from the moment on at which it heeds signals. A child inherits an ignored SIGINT, which is what the tests
# themselves have when they run as a background job of a shell.
RUN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from pyloca.__main__ import main
from pyloca._signals import heed
heed()
print("ready", flush=True)
main()
"""
SAVED = "The training is saved in 'm.safetensors.checkpoint'; --resume continues from there."


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A file of bursts, and the embedding of a fit that nobody disturbs."""
    random = np.random.RandomState(0)
    X = random.uniform(size=(400, 2))
    path = tmp_path_factory.mktemp("data") / "b.npy"
    np.save(path, X[:, None] + 0.01 * random.standard_normal((400, 6, 2)))
    return path, LOCA(2, burst_std=0.01, hidden_layers=(20,), random_state=0).fit(np.load(path)).embedding_


def start(data, folder, *options):
    fit = ["fit", str(data[0]), "-o", "m.safetensors", "--burst-std", "0.01", "--hidden-layers", "20", *options]
    command = [sys.executable, "-c", RUN, *fit]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=environment, **pipes)


def ended(child):
    """What a child says until it ends."""
    try:
        return child.communicate(timeout=HANG)[1]
    finally:
        child.kill()


@pytest.mark.parametrize(
    ("signals", "code", "word"),
    [
        (("SIGINT", "SIGINT", "SIGINT"), 130, "Interrupted."),
        (("SIGTERM", "SIGINT"), 143, "Terminated."),
        (("SIGKILL",), -signal.SIGKILL, ""),
    ],
    ids=lambda given: "-".join(given) if isinstance(given, tuple) else "",
)
def test_a_signal_during_a_fit_and_its_resumption(signals, code, word, data, tmp_path):
    with start(data, tmp_path, "--checkpoint-every", "0" if "SIGKILL" in signals else "10") as child:
        next(line for line in child.stderr if line.startswith("whiten"))
        for name in signals:
            child.send_signal(getattr(signal, name))
            time.sleep(0.02)
        words = ended(child)
    assert child.returncode == code, words
    assert "Traceback" not in words and "xception" not in words
    if word:
        assert words.splitlines()[-2:] == [SAVED, word]
    assert not (tmp_path / "m.safetensors").exists() and (tmp_path / "m.safetensors.checkpoint").exists()
    with start(data, tmp_path, "--resume") as child:
        words = ended(child)
    assert child.returncode in (0, 4), words
    assert words.startswith("Resuming from 'm.safetensors.checkpoint'.\n") and "fit encoder" not in words
    assert [p.name for p in tmp_path.iterdir()] == ["m.safetensors"]
    np.testing.assert_array_equal(LOCA.load(tmp_path / "m.safetensors").embedding_, data[1])


@pytest.mark.parametrize(("name", "code", "delay"), [("SIGINT", 130, 0), ("SIGINT", 130, 1), ("SIGTERM", 143, 0.3)])
def test_a_signal_during_start_up(name, code, delay, data, tmp_path):
    """Any delay will do: the child imports for longer than that, or is a little further."""
    (tmp_path / "m.safetensors.checkpoint").write_bytes(b"hours of work")
    with start(data, tmp_path, "-q") as child:
        child.stdout.readline()
        time.sleep(delay)
        child.send_signal(getattr(signal, name))
        words = ended(child)
    assert child.returncode == code, words
    assert "Traceback" not in words and "xception" not in words
    assert (tmp_path / "m.safetensors.checkpoint").read_bytes() == b"hours of work"


LATE = f"""
HANG = {HANG}
import signal, time
from pyloca import _signals

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell inherits an ignored one

class Cup:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

_signals.heed()
try:
    try:
        signal.raise_signal(signal.SIGTERM)
        print("not raised")
    finally:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        print("cleaned up")
except _signals.Terminated:
    print(_signals.caught().__name__)
try:
    Cup()
    time.sleep(HANG)
    print("lost")
except KeyboardInterrupt:
    print("raised again")
_signals.ignore()
signal.raise_signal(signal.SIGINT)
print("over")
"""


def test_once_is_enough_and_nothing_is_lost():
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, timeout=HANG, check=False)
    assert done.stdout.split("\n") == ["cleaned up", "Terminated", "raised again", "over", ""]
    assert done.stderr == ""
