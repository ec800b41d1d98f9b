"""Frames with one hot spot each: places, covariances, what they are worth, and frames that cannot be used."""

import numpy as np
import pytest

from pyloca.bursts import from_spots
from pyloca.errors import BurstError


def frame(places, covariance=((9, 3), (3, 4)), height=100.0, noise=0.0, shape=(48, 64), seed=0):
    """A frame of Gaussian spots at `places` (x, y), integrated over pixels, on a ground of 50."""
    sub = (np.arange(5) + 0.5) / 5 - 0.5
    y, x = ((np.arange(n)[:, None] + sub).ravel() for n in shape)
    grid = np.stack(np.broadcast_arrays(x[None, :], y[:, None]), axis=-1)
    inverse = np.linalg.inv(covariance)
    fine = sum(np.exp(-0.5 * np.einsum("hwi,ij,hwj->hw", grid - p, inverse, grid - p)) for p in np.atleast_2d(places))
    frame = height * np.asarray(fine + np.zeros(grid.shape[:2])).reshape(shape[0], 5, shape[1], 5).mean(axis=(1, 3))
    return 50 + frame + noise * np.random.RandomState(seed).standard_normal(shape)


def test_mean_and_covariance_of_a_spot_wherever_it_lies_between_the_pixels():
    places = [(30.0, 20.0), (30.5, 20.5), (31.3, 24.8), (17.71, 29.09)]
    bursts = from_spots([frame(place) for place in places], pixel_size=0.5)
    assert bursts.shape == (4, 8, 2)
    np.testing.assert_allclose([burst.mean(axis=0) for burst in bursts], 0.5 * np.array(places), atol=1e-4)
    for burst in bursts:
        np.testing.assert_allclose(np.cov(burst.T), 0.25 * np.array([[9, 3], [3, 4]]), atol=0.25 * 0.01)


def test_the_frame_may_be_larger_brighter_or_read_as_integers():
    one = from_spots([frame((30, 20))])[0]
    np.testing.assert_allclose(from_spots([frame((30, 20), shape=(80, 90))])[0], one, atol=1e-3)
    np.testing.assert_allclose(from_spots([3 * frame((30, 20)) - 1000])[0], one, atol=1e-6)
    rounded = from_spots(np.rint(frame((30, 20), height=2000.0)).astype(np.uint16)[None])
    np.testing.assert_allclose(rounded[0], one, atol=1e-2)
    exact = np.pi * 2000**2 * np.sqrt(27) / (4 / 12)  # the noise of rounding is 1 / √12
    assert rounded.effective_counts[0] == pytest.approx(exact, rel=0.3)


@pytest.mark.parametrize(("height", "noise"), [(100, 5), (30, 1)])
def test_effective_counts_predict_the_error_of_the_covariance(height, noise):
    random = np.random.RandomState(1)
    bursts = from_spots(
        frame(random.uniform(20, 28, size=2), height=height, noise=noise, seed=seed) for seed in range(80)
    )
    root = np.linalg.inv(np.linalg.cholesky([[9, 3], [3, 4]]))
    errors = [np.square(root @ np.cov(burst.T) @ root.T - np.eye(2)).sum() for burst in bursts]
    assert np.mean(errors) * (np.mean(bursts.effective_counts) - 1) / 6 == pytest.approx(1, abs=0.35)


def test_a_dead_pixel_far_away_does_no_harm():
    good = frame((30, 20), noise=1)
    dead = good.copy()
    dead[40, 5] = 5000
    np.testing.assert_allclose(from_spots([dead])[0], from_spots([good])[0], atol=1e-2)


BAD = {
    "none": frame((30, 20), height=0.0, noise=1),
    "dark": np.zeros((48, 64)),
    "two": frame([(20, 20), (45, 30)], noise=1),
    "touching": frame([(20, 20), (32, 20)], noise=1),
    "cut": frame((2, 20), noise=1),
    "outside": frame((-3, 20), noise=1),
    "corner": frame((62, 46), noise=1),
    "thin": frame((30, 20), covariance=((0.05, 0), (0, 0.05)), height=1000, noise=1),
    "nan": np.full((48, 64), np.nan),
}


def test_bad_frames_are_counted_and_named_in_one_message():
    frames = [*BAD.values(), frame((30, 20), noise=1)]
    with pytest.raises(BurstError) as caught:
        from_spots(frames, ids=[*BAD, "good"])
    said = str(caught.value)
    assert said.startswith("9 of 10 frames have no spot that can be used: ")
    assert "2 with more than one spot (frames 'two', 'touching')" in said
    assert "3 with a spot cut by the border (frames 'cut', 'outside', 'corner')" in said
    assert "1 with pixels that are not finite (frame 'nan')" in said
    assert 'drop them: on_bad="drop"' in said
    kept = from_spots(frames, ids=[*BAD, "good"], on_bad="drop")
    assert kept.ids.tolist() == ["good"]
    assert "dropped frames: " in kept.provenance
    assert from_spots(iter(frames), on_bad="drop").ids.tolist() == [9]
    with pytest.raises(BurstError, match="Pass frames with one bright spot"):
        from_spots(frames[:-1], on_bad="drop")


def test_what_is_not_frames():
    with pytest.raises(BurstError, match=r"frames\[None\]"):
        from_spots(frame((30, 20)))
    with pytest.raises(BurstError, match="average the colours"):
        from_spots(np.zeros((2, 40, 40, 3)))
    with pytest.raises(BurstError, match=r"frame 1 has shape \(40,\)"):
        from_spots([frame((30, 20)), np.zeros(40)])
    with pytest.raises(BurstError, match=r"frame 1 has shape \(50, 64\), the first one \(48, 64\)"):
        from_spots([frame((30, 20)), frame((30, 20), shape=(50, 64))])
    with pytest.raises(BurstError, match="there are no frames"):
        from_spots([])
    with pytest.raises(ValueError, match="on_bad must be"):
        from_spots([frame((30, 20))], on_bad="ignore")
    with pytest.raises(ValueError, match="pixel_size"):
        from_spots([frame((30, 20))], pixel_size=0)
