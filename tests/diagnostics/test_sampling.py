"""Too few bursts for the bends of the measurement."""

import numpy as np
import pytest

from helpers import smooth_statistics
from pyloca.findings._sampling import sparse_bends, unexplained_share
from pyloca.geometry import BurstStatistics
from pyloca.thresholds import UNSAMPLED


def spiral(n, turns=4, seed=0):
    t = 2 * np.pi * turns * np.random.RandomState(seed).uniform(size=n)
    radius = 1 + t / (2 * np.pi)
    points = radius[:, None] * np.stack([np.cos(t), np.sin(t)], axis=1)
    slope = np.stack([np.cos(t), np.sin(t)], axis=1) / (2 * np.pi)
    slope += radius[:, None] * np.stack([-np.sin(t), np.cos(t)], axis=1)
    return points, BurstStatistics.from_jacobians(points, (slope / np.linalg.norm(slope, axis=1)[:, None])[:, :, None])


@pytest.mark.parametrize("seed", range(3))
def test_bends_between_bursts_are_seen(seed):
    sparse, dense = (unexplained_share(spiral(n, seed=seed)[1])[0] for n in (80, 2000))
    assert dense < UNSAMPLED <= sparse
    assert unexplained_share(smooth_statistics(seed=seed)[1])[0] == 0


def test_it_is_a_finding_only_if_the_fit_suffers():
    _, statistics = spiral(80)
    assert sparse_bends(statistics, lambda: False) is None
    found = sparse_bends(statistics, lambda: True)
    assert found.name == "sparse" and "more bursts" in found.message
    assert sparse_bends(smooth_statistics()[1], lambda: pytest.fail("asked without need")) is None


def test_strays_are_not_taken_for_bends():
    """One burst in ten turned across the curve: an outlier, however many of its steps leave its tangents."""
    points, statistics = spiral(2000)
    tangents = statistics.tangents.copy()
    tangents[::10] = tangents[::10, :, ::-1] * [1, -1]
    turned = BurstStatistics.from_jacobians(points, tangents.transpose(0, 2, 1))
    assert unexplained_share(turned)[0] < UNSAMPLED
