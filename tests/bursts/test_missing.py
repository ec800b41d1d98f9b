"""Cells without a number: all of them counted at once by sensor, refused or left out, the same from every source."""

import io
import logging
import warnings

import numpy as np
import pandas as pd
import pytest

from helpers import planar_bursts
from pyloca import LOCA, TrustWarning
from pyloca.baselines import DiffusionMaps
from pyloca.bursts import (
    Bursts,
    count_missing,
    drop_missing,
    from_function,
    from_image,
    from_neighbors,
    from_positions,
    from_spots,
    from_table,
    from_time_series,
    open_bursts,
    read_csv,
    read_table,
)
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics
from pyloca.metrics import calibrate, stress


def with_gaps():
    """Five bursts of six points: NaN in 'p' of bursts 'a' and 'c', infinity in 'T' of 'c', all of 'e' missing."""
    data = np.random.RandomState(0).standard_normal((5, 6, 3))
    data[0, [1, 4], 0] = np.nan
    data[2, 3, 0] = np.nan
    data[2, [3, 5], 2] = [np.inf, -np.inf]
    data[4, :, 1] = np.nan
    return Bursts(data, ids=list("abcde"), feature_names=["p", "V", "T"], units={"p": "Pa"})


COUNTED = "p (Pa): 3 cells in bursts 'a', 'c'; V: 6 cells in burst 'e'; T: 2 cells in burst 'c'"


def frame_of(bursts):
    points, _ = bursts.to_ragged()
    table = pd.DataFrame(points, columns=bursts.feature_names)
    table.insert(0, "burst_id", np.repeat(bursts.ids, bursts.counts))
    return table


def test_all_cells_are_counted_at_once():
    found = count_missing(with_gaps())
    assert str(found) == COUNTED
    assert found.cells == {"p (Pa)": 3, "V": 6, "T": 2} and found.bursts["p (Pa)"] == ("a", "c")
    assert (found.n_points, found.of_points) == (10, 30)  # a point with two missing cells is one point


def test_counts_agree_with_a_plain_loop():
    random = np.random.RandomState(1)
    parts = [random.standard_normal((random.randint(3, 9), 4)) for _ in range(20)]
    for part in parts:
        part[random.uniform(size=part.shape) < 0.1] = np.nan
    found = count_missing(Bursts(parts))
    expected = {f"feature {j}": sum(int(np.isnan(part[:, j]).sum()) for part in parts) for j in range(4)}
    assert found.cells == {name: n for name, n in expected.items() if n}
    assert found.n_points == sum(int(np.isnan(part).any(axis=1).sum()) for part in parts)
    kept = drop_missing(Bursts(parts))
    whole = [part[~np.isnan(part).any(axis=1)].tolist() for part in parts]
    assert [burst.tolist() for burst in kept] == [part for part in whole if part]  # one burst lost all points
    assert kept.ids.tolist() == [i for i, part in enumerate(whole) if part]


def test_points_are_left_out_with_a_word(caplog):
    with caplog.at_level(logging.INFO, "pyloca"):
        bursts = drop_missing(with_gaps())
    assert bursts.counts.tolist() == [4, 6, 4, 6] and bursts.ids.tolist() == ["a", "b", "c", "d"]
    said = f"dropped 10 of 30 points ({COUNTED}); burst 'e' lost all points and is left out"
    assert bursts.provenance == said and caplog.messages == [said]
    assert bursts.feature_label(0) == "p (Pa)" and np.isfinite(bursts.to_ragged()[0]).all()


def test_nothing_to_leave_out():
    data = np.zeros((3, 4, 2))
    bursts = drop_missing(Bursts(data, provenance="a rig"))
    assert np.shares_memory(bursts._layout.points, data)
    assert bursts.provenance == "a rig; no point dropped: no missing cells"


def test_a_chosen_scaled_part():
    bursts = drop_missing(with_gaps()[[2, 0]].scaled([2.0, 1.0, 1.0]))
    assert bursts.ids.tolist() == ["c", "a"] and bursts.counts.tolist() == [4, 4]
    assert np.array_equal(bursts[1], with_gaps()[0][[0, 2, 3, 5]] / [2.0, 1.0, 1.0])


