"""Statistics of bursts in parts, by workers, and in files."""

import json
import shutil

import dask.array as da
import numpy as np
import pytest
import zarr
from distributed import Client

from helpers import planar_bursts
from pyloca import LOCA, datasets
from pyloca.bursts import Bursts, open_bursts, save_bursts
from pyloca.errors import BurstError
from pyloca.geometry import (
    BurstStatistics,
    _keep,
    _statistics_file,
    holds_statistics,
    read_statistics,
    save_statistics,
    write_statistics,
)

ARRAY = datasets.mushroom(400, 12, random_state=0).bursts.to_array()
FIELDS = ("means", "tangents", "counts", "residuals", "total", "noise", "tilts", "ids", "marks", "set_aside")


def spiky():
    array = ARRAY.copy()
    array[::40, 3] += 1.0
    return Bursts(array, ids=[f"run {i}" for i in range(400)], feature_names=["p", "T"], units=["Pa", "K"])


def assert_same(found, expected):
    for name in FIELDS:
        a, b = getattr(found, name), getattr(expected, name)
        assert (a is None) == (b is None), name
        if a is not None:
            np.testing.assert_array_equal(a, b, name)
    for name in ("tails", "feature_names", "units", "known_std"):
        assert getattr(found, name) == getattr(expected, name)


