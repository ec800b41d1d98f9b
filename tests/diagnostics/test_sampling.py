"""Too few bursts for the bends of the measurement."""

import numpy as np
import pytest

from helpers import smooth_statistics
from pyloca.bursts import Bursts
from pyloca.findings._sampling import EmbeddedSteps, MeasuredSteps, Sampling, belonging
from pyloca.geometry import BurstStatistics
from pyloca.thresholds import BELONG, MISJUDGED, OFFSET, UNSAMPLED


def spiral(n, turns=4, seed=0):
    t = 2 * np.pi * turns * np.random.RandomState(seed).uniform(size=n)
    radius = 1 + t / (2 * np.pi)
    points = radius[:, None] * np.stack([np.cos(t), np.sin(t)], axis=1)
    slope = np.stack([np.cos(t), np.sin(t)], axis=1) / (2 * np.pi)
    slope += radius[:, None] * np.stack([-np.sin(t), np.cos(t)], axis=1)
    return points, BurstStatistics.from_jacobians(points, (slope / np.linalg.norm(slope, axis=1)[:, None])[:, :, None])


def waves(n, w, seed=0, *, m=30, columns=4):
    """Places in a square, and bursts of sensors with waves of w / 2π periods over it."""
    random = np.random.RandomState(seed)
    X = random.uniform(size=(n, 2))
    x, y = np.moveaxis(X[:, None] + 0.01 * random.standard_normal((n, m, 2)), -1, 0)
    sensors = [np.sin(w * x), np.cos(w * x) + y, np.sin(w * y + x), x]
    return X, BurstStatistics.from_bursts(Bursts(np.stack(sensors[:columns], axis=-1)), 2)


@pytest.mark.parametrize("seed", range(3))
def test_bends_between_bursts_are_seen(seed):
    sparse, dense = (MeasuredSteps.of(spiral(n, seed=seed)[1]).share for n in (80, 2000))
    assert dense < UNSAMPLED <= sparse
    assert MeasuredSteps.of(smooth_statistics(seed=seed)[1]).share == 0


@pytest.mark.parametrize(("n", "w"), [(15, 6), (25, 12), (40, 6), (100, 25)])
@pytest.mark.parametrize("seed", [10, 11])
def test_it_is_a_finding_if_the_embedding_is_wrong(n, w, seed):
    """Places that are shuffled stand for a fit that lost its way."""
    X, statistics = waves(n, w, seed)
    found = Sampling(statistics, X[np.random.RandomState(seed).permutation(n)], 0.01).bends()
    assert found.name == "few_bursts" and "Take more bursts" in found.message


def test_it_is_none_if_the_fit_does_not_suffer():
    """A coil that is fitted well has steps from turn to turn that leave the tangents."""
    points, statistics = spiral(300)
    angle = np.unwrap(np.arctan2(points[:, 1], points[:, 0])[np.argsort(np.linalg.norm(points, axis=1))])
    radius = np.sort(np.linalg.norm(points, axis=1))
    length = np.r_[0, np.cumsum(np.hypot(np.diff(radius), radius[1:] * np.diff(angle)))]
    places = length[np.argsort(np.argsort(np.linalg.norm(points, axis=1)))][:, None]
    sampling = Sampling(statistics, places, 1.0)
    assert sampling.measured.share >= UNSAMPLED
    assert sampling.bends() is None and sampling.sheets() is None
    assert sampling.bends(misplaced=True) is not None


def test_where_sheets_may_cross_more_bursts_are_not_promised_to_help():
    X, statistics = waves(60, 12, columns=3)
    wrong = X[::-1]
    assert "more bursts do not mend that: then add a sensor" in Sampling(statistics, wrong, 0.01).bends().message
    wide = np.concatenate([statistics.means, statistics.means[:, :2]], axis=1)
    tangents = np.concatenate([statistics.tangents, statistics.tangents[:, :, :2]], axis=2)
    many = BurstStatistics.from_jacobians(wide, tangents.transpose(0, 2, 1))
    assert "do not mend" not in Sampling(many, wrong, 0.01).bends().message


