"""`transform` of arrays that are computed later, or that name their axes."""

import dask.array as da
import numpy as np
import pytest
import xarray as xr

from pyloca import LOCA, datasets
from pyloca.bursts import Bursts, save_bursts
from pyloca.errors import BurstError
from pyloca.estimator import _embed
from pyloca.modelfile import model_to_bytes
from pyloca.predict import predictor_from_bytes

DATA = datasets.mushroom(120, 12, random_state=0)
ARRAY = DATA.bursts.to_array()


@pytest.fixture(scope="module")
def model():
    bursts = Bursts(ARRAY, feature_names=["p", "T"])
    return LOCA(burst_std=0.01, hidden_layers=(6,), max_iter=40, random_state=0).fit(bursts)


@pytest.mark.parametrize("chunks", [(50, 2), (120, 1)])
def test_points_of_dask_stay_lazy(model, chunks):
    lazy = model.transform(da.from_array(DATA.Y, chunks=chunks))
    assert isinstance(lazy, da.Array)
    assert (lazy.shape, lazy.dtype) == ((120, 2), np.float64)
    expected, trust = model.transform(ARRAY.mean(axis=1)[:, None], return_trust=True)
    Z, told = model.transform(da.from_array(ARRAY.mean(axis=1), chunks=chunks), return_trust=True)
    np.testing.assert_array_equal(Z.compute(), expected)
    np.testing.assert_array_equal(told.compute(), trust)


def test_bursts_of_dask_stay_lazy(model):
    lazy = model.transform(da.from_array(ARRAY, chunks=(50, 12, 2)))
    assert (lazy.chunks, lazy.dtype) == (((50, 50, 20), (2,)), np.float64)
    np.testing.assert_array_equal(lazy.compute(), model.embedding_)
    np.testing.assert_array_equal(lazy[70:80].compute(), model.embedding_[70:80])


def test_labelled_arrays_keep_their_labels(model):
    array = xr.DataArray(
        da.from_array(ARRAY, chunks=(50, 12, 2)).transpose(1, 0, 2),
        dims=("point", "burst", "feature"),
        coords={"burst": np.arange(120) * 2, "feature": ["p", "T"], "site": ("burst", ["north"] * 120)},
    )
    out = model.transform(array)
    assert isinstance(out.data, da.Array)
    assert (out.dims, out.name) == (("burst", "component"), "loca")
    assert (out.burst[3].item(), out.site[3].item(), out.component.values.tolist()) == (6, "north", ["loca0", "loca1"])
    np.testing.assert_array_equal(out.values, model.embedding_)
    points = xr.DataArray(ARRAY[:, 0], dims=("time", "sensor"), coords={"time": np.arange(120.0)})
    Z, trust = model.transform(points, return_trust=True)
    assert (Z.dims, trust.dims, trust.time[5].item()) == (("time", "component"), ("time",), 5.0)
    expected = model.transform(ARRAY[:, :1], return_trust=True)
    np.testing.assert_array_equal(Z.values, expected[0])
    np.testing.assert_array_equal(trust.values, expected[1])


def test_point_by_point_too_features_are_those_of_the_labels(model):
    points = xr.DataArray(ARRAY[:, 0], dims=("burst", "feature"), coords={"feature": ["p", "T"]})
    predictor = predictor_from_bytes(model_to_bytes(model), "memory")
    for one in (model, predictor):
        for method in (one.encode, one.encode_with_jacobian):
            with pytest.raises(ValueError, match="Y has the features T, p; expected p, T"):
                method(points.sel(feature=["T", "p"]))
        np.testing.assert_array_equal(one.encode(points[:2].T), one.encode(ARRAY[:2, 0]))
        np.testing.assert_array_equal(one.encode(points[0]), one.encode(ARRAY[0, 0]))
    Z = model.transform(points)
    np.testing.assert_array_equal(model.decode(Z.T), model.decode(Z.values))
    with pytest.raises(ValueError, match="Y has the features T, p"):
        predictor.trust(points.sel(feature=["T", "p"]))


def test_a_dataset_is_told_from_an_array(model):
    dataset = xr.Dataset({"readings": (("burst", "feature"), ARRAY[:, 0])})
    for method in (model.transform, model.encode, LOCA().fit):
        with pytest.raises(BurstError, match=r"xarray.Dataset with the variables readings; .* Choose one by name"):
            method(dataset)


@pytest.mark.parametrize("kind", [str, object])
def test_text_is_not_read_as_numbers(model, kind):
    text = ARRAY[:3, 0].astype(str).astype(kind)
    with pytest.raises(ValueError, match="X holds text"):
        model.transform(text)


def test_bad_rows_of_lazy_arrays_are_counted_from_the_first_of_all(model):
    points = ARRAY[:, 0].copy()
    points[70, 1] = np.nan
    with pytest.raises(ValueError, match="the first is row 70"):
        model.transform(da.from_array(points, chunks=(50, 2))).compute()


def test_what_does_not_fit_is_refused_before_anything_is_computed(model):
    with pytest.raises(BurstError, match=r"shape \(120, 3\); expected points \(n, 2\)"):
        model.transform(da.zeros((120, 3)))
    points = xr.DataArray(DATA.Y, dims=("time", "feature"), coords={"feature": ["T", "p"]})
    with pytest.raises(BurstError, match="features T, p; expected p, T, in this order"):
        model.transform(points)
    with pytest.raises(BurstError, match="dimensions x, y, feature"):
        model.transform(xr.DataArray(ARRAY, dims=("x", "y", "feature")))
    broken = DATA.Y.copy()
    broken[99] = np.nan
    lazy = model.transform(da.from_array(broken, chunks=(50, 2)))
    with pytest.raises(ValueError, match="in 1 of 50 rows"):
        lazy.compute()


@pytest.mark.parametrize("kind", ["dask", "xarray", "zarr"])
def test_a_fit_to_a_store_has_the_bits_of_one_in_memory(model, kind, tmp_path):
    data = {
        "dask": lambda: Bursts(da.from_array(ARRAY, chunks=(50, 12, 2)), feature_names=["p", "T"]),
        "xarray": lambda: xr.DataArray(ARRAY, dims=("burst", "point", "feature"), coords={"feature": ["p", "T"]}),
        "zarr": lambda: str(save_bursts(Bursts(ARRAY, feature_names=["p", "T"]), tmp_path / "b.zarr")),
    }[kind]()
    again = LOCA(burst_std=0.01, hidden_layers=(6,), max_iter=40, random_state=0).fit(data)
    np.testing.assert_array_equal(again.embedding_, model.embedding_)
    np.testing.assert_array_equal(again.transform(data), model.embedding_)


def test_many_rows_are_embedded_in_slabs(model, monkeypatch):
    rows = ARRAY.reshape(-1, 2)[:, None]
    whole = model.transform(rows, return_trust=True)
    monkeypatch.setattr(_embed, "SLAB", 100)
    for a, b in zip(model.transform(rows, return_trust=True), whole, strict=True):
        np.testing.assert_array_equal(a, b)