@pytest.fixture
def small_parts(monkeypatch):
    """Cut into eight parts what is cut at all."""
    parts = Bursts._parts
    monkeypatch.setattr(Bursts, "_parts", lambda self, _, *, cut=False: parts(self, ARRAY.size // 8, cut=cut))


@pytest.fixture(scope="module")
def client():
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
        yield client


@pytest.mark.parametrize("noise", [None, 0.002])
def test_parts_of_a_store_give_the_same_bits(tmp_path, small_parts, noise):
    expected = BurstStatistics.from_bursts(spiky(), 2, measurement_noise=noise)
    assert expected.set_aside.sum() == 10
    save_bursts(spiky(), tmp_path / "b.zarr")
    for lazy in (da.from_array(spiky().to_array(), chunks=(90, 12, 2)), str(tmp_path / "b.zarr")):
        found = write_statistics(
            lazy if isinstance(lazy, str) else Bursts(lazy),
            tmp_path / "s.zarr",
            intrinsic_dim=2,
            measurement_noise=noise,
        )
        np.testing.assert_array_equal(found.tangents, expected.tangents)
    assert_same(found, expected)
    assert_same(read_statistics(tmp_path / "s.zarr"), expected)


@pytest.mark.slow
def test_workers_give_the_same_bits(tmp_path, small_parts, client):
    save_bursts(spiky(), tmp_path / "b.zarr")
    found = write_statistics(tmp_path / "b.zarr", tmp_path / "s.zarr")
    assert_same(found, BurstStatistics.from_bursts(spiky()))
    lazy = Bursts(da.from_array(spiky().to_array(), chunks=(90, 12, 2)))
    np.testing.assert_array_equal(BurstStatistics.from_bursts(lazy).tangents, found.tangents)
    broken = spiky().to_array()
    broken[333, 5, 1] = np.nan
    with pytest.raises(BurstError, match="burst 333"):
        BurstStatistics.from_bursts(Bursts(da.from_array(broken, chunks=(90, 12, 2))))


def test_a_killed_run_goes_on_where_it_was(tmp_path, small_parts, monkeypatch):
    save_bursts(spiky(), tmp_path / "b.zarr")
    put, written = _keep.KeepParts.put, []

    def killed(self, part, result):
        if len(written) == 5:
            raise KeyboardInterrupt
        written.append((self.name, part))
        put(self, part, result)

    monkeypatch.setattr(_keep.KeepParts, "put", killed)
    with pytest.raises(KeyboardInterrupt):
        write_statistics(tmp_path / "b.zarr", tmp_path / "s.zarr")
    assert not (tmp_path / "s.zarr").exists()
    kept = sorted((tmp_path / "s.zarr.partial").iterdir())
    assert len(kept) == 5
    kept[2].write_bytes(kept[2].read_bytes()[:-3])  # damaged: computed again

    def counted(self, part, result):
        written.append((self.name, part))
        put(self, part, result)

    written.clear()
    monkeypatch.setattr(_keep.KeepParts, "put", counted)
    found = write_statistics(tmp_path / "b.zarr", tmp_path / "s.zarr")
    assert len(written) == 2 * 8 - 4
    assert_same(found, BurstStatistics.from_bursts(spiky()))
    assert not (tmp_path / "s.zarr.partial").exists()


def test_other_data_or_options_do_not_go_on(tmp_path, small_parts, monkeypatch):
    save_bursts(spiky(), tmp_path / "b.zarr")
    monkeypatch.setattr(
        _statistics_file, "save_statistics", lambda *_, **__: (_ for _ in ()).throw(OSError("disk full"))
    )
    with pytest.raises(OSError, match="disk full"):
        write_statistics(tmp_path / "b.zarr", tmp_path / "s.zarr")
    monkeypatch.undo()
    save_bursts(Bursts(2 * ARRAY), tmp_path / "b.zarr")
    found = write_statistics(tmp_path / "b.zarr", tmp_path / "s.zarr")
    np.testing.assert_array_equal(found.means, BurstStatistics.from_bursts(2 * ARRAY).means)


def test_bad_data_leave_nothing_behind(tmp_path):
    broken = ARRAY.copy()
    broken[7, 2, 1] = np.inf
    save_bursts(Bursts(broken), tmp_path / "b.zarr")
    with pytest.raises(BurstError, match="burst 7"):
        write_statistics(tmp_path / "b.zarr", tmp_path / "s.zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["b.zarr"]


@pytest.mark.parametrize("option", [{"max_strays": 2.0}, {"measurement_noise": -1.0}, {"intrinsic_dim": 9}])
def test_bad_options_leave_nothing_behind(tmp_path, option):
    save_bursts(Bursts(ARRAY), tmp_path / "b.zarr")
    with pytest.raises(ValueError, match=f"{next(iter(option))} must be"):
        write_statistics(tmp_path / "b.zarr", tmp_path / "s.zarr", **option)
    assert [path.name for path in tmp_path.iterdir()] == ["b.zarr"]


@pytest.mark.parametrize("name", ["means/c/0/0", "tangents/c/0/0/0", "ids/c/0", "zarr.json", "means/zarr.json"])
def test_a_damaged_or_missing_chunk_is_an_error(tmp_path, name):
    expected = BurstStatistics.from_bursts(spiky(), measurement_noise=0.002)
    save_statistics(expected, tmp_path / "s.zarr")
    path = tmp_path / "s.zarr" / name
    content = path.read_bytes()
    for place in range(0, len(content), max(1, len(content) // 40)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            assert_same(read_statistics(tmp_path / "s.zarr"), expected)  # a bit that does not matter
        except BurstError as error:
            assert str(tmp_path / "s.zarr") in str(error)
    path.unlink()
    with pytest.raises(BurstError, match=r"s\.zarr: "):
        read_statistics(tmp_path / "s.zarr")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("means", lambda array: array[:, :1]),
        ("counts", lambda array: array[:5]),
        ("tangents", lambda array: np.full_like(array, np.nan)),
        ("residuals", lambda array: array.astype(np.float32)[:, None]),
    ],
)
def test_forged_statistics_with_valid_checksums(tmp_path, name, change):
    statistics = BurstStatistics.from_bursts(ARRAY)
    object.__setattr__(statistics, name, change(getattr(statistics, name)))
    save_statistics(statistics, tmp_path / "s.zarr")
    with pytest.raises(BurstError, match=r"expected|not finite"):
        read_statistics(tmp_path / "s.zarr")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("facts", 1e308),
        ("facts.tails", "\x1b[31m"),
        ("facts.tails", 10**30),
        ("facts.known_std", -1),
        ("facts.feature_names", [1, 2]),
        ("shapes", "x"),
        ("shapes.means", [[]]),
        ("digests", {}),
    ],
)
def test_forged_manifests_with_a_valid_checksum(tmp_path, name, value):
    path = save_statistics(BurstStatistics.from_bursts(ARRAY), tmp_path / "s.zarr")
    whole = json.loads((path / "zarr.json").read_text())
    manifest = place = whole["attributes"]["pyloca-statistics"]
    *above, last = name.split(".")
    for key in above:
        place = place[key]
    place[last] = value
    del manifest["sha256"]
    manifest["sha256"] = _statistics_file._seal(manifest)
    (path / "zarr.json").write_text(json.dumps(whole))
    with pytest.raises(BurstError, match="not a readable folder of burst statistics"):
        read_statistics(path)


def test_covariances_that_cannot_be(tmp_path):
    statistics = BurstStatistics.from_bursts(ARRAY, measurement_noise=1e-3)
    statistics.total[3] *= -1
    save_statistics(statistics, tmp_path / "s.zarr")
    with pytest.raises(BurstError, match="total holds matrices that are not covariances"):
        read_statistics(tmp_path / "s.zarr")


def test_deep_json_is_not_statistics(tmp_path):
    path = save_statistics(BurstStatistics.from_bursts(ARRAY), tmp_path / "s.zarr")
    (path / "zarr.json").write_text('{"attributes": ' + "[" * 100_000 + "]" * 100_000 + "}")
    assert not holds_statistics(path)
    with pytest.raises(BurstError, match="not a readable folder of burst statistics"):
        read_statistics(path)


def test_what_are_statistics(tmp_path):
    save_bursts(Bursts(ARRAY), tmp_path / "b.zarr")
    save_statistics(BurstStatistics.from_bursts(ARRAY), tmp_path / "s.zarr")
    assert holds_statistics(tmp_path / "s.zarr")
    assert not holds_statistics(tmp_path / "b.zarr")
    with pytest.raises(BurstError, match="not a readable folder of burst statistics"):
        read_statistics(tmp_path / "b.zarr")
    with pytest.raises(BurstError, match=r"kept in \.zarr folders"):
        read_statistics(tmp_path / "s.npz")
    manifest = tmp_path / "s.zarr/zarr.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"attributes": {"pyloca-statistics": {}}}))
    with pytest.raises(BurstError, match="not a readable folder"):
        read_statistics(tmp_path / "s.zarr")


def test_a_fit_to_a_folder_of_statistics(tmp_path):
    known = Bursts(ARRAY, burst_std=0.01, ids=[f"r{i}" for i in range(400)])
    statistics = BurstStatistics.from_bursts(known)
    save_statistics(statistics, tmp_path / "s.zarr")
    settings = {"hidden_layers": (8,), "max_iter": 60, "random_state": 0}
    here, there = LOCA(**settings).fit(statistics), LOCA(**settings).fit(tmp_path / "s.zarr")
    np.testing.assert_array_equal(there.embedding_, here.embedding_)
    assert (there.burst_std_, there.burst_std_known_, there.burst_ids_[3]) == (0.01, True, "r3")
    np.testing.assert_array_equal(there.transform(tmp_path / "s.zarr"), here.embedding_)


def test_merging():
    whole, halves = BurstStatistics.from_bursts(ARRAY, 2), (Bursts(ARRAY[:150]), Bursts(ARRAY[150:]))
    parts = [BurstStatistics.from_bursts(half, 2) for half in halves]
    merged = BurstStatistics.merge(parts)
    np.testing.assert_array_equal(merged.tangents, whole.tangents)
    assert merged.ids.tolist() == whole.ids.tolist()
    assert merged.tails == pytest.approx((150 * parts[0].tails + 250 * parts[1].tails) / 400)
    with pytest.raises(BurstError, match="no statistics"):
        BurstStatistics.merge([])
    with pytest.raises(BurstError, match="part 1 has intrinsic_dim = 1; part 0 has 2"):
        BurstStatistics.merge([whole, BurstStatistics.from_bursts(ARRAY, 1)])
    with pytest.raises(BurstError, match="another measurement noise"):
        BurstStatistics.merge([whole, BurstStatistics.from_bursts(ARRAY, 2, measurement_noise=0.002)])
    named = BurstStatistics.from_bursts(spiky(), 2)
    with pytest.raises(BurstError, match="same id"):
        BurstStatistics.merge([named, named])


def test_a_folder_that_zarr_cannot_open(tmp_path):
    save_statistics(BurstStatistics.from_bursts(ARRAY), tmp_path / "s.zarr")
    shutil.rmtree(tmp_path / "s.zarr/means")
    with pytest.raises(BurstError, match="'means' cannot be read: a chunk is missing or damaged"):
        read_statistics(tmp_path / "s.zarr")
    assert set(zarr.open_group(str(tmp_path / "s.zarr"), mode="r").array_keys()) >= {"tangents"}


def test_units_in_which_some_sensors_drown_others_are_refused(tmp_path):
    points = planar_bursts(60, 12)[1] * [1e5, 1.0, 1.0]
    bursts = Bursts(points, feature_names=["p", "t", "u"], units={"p": "Pa", "t": "K", "u": "V"})
    with pytest.raises(BurstError, match=r"p \[?\(?Pa.* times as much as .*Divide each sensor by its spread"):
        write_statistics(bursts, tmp_path / "s.zarr")
    assert not list(tmp_path.iterdir())


def test_statistics_are_not_called_damaged_where_raw_bursts_are_needed(tmp_path):
    write_statistics(Bursts(planar_bursts(60, 12)[1]), tmp_path / "s.zarr")
    with pytest.raises(BurstError, match="holds statistics of bursts, which only `fit` accepts"):
        open_bursts(tmp_path / "s.zarr")
