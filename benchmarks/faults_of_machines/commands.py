"""`pyloca` in children that are forked after the imports, so that hundreds of them take minutes."""

from __future__ import annotations

import functools
import os
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyloca import LOCA, ModelFileError, TrustWarning
from pyloca._sealed import MODEL_VERSIONS, file_kind, read_bytes, unseal
from pyloca.cli import _main
from pyloca.solvers import _checkpoint, checkpoint_files

EARLY = "words.early"
MODEL, CHECKPOINT = "m.safetensors", "m.safetensors.checkpoint"
STD = 0.01
STAGES = ("fit encoder", "whiten", "fit decoder", "decode", "adam")  # what lines of a training begin with
SOLVERS = {
    "fast": ("--hidden-layers", "20"),
    "paper": ("--hidden-layers", "10", "--solver", "paper", "--max-iter", "1200"),
}


@functools.cache
def bursts() -> np.ndarray:
    """A bent sheet, 300 bursts of 8 points."""
    random = np.random.RandomState(0)
    points = random.uniform(size=(300, 1, 2)) + STD * random.standard_normal((300, 8, 2))
    return np.concatenate([points, points[..., :1] * points[..., 1:]], axis=2)


@functools.cache
def reference(solver: str) -> tuple[bytes, int]:
    """The bits of a fit that nobody disturbs, and how many lines it says until training ends."""
    with folder() as here:
        code = wait(fork(here, solver))
        words = (here / "words").read_text(encoding="utf-8")
        assert code in (0, 4), words
        lines = [number for number, line in enumerate(words.splitlines(), start=1) if line.startswith(STAGES)]
        return bits(here / MODEL), lines[-1]


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        np.save(Path(name) / "b.npy", bursts())
        yield Path(name)


def fork(here: Path, solver: str, *options: str) -> int:
    """Start ``pyloca fit`` in a folder."""
    fit = ("fit", "b.npy", "-o", MODEL, "--burst-std", str(STD), "--checkpoint-every", "0")
    return fork_command(here, *fit, *SOLVERS[solver], *options)


def fork_command(here: Path, *arguments: str) -> int:
    """Start ``pyloca`` in a folder; what it says goes to the file "words", which is there once signals are heeded."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.chdir(here)
        words = os.open(EARLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for stream in (1, 2):
            os.dup2(words, stream)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = ["pyloca", *arguments]
        heed = _main.heed

        def ready() -> None:
            heed()
            os.rename(EARLY, "words")

        _main.heed = ready
        try:
            _main.main()
        except SystemExit as done:
            code = int(done.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def wait(child: int) -> int:
    """The exit code of a child; −9 if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Moment(NamedTuple):
    """A moment of a fit that a busy machine does not shift: so many seconds after it has said so many lines."""

    lines: int
    seconds: float

    def __str__(self) -> str:
        return f"{1000 * self.seconds:.0f} ms after line {self.lines}"


def moment(solver: str, random: np.random.RandomState) -> Moment:
    """Any line of a fit is as likely; after the last one come the judgement of the fit and the file of the model."""
    last = reference(solver)[1]
    line = int(random.randint(last + 1))
    return Moment(line, float(random.uniform(0, 0.05 if line < last else 0.5)))


def send(child: int, here: Path, when: Moment, *numbers: int) -> int:
    """Send signals to a child, the first at a moment and others at once, and return the exit code."""
    words = here / "words"
    while running(child) and (not words.exists() or words.read_bytes().count(b"\n") < when.lines):
        time.sleep(0.005)
    time.sleep(when.seconds)
    for number in numbers:
        if running(child):
            os.kill(child, number)
        time.sleep(0.01)
    return wait(child)


def running(child: int) -> bool:
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def bits(model: Path) -> bytes:
    """Coordinates and weights of a model file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        found = LOCA.load(model)
    weights = [w.numpy() for net in (found.encoder_, found.decoder_) for w in net.state_dict().values()]
    return b"".join(np.ascontiguousarray(part).tobytes() for part in (found.embedding_, *weights))


def half_written(here: Path) -> list[str]:
    """What lies in a folder and is neither whole nor known."""
    bad = []
    known = {MODEL: "pyloca-model"} | {path.name: "pyloca-checkpoint" for path in checkpoint_files(Path(CHECKPOINT))}
    for path in sorted(here.iterdir()):
        if path.name in ("b.npy", "words"):
            continue
        kind = known.get(path.name)
        try:
            if kind is None or file_kind(path) != kind:
                raise ModelFileError(path.name)
            unseal(read_bytes(path), kind, (MODEL_VERSIONS[0], _checkpoint.VERSION), path.name)
        except ModelFileError:
            bad.append(path.name)
    return bad


def resumed_as_undisturbed(here: Path, solver: str) -> bool:
    """Resume what was interrupted, and compare the bits with those of an undisturbed fit."""
    code = wait(fork(here, solver, "--resume"))
    return code in (0, 4) and bits(here / MODEL) == reference(solver)[0]
