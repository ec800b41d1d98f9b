"""Noise in words: sensors by name, in their units, the loudest first."""

from dataclasses import replace

import numpy as np

from helpers import planar_bursts
from pyloca.bursts import Bursts
from pyloca.findings import Diagnostics, noise, noise_words
from pyloca.geometry import BurstStatistics, Noise


def statistics(levels):
    found = BurstStatistics.from_bursts(planar_bursts(50, 20)[1], 2, measurement_noise=0.001)
    noise = Noise(np.asarray(levels, dtype=float))
    return replace(found, instrument=noise, feature_names=("p", "T", "u"), units=("Pa", "K", ""))


def test_the_loudest_sensor_comes_first_in_its_unit():
    words = noise_words(statistics([[1e-4, 4e-4, 0]]), "as given")
    assert words.startswith("as given: T 0.02 K, p 0.01 Pa (standard deviations), no noise in 1 other; ")


def test_loudness_is_a_part_of_the_spread_and_the_scale_is_undone():
    words = noise_words(statistics([[1e-4, 4e-4, 1e-4]]), "estimated", np.array([1.0, 1000.0, 1.0]))
    assert words.startswith("estimated: T 20 K, ") and "no noise in" not in words


def test_places_correlations_and_silence():
    assert "the mean of all places" in noise_words(statistics([[1e-4, 0, 0], [3e-4, 0, 0]]), "estimated")
    together = 1e-4 * np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 0]])
    assert "; correlated between sensors" in noise_words(statistics(together[None]), "as given")
    assert "correlated" not in noise_words(statistics(np.diag([1e-4, 1e-4, 0])[None]), "as given")
    assert noise_words(statistics([[0, 0, 0]]), "estimated") == "estimated: no sensor has noise that stands out"
    assert noise_words(replace(statistics([[0, 0, 0]]), instrument=None), "estimated") == ""


def test_the_card_has_a_line_of_noise_that_files_keep():
    found = Diagnostics(0.1, 0.1, 0.1, (1.0, 1.0), noise="as given: p 0.01 Pa")
    assert "noise            as given: p 0.01 Pa" in str(found)
    assert Diagnostics.from_dict(found.to_dict()).noise == found.noise
    old = {name: value for name, value in found.to_dict().items() if name != "noise"}
    assert Diagnostics.from_dict(old).noise == ""


def test_coarse_steps_are_named_and_not_taken_for_tangents():
    random = np.random.RandomState(0)
    X = random.uniform(size=(300, 1, 2)) + 0.01 * random.standard_normal((300, 12, 2))
    Y = np.concatenate([X, np.sin(2 * X), X[..., :1] * X[..., 1:], np.cos(X[..., :1])], axis=2)
    for step, told in ((0.012, True), (0.001, False)):
        bursts = Bursts(np.round(Y / step) * step)
        found = noise(BurstStatistics.from_bursts(bursts, 2), bursts)
        assert (found is not None and found.message.startswith("readings are rounded (feature ")) == told
