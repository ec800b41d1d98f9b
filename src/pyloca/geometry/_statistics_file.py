"""Statistics in Zarr: with a manifest that says what is complete, and a SHA-256 of every chunk."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import LARGEST, is_finite, is_integer
from pyloca._optional import need
from pyloca.bursts import Bursts, as_bursts, create_array, replace_folder
from pyloca.errors import BurstError
from pyloca.geometry._keep import KeepParts
from pyloca.geometry._noise import Noise
from pyloca.geometry._scale import feature_scale
from pyloca.geometry._scatter_rule import Scatter
from pyloca.geometry._statistics import PER_BURST, BurstStatistics
from pyloca.thresholds import UNLIKE

__all__ = ["holds_statistics", "read_statistics", "save_statistics", "statistics_burst_id", "write_statistics"]

KEY, VERSION = "pyloca-statistics", 1
ROWS = 1 << 14  # bursts in a chunk
TEXT = ("ids", "marks")
HEAVIEST = 1e6  # tails: far beyond any points, and small enough that nothing overflows
FACTS = ("tails", "feature_names", "units", "known_std")
LATER = ("scatter",)  # facts that earlier files do not have
NEEDED = ("means", "tangents", "counts", "residuals", "ids", "marks", "set_aside")


def save_statistics(statistics: BurstStatistics, path: str | os.PathLike[str], *, burst_id: str | None = None) -> Path:
    """Write statistics to a Zarr folder, which appears when it is complete.

    Parameters
    ----------
    statistics : BurstStatistics
    path : path
        Ending in .zarr.
    burst_id : str, optional
        Column that named the bursts in the table they come from; `statistics_burst_id` tells it again.

    Returns
    -------
    Path

    Raises
    ------
    BurstError
        If the name does not end in .zarr.
    OSError
        If the folder cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pyloca import datasets
    >>> statistics = BurstStatistics.from_bursts(datasets.mushroom(100, 10, random_state=0).bursts)
    >>> with TemporaryDirectory() as folder:
    ...     again = read_statistics(save_statistics(statistics, f"{folder}/stats.zarr"))
    >>> bool((again.tangents == statistics.tangents).all())
    True
    """
    path = _zarr_path(path)
    zarr = need("zarr", "scale")
    arrays = {name: getattr(statistics, name) for name in PER_BURST}
    if statistics.instrument is not None:
        arrays |= {f"instrument.{name}": array for name, array in vars(statistics.instrument).items()}
    arrays = {name: _storable(name, array) for name, array in arrays.items() if array is not None}

    def write(folder: Path) -> None:
        group = zarr.open_group(str(folder), mode="w")
        digests: dict[str, list[str]] = {}
        for name, array in arrays.items():
            target, digests[name] = create_array(group, name, array.shape, array.dtype, ROWS), []
            for start in range(0, len(array), ROWS):
                rows = array[start : start + ROWS]
                target[start : start + ROWS] = rows
                digests[name].append(_digest_of(rows))
        shapes = {name: list(array.shape) for name, array in arrays.items()}
        facts = {name: getattr(statistics, name) for name in FACTS + LATER}
        told = {"version": VERSION, "facts": facts, "shapes": shapes, "digests": digests}
        manifest = json.loads(json.dumps(told if burst_id is None else told | {"burst_id": str(burst_id)}))
        group.attrs[KEY] = manifest | {"sha256": _seal(manifest)}

    return replace_folder(path, write)


def read_statistics(path: str | os.PathLike[str]) -> BurstStatistics:
    """Read statistics that `save_statistics` or `pyloca statistics` wrote, checking every chunk.

    Parameters
    ----------
    path : path

    Returns
    -------
    BurstStatistics

    Raises
    ------
    BurstError
        If a chunk is missing or damaged, or the folder is not complete.

    Examples
    --------
    >>> read_statistics("missing.zarr")
    Traceback (most recent call last):
    ...
    pyloca.errors.BurstError: missing.zarr: there is no such folder.
    """
    path = _zarr_path(path)
    if not path.is_dir():
        raise BurstError(f"{path}: there is no such folder.")
    zarr = need("zarr", "scale")
    try:
        group = zarr.open_group(str(path), mode="r")
        manifest = dict(group.attrs[KEY])
        good = manifest.pop("sha256") == _seal(manifest) and manifest["version"] == VERSION
        facts, shapes, digests = _parts(manifest)
    except Exception as error:  # whatever the parser stumbles over: it is not our file
        raise BurstError(f"{path}: not a readable folder of burst statistics ({str(error)[:200]}).") from error
    if not good:
        raise BurstError(f"{path}: its manifest does not match its checksum; it was altered or damaged.")
    arrays: dict[str, Any] = {name: _read_array(group, path, name, shapes[name], digests[name]) for name in shapes}
    _refuse_other_shapes(path, arrays)
    instrument: dict[str, Any] = {f.name: arrays.pop(f"instrument.{f.name}", None) for f in fields(Noise)}
    facts |= {name: None if facts[name] is None else tuple(facts[name]) for name in ("feature_names", "units")}
    facts["scatter"] = None if facts.get("scatter") is None else Scatter(*facts["scatter"])
    noise = None if instrument["levels"] is None else Noise(**instrument)
    return BurstStatistics(**arrays, instrument=noise, **facts)


def statistics_burst_id(path: str | os.PathLike[str]) -> str | None:
    """Tell which column named the bursts in the table that statistics were computed from.

    Parameters
    ----------
    path : path
        Of statistics that `read_statistics` can read.

    Returns
    -------
    str or None
        None if they do not come from a table, or the file does not tell.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pyloca import datasets
    >>> statistics = BurstStatistics.from_bursts(datasets.mushroom(100, 10, random_state=0).bursts)
    >>> with TemporaryDirectory() as folder:
    ...     statistics_burst_id(save_statistics(statistics, f"{folder}/stats.zarr", burst_id="run"))
    'run'
    """
    told = need("zarr", "scale").open_group(str(_zarr_path(path)), mode="r").attrs[KEY].get("burst_id")
    return told if isinstance(told, str) else None


def _parts(manifest: dict[str, Any]) -> tuple[dict[str, Any], dict[str, list[int]], dict[str, list[str]]]:
    """Take a manifest apart; raise if it is not one, whatever its checksum says."""
    facts, shapes, digests = (manifest[name] for name in ("facts", "shapes", "digests"))
    if not set(FACTS) <= set(facts) <= set(FACTS + LATER) or set(shapes) != set(digests):
        raise ValueError("its manifest is not complete")
    for shape in shapes.values():
        if not isinstance(shape, list) or not shape or not all(is_integer(size, 0) for size in shape):
            raise ValueError(f"its manifest has the shape {str(shape)[:50]}")
    for name in ("feature_names", "units"):
        known = facts[name]
        if known is not None and not (isinstance(known, list) and all(isinstance(one, str) for one in known)):
            raise ValueError(f"its manifest has {name} that are not names")
        if known is not None and len(known) != shapes["means"][-1]:
            raise ValueError(f"its manifest has {len(known)} {name}")
    for name, most in (("tails", HEAVIEST), ("known_std", LARGEST)):
        value = facts[name]
        if (value is not None or name == "tails") and not (is_finite(value) and 0 < value < most):
            raise ValueError(f"its manifest has {name} = {str(value)[:50]}")
    rule = facts.get("scatter")
    if rule is not None and not (
        isinstance(rule, list) and len(rule) == 3 and all(is_finite(one) and 0 < one < HEAVIEST for one in rule)
    ):
        raise ValueError(f"its manifest has scatter = {str(rule)[:50]}")
    return facts, shapes, digests


def _read_array(group: Any, path: Path, name: str, shape: list[int], digests: list[str]) -> NDArray[Any]:
    found: list[NDArray[Any]] = []
    try:
        stored = group[name]
        alike = list(stored.shape) == shape and len(digests) == -(-shape[0] // ROWS)
        for number, start in enumerate(range(0, shape[0], ROWS) if alike else ()):
            rows = np.asarray(stored[start : start + ROWS])
            if _digest_of(rows) != digests[number]:
                raise ValueError(f"chunk {number} does not match its checksum")
            found.append(rows)
        if not alike:
            raise ValueError("its shape is not that of the manifest")
    except Exception as error:
        raise BurstError(
            f"{path}: '{name}' cannot be read: a chunk is missing or damaged ({str(error)[:200]}). Compute the "
            "statistics again, or restore the folder from a copy."
        ) from error
    values = np.concatenate(found) if found else np.empty(shape)
    if values.dtype.kind == "T":
        return values.astype(object) if name == "marks" else np.array(values.tolist())
    return values


def _refuse_other_shapes(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse arrays that a valid checksum was put on, but that are not statistics."""
    missing = [name for name in NEEDED if name not in arrays]
    extra = [name for name in arrays if name not in PER_BURST and not name.startswith("instrument.")]
    if missing or extra:
        raise BurstError(f"{path}: not burst statistics ({', '.join(missing) or 'nothing'} missing, {extra} unknown).")
    shape = arrays["tangents"].shape
    if len(shape) != 3 or 0 in shape:
        raise BurstError(f"{path}: tangents have shape {shape}; expected (N, k, D).")
    n, k, dim = shape
    expected = {"means": (n, dim), "tangents": shape, "total": (n, k, k), "noise": (n, k, k)}
    for name, array in arrays.items():
        if name.startswith("instrument."):
            continue
        if array.shape != expected.get(name, (n,)):
            raise BurstError(f"{path}: {name} has shape {array.shape}; expected {expected.get(name, (n,))}.")
        if name in TEXT:
            continue
        if array.dtype.kind not in "fi" or not (np.abs(array[np.isfinite(array)]) < LARGEST).all():
            raise BurstError(f"{path}: {name} holds values that are not finite numbers.")
        if not np.isfinite(array[array != np.inf] if name == "counts" else array).all():
            raise BurstError(f"{path}: {name} holds values that are not finite numbers.")
        if name in ("counts", "residuals", "tilts", "set_aside") and (array < (name == "counts")).any():
            raise BurstError(f"{path}: {name} holds values that are too small.")
    _refuse_other_noise(path, arrays)


