"""One safetensors file per model: weights, and a JSON header with everything that is needed to use them.

The header has the format version, the parameters, names, units, σ, k, d, library versions and the SHA-256 of header and
tensors. Nothing is ever unpickled, and a file that was truncated or damaged since `save_model` wrote it is refused. The
checksum is not a signature: a forged file passes it, but not with shapes that disagree or weights that are not finite.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pyloca._atomic import write_atomically
from pyloca._contract import check_model
from pyloca._sealed import MODEL, MODEL_VERSIONS, describing, plain, read_bytes, seal, unseal
from pyloca.errors import ModelFileError
from pyloca.findings import Diagnostics, Rescaling, TrustScale
from pyloca.geometry import Noise, SpikeRule
from pyloca.networks import MLP, Standardized, WithSkip, in_units

__all__ = ["load_model", "model_from_bytes", "model_to_bytes", "save_model"]

# Parameters that are not stored; a loaded model has the defaults.
NOT_STORED = ("encoder", "decoder", "callbacks", "random_state", "device", "verbose")
FITTED = ("burst_std_", "intrinsic_dim_", "n_components_", "n_features_in_", "n_iter_", "converged_", "history_")

PROBES = 8  # points that show whether networks compute what they did
Arrays = dict[str, NDArray[Any]]
Model = TypeVar("Model")


def save_model(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model, atomically.

    Parameters
    ----------
    model : LOCA
        Fitted.
    path : path

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pyloca import LOCA, datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=20, random_state=0).bursts
    >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(bursts)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_model(save_model(model, f"{folder}/m.safetensors"), LOCA).burst_std_
    0.01
    """
    return write_atomically(Path(path), model_to_bytes(model))


def model_to_bytes(model: Any) -> bytes:
    """Return the content of a model file, for files that hold several models.

    Parameters
    ----------
    model : LOCA
        Fitted.

    Returns
    -------
    bytes

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=20, random_state=0).bursts
    >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(bursts)
    >>> model_from_bytes(model_to_bytes(model), LOCA, "memory").burst_std_
    0.01
    """
    arrays: Arrays = {
        "embedding": model.embedding_,
        "validation_indices": model.validation_indices_,
        "trust_scores": model.trust_scale_.scores,
    }
    arrays |= {f"diagnostics.{name}": getattr(model.diagnostics_, name) for name in Diagnostics.ARRAYS}
    if model.noise_ is not None:
        arrays |= {f"noise.{name}": array for name, array in vars(model.noise_).items() if array is not None}
    arrays["set_aside"] = model.set_aside_
    if model.spike_rule_ is not None and model.spike_rule_.scale is not None:
        arrays["spike_scale"] = model.spike_rule_.scale
    arrays |= {"burst_ids": _packed(model.burst_ids_.tolist()), "feature_scale": model.feature_scale_}
    if np.isinf(model.feature_scale_).any():
        arrays["feature_shift"] = model.decoder_.out_shift.numpy()  # what stands for features that were left out
    # What these networks make of some points: a module that is passed again must do the same.
    arrays["probe_decoded"] = model.decode(model.embedding_[:PROBES])
    arrays["probe_encoded"] = model.encode(arrays["probe_decoded"])
    networks = {}
    scaled = bool(np.any(model.feature_scale_ != 1))
    for name in ("encoder", "decoder"):
        module = getattr(model, f"{name}_")
        module = module.network if scaled else module  # the scale is stored as an array of its own
        networks[name] = _describe(module, own=getattr(model, name) is not None)
        arrays |= {f"{name}.{key}": value.numpy() for key, value in module.state_dict().items()}
    parameters = {name: value for name, value in model.get_params(deep=False).items() if name not in NOT_STORED}
    if isinstance(model.random_state, (int, np.integer)):
        parameters["random_state"] = int(model.random_state)
    parameters["hidden_layers"] = [int(size) for size in model.hidden_layers]
    for name in ("feature_scale", "measurement_noise"):
        if not isinstance(parameters[name], (str, type(None))):
            parameters[name] = np.asarray(parameters[name], dtype=np.float64).tolist()
    names = getattr(model, "feature_names_in_", None)
    header = {
        "format": MODEL,
        "version": MODEL_VERSIONS[0],
        "parameters": parameters,
        "networks": networks,
        "feature_names": None if names is None else [str(name) for name in names],
        "units": None if model.units_ is None else list(model.units_),
        "table": getattr(model, "table_", None),
        "burst_std_known": model.burst_std_known_,
        "rescaling": vars(model.rescaling_) if hasattr(model, "rescaling_") else None,
        "fitted": {name: getattr(model, name) for name in FITTED},
        "diagnostics": model.diagnostics_.to_dict(),
        "spike_rule": _rule_facts(model.spike_rule_),
        "trust_scale": {"round_trip": model.trust_scale_.round_trip, "gap": model.trust_scale_.gap},
        "libraries": {name: version(name) for name in ("pyloca", "torch", "numpy", "scikit-learn")},
    }
    return seal(MODEL, header, arrays)


