"""Spots in a photograph: what their pixels are worth, and the pen that drew them."""

import numpy as np
import pytest

from pyloca.bursts import Bursts, from_image, open_bursts, save_bursts
from pyloca.bursts._pen import covariances, pixel_worth
from pyloca.errors import BurstError, TrustWarning
from pyloca.geometry import BurstStatistics, without_spikes


def ellipse(a, b, random, fat=0.0):
    """Pixels of an ellipse at a random place and angle, its outline moved outwards by `fat`, and its covariance."""
    turn, reach = random.uniform(0, np.pi), int(a + fat) + 3
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    shape = rotation @ np.diag([a * a, b * b]) @ rotation.T
    angle = np.linspace(0, 2 * np.pi, 181)[:-1]
    normals = np.stack([np.cos(angle), np.sin(angle)])
    support = np.sqrt(np.einsum("it,ij,jt->t", normals, shape, normals)) + fat
    grid = np.stack(np.meshgrid(*2 * [np.arange(-reach, reach + 1.0)]), axis=-1).reshape(-1, 2) - random.uniform(size=2)
    return grid[((grid @ normals) <= support).all(axis=1)], shape / 4


def tilted_grid(fat, n=14, step=17.37):
    """A picture of spots on a square grid whose rows are foreshortened more and more."""
    side = int(n * step) + 20
    y, x = np.mgrid[:side, :side].astype(float)
    image = np.ones((side, side))
    rows = 18 + np.concatenate([[0], np.cumsum(step * np.linspace(1, 0.6, n - 1))])
    squeeze = np.interp(np.arange(n), [0, n - 1], [1, 0.6])
    for cy, part in zip(rows, squeeze, strict=True):
        for cx in 14.3 + step * np.arange(n):
            image[((x - cx) / (4.5 + fat)) ** 2 + ((y - cy) / (4.5 * part + fat)) ** 2 <= 1] = 0
    return image


@pytest.mark.parametrize(("a", "b"), [(3, 3), (6, 3), (8, 4), (11, 11)])
def test_what_the_pixels_of_a_spot_are_worth(a, b):
    """Effective counts predict the error of covariances, which is far below that of as many independent points."""
    random = np.random.RandomState(0)
    errors, worths = [], []
    for _ in range(150):
        pixels, truth = ellipse(a, b, random)
        _, moments = covariances([pixels])
        root = np.linalg.cholesky(np.linalg.inv(truth))
        errors.append(np.square(root.T @ moments[0] @ root - np.eye(2)).sum())
        worths.append(pixel_worth(np.array([len(pixels)]), np.array([[b, a]], dtype=float))[0])
    assert 0.5 < np.mean(errors) * np.mean(worths) / 6 < 1.6


def test_effective_counts_travel(tmp_path):
    bursts = Bursts(np.random.RandomState(0).standard_normal((12, 5, 2)), effective_counts=np.arange(10, 22))
    assert bursts[3:5].effective_counts.tolist() == [13, 14]
    assert Bursts.concatenate([bursts, Bursts(np.zeros((2, 5, 2)))]).effective_counts[-3:].tolist() == [21, 5, 5]
    assert open_bursts(save_bursts(bursts, tmp_path / "b.npz")).effective_counts.tolist() == list(range(10, 22))
    with pytest.warns(UserWarning, match="does not hold effective counts"):
        save_bursts(bursts, tmp_path / "b.csv")
    assert BurstStatistics.from_bursts(bursts, 2).counts.tolist() == list(range(10, 22))
    with pytest.raises(BurstError, match="burst 1 is 1; expected 2 or more"):
        Bursts(np.zeros((2, 5, 2)), effective_counts=[5, 1])
    with pytest.raises(BurstError, match=r"shape \(1,\)"):
        Bursts(np.zeros((2, 5, 2)), effective_counts=[5])


def test_a_fat_pen_is_seen_and_corrected():
    fat, right = tilted_grid(1.25), from_image(tilted_grid(0.0), 0.5)  # no warning
    with pytest.warns(TrustWarning, match="pixels too wide for the grid"):
        from_image(fat, 0.5)
    size = [np.sqrt(np.trace(np.cov(burst.T))) for burst in right]
    for dilation in (1.25, "estimate"):
        thin = [np.sqrt(np.trace(np.cov(burst.T))) for burst in from_image(fat, 0.5, dilation=dilation)]
        assert np.mean(np.divide(thin, size)) == pytest.approx(1, abs=0.06)


def test_a_pen_that_cannot_be_told_or_corrected():
    image = tilted_grid(0.0)
    with pytest.raises(BurstError, match="leaves nothing"):
        from_image(image, 0.5, dilation=5.0)
    with pytest.raises(ValueError, match="dilation must be"):
        from_image(image, 0.5, dilation="guess")
    y, x = np.mgrid[:100, :100]
    flat = np.where((x % 20 - 10) ** 2 + (y % 20 - 10) ** 2 < 16, 0.0, 1.0)
    with pytest.raises(BurstError, match="cannot be told"):
        from_image(flat, 0.5, dilation="estimate")


def test_points_that_are_not_samples_are_not_searched_for_spikes():
    points = np.random.RandomState(0).standard_normal((200, 20, 2))
    points[::10, 3] += 100.0
    assert without_spikes(Bursts(points)).set_aside.sum() == 20
    assert without_spikes(Bursts(points, effective_counts=np.full(200, 50.0))).set_aside.sum() == 0
