"""Read a model file without PyTorch."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca._contract import check_model
from pyloca._sealed import MODEL, MODEL_VERSIONS, describing, file_kind, read_bytes, unseal
from pyloca.errors import ModelFileError
from pyloca.predict._network import Network, network_from_arrays
from pyloca.predict._predictor import Predictor

__all__ = ["PREDICTOR", "PREDICTOR_VERSION", "load", "predictor_from_bytes"]

PREDICTOR, PREDICTOR_VERSION = "pyloca-predictor", 1  # a part of a model file, under the same names

Arrays = dict[str, NDArray[Any]]


def load(path: str | os.PathLike[str]) -> Predictor:
    """Read a model for prediction: NumPy and safetensors are all it needs.

    Parameters
    ----------
    path : path
        A file of ``LOCA.save``, ``pyloca fit`` or ``pyloca export --to numpy``.

    Returns
    -------
    Predictor

    Raises
    ------
    ModelFileError
        If the file cannot be read, is not a model, or was altered or damaged; or if its encoder or decoder is a module
        of your own, which only PyTorch can run.

    Examples
    --------
    >>> load("missing.safetensors")
    Traceback (most recent call last):
    ...
    pyloca.errors.ModelFileError: missing.safetensors: cannot be read (No such file or directory).
    """
    kind = PREDICTOR if file_kind(path) == PREDICTOR else MODEL
    return predictor_from_bytes(read_bytes(path), os.fspath(path), kind=kind)


def predictor_from_bytes(content: bytes, path: str, *, kind: str = MODEL) -> Predictor:
    """Read a model from memory.

    Parameters
    ----------
    content : bytes
        Of a model file.
    path : str
        Where the bytes come from, for messages.
    kind : {"pyloca-model", "pyloca-predictor"}, default="pyloca-model"
        What they are: the second is what ``pyloca export --to numpy`` writes.

    Returns
    -------
    Predictor

    Raises
    ------
    ModelFileError
        As for `load`.

    Examples
    --------
    >>> predictor_from_bytes(b"", "memory")
    Traceback (most recent call last):
    ...
    pyloca.errors.ModelFileError: memory: not a pyloca model file (not a safetensors file, or truncated).
    """
    versions = MODEL_VERSIONS if kind == MODEL else (PREDICTOR_VERSION,)
    header, arrays = unseal(content, kind, versions, path)
    with describing("a model", path):
        if kind == MODEL:
            check_model(header, arrays)
        return _predictor(header, arrays)


def _predictor(header: dict[str, Any], arrays: Arrays) -> Predictor:
    """Check that sizes agree and numbers are finite."""
    fitted = header["fitted"]
    dim, d, k = (int(fitted[name]) for name in ("n_features_in_", "n_components_", "intrinsic_dim_"))
    # first, as they refuse a size that the weights do not have
    encoder, decoder = _network("encoder", header, arrays, dim, d), _network("decoder", header, arrays, d, dim)
    scale = arrays.get("feature_scale", np.ones(dim))
    shift = arrays.get("feature_shift", np.zeros(dim))
    names, units = header.get("feature_names"), header.get("units")
    for what, found in (("feature_scale", scale), ("feature_shift", shift), ("names", names), ("units", units)):
        if found is not None and len(found) != dim:
            raise ValueError(f"{what}: {len(found)} for {dim} features")
    if not np.all(scale > 0) or not np.isfinite(shift).all():
        raise ValueError("the feature scale is not positive, or a shift is not finite")
    strays = [int(stray["burst"]) for stray in header["diagnostics"].get("strays", ())]
    training = np.delete(arrays["embedding"], [*arrays["validation_indices"].tolist(), *strays], axis=0)
    usual = float(header["trust_scale"]["round_trip"]), float(header["trust_scale"]["gap"])
    scores, sigma = arrays["trust_scores"], float(fitted["burst_std_"])
    if training.ndim != 2 or training.shape[1] != d or not len(training) or not np.isfinite(training).all():
        raise ValueError(f"the embedding has shape {training.shape}; expected finite numbers (n, {d})")
    if scores.ndim != 1 or np.isnan(scores).any() or not min(*usual, sigma) > 0:
        raise ValueError("the trust scale or σ is not made of positive numbers")
    return Predictor(
        n_features=dim,
        n_components=d,
        intrinsic_dim=k,
        feature_names=None if names is None else tuple(str(name) for name in names),
        units=None if units is None else tuple(str(unit or "") for unit in units),
        feature_scale=scale.astype(np.float64),
        feature_shift=shift.astype(np.float64),
        burst_std=sigma,
        # files of earlier versions do not say it
        burst_std_known=bool(header.get("burst_std_known", header.get("parameters", {}).get("burst_std"))),
        findings=tuple(str(finding["message"]) for finding in header["diagnostics"]["findings"]),
        encoder=encoder,
        decoder=decoder,
        training=np.ascontiguousarray(training, dtype=np.float64),
        usual=usual,
        scores=scores.astype(np.float64),
        certificate=header.get("certificate"),
    )


def _network(name: str, header: dict[str, Any], arrays: Arrays, n_in: int, n_out: int) -> Network:
    facts = header["networks"][name]
    if facts["kind"] != "mlp":
        raise ModelFileError(
            f"its {name} is a module of your own ({facts['class']}), which only PyTorch can run. Use "
            f"LOCA.load(path, {name}=...), or fit with the built-in networks."
        )
    prefix = f"{name}."
    return network_from_arrays(
        facts, {key[len(prefix) :]: a for key, a in arrays.items() if key.startswith(prefix)}, n_in, n_out
    )
