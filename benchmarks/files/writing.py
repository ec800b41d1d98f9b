"""Writes that fail: a full disk, a folder that cannot be written to, an input as output, a kill, a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.files.lab import FIT, full_disk, pyloca, small_disk

__all__ = ["ROWS", "SAME", "WRITES", "small_demo"]

KILLS = 100
# Every file that a command writes; {} is where it goes.
WRITES: dict[str, tuple[str, list[str]]] = {
    "bursts -o": ("out.npz", ["bursts", "a.csv", "-o", "{}"]),
    "bursts -o (csv)": ("out.csv", ["bursts", "a.csv", "-o", "{}"]),
    "fit -o": ("out.safetensors", ["fit", "a.csv", *FIT, "-o", "{}"]),
    "fit --embedding": ("out.csv", ["fit", "a.csv", *FIT, "--embedding", "{}"]),
    "transform -o": ("out.csv", ["transform", "a.safetensors", "a.csv", "-o", "{}"]),
    "transform -o (npy)": ("out.npy", ["transform", "a.safetensors", "a.csv", "-o", "{}"]),
    "inverse -o": ("out.csv", ["inverse", "a.safetensors", "a_z.csv", "-o", "{}"]),
    "inspect --plot": ("out.png", ["inspect", "a.csv", "--plot", "{}"]),
    "report -o": ("out.html", ["report", "a.safetensors", "a.csv", "-o", "{}"]),
    "report -o (match)": ("out.html", ["report", "match.safetensors", "-o", "{}"]),
    "match -o": ("out.safetensors", ["match", "a.safetensors", "b.safetensors", "--anchors", "pairs.csv", "-o", "{}"]),
    "fuse -o": ("out.safetensors", ["fuse", "a.safetensors", "b.safetensors", "--anchors", "named.csv", "-o", "{}"]),
    "recalibrate -o": ("out.safetensors", ["recalibrate", "a.safetensors", "a.csv", "-o", "{}"]),
    "demo -o": ("", ["demo", "-o", "{}"]),
    "reproduce -o": ("", ["reproduce", "mushroom", "--quick", "-o", "{}"]),
}
# An output that is also an input, of every command.
SAME = [
    ["fit", "a.csv", "--embedding", "a.csv"],
    ["fit", "a.csv", "--embedding", "link.csv"],
    ["fit", "a.csv", "--embedding", "pairs.csv", "--distances", "pairs.csv"],
    ["fit", "a.csv", "--embedding", "b.csv", "--static", "./b.csv"],
    ["fit", "a.csv", "--embedding", "settings.csv", "--config", "settings.csv"],
    ["inspect", "a.csv", "--plot", "picture.png", "--model", "picture.png"],
    ["inspect", "a.csv", "--plot", "picture.png", "--static", "picture.png"],
    ["transform", "a.safetensors", "a.csv", "-o", "a.csv"],
    ["transform", "a.csv", "b.csv", "-o", "a.csv"],
    ["inverse", "a.safetensors", "a.csv", "-o", "link.csv"],
    ["bursts", "a.csv", "b.csv", "-o", "b.csv"],
    ["report", "a.safetensors", "a.csv", "--labels", "labels.html", "-o", "labels.html"],
    ["report", "a.safetensors", "a.csv", "--color-by", "labels.html", "-o", "labels.html"],
    ["match", "a.safetensors", "b.safetensors", "-o", "b.safetensors"],
    ["match", "a.safetensors", "b.safetensors", "--anchors", "match.safetensors", "-o", "match.safetensors"],
    ["match", "a.safetensors", "b.safetensors", "--readings", "a.csv", "m.safetensors", "-o", "m.safetensors"],
    ["fuse", "a.safetensors", "b.safetensors", "--anchors", "named.csv", "-o", "b.safetensors"],
    ["recalibrate", "a.safetensors", "a.csv", "-o", "a.safetensors"],
]
Spoil = Callable[[], AbstractContextManager[None]]
OLD = b"what was there before"


def small_demo() -> None:
    """Let the demo take a tenth of its data, and stop early."""
    from pyloca.paper import demo

    demo.EXAMPLES = [  # type: ignore[misc]
        replace(example, draw=partial(example.draw, n_bursts=200), parameters={"max_iter": 60})
        for example in demo.EXAMPLES
    ]


def _each_write(folder: Path, disk: Path, code: int, words: str, spoil: Spoil) -> list[str]:
    """Try every write with the disk spoiled, onto a file that is there and onto one that is not."""
    faults = []
    for name, (file, arguments) in WRITES.items():
        for there in (True, False) if file else (False,):
            kept = [path for path in disk.iterdir() if path.name != "filler"]
            assert not kept, kept
            target = disk / file
            if there:
                target.write_bytes(OLD)
            before = small_demo if name.startswith("demo") else (lambda: None)
            with spoil():
                done = pyloca(folder, *(argument.format(target) for argument in arguments), before=before)
                left = {path.name: path.read_bytes() for path in disk.iterdir() if path.name != "filler"}
            if done.code != code or words not in done.stderr or "Traceback" in done.stderr:
                faults.append(f"{name}: exit code {done.code}, {done.stderr[-300:]!r}")
            if left != ({file: OLD} if there else {}):
                faults.append(f"{name}: left {sorted(left)}")
            for path in disk.iterdir():
                path.unlink()
    return faults


def disk_full(folder: Path, _: int) -> tuple[int, list[str]]:
    """Write every file of every command to a disk without a free byte."""
    with small_disk() as disk:
        if disk is None:
            return 0, ["no small file system can be mounted here; run as root"]
        return len(WRITES) * 2 - 2, _each_write(folder, disk, 1, "No space left on device", lambda: full_disk(disk))


def read_only(folder: Path, _: int) -> tuple[int, list[str]]:
    """Do the same in a file system that is mounted read-only."""
    with small_disk() as disk:
        if disk is None:
            return 0, ["no small file system can be mounted here; run as root"]

        @contextmanager
        def spoiled() -> Iterator[None]:
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
            try:
                yield
            finally:
                subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)

        return len(WRITES) * 2 - 2, _each_write(folder, disk, 2, "cannot write", spoiled)


def output_is_input(folder: Path, _: int) -> tuple[int, list[str]]:
    """Name an input as output."""
    (folder / "link.csv").symlink_to("a.csv")
    (folder / "settings.csv").write_text("max_iter = 5\n")
    for name in ("picture.png", "m.safetensors"):
        (folder / name).write_bytes(b"anything")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    faults = []
    for arguments in SAME:
        done = pyloca(folder, *arguments)
        if done.code != 2 or "write to another file" not in done.stderr:
            faults.append(f"{' '.join(arguments)}: exit code {done.code}, {done.stderr[-200:]!r}")
    if {path.name: path.read_bytes() for path in folder.iterdir()} != before:
        faults.append("a file was changed")
    return len(SAME), faults


def killed(_: Path, seed: int) -> tuple[int, list[str]]:
    """Kill a writer (SIGKILL) at a random moment: the old file or a new one, alone after the next write."""
    from pyloca._atomic import write_atomically

    random, faults = np.random.RandomState(seed), []
    with tempfile.TemporaryDirectory() as name:
        target = Path(name, "model")
        target.write_bytes(OLD)
        for _i in range(KILLS):
            child = os.fork()
            if child == 0:
                i = 0
                while True:
                    i += 1
                    write_atomically(target, bytes([i % 251]) * 300_000)
            time.sleep(0.01 + 0.03 * random.rand())
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            content = target.read_bytes()
            write_atomically(target, content)
            if content != OLD and (len(content) != 300_000 or len(set(content)) != 1):
                faults.append(f"a file of {len(content)} bytes")
            beside = [path.name for path in Path(name).iterdir() if path != target]
            if beside:
                faults.append(f"left {beside}")
                for path in beside:
                    Path(name, path).unlink()
    return KILLS, faults


def signals(folder: Path, _: int) -> tuple[int, list[str]]:
    """Interrupt and terminate a command right after the rename."""
    faults = []
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):

        def at_the_rename(number: int = number) -> None:
            rename = os.replace

            def replaced(*args: object) -> None:
                rename(*args)  # type: ignore[arg-type]
                os.kill(os.getpid(), number)

            os.replace = replaced  # type: ignore[assignment]

        done = pyloca(folder, "transform", "a.safetensors", "a.csv", "-o", "new.csv", before=at_the_rename)
        if done.code != code:
            faults.append(f"signal {number}: exit code {done.code}, {done.stderr[-200:]!r}")
        (folder / "new.csv").unlink(missing_ok=True)
    return 2, faults


ROWS = {
    "disk full, every write of every command": disk_full,
    "read-only file system, every write of every command": read_only,
    "output = input, every command": output_is_input,
    "writer killed (SIGKILL) at a random moment; then another write": killed,
    "SIGINT and SIGTERM at the rename": signals,
}
