"""Files that cannot be altered unnoticed: safetensors with a JSON header, which holds the SHA-256 of all there is."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from pyloca.errors import ModelFileError

__all__ = [
    "MODEL",
    "MODEL_VERSIONS",
    "describing",
    "digest",
    "file_kind",
    "plain",
    "read_bytes",
    "seal",
    "unseal",
]

Arrays = dict[str, NDArray[Any]]

MODEL = "pyloca-model"  # the kind of a model file
MODEL_VERSIONS = (3, 2)  # the present one, and earlier ones that are read: 2 has no names, ids, units and feature scale

MAX_HEADER = 100_000_000  # bytes, the limit of the safetensors format
MAX_LISTS = 2_000_000  # in a header: 130 MB; a model has a few thousand


def seal(kind: str, header: dict[str, Any], arrays: Arrays) -> bytes:
    """Return the content of a file of this kind.

    Parameters
    ----------
    kind : str
        Such as "pyloca-model".
    header : dict
        With a "version"; NumPy numbers are stored as numbers.
    arrays : dict of str to array

    Returns
    -------
    bytes

    Examples
    --------
    >>> header, arrays = unseal(seal("pyloca-toy", {"version": 1}, {"x": np.arange(2)}), "pyloca-toy", (1,), "memory")
    >>> header, arrays["x"].tolist()
    ({'version': 1}, [0, 1])
    """
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    header = json.loads(json.dumps(header, default=plain))  # exactly as it will be read
    header["sha256"] = digest(arrays, header)
    text = json.dumps(header)
    if 2 * (len(text) + text.count('"')) > MAX_HEADER:  # quotes are escaped; half is left to the names of arrays
        raise ValueError(
            f"what is to be stored beside arrays takes {len(text):,} characters, more than a file holds. If "
            "measurement_noise was given to LOCA for every burst, give it to Bursts as noise=…, and fit again."
        )
    return safetensors.numpy.save(arrays, {kind: text})


def unseal(content: bytes, kind: str, versions: tuple[int, ...], path: str) -> tuple[dict[str, Any], Arrays]:
    """Invert `seal`.

    Parameters
    ----------
    content : bytes
    kind : str
    versions : tuple of int
        Those that can be read, the present one first.
    path : str
        Where the bytes come from, for messages.

    Returns
    -------
    header, arrays : dict, dict

    Raises
    ------
    ModelFileError
        If it is not such a file, has another version, or was altered or damaged.
    """
    what = kind.replace("-", " ")
    try:
        metadata = _metadata(content[:8], content[8 : 8 + MAX_HEADER], len(content))
        if kind not in metadata:
            raise ValueError(f"a safetensors file, but not a {what}{_other(metadata)}")
        header = _json(metadata[kind])
        found = header["version"]
        arrays = safetensors.numpy.load(content)
    except Exception as error:  # every failure of the parser means the same: not our file
        raise ModelFileError(f"{path}: not a {what} file ({_reason(error)}).") from error
    if found not in versions:
        raise ModelFileError(
            f"{path}: format version {found}; this pyloca reads version {versions[0]}. Update pyloca, or fit again."
        )
    if header.pop("sha256", None) != digest(arrays, header):
        raise ModelFileError(f"{path}: the content does not match its checksum; the file was altered or damaged.")
    return header, arrays


@contextmanager
def describing(what: str, path: str) -> Iterator[None]:
    """Report what goes wrong while something is made of a file: its checksum matches, so pyloca did not write it.

    Parameters
    ----------
    what : str
        Such as "a model".
    path : str
        Where the file is, for messages.

    Raises
    ------
    ModelFileError

    Examples
    --------
    >>> with describing("a model", "m.safetensors"):
    ...     {}["networks"]
    Traceback (most recent call last):
    ...
    pyloca.errors.ModelFileError: m.safetensors: does not describe a model ('networks' is missing).
    """
    try:
        yield
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}.") from None
    except Exception as error:
        raise ModelFileError(f"{path}: does not describe {what} ({_reason(error)}).") from error


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a file.

    Parameters
    ----------
    path : path

    Returns
    -------
    bytes

    Raises
    ------
    ModelFileError
        If it cannot be read.
    """
    try:
        with _open(path) as file:
            return file.read()
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror or error}).") from error
    except MemoryError as error:
        raise ModelFileError(f"{path}: cannot be read ({Path(path).stat().st_size:,} bytes exceed memory).") from error


def file_kind(path: str | os.PathLike[str]) -> str:
    """Return the kind that a file says it has, by its header alone.

    Parameters
    ----------
    path : path

    Returns
    -------
    str
        Such as "pyloca-model" or "pyloca-match"; "" if it is none of pyloca's, or there is no such file.

    Examples
    --------
    >>> file_kind("missing.safetensors")
    ''
    """
    try:
        with _open(path) as file:
            length = file.read(8)
            whole = os.fstat(file.fileno()).st_size
            short = int.from_bytes(length, "little") <= MAX_HEADER  # of what is no such file nothing more is read
            metadata = _metadata(length, file.read(int.from_bytes(length, "little")) if short else b"", whole)
    except (OSError, ValueError, AttributeError, RecursionError):
        return ""
    return next((name for name in metadata if name.startswith("pyloca-")), "")


def digest(arrays: Arrays, header: dict[str, Any]) -> str:
    """Return the SHA-256 of a header without its own "sha256", and of all arrays with their names and kinds."""
    sum_of = hashlib.sha256(json.dumps(header).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        sum_of.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sum_of.update(array.reshape(-1).view(np.uint8).data)  # no copy: arrays may be large
    return sum_of.hexdigest()


def _open(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file; a device has no end, and a pipe may wait for ever."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it exists but is not a regular file")
    return open(handle, "rb")


def _metadata(length: bytes, rest: bytes, whole: int) -> dict[str, str]:
    """Find what the format lets its users add; refuse a header that the file of `whole` bytes does not have."""
    size = int.from_bytes(length, "little")
    if not 2 <= size <= min(MAX_HEADER, whole - 8):
        raise ValueError("not a safetensors file, or truncated")
    return dict(_json(rest[:size]).get("__metadata__") or {})


def _json(text: str | bytes) -> Any:
    """Parse JSON of bounded size: every list and object takes far more memory than its two characters."""
    text = text.decode() if isinstance(text, bytes) else text
    if text.count("[") + text.count("{") > MAX_LISTS:
        raise ValueError(f"a header of more than {MAX_LISTS:,} lists and objects")
    return json.loads(text)


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "its header is nested too deeply"
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def _other(metadata: dict[str, str]) -> str:
    ours = ", ".join(sorted(name.replace("-", " ") for name in metadata if name.startswith("pyloca-")))
    return f": it holds a {ours}" if ours else ""


def plain(value: Any) -> Any:
    """Convert NumPy numbers for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be stored in a model file")
