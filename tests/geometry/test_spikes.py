"""Spikes are found from all bursts together, whatever the order, place, rotation and unit of the data."""

from __future__ import annotations

import numpy as np
import pytest

from pyloca import LOCA, datasets
from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics, feature_scale, find_spikes, without_spikes
from pyloca.geometry._far_points import distances, usual_size


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
    usual = rule.usual_size, rule.usual_worth
    return distances(points, rule.least_size, usual, minority=True) > rule.distance


@pytest.mark.parametrize("m", [8, 20, 50])
def test_clean_bursts_have_none(m: int) -> None:
    assert find_spikes(Bursts(smooth(m))) is None
    heavy = np.random.RandomState(0).standard_t(5, size=(300, m, 3))
    assert find_spikes(Bursts(heavy)) is None
    rounded = smooth(m)
    assert find_spikes(Bursts(np.round(rounded * 30) / 30)) is None


@pytest.mark.parametrize("m", [8, 12, 50])
@pytest.mark.parametrize("part", [0.01, 0.05, 0.15])
@pytest.mark.parametrize("size", [10.0, 1000.0])
def test_spikes_are_found(m: int, part: float, size: float) -> None:
    points, chosen = spiked(smooth(m), part, size)
    got = found(points)
    assert (got & chosen).sum() >= (0.99 if m > 8 else 0.97) * chosen.sum()
    assert (got & ~chosen).mean() < 0.005


@pytest.mark.parametrize("m", [8, 20, 50])
@pytest.mark.parametrize("sensors", [slice(None), slice(1)], ids=["all", "one"])
def test_dropouts_to_one_value_are_found(m: int, sensors: slice) -> None:
    """Three of eight points on the same value are closer together than the other five, and are the spikes."""
    points = smooth(m)
    chosen = np.random.RandomState(2).uniform(size=points.shape[:2]) < 0.15
    chosen &= chosen.cumsum(axis=1) < m / 2
    points[..., sensors] = np.where(chosen[..., None], -9.0, points[..., sensors])
    got = found(points)
    assert (got == chosen).mean() > 0.999


def test_many_bursts_tell_the_size_of_one() -> None:
    """Five points on a line that happen to be close together do not make the sixth a spike."""
    points = smooth(8)
    usual = (float(np.sqrt(points.var(axis=1).sum(axis=1).mean())), 8.0)
    points[0, :7] = points[0, :1] + 1e-6 * (points[0, :7] - points[0, :1])
    assert distances(points[:1])[0, 7] > 100 > 5 > distances(points[:1], 0.0, usual)[0, 7]


@pytest.mark.parametrize("worth", [2.0, 8.0, 40.0])
def test_the_worth_of_the_usual_size_is_that_of_an_inverse_gamma(worth: float) -> None:
    squares = 1 / np.random.RandomState(0).gamma(worth / 2, 2 / worth, size=20_000)
    radii = np.sqrt(squares)[:, None] * np.ones(8)
    size, found_worth = usual_size([radii])
    assert found_worth == pytest.approx(worth, rel=0.25)
    assert size == pytest.approx(np.sqrt(np.median(squares)))
    assert usual_size([3 * radii])[0] == pytest.approx(3 * size)
    assert usual_size([np.zeros((5, 8))]) == usual_size([np.ones((5, 4))]) == (0.0, 0.0)


def test_two_humps_are_no_spikes() -> None:
    random = np.random.RandomState(5)
    humps = random.choice([-1.0, 1.0], size=(300, 8, 2)) + 0.2 * random.standard_normal((300, 8, 2))
    assert find_spikes(Bursts(humps)) is None


def test_a_guard_is_far_from_all_points_it_was_made_from() -> None:
    points = smooth(20)
    guard = find_spikes(Bursts(points), guard=True)
    assert guard is not None and not guard.clean(Bursts(points)).set_aside.any()
    dirty, chosen = spiked(points, 0.05, 30.0)
    np.testing.assert_array_equal(guard.clean(Bursts(dirty)).set_aside, chosen.sum(axis=1))
    assert find_spikes(Bursts(points[:, :4]), guard=True) is None  # too short to be searched


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
