"""A folder with one file of each kind, and commands run in children, so that whatever happens to them is seen."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

__all__ = ["Done", "full_disk", "lab", "pyloca", "small_disk"]

N, M = 60, 20


class Done(NamedTuple):
    """How a command ended."""

    code: int  # minus the number of the signal that killed it
    stdout: str
    stderr: str


def pyloca(folder: Path, *arguments: str, before: Callable[[], None] = lambda: None) -> Done:
    """Run a command in a forked child, after `before`, with `folder` as its directory."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            code = 99
            try:
                os.chdir(folder)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                sys.stdin, sys.stdout, sys.stderr = (os.fdopen(i, "w" if i else "r", closefd=False) for i in range(3))
                signal.signal(signal.SIGINT, signal.default_int_handler)
                code = _main(arguments, before)
            except BaseException:  # what escapes is what is looked for
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Done(code, *texts)


def _main(arguments: tuple[str, ...], before: Callable[[], None]) -> int:
    from pyloca.cli import main

    sys.argv = ["pyloca", *arguments]
    before()
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@contextmanager
def lab() -> Iterator[Path]:
    """Make a folder with bursts, points, coordinates, two models, a match, a fusion, anchors and labels."""
    random = np.random.RandomState(0)
    X = random.uniform(size=(N, 2))
    clouds = X[:, None] + 0.01 * random.standard_normal((N, M, 2))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for called, turn in (("a", 0), ("b", 1)):
            data = clouds @ np.random.RandomState(turn).standard_normal((2, 3))
            rows = [f"{i},{','.join(map(str, point))}" for i, burst in enumerate(data) for point in burst]
            (folder / f"{called}.csv").write_text("burst_id,p,q,r\n" + "\n".join(rows) + "\n")
            np.save(folder / f"{called}.npy", data)
            _must(folder, "fit", f"{called}.csv", *FIT, "-o", f"{called}.safetensors", "--embedding", f"{called}_z.csv")
        (folder / "pairs.csv").write_text("".join(f"{i},{i}\n" for i in range(0, N, 5)))
        (folder / "named.csv").write_text("".join(f"a,{i},b,{i}\n" for i in range(0, N, 5)))
        (folder / "labels.html").write_text("".join(f"state {i}\n" for i in range(N)))
        _must(folder, "bursts", "a.csv", "-o", "a.npz")
        _must(folder, "match", "a.safetensors", "b.safetensors", "--anchors", "pairs.csv", "-o", "match.safetensors")
        _must(folder, "fuse", "a.safetensors", "b.safetensors", "--anchors", "named.csv", "-o", "fusion.safetensors")
        yield folder


FIT = ("-q", "--burst-std", "0.01", "--hidden-layers", "8", "--max-iter", "60")


def _must(folder: Path, *arguments: str) -> None:
    done = pyloca(folder, *arguments)
    if done.code not in (0, 4):  # 4: a fit that was stopped early is not to be believed
        raise RuntimeError(f"{' '.join(arguments)}: exit code {done.code}\n{done.stderr}")


@contextmanager
def small_disk(megabytes: int = 8) -> Iterator[Path | None]:
    """Mount a small file system; None where that is not allowed."""
    with tempfile.TemporaryDirectory() as name:
        options = ["-t", "tmpfs", "-o", f"size={megabytes}m", "pyloca"]
        if subprocess.run(["mount", *options, name], capture_output=True, check=False).returncode:
            yield None
            return
        try:
            yield Path(name)
        finally:
            subprocess.run(["umount", name], check=True)


@contextmanager
def full_disk(disk: Path) -> Iterator[None]:
    """Leave no byte on a small disk."""
    filler = disk / "filler"
    try:
        with filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        pass
    try:
        yield
    finally:
        filler.unlink()
