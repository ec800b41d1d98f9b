"""What the decoder leaves of burst means: something that is missing, or a decoder that failed."""

import dataclasses

import numpy as np
import pytest

from pyloca.findings._round_trip import RoundTrip, lossy, nearest_pairs, unforeseen_steps
from pyloca.geometry import BurstStatistics


@pytest.fixture
def plane():
    """Statistics of 400 bursts of 20 points on a plane in R³ of size 1, and their coordinates."""
    random = np.random.RandomState(0)
    latent = random.standard_normal((400, 2)) / np.sqrt(2)
    jacobian = np.broadcast_to(np.eye(3)[:, :2], (400, 3, 2))
    statistics = BurstStatistics.from_jacobians(np.c_[latent, np.zeros(400)], jacobian)
    return dataclasses.replace(statistics, counts=np.full(400, 20.0)), latent


def test_what_each_misses_by_its_own(plane):
    statistics, latent = plane
    noise = np.random.RandomState(1).standard_normal((400, 3))
    assert lossy(RoundTrip(0.01 * noise, 1.0), statistics, latent) is None
    found = lossy(RoundTrip(0.05 * noise, 1.0), statistics, latent)
    assert found.name == "round_trip" and "Something varies between bursts" in found.message
    assert found.message.startswith("the decoder does not lead back: burst means return 8% of the data's size away")


def test_what_neighbours_miss_alike_is_the_decoder(plane):
    statistics, latent = plane
    smooth = np.c_[np.sin(latent), np.cos(latent[:, :1])]
    assert lossy(RoundTrip(0.1 * smooth, 1.0), statistics, latent) is None
    found = lossy(RoundTrip(0.3 * smooth, 1.0), statistics, latent)
    assert "Only the decoder failed" in found.message


def test_noise_of_the_means_is_no_fault(plane):
    """Noise of variance s² in each of the three sensors leaves means of 20 points off by 3 s² / 20."""
    statistics, latent = plane
    left = RoundTrip(0.2 / np.sqrt(20) * np.random.RandomState(1).standard_normal((400, 3)), 1.0)
    assert lossy(left, statistics, latent) is not None
    told = dataclasses.replace(statistics, residuals=np.full(400, 3 * 0.2**2))
    assert lossy(left, told, latent) is None
    assert lossy(left, told, latent, np.full(400, 2000)) is not None  # so many points have less noise in their mean


def test_bursts_that_coincide_in_the_embedding(plane):
    statistics, latent = plane
    left = RoundTrip(0.1 * np.random.RandomState(1).standard_normal((400, 3)), 1.0)
    assert np.isfinite(left.differences(*nearest_pairs(np.zeros_like(latent)))).all()
    assert lossy(left, statistics, np.zeros_like(latent)).name == "round_trip"


def test_steps_along_a_circle_are_foreseen_to_third_order():
    """Both ends together see no bend: halving the steps takes an eighth of what they do not foresee."""

    def unforeseen(step):
        angle = np.linspace(0, 2, 20)
        ends = []
        for turn in (angle, angle + step):
            means = np.stack([np.cos(turn), np.sin(turn)], axis=1)
            tangents = np.stack([-np.sin(turn), np.cos(turn)], axis=1)[:, None]
            ends.append((means, 0.1 * tangents, np.full((20, 1, 1), 0.1)))
        return np.linalg.norm(unforeseen_steps(*ends, np.full((20, 1), step)), axis=1)

    ratio = unforeseen(0.2) / unforeseen(0.1)
    np.testing.assert_allclose(ratio, 8, rtol=0.02)


def test_what_bursts_foresee_is_not_missing(plane):
    """A decoder that misses each burst by its own, where steps between means are those of the coordinates."""
    statistics, latent = plane
    left = RoundTrip(0.3 * np.random.RandomState(1).standard_normal((400, 3)), 1.0)
    assert "Something varies" in lossy(left, statistics, latent).message
    assert "Only the decoder failed" in lossy(left, statistics, latent, unforeseen=np.zeros((400, 3))).message
    assert "Something varies" in lossy(left, statistics, latent, unforeseen=np.full((400, 3), 0.2)).message