def test_what_is_known_of_points_and_bursts_stays_with_them():
    """Perturbations, effective counts, noise and spikes of what is left: burst 2 loses all points, burst 1 one."""
    z = np.random.RandomState(0).standard_normal((4, 5, 2))
    data = np.sin(z)
    data[1, 2] = data[2] = np.nan
    noise = np.arange(8.0).reshape(4, 2)
    kept = drop_missing(Bursts(data, perturbations=z, effective_counts=[2, 3, 4, 5], noise=noise))
    assert [part.tolist() for part in kept.perturbations] == [z[0].tolist(), z[1][[0, 1, 3, 4]].tolist(), z[3].tolist()]
    assert kept.effective_counts.tolist() == [2, 3, 5] and np.array_equal(kept.noise, noise[[0, 1, 3]])
    without = drop_missing(Bursts(data).set_points_aside([0, 3], [1, 4]))
    assert without.counts.tolist() == [4, 4, 4] and without.screened
    assert np.array_equal(without[0], data[0][[0, 2, 3, 4]]) and np.array_equal(without[2], data[3][:4])


def test_every_point_has_a_gap():
    with pytest.raises(BurstError, match=r"every point has a missing cell .*feature 1: 12 cells"):
        drop_missing(np.stack([np.zeros((3, 4)), np.full((3, 4), np.nan)], axis=2))


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet", ".h5"])
def test_files(tmp_path, suffix):
    bursts, path = with_gaps(), tmp_path / f"bursts{suffix}"
    points, offsets = bursts.to_ragged()
    if suffix == ".csv":
        frame_of(bursts).to_csv(path, index=False, na_rep="NA")
    elif suffix == ".parquet":
        frame_of(bursts).to_parquet(path)
    elif suffix == ".npz":
        np.savez(path, points=points, offsets=offsets, ids=bursts.ids, feature_names=np.array(bursts.feature_names))
    else:
        with pytest.importorskip("h5py").File(path, "w") as file:
            file["points"], file["offsets"] = points, offsets
            file["ids"], file["feature_names"] = [b"a", b"b", b"c", b"d", b"e"], [b"p", b"V", b"T"]
    counted = COUNTED.replace(" (Pa)", "")
    with pytest.raises(BurstError) as error:
        open_bursts(path)
    assert str(error.value).startswith(f"{path}: 11 cells without a finite number ({counted}), which spoil 10 of 30")
    assert "missing='drop'" in str(error.value)
    kept = open_bursts(path, missing="drop")
    assert np.array_equal(kept.to_ragged()[0], drop_missing(bursts).to_ragged()[0])
    assert counted in kept.provenance and kept.ids.tolist() == list("abcd")


def test_a_mapped_file_is_read_when_asked(tmp_path):
    path = tmp_path / "bursts.npy"
    np.save(path, with_gaps()._layout.points)
    assert len(open_bursts(path)) == 5
    assert len(open_bursts(path, missing="drop")) == 4


@pytest.mark.parametrize("word", ["", " ", "NA", "N/A", "nan", "NaN", "-nan", "null", "NULL", "None", "<NA>", "inf"])
def test_words_for_a_missing_cell(word):
    text = f"burst_id,x,y\n7,1,2\n7,{word},3\n8,4,5\n"
    with pytest.raises(
        BurstError, match=r"^1 cell without a finite number \(x: 1 cell in burst 7\), which spoils 1 of"
    ):
        read_csv(io.StringIO(text))
    assert read_csv(io.StringIO(text), missing="drop").counts.tolist() == [1, 1]


@pytest.mark.parametrize("word", ["?", "-", "bad", "1,5e", "9 9"])
def test_other_words_are_errors_with_their_place(word):
    text = f'burst_id,x,y\n7,1,2\n7,"{word}",3\n8,4,5\n'
    with pytest.raises(BurstError, match=r"line 3 has .* where a number is expected, in column 'x'.*NA"):
        read_csv(io.StringIO(text), missing="drop")


def test_rows_keep_their_gaps():
    table = read_table(io.StringIO("id,x,y,z\na,1,NA,\nb,,2,NA\n"), "id")
    assert table.names == ["x", "y"] and table.text_columns == ("z",)  # z holds no number at all
    assert np.array_equal(table.values, [[1, np.nan], [np.nan, 2]], equal_nan=True)


@pytest.mark.parametrize(
    "column",
    [
        [1.0, None, 3.0],
        [1, float("nan"), 3],
        np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
        np.ma.array([1, 2, 3], mask=[0, 1, 0]),
        pd.array([1, None, 3], dtype="Int64"),
        pd.Series([1.0, None, 3.0], dtype=object),
        pd.Series([1.0, pd.NA, 3.0], dtype=object),
    ],
    ids=["None", "nan", "masked", "masked integers", "Int64", "object", "NA"],
)
def test_gaps_in_columns(column):
    table = {"burst_id": [1, 1, 1], "x": column, "y": [4, 5, 6]}
    with pytest.raises(BurstError, match=r"x: 1 cell in burst 1\)"):
        from_table(table)
    assert from_table(table, missing="drop")[0].tolist() == [[1.0, 4.0], [3.0, 6.0]]