def test_a_crossing_of_sheets_that_are_sampled_well_is_no_lack_of_bursts():
    """Two planes: parallel bursts explain the steps between them, and only the others leave the tangents."""
    random = np.random.RandomState(0)
    X = random.uniform(-1, 1, size=(300, 2))
    flat, zero = np.arange(300) < 150, np.zeros(300)
    means = np.where(flat[:, None], np.c_[X, zero], np.c_[X[:, 0], zero, X[:, 1]])
    planes = np.where(flat[:, None, None], np.eye(3)[:, :2], np.eye(3)[:, [0, 2]])
    sampling = Sampling(BurstStatistics.from_jacobians(means, planes), X[::-1], 1.0)
    assert sampling.measured.share >= UNSAMPLED > sampling.measured.share_of_parallel
    assert sampling.bends(misplaced=True) is None
    assert "its sheets cross" in sampling.sheets(misplaced=True).message


def test_offset_means_are_no_lack_of_bursts():
    X, statistics = smooth_statistics(n=200)
    random = np.random.RandomState(1)
    normal = np.linalg.svd(statistics.tangents.reshape(-1, statistics.n_features))[2][-1]
    shifted = statistics.means + 0.5 * X.std() * random.standard_normal((200, 1)) * normal
    moved = BurstStatistics.from_jacobians(shifted, statistics.tangents.transpose(0, 2, 1))
    sampling = Sampling(moved, X, statistics.burst_std(1.0))
    assert sampling.embedded.offset >= OFFSET and sampling.offset
    assert sampling.bends() is None and sampling.sheets() is None


@pytest.mark.parametrize("m", [8, 12, 30])
@pytest.mark.parametrize("n", [12, 40, 300])
def test_true_places_are_not_misjudged(n, m):
    X, statistics = waves(n, 1.5, seed=n + m, m=m)
    assert EmbeddedSteps.of(statistics, X, 0.01).misjudged < MISJUDGED.value / 2
    assert EmbeddedSteps.of(statistics, X[np.random.RandomState(0).permutation(n)], 0.01).misjudged > MISJUDGED.value


def test_clouds_belong_to_their_places_unless_they_are_shuffled():
    _, statistics = waves(300, 12)
    shuffled = BurstStatistics.from_jacobians(
        statistics.means, statistics.tangents[np.random.RandomState(0).permutation(300)].transpose(0, 2, 1)
    )
    assert belonging(shuffled) < BELONG < belonging(statistics)
    X = np.random.RandomState(0).uniform(size=(50, 2))
    assert np.isnan(belonging(BurstStatistics.from_jacobians(X, np.tile(np.eye(2), (50, 1, 1)))))


def test_strays_are_not_taken_for_bends():
    """One burst in ten turned across the curve: an outlier, however many of its steps leave its tangents."""
    points, statistics = spiral(2000)
    tangents = statistics.tangents.copy()
    tangents[::10] = tangents[::10, :, ::-1] * [1, -1]
    turned = BurstStatistics.from_jacobians(points, tangents.transpose(0, 2, 1))
    assert MeasuredSteps.of(turned).share < UNSAMPLED


def test_bends_of_a_very_elongated_measurement_are_not_wrong_steps():
    """One latent variable is measured 30 times as steeply as the other: its bends are many steps of that one."""
    random = np.random.RandomState(0)
    X = random.uniform(size=(400, 2))
    clouds = X[:, None] + 0.01 * random.standard_normal((400, 30, 2))
    bent = np.stack(
        [clouds[..., 0], clouds[..., 1] / 30, 0.5 * clouds[..., 0] ** 2, 0.1 * clouds[..., 0] ** 3], axis=-1
    )
    statistics = BurstStatistics.from_bursts(bent, 2)
    assert EmbeddedSteps.of(statistics, X, 0.01).misjudged < 0.02
    assert EmbeddedSteps.of(statistics, random.permutation(X), 0.01).misjudged > 0.5
