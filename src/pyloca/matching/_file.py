"""One safetensors file for several models and how they belong together, in the manner of a model file.

The models lie in it as whole model files, byte by byte, beside arrays and a JSON header with format, version and the
SHA-256 of everything. Nothing is unpickled; a file that was truncated or altered is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from torch import nn

from pyloca._atomic import write_atomically
from pyloca.errors import ModelFileError
from pyloca.estimator import LOCA
from pyloca.modelfile import model_from_bytes, model_to_bytes

__all__ = ["Modules", "file_kind", "read_bundle", "write_bundle"]

Arrays = dict[str, NDArray[Any]]
Modules = Mapping[str, tuple[nn.Module | None, nn.Module | None]]

VERSION = 1
MODEL = "model."


def write_bundle(
    path: str | os.PathLike[str], kind: str, models: Mapping[str, LOCA], arrays: Arrays, facts: dict[str, Any]
) -> Path:
    """Write models by name, arrays and facts (ready for JSON), atomically."""
    stored = {f"{MODEL}{i}": np.frombuffer(model_to_bytes(m), dtype=np.uint8) for i, m in enumerate(models.values())}
    stored |= {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header: dict[str, Any] = {"format": kind, "version": VERSION, "names": list(models), "facts": facts}
    header = json.loads(json.dumps(header))  # exactly as it will be read
    header["sha256"] = _digest(stored, header)
    return write_atomically(Path(path), safetensors.numpy.save(stored, {kind: json.dumps(header)}))


def read_bundle(
    path: str | os.PathLike[str], kind: str, networks: Modules | None = None
) -> tuple[dict[str, LOCA], Arrays, dict[str, Any]]:
    """Invert `write_bundle`; `networks` are the user's own encoder and decoder, by the name of the instrument."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read ({error.strerror}).") from error
    try:
        metadata = _metadata(content)
        if kind not in metadata:
            found = ", ".join(sorted(metadata)) or "nothing of pyloca's"
            raise ValueError(f"it holds {found}, not {kind}")
        header = json.loads(metadata[kind])
        arrays = safetensors.numpy.load(content)
        version = header["version"]
    except Exception as error:  # every failure of the parser means the same: not our file
        raise ModelFileError(f"{path}: not a {kind} file ({error}).") from error
    if version != VERSION:
        raise ModelFileError(f"{path}: format version {version}; this pyloca reads version {VERSION}. Update pyloca.")
    if header.pop("sha256", None) != _digest(arrays, header):
        raise ModelFileError(f"{path}: the content does not match its checksum; the file was altered or damaged.")
    models = {}
    for i, name in enumerate(header["names"]):
        encoder, decoder = (networks or {}).get(name, (None, None))
        inside = arrays.pop(f"{MODEL}{i}").tobytes()
        models[name] = model_from_bytes(inside, LOCA, f"{path} ({name})", encoder=encoder, decoder=decoder)
    return models, arrays, header["facts"]


def file_kind(path: str | os.PathLike[str]) -> str:
    """Return the format that a file says it has.

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
            size = int.from_bytes(file.read(8), "little")
            metadata = json.loads(file.read(min(size, 100_000_000))).get("__metadata__") or {}
    except (OSError, ValueError, UnicodeDecodeError, AttributeError):
        return ""
    return next((name for name in metadata if name.startswith("pyloca-")), "")


def _metadata(content: bytes) -> dict[str, str]:
    size = int.from_bytes(content[:8], "little")
    if not 2 <= size <= len(content) - 8:
        raise ValueError("not a safetensors file, or truncated")
    found = json.loads(content[8 : 8 + size]).get("__metadata__") or {}
    return dict(found)


def _digest(arrays: Arrays, header: dict[str, Any]) -> str:
    digest = hashlib.sha256(json.dumps(header).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
