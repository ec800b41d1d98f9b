"""One function: a fitted model to a file for another place."""

from __future__ import annotations

import os
import subprocess
import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from sklearn.utils.validation import check_is_fitted

from pyloca._atomic import write_atomically
from pyloca._sealed import read_bytes
from pyloca.errors import TrustWarning
from pyloca.estimator import LOCA, Data
from pyloca.export._c import c_prefix, to_c
from pyloca.export._certificate import Certificate, certify
from pyloca.export._compiled import CompiledHeader, find_compiler
from pyloca.export._numbers import DTYPES
from pyloca.export._numpy import PredictorRunner, to_numpy
from pyloca.modelfile import model_to_bytes
from pyloca.predict import PREDICTOR, Predictor, predictor_from_bytes
from pyloca.thresholds import COARSE_TRUST

__all__ = ["SUFFIXES", "export", "files_of"]

SUFFIXES = {"onnx": ".onnx", "numpy": ".safetensors", "c": ".h"}
ONNX_PARTS = ("encoder", "decoder", "trust")


def export(
    model: LOCA | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    to: str | None = None,
    dtype: str = "float64",
    data: Data | None = None,
) -> Certificate:
    """Write a fitted model for ONNX runtimes, for `pyloca.predict`, or as C99.

    The export is run beside PyTorch before it is written, and the largest differences are kept in it.

    Parameters
    ----------
    model : LOCA or path
        Fitted, with the built-in networks; or a file of it.
    path : path
        ``.onnx``: the encoder, and beside it ``….decoder.onnx`` and ``….trust.onnx``. ``.safetensors``: for
        `pyloca.predict.load`, without burst ids and diagnostics. ``.h``: a C99 header, whose names begin as the file's.
    to : {"onnx", "numpy", "c"}, optional
        None: by the suffix of `path`.
    dtype : {"float64", "float32"}, default="float64"
        Numbers of the export.
    data : bursts in any form that `fit` takes, optional
        Those of the fit, for a certificate at their means. A model keeps no measurements: by default, the certificate
        takes the decoded places of its training bursts.

    Returns
    -------
    Certificate

    Raises
    ------
    ValueError
        If a parameter is wrong, or a number does not fit into float32.
    ModelFileError
        If the file cannot be used, or its networks are modules of your own.
    ModuleNotFoundError
        If ONNX is not installed: ``pip install 'pyloca[export]'``.
    OSError
        If a file cannot be written.

    Warns
    -----
    TrustWarning
        If trust in single precision is not what it is in double precision.

    Examples
    --------
    >>> import tempfile
    >>> from pyloca import LOCA, datasets
    >>> from pyloca.predict import load
    >>> data = datasets.mushroom(n_bursts=100, n_points=20, random_state=0)
    >>> model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0).fit(data.bursts)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     certificate = export(model, f"{folder}/mushroom.safetensors", data=data.bursts)
    ...     load(f"{folder}/mushroom.safetensors").encode(data.Y).shape
    (100, 2)
    >>> certificate.largest < 1e-12
    True
    """
    target = Path(path)
    to = _kind(target, to)
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}; got {dtype!r}.")
    if to == "onnx" and find_spec("onnx") is None:
        raise ModuleNotFoundError("ONNX export needs onnx, which is not installed: pip install 'pyloca[export]'")
    if isinstance(model, LOCA):
        check_is_fitted(model)
        content, name = model_to_bytes(model), "the model"
    else:
        content, name = read_bytes(model), os.fspath(model)
    predictor = predictor_from_bytes(content, name)  # refuses modules of your own
    fitted = model if isinstance(model, LOCA) else LOCA.load(model)
    write = {"onnx": _write_onnx, "numpy": _write_numpy, "c": _write_c}[to]
    certificate = write(predictor, content, target, dtype, partial(certify, fitted, target=to, dtype=dtype, data=data))
    if certificate.differences and certificate.differences["trust"][0] > COARSE_TRUST:
        warnings.warn(
            f"trust in {dtype} differs by up to {certificate.differences['trust'][0]:.2g} at training bursts: their "
            "round trip is closer than these numbers tell apart. Do not use this trust; export float64.",
            TrustWarning,
            stacklevel=2,
        )
    return certificate


def files_of(path: Path, to: str) -> dict[str, Path]:
    """List the files that an export writes.

    Parameters
    ----------
    path : Path
        As for `export`.
    to : {"onnx", "numpy", "c"}

    Returns
    -------
    dict of str to Path
        By part: "encoder", "decoder" and "trust" for ONNX, one for others.

    Examples
    --------
    >>> [str(file) for file in files_of(Path("wifi.onnx"), "onnx").values()]
    ['wifi.onnx', 'wifi.decoder.onnx', 'wifi.trust.onnx']
    """
    if to != "onnx":
        return {to: path}
    return {part: path if part == "encoder" else path.with_suffix(f".{part}.onnx") for part in ONNX_PARTS}


def _kind(path: Path, to: str | None) -> str:
    """Find what to export to; refuse a file name that says something else."""
    if to is None:
        to = next((kind for kind, suffix in SUFFIXES.items() if path.suffix.lower() == suffix), None)
    if to not in SUFFIXES:
        raise ValueError(f"to must be one of {', '.join(SUFFIXES)}; got {to!r} for {path.name}.")
    if path.suffix.lower() != SUFFIXES[to]:
        raise ValueError(f"an export to {to} is a {SUFFIXES[to]} file; got {path.name}.")
    return to


Certify = Callable[..., Certificate]


def _write_onnx(predictor: Predictor, _: bytes, path: Path, dtype: str, certify: Certify) -> Certificate:
    from pyloca.export._onnx import OnnxRunner, to_onnx

    parts = files_of(path, "onnx")
    certificate = certify(OnnxRunner({part: to_onnx(predictor, part, dtype) for part in parts}))
    for part, file in parts.items():
        write_atomically(file, to_onnx(predictor, part, dtype, certificate))
    return certificate


def _write_numpy(predictor: Predictor, content: bytes, path: Path, dtype: str, certify: Certify) -> Certificate:
    slim = predictor_from_bytes(to_numpy(content, predictor.training, dtype), os.fspath(path), kind=PREDICTOR)
    certificate = certify(PredictorRunner(slim))
    write_atomically(path, to_numpy(content, predictor.training, dtype, certificate))
    return certificate


def _write_c(predictor: Predictor, _: bytes, path: Path, dtype: str, certify: Certify) -> Certificate:
    prefix = c_prefix(path.stem)
    text, compiler = to_c(predictor, prefix, dtype), find_compiler()
    if compiler is None:
        certificate = certify("as there is no C compiler here")
    else:
        try:
            with CompiledHeader(text, predictor, prefix, dtype, compiler) as program:
                certificate = certify(program)
        except (OSError, subprocess.SubprocessError) as error:  # no math.h, or a folder where nothing may run
            certificate = certify(f"as {compiler} could not compile or run it ({error})")
    write_atomically(path, to_c(predictor, prefix, dtype, certificate).encode())
    return certificate
