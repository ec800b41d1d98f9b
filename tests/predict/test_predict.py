"""A model file in NumPy: the same numbers as the estimator, and nothing else is imported."""

import copy
import subprocess
import sys
import textwrap
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch

from helpers import HANG
from pyloca import BurstError, ModelFileError, TrustWarning
from pyloca._sealed import MODEL, seal, unseal
from pyloca.modelfile import model_to_bytes
from pyloca.networks import ACTIVATIONS, MLP, apply_rows, jacobian_rows
from pyloca.predict import Predictor, load, predictor_from_bytes
from pyloca.predict._network import network_from_arrays
from varieties import KINDS, fitted, in_float64, points, predictor

TOL = 1e-12  # of the size of what is compared


def assert_same(found, expected):
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= TOL * max(1e-300, np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
def test_it_computes_what_the_estimator_does(kind):
    ours, theirs = predictor(kind), in_float64(kind)
    Y, Z = points(kind)
    assert_same(ours.encode(Y), theirs.encode(Y))
    assert_same(ours.decode(Z), theirs.decode(Z))
    for found, expected in zip(ours.encode_with_jacobian(Y), theirs.encode_with_jacobian(Y), strict=True):
        assert_same(found, expected)
    trust = theirs.transform(pd.DataFrame(Y, columns=ours.feature_names), return_trust=True)[1]
    np.testing.assert_array_equal(ours.trust(Y), trust)
    assert len(np.unique(trust)) > 2  # the points are not all alike


@pytest.mark.parametrize("kind", ["tanh", "units"])
def test_a_rescaled_model_is_read_as_it_is(kind):
    theirs = copy.deepcopy(fitted(kind))
    apart = np.linalg.norm(theirs.embedding_[0] - theirs.embedding_[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # σ was known, and was right
        theirs.rescale([[0, 1]], [3 * apart])
    ours, (Y, Z) = predictor_from_bytes(model_to_bytes(theirs), "memory"), points(kind)
    assert_same(ours.encode(Y), 3 * predictor(kind).encode(Y))
    assert_same(ours.decode(3 * Z), predictor(kind).decode(Z))
    np.testing.assert_array_equal(ours.trust(Y), predictor(kind).trust(Y))
    assert ours.burst_std == pytest.approx(0.03)


def test_the_tests_are_about_every_kind_of_network():
    assert predictor("many_features").decoder.layers[-1][0].shape[0] == 60
    assert len(predictor("many_features").decoder.flat) == 2  # the linear layer of a reduction
    assert len(predictor("paper").encoder.flat) == 2
    assert np.isinf(predictor("left_out").feature_scale).any()
    assert predictor("affine").encoder.bent == []
    assert predictor("tanh").encoder.skip is not None and predictor("paper").encoder.skip is None


@pytest.mark.parametrize("tail", [False, True, 4])
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_networks_bend_as_in_torch(activation, tail):
    """Far beyond where softplus becomes the identity; exponentials must not overflow."""
    torch.manual_seed(0)
    module = MLP(3, (9, 8), 2, activation, skip=True, linear_tail=tail).double()
    module.linear_layers()[0].weight.data *= 30
    arrays = {name: value.numpy() for name, value in module.state_dict().items()}
    facts = {"standardized": False, "sizes": [3, 9, 8, 2], "activation": activation, "skip": True, "linear_tail": tail}
    network = network_from_arrays(facts, arrays, 3, 2)
    Y = 30 * np.random.RandomState(0).standard_normal((50, 3))
    assert np.abs(Y @ network.bent[0][0].T).max() > 1000
    assert_same(network.apply(Y), apply_rows(module, Y, 2))
    assert_same(network.jacobian(Y), jacobian_rows(module, Y, 2))
    assert_same(network.jacobian(Y / 100), jacobian_rows(module, Y / 100, 2))


def test_leading_axes_and_no_points():
    ours = predictor("tanh")
    Y, Z = points("tanh", 12)
    shaped = Y.reshape(2, 6, 3)
    np.testing.assert_allclose(ours.encode(shaped), ours.encode(Y).reshape(2, 6, 2), rtol=0, atol=1e-15)
    assert ours.encode(Y[0]).shape == (2,) and ours.decode(Z[0]).shape == (3,)
    assert ours.trust(Y[0]).shape == () and ours.trust(shaped).shape == (2, 6)
    assert [part.shape for part in ours.encode_with_jacobian(shaped)] == [(2, 6, 2), (2, 6, 2, 3)]
    none = np.empty((0, 3))
    assert ours.encode(none).shape == (0, 2) and ours.trust(none).shape == (0,)
    assert [part.shape for part in ours.encode_with_jacobian(none)] == [(0, 2), (0, 2, 3)]


def test_many_points_go_in_blocks():
    ours = predictor("tanh")
    Y = np.tile(points("tanh")[0], (4000, 1))  # 160,000 rows
    np.testing.assert_allclose(ours.encode(Y)[-40:], ours.encode(Y[:40]), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(ours.trust(Y[:20_000])[-40:], ours.trust(Y[:40]))


def test_it_knows_what_the_estimator_knows():
    ours, model = predictor("units"), fitted("units")
    assert ours.feature_names == tuple(model.feature_names_in_) and ours.units == model.units_
    assert (ours.n_features, ours.n_components, ours.intrinsic_dim) == (3, 2, 2)
    assert ours.burst_std == model.burst_std_ and ours.burst_std_known
    np.testing.assert_array_equal(ours.feature_scale, model.feature_scale_)
    assert ours.findings == tuple(model.diagnostics_.warnings)
    assert "3 features → 2 coordinates" in repr(ours)
    told = str(ours)
    assert "pressure (Pa)" in told and "k = 2" in told and "0.01 (known)" in told
    assert "no fault found" in told or "WARNING" in told
    assert "and 52 more" in " ".join(str(predictor("many_features")).split())


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("Y", "words"),
    [
        (np.zeros((2, 4)), r"Y has shape \(2, 4\); expected"),
        (np.array([[1.0, np.nan, 1.0]]), r"infinity or values beyond .*, first at \[0, 1\]"),
        (np.ma.masked_equal([[1.0, 2.0, 3.0]], 2.0), "masked array"),
        ([["a", "b", "c"]], "dtype"),
        (np.zeros((1, 3), dtype=complex), "dtype complex128"),
        (pd.DataFrame(np.zeros((1, 3)), columns=["height", "pressure", "t"]), "in this order"),
    ],
)
def test_the_same_points_are_refused_as_by_the_estimator(Y, words):
    for model in (predictor("units"), fitted("units")):
        with pytest.raises(ValueError, match=words):
            model.encode(Y)
    for method in (predictor("units").trust, predictor("units").encode_with_jacobian):
        with pytest.raises(ValueError, match=words):
            method(Y)


def test_points_that_may_have_no_finite_image_are_refused():
    with pytest.raises(ValueError, match=r"Y contains .* values beyond 1e\+100, first at \[1, 0\]"):
        predictor("leaky_relu").encode([[0, 0, 0], [1e308, -1e308, 1e308]])
    with pytest.raises(ValueError, match="Z contains"):
        predictor("leaky_relu").decode([1e308, -1e308])


def test_other_names_and_units_are_refused():
    ours = predictor("units")
    names = list(ours.feature_names)
    ours.check_features(names, ours.units)
    ours.check_features(units=["Pa", "", "m"])  # the fit does not know the unit of the height
    with pytest.raises(BurstError, match="'pressure' is in kPa; the model was fitted to Pa"):
        ours.check_features(names, ["kPa", "°C", ""])
    with pytest.raises(BurstError, match="in a different order"):
        ours.check_features(names[::-1])
    with pytest.raises(BurstError, match="pressure missing, p unknown"):
        ours.check_features(["p", *names[1:]])
    with pytest.raises(ValueError, match="2 names were given; the model has 3 features"):
        ours.check_features(names[:2])


def test_own_modules_are_refused_in_words():
    content = edited(lambda header, _: header["networks"]["decoder"].update({"kind": "module", "class": "UNet"}))
    with pytest.raises(ModelFileError, match=r"here: its decoder is a module of your own \(UNet\), which only PyTorch"):
        predictor_from_bytes(content, "here")


def test_files_of_earlier_versions_load():
    """Version 2 knew no names, ids, units and feature scale."""

    def earlier(header, arrays):
        header["version"] = 2
        for name in ("feature_names", "units", "table", "burst_std_known", "rescaling", "spike_rule"):
            del header[name]
        for name in ("burst_ids", "feature_scale", "set_aside"):
            del arrays[name]

    ours, Y = predictor_from_bytes(edited(earlier), "earlier"), points("tanh")[0]
    np.testing.assert_array_equal(ours.encode(Y), predictor("tanh").encode(Y))
    assert ours.burst_std_known and ours.feature_names is None


def edited(change):
    """A model file with a valid checksum, forged."""
    header, arrays = unseal(model_to_bytes(fitted("tanh")), MODEL, (3,), "memory")
    arrays = dict(arrays)
    change(header, arrays)
    return seal(MODEL, header, arrays)


def set_nan(_, arrays):
    arrays["encoder.network.layers.0.weight"] = np.full_like(arrays["encoder.network.layers.0.weight"], np.nan)


@pytest.mark.parametrize(
    "change",
    [
        set_nan,
        lambda header, _: header["fitted"].update({"n_components_": 3}),
        lambda header, _: header["fitted"].update({"n_features_in_": 10**8}),
        lambda header, _: header["networks"]["encoder"].update({"sizes": [3, 10**8, 2]}),
        lambda header, _: header["networks"]["encoder"].update({"activation": "relu"}),
        lambda header, _: header["trust_scale"].update({"gap": 0.0}),
        lambda header, _: header.update({"units": ["m"]}),
        lambda _, arrays: arrays.update({"feature_scale": np.zeros(3)}),
        lambda _, arrays: arrays.update({"embedding": arrays["embedding"][:, :1]}),
        lambda _, arrays: arrays.update({"embedding": np.full_like(arrays["embedding"], np.nan)}),
        lambda _, arrays: arrays.update({"trust_scores": np.array([np.nan])}),
        lambda _, arrays: arrays.pop("decoder.out_scale"),
        lambda _, arrays: arrays.update({"decoder.out_scale": np.array(np.inf)}),
    ],
)
def test_forged_files_are_refused(change):
    with pytest.raises(ModelFileError, match="here: "):
        predictor_from_bytes(edited(change), "here")


def test_foreign_and_missing_files_are_refused(tmp_path):
    (tmp_path / "foreign").write_bytes(safetensors.numpy.save({"x": np.zeros(3)}))
    (tmp_path / "cut").write_bytes(model_to_bytes(fitted("tanh"))[:-3])
    for name in ("foreign", "cut", "missing"):
        with pytest.raises(ModelFileError, match=name):
            load(tmp_path / name)


# -- serving ----------------------------------------------------------------------------------------------------------


def test_threads_share_it():
    ours, Y = predictor("tanh"), points("tanh")[0]
    expected = ours.encode(Y), ours.trust(Y)
    with ThreadPoolExecutor(8) as pool:
        for Z, trust in pool.map(lambda _: (ours.encode(Y), ours.trust(Y)), range(200)):
            np.testing.assert_array_equal(Z, expected[0])
            np.testing.assert_array_equal(trust, expected[1])


def test_processes_share_it(tmp_path):
    """Forked after its first use, or started anew: in a service without PyTorch."""
    path = fitted("tanh").save(tmp_path / "model.safetensors")
    script = f"""
        import multiprocessing
        from pyloca.predict import load

        if __name__ == "__main__":
            model = load({str(path)!r})
            Z = model.encode(Y := model.decode(model.training))
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    print(method, all((found == Z).all() for found in pool.map(model.encode, [Y] * 4)))
    """
    (tmp_path / "service.py").write_text(textwrap.dedent(script), encoding="utf-8")
    command = [sys.executable, str(tmp_path / "service.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert done.stdout.split() == ["fork", "True", "spawn", "True"], done.stderr


def test_nothing_but_numpy_and_safetensors_is_imported(tmp_path):
    path = fitted("units").save(tmp_path / "model.safetensors")
    code = f"""
        import sys
        from pyloca.predict import load
        model = load({str(path)!r})
        Y = model.decode(model.training[:2])
        model.encode_with_jacobian(Y), model.trust(Y), model.encode(Y)
        ours = {{name.split(".")[0] for name in sys.modules}} - sys.stdlib_module_names
        print(*sorted(name for name in ours if not name.startswith(("_", "sitecustom", "distutils"))))
    """
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["numpy", "pyloca", "safetensors"]


def test_load_reads_files_of_the_estimator(tmp_path):
    ours = load(fitted("tanh").save(tmp_path / "model.safetensors"))
    assert isinstance(ours, Predictor) and ours.certificate is None
    np.testing.assert_array_equal(ours.encode([0.1, 0.2, 0.3]), predictor("tanh").encode([0.1, 0.2, 0.3]))
