"""Pictures: they render, say what they should, and leave matplotlib as it was."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import wishart

from helpers import HANG, random_rotation
from pyloca import datasets
from pyloca.diagnostics import Agreement, ShuffleTest
from pyloca.paper._overview import _projection, overview
from pyloca.paper.demo import EXAMPLES
from pyloca.plots import (
    COLOURS,
    plot_distances,
    plot_ellipses,
    plot_errors,
    plot_map,
    plot_training,
    plot_whitening,
    png,
    spread_rows,
    style,
)
from pyloca.plots._comparison import _round_up
from pyloca.selection import BurstStdEstimate, ComponentSelection, estimate_burst_std, estimate_intrinsic_dim

SCENES = {example.name: example.scene for example in EXAMPLES}


def size(image):
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(image[16:20], "big"), int.from_bytes(image[20:24], "big")


def moved_truth(name, n_bursts=80):
    """A data set, and an encoder that is perfect up to a rigid motion."""
    data = getattr(datasets, name)(n_bursts=n_bursts, random_state=0)
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_same_picture_has_the_same_bytes():
    data, encode = moved_truth("mushroom")
    assert png(overview(data, encode, SCENES["mushroom"])) == png(overview(data, encode, SCENES["mushroom"]))


@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_distances_of_an_exact_and_of_a_stretched_embedding(factor):
    X = np.random.RandomState(0).uniform(size=(50, 2))
    with style():
        figure = Figure()
        axes = figure.subplots()
        assert plot_distances(X, factor * X, "m", axes=axes) is figure
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


@pytest.mark.slow
def test_no_pyplot_and_no_display():
    code = "import sys, pyloca.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=HANG).returncode == 0


def test_shown_bursts_are_few_and_spread():
    X = np.random.RandomState(0).uniform(size=(300, 2))
    rows = spread_rows(X, 10)
    assert len(set(rows)) == len(rows) == 10
    gaps = np.linalg.norm(X[rows][:, None] - X[rows], axis=2)[np.triu_indices(10, 1)]
    assert gaps.min() > 0.1
    assert len(spread_rows(X[:3], 10)) == 3


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


# -- a fitted model -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("d", "panels"), [(1, 1), (2, 1), (3, 3), (4, 6), (5, 6)])
def test_a_map_has_a_panel_for_every_pair_of_up_to_four_coordinates(d, panels):
    random = np.random.RandomState(0)
    figure = plot_map(random.normal(size=(50, d)), random.uniform(1, 2, size=50), "value", log=True)
    assert len([axes for axes in figure.axes if axes.get_xlabel()]) == panels
    assert png(figure).startswith(b"\x89PNG")


def test_a_map_of_many_points_has_hexagons_and_few_dots_are_all_there():
    random = np.random.RandomState(0)
    few, many = (plot_map(random.normal(size=(n, 2)), np.arange(float(n)), "n") for n in (100, 60_000))
    assert len(few.axes[0].collections[0].get_offsets()) == 100
    assert len(many.axes[0].collections[0].get_array()) < 20_000


@pytest.mark.slow
def test_values_that_are_equal_infinite_or_zero_are_drawn():
    Z = np.random.RandomState(0).normal(size=(30, 2))
    for values in (np.ones(30), np.zeros(30), np.r_[np.full(10, np.inf), np.ones(20)]):
        for log in (True, False):
            png(plot_map(Z, values, "value", log=log))
    png(plot_whitening(np.r_[np.inf, np.ones(29)], np.zeros(30), 2))
    png(plot_errors(np.zeros(30), "error"))


def test_the_curve_of_sampling_is_the_law_of_the_losses():
    """Losses of a perfect encoder: the histogram follows the curve."""
    random = np.random.RandomState(0)
    k, m, n = 2, 400, 20_000
    covariance = wishart(m - 1, np.eye(k) / (m - 1), seed=random).rvs(n)  # (n, k, k)
    loss = np.trace(covariance, axis1=1, axis2=2) - np.linalg.slogdet(covariance)[1] - k
    axes = plot_whitening(loss, np.full(n, k * (k + 1) / (2 * (m - 1))), k).axes[0]
    (curve,) = axes.get_lines()
    edges, heights = axes.patches[-1].get_data().edges, axes.patches[-1].get_data().values
    expected = np.interp(np.sqrt(edges[1:] * edges[:-1]), *curve.get_data())
    np.testing.assert_allclose(heights[1:-1], expected[1:-1], atol=0.006)


def test_ellipses_of_an_isometry_are_circles_of_one_size():
    Z = np.random.RandomState(0).uniform(size=(200, 2))
    pushed = np.stack([random_rotation(2, seed) for seed in range(200)])
    figure = plot_ellipses(Z, pushed)
    *ellipses, sigma = figure.axes[0].patches
    assert 100 <= len(ellipses) <= 120
    for ellipse in ellipses:
        assert (ellipse.width, ellipse.height) == pytest.approx((sigma.width, sigma.height))
    *ellipses, sigma = plot_ellipses(Z, pushed * [2.0, 1.0]).axes[0].patches
    assert {round(e.width / e.height, 6) for e in ellipses} == {2.0}
    assert {round(abs(e.angle) % 180, 6) for e in ellipses} == {0.0}  # along the first coordinate


def test_one_coordinate_has_no_ellipses():
    with pytest.raises(ValueError, match="needs at least 2 coordinates"):
        plot_ellipses(np.zeros((50, 1)), np.ones((50, 1, 1)))


def test_a_restart_is_marked():
    fit = [{"stage": "fit encoder", "iteration": i, "loss": 1.0} for i in (50, 100)]
    again = [{"stage": "whiten", "iteration": i, "loss": 1.0, "validation_loss": 1.0} for i in (150, 200)]
    figure = plot_training([*fit, {"stage": "restart: folded", "iteration": 100}, *again])
    words = {text.get_text(): text.get_rotation() for text in figure.axes[0].texts}
    assert words == {"fit encoder": 0, "restart: folded": 90, "whiten": 0}


def test_training_lines_end_with_their_stage():
    history = [
        {"stage": stage, "iteration": 10 * i + 5, "seconds": 0.0, "loss": 1 / (i + 1)}
        | ({"validation_loss": 2 / (i + 1)} if stage == "whiten" else {})
        for i, stage in enumerate(["fit", "fit", "whiten", "whiten", "whiten"])
    ]
    lines = plot_training(history).axes[0].get_lines()
    assert [len(line.get_xdata()) for line in lines] == [2, 3, 3]
    assert [text.get_text() for text in lines[0].axes.texts] == ["fit", "whiten"]


def test_one_distance_has_a_picture_around_it():
    axes = BurstStdEstimate(0.01, np.inf, True, np.array([0.01])).plot().axes[0]
    low, high = axes.get_xlim()
    assert 0.005 < low < 0.01 < high < 0.02 and axes.get_title("left") == "σ = 0.01, from a single distance"


@pytest.mark.slow
def test_choices_have_pictures():
    bursts = datasets.wifi(60, random_state=0).bursts
    random = np.random.RandomState(0)
    curve = np.array([0.2, 0.02, 0.021])
    drawn = [
        estimate_burst_std(bursts),
        estimate_intrinsic_dim(bursts, random_state=0),
        ComponentSelection(3, 2, (2, 3, 4), curve, curve - 0.015, 0.1 * curve, 3, {}),
        ShuffleTest(0.02, np.array([0.3, 0.5, np.inf])),
        Agreement(random.uniform(size=(50, 2)), random.uniform(size=(4, 50, 2)), np.full(50, 0.02)),
        Agreement(random.uniform(size=(50, 1)), random.uniform(size=(4, 50, 1)), np.full(50, 0.02)),
    ]
    for result in drawn:
        assert min(size(png(result.plot()))) > 400
