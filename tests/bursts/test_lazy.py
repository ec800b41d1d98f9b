"""Bursts that are not in memory: Zarr, Dask, xarray."""

import json
import logging
import pickle

import dask.array as da
import numpy as np
import pytest
import xarray as xr
import zarr

from pyloca.bursts import Bursts, as_bursts, from_xarray, map_parts, open_bursts, save_bursts
from pyloca.errors import BurstError

RANDOM = np.random.RandomState(0)
ARRAY = RANDOM.standard_normal((50, 6, 3))
RAGGED = [RANDOM.standard_normal((m, 3)) for m in RANDOM.randint(3, 9, 40)]


def named():
    return Bursts(ARRAY, ids=[f"run {i}" for i in range(50)], feature_names=list("abc"), units=["V", "A", ""])


def ragged():
    return Bursts(RAGGED, burst_std=0.1, provenance="made up")


@pytest.fixture(params=["equal", "ragged", "dask"])
def both(request, tmp_path):
    """The same bursts in a store and in memory."""
    if request.param == "dask":
        return Bursts(da.from_array(ARRAY, chunks=(20, 6, 3))), Bursts(ARRAY)
    here = named() if request.param == "equal" else ragged()
    save_bursts(here, tmp_path / "b.zarr")
    return open_bursts(tmp_path / "b.zarr"), here


def by_position(bursts, max_numbers=1 << 22):
    return {int(i): burst for rows, block in bursts.blocks(max_numbers) for i, burst in zip(rows, block, strict=True)}


def assert_same(lazy, here):
    assert lazy.counts.tolist() == here.counts.tolist()
    assert lazy.ids.tolist() == here.ids.tolist()
    for max_numbers in (1, 60, 1 << 22):
        found, expected = by_position(lazy, max_numbers), by_position(here)
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[i], expected[i]) for i in expected)


def test_a_store_gives_the_same_bursts_as_memory(both):
    lazy, here = both
    assert repr(lazy) == repr(here)
    assert (lazy.feature_names, lazy.units, lazy.burst_std) == (here.feature_names, here.units, here.burst_std)
    assert lazy.provenance == here.provenance
    assert_same(lazy, here)
    assert all(np.array_equal(a, b) for a, b in zip(lazy, here, strict=True))
    np.testing.assert_array_equal(lazy[-1], here[-1])
    np.testing.assert_array_equal(lazy.to_ragged()[0], here.to_ragged()[0])


@pytest.mark.parametrize("rows", [slice(3, 9), slice(9, 3), [8, 2, 2, 31], np.arange(40) % 3 == 0])
def test_some_bursts_of_a_store(both, rows):
    lazy, here = both[0][:40][rows], both[1][:40][rows]
    assert_same(lazy, here)
    assert_same(pickle.loads(pickle.dumps(lazy)), here)
    assert_same(lazy.scaled([1, 2, 4]), here.scaled([1, 2, 4]))


def test_points_set_aside_in_a_store(both):
    lazy, here = (bursts.set_points_aside([3, 7, 7], [1, 0, 2]) for bursts in both)
    assert_same(lazy, here)
    assert_same(lazy[5:], here[5:])
    assert_same(lazy[[7, 3, 20]], here[[7, 3, 20]])
    assert_same(pickle.loads(pickle.dumps(lazy[2:9])), here[2:9])


def test_columns_are_chosen_without_reading(tmp_path):
    save_bursts(named(), tmp_path / "b.zarr")
    chosen = open_bursts(tmp_path / "b.zarr", columns=["c", "a"])
    assert (chosen.feature_names, chosen.units) == (("c", "a"), ("", "V"))
    np.testing.assert_array_equal(chosen.to_array(), ARRAY[:, :, [2, 0]])


