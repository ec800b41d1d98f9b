"""Spikes are found from all bursts together, whatever the order, place, rotation and unit of the data."""

from __future__ import annotations

import numpy as np
import pytest

from pyloca import LOCA, datasets
from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics, feature_scale, find_spikes, without_spikes
from pyloca.geometry._spikes import distances


def smooth(m: int, n: int = 300, dim: int = 4, seed: int = 0) -> np.ndarray:
    random = np.random.RandomState(seed)
    x = random.uniform(size=(n, 1, 2)) + 0.01 * random.standard_normal((n, m, 2))
    return np.sin(x @ random.standard_normal((2, dim)) + np.arange(dim))


def spiked(points: np.ndarray, part: float, size: float, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.RandomState(seed)
    chosen = random.uniform(size=points.shape[:2]) < part
    step = random.standard_normal(points.shape)
    step *= size * np.sqrt(points.var(axis=1).sum(axis=1))[:, None, None] / np.linalg.norm(step, axis=2, keepdims=True)
    return np.where(chosen[..., None], points + step, points), chosen


def found(points: np.ndarray) -> np.ndarray:
    rule = find_spikes(Bursts(points))
    assert rule is not None
    return distances(points, rule.least_size, minority=True) > rule.distance


@pytest.mark.parametrize("m", [8, 20, 50])
def test_clean_bursts_have_none(m: int) -> None:
    assert find_spikes(Bursts(smooth(m))) is None
    heavy = np.random.RandomState(0).standard_t(5, size=(300, m, 3))
    assert find_spikes(Bursts(heavy)) is None
    rounded = smooth(m)
    assert find_spikes(Bursts(np.round(rounded * 30) / 30)) is None


@pytest.mark.parametrize("m", [12, 50])
@pytest.mark.parametrize("part", [0.01, 0.05, 0.15])
@pytest.mark.parametrize("size", [10.0, 1000.0])
def test_spikes_are_found(m: int, part: float, size: float) -> None:
    points, chosen = spiked(smooth(m), part, size)
    got = found(points)
    assert (got & chosen).sum() >= 0.99 * chosen.sum()
    assert (got & ~chosen).mean() < 0.005


def test_order_place_rotation_and_unit_do_not_matter() -> None:
    points, _ = spiked(smooth(20), 0.05, 30.0)
    got, random = found(points), np.random.RandomState(3)
    bursts, order = random.permutation(len(points)), random.permutation(20)
    turn = np.linalg.qr(random.standard_normal((4, 4)))[0]
    np.testing.assert_array_equal(found(points[bursts][:, order]), got[bursts][:, order])
    np.testing.assert_array_equal(found(points @ turn + 5.0), got)
    np.testing.assert_array_equal(found(points * 1024.0), got)


def test_distances_against_a_plain_loop() -> None:
    points, _ = spiked(smooth(40, n=5), 0.1, 20.0)
    for burst, fast in zip(points, distances(points), strict=True):
        middle = burst.mean(axis=0)
        for _ in range(200):
            weight = 1 / np.linalg.norm(burst - middle, axis=1)
            middle = weight @ burst / weight.sum()
        radius = np.linalg.norm(burst - middle, axis=1)
        order, slow, most = np.argsort(radius), np.zeros(40), 0.0
        for rank in range(21, 40):
            most = max(most, radius[order[rank]] / np.sqrt(np.mean(radius[order[:rank]] ** 2)))
            slow[order[rank]] = most
        # The fast median is not quite settled, so points at the edge of the inner half may change places.
        np.testing.assert_allclose(np.sort(fast), np.sort(slow), rtol=0.05)


def test_statistics_leave_spikes_out() -> None:
    clean = smooth(50)
    points, chosen = spiked(clean, 0.05, 1000.0)
    got, plain = BurstStatistics.from_bursts(points), BurstStatistics.from_bursts(clean)
    assert got.intrinsic_dim == plain.intrinsic_dim == 2
    # Points of a clean tail may be set aside with them: at most 1 in 1000.
    assert chosen.sum() <= got.set_aside.sum() <= chosen.sum() + chosen.size // 1000
    np.testing.assert_array_equal(got.counts + got.set_aside, 50)
    assert abs(np.median(got.spectra[:, 0] / plain.spectra[:, 0]) - 1) < 0.02
    named = {"feature_names": list("abcd")}  # sensors of a table are scaled
    np.testing.assert_allclose(feature_scale(Bursts(points, **named)), feature_scale(Bursts(clean, **named)), rtol=0.05)


def test_nobody_looks_again() -> None:
    points, _ = spiked(smooth(20), 0.05, 100.0)
    kept = Bursts(points).set_points_aside([], [])
    assert kept.screened and without_spikes(kept) is kept and find_spikes(kept) is None


def test_points_set_aside_are_gone_from_every_way_of_reading() -> None:
    bursts = Bursts(np.arange(24.0).reshape(3, 4, 2)).set_points_aside([2, 0], [1, 3])
    assert bursts.counts.tolist() == [3, 4, 3] and bursts.set_aside.tolist() == [1, 0, 1]
    assert bursts[2].tolist() == [[16, 17], [20, 21], [22, 23]]
    assert bursts[[2]].to_array().tolist() == [bursts[2].tolist()]
    assert sum(block.shape[0] * block.shape[1] for _, block in bursts.blocks()) == 10
    assert len(bursts.to_ragged()[0]) == 10
    assert Bursts.concatenate([bursts, bursts]).counts.tolist() == [3, 4, 3] * 2
    with pytest.raises(BurstError, match="no point 4"):
        bursts.set_points_aside([0], [4])
    with pytest.raises(BurstError, match="no points left"):
        bursts.set_points_aside([0, 0, 0], [0, 1, 2])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pyloca.errors.TrustWarning")
def test_a_fit_cleans_new_bursts_by_its_rule(tmp_path) -> None:
    data = datasets.mushroom(200, 20, random_state=0)
    points, _ = spiked(data.bursts.to_array(), 0.05, 100.0)
    model = LOCA(burst_std=0.01, hidden_layers=(10,), random_state=0, max_iter=50).fit(points)
    np.testing.assert_array_equal(model.transform(points), model.embedding_)
    np.testing.assert_array_equal(model.transform(points[:7]), model.embedding_[:7])
    again = LOCA.load(model.save(tmp_path / "m.safetensors"))
    np.testing.assert_array_equal(again.transform(points), model.embedding_)
    assert again.set_aside_.sum() == model.set_aside_.sum() > 0
    assert "as spikes" in str(again.diagnostics_)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e160])
@pytest.mark.parametrize("part", [0.001, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(50, 20, 3), (50, 60, 3), (12, 2, 40)], ids=str)
def test_values_that_cannot_be_used_are_refused_by_name_and_are_no_spikes(value, part, shape):
    random = np.random.RandomState(0)
    bursts = random.standard_normal(shape)
    bursts[random.uniform(size=shape) < part] = value
    bursts[7, 1, 1] = value
    find_spikes(Bursts(bursts))
    message = r"without a finite number .*burst" if abs(value) > 1e301 or value != value else "squares would overflow"
    with pytest.raises(BurstError, match=message):
        BurstStatistics.from_bursts(bursts, 1)
