"""Recordings: steps gathered by place and by time, lags, noise that bursts carry."""

import pickle

import numpy as np
import pytest

from pyloca import Bursts
from pyloca.bursts import from_simulator, from_time_series, open_bursts, save_bursts
from pyloca.bursts._cells import cells_of
from pyloca.errors import BurstError

MIX = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])


def walk(seed, n, noise=0.0):
    random = np.random.RandomState(seed)
    path = np.cumsum(0.1 * random.standard_normal((n, 2)), axis=0) @ MIX
    return path + noise * random.standard_normal(path.shape)


def test_cells_hold_each_point_once():
    points = np.random.RandomState(0).standard_normal((103, 3))
    cells = cells_of(points, 10)
    assert cells.shape == (10, 10)
    assert np.array_equal(np.sort(cells.ravel()), np.arange(100))
    assert points[cells].var(axis=1).mean() < 0.5 * points.var(axis=0).mean()


def test_steps_by_place_have_the_covariance_of_the_process():
    bursts = from_time_series(walk(0, 4001), diffusion=1.0, dt=0.01)
    assert bursts.burst_std == pytest.approx(0.1)
    covariance = np.mean([np.cov(burst.T) for burst in bursts], axis=0)
    np.testing.assert_allclose(covariance, 0.01 * MIX.T @ MIX, rtol=0.1, atol=1e-3)
    assert bursts.noise is None and "lag 1 (chosen: no noise seen" in bursts.provenance


def test_noise_is_found_and_a_longer_lag_chosen():
    bursts = from_time_series(walk(1, 20000, 0.1))
    np.testing.assert_allclose(bursts.noise, 2 * 0.01 * np.eye(3), atol=0.004)
    assert "lag 1 (" not in bursts.provenance
    by_place = from_time_series(walk(1, 20000, 0.1), lags=(2, 8))
    assert by_place.noise.shape == (len(by_place), 3, 3)
    np.testing.assert_allclose(by_place.noise.mean(axis=0), 2 * 0.01 * np.eye(3), atol=0.01)


def test_several_recordings_are_not_joined_end_to_end():
    parts = [walk(2, 2000), walk(3, 2000) + 100]
    bursts = from_time_series(parts, window=20, lag=1, keys=["a", "b"])
    assert bursts.ids[0] == "a/0" and bursts.ids[-1] == "b/98"
    assert max(np.ptp(burst, axis=0).max() for burst in bursts) < 5
    assert {label[0] for label in from_time_series(parts).ids} == {"0", "1"}


@pytest.mark.parametrize(
    ("series", "options", "message"),
    [
        (np.random.RandomState(0).standard_normal((3000, 2)), {}, "too coarsely, or noise"),
        (np.sin(np.arange(3000)[:, None] / [50, 70]), {}, "smooth, or was filtered"),
        (walk(0, 300), {}, "need 500"),
        (walk(0, 3000), {"window": 1000, "lag": 1}, "belongs to one place"),
        (walk(0, 3000), {"lag": 1, "lags": (1, 2)}, "not both"),
    ],
)
def test_refused(series, options, message):
    with pytest.raises(ValueError, match=message):
        from_time_series(series, **options)


def test_a_simulator_with_a_noisy_instrument():
    def step(states, dt, random):
        return states + np.sqrt(dt) * random.standard_normal(states.shape)

    random = np.random.RandomState(0)
    bursts = from_simulator(
        step,
        random.uniform(size=(50, 2)),
        None,
        100,
        observe=lambda x: x + 0.05 * random.standard_normal(x.shape),
        lags=(0.001, 0.01),
        diffusion=1.0,
        random_state=0,
    )
    assert bursts.burst_std == pytest.approx(0.1)
    np.testing.assert_allclose(bursts.noise.mean(axis=0), 0.0025 * np.eye(2), atol=5e-4)


def test_noise_travels_with_the_bursts(tmp_path):
    noise = np.arange(10.0).reshape(5, 2)
    bursts = Bursts(np.zeros((5, 3, 2)), feature_names=["a", "b"], noise=noise, burst_std=0.1, provenance="trial")
    np.testing.assert_array_equal(bursts[[3, 1]].noise, noise[[3, 1]])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(bursts[2:])).noise, noise[2:])
    np.testing.assert_array_equal(bursts.scaled([1, 2]).noise, noise / [1, 2])
    both = Bursts.concatenate([bursts, Bursts(bursts[:1], noise=0.5)])
    np.testing.assert_array_equal(both.noise, [*noise, [0.5, 0.5]])
    with pytest.raises(BurstError, match="part 1 is not known"):
        Bursts.concatenate([bursts, np.zeros((1, 3, 2))], burst_std=0.1)
    again = open_bursts(save_bursts(bursts, tmp_path / "b.npz"), columns=["b"])
    np.testing.assert_array_equal(again.noise, noise[:, 1:])
    assert (again.burst_std, again.provenance) == (0.1, "trial")
    with pytest.raises(BurstError, match="noise has shape"):
        Bursts(np.zeros((5, 3, 2)), noise=[1.0, 2.0, 3.0])