def load_model(
    path: str | os.PathLike[str],
    kind: Callable[..., Model],
    *,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
) -> Model:
    """Read a model file.

    Parameters
    ----------
    path : path
    kind : type
        The estimator to build, `LOCA` or a subclass.
    encoder, decoder : torch.nn.Module, optional
        The user's own modules, if the model was fitted with such.

    Returns
    -------
    LOCA
        An instance of `kind`.

    Raises
    ------
    ModelFileError
        If the file cannot be read, is not a model, or was altered or damaged; or if a module is missing or does not
        match.

    Examples
    --------
    >>> from pyloca import LOCA
    >>> load_model("missing.safetensors", LOCA)
    Traceback (most recent call last):
    ...
    pyloca.errors.ModelFileError: missing.safetensors: cannot be read (No such file or directory).
    """
    return model_from_bytes(read_bytes(path), kind, os.fspath(path), encoder=encoder, decoder=decoder)


def model_from_bytes(
    content: bytes,
    kind: Callable[..., Model],
    path: str,
    *,
    encoder: nn.Module | None = None,
    decoder: nn.Module | None = None,
) -> Model:
    """Invert `model_to_bytes`.

    Parameters
    ----------
    content : bytes
    kind : type
        The estimator to build, `LOCA` or a subclass.
    path : str
        Where the bytes come from, for messages.
    encoder, decoder : torch.nn.Module, optional
        The user's own modules, if the model was fitted with such.

    Returns
    -------
    LOCA
        An instance of `kind`.

    Raises
    ------
    ModelFileError
        As for `load_model`.

    Examples
    --------
    >>> from pyloca import LOCA
    >>> model_from_bytes(b"", LOCA, "memory")
    Traceback (most recent call last):
    ...
    pyloca.errors.ModelFileError: memory: not a pyloca model file (not a safetensors file, or truncated).
    """
    header, arrays = unseal(content, MODEL, MODEL_VERSIONS, path)
    with describing("a model", path):
        check_model(header, arrays)
        made = kind(**header["parameters"], encoder=encoder, decoder=decoder)
        model: Any = made  # its attributes are set below
        model.hidden_layers = tuple(model.hidden_layers)
        for name in ("feature_scale", "measurement_noise"):
            if not isinstance(getattr(model, name), (str, int, float, type(None))):
                setattr(model, name, np.array(getattr(model, name), dtype=np.float64))
        noise = {name.removeprefix("noise."): array for name, array in arrays.items() if name.startswith("noise.")}
        model.noise_ = Noise(**noise) if noise else None
        scale = arrays.get("feature_scale")
        if scale is not None and np.all(scale == 1):
            scale = None
        for name, own in (("encoder", encoder), ("decoder", decoder)):
            prefix = f"{name}."
            state = {key[len(prefix) :]: a for key, a in arrays.items() if key.startswith(prefix)}
            module = _rebuild(header["networks"][name], own, name, state)
            try:
                module.load_state_dict({key: torch.tensor(array) for key, array in state.items()})
            except RuntimeError as error:
                if own is None:
                    raise
                reason = str(error).splitlines()[-1].strip()
                raise ModelFileError(f"its weights do not fit the {name} that was passed ({reason})") from None
            if name == "encoder":
                model.encoder_ = in_units(module.eval(), in_scale=scale)
            else:
                shift = arrays.get("feature_shift", np.zeros(()))
                model.decoder_ = in_units(module.eval(), out_scale=scale, out_shift=shift)
        for name in FITTED:
            setattr(model, name, header["fitted"][name])
        maps = {name: arrays.get(f"diagnostics.{name}", np.empty(0)) for name in Diagnostics.ARRAYS}
        n = len(arrays["embedding"])
        model.burst_ids_ = _unpacked(arrays["burst_ids"], n) if "burst_ids" in arrays else np.arange(n)
        model.diagnostics_ = Diagnostics.from_dict(header["diagnostics"], **maps, ids=model.burst_ids_)
        strays = {stray.burst: stray.reason for stray in model.diagnostics_.strays}
        model.strays_ = {model.burst_ids_[[row]].tolist()[0]: reason for row, reason in strays.items()}
        model.feature_scale_ = np.ones(model.n_features_in_) if scale is None else scale
        units = header.get("units")
        model.units_ = None if units is None else tuple(units)
        if header.get("feature_names") is not None:
            model.feature_names_in_ = np.array(header["feature_names"], dtype=object)
        if header.get("table") is not None:
            model.table_ = header["table"]
        # files of earlier versions do not say whether the bursts knew their σ
        model.burst_std_known_ = header.get("burst_std_known", model.burst_std is not None)
        if header.get("rescaling") is not None:
            model.rescaling_ = Rescaling.from_dict(header["rescaling"])
        model.trust_scale_ = TrustScale(**header["trust_scale"], scores=arrays["trust_scores"])
        model.embedding_ = arrays["embedding"]
        # files of earlier versions have no spikes
        model.set_aside_ = arrays.get("set_aside", np.zeros(n, dtype=np.int64))
        rule = header.get("spike_rule")
        if rule is not None:
            rule = SpikeRule(**{name: float(value) for name, value in rule.items()}, scale=arrays.get("spike_scale"))
        model.spike_rule_ = rule
        model.validation_indices_ = arrays["validation_indices"]
        if (encoder is not None or decoder is not None) and "probe_decoded" in arrays:
            _refuse_other_networks(model, arrays)
        _refuse_overflow(model)
    return made


