"""Files of pyloca that somebody else has written: one thing in them is wrong, and the checksum is right."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from pyloca._sealed import seal, unseal

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2.5,
    10**8,
    10**30,
    1e308,
    -1e-308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\x1b[31m",
    "x" * 10_000,
    [],
    {},
    [0.5, "x"],
    [[]] * 1000,
    {"a": {"b": [None]}},
)


def forge(content: bytes, kind: str, versions: tuple[int, ...], random: np.random.RandomState) -> tuple[bytes, str]:
    """Change one entry of the header, or one array, and seal the file again; also say what was changed."""
    header, arrays = unseal(content, kind, versions, "original")
    header, arrays = copy.deepcopy(header), dict(arrays)
    what = _forge_header(header, random) if random.rand() < 0.5 else _forge_array(arrays, random)
    return seal(kind, header, arrays), what


def _forge_header(header: dict[str, Any], random: np.random.RandomState) -> str:
    """Walk down to some entry; replace or remove it."""
    place: Any = header
    path: list[str] = []
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if place is header:
            keys.remove("version")  # another version is another story
        key = keys[random.randint(len(keys))]
        path.append(str(key))
        deeper = isinstance(place[key], (dict, list)) and len(place[key]) > 0
        if not deeper or random.rand() < 0.2:
            break
        place = place[key]
    if random.rand() < 0.2:
        del place[key]
        return f"header {'.'.join(path)} removed"
    place[key] = VALUES[random.randint(len(VALUES))]
    return f"header {'.'.join(path)} = {place[key]!r}"[:120]


def _forge_array(arrays: dict[str, Any], random: np.random.RandomState) -> str:
    names = sorted(arrays)
    name = names[random.randint(len(names))]
    array = arrays[name]
    flat = np.array(array).ravel()
    place = random.randint(len(flat)) if len(flat) else 0
    spoiled = {"zero": 0, "negative": -1, "huge": 10**18 if array.dtype.kind == "i" else 1e308}
    if array.dtype.kind == "f":
        spoiled |= {"nan": np.nan, "infinite": np.inf}
    changes = ["removed", "renamed", "empty", "twice", "flat", "new axis", "dtype", "wide", "complex", *spoiled]
    change = changes[random.randint(len(changes))]
    if change == "removed":
        del arrays[name]
    elif change == "renamed":
        arrays[name + "x"] = arrays.pop(name)
    elif change == "empty":
        arrays[name] = array[:0] if array.ndim else np.empty(0)
    elif change == "twice":
        arrays[name] = np.concatenate([array, array]) if array.ndim else np.stack([array, array])
    elif change == "flat":
        arrays[name] = flat
    elif change == "new axis":
        arrays[name] = array[None]
    elif change == "dtype":
        arrays[name] = array.astype([np.float32, np.float16, np.int64, np.uint8, bool][random.randint(5)])
    elif change == "wide":
        arrays[name] = np.empty((10**9, 0))
    elif change == "complex":
        arrays[name] = array.astype(np.complex64)
    elif len(flat):
        value = spoiled[change]
        with np.errstate(over="ignore", invalid="ignore"):
            flat[place] = np.array(value).astype(flat.dtype)
        arrays[name] = flat.reshape(array.shape)
    return f"array {name} {change}"
