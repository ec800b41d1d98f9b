"""Files that are not what they should be: forged, cut, flipped, foreign, endless, changed while they are read."""

from __future__ import annotations

import json
import os
import resource
import struct
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.files.forge import forge
from benchmarks.files.lab import FIT, pyloca
from benchmarks.files.writing import WRITES, small_demo

__all__ = ["ROWS"]

KINDS = {
    "a": ("pyloca-model", (3,)),
    "match": ("pyloca-match", (2,)),
    "fusion": ("pyloca-fusion", (2,)),
    "small": ("pyloca-predictor", (1,)),
}
FORGED, FLIPS, CUTS = 1000, 1000, 64
SECONDS = 5.0  # of a processor, at most, for one file
MEGABYTES = 700  # of memory in use, at most
BYTES = 8 << 30  # of addresses


def in_child(work: Callable[[], list[str]]) -> list[str]:
    """Run in a forked child, which may die; the faults that it found, or how it died."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        faults = []
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))  # a bomb must not take the machine with it
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                faults = work()
            if _megabytes() > MEGABYTES:
                faults.append(f"took {_megabytes():.0f} MB")
        except BaseException as error:
            faults.append(f"{type(error).__name__}: {error}")
        with os.fdopen(write, "w") as pipe:
            json.dump(faults[:20], pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return json.loads(text) if code == 0 else [f"the process died with {code}"]


def _megabytes() -> float:
    """Peak of this process, in its own life; getrusage would begin at what the parent holds."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1e3


def _use(name: str, path: Path) -> list[Any]:
    from pyloca import LOCA, predict
    from pyloca.matching import Fusion, Match

    Y = np.load(path.parent / "a.npy")[0]
    if name == "small":
        small = predict.load(path)
        return [small.encode(Y), small.decode(small.training), small.trust(Y), *small.encode_with_jacobian(Y)]
    if name == "a":
        model = LOCA.load(path)
        return [*model.transform(Y, return_trust=True), model.decode(model.embedding_), len(str(model.diagnostics_))]
    found: Any = (Match if name == "match" else Fusion).load(path)
    first, second = found.models
    there, back = found.predict(Y, first, second), found.predict(Y, second, first)
    return [there.values, there.standard_errors, back.values, back.trust, len(str(found))]


def _tried(folder: Path, files: Iterator[tuple[str, bytes, str]], *, same: bool) -> list[str]:
    """Use each file: own error, or finite numbers (`same`: those of the original), soon."""
    from pyloca.errors import PylocaError

    faults = []
    originals = {name: _use(name, folder / f"{name}.safetensors") for name in KINDS}
    path = folder / "spoiled.safetensors"
    for name, content, what in files:
        path.write_bytes(content)
        start = time.process_time()
        try:
            numbers = _use(name, path)
        except PylocaError as error:
            if len(str(error)) > 5000:
                faults.append(f"{name}, {what}: a message of {len(str(error))} characters")
        except Exception as error:
            faults.append(f"{name}, {what}: {type(error).__name__}: {error}"[:300])
        else:
            if not all(np.isfinite(values).all() for values in numbers):
                faults.append(f"{name}, {what}: not finite")
            if same and not all(np.array_equal(a, b) for a, b in zip(numbers, originals[name], strict=True)):
                faults.append(f"{name}, {what}: other numbers")
        if time.process_time() - start > SECONDS:
            faults.append(f"{name}, {what}: {time.process_time() - start:.1f} s")
    path.unlink(missing_ok=True)
    return faults


def forged(folder: Path, seed: int) -> tuple[int, list[str]]:
    """Change one entry or array, and make the checksum right."""

    def files() -> Iterator[tuple[str, bytes, str]]:
        random = np.random.RandomState(seed)
        for name, (kind, versions) in KINDS.items():
            content = (folder / f"{name}.safetensors").read_bytes()
            for _ in range(FORGED):
                yield (name, *forge(content, kind, versions, random))

    return len(KINDS) * FORGED, in_child(lambda: _tried(folder, files(), same=False))


def flipped(folder: Path, seed: int) -> tuple[int, list[str]]:
    """Flip one bit."""

    def files() -> Iterator[tuple[str, bytes, str]]:
        random = np.random.RandomState(seed)
        for name in KINDS:
            content = (folder / f"{name}.safetensors").read_bytes()
            for _ in range(FLIPS):
                spoiled, place = bytearray(content), random.randint(len(content))
                spoiled[place] ^= 1 << random.randint(8)
                yield name, bytes(spoiled), f"bit at {place}"

    return len(KINDS) * FLIPS, in_child(lambda: _tried(folder, files(), same=True))


