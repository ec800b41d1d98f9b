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

from pyloca._arguments import LARGEST, is_integer, is_positive
from pyloca._atomic import write_atomically
from pyloca._contract import Promise, check_arrays, check_entry
from pyloca._sealed import describing, read_bytes, seal, unseal
from pyloca.errors import ModelFileError
from pyloca.estimator import LOCA
from pyloca.matching._joint import Joint
from pyloca.matching._rigid import freedom
from pyloca.metrics import RigidMap
from pyloca.modelfile import model_from_bytes, model_to_bytes

__all__ = ["Modules", "read_bundle", "read_fusion", "read_match", "read_rigid", "write_bundle"]

Arrays = dict[str, NDArray[Any]]
Modules = Mapping[str, tuple[nn.Module | None, nn.Module | None]]

VERSION = 2  # 1, before 0.2.0, had no displacements
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


def read_match(models: Mapping[str, LOCA], arrays: Arrays, facts: Mapping[str, Any]) -> Joint:
    """Read how two instruments lie; refuse arrays of other sizes than the models have, and facts that cannot be."""
    check_entry(len(models) == 2, "the number of models", len(models), "2")
    d, n, chosen = next(iter(models.values())).n_components_, len(facts["candidates"]), facts["chosen"]
    promises = {
        "rotations": Promise((n, d, d)),
        "shifts": Promise((n, d)),
        "residuals": Promise(("anchors",)),
        "used": Promise(("anchors",), "b"),
    }
    check_arrays(arrays, promises, {})
    check_entry(n > 0, "the number of candidates", n, "one or more")
    known = chosen is None or (is_integer(chosen, 0) and chosen < n)
    check_entry(known, "chosen", chosen, f"null, or an integer below {n}")
    check_entry(isinstance(facts["how"], str), "how", facts["how"], "a text")
    for name in ("continuous", "scaled"):
        check_entry(isinstance(facts[name], bool), name, facts[name], "true or false")
    return _read_joint(arrays, d, 2)


def read_fusion(models: Mapping[str, LOCA], arrays: Arrays, facts: Mapping[str, Any]) -> Joint:
    """Do the same for a fusion."""
    apart = facts["unconnected"]
    known = set(apart) < set(models) and len(set(apart)) == len(apart)
    check_entry(known, "unconnected", apart, "some of the models of the file, each once, but not all")
    return _read_joint(arrays, next(iter(models.values())).n_components_, len(models) - len(apart))


def _read_joint(arrays: Arrays, d: int, n: int) -> Joint:
    """Read maps and displacements of n instruments with d coordinates."""
    p = freedom(d, scale=True)
    promises = {"joint.centres": Promise((n, d)), "joint.rough": Promise((n,)), "joint.degrees": Promise(())}
    for i in range(n):
        shapes: dict[str, tuple[int | str, ...]] = {
            "map.rotation": (d, d),
            "map.shift": (d,),
            "map.scale": (),
            "elastic.centres": (f"centres of {i}", d),
            "elastic.length": (),
            "elastic.mixing": (f"centres of {i}", f"functions of {i}"),
            "elastic.rigid": (f"motions of {i}", f"coefficients of {i}"),
            "elastic.centre": (d,),
            "coefficients": (f"coefficients of {i}",),
        }
        promises |= {f"joint.{name}.{i}": Promise(shape) for name, shape in shapes.items()}
    lengths: dict[str, int] = {}
    check_arrays(arrays, promises, lengths)
    total = n * p
    for i in range(n):
        total += lengths[f"coefficients of {i}"]
        fits = lengths[f"coefficients of {i}"] == d * lengths[f"functions of {i}"]
        motions = lengths[f"motions of {i}"]
        check_entry(fits and motions in (p - 1, p), f"joint.elastic.rigid.{i}", (motions,), f"{p - 1} or {p} motions")
        rotation, shift, scale = (arrays[f"joint.map.{name}.{i}"] for name in ("rotation", "shift", "scale"))
        read_rigid(rotation, shift, scale.item())
        length = arrays[f"joint.elastic.length.{i}"].item()
        check_entry(length > 0, f"joint.elastic.length.{i}", length, "a number > 0")
    check_arrays(arrays, {"joint.covariance": Promise((total, total))}, {})
    check_covariance("joint.covariance", arrays)
    rough, degrees = arrays["joint.rough"], arrays["joint.degrees"].item()
    check_entry(bool((rough >= 0).all()), "joint.rough", rough.tolist(), "numbers ≥ 0")
    check_entry(degrees > 0, "joint.degrees", degrees, "a number > 0")
    return Joint.from_arrays(arrays)


def check_covariance(name: str, arrays: Arrays) -> None:
    """Refuse what would be errors whose squares are negative."""
    array = arrays[name]
    if np.abs(array - array.T).max() > ROUNDING * np.abs(array).max():
        raise ModelFileError(f"the array {name!r} is not a covariance: it is not symmetric")
    values = np.linalg.eigvalsh(array)
    if values[0] < -ROUNDING * max(values[-1], 1e-300):
        raise ModelFileError(f"the array {name!r} is not a covariance: it has the eigenvalue {values[0]:.3g}")


def read_rigid(rotation: NDArray[Any], shift: NDArray[Any], scale: Any) -> RigidMap:
    """Make a rigid map of what a file has, which has been checked for its shape."""
    turn = np.abs(rotation.T @ rotation - np.eye(len(rotation))).max()
    check_entry(bool(turn <= ROUNDING), "a rotation", rotation.tolist(), "an orthogonal matrix")
    check_entry(is_positive(scale) and 1 / LARGEST < scale < LARGEST, "the scale of a map", scale, "a number > 0")
    return RigidMap(rotation, shift, float(scale))
