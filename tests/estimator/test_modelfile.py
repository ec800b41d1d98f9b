"""One file a model: it comes back bit for bit, or not at all."""

import functools
import json
import os
import pickle
import stat
import struct
import tempfile

import numpy as np
import pytest
import safetensors.numpy
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from helpers import planar_bursts, planar_statistics, short_fit, tiny_loca
from pyloca import LOCA, _atomic, _sealed
from pyloca.errors import ModelFileError, PylocaError

FITTED = [
    "burst_std_",
    "intrinsic_dim_",
    "n_components_",
    "n_features_in_",
    "n_iter_",
    "converged_",
    "history_",
    "diagnostics_",
]


def own_modules():
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2))
    return encoder, nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 3))


@functools.cache
def fitted(solver="fast", *, own=False):
    """A model to save, which no test may change."""
    encoder, decoder = own_modules() if own else (None, None)
    model = tiny_loca(solver=solver, max_iter=20, hidden_layers=(7, 5), encoder=encoder, decoder=decoder, tol=0.25)
    return short_fit(model, planar_bursts(40, 20)[1])


@functools.cache
def saved():
    """The bytes of a saved model."""
    with tempfile.TemporaryDirectory() as folder:
        return fitted().save(os.path.join(folder, "model.safetensors")).read_bytes()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def assert_same_model(found, model):
    Y = np.random.RandomState(0).standard_normal((100, 3))
    Z = model.transform(Y)
    np.testing.assert_array_equal(found.transform(Y), Z, strict=True)
    np.testing.assert_array_equal(found.inverse_transform(Z), model.inverse_transform(Z), strict=True)
    np.testing.assert_array_equal(found.embedding_, model.embedding_, strict=True)
    np.testing.assert_array_equal(found.validation_indices_, model.validation_indices_, strict=True)
    for name in FITTED:
        assert getattr(found, name) == getattr(model, name), name
        assert type(getattr(found, name)) is type(getattr(model, name)), name
    for name in ("encoder_", "decoder_"):
        ours, theirs = getattr(found, name), getattr(model, name)
        assert type(ours) is type(theirs)
        assert not ours.training
        assert ours.state_dict().keys() == theirs.state_dict().keys()
        for key, value in ours.state_dict().items():
            assert torch.equal(value, theirs.state_dict()[key])
            assert value.dtype == theirs.state_dict()[key].dtype


# -- there and back ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["fast", "paper"])
def test_a_model_comes_back_bit_for_bit(path, solver):
    model = fitted(solver)
    assert model.save(path) == path
    found = LOCA.load(path)
    assert isinstance(found, LOCA)
    assert_same_model(found, model)
    assert found.get_params() == model.get_params()
    bursts = planar_bursts(20, 20, seed=5)[1]
    assert found.score(bursts) == model.score(bursts)
    np.testing.assert_array_equal(found.get_feature_names_out(), model.get_feature_names_out())
    assert str(found.diagnostics_) == str(model.diagnostics_)


def test_a_string_is_a_path(path):
    fitted().save(str(path))
    assert_same_model(LOCA.load(str(path)), fitted())


def test_a_second_round_gives_the_same_bytes(path, tmp_path):
    fitted().save(path)
    again = LOCA.load(path).save(tmp_path / "again.safetensors")
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        {"activation": "softplus", "decoder_activation": "leaky_relu"},
        {"hidden_layers": ()},
        {"hidden_layers": [np.int64(4)]},
        {"n_components": np.int64(3), "intrinsic_dim": 2},
        {"burst_std": None, "measurement_noise": "estimate"},
        {"burst_std": np.float32(0.01), "validation_fraction": 0},
        {"random_state": None},
        {"random_state": np.random.RandomState(0)},
        {"random_state": np.int64(3), "verbose": 1, "callbacks": [print]},
        {"device": torch.device("cpu"), "max_iter": np.int32(9)},
    ],
    ids=", ".join,
)
def test_every_parameter_can_be_saved(path, options, capsys):
    """All but seeds that are objects, modules, callbacks, device and verbosity come back as they were."""
    model = short_fit(tiny_loca(**{"max_iter": 5} | options), planar_bursts(30, 20)[1])
    model.save(path)
    found = LOCA.load(path)
    assert_same_model(found, model)
    kept = set(model.get_params()) - {"encoder", "decoder", "callbacks", "device", "verbose"}
    if not isinstance(model.random_state, (int, np.integer)):
        kept -= {"random_state"}
    for name in kept:
        value, back = getattr(model, name), getattr(found, name)
        assert back == (tuple(value) if name == "hidden_layers" else value), name
    assert found.verbose == 0
    assert found.callbacks == ()


def test_a_model_of_statistics(path):
    model = short_fit(tiny_loca(burst_std=1.0), planar_statistics(40)[1])
    model.save(path)
    assert_same_model(LOCA.load(path), model)