def cut(folder: Path, _: int) -> tuple[int, list[str]]:
    """Cut the file at every 64th byte."""
    contents = {name: (folder / f"{name}.safetensors").read_bytes() for name in KINDS}
    n = sum(len(range(0, len(content), CUTS)) for content in contents.values())

    def work() -> list[str]:
        from pyloca.errors import ModelFileError

        faults = []
        for name, content in contents.items():
            path = folder / "cut.safetensors"
            for length in range(0, len(content), CUTS):
                path.write_bytes(content[:length])
                try:
                    _use(name, path)
                except ModelFileError:
                    continue
                faults.append(f"{name} of {length} bytes was read")
            path.unlink()
        return faults

    return n, in_child(work)


def foreign(folder: Path, _: int) -> tuple[int, list[str]]:
    """Take other files for a model: exit code 5, soon, and in little memory."""
    deep, wide = b"[" * 1_000_000, b'{"__metadata__":[' + b"[]," * 20_000_000 + b"[]]}"
    contents = {
        "header of 2^60": struct.pack("<Q", 1 << 60) + b"{}",
        "deep JSON": struct.pack("<Q", len(deep)) + deep,
        "deep JSON inside": _safetensors({"pyloca-model": "[" * 1_000_000}),
        "wide JSON": struct.pack("<Q", len(wide)) + wide,
        "other metadata": _safetensors({"format": "pt"}),
        "no metadata": _safetensors({}),
        "a table": (folder / "a.csv").read_bytes(),
        "an array": (folder / "a.npy").read_bytes(),
        "an archive": (folder / "a.npz").read_bytes(),
        "nothing": b"",
        "zeros": bytes(1_000_000),
    }
    faults = []
    paths = [Path("/dev/zero"), Path("/dev/urandom"), folder, folder / "pipe"]
    os.mkfifo(folder / "pipe")
    for i, content in enumerate(contents.values()):
        paths.append(folder / f"foreign{i}.safetensors")
        paths[-1].write_bytes(content)
    with (folder / "sparse.safetensors").open("wb") as file:
        file.truncate(1 << 40)
    for path in [*paths, folder / "sparse.safetensors"]:
        done = pyloca(folder, "inverse", str(path), "a_z.csv")
        if done.code not in (2, 5) or "Traceback" in done.stderr or len(done.stderr) > 5000:
            faults.append(f"{path}: exit code {done.code}, {done.stderr[-200:]!r}")
    return len(paths) + 1, faults


def _safetensors(metadata: dict[str, str]) -> bytes:
    header = json.dumps({"__metadata__": metadata}).encode()
    return struct.pack("<Q", len(header)) + header


def cut_while_read(folder: Path, _: int) -> tuple[int, list[str]]:
    """Cut, or change, a .npy file in the middle of `inspect` and `fit`."""
    faults = []
    data = np.load(folder / "a.npy")
    for command in (["inspect"], ["fit", *FIT, "--json"]):
        for what in ("cut", "changed"):
            path = folder / "long.npy"
            np.save(path, data)

            def spoil(path: Path = path, what: str = what) -> None:
                from pyloca.bursts import Bursts

                blocks = Bursts.blocks

                def some(self: Bursts, *args: Any) -> Any:
                    for i, block in enumerate(blocks(self, 300)):
                        if i == 5 and path.stat().st_size > 9000:
                            os.truncate(path, 9000) if what == "cut" else os.utime(path, ns=(1, 1))
                        yield block

                Bursts.blocks = some  # type: ignore[method-assign]

            done = pyloca(folder, *command, str(path), before=spoil)
            if done.code != 3 or "while it was read" not in done.stderr:  # a file that is cut is changed as well
                faults.append(f"{command[0]}, {what}: exit code {done.code}, {done.stderr[-200:]!r}")
    return 4, faults


def _refuse_sockets() -> None:
    """Let any use of a socket end this process."""

    def hook(event: str, _: tuple[Any, ...]) -> None:
        if event.startswith("socket."):
            os.write(2, f"SOCKET {event}\n".encode())
            os._exit(98)

    sys.addaudithook(hook)


def sockets(folder: Path, _: int) -> tuple[int, list[str]]:
    """Run every command with sockets forbidden."""
    faults = []
    target = folder / "out"
    target.mkdir()
    for name, (file, arguments) in WRITES.items():

        def before(name: str = name) -> None:
            if name.startswith("demo"):
                small_demo()
            _refuse_sockets()

        done = pyloca(folder, *(argument.format(target / file) for argument in arguments), before=before)
        if done.code not in (0, 4):
            faults.append(f"{name}: exit code {done.code}, {done.stderr[-200:]!r}")
    return len(WRITES), faults


ROWS = {
    "model, match, fusion, export: forged, checksum right": forged,
    "model, match, fusion, export: one bit flipped": flipped,
    "model, match, fusion, export: cut at every 64th byte": cut,
    "foreign files, devices, pipes, headers of 2^60, deep JSON": foreign,
    ".npy file cut or changed while it is read": cut_while_read,
    "no socket without workers, every command": sockets,
}
