"""Files with a valid checksum that pyloca did not write: refused by name, or used without harm."""

import functools
import json
import os
import struct
import tracemalloc
import warnings

import numpy as np
import pytest
from benchmarks.files.forge import forge

from helpers import planar_bursts, short_fit, tiny_loca
from pyloca import LOCA, TrustWarning, _sealed, predict
from pyloca._sealed import file_kind, read_bytes, seal, unseal
from pyloca.errors import ModelFileError, PylocaError
from pyloca.export import export
from pyloca.matching import Fusion, Match, fuse, match

KINDS = {
    "model": ("pyloca-model", (3,)),
    "match": ("pyloca-match", (2,)),
    "fusion": ("pyloca-fusion", (2,)),
    "export": ("pyloca-predictor", (1,)),
}
BIG = {"network.skip.weight": 1e99, "in_shift": 1e99, "in_scale": 1e-99, "out_scale": 1e99}
Y = planar_bursts(60, 20)[1][0]


@functools.cache
def instrument(seed):
    turn = np.random.RandomState(seed).standard_normal((3, 3))
    return short_fit(tiny_loca(max_iter=20), planar_bursts(60, 20)[1] @ turn)


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    """The bytes of a file of each kind."""
    folder = tmp_path_factory.mktemp("originals")
    a, b, pairs = instrument(0), instrument(1), [(i, i) for i in range(0, 60, 6)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        made = {"model": a, "match": match(a, b, pairs), "fusion": fuse({"a": a, "b": b}, {("a", "b"): pairs})}
    export(a, folder / "export.safetensors", to="numpy")
    for name, one in made.items():
        one.save(folder / f"{name}.safetensors")
    return {name: (folder / f"{name}.safetensors").read_bytes() for name in KINDS}


def use(name, path):
    """Load a file and let it do what it is for; all that comes out is numbers."""
    if name == "model":
        found = LOCA.load(path)
        Z, trust = found.transform(Y, return_trust=True)
        return [Z, trust, found.inverse_transform(found.embedding_), len(str(found.diagnostics_) + found._repr_html_())]
    if name == "export":
        found = predict.load(path)
        return [*found.encode_with_jacobian(Y), found.decode(found.training), found.trust(Y), len(str(found))]
    found = (Match if name == "match" else Fusion).load(path)
    first, second = found.models
    there, back = found.predict(Y, first, second), found.predict(Y, second, first)
    return [there.values, there.standard_errors, back.values, back.trust, len(str(found))]


@pytest.mark.parametrize("name", list(KINDS))
def test_forged_files(originals, tmp_path, name):
    """`python -m benchmarks faults_of_files` does this a thousand times."""
    random, path, refused = np.random.RandomState(0), tmp_path / "forged.safetensors", 0
    for _ in range(80):
        content, what = forge(originals[name], *KINDS[name], random)
        path.write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TrustWarning)
                numbers = use(name, path)
        except PylocaError as error:
            assert str(path) in str(error) or not isinstance(error, ModelFileError), what
            assert len(str(error)) < 1000, what
            refused += 1
        else:
            assert all(np.isfinite(values).all() for values in numbers), what
    assert refused > 20


