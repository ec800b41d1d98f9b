"""Files that cannot be altered unnoticed: safetensors with a JSON header, which holds the SHA-256 of all there is."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from pyloca.errors import ModelFileError

__all__ = ["MODEL", "MODEL_VERSIONS", "digest", "file_kind", "plain", "read_bytes", "seal", "unseal"]

Arrays = dict[str, NDArray[Any]]

MODEL = "pyloca-model"  # the kind of a model file
MODEL_VERSIONS = (3, 2)  # the present one, and earlier ones that are read: 2 has no names, ids, units and feature scale

MAX_HEADER = 100_000_000  # bytes, the limit of the safetensors format


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
    return safetensors.numpy.save(arrays, {kind: json.dumps(header)})


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
        If it is no such file, has another version, or was altered or damaged.
    """
    what = kind.replace("-", " ")
    try:
        metadata = _metadata(content[:8], content[8:])
        arrays = safetensors.numpy.load(content)
        if kind not in metadata:
            raise ValueError(f"a safetensors file, but not a {what}{_other(metadata)}")
        header = json.loads(metadata[kind])
        found = header["version"]
    except Exception as error:  # every failure of the parser means the same: not our file
        raise ModelFileError(f"{path}: not a {what} file ({error}).") from error
    if found not in versions:
        raise ModelFileError(
            f"{path}: format version {found}; this pyloca reads version {versions[0]}. Update pyloca, or fit again."
        )
    if header.pop("sha256", None) != digest(arrays, header):
        raise ModelFileError(f"{path}: the content does not match its checksum; the file was altered or damaged.")
    return header, arrays


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
        return Path(path).read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror}).") from error


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
        with Path(path).open("rb") as file:
            length = file.read(8)
            metadata = _metadata(length, file.read(min(int.from_bytes(length, "little"), MAX_HEADER)))
    except (OSError, ValueError, AttributeError):
        return ""
    return next((name for name in metadata if name.startswith("pyloca-")), "")


def digest(arrays: Arrays, header: dict[str, Any]) -> str:
    """Return the SHA-256 of a header without its own "sha256", and of all arrays with their names and kinds."""
    sum_of = hashlib.sha256(json.dumps(header).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        sum_of.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        sum_of.update(array.tobytes())
    return sum_of.hexdigest()


def _metadata(length: bytes, rest: bytes) -> dict[str, str]:
    """Find what the format lets its users add; refuse a declared length that the file does not have."""
    size = int.from_bytes(length, "little")
    if not 2 <= size <= min(MAX_HEADER, len(rest)):
        raise ValueError("not a safetensors file, or truncated")
    return dict(json.loads(rest[:size]).get("__metadata__") or {})


def _other(metadata: dict[str, str]) -> str:
    ours = ", ".join(sorted(name.replace("-", " ") for name in metadata if name.startswith("pyloca-")))
    return f": it holds a {ours}" if ours else ""


def plain(value: Any) -> Any:
    """Convert NumPy numbers for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be stored in a model file")