def test_a_loaded_model_can_be_fitted_again(path):
    fitted().save(path)
    again = short_fit(LOCA.load(path), planar_bursts(40, 20)[1])
    np.testing.assert_array_equal(again.embedding_, fitted().embedding_)


def test_a_load_leaves_the_global_random_state_alone(path):
    fitted().save(path)
    before = torch.random.get_rng_state()
    LOCA.load(path)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_the_header_says_what_the_file_is(path):
    fitted().save(path)
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["pyloca-model"])
    assert header["format"] == "pyloca-model"
    assert header["version"] == 3
    assert header["fitted"]["burst_std_"] == 0.01
    assert set(header["libraries"]) == {"pyloca", "torch", "numpy", "scikit-learn"}
    assert len(header["sha256"]) == 64
    tensors = safetensors.numpy.load(content)
    assert tensors["embedding"].shape == (40, 2)
    assert str(path.parent) not in str(header)  # where it was made is nobody's business


# -- modules of the user's own ----------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["fast", "paper"])
def test_modules_of_your_own_are_passed_again(path, solver):
    model = fitted(solver, own=True)
    model.save(path)
    encoder, decoder = own_modules()
    before = [p.clone() for p in encoder.parameters()]
    found = LOCA.load(path, encoder=encoder, decoder=decoder)
    assert_same_model(found, model)
    assert found.encoder is encoder
    assert all(torch.equal(a, b) for a, b in zip(before, encoder.parameters(), strict=True))  # copied, not written to


@pytest.mark.parametrize("missing", ["encoder", "decoder"])
def test_a_module_that_is_not_passed_is_asked_for(path, missing):
    fitted(own=True).save(path)
    modules = dict(zip(("encoder", "decoder"), own_modules(), strict=True))
    modules.pop(missing)
    with pytest.raises(ModelFileError, match=rf"its {missing} is a module of your own \(Sequential\)") as caught:
        LOCA.load(path, **modules)
    assert f"LOCA.load(path, {missing}=...)" in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_module_of_another_shape_is_refused(path):
    fitted(own=True).save(path)
    encoder, decoder = own_modules()
    with pytest.raises(ModelFileError, match="weights do not fit the encoder that was passed"):
        LOCA.load(path, encoder=nn.Linear(3, 2), decoder=decoder)
    with pytest.raises(ModelFileError, match="weights do not fit the encoder that was passed"):
        LOCA.load(path, encoder=decoder, decoder=encoder)


# -- files that are refused -------------------------------------------------------------------------------------


def refused(path, words):
    with pytest.raises(ModelFileError, match=words) as caught:
        LOCA.load(path)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, PylocaError)
    assert isinstance(caught.value, ValueError)


def test_a_missing_file(path):
    refused(path, r"cannot be read \(No such file or directory\)")


def test_a_folder(tmp_path):
    refused(tmp_path, "exists but is not a regular file")


def test_an_empty_file(path):
    path.write_bytes(b"")
    refused(path, "not a pyloca model file")


@pytest.mark.parametrize("content", [b"\x00", b"\xff" * 8, b"\x00" * 64, b"PK\x03\x04" + b"\x00" * 100, b"{}" * 50])
def test_garbage(path, content):
    path.write_bytes(content)
    refused(path, "not a pyloca model file")


def test_a_header_that_claims_to_be_huge_is_not_allocated(path):
    path.write_bytes(struct.pack("<Q", 1 << 62) + b"{}")
    refused(path, "not a safetensors file, or truncated")


def test_cut_short_anywhere(path):
    content = saved()
    for length in {*range(0, 64), *range(64, len(content), 97), *range(len(content) - 64, len(content))}:
        path.write_bytes(content[:length])
        with pytest.raises(ModelFileError):
            LOCA.load(path)


def test_with_something_after_the_end(path):
    path.write_bytes(saved() + b"\x00")
    refused(path, "not a pyloca model file")


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_a_flipped_byte_anywhere_is_noticed(path, place, flip):
    """Or it does not matter at all, as a tab for a space in JSON does not."""
    content = bytearray(saved())
    content[int(place * len(content))] ^= flip
    path.write_bytes(content)
    try:
        found = LOCA.load(path)
    except ModelFileError:
        return
    assert_same_model(found, fitted())
    assert found.get_params() == fitted().get_params()


def header_of(content):
    size = int.from_bytes(content[:8], "little")
    return json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["pyloca-model"])


@pytest.mark.parametrize(
    ("old", "new"), [('\\"burst_std_\\": 0.01', '\\"burst_std_\\": 0.02'), ('\\"tanh\\"', '\\"elu2\\"')], ids=str
)
def test_a_changed_header_is_noticed(path, old, new):
    """σ, the activation and the rest decide what the numbers mean as much as the weights do."""
    content = saved()
    assert old.encode() in content
    path.write_bytes(content.replace(old.encode(), new.encode(), 1))
    refused(path, "the content does not match its checksum; the file was altered or damaged")