def test_gaps_in_columns_that_are_not_read_do_no_harm():
    table = {"burst_id": [1, 1], "x": [1.0, 2.0], "y": [np.nan, 1.0]}
    assert len(from_table(table, exclude=["y"])[0]) == 2


@pytest.mark.parametrize("make", [Bursts, lambda a: Bursts(list(a)), lambda a: Bursts.from_ragged(a[0], [0, 2, 4])])
def test_masked_arrays_are_refused_with_advice(make):
    with pytest.raises(BurstError, match=r"is a masked array.*drop_missing"):
        make(np.ma.masked_greater(np.arange(24.0).reshape(2, 4, 3), 20))


def test_masked_arrays_are_dropped_when_asked():
    masked = np.ma.masked_greater(np.arange(24).reshape(2, 4, 3), 20)
    for data in (masked, list(masked)):
        assert drop_missing(data).counts.tolist() == [4, 3]


def test_other_choices():
    for read in (
        lambda: from_table({"burst_id": [1], "x": [1.0]}, missing="skip"),
        lambda: open_bursts("x.csv", missing=""),
    ):
        with pytest.raises(ValueError, match='missing must be "raise" or "drop"'):
            read()


@pytest.mark.parametrize("k", [None, 1])
def test_statistics_count_all_bursts_at_once(k):
    """Also those behind the sample that k is estimated from."""
    data = np.random.RandomState(0).standard_normal((2500, 4, 2))
    data[4, 0, 0] = data[2001, 3, 1] = data[2003, 0, 1] = np.nan
    message = r"3 cells .*feature 0: 1 cell in burst 4; feature 1: 2 cells in bursts 2001, 2003\).*drop_missing"
    with pytest.raises(BurstError, match=message):
        BurstStatistics.from_bursts(Bursts(data), k)


# -- masks ------------------------------------------------------------------------------------------------------------

MASKED = np.ma.masked_array(np.random.RandomState(0).uniform(size=(40, 3)), np.arange(120).reshape(40, 3) == 7)
CLOUDS = planar_bursts(40, 12)[1]
EYES = np.tile(np.eye(3), (40, 1, 1))


@pytest.mark.parametrize(
    "call",
    [
        lambda: Bursts(np.ma.masked_array(CLOUDS, CLOUDS > 1)),
        lambda: Bursts([MASKED[:20], MASKED[20:]]),
        lambda: Bursts.from_ragged(MASKED, [0, 20, 40]),
        lambda: Bursts.from_ragged(MASKED.data, np.ma.masked_array([0, 20, 40], [0, 1, 0])),
        lambda: Bursts(CLOUDS, perturbations=np.ma.masked_array(CLOUDS, CLOUDS > 1)),
        lambda: Bursts(CLOUDS, noise=MASKED),
        lambda: Bursts(CLOUDS, effective_counts=np.ma.masked_array(np.full(40, 9.0), np.arange(40) == 3)),
        lambda: Bursts(CLOUDS).scaled(np.ma.masked_array([1.0, 2, 3], [0, 1, 0])),
        lambda: from_function(lambda x: x, MASKED, 0.1, 5),
        lambda: from_function(lambda x: np.ma.masked_array(x, x > 0.5), MASKED.data, 0.1, 5),
        lambda: from_neighbors(MASKED, 5),
        lambda: from_positions(MASKED, MASKED.data, 0.1),
        lambda: from_time_series(MASKED, 10),
        lambda: from_image(MASKED, 0.5),
        lambda: from_spots([np.ma.masked_array(np.ones((20, 20)), np.eye(20))]),
        lambda: BurstStatistics.from_covariances(MASKED, EYES),
        lambda: BurstStatistics.from_covariances(MASKED.data, np.ma.masked_array(EYES, False)),
        lambda: BurstStatistics.from_jacobians(MASKED, EYES[..., :2]),
        lambda: stress(MASKED, MASKED.data),
        lambda: calibrate(MASKED.data, MASKED),
        lambda: DiffusionMaps(2).fit(MASKED),
        lambda: DiffusionMaps(2, random_state=0).fit(MASKED.data).transform(MASKED),
        lambda: LOCA(measurement_noise=np.ma.masked_array([0.1, 0.1, 0.1], [0, 1, 0])).fit(CLOUDS),
    ],
    ids=range(23),
)
def test_a_mask_is_never_dropped(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        with pytest.raises(ValueError, match="is a masked array, whose mask would be lost"):
            call()
