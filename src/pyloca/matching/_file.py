"""One safetensors file for several models and how they belong together, sealed like a model file.

The models lie in it as whole model files, byte by byte.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from pyloca._atomic import write_atomically
from pyloca._sealed import read_bytes, seal, unseal
from pyloca.estimator import LOCA
from pyloca.modelfile import model_from_bytes, model_to_bytes

__all__ = ["Modules", "read_bundle", "write_bundle"]

Arrays = dict[str, NDArray[Any]]
Modules = Mapping[str, tuple[nn.Module | None, nn.Module | None]]

VERSION = 1
MODEL = "model."


def write_bundle(
    path: str | os.PathLike[str], kind: str, models: Mapping[str, LOCA], arrays: Arrays, facts: dict[str, Any]
) -> Path:
    """Write models by name, arrays and facts (ready for JSON), atomically."""
    stored = {f"{MODEL}{i}": np.frombuffer(model_to_bytes(m), dtype=np.uint8) for i, m in enumerate(models.values())}
    header = {"version": VERSION, "names": list(models), "facts": facts}
    return write_atomically(Path(path), seal(kind, header, stored | arrays))


def read_bundle(
    path: str | os.PathLike[str], kind: str, networks: Modules | None = None
) -> tuple[dict[str, LOCA], Arrays, dict[str, Any]]:
    """Invert `write_bundle`; `networks` are the user's own encoder and decoder, by the name of the instrument."""
    header, arrays = unseal(read_bytes(path), kind, (VERSION,), os.fspath(path))
    models = {}
    for i, name in enumerate(header["names"]):
        encoder, decoder = (networks or {}).get(name, (None, None))
        inside = arrays.pop(f"{MODEL}{i}").tobytes()
        models[name] = model_from_bytes(inside, LOCA, f"{path} ({name})", encoder=encoder, decoder=decoder)
    return models, arrays, header["facts"]
