"""Exports compute what PyTorch does, say so, and refuse what they cannot do."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from sklearn.exceptions import NotFittedError
from torch import nn

from helpers import short_fit, tiny_loca
from pyloca import LOCA, ModelFileError, TrustWarning
from pyloca._sealed import unseal
from pyloca.export import _export as module
from pyloca.export import export, files_of
from pyloca.export._c import c_prefix, to_c
from pyloca.export._compiled import CompiledHeader
from pyloca.export._numbers import as_dtype
from pyloca.export._onnx import to_onnx
from pyloca.predict import PREDICTOR, load
from varieties import KINDS, fitted, in_float64, measured, points, predictor

TOL = 1e-12
SUFFIX = {"onnx": ".onnx", "numpy": ".safetensors", "c": ".h"}
FLAGS = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]


def compilers(*names):
    return [
        pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"))
        for name in names
    ]


def stored(path, to):
    """The certificate that a file holds."""
    if to == "onnx":
        return json.loads({p.key: p.value for p in onnx.load(path).metadata_props}["pyloca"])["certificate"]
    return unseal(path.read_bytes(), PREDICTOR, (1,), "file")[0]["certificate"]


def in_json(certificate):
    return json.loads(json.dumps(certificate.to_dict()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("to", SUFFIX)
def test_every_kind_of_model_is_exported_exactly(kind, to, tmp_path):
    path = tmp_path / f"model{SUFFIX[to]}"
    certificate = export(fitted(kind), path, data=measured(kind))
    assert certificate.training == "training means" and certificate.points == (60, 60)
    assert set(certificate.differences) == {"encode", "decode", "trust"} | ({"jacobian"} if to != "onnx" else set())
    assert certificate.largest <= TOL
    if to == "c":
        assert "parity of c (float64" in path.read_text(encoding="utf-8")
    else:
        for file in files_of(path, to).values():
            assert stored(file, to) == in_json(certificate)


@pytest.mark.parametrize("to", SUFFIX)
def test_single_precision_is_measured_too(to, tmp_path):
    certificate = export(fitted("leaky_relu"), tmp_path / f"model{SUFFIX[to]}", dtype="float32")
    assert certificate.training == "decoded training places"
    assert 1e-9 < max(certificate.differences["encode"]) < 1e-5
    assert "float32" in certificate.lines()[0] and "encode" in certificate.lines()[1]


def test_a_wrong_export_would_be_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "to_c", lambda p, *rest: to_c(p, *rest).replace("tanh(u)", "tanh(u + 1e-9)"))
    assert 1e-10 < max(export(fitted("tanh"), tmp_path / "model.h").differences["encode"]) < 1e-7


def test_trust_that_single_precision_cannot_tell_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "COARSE_TRUST", 1e-9)
    with pytest.warns(TrustWarning, match="trust in float32 differs by up to .* export float64"):
        export(fitted("tanh"), tmp_path / "model.h", dtype="float32")


def test_a_file_is_exported_as_its_model_is(tmp_path):
    path = fitted("units").save(tmp_path / "model.safetensors")
    from_file, from_model = (export(model, tmp_path / "m.h") for model in (path, fitted("units")))
    assert from_file == from_model


# -- onnx -------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:trust in float32")  # round trips of this model are closer than float32 can tell
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_graphs_take_any_number_of_points(dtype, tmp_path):
    Y, Z = points("units", 7)
    path = tmp_path / "model.onnx"
    export(fitted("units"), path, dtype=dtype)
    ours, tol = predictor("units"), 1e-12 if dtype == "float64" else 1e-4
    for n in (1, 7):
        sessions = [onnxruntime.InferenceSession(file) for file in files_of(path, "onnx").values()]
        given = Y[:n].astype(dtype), Z[:n].astype(dtype)
        (coordinates,) = sessions[0].run(None, {"measurements": given[0]})
        (measurements,) = sessions[1].run(None, {"coordinates": given[1]})
        again, trust = sessions[2].run(["coordinates", "trust"], {"measurements": given[0]})
        np.testing.assert_array_equal(coordinates, again)
        assert coordinates.dtype == dtype and trust.shape == (n,)
        np.testing.assert_allclose(coordinates, ours.encode(Y[:n]), rtol=0, atol=tol)
        back = ours.decode(Z[:n])
        np.testing.assert_allclose(measurements, back, rtol=tol, atol=tol * np.abs(back).max(axis=0).min())
        np.testing.assert_allclose(trust, ours.trust(Y[:n]), rtol=0, atol=1e-15 if dtype == "float64" else 0.1)


def test_graphs_say_what_they_are(tmp_path):
    export(fitted("units"), tmp_path / "model.onnx")
    facts = json.loads(onnx.load(tmp_path / "model.trust.onnx").metadata_props[0].value)
    assert facts["feature_names"] == list(fitted("units").feature_names_in_)
    assert facts["units"] == ["Pa", "°C", ""] and facts["part"] == "trust" and facts["burst_std"] == 0.01


def test_without_onnxruntime_the_reference_implementation_runs_graphs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    certificate = export(fitted("softplus"), tmp_path / "model.onnx")
    assert "reference implementation" in certificate.run_by and certificate.largest <= TOL


def test_without_onnx_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'pyloca\[export\]'"):
        export(fitted("tanh"), tmp_path / "model.onnx")


def test_a_graph_gives_nan_no_trust():
    session = onnxruntime.InferenceSession(to_onnx(predictor("tanh"), "trust", "float64"))
    trust = session.run(["trust"], {"measurements": np.full((1, 3), np.nan)})[0]
    assert trust == 1 / (1 + len(predictor("tanh").scores))


# -- numpy ------------------------------------------------------------------------------------------------------------


def test_the_small_file_has_what_prediction_needs_and_nothing_else(tmp_path):
    model = fitted("left_out")
    path = tmp_path / "small.safetensors"
    certificate = export(model, path)
    small, Y = load(path), points("left_out")[0]
    np.testing.assert_array_equal(small.encode(Y), predictor("left_out").encode(Y))
    np.testing.assert_array_equal(small.trust(Y), predictor("left_out").trust(Y))
    assert small.certificate == in_json(certificate)
    assert small.feature_names == ("a", "b", "c", "d") and small.findings == predictor("left_out").findings
    header, arrays = unseal(path.read_bytes(), PREDICTOR, (1,), "file")
    assert "history_" not in header["fitted"] and not {"burst_ids", "probe_decoded"} & set(arrays)
    assert path.stat().st_size < model.save(tmp_path / "model.safetensors").stat().st_size
    with pytest.raises(ModelFileError, match="it holds a pyloca predictor"):
        LOCA.load(path)


# -- C ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("compiler", compilers("gcc", "clang"))
def test_headers_compute_the_same_with_every_compiler(compiler, dtype):
    Y, Z = points("units")
    ours, tol = in_float64("units"), 1e-12 if dtype == "float64" else 1e-5
    with CompiledHeader(to_c(predictor("units"), "m", dtype), predictor("units"), "m", dtype, compiler) as program:
        np.testing.assert_allclose(program.encode(Y), ours.encode(Y), rtol=0, atol=tol)
        back = ours.decode(Z)
        np.testing.assert_allclose(
            program.decode(Z) / np.abs(back).max(axis=0), back / np.abs(back).max(axis=0), atol=10 * tol, rtol=0
        )
        J = ours.encode_with_jacobian(Y)[1]
        np.testing.assert_allclose(
            program.jacobian(Y) / np.abs(J).max(axis=(0, 1)), J / np.abs(J).max(axis=(0, 1)), atol=tol
        )
        assert program.trust(np.full((1, 3), np.nan)) == 0
        assert program.trust(1e30 * np.ones((1, 3))) < 0.01
    assert np.abs(J).max() > 0


@pytest.mark.parametrize("standard", ["c++11", "c++17"])
@pytest.mark.parametrize("compiler", compilers("g++", "clang++"))
def test_headers_are_cpp_as_well(compiler, standard, tmp_path):
    for i, kind in enumerate(("units", "left_out", "paper", "affine")):
        (tmp_path / f"m{i}.h").write_text(to_c(predictor(kind), f"m{i}", "float32"), encoding="utf-8")
    text = "".join(f'#include "m{i}.h"\n' for i in range(4)) + "int main() { return M0_FEATURES - M0_FEATURES; }\n"
    (tmp_path / "main.cpp").write_text(text, encoding="utf-8")
    command = [compiler, f"-std={standard}", *FLAGS, str(tmp_path / "main.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_names_cannot_leave_their_comment():
    text = to_c(predictor("units"), "m", "float64")
    comment = text[: text.index("#ifndef")]
    assert comment.count("*/") == 1 and comment.rstrip().endswith("*/") and "??" not in comment
    assert "t * / <U+000A>? ?/ (°C)" in comment and "pressure (Pa)" in comment


@pytest.mark.parametrize(
    ("stem", "prefix"),
    [("wifi", "wifi"), ("2nd floor", "model_2nd_floor"), ("été", "t"), ("地図", "model"), ("_a-b_", "a_b")],
)
def test_names_of_files_become_identifiers(stem, prefix):
    assert c_prefix(stem) == prefix


def test_without_a_compiler_nothing_is_certified(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "find_compiler", lambda: None)
    certificate = export(fitted("tanh"), tmp_path / "model.h")
    assert np.isnan(certificate.largest)
    assert certificate.lines() == ["parity of c (float64): not measured, as there is no C compiler here."]
    assert "not measured, as there is no C compiler" in (tmp_path / "model.h").read_text(encoding="utf-8")


def test_a_compiler_that_fails_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "find_compiler", lambda: shutil.which("false"))
    certificate = export(fitted("tanh"), tmp_path / "model.h")
    assert "false could not compile or run it" in certificate.lines()[0] and not certificate.differences


# -- what is refused --------------------------------------------------------------------------------------------------


def test_own_modules_are_refused_in_words(tmp_path):
    encoder = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    model = short_fit(tiny_loca(encoder=encoder, max_iter=5), measured("tanh"))
    for given in (model, model.save(tmp_path / "own.safetensors")):
        with pytest.raises(
            ModelFileError, match=r"its encoder is a module of your own \(Sequential\), which only PyTorch"
        ):
            export(given, tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("model.txt", {}, "to must be one of onnx, numpy, c; got None for model.txt"),
        ("model.h", {"to": "cuda"}, "to must be one of onnx, numpy, c; got 'cuda'"),
        ("model.h", {"to": "onnx"}, r"an export to onnx is a \.onnx file; got model.h"),
        ("model.h", {"dtype": "float16"}, "dtype must be one of float64, float32; got 'float16'"),
    ],
)
def test_wrong_parameters_are_refused(name, options, words, tmp_path):
    with pytest.raises(ValueError, match=words):
        export(fitted("tanh"), tmp_path / name, **options)


def test_unfitted_models_are_refused(tmp_path):
    with pytest.raises(NotFittedError):
        export(LOCA(), tmp_path / "model.h")


@pytest.mark.parametrize(("value", "what"), [(1e40, "weight"), (1e-60, "in_scale")])
def test_numbers_that_single_precision_cannot_hold_are_refused(value, what):
    with pytest.raises(
        ValueError, match=re.escape(f"{what} has the number {value:.3g}, which float32 cannot hold; export float64")
    ):
        as_dtype(np.array([1.0, value]), "float32", what)
    assert as_dtype(np.array([1e-60, np.inf]), "float32", "weight").tolist() == [0, np.inf]
