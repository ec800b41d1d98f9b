"""Pictures: they render, say what they should, and leave matplotlib as it was."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from helpers import random_rotation
from pyloca import datasets
from pyloca.demo import EXAMPLES
from pyloca.plots import COLOURS, overview, plot_distances, png, style
from pyloca.plots._figures import _projection, _round_up, _spread

SCENES = {example.name: example.scene for example in EXAMPLES}


def size(image):
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(image[16:20], "big"), int.from_bytes(image[20:24], "big")


def moved_truth(name, n_bursts=80):
    """A data set, and an encoder that is perfect up to a rigid motion."""
    data = getattr(datasets, name)(n_bursts=n_bursts)
    rotation = random_rotation(2, 1)
    if name == "mushroom":  # f₁ is known by heart
        return (
            data,
            lambda Y: np.stack([(Y[:, 0] - Y[:, 1]) / 2, np.cbrt((Y[:, 0] + Y[:, 1]) / 2)], axis=1) @ rotation + 5,
        )
    transmitters = data.extras["transmitters"]

    def locate(Y):
        """From the squared distances to the transmitters, by linear least squares."""
        squared = -(600.0**2) * np.log(Y)
        system = 2 * (transmitters[0] - transmitters[1:])
        known = np.square(transmitters[0]).sum() - np.square(transmitters[1:]).sum(axis=1)
        return np.linalg.lstsq(system, (squared[:, 1:] - squared[:, :1] + known).T)[0].T @ rotation - 50

    return data, locate


@pytest.mark.parametrize("name", ["wifi", "mushroom"])
def test_overview_renders_at_its_size_and_changes_no_setting(name):
    before = dict(matplotlib.rcParams)
    image = png(overview(*moved_truth(name), SCENES[name], "a note"))
    width, height = SCENES[name].size
    assert size(image) == (round(200 * width), round(200 * height))
    assert dict(matplotlib.rcParams) == before


def test_overview_says_what_was_done_and_in_which_unit():
    figure = overview(*moved_truth("wifi"), SCENES["wifi"], "stress 0")
    texts = [text.get_text() for text in figure.texts]
    assert texts[:2] == [SCENES["wifi"].title, "stress 0"]
    assert "display only" in texts[-1]
    titles = [axes.get_title(loc="left")[:1] for axes in figure.axes]
    assert titles == ["a", "b", "c", "d"]
    latent, _, embedded, distances = figure.axes
    for axes in (latent, embedded, distances):
        assert axes.get_xlabel().endswith("(px)")
        assert axes.get_aspect() == 1
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[-1] == "transmitter"
    assert "60×" in legend[1]


@pytest.mark.parametrize("name", ["wifi", "mushroom"])
def test_the_embedding_is_drawn_upon_the_latent_space(name):
    data, encode = moved_truth(name)
    latent, _, embedded, _ = overview(data, encode, SCENES[name]).axes
    # The outline and the floor are the first two collections.
    truth, found = (axes.collections[2].get_offsets() for axes in (latent, embedded))
    assert np.allclose(truth, data.X)
    assert np.allclose(found, data.X, atol=1e-6 * np.ptp(data.X))


def test_bursts_of_a_perfect_embedding_are_round():
    data, encode = moved_truth("wifi")
    latent, measured, embedded, _ = overview(data, encode, SCENES["wifi"]).axes
    for axes in (latent, embedded):
        assert [patch.width for patch in axes.patches] == pytest.approx([60.0] * len(axes.patches), rel=1e-3)
        assert [patch.height for patch in axes.patches] == pytest.approx([60.0] * len(axes.patches), rel=1e-3)
    assert max(patch.width / patch.height for patch in measured.patches) > 1.5


def test_the_same_picture_has_the_same_bytes():
    data, encode = moved_truth("mushroom")
    assert png(overview(data, encode, SCENES["mushroom"])) == png(overview(data, encode, SCENES["mushroom"]))


@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_distances_of_an_exact_and_of_a_stretched_embedding(factor):
    X = np.random.RandomState(0).uniform(size=(50, 2))
    with style():
        figure = Figure()
        axes = figure.subplots()
        plot_distances(axes, X, factor * X, "m")
    pairs = axes.collections[0].get_offsets()
    assert len(pairs) == 5000
    assert pairs[:, 0].min() > 0  # no point is paired with itself
    assert np.allclose(pairs[:, 1], factor * pairs[:, 0])
    assert axes.get_xlabel() == "distance in latent space (m)"
    assert size(png(figure))[0] > 0


def test_style_begins_from_the_defaults_and_ends_with_the_users_settings():
    with matplotlib.rc_context({"font.size": 31, "axes.grid": True}):
        with style():
            assert matplotlib.rcParams["font.size"] == 9
            assert not matplotlib.rcParams["axes.grid"]
        assert matplotlib.rcParams["font.size"] == 31
        with pytest.raises(KeyError), style():
            raise KeyError
        assert matplotlib.rcParams["axes.grid"]


def test_no_pyplot_and_no_display():
    code = "import sys, pyloca.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


def test_shown_bursts_are_few_and_spread():
    X = np.random.RandomState(0).uniform(size=(300, 2))
    rows = _spread(X, 10)
    assert len(set(rows)) == len(rows) == 10
    gaps = np.linalg.norm(X[rows][:, None] - X[rows], axis=2)[np.triu_indices(10, 1)]
    assert gaps.min() > 0.1
    assert len(_spread(X[:3], 10)) == 3


def test_measurements_of_many_dimensions_are_projected():
    Y = np.random.RandomState(0).standard_normal((100, 5)) * [1, 9, 1, 4, 1]
    project, names = _projection(Y)
    assert project(Y).shape == (100, 2)
    assert np.abs(np.corrcoef(project(Y)[:, 0], Y[:, 1])[0, 1]) > 0.99
    assert names[0].endswith("of 5 signals")
    flat, names = _projection(Y[:, :2])
    assert np.array_equal(flat(Y[:, :2]), Y[:, :2])
    assert names == ("$y_0$", "$y_1$")


@pytest.mark.parametrize(("value", "rounded"), [(0.0487, 0.05), (0.05, 0.05), (1.2, 2.0), (0.0, 1.0), (970.0, 1000.0)])
def test_limits_are_rounded_up_to_one_digit(value, rounded):
    assert _round_up(value) == pytest.approx(rounded)


def test_colours_are_eight_and_distinct():
    assert len(set(COLOURS.values())) == len(COLOURS) == 8