def _rule_facts(rule: SpikeRule | None) -> dict[str, float] | None:
    if rule is None:
        return None
    return {name: getattr(rule, name) for name in ("distance", "least_size", "usual_size", "usual_worth")}


def _refuse_other_networks(model: Any, arrays: Arrays) -> None:
    """Refuse a module whose weights fit, but which does not compute what it did."""
    for name, given, expected in (
        ("decoder", model.decode(model.embedding_[:PROBES]), arrays["probe_decoded"]),
        ("encoder", model.encode(arrays["probe_decoded"]), arrays["probe_encoded"]),
    ):
        size = float(np.abs(expected - expected.mean(axis=0)).max()) or 1.0
        if not np.abs(given - expected).max() <= 1e-6 * size:
            raise ModelFileError(
                f"the {name} that was passed has the right weights but computes something else, such as another "
                "activation. Pass the module that was fitted"
            )


def _refuse_overflow(model: Any) -> None:
    """Refuse weights that are finite and yet too large to compute with."""
    with np.errstate(over="ignore", invalid="ignore"):
        decoded = model.decode(model.embedding_[:PROBES])
        if not np.isfinite(decoded).all() or not np.isfinite(model.encode(decoded)).all():
            raise ModelFileError("its networks do not compute finite numbers")


def _packed(values: list[Any]) -> NDArray[np.uint8]:
    """Pack text or numbers into an array of bytes: JSON in UTF-8."""
    return np.frombuffer(json.dumps(values, ensure_ascii=False, default=plain).encode(), dtype=np.uint8)


def _unpacked(array: NDArray[np.uint8], n: int) -> NDArray[Any]:
    """Invert `_packed` for the ids of n bursts."""
    values = json.loads(array.tobytes().decode())
    alike = isinstance(values, list) and {type(value) for value in values} in ({int}, {str})
    if not alike or len(values) != n or len(set(values)) != n:
        raise ModelFileError(f"the array 'burst_ids' does not hold {n} different integers, or texts")
    return np.array(values)


def _describe(module: nn.Module, *, own: bool) -> dict[str, Any]:
    """Describe how to build `module` again before its weights are loaded."""
    scaled = isinstance(module, Standardized)
    network = module.network if isinstance(module, Standardized) else module
    if own or not isinstance(network, MLP):
        skip = isinstance(network, WithSkip)
        network = network.network if isinstance(network, WithSkip) else network
        return {"kind": "module", "class": type(network).__name__, "standardized": scaled, "skip": skip}
    layers = [(layer.in_features, layer.out_features) for layer in network.linear_layers()]
    tail: bool | int = network.tail is not None
    sizes = [layers[0][0], *(size for _, size in layers)]
    if network.tail is not None and network.tail.out_features != sizes[-1]:
        tail, sizes[-1] = sizes[-1], network.tail.out_features  # the width before the last layer
    return {
        "kind": "mlp",
        "standardized": scaled,
        "sizes": sizes,
        "activation": network.activation,
        "skip": network.skip is not None,
        "linear_tail": tail,
        "dtype": str(network.linear_layers()[0].weight.dtype).removeprefix("torch."),
    }


def _rebuild(facts: dict[str, Any], own: nn.Module | None, name: str, state: Arrays) -> nn.Module:
    network: nn.Module
    if facts["kind"] == "module":
        if own is None:
            raise ModelFileError(
                f"its {name} is a module of your own ({facts['class']}), and a file holds only its weights. "
                f"Pass an instance: LOCA.load(path, {name}=...)"
            )
        dtypes = {array.dtype for array in state.values()}
        network = copy.deepcopy(own)
        if facts.get("skip"):  # files of earlier versions have none
            n_out, n_in = state["network.skip.weight" if facts["standardized"] else "skip.weight"].shape
            network = WithSkip(network, n_in, n_out)
        network = network.to(torch.float64 if np.dtype("float64") in dtypes else torch.float32)
    else:
        n_in, *hidden, n_out = facts["sizes"]
        shape = {"skip": facts["skip"], "linear_tail": facts["linear_tail"]}
        network = MLP(n_in, hidden, n_out, facts["activation"], **shape, generator=torch.Generator())
        network = network.to({"float32": torch.float32, "float64": torch.float64}[facts["dtype"]])
    if not facts["standardized"]:
        return network
    return Standardized(
        network, state["in_shift"], float(state["in_scale"]), state["out_shift"], float(state["out_scale"])
    )