def test_all_that_is_known_is_written(tmp_path):
    known = Bursts(
        ARRAY, perturbations=ARRAY[:, :, :2], burst_std=0.5, effective_counts=np.full(50, 7.0), noise=[1, 2, 3]
    )
    again = open_bursts(save_bursts(known, tmp_path / "b.zarr"))
    np.testing.assert_array_equal(again.perturbations_of([4, 9]), ARRAY[[4, 9], :, :2])
    assert again.effective_counts.tolist() == [7.0] * 50
    assert again.noise.tolist() == [1, 2, 3]


def test_a_plain_array_and_a_group_of_others(tmp_path):
    zarr.save_array(str(tmp_path / "array.zarr"), ARRAY)
    np.testing.assert_array_equal(open_bursts(tmp_path / "array.zarr").to_array(), ARRAY)
    group = zarr.open_group(str(tmp_path / "group.zarr"), mode="w")
    group.create_array("bursts", data=ARRAY, chunks=(20, 3, 3))
    group.attrs.update({"feature_names": ["x", "y", "z"], "burst_std": 0.2})
    found = open_bursts(tmp_path / "group.zarr")
    assert (found.feature_names, found.burst_std) == (("x", "y", "z"), 0.2)
    np.testing.assert_array_equal(as_bursts(group["bursts"]).to_array(), ARRAY)


def test_a_missing_chunk_is_an_error_and_not_zeros(tmp_path):
    group = zarr.open_group(str(tmp_path / "b.zarr"), mode="w")
    group.create_array("bursts", data=ARRAY, chunks=(20, 6, 3))
    (tmp_path / "b.zarr/bursts/c/1/0/0").unlink()
    with pytest.raises(BurstError, match=r"1 of its 3 chunks are missing, first c/1/0/0, and would be read as 0\.0"):
        open_bursts(tmp_path / "b.zarr")
    save_bursts(Bursts(ARRAY), tmp_path / "ours.zarr")
    opened = open_bursts(tmp_path / "ours.zarr")
    (tmp_path / "ours.zarr/bursts/c/0/0/0").unlink()  # after it was opened
    assert np.isnan(opened.to_array()).all()  # which every pass over bursts refuses


def test_a_damaged_chunk_is_named(tmp_path):
    group = zarr.open_group(str(tmp_path / "b.zarr"), mode="w")
    group.create_array("bursts", data=ARRAY, chunks=(20, 6, 3))
    (tmp_path / "b.zarr/bursts/c/1/0/0").write_bytes(b"garbage")
    with pytest.raises(BurstError, match=r"bursts: chunk c/1/0/0 \(rows 20 to 39\) cannot be read"):
        open_bursts(tmp_path / "b.zarr").to_array()


