"""What a notebook shows: cards, pictures, help and data frames."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn import config_context

from helpers import HANG, planar_bursts, planar_statistics, short_fit, tiny_loca
from pyloca import LOCA, Bursts
from pyloca._html import dots_svg, html_card
from pyloca.findings import Diagnostics, Finding
from pyloca.selection import (
    estimate_burst_std,
    estimate_intrinsic_dim,
    select_n_components,
    suggest_n_components,
)

EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"
IDS = [f"run{i}" for i in range(60)]


class Tags(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.names, self.text = [], ""
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attributes)

    def handle_data(self, data):
        self.text += data


def shown(value):
    """The text of a card, after a look at its markup."""
    read = Tags(value._repr_html_())
    assert set(read.names) <= {"div", "table", "caption", "tbody", "tr", "th", "td", "br", "svg", "title", "path"}
    return read.text


@pytest.fixture(scope="module")
def table():
    _, bursts = planar_bursts(60, 30)
    return Bursts(bursts * [1000, 1, 0.01], ids=IDS, feature_names=("p", EVIL, "U"), units=("Pa", "", EVIL))


@pytest.fixture(scope="module")
def model(table):
    return short_fit(tiny_loca(), table)


# -- cards ------------------------------------------------------------------------------------------------------


def test_a_card_escapes_everything():
    read = Tags(html_card(EVIL, {EVIL: EVIL, "lines": [EVIL, "b"]}))
    assert read.text == 3 * EVIL + "lines" + EVIL + "b"
    assert set(read.names) == {"table", "caption", "tbody", "tr", "th", "td", "br"}


def test_a_fitted_model_says_its_sizes_sensors_and_verdict(model):
    words = shown(model)
    assert "N = 60, 6 of them held outpoints per burstM = 30 (by the held-out bursts)" in words
    assert f"D = 3: p (Pa), {EVIL}, U ({EVIL})" in words
    assert "k = 2 directions per burst, d = 2 coordinates" in words
    assert "0.01 (given)" in words
    for message in model.diagnostics_.warnings:
        assert message in words
    assert "LOCA(burst_std=0.01" in words
    assert model._repr_html_().count("<svg") == 1


def test_a_model_without_fault_says_so(model, monkeypatch):
    monkeypatch.setattr(model, "diagnostics_", replace(model.diagnostics_, findings=(), p_values=np.ones(60)))
    assert "no fault found" in shown(model)
    assert shown(model).endswith("Embedding of 60 bursts, z0 to the right, z1 up")


def test_other_shapes_of_models_are_shown():
    _, statistics = planar_statistics(40, k=1, dim=2)
    assert "known exactly" in shown(short_fit(tiny_loca(n_components=1, burst_std=1.0), statistics))
    _, bursts = planar_bursts(40, 20)
    ragged = short_fit(tiny_loca(n_components=3), [burst[: 12 + i % 8] for i, burst in enumerate(bursts)])
    assert "M about 1" in shown(ragged)


def test_a_model_that_is_not_fitted_is_shown_as_scikit_learn_does():
    fresh = LOCA(hidden_layers=(7,))
    assert "sk-" in fresh._repr_html_()
    assert "sk-" in fresh._repr_mimebundle_()["text/html"]


def test_both_ways_of_a_notebook_give_the_card(model):
    bundle = model._repr_mimebundle_(include=None, exclude=None)
    assert bundle["text/html"] == model._repr_html_()
    assert bundle["text/plain"] == repr(model)
    with config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}


@pytest.mark.slow
def test_a_card_needs_no_plotting_library(model, tmp_path):
    path = model.save(tmp_path / "m.safetensors")
    code = (
        "import sys; from pyloca import LOCA; m = LOCA.load(sys.argv[1]); m._repr_html_(); "
        "m.diagnostics_._repr_html_(); assert 'matplotlib' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], env={**os.environ}, timeout=HANG, check=False)
    assert done.returncode == 0


def test_diagnostics_are_a_card_and_not_a_dataclass(model):
    words = shown(model.diagnostics_)
    assert words.startswith("Diagnosticswhitening loss") and "array(" not in words
    worst = Diagnostics(0.1, 0.1, 0.1, (1.0, 1.0), findings=(Finding("a", EVIL), Finding("b", "second")))
    assert f"WARNING{EVIL}second" in shown(worst)
    text = str(worst)
    assert text.splitlines()[0].startswith("whitening loss   0.1") and text.count("WARNING") == 2


def test_the_results_of_selection_say_how_sure_they_are():
    _, table = planar_bursts(60, 30)
    assert re.search(r"burst_std[\d.]+standard error[\d.]+", shown(estimate_burst_std(table)))
    known = estimate_burst_std(table, pairs=[(0, 1)], distances=[0.3])
    assert "one distance alone" in shown(known) and "known distances" in shown(known)
    assert re.search(
        r"intrinsic_dim2confidence\d+% of bootstrap samples", shown(estimate_intrinsic_dim(table, random_state=0))
    )
    assert "without training" in shown(suggest_n_components(table))


@pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")
def test_a_selection_of_components_shows_every_candidate(table):
    found = select_n_components(
        table, burst_std=0.01, candidates=(2, 3), hidden_layers=(8,), max_iter=30, random_state=0
    )
    words = shown(found)
    assert f"d = {found.n_components}, chosen" in words
    assert words.count("held-out loss") == 2 and words.count("standard error") == 2


def test_dots_of_any_kind_are_drawn():
    none = np.zeros(0, dtype=bool)
    assert dots_svg(np.empty((0, 2)), none, "x").count("<path") == 0
    for points in (np.zeros((5, 1)), np.zeros((1, 2)), np.full((3, 2), np.nan), np.arange(6.0).reshape(2, 3)):
        assert "nan" not in dots_svg(points, np.zeros(len(points), dtype=bool), "x")
    many = dots_svg(np.random.RandomState(0).normal(size=(200_000, 2)), np.arange(200_000) < 3, EVIL)
    assert len(many) < 40_000 and many.count("<path") == 2
    assert len(re.findall("h0", many)) <= 1503 + 1
    assert "<script" not in many


# -- pictures ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("color", "label"),
    [
        ("p", "p (Pa) (decoded)"),
        (0, "p (Pa) (decoded)"),
        (np.int64(2), f"U ({EVIL}) (decoded)"),
        ("trust", "trust"),
        ("error", "round-trip error / size of the data"),
        ("loss", "whitening loss"),
        (np.arange(60), "color"),
        (pd.Series(range(60), name="hour"), "hour"),
    ],
)
def test_the_embedding_is_coloured(model, color, label):
    before = dict(matplotlib.rcParams)
    figure = model.plot(color)
    assert isinstance(figure, Figure)
    assert figure.axes[-1].get_ylabel() == label
    assert dict(matplotlib.rcParams) == before


def test_a_sensor_is_what_the_decoder_says(model):
    (dots,) = model.plot("p").axes[0].collections
    expected = model.decode(model.embedding_)[:, 0]
    inside = np.clip(expected, *np.quantile(expected, [0.01, 0.99]))
    np.testing.assert_allclose(np.sort(dots.get_array()), np.sort(inside), rtol=1e-12)


def test_without_a_colour_there_is_no_colour_bar(model):
    assert len(model.plot().axes) == 1


@pytest.mark.parametrize(
    ("color", "words"),
    [
        ("q", "color='q' is not a sensor of the fit; expected 'trust', 'error', 'loss', or one of p, "),
        (3, "color=3 is not a sensor; expected an integer from 0 to 2"),
        (True, "color=True is not a sensor"),
        (1.5, "color=1.5 is not a sensor"),
        (np.zeros(59), r"shape \(59,\); expected 60 numbers, one per burst"),
        (["a"] * 60, "color is an array of dtype <U1"),
    ],
)
def test_wrong_colours(model, color, words):
    with pytest.raises(ValueError, match=words):
        model.plot(color)


def test_a_notebook_shows_figures_without_pyplot(model):
    """IPython asks for `_repr_png_` where pyplot has not told it of figures."""
    for figure in (model.plot("trust"), model.diagnostics_.plot()):
        assert figure._repr_png_()[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_name_is_no_formula(model, monkeypatch):
    monkeypatch.setattr(model, "feature_names_in_", np.array([r"$\frac{", "b", "c"], dtype=object))
    assert model.plot(0)._repr_png_()


def test_diagnostics_are_drawn(model):
    figure = model.diagnostics_.plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Whitening", "Stretch", "Round trip"]
    collapsed = replace(model.diagnostics_, losses=np.full(60, np.inf), sampling_stretch=None, sampling_floor=0.0)
    assert collapsed.plot()._repr_png_()
    with pytest.raises(ValueError, match=r"pyloca.diagnostics.diagnose\(model, bursts\).plot\(\)"):
        Diagnostics(0.1, 0.1, 0.1, (1.0, 1.0)).plot()


# -- help and data frames ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_help_is_about_loca():
    assert [name for name in dir(LOCA) if name.startswith("set_")] == ["set_output", "set_params"]
    code = "import pydoc; from pyloca import LOCA; print(pydoc.plain(pydoc.render_doc(LOCA)))"
    text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG, check=True).stdout
    assert "_request(" not in text.replace("set_output", "")


@pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")  # no time to become good
def test_data_frames_come_out_of_bursts_in_any_form(table):
    model = tiny_loca().set_output(transform="pandas")
    raw = table.to_array()
    first = model.fit_transform(raw)
    assert isinstance(first, pd.DataFrame) and list(first) == ["loca0", "loca1"]
    np.testing.assert_array_equal(first, model.embedding_)
    for bursts in (raw, list(raw), Bursts(raw)):
        pd.testing.assert_frame_equal(model.transform(bursts), first)
    ragged = [burst[: 20 + i % 10] for i, burst in enumerate(raw)]
    frame, trust = model.transform(ragged, return_trust=True)
    assert frame.shape == (60, 2) and isinstance(trust, np.ndarray) and trust.shape == (60,)


def test_points_in_a_data_frame_keep_their_index(table):
    model = short_fit(tiny_loca().set_output(transform="pandas"), table)
    points = pd.DataFrame(table.to_array()[:, 0], columns=table.feature_names, index=IDS)
    frame, trust = model.transform(points, return_trust=True)
    assert frame.index.tolist() == IDS and trust.shape == (60,)
    np.testing.assert_array_equal(frame, model.encode(points.to_numpy()))