def rewrite(path, change):
    """A well-formed file whose header was changed by `change`, with a checksum that fits."""
    arrays, header = safetensors.numpy.load(saved()), header_of(saved())
    header.pop("sha256")
    change(header)
    header["sha256"] = _sealed.digest(arrays, header)
    path.write_bytes(safetensors.numpy.save(arrays, {"pyloca-model": json.dumps(header)}))


def test_a_rewritten_file_is_read(path):
    """Otherwise the tests below would show nothing."""
    rewrite(path, lambda header: header["fitted"].update(n_iter_=77))
    assert LOCA.load(path).n_iter_ == 77


@pytest.mark.parametrize("version", [1, 99, 0, "2", None])
def test_another_version_is_named(path, version):
    rewrite(path, lambda header: header.update(version=version))
    refused(path, rf"format version {version}; this pyloca reads version 3\. Update pyloca, or fit again")


@pytest.mark.parametrize("name", ["parameters", "networks", "fitted", "diagnostics"])
def test_a_part_that_is_missing(path, name):
    rewrite(path, lambda header: header.pop(name))
    refused(path, rf"does not describe a model \('{name}' is missing\)")


def test_a_file_without_version_or_checksum(path):
    rewrite(path, lambda header: header.pop("version"))
    refused(path, "not a pyloca model file")
    arrays, header = safetensors.numpy.load(saved()), header_of(saved())
    header.pop("sha256")
    path.write_bytes(safetensors.numpy.save(arrays, {"pyloca-model": json.dumps(header)}))
    refused(path, "does not match its checksum")


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"surprise": 1}},
        {"parameters": []},
        {"networks": {}},
        {"networks": {"encoder": {"kind": "pickle"}, "decoder": {}}},
        {"fitted": None},
        {"diagnostics": {"stretch": 1}},
    ],
    ids=str,
)
def test_a_header_of_another_make(path, change):
    rewrite(path, lambda header: header.update(change))
    refused(path, "does not describe a model|diagnostics.stretch is 1; expected two numbers")


@pytest.mark.parametrize("metadata", [None, {}, {"format": "pt"}, {"pyloca-model": "no json"}, {"pyloca-model": "[]"}])
def test_a_safetensors_file_of_someone_else(path, metadata):
    path.write_bytes(safetensors.numpy.save({"weight": np.ones(3)}, metadata))
    refused(path, "not a pyloca model file")


class Bomb:
    """Unpickling it makes a folder."""

    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("writer", ["pickle", "torch"])
def test_a_pickle_is_never_opened(path, tmp_path, writer):
    target = tmp_path / "exploded"
    if writer == "pickle":
        path.write_bytes(pickle.dumps(Bomb(target)))
    else:
        torch.save(Bomb(target), path)
    refused(path, "not a pyloca model file")
    assert not target.exists()
    pickle.loads(pickle.dumps(Bomb(target)))  # the bomb is live
    assert target.exists()


# -- writing ----------------------------------------------------------------------------------------------------


def test_the_folder_holds_the_model_and_nothing_else(path):
    fitted().save(path)
    fitted("paper").save(path)  # over the first
    assert [file.name for file in path.parent.iterdir()] == ["model.safetensors"]
    assert_same_model(LOCA.load(path), fitted("paper"))


@pytest.mark.parametrize("step", ["fsync", "replace", "fchmod", "link"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(path, monkeypatch, step):
    path.write_bytes(b"old")

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_atomic.os, step, fail)
    with pytest.raises(OSError, match="No space left on device"):
        fitted().save(path)
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [file.name for file in path.parent.iterdir()] == ["model.safetensors"]


def test_an_interrupt_leaves_the_old_file_and_no_other(path, monkeypatch):
    path.write_bytes(b"old")

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(_atomic.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fitted().save(path)
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [file.name for file in path.parent.iterdir()] == ["model.safetensors"]


def test_what_cannot_be_stored_is_found_out_before_anything_is_written(path):
    path.write_bytes(b"old")
    model = short_fit(tiny_loca(max_iter=5), planar_bursts(30, 20)[1])
    model.tol = {1, 2}
    with pytest.raises(TypeError, match="set cannot be stored in a model file"):
        model.save(path)
    assert path.read_bytes() == b"old"
    assert [file.name for file in path.parent.iterdir()] == ["model.safetensors"]


def test_a_folder_in_the_way(tmp_path):
    target = tmp_path / "model.safetensors"
    target.mkdir()
    with pytest.raises(OSError, match="directory"):
        fitted().save(target)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        fitted().save(tmp_path / "nowhere" / "model.safetensors")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_permissions_follow_the_umask(path, umask):
    before = os.umask(umask)
    try:
        fitted().save(path)
        assert os.umask(umask) == umask  # still what it was
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