@pytest.mark.parametrize("name", ["bursts/c/0/0/0", "bursts/zarr.json", "zarr.json"])
def test_a_flipped_bit_is_noticed(tmp_path, name):
    save_bursts(Bursts(ARRAY, feature_names=list("abc"), burst_std=0.25), tmp_path / "b.zarr")
    path = tmp_path / "b.zarr" / name
    content, silent = path.read_bytes(), []
    for place in range(0, len(content), max(1, len(content) // 60)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            found = open_bursts(tmp_path / "b.zarr")
            same = np.array_equal(found.to_array(), ARRAY) and (found.feature_names, found.burst_std) == (
                ("a", "b", "c"),
                0.25,
            )
        except BurstError:
            continue
        if not same:
            silent.append(place)
    assert not silent


def test_garbage_is_refused(tmp_path):
    (tmp_path / "b.zarr").mkdir()
    with pytest.raises(BurstError, match="not a readable Zarr group"):
        open_bursts(tmp_path / "b.zarr")
    zarr.open_group(str(tmp_path / "empty.zarr"), mode="w")
    with pytest.raises(BurstError, match="holds nothing; expected `bursts`"):
        open_bursts(tmp_path / "empty.zarr")


def test_a_folder_is_replaced_only_when_the_new_one_is_complete(tmp_path):
    save_bursts(Bursts(ARRAY), tmp_path / "b.zarr")
    broken = da.from_array(ARRAY, chunks=(20, 6, 3)).map_blocks(lambda block: 1 // 0 * block, meta=ARRAY)
    with pytest.raises(ZeroDivisionError):
        save_bursts(Bursts(broken), tmp_path / "b.zarr")
    np.testing.assert_array_equal(open_bursts(tmp_path / "b.zarr").to_array(), ARRAY)
    save_bursts(Bursts(2 * ARRAY), tmp_path / "b.zarr")
    np.testing.assert_array_equal(open_bursts(tmp_path / "b.zarr").to_array(), 2 * ARRAY)
    assert [path.name for path in tmp_path.iterdir()] == ["b.zarr"]
    (tmp_path / "mine.zarr").mkdir()
    with pytest.raises(FileExistsError, match="not a Zarr folder"):
        save_bursts(Bursts(ARRAY), tmp_path / "mine.zarr")


def test_dask_arrays_across_bursts_are_rechunked_with_a_word(caplog):
    with caplog.at_level(logging.WARNING, "pyloca"):
        lazy = Bursts(da.from_array(ARRAY, chunks=(20, 2, 3)))
    assert "rechunked along its first axis" in caplog.text
    np.testing.assert_array_equal(lazy.to_array(), ARRAY)
    unknown = da.from_array(ARRAY, chunks=(20, 6, 3))
    unknown = unknown[unknown[:, 0, 0] > 0]
    with pytest.raises(BurstError, match="compute_chunk_sizes"):
        Bursts(unknown)


def test_labelled_arrays_by_the_names_of_their_axes():
    array = xr.DataArray(
        da.from_array(ARRAY, chunks=(20, 6, 3)).transpose(2, 0, 1),
        dims=("feature", "burst", "point"),
        coords={"burst": np.arange(50) * 10, "feature": ["p", "q", "r"], "units": ("feature", ["Pa", "Pa", "K"])},
        attrs={"burst_std": 0.3},
    )
    found = as_bursts(array)
    assert (found.ids[:3].tolist(), found.feature_names, found.units) == (
        [0, 10, 20],
        ("p", "q", "r"),
        ("Pa", "Pa", "K"),
    )
    assert found.burst_std == 0.3
    np.testing.assert_array_equal(found.to_array(), ARRAY)
    with pytest.raises(BurstError, match=r"dimensions sensor, burst, point; expected burst, point, feature"):
        as_bursts(array.rename(feature="sensor"))
    again = from_xarray(array.rename(feature="sensor").drop_vars("units"), feature="sensor", burst_std=1.0)
    assert (again.feature_names, again.burst_std) == (("p", "q", "r"), 1.0)


def test_a_pass_keeps_what_was_done(both):
    class Memory(dict):
        put = dict.__setitem__

    def means(part):
        return {"means": np.array([burst.mean(axis=0) for burst in part])}

    lazy, here = both
    keep, expected = Memory(), np.array([burst.mean(axis=0) for burst in here])
    for bursts in (lazy, here, lazy):  # the last one computes nothing
        found = list(map_parts(bursts, means, keep=keep, max_numbers=200))
        assert np.concatenate([rows for rows, _ in found]).tolist() == list(range(len(here)))
        np.testing.assert_array_equal(np.concatenate([result["means"] for _, result in found]), expected)
        means = None if bursts is here else means
    assert len(keep) > 3


def test_an_error_in_a_part_ends_the_pass(both):
    def fail(part):
        raise BurstError("bad")

    for bursts in both:
        with pytest.raises(BurstError, match="bad"):
            list(map_parts(bursts, fail))


def test_the_metadata_carry_a_checksum(tmp_path):
    save_bursts(Bursts(ARRAY, burst_std=0.25), tmp_path / "b.zarr")
    path = tmp_path / "b.zarr/zarr.json"
    described = json.loads(path.read_text())
    described["attributes"]["pyloca"]["facts"]["burst_std"] = 0.5
    path.write_text(json.dumps(described))
    with pytest.raises(BurstError, match="do not match their checksum"):
        open_bursts(tmp_path / "b.zarr")
