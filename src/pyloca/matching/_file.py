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

from pyloca._arguments import LARGEST, is_finite, is_integer, is_positive
from pyloca._atomic import write_atomically
from pyloca._contract import Promise, check_arrays, check_entry
from pyloca._sealed import describing, read_bytes, seal, unseal
from pyloca.errors import ModelFileError
from pyloca.estimator import LOCA
from pyloca.matching._rigid import freedom
from pyloca.matching._seams import Seams
from pyloca.metrics import RigidMap
from pyloca.modelfile import model_from_bytes, model_to_bytes

__all__ = ["Modules", "check_fusion", "check_match", "read_bundle", "read_rigid", "read_seams", "write_bundle"]

Arrays = dict[str, NDArray[Any]]
Modules = Mapping[str, tuple[nn.Module | None, nn.Module | None]]

VERSION = 1
MODEL = "model."
ROUNDING = 1e-6  # of rotations and covariances


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
    with describing(f"a {kind.removeprefix('pyloca-')}", os.fspath(path)):
        names = header["names"]
        fits = bool(names) and len({str(name) for name in names}) == len(names) > 0
        check_entry(fits and all(isinstance(name, str) for name in names), "names", names, "different texts")
        promises = {f"{MODEL}{i}": Promise((f"bytes of {i}",), "u") for i in range(len(names))}
        check_arrays(arrays, promises, {})
        facts = dict(header["facts"])
    models = {}
    for i, name in enumerate(names):
        encoder, decoder = (networks or {}).get(name, (None, None))
        inside = arrays.pop(f"{MODEL}{i}").tobytes()
        models[name] = model_from_bytes(inside, LOCA, f"{path} ({name})", encoder=encoder, decoder=decoder)
    sizes = [model.n_components_ for model in models.values()]
    with describing(f"a {kind.removeprefix('pyloca-')}", os.fspath(path)):
        check_entry(len(set(sizes)) == 1, "n_components_ of its models", sizes, "one number")
    return models, arrays, facts


def check_match(models: Mapping[str, LOCA], arrays: Arrays, facts: Mapping[str, Any]) -> None:
    """Refuse a match whose arrays do not have the sizes of its models, or whose facts are not what they must be."""
    check_entry(len(models) == 2, "the number of models", len(models), "2")
    d, n, chosen = next(iter(models.values())).n_components_, len(facts["candidates"]), facts["chosen"]
    p = freedom(d, scale=facts["scaled"])
    promises = {
        "rotations": Promise((n, d, d)),
        "shifts": Promise((n, d)),
        "residuals": Promise(("anchors",)),
        "used": Promise(("anchors",), "b"),
        "covariance": Promise((p, p)),
        "centre": Promise((d,)),
    }
    check_arrays(arrays, promises, {})
    check_covariance("covariance", arrays)
    check_entry(n > 0, "the number of candidates", n, "one or more")
    known = chosen is None or (is_integer(chosen, 0) and chosen < n)
    check_entry(known, "chosen", chosen, f"null, or an integer below {n}")
    for name in ("variance", "degrees"):
        check_entry(is_finite(facts[name]) and 0 <= facts[name] < LARGEST, name, facts[name], "a number ≥ 0")
    check_entry(isinstance(facts["how"], str), "how", facts["how"], "a text")
    for name in ("continuous", "scaled"):
        check_entry(isinstance(facts[name], bool), name, facts[name], "true or false")


def check_fusion(models: Mapping[str, LOCA], arrays: Arrays, facts: Mapping[str, Any]) -> None:
    """Do the same for a fusion."""
    names, scales = facts["connected"], facts["scales"]
    every = sorted([*names, *facts["unconnected"]])
    check_entry(every == sorted(models) and bool(names), "connected and unconnected", every, "the models of the file")
    check_entry(len(scales) == len(names), "scales", scales, f"{len(names)} numbers")
    d = next(iter(models.values())).n_components_
    p = freedom(d, scale=True)
    shapes = {"rotation": (d, d), "shift": (d,), "covariance": (p, p), "centre": (d,)}
    numbers = range(len(names))
    check_arrays(arrays, {f"{key}.{i}": Promise(shape) for key, shape in shapes.items() for i in numbers}, {})
    for i in numbers:
        check_covariance(f"covariance.{i}", arrays)


def check_covariance(name: str, arrays: Arrays) -> None:
    """Refuse what would be errors whose squares are negative."""
    array = arrays[name]
    if np.abs(array - array.T).max() > ROUNDING * np.abs(array).max():
        raise ModelFileError(f"the array {name!r} is not a covariance: it is not symmetric")
    values = np.linalg.eigvalsh(array)
    if values[0] < -ROUNDING * max(values[-1], 1e-300):
        raise ModelFileError(f"the array {name!r} is not a covariance: it has the eigenvalue {values[0]:.3g}")


def read_seams(arrays: Arrays, d: int, n_fields: int) -> Seams:
    """Take the seams of `n_fields` instruments with d coordinates out of the arrays of a file."""
    shapes: dict[str, tuple[int | str, ...]] = {"places": ("anchors", d), "ends": ("anchors", 2)}
    shapes |= {"differences": ("anchors", d), "variances": (n_fields,), "lengths": (n_fields,), "noise": ("anchors",)}
    promises = {name: Promise(shape, "i" if name == "ends" else "f") for name, shape in shapes.items()}
    found = {name: arrays.pop(f"seams.{name}") for name in shapes}
    check_arrays(found, promises, {})
    ends = found["ends"]
    check_entry(bool(((ends >= 0) & (ends < n_fields)).all()), "seams.ends", ends, f"instruments below {n_fields}")
    for name in ("variances", "noise"):
        check_entry(bool((found[name] >= 0).all()), f"seams.{name}", found[name], "numbers ≥ 0")
    check_entry(bool((found["lengths"] > 0).all()), "seams.lengths", found["lengths"], "numbers > 0")
    return Seams(**found)


def read_rigid(rotation: NDArray[Any], shift: NDArray[Any], scale: Any) -> RigidMap:
    """Make a rigid map of what a file has, which has been checked for its shape."""
    turn = np.abs(rotation.T @ rotation - np.eye(len(rotation))).max()
    check_entry(bool(turn <= ROUNDING), "a rotation", rotation.tolist(), "an orthogonal matrix")
    check_entry(is_positive(scale) and 1 / LARGEST < scale < LARGEST, "the scale of a map", scale, "a number > 0")
    return RigidMap(rotation, shift, float(scale))
