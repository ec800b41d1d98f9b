"""What the header and the arrays of a sealed file promise each other, checked before anything is made of them.

A checksum shows that a file is as it was written, not that it was written by pyloca. NumPy alone: no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import LARGEST, is_finite, is_integer, is_positive
from pyloca.errors import ModelFileError

__all__ = ["Promise", "check_arrays", "check_entry", "check_model", "check_network"]

Arrays = Mapping[str, NDArray[Any]]
KINDS = {"f": "floats", "i": "integers", "u": "bytes", "b": "truth values"}


@dataclass(frozen=True)
class Promise:
    """What an array of a file must be.

    Attributes
    ----------
    shape : tuple of int or str
        Lengths, or names of lengths that several arrays share: ("N", 2).
    kind : str
        Of its dtype: "f", "i", "u" or "b".
    finite : bool
        Whether it may not hold NaN or infinity.
    needed : bool
        Whether it may not be missing.
    """

    shape: tuple[int | str, ...]
    kind: str = "f"
    finite: bool = True
    needed: bool = True


def check_arrays(arrays: Arrays, promises: Mapping[str, Promise], lengths: dict[str, int]) -> None:
    """Compare arrays with what they must be.

    Parameters
    ----------
    arrays : mapping of str to array
    promises : mapping of str to Promise
    lengths : dict of str to int
        Known lengths by name; a name that is not in it is added by the first array that has it.

    Raises
    ------
    ModelFileError
        Naming the first array that is missing or is something else.
    """
    for name, promise in promises.items():
        array = arrays.get(name)
        if array is None:
            if promise.needed:
                raise ModelFileError(f"the array {name!r} is missing")
            continue
        if array.ndim == len(promise.shape):
            for length, found in zip(promise.shape, array.shape, strict=True):
                if isinstance(length, str):
                    lengths.setdefault(length, found)
        expected = tuple(lengths.get(length, 0) if isinstance(length, str) else length for length in promise.shape)
        narrow = promise.kind == "f" and array.dtype.itemsize < 4  # half precision, which no solver computes in
        if array.dtype.kind != promise.kind or narrow or array.shape != expected:
            raise ModelFileError(
                f"the array {name!r} has shape {array.shape} and dtype {array.dtype}; the header and the other arrays "
                f"ask for {expected} {KINDS[promise.kind]}"
            )
        if promise.finite:
            _check_finite(name, array)


def _check_finite(name: str, array: NDArray[Any]) -> None:
    if array.dtype.kind != "f":
        return
    bad = ~(np.abs(array) <= min(LARGEST, float(np.finfo(array.dtype).max)))  # nan is not
    if bad.any():
        raise ModelFileError(f"the array {name!r} has {bad.sum()} values that are not finite, or exceed {LARGEST:g}")


def check_entry(ok: bool, name: str, value: Any, expected: str) -> None:
    """Refuse an entry of a header that is not what it must be."""
    if not ok:
        text = repr(value)
        raise ModelFileError(f"{name} is {text if len(text) <= 80 else text[:79] + '…'}; expected {expected}")


# -- models -----------------------------------------------------------------------------------------------------


def check_model(header: Mapping[str, Any], arrays: Arrays) -> None:
    """Check that header and arrays describe one model, of networks that can be built of just these arrays.

    Parameters
    ----------
    header : mapping
    arrays : mapping of str to array

    Raises
    ------
    ModelFileError
        Saying what does not match.
    KeyError, TypeError
        If an entry of the header is missing or is of another kind.
    """
    fitted = header["fitted"]
    for name in ("n_components_", "n_features_in_", "intrinsic_dim_"):
        check_entry(is_integer(fitted[name], 1), name, fitted[name], "an integer of at least 1")
    check_entry(is_positive(fitted["burst_std_"]), "burst_std_", fitted["burst_std_"], "a number > 0")
    check_entry(is_integer(fitted["n_iter_"], 0), "n_iter_", fitted["n_iter_"], "an integer of at least 0")
    check_entry(isinstance(fitted["converged_"], bool), "converged_", fitted["converged_"], "true or false")
    history = fitted["history_"]
    fits = isinstance(history, list) and all(isinstance(record, dict) for record in history)
    check_entry(fits, "history_", history, "a list of records")
    for name in ("round_trip", "gap"):
        value = header["trust_scale"][name]
        check_entry(is_positive(value), f"trust_scale.{name}", value, "a number > 0")
    for name, value in (header.get("spike_rule") or {}).items():
        check_entry(is_finite(value) and 0 <= value < LARGEST, f"spike_rule.{name}", value, "a number ≥ 0")
    _check_diagnostics(header["diagnostics"])
    d, dim = fitted["n_components_"], fitted["n_features_in_"]
    lengths = {"d": d, "D": dim}
    each = Promise(("N",), finite=False, needed=False)
    check_arrays(
        arrays,
        {
            "embedding": Promise(("N", "d")),
            "validation_indices": Promise(("held out",), "i"),
            "trust_scores": Promise(("scores",)),
            "burst_ids": Promise(("bytes",), "u", needed=False),
            "set_aside": Promise(("N",), "i", needed=False),
            "spike_scale": Promise(("D",), finite=False, needed=False),
            "feature_scale": Promise(("D",), finite=False, needed=False),
            "feature_shift": Promise(("D",), needed=False),
            "probe_decoded": Promise(("probes", "D"), needed=False),
            "probe_encoded": Promise(("probes", "d"), needed=False),
            "noise.places": Promise(("places", "D"), needed=False),
            "noise.unit": Promise(("D",), finite=False, needed=False),
            **{name: each for name in arrays if name.startswith("diagnostics.")},
        },
        lengths,
    )
    if not lengths["N"]:
        raise ModelFileError("the array 'embedding' is empty")
    for name in ("feature_scale", "spike_scale", "noise.unit"):
        sizes = arrays.get(name, np.ones(1))
        if not ((sizes > 0) & ((sizes <= LARGEST) | np.isinf(sizes))).all():  # nan is not; infinity leaves one out
            raise ModelFileError(f"the array {name!r} has values that are not > 0, or exceed {LARGEST:g}")
    if "noise.levels" in arrays:
        full = arrays["noise.levels"].ndim == 3
        shape: tuple[int | str, ...] = (lengths.get("places", 1), "D", "D") if full else (lengths.get("places", 1), "D")
        check_arrays(arrays, {"noise.levels": Promise(shape)}, lengths)
        levels = arrays["noise.levels"]
        if not ((np.diagonal(levels, axis1=1, axis2=2) if full else levels) >= 0).all():
            raise ModelFileError("the array 'noise.levels' has variances below 0")
    rows = [*arrays["validation_indices"].tolist(), *(stray["burst"] for stray in _strays(header))]
    outside = [row for row in rows if not (is_integer(row, 0) and row < lengths["N"])]
    if outside:
        raise ModelFileError(f"there is no burst {outside[0]!r} among {lengths['N']}, which it speaks of")
    for name in ("feature_names", "units"):
        given = header.get(name)
        fits = given is None or (len(given) == dim and all(isinstance(text, str) for text in given))
        check_entry(fits, name, given, f"{dim} texts, one per feature")
    check_network("encoder", header["networks"]["encoder"], arrays, dim, d)
    check_network("decoder", header["networks"]["decoder"], arrays, d, dim)


def _check_diagnostics(facts: Mapping[str, Any]) -> None:
    """Check what is printed and compared; files of earlier versions do not have all of it."""
    for name in ("whitening_loss", "median_loss", "sampling_floor", "tails", "precision"):
        value = facts.get(name)
        fits = value is None or (_is_number(value) and not LARGEST < value < float("inf"))
        check_entry(fits, f"diagnostics.{name}", value, "a number")
    for name in ("stretch", "round_trip", "sampling_stretch"):
        pair = facts.get(name)
        fits = isinstance(pair, list) and len(pair) == 2 and all(map(_is_number, pair))
        check_entry(fits or (pair is None and name != "stretch"), f"diagnostics.{name}", pair, "two numbers")
    for name in ("set_aside", "noise", "clipped", "shape"):
        check_entry(isinstance(facts.get(name, ""), str), f"diagnostics.{name}", facts.get(name), "a text")
    for name in ("restarts", "notes"):
        words = facts.get(name, [])
        fits = isinstance(words, list) and all(isinstance(word, str) for word in words)
        check_entry(fits, f"diagnostics.{name}", words, "a list of texts")
    gap = facts.get("gap")
    if gap is not None:
        numbers = [*gap["centre"], gap["radius"], gap["spacing"]]
        check_entry(all(map(is_finite, numbers)), "diagnostics.gap", gap, "finite numbers")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _strays(header: Mapping[str, Any]) -> list[Any]:
    return list(header["diagnostics"].get("strays", ()))


def check_network(name: str, facts: Mapping[str, Any], arrays: Arrays, n_in: int, n_out: int) -> None:
    """Check that a network of these sizes has just these weights, and that they are finite."""
    prefix = f"{name}."
    weights = {key.removeprefix(prefix): array for key, array in arrays.items() if key.startswith(prefix)}
    for key, array in weights.items():
        _check_finite(f"{prefix}{key}", array)
    if facts["kind"] == "module":
        return  # of the user's own, who passes it; its weights are compared with it then
    inside = "network." if facts["standardized"] else ""
    shapes = {f"{inside}{key}": shape for key, shape in _shapes(name, facts, n_in, n_out, len(weights)).items()}
    if facts["standardized"]:
        for end, size in (("in", n_in), ("out", n_out)):
            shift = weights.get(f"{end}_shift")
            shapes |= {f"{end}_shift": () if shift is not None and not shift.ndim else (size,), f"{end}_scale": ()}
    if weights.keys() != shapes.keys():
        key = min(weights.keys() ^ shapes.keys())
        raise ModelFileError(f"the array '{prefix}{key}' is {'not expected' if key in weights else 'missing'}")
    for key, shape in shapes.items():
        array = weights[key]
        own = not facts["standardized"] or key.startswith(inside)
        if array.shape != shape or array.dtype.kind != "f" or (own and array.dtype.name != facts["dtype"]):
            raise ModelFileError(
                f"the array '{prefix}{key}' has shape {array.shape} and dtype {array.dtype}; the header asks for "
                f"{shape} {facts['dtype']}"
            )
    for key in ("in_scale", "out_scale"):
        if key in weights and not weights[key] > 0:
            raise ModelFileError(f"the array '{prefix}{key}' is {weights[key]}; expected a number > 0")


def _shapes(name: str, facts: Mapping[str, Any], n_in: int, n_out: int, n_arrays: int) -> dict[str, tuple[int, ...]]:
    """Compute the shapes of the weights of an `MLP`, as torch names them."""
    sizes, tail = list(facts["sizes"]), facts["linear_tail"]
    fits = 2 <= len(sizes) <= n_arrays + 1 and all(is_integer(size, 1) for size in sizes)
    check_entry(fits, f"networks.{name}.sizes", sizes, "as many widths as the file has layers")
    ends = (sizes[0], sizes[-1])
    check_entry(ends == (n_in, n_out), f"networks.{name}.sizes", sizes, f"widths from {n_in} to {n_out}")
    check_entry(
        isinstance(tail, bool) or is_integer(tail, 1), f"networks.{name}.linear_tail", tail, "true, false or a width"
    )
    width = n_out if isinstance(tail, bool) else int(tail)
    sizes[-1] = width
    shapes: dict[str, tuple[int, ...]] = {}
    for i, (a, b) in enumerate(pairwise(sizes)):
        shapes |= {f"layers.{i}.weight": (b, a), f"layers.{i}.bias": (b,)}
    if tail:
        shapes |= {"tail.weight": (n_out, width), "tail.bias": (n_out,)}
    if facts["skip"]:
        shapes["skip.weight"] = (n_out, n_in)
    return shapes