def changed(originals, path, change, name="model"):
    header, arrays = unseal(originals[name], *KINDS[name], "original")
    change(header, arrays)
    path.write_bytes(seal(KINDS[name][0], header, arrays))
    return path


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda h, a: h["networks"]["encoder"].update(sizes=[3, 10**8, 2]), r"asks for \(100000000, 3\) float64"),
        (lambda h, a: h["networks"]["decoder"].update(sizes=[2] * 10**4), "as many widths as the file has layers"),
        (lambda h, a: h["networks"]["encoder"].update(dtype="float32"), "asks for .* float32"),
        (lambda h, a: h["fitted"].update(n_components_=3), r"'embedding' has shape \(60, 2\)"),
        (lambda h, a: h["fitted"].update(n_features_in_=4), r"'feature_scale' has shape \(3,\)|widths from 4 to 2"),
        (lambda h, a: h["fitted"].update(burst_std_=float("nan")), "burst_std_ is nan; expected a number > 0"),
        (lambda h, a: a.update(embedding=a["embedding"][:-1]), "the header and the other arrays ask for"),
        (lambda h, a: a["encoder.network.layers.0.weight"].__setitem__((0, 0), np.nan), "not finite"),
        (lambda h, a: [a[f"encoder.{key}"].fill(value) for key, value in BIG.items()], "do not compute finite numbers"),
        (lambda h, a: a.update(validation_indices=np.array([60])), "there is no burst 60 among 60"),
        (lambda h, a: a.update(burst_ids=np.frombuffer(b"[1, 1]", np.uint8)), "60 different integers, or texts"),
        (lambda h, a: h.update(feature_names=["p"]), "3 texts, one per feature"),
    ],
    ids=range(12),
)
def test_what_does_not_match_is_named(originals, tmp_path, change, words):
    def writable(header, arrays):
        arrays.update({name: array.copy() for name, array in arrays.items()})
        change(header, arrays)

    path = changed(originals, tmp_path / "m.safetensors", writable)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=words):
            LOCA.load(path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("match", lambda h, a: a.update(rotations=2 * a["rotations"]), "a rotation is .*; expected an orthogonal"),
        ("match", lambda h, a: h["facts"].update(chosen=7), "chosen is 7; expected null, or an integer below 1"),
        ("match", lambda h, a: h.update(names=["a", "a"]), "names is .*expected different texts"),
        ("match", lambda h, a: a.update({"joint.covariance": -a["joint.covariance"]}), "not a covariance"),
        ("fusion", lambda h, a: h["facts"].update(unconnected=["x"]), "expected some of the models of the file"),
        ("export", lambda h, a: a.update(validation_indices=np.empty((10**9, 0), int)), "ask for .* integers"),
        ("export", lambda h, a: a.update({"encoder.out_scale": np.array(1e308)}), "not finite, or exceed"),
        ("fusion", lambda h, a: a.pop("joint.map.shift.1"), "the array 'joint.map.shift.1' is missing"),
        ("fusion", lambda h, a: a.update({"joint.map.scale.1": np.array(-1.0)}), "the scale of a map"),
    ],
    ids=range(9),
)
def test_matches_fusions_and_exports(originals, tmp_path, name, change, words):
    path = changed(originals, tmp_path / "m.safetensors", change, name)
    with pytest.raises(ModelFileError, match=words):
        use(name, path)


def sealed_by_hand(header):
    """A safetensors file with this text as its header."""
    return struct.pack("<Q", len(header)) + header


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (sealed_by_hand(b'{"__metadata__":' + b"[" * 200_000 + b"]" * 200_000 + b"}"), "nested too deeply"),
        (sealed_by_hand(json.dumps({"__metadata__": {"pyloca-model": "[" * 200_000}}).encode()), "nested too deeply"),
        (sealed_by_hand(b'{"__metadata__":[' + b"[]," * 2_000_001 + b"[]]}"), "more than 2,000,000 lists"),
        (struct.pack("<Q", 1 << 60) + b"{}", "not a safetensors file, or truncated"),
    ],
    ids=["deep", "deep inside", "wide", "long"],
)
def test_headers_that_are_bombs(tmp_path, content, words):
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=words):
        LOCA.load(path)
    assert file_kind(path) in ("", "pyloca-model")


@pytest.mark.skipif(os.name == "nt", reason="devices and pipes of POSIX")
def test_only_regular_files_are_read(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in ("/dev/zero", pipe, tmp_path):
        with pytest.raises(ModelFileError, match="exists but is not a regular file"):
            read_bytes(path)
        assert file_kind(path) == ""


def test_what_could_not_be_read_back_is_not_written(monkeypatch):
    monkeypatch.setattr(_sealed, "MAX_HEADER", 1000)
    with pytest.raises(ValueError, match="characters, more than a file holds"):
        seal("pyloca-toy", {"version": 1, "noise": [0.1] * 100}, {})