def _refuse_other_noise(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Refuse noise that cannot be: E_i positive definite, R_i positive semi-definite."""
    if ("total" in arrays) != ("noise" in arrays):
        raise BurstError(f"{path}: not burst statistics (total or noise is missing).")
    dim = arrays["means"].shape[1]
    known = {name[11:]: array for name, array in arrays.items() if name.startswith("instrument.")}
    p = known["levels"].shape[:1] if "levels" in known else ()
    shapes = {"levels": {(*p, dim), (*p, dim, dim)}, "places": {(*p, dim)}, "unit": {(dim,)}}
    for name, array in known.items():
        numbers = array.dtype.kind == "f" and array.size and not np.isnan(array).any()
        if not p or array.shape not in shapes.get(name, ()) or not numbers:
            raise BurstError(f"{path}: instrument.{name} does not describe a measurement noise.")
    for name in ("total", "noise"):
        if name not in arrays:
            continue
        matrices = arrays[name]
        size = np.abs(matrices).max(axis=(1, 2))
        off = np.abs(matrices - matrices.transpose(0, 2, 1)).max(axis=(1, 2))
        least = np.linalg.eigvalsh(matrices)[:, 0]
        if (off > 1e-6 * size).any() or (least <= 0 if name == "total" else least < -1e-6 * size).any():
            raise BurstError(f"{path}: {name} holds matrices that are not covariances.")


def holds_statistics(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path is a folder of statistics, complete or not.

    Parameters
    ----------
    path : path

    Returns
    -------
    bool

    Examples
    --------
    >>> holds_statistics("bursts.csv")
    False
    """
    path = Path(path)
    if path.suffix.lower() != ".zarr" or not (path / "zarr.json").is_file():
        return False
    try:
        return KEY in json.loads((path / "zarr.json").read_text(encoding="utf-8")).get("attributes", {})
    except (ValueError, OSError, AttributeError, RecursionError, TypeError):
        return False


def _refuse_mixed_units(bursts: Bursts) -> None:
    """Refuse sensors that a fit would divide by very different spreads: statistics are taken in the units given."""
    scale = feature_scale(bursts)
    used = np.zeros(0, dtype=np.int64) if scale is None else np.flatnonzero(np.isfinite(scale))
    if scale is None or not len(used) or scale[used].max() <= UNLIKE * scale[used].min():
        return
    least, most = used[np.argmin(scale[used])], used[np.argmax(scale[used])]
    raise BurstError(
        f"{bursts.feature_label(most)} varies {scale[most] / scale[least]:.2g} times as much as "
        f"{bursts.feature_label(least)}: tangents of bursts in such units would be those of the largest sensors and "
        "their noise. Divide each sensor by its spread first, or fit the raw bursts, which does that."
    )


def write_statistics(
    data: Bursts | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str] | None = None,
    burst_id: str | None = None,
    **options: Any,
) -> BurstStatistics:
    """Compute the statistics of bursts and write them; a run that was killed continues where it stopped.

    Until all is done, finished parts are kept in the folder ``path + ".partial"``. They are used again if the file of
    bursts (names, sizes and times of its chunks) and the options are the same.

    Parameters
    ----------
    data : path or Bursts
    path : path
        Ending in .zarr.
    source : path, optional
        The file that `data` were read from. Without it, runs on `Bursts` start afresh: there is no telling whether they
        are the same.
    burst_id : str, optional
        As for `save_statistics`.
    **options
        As for `BurstStatistics.from_bursts`.

    Returns
    -------
    BurstStatistics

    Raises
    ------
    BurstError
        If the bursts cannot be used, or their sensors have units in which some drown the others.
    WorkerError
        If Dask workers, or their scheduler, are lost.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pyloca import datasets
    >>> with TemporaryDirectory() as folder:
    ...     write_statistics(datasets.mushroom(100, 10, random_state=0).bursts, f"{folder}/stats.zarr").intrinsic_dim
    2
    """
    path = _zarr_path(path)
    partial = path.with_name(f"{path.name}.partial")
    bursts = as_bursts(data)
    _refuse_mixed_units(bursts)
    source = data if isinstance(data, (str, os.PathLike)) else source
    listed = [os.urandom(16).hex()] if source is None else _listing(Path(source))
    said = {name: _plain(value) for name, value in options.items()}
    partial.mkdir(parents=False, exist_ok=True)
    facts = {"version": VERSION, "source": listed, "options": said, "names": bursts.feature_names}
    try:
        statistics = BurstStatistics.from_bursts(bursts, keep=KeepParts(partial, _seal(facts)), **options)
    except ValueError:  # bad data or options
        shutil.rmtree(partial)  # to go on would end the same way
        raise
    save_statistics(statistics, path, burst_id=burst_id)
    shutil.rmtree(partial)
    return statistics


def _listing(path: Path) -> list[Any]:
    """List the files of a folder, or a file: name, size and time."""
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return [[str(p.relative_to(path)), p.stat().st_size, p.stat().st_mtime_ns] for p in files]


def _plain(value: Any) -> Any:
    """Describe an option for a digest."""
    if isinstance(value, Bursts):
        return hashlib.sha256(value.to_ragged()[0].tobytes()).hexdigest()
    return value.tolist() if isinstance(value, np.ndarray) else value


def _zarr_path(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    if path.suffix.lower() != ".zarr":
        raise BurstError(f"{path}: statistics are kept in .zarr folders; got the suffix {path.suffix!r}.")
    return path


def _storable(name: str, array: NDArray[Any]) -> NDArray[Any]:
    text = name in TEXT and array.dtype.kind not in "iu"
    return array.astype(np.dtypes.StringDType()) if text else np.ascontiguousarray(array)


def _digest_of(rows: NDArray[Any]) -> str:
    content = json.dumps(rows.tolist()).encode() if rows.dtype.kind == "T" else np.ascontiguousarray(rows).tobytes()
    return hashlib.sha256(content).hexdigest()


def _seal(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
