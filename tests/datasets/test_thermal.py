"""The thermal camera over a curved surface: bursts are the tangents of the projection."""

import numpy as np
import pytest

from pyloca import datasets
from pyloca.datasets._thermal import SURFACES


@pytest.mark.parametrize("kind", SURFACES)
def test_spots_are_round_on_the_surface_and_shortened_in_the_frame(kind):
    data = datasets.thermal_surface(kind, n_spots=12, random_state=0)
    x, y, z = data.X.T
    assert np.all(np.hypot(x, y) <= 1)
    np.testing.assert_array_equal(z, SURFACES[kind](x, y))
    step = 1e-5
    slopes = np.stack(
        [
            (SURFACES[kind](x + step, y) - SURFACES[kind](x - step, y)) / (2 * step),
            (SURFACES[kind](x, y + step) - SURFACES[kind](x, y - step)) / (2 * step),
        ],
        axis=1,
    )
    metric = np.eye(2) + slopes[:, :, None] * slopes[:, None]  # of the surface, in the frame
    covariances = np.array([np.cov(burst.T) for burst in data.bursts]) / data.burst_std**2
    np.testing.assert_allclose(covariances @ metric, np.broadcast_to(np.eye(2), (12, 2, 2)), atol=0.06)
    np.testing.assert_allclose(data.bursts.to_array().mean(axis=1), data.Y, atol=0.1 * data.burst_std)


def test_the_parts_fit_together_and_a_seed_repeats():
    first, again, other = (datasets.thermal_surface(n_spots=5, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.bursts.to_array(), again.bursts.to_array())
    assert np.all(first.bursts.to_array() != other.bursts.to_array())
    np.testing.assert_array_equal(first.measure(first.X), first.Y)
    assert first.bursts.burst_std == first.burst_std
    assert first.extras["frames"].shape == (5, 128, 128)


def test_arguments():
    with pytest.raises(ValueError, match="kind must be one of 'dome', 'saddle', 'wave'; got 'cone'"):
        datasets.thermal_surface("cone")
    with pytest.raises(ValueError, match="less than a pixel"):
        datasets.thermal_surface(size=32)
