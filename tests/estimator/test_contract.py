"""One contract for points and bursts, names that travel with the data, and units that do not matter."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers import planar_bursts, short_fit, smooth_map, tiny_loca
from pyloca import LOCA, BurstError, Bursts, BurstStatistics, ModelFileError, TrustWarning
from pyloca.bursts import from_table, save_bursts
from pyloca.estimator import read_like
from pyloca.geometry import feature_scale
from pyloca.metrics import calibrate, stress

NAMES = ["pressure", "voltage", "temperature"]
UNITS = ["Pa", "mV", "K"]


def sensors(n=150, seed=0, least=10, most=25):
    """Latents X (n, 2) and ragged bursts of three sensors, σ = 0.01."""
    random = np.random.RandomState(seed)
    X = random.uniform(-1, 1, size=(n, 2))
    counts = random.randint(least, most, size=n)
    return X, [smooth_map(x + 0.01 * random.standard_normal((m, 2))) for x, m in zip(X, counts, strict=True)]


def named(parts, factors=(1.0, 1.0, 1.0), **options):
    ids = [f"run-{i:03d}" for i in range(len(parts))]
    return Bursts([part * factors for part in parts], ids=ids, feature_names=NAMES, units=UNITS, **options)


@pytest.fixture(scope="module")
def model():
    """A good fit of named bursts in very different units."""
    _, parts = sensors()
    return LOCA(2, burst_std=0.01, hidden_layers=(15,), random_state=0).fit(named(parts, (1e5, 1e-3, 1.0)))


# -- points and bursts ----------------------------------------------------------------------------------------------


def test_transform_of_bursts_is_fit_transform_bit_for_bit(tmp_path):
    """However the bursts arrive, equal or ragged, scaled or not."""
    _, equal = planar_bursts(40, 20)
    _, ragged = sensors(60)
    for bursts in (Bursts(equal), Bursts(ragged), named(ragged, (1e6, 1.0, 1e-3))):
        model = tiny_loca()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrustWarning)
            Z = model.fit_transform(bursts)
        assert Z.shape == (len(bursts), 2)
        path = save_bursts(bursts, tmp_path / "bursts.npz")
        given = [bursts, list(bursts), path, str(path)]
        if not bursts.is_ragged:
            given.append(bursts.to_array())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # bursts without names, to a model that knows names
            for data in given:
                assert np.array_equal(model.transform(data), Z)
        statistics = BurstStatistics.from_bursts(bursts, 2)
        np.testing.assert_allclose(model.transform(statistics), Z, rtol=0, atol=1e-10)


def test_transform_of_statistics_is_fit_transform_bit_for_bit():
    statistics = BurstStatistics.from_bursts(planar_bursts(40, 20)[1])
    model = short_fit(tiny_loca(), statistics)
    assert np.array_equal(model.transform(statistics), model.embedding_)


def test_points_and_bursts_agree(model):
    _, parts = sensors(20, seed=1)
    bursts = named(parts, (1e5, 1e-3, 1.0))
    means = pd.DataFrame([burst.mean(axis=0) for burst in bursts], columns=NAMES)
    np.testing.assert_allclose(model.transform(means), model.transform(bursts), atol=1e-12)


def test_encode_and_decode_take_any_leading_axes(model):
    Y = np.stack([burst[:5] for burst in named(sensors(6)[1], (1e5, 1e-3, 1.0))])  # (6, 5, 3)
    Z = model.encode(Y)
    assert Z.shape == (6, 5, 2)
    assert np.array_equal(model.encode(Y[2, 3]), Z[2, 3])
    assert np.array_equal(model.encode(Y.reshape(2, 3, 5, 3)), Z.reshape(2, 3, 5, 2))
    back = model.decode(Z)
    assert back.shape == Y.shape
    assert np.array_equal(model.decode(Z[1]), back[1])
    assert np.array_equal(model.inverse_transform(Z[1]), back[1])
    assert np.abs((back - Y) / Y.std(axis=(0, 1))).max() < 0.2  # in the units of the data
    with pytest.raises(ValueError, match=r"Y has shape \(6, 5, 2\); expected \(…, 3\)"):
        model.encode(Z)
    with pytest.raises(ValueError, match="use decode, which takes any leading axes"):
        model.inverse_transform(Z)


def test_the_jacobian_is_that_of_the_encoder(model):
    """Against central differences, in the units of the data."""
    Y = np.stack([burst[0] for burst in named(sensors(4)[1], (1e5, 1e-3, 1.0))])
    Z, J = model.encode_with_jacobian(Y[:, None])
    assert Z.shape == (4, 1, 2) and J.shape == (4, 1, 2, 3)
    assert np.array_equal(Z[:, 0], model.encode(Y))
    for j, unit in enumerate((1e5, 1e-3, 1.0)):
        step = 1e-5 * unit * np.eye(3)[j]
        slope = (model.encode(Y + step) - model.encode(Y - step)) / (2e-5 * unit)
        np.testing.assert_allclose(J[:, 0, :, j], slope, rtol=1e-5, atol=1e-6 / unit)


# -- scikit-learn -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ragged", [False, True])
def test_a_pipeline_fits_and_transforms(ragged):
    bursts = named(sensors(60)[1]) if ragged else planar_bursts(60, 20)[1]
    for step in (StandardScaler(), PCA()):
        pipeline = make_pipeline(tiny_loca(), step)
        out = short_fit(pipeline, bursts).transform(bursts)
        assert out.shape == (60, 2)
        np.testing.assert_allclose(out, step.transform(pipeline[0].embedding_))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")
@pytest.mark.parametrize("kind", ["array", "Bursts", "list"])
def test_a_grid_search_over_components(kind):
    parts = sensors(60)[1]
    bursts = {"array": planar_bursts(60, 20)[1], "Bursts": named(parts), "list": parts}[kind]
    search = GridSearchCV(tiny_loca(), {"n_components": [2, 3]}, cv=2).fit(bursts)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.transform(bursts).shape == (60, search.best_params_["n_components"])
    if kind == "Bursts":
        assert search.best_estimator_.burst_ids_[0] == "run-000"


@pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")
def test_cross_validation_scores_bursts():
    assert (cross_val_score(tiny_loca(), named(sensors(60)[1]), cv=2) < 0).all()


# -- names, ids and units -------------------------------------------------------------------------------------------


def test_names_and_ids_are_known_after_a_fit(model):
    assert model.feature_names_in_.tolist() == NAMES
    assert model.units_ == tuple(UNITS)
    assert model.burst_ids_[:2].tolist() == ["run-000", "run-001"]
    assert model.get_feature_names_out().tolist() == ["loca0", "loca1"]


def test_swapped_columns_are_refused_by_name(model):
    frame = pd.DataFrame(np.ones((3, 3)), columns=NAMES)
    with pytest.raises(ValueError, match="same order"):
        model.transform(frame[["voltage", "pressure", "temperature"]])
    with pytest.raises(ValueError, match="humidity"):
        model.transform(frame.rename(columns={"voltage": "humidity"}))
    parts = sensors(12)[1]
    swapped = Bursts(parts, feature_names=["voltage", "pressure", "temperature"])
    for call in (model.transform, model.score, lambda data: read_like(model, data)):
        with pytest.raises(BurstError, match="in a different order: voltage, pressure, temperature; expected pressure"):
            call(swapped)
    with pytest.raises(BurstError, match="voltage missing, humidity unknown"):
        model.transform(Bursts(parts, feature_names=["pressure", "humidity", "temperature"]))


def test_an_array_for_a_model_with_names_is_said_to_have_none(model):
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        model.transform(np.ones((2, 3)))


def test_messages_name_bursts_and_sensors():
    parts = sensors(30)[1]
    parts[7][3, 1] = np.nan
    with pytest.raises(BurstError, match=r"1 cell without .* \(voltage \(mV\): 1 cell in burst 'run-007'\)"):
        tiny_loca().fit(named(parts))
    parts = sensors(30)[1]
    parts[4] = np.repeat(parts[4][:1], 12, axis=0)
    with pytest.raises(BurstError, match=r"burst 'run-004' .* has no spread"):
        tiny_loca(max_strays=0).fit(named(parts))
    parts[4] = parts[4][:1]
    with pytest.raises(BurstError, match=r"burst 'run-004' .* has 1 points"):
        tiny_loca(intrinsic_dim=2, max_strays=0).fit(named(parts))
    parts[4] = sensors(30)[1][4] + 1e3
    with pytest.raises(BurstError, match="such as 'run-004'"):
        tiny_loca(max_strays=0).fit(named(parts))


def test_suspect_bursts_are_called_by_id():
    parts = sensors(60)[1]
    fitted = short_fit(LOCA(2, burst_std=0.01, hidden_layers=(15,), random_state=0), named(parts))
    assert "run-" in str(fitted.diagnostics_) or not len(fitted.diagnostics_.suspects)
    assert fitted.diagnostics_.ids.tolist() == fitted.burst_ids_.tolist()


def test_a_frame_is_not_bursts():
    with pytest.raises(BurstError, match="from_table"):
        tiny_loca().fit(pd.DataFrame(np.ones((30, 3)), columns=NAMES))


def test_a_model_file_keeps_names_units_scale_and_ids(model, tmp_path):
    again = LOCA.load(model.save(tmp_path / "m.safetensors"))
    bursts = named(sensors(20, seed=1)[1], (1e5, 1e-3, 1.0))
    assert np.array_equal(again.transform(bursts), model.transform(bursts))
    assert np.array_equal(again.decode(model.embedding_), model.decode(model.embedding_))
    assert np.array_equal(again.feature_scale_, model.feature_scale_)
    assert again.feature_names_in_.tolist() == NAMES and again.units_ == tuple(UNITS)
    assert again.burst_ids_.tolist() == model.burst_ids_.tolist()
    assert str(again.diagnostics_) == str(model.diagnostics_)
    encoded = again.encoder_(torch.tensor(bursts[0])).detach().numpy()
    np.testing.assert_allclose(encoded, model.encode(bursts[0]), atol=1e-12)


# -- units ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [3.0, 1e3, pytest.param(1e9, marks=pytest.mark.slow)])
def test_units_do_not_matter(ratio):
    """A table in mV, Pa and K gives the coordinates of the table that was scaled by hand."""
    X, parts = sensors()
    together = np.concatenate(parts)
    by_hand = [(part - together.mean(axis=0)) / together.std(axis=0) for part in parts]
    settings = {"burst_std": 0.01, "hidden_layers": (15,), "random_state": 0}
    reference = LOCA(2, **settings).fit(named(by_hand))
    factors = np.array([1.0, ratio**0.5, ratio])
    fitted = LOCA(2, **settings).fit(named(parts, factors))
    moved = calibrate(reference.embedding_, fitted.embedding_).apply(fitted.embedding_)
    size = np.sqrt(np.square(reference.embedding_).sum(axis=1).mean())
    assert np.linalg.norm(moved - reference.embedding_, axis=1).max() < 1e-3 * size
    assert stress(X, fitted.embedding_) < 2e-3
    means = np.array([part.mean(axis=0) for part in parts]) * factors
    off = (fitted.decode(fitted.embedding_) - means) / means.std(axis=0)  # in every unit
    assert np.sqrt(np.square(off).mean()) < 0.02


def test_features_of_one_kind_keep_their_units():
    model = short_fit(tiny_loca(), planar_bursts(40, 20)[1])
    assert np.array_equal(model.feature_scale_, np.ones(3))
    pixels = np.random.RandomState(0).uniform(size=(40, 10, 2)) @ np.geomspace(1, 1e-3, 60)[None, :].repeat(2, axis=0)
    assert feature_scale(Bursts(pixels + 1e-9 * np.random.RandomState(1).standard_normal(pixels.shape))) is None


@pytest.mark.parametrize("scale", [None, [1.0, 2.0, 4.0], "auto"])
def test_a_scale_can_be_given(scale, tmp_path):
    model = short_fit(tiny_loca(feature_scale=scale), planar_bursts(40, 20)[1])
    expected = [1.0, 2.0, 4.0] if isinstance(scale, list) else [1.0, 1.0, 1.0]
    assert model.feature_scale_.tolist() == expected
    assert np.array_equal(LOCA.load(model.save(tmp_path / "m.safetensors")).feature_scale_, expected)


@pytest.mark.parametrize("scale", ["none", [1.0, 0.0, 1.0], [[1.0]], [np.nan, 1, 1], 3.0, object()])
def test_a_bad_scale_is_refused_before_the_data_is_read(scale):
    with pytest.raises(ValueError, match="feature_scale must be"):
        tiny_loca(feature_scale=scale).fit("no such file.npy")


def test_a_scale_of_the_wrong_length():
    with pytest.raises(ValueError, match=r"feature_scale has shape \(2,\); expected \(3,\)"):
        tiny_loca(feature_scale=[1.0, 2.0]).fit(planar_bursts(40, 20)[1])


@pytest.mark.slow
def test_a_silent_sensor_does_not_drown_the_others():
    """A sensor that is noise alone must not be blown up to the size of a signal."""
    X, parts = sensors()
    random = np.random.RandomState(1)
    noisy = [np.column_stack([part, 1e-4 * random.standard_normal(len(part))]) for part in parts]
    bursts = Bursts(noisy, feature_names=[*NAMES, "broken"], units=[*UNITS, "V"])
    settings = {"burst_std": 0.01, "hidden_layers": (15,), "random_state": 0}
    clean, fitted = LOCA(2, **settings).fit(named(parts)), LOCA(2, **settings).fit(bursts)
    assert stress(X, fitted.embedding_) < 2 * stress(X, clean.embedding_) + 1e-3


# -- a fit changes the estimator at once, or not at all -----------------------------------------------------------


def test_an_interrupted_fit_leaves_the_model_as_it_was():
    _, bursts = planar_bursts(40, 20)
    model = short_fit(tiny_loca(), bursts)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}

    def interrupt(record):
        raise KeyboardInterrupt

    model.set_params(callbacks=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        model.fit(planar_bursts(50, 20, seed=1)[1])
    assert {name: value for name, value in vars(model).items() if name.endswith("_")} == before


def test_names_of_an_earlier_fit_are_forgotten():
    model = short_fit(tiny_loca(), named(sensors(40)[1]))
    assert hasattr(model, "feature_names_in_")
    short_fit(model, planar_bursts(40, 20)[1])
    assert not hasattr(model, "feature_names_in_")


def test_help_is_not_buried():
    assert not [name for name in dir(LOCA) if name.startswith("set_") and name.endswith("_request")]


@pytest.mark.parametrize("kind", ["array", "ragged", "Bursts"])
def test_pandas_output(kind):
    parts = sensors(40)[1]
    data = {"array": planar_bursts(40, 20)[1], "ragged": parts, "Bursts": named(parts)}[kind]
    model = tiny_loca().set_output(transform="pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        frame = model.fit_transform(data)
    assert list(frame.columns) == ["loca0", "loca1"] and len(frame) == 40
    pd.testing.assert_frame_equal(model.transform(data), frame)
    again, trust = model.transform(data, return_trust=True)
    assert isinstance(again, pd.DataFrame) and trust.shape == (40,)


def test_a_table_goes_all_the_way():
    parts = sensors(60)[1]
    rows = [{"run": f"r{i}", **dict(zip(NAMES, row, strict=True))} for i, part in enumerate(parts) for row in part]
    bursts = from_table(pd.DataFrame(rows), "run")
    model = short_fit(tiny_loca(), bursts)
    assert model.burst_ids_[3] == "r3" and model.feature_names_in_.tolist() == NAMES


# -- what a fresh eye found -----------------------------------------------------------------------------------------


def test_points_with_labels_are_taken_by_name_or_refused(model):
    frame = pd.DataFrame(named(sensors(3)[1], (1e5, 1e-3, 1.0))[0], columns=NAMES)
    assert np.array_equal(model.encode(frame), model.encode(frame.to_numpy()))
    for wrong in (frame[NAMES[::-1]], frame.iloc[0][NAMES[::-1]], frame.rename(columns={"voltage": "u"})):
        for method in (model.encode, model.encode_with_jacobian):
            with pytest.raises(ValueError, match=r"expected pressure, voltage, temperature, in this order"):
                method(wrong)
    Z = pd.DataFrame(model.encode(frame), columns=["z0", "z1"])
    assert np.array_equal(model.decode(Z), model.decode(Z.to_numpy()))
    assert np.array_equal(model.inverse_transform(Z.set_axis(["loca0", "loca1"], axis=1)), model.decode(Z.to_numpy()))
    with pytest.raises(ValueError, match="expected z0, z1, in this order"):
        model.inverse_transform(Z[["z1", "z0"]])
    with pytest.raises(TypeError, match="use transform to embed the means"):
        model.encode(named(sensors(3)[1]))


def test_a_list_of_frames_has_names(model):
    frames = [pd.DataFrame(burst, columns=NAMES) for burst in named(sensors(3)[1], (1e5, 1e-3, 1.0))]
    assert Bursts(frames).feature_names == tuple(NAMES)
    assert model.transform(frames).shape == (3, 2)
    with pytest.raises(BurstError, match="in a different order"):
        model.transform([frame[NAMES[::-1]] for frame in frames])
    with pytest.raises(BurstError, match="columns of part 1 are temperature, voltage, pressure"):
        Bursts([frames[0], frames[1][NAMES[::-1]]])


def test_other_units_are_refused(model):
    bursts = Bursts(sensors(12)[1], feature_names=NAMES, units=["kPa", "mV", "K"])
    with pytest.raises(BurstError, match=r"feature 'pressure' is in kPa; the model was fitted to Pa\. Convert it"):
        model.transform(bursts)


def test_the_labels_of_a_scale_are_not_ignored():
    with pytest.raises(ValueError, match="for each feature, in order"):
        tiny_loca(feature_scale=pd.Series([1.0, 2.0, 4.0], index=list("abc"))).fit(planar_bursts(40, 20)[1])


def test_a_module_that_computes_something_else_is_refused(tmp_path):
    def make(activation):
        return torch.nn.Sequential(torch.nn.Linear(3, 8), activation(), torch.nn.Linear(8, 2))

    model = short_fit(tiny_loca(encoder=make(torch.nn.Tanh)), planar_bursts(40, 20)[1])
    path = model.save(tmp_path / "own.safetensors")
    assert np.array_equal(LOCA.load(path, encoder=make(torch.nn.Tanh)).embedding_, model.embedding_)
    with pytest.raises(ModelFileError, match="the encoder that was passed has the right weights but computes"):
        LOCA.load(path, encoder=make(torch.nn.Sigmoid))


def test_a_path_is_read_as_the_fit_read_it(tmp_path, model):
    rows = [
        {"run": f"r{i}", "t": j, **dict(zip(NAMES, row, strict=True))}
        for i, burst in enumerate(named(sensors(12)[1], (1e5, 1e-3, 1.0)))
        for j, row in enumerate(burst)
    ]
    pd.DataFrame(rows)[["t", "temperature", "pressure", "run", "voltage"]].to_csv(tmp_path / "new.csv", index=False)
    model.table_ = {"burst_id": "run", "exclude": ["t"]}
    assert model.transform(tmp_path / "new.csv").shape == (12, 2)
