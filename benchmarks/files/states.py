"""Checkpoints and statistics that are not what they should be: forged with right checksums, flipped, cut."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.files.forge import VALUES, forge
from benchmarks.files.reading import SECONDS, in_child
from pyloca.solvers._checkpoint import FORMAT, VERSION

__all__ = ["ROWS"]

FORGED, FLIPS, CUTS = 1000, 1000, 64
FOLDERS = 300  # of statistics, each of which has fifty files
OPTIONS: dict[str, dict[str, Any]] = {
    "fast": {"n_components": 2, "max_iter": 200},
    "anchored": {"n_components": 3, "max_iter": 200},
    "solved": {"n_components": 2},
    "paper": {"n_components": 2, "solver": "paper", "max_iter": 60},
}
AT = {"fast": ("whiten", 0), "anchored": ("whiten", 0), "solved": ("fit decoder", 0), "paper": ("adam 0.001", 40)}


class _Interrupted(BaseException):
    """As Ctrl-C, but of our own."""


def _fit(folder: Path, name: str, callback: Any = None) -> Any:
    from pyloca import LOCA

    fixed = {"burst_std": 0.01, "hidden_layers": (8,), "random_state": 0, "callbacks": [callback] if callback else []}
    model = LOCA(**OPTIONS[name], **fixed)
    return model.fit(np.load(folder / "a.npy"), checkpoint=folder / name)


def _checkpoint(folder: Path, name: str) -> bytes:
    """The file that an interrupted fit leaves."""
    for left in folder.glob(f"{name}*"):
        left.unlink()

    def stop(record: dict[str, Any]) -> None:
        stage, iteration = AT[name]
        if stage in record["stage"] and record["iteration"] >= iteration:
            raise _Interrupted

    try:
        _fit(folder, name, stop)
    except _Interrupted:
        return (folder / name).read_bytes()
    raise RuntimeError(f"the fit {name} did not come so far")


def _resumed(folder: Path, files: Iterator[tuple[str, bytes, str]], *, same: bool) -> list[str]:
    """Resume from each file: own error, or finite numbers (`same`: those of the original), soon."""
    from pyloca.errors import PylocaError

    faults, originals = [], {}
    for name, content, what in files:
        if name not in originals:
            _checkpoint(folder, name)
            originals[name] = _fit(folder, name).embedding_
        for left in folder.glob(f"{name}*"):
            left.unlink()
        (folder / name).write_bytes(content)
        start = time.process_time()
        try:
            found = _fit(folder, name).embedding_
        except PylocaError as error:
            if len(str(error)) > 5000:
                faults.append(f"{name}, {what}: a message of {len(str(error))} characters")
        except Exception as error:
            faults.append(f"{name}, {what}: {type(error).__name__}: {error}"[:300])
        else:
            if not np.isfinite(found).all():
                faults.append(f"{name}, {what}: not finite")
            if same and not np.array_equal(found, originals[name]):
                faults.append(f"{name}, {what}: other numbers")
        if time.process_time() - start > SECONDS:
            faults.append(f"{name}, {what}: {time.process_time() - start:.1f} s")
    return faults


def forged_checkpoints(folder: Path, seed: int) -> tuple[int, list[str]]:
    """Change one entry or array of a checkpoint, and make the checksum right."""

    def files() -> Iterator[tuple[str, bytes, str]]:
        random = np.random.RandomState(seed)
        for name in OPTIONS:
            content = _checkpoint(folder, name)
            for _ in range(FORGED // len(OPTIONS)):
                yield (name, *forge(content, FORMAT, (VERSION,), random))

    return FORGED // len(OPTIONS) * len(OPTIONS), in_child(lambda: _resumed(folder, files(), same=False))


def spoiled_checkpoints(folder: Path, seed: int) -> tuple[int, list[str]]:
    """Flip bits of a checkpoint, and cut it at every 64th byte."""
    from pyloca.errors import ModelFileError

    warnings.simplefilter("ignore")
    content, random = _checkpoint(folder, "fast"), np.random.RandomState(seed)
    spoiled: list[tuple[bytes, str]] = []
    for _ in range(FLIPS):
        flipped, place = bytearray(content), random.randint(len(content))
        flipped[place] ^= 1 << random.randint(8)
        spoiled.append((bytes(flipped), f"bit at {place}"))
    spoiled += [(content[:length], f"cut at {length}") for length in range(0, len(content), CUTS)]

    def work() -> list[str]:
        faults = []
        for file, what in spoiled:
            (folder / "fast").write_bytes(file)
            try:
                _fit(folder, "fast")
            except ModelFileError:
                continue
            except Exception as error:
                faults.append(f"{what}: {type(error).__name__}: {error}"[:300])
            else:
                faults.append(f"{what}: was read")
        return faults

    return len(spoiled), in_child(work)


# -- statistics -------------------------------------------------------------------------------------------------


def _statistics(folder: Path) -> Path:
    from pyloca.geometry import BurstStatistics, save_statistics

    path = folder / "stats.zarr"
    if not path.exists():
        bursts = np.load(folder / "a.npy")
        save_statistics(BurstStatistics.from_bursts(bursts, measurement_noise=1e-4), path)
    return path


def _use(path: Path) -> np.ndarray:
    from pyloca import LOCA

    fixed = {"burst_std": 0.01, "hidden_layers": (8,), "random_state": 0, "max_iter": 60}
    return LOCA(2, **fixed).fit(path).embedding_


def _used(path: Path, what: str, expected: np.ndarray | None) -> list[str]:
    from pyloca.errors import PylocaError

    start, faults = time.process_time(), []
    try:
        found = _use(path)
    except PylocaError as error:
        if len(str(error)) > 5000:
            faults.append(f"{what}: a message of {len(str(error))} characters")
    except Exception as error:
        faults.append(f"{what}: {type(error).__name__}: {error}"[:300])
    else:
        if not np.isfinite(found).all():
            faults.append(f"{what}: not finite")
        if expected is not None and not np.array_equal(found, expected):
            faults.append(f"{what}: other numbers")
    if time.process_time() - start > SECONDS:
        faults.append(f"{what}: {time.process_time() - start:.1f} s")
    return faults


def forged_statistics(folder: Path, seed: int) -> tuple[int, list[str]]:
    """Change one entry of the manifest or one array, and make the checksums right."""
    random, original = np.random.RandomState(seed), _statistics(folder)
    n = FOLDERS

    def work() -> list[str]:
        faults = []
        for _ in range(n):
            path = folder / "forged.zarr"
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(original, path)
            what = _forge_manifest(path, random) if random.rand() < 0.5 else _forge_arrays(path, random)
            faults += _used(path, what, None)
        return faults

    return n, in_child(work)


def _forge_manifest(path: Path, random: np.random.RandomState) -> str:
    """Change, remove or add one thing anywhere in zarr.json, with the manifest sealed again; deep and huge as well."""
    file = path / "zarr.json"
    whole = json.loads(file.read_text(encoding="utf-8"))
    manifest = whole["attributes"]["pyloca-statistics"]
    place: Any = manifest if random.rand() < 0.7 else whole
    keys: list[str] = []
    while True:
        among = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = among[random.randint(len(among))]
        keys.append(str(key))
        if not isinstance(place[key], (dict, list)) or not place[key] or random.rand() < 0.2:
            break
        place = place[key]
    value = VALUES[random.randint(len(VALUES))]
    place[key] = copy.deepcopy(value)
    if isinstance(manifest, dict):
        manifest.pop("sha256", None)
        manifest["sha256"] = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    file.write_text(json.dumps(whole), encoding="utf-8")
    return f"{'.'.join(keys)} = {value!r}"[:120]


def _forge_arrays(path: Path, random: np.random.RandomState) -> str:
    """Change one array of the statistics, or what its own metadata say, and write right checksums."""
    from pyloca.geometry import BurstStatistics, read_statistics, save_statistics

    statistics = read_statistics(path)
    names = ("means", "tangents", "counts", "residuals", "total", "noise", "tilts", "ids", "marks", "set_aside")
    name = names[random.randint(len(names))]
    change = ("nan", "infinite", "huge", "zero", "negative", "empty", "twice", "new axis", "dtype", "metadata")[
        random.randint(10)
    ]
    if change == "metadata":
        file = path / name / "zarr.json"
        told = json.loads(file.read_text(encoding="utf-8"))
        key = list(told)[random.randint(len(told))]
        told[key] = VALUES[random.randint(len(VALUES))]
        file.write_text(json.dumps(told), encoding="utf-8")
        return f"{name}: {key} = {told[key]!r}"[:120]
    array = np.array(getattr(statistics, name))
    if change in ("empty", "twice", "new axis"):
        array = {"empty": array[:0], "twice": np.concatenate([array, array]), "new axis": array[:, None]}[change]
    elif change == "dtype":
        array = array.astype([np.float32, np.int64, bool, np.uint8][random.randint(4)]) if name not in TEXT else array
    elif name not in TEXT and (array.dtype.kind == "f" or change in ("zero", "negative")):
        spoiled = {"nan": np.nan, "infinite": np.inf, "huge": 1e308, "zero": 0, "negative": -1}[change]
        array.reshape(-1)[random.randint(array.size)] = spoiled
    made = BurstStatistics.__new__(BurstStatistics)
    made.__dict__.update(vars(statistics) | {name: array})
    save_statistics(made, path)
    return f"{name} {change}"


TEXT = ("ids", "marks")


def spoiled_statistics(folder: Path, seed: int) -> tuple[int, list[str]]:
    """Flip one bit of any file of the folder, cut or remove one; a header of 2^60, deep JSON."""
    random, original = np.random.RandomState(seed), _statistics(folder)
    files = sorted(file.relative_to(original) for file in original.rglob("*") if file.is_file())
    deep = json.dumps({"attributes": {"pyloca-statistics": 0}}).replace("0", "[" * 100_000 + "]" * 100_000)
    n = FOLDERS

    def work() -> list[str]:
        faults, path, expected = [], folder / "spoiled.zarr", _use(original)
        for number in range(n):
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(original, path)
            file = path / files[random.randint(len(files))]
            content = bytearray(file.read_bytes())
            kind = ("flipped", "flipped", "flipped", "cut", "removed", "longer")[random.randint(6)]
            if number == 0:
                (path / "zarr.json").write_text(deep, encoding="utf-8")
                kind = "deep JSON"
            elif number == 1:
                told = json.loads((path / "means" / "zarr.json").read_text(encoding="utf-8"))
                told["shape"][0] = 1 << 60
                (path / "means" / "zarr.json").write_text(json.dumps(told), encoding="utf-8")
                kind = "shape of 2^60"
            elif kind == "flipped" and content:
                content[random.randint(len(content))] ^= 1 << random.randint(8)
                file.write_bytes(bytes(content))
            elif kind == "cut":
                file.write_bytes(bytes(content[: random.randint(len(content) + 1)]))
            elif kind == "removed":
                file.unlink()
            else:
                file.write_bytes(bytes(content) + b"\0" * 7)
            faults += _used(path, f"{file.relative_to(path)} {kind}", expected)
        return faults

    return n, in_child(work)


ROWS = {
    "checkpoint: forged, checksum right": forged_checkpoints,
    "checkpoint: one bit flipped, cut at every 64th byte": spoiled_checkpoints,
    "statistics: forged, checksums right": forged_statistics,
    "statistics: files flipped, cut, removed, shape of 2^60, deep JSON": spoiled_statistics,
}
