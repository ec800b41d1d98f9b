"""Pages as files: what stands in them, that every text is escaped, and that they ask nothing of the network."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn

from helpers import HANG, planar_bursts, random_model, short_fit, smooth_statistics, tiny_loca
from pyloca import BurstError, Bursts, BurstStatistics
from pyloca.bursts import save_bursts
from pyloca.cli import cli
from pyloca.diagnostics import Agreement
from pyloca.metrics import calibrate
from pyloca.networks import Standardized
from pyloca.plots import plot_map, png
from pyloca.report import Figure, Page, Section, Table, explorer, render, user_report, versions

EVIL = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>"


class Reader(HTMLParser):
    """Tags, attributes and texts of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.texts, self.inside = [], {}, []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside.append(tag)

    def handle_data(self, data):
        self.texts.setdefault(self.inside[-1] if self.inside else "", []).append(data)

    def handle_endtag(self, tag):
        if tag in self.inside:
            while self.inside.pop() != tag:
                pass

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def fitted():
    """Bursts and a model of them, which had no time to become good."""
    _, bursts = planar_bursts(80, 20)
    return short_fit(tiny_loca(), bursts), bursts


@pytest.fixture(scope="module")
def page(fitted):
    return user_report(*fitted, name="A page", labels=[f"burst {EVIL} {i}" for i in range(80)])


def policy(html):
    (content,) = [meta["content"] for meta in Reader(html).all("meta") if "http-equiv" in meta]
    return dict(part.split(" ", 1) for part in content.split("; "))


def hashed(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# -- pages ------------------------------------------------------------------------------------------------------


def test_a_page_holds_what_it_was_given():
    picture = png(plot_map(np.random.RandomState(0).normal(size=(20, 2)), np.arange(20.0), "order"))
    section = Section(
        "A section",
        ("First.", "Second."),
        (Table(("name", "value"), (("a", "1.5"), ("b", "−2e-3")), "A table"),),
        (Figure(picture, "twenty dots", "A figure"),),
    )
    html = render(Page("Title", "Lead.", (section,), {"seed": "0"}, {"python": "3"}, ("careful",)))
    read = Reader(html)
    assert [attributes for attributes in read.all("html")] == [{"lang": "en"}]
    for word in ("Title", "Lead.", "First.", "Second.", "A table", "A figure", "seed", "Careful", "How to cite"):
        assert word in html
    (image,) = read.all("img")
    assert image["alt"] == "twenty dots"
    assert base64.b64decode(image["src"].removeprefix("data:image/png;base64,")) == picture
    assert (int(image["width"]), int(image["height"])) == Figure(picture, "").size
    assert '<td class="number">1.5</td>' in html and "<td>a</td>" in html
    targets = {a["href"][1:] for a in read.all("a")}
    assert targets <= {attributes["id"] for _, attributes in read.tags if "id" in attributes}
    assert read.all("script") == []
    assert policy(html)["script-src"] == "'none'"


def test_every_text_is_escaped():
    table = Table((EVIL, EVIL), ((EVIL, EVIL),), EVIL)
    figure = Figure(png(plot_map(np.zeros((3, 2)), np.arange(3.0), "x")), EVIL, EVIL)
    model, means = random_model(), np.random.RandomState(0).normal(size=(30, 3))
    play = explorer(model, means, title=EVIL, names=[EVIL] * 3, labels=[EVIL] * 30, unit=EVIL, caption=EVIL)
    section = Section(EVIL, (EVIL,), (table,), (figure,), (play,))
    html = render(Page(EVIL, EVIL, (section,), {EVIL: EVIL}, {EVIL: EVIL}, (EVIL,), EVIL))
    read = Reader(html)
    assert html.count("<script>") == 1  # ours
    assert len(read.all("script")) == 2  # and its data
    assert len(read.all("img")) == 1
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    (data,) = [text for text in read.texts["script"] if text.startswith("{")]
    assert json.loads(data)["labels"][0] == EVIL


def test_a_page_may_run_one_script_and_one_style_and_ask_for_nothing(page):
    html = render(page)
    read, rules = Reader(html), policy(html)
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert not re.search("unsafe|https?:|\\*", str(rules))
    (script,) = [text for text in read.texts["script"] if not text.startswith("{")]
    assert rules["script-src"] == hashed(script)
    assert rules["style-src"] == hashed("".join(read.texts["style"]))
    assert not re.search("https?://", html)
    addresses = [a[name] for _, a in read.tags for name in ("src", "href", "action", "data") if name in a]
    assert all(address.startswith(("data:", "#")) for address in addresses)
    assert not any("style" in attributes for _, attributes in read.tags)  # the policy would block it
    assert "url(" not in "".join(read.texts["style"]) and "@import" not in "".join(read.texts["style"])


def test_versions_are_those_that_run():
    found = versions()
    assert set(found) == {"python", "pyloca", "torch", "numpy", "scipy", "scikit-learn"}
    assert found["numpy"] == np.__version__


# -- explorers --------------------------------------------------------------------------------------------------


def unpack(packed):
    raw = np.frombuffer(base64.b64decode(packed["data"]), dtype=f"<{packed['dtype']}")
    return raw.reshape(packed["shape"])


def test_an_explorer_holds_the_weights_and_the_embedded_means():
    model, means = random_model(), np.random.RandomState(0).normal(size=(40, 3))
    data = explorer(model, means, title="x").data
    layers = model.encoder_.network.linear_layers()
    for stored, layer in zip(data["encoder"]["layers"], layers, strict=True):
        np.testing.assert_array_equal(unpack(stored["weight"]), layer.weight.detach().numpy())
        np.testing.assert_array_equal(unpack(stored["bias"]), layer.bias.detach().numpy())
    np.testing.assert_allclose(unpack(data["points"]), model.transform(means), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(unpack(data["means"]), means)
    assert data["rows"] == list(range(40))
    assert json.dumps(data)


def test_an_explorer_keeps_three_thousand_points():
    means = np.random.RandomState(0).normal(size=(5000, 3))
    data = explorer(random_model(), means, title="x").data
    assert data["total"] == 5000 and data["points"]["shape"] == [3000, 2]
    np.testing.assert_array_equal(unpack(data["means"]), means[data["rows"]])


def test_the_floor_is_calibrated_on_its_coordinates():
    random = np.random.RandomState(0)
    model, means, places = random_model(), random.normal(size=(40, 3)), random.normal(size=(40, 2))
    data = explorer(model, means, title="x", kind="floor", coordinates=places, walls=[[0, 0, 1, 1]]).data
    expected = calibrate(places, model.transform(means))
    np.testing.assert_allclose(data["motion"]["rotation"], expected.rotation)
    np.testing.assert_array_equal(unpack(data["places"]), places)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "globe"}, "measurement, floor"),
        ({"kind": "floor"}, r"coordinates of shape \(40, 2\)"),
        ({"kind": "floor", "coordinates": np.zeros((40, 2)), "walls": np.zeros((3, 2))}, "left, bottom, right, top"),
        ({"names": ["a"]}, "names has 1 entries; expected 3"),
        ({"labels": ["a"]}, "labels has 1 entries; expected 40"),
        ({"image_shape": (2, 2)}, "does not hold D = 3"),
    ],
)
def test_wrong_options_of_an_explorer(options, words):
    with pytest.raises(ValueError, match=words):
        explorer(random_model(), np.random.RandomState(0).normal(size=(40, 3)), title="x", **options)


def test_modules_of_the_users_own_are_not_explored_and_the_page_says_so():
    model = random_model()
    model.encoder_ = nn.Sequential(nn.Linear(3, 2))
    play = explorer(model, np.zeros((5, 3)), title="x")
    html = render(Page("Title", "Lead.", (Section("One", explorers=(play,)),)))
    assert "The encoder is a module of your own (Sequential)" in html
    assert Reader(html).all("script") == []


def test_networks_that_are_too_large_for_a_page_are_not_explored():
    found = explorer(random_model(n_features=15_000, hidden=(40, 40)), np.zeros((3, 15_000)), title="x")
    assert found.data is None and "weights" in found.reason
    stored = explorer(random_model(n_features=3000, hidden=(40, 40)), np.zeros((3, 3000)), title="x").data
    assert stored["decoder"]["layers"][0]["weight"]["dtype"] == "f8"
    middle = explorer(random_model(n_features=6000, hidden=(40, 40)), np.zeros((3, 6000)), title="x").data
    assert middle["decoder"]["layers"][0]["weight"]["dtype"] == "f4"


# -- the page of a model ----------------------------------------------------------------------------------------


def test_the_page_of_a_model_says_all_that_is_known(page, fitted):
    model, _ = fitted
    assert page.title == "A page"
    assert page.warnings == model.diagnostics_.warnings
    assert [section.title.split(":")[0] for section in page.sections] == [
        "Explore the model",
        "At a glance",
        "Embedding",
        "Whitening",
        "Reconstruction",
        "Trust and error bars",
        "Training",
        "The bursts themselves",
    ]
    facts = dict(page.sections[1].tables[0].rows)
    assert facts["N, bursts"] == "80" and facts["M, points per burst"] == "20" and facts["d, coordinates"] == "2"
    assert facts["σ, size of a burst in the coordinates"] == "0.01 (given)"
    assert f"{model.diagnostics_.whitening_loss:.3g}" in facts["whitening loss, held-out bursts"]
    assert page.settings["hidden_layers"] == "(8,)"
    assert "8 of them were held out" in page.sections[1].paragraphs[-1]


@pytest.mark.slow
def test_the_worst_bursts_are_the_worst(fitted):
    model, bursts = fitted
    broken = bursts.copy()
    broken[17] *= [1.0, 0.2, 1.0]  # no encoder that suits the others can make this one round
    (table,) = user_report(model, broken).sections[3].tables
    assert len(table.rows) == 10
    losses = [float(row[table.header.index("loss")]) for row in table.rows]
    assert losses == sorted(losses, reverse=True)
    assert table.rows[0][0] == "17"


@pytest.mark.slow
def test_other_data_is_called_other_data(fitted):
    model, bursts = fitted
    words = " ".join(user_report(model, bursts[:50]).sections[1].paragraphs)
    assert "not the bursts that the model was fitted to" in words


@pytest.mark.slow
def test_a_collapsed_burst_is_drawn_and_not_fatal(fitted):
    model, bursts = fitted
    statistics = BurstStatistics.from_bursts(bursts, 2)
    state = {name: value.clone() for name, value in model.encoder_.state_dict().items()}
    try:
        with torch.no_grad():
            for parameter in model.encoder_.parameters():
                parameter.zero_()
        page = user_report(model, statistics)
    finally:
        model.encoder_.load_state_dict(state)
    assert any("collapsed" in warning for warning in page.warnings)
    assert "inf" in page.sections[3].tables[0].rows[0]


def test_labels_must_be_as_many_as_bursts(fitted):
    with pytest.raises(BurstError, match="there are 3 labels for 80 bursts"):
        user_report(*fitted, labels=["a", "b", "c"])


# -- names, ids and error bars ----------------------------------------------------------------------------------

SENSORS = ("p", "T<b>", "U")
UNITS = ("Pa", "K", "")


@pytest.fixture(scope="module")
def table():
    """Bursts of named sensors of very different sizes, and a model of them."""
    X, bursts = planar_bursts(80, 20)
    named = Bursts(
        bursts * [1e5, 1.0, 1e-3], ids=[f"run{i:02d}" for i in range(80)], feature_names=SENSORS, units=UNITS
    )
    return short_fit(tiny_loca(), named), named, X


@pytest.fixture(scope="module")
def table_page(table):
    model, bursts, X = table
    errors = np.linspace(0.01, 0.02, 80)
    bars = Agreement(model.embedding_, np.stack([model.embedding_] * 2), errors)
    return user_report(model, bursts, columns={"who": ["Ann", "Bob"] * 40, "x": X[:, 0]}, agreement=bars)


def section(page, title):
    (found,) = [section for section in page.sections if section.title.startswith(title)]
    return found


def test_sensors_and_bursts_have_their_names_everywhere(table_page, table):
    model, bursts, _ = table
    html = render(table_page)
    assert "feature 0" not in html and "feature 1" not in html
    play = section(table_page, "Explore").explorers[0].data
    assert play["names"] == ["p (Pa)", "T<b> (K)", "U"] and play["mixed"]
    assert play["ids"] == bursts.ids.tolist()
    np.testing.assert_allclose(unpack(play["means"]), bursts.to_array().mean(axis=1), rtol=1e-9)
    worst = section(table_page, "Whitening").tables[0]
    assert worst.header[0] == "burst" and {row[0] for row in worst.rows} <= set(bursts.ids.tolist())
    sensors = section(table_page, "The bursts").tables[0]
    assert [row[0] for row in sensors.rows] == ["p (Pa)", "T<b> (K)", "U"]
    assert float(sensors.rows[0][4]) == pytest.approx(model.feature_scale_[0], rel=1e-3)
    assert sensors.numeric == {1, 2, 3, 4}
    alts = [figure.alt for figure in section(table_page, "Embedding").figures]
    assert [alt.split("by ")[1] for alt in alts] == ["p (Pa).", "T<b> (K).", "U."]


def test_columns_and_figures_of_the_fit_can_be_coloured_by(table_page, table):
    colours = section(table_page, "Explore").explorers[0].data["colours"]
    assert [(entry["group"], entry["name"]) for entry in colours] == [
        ("your columns", "who"),
        ("your columns", "x"),
        ("quality of the fit", "whitening loss"),
        ("quality of the fit", "reconstruction error"),
        ("quality of the fit", "trust"),
        ("quality of the fit", "standard error"),
    ]
    who, x, loss, _, trust, _ = colours
    assert who["levels"] == ["Ann", "Bob"] and who["codes"] == [0, 1] * 40
    np.testing.assert_array_equal(unpack(x["values"]), table[2][:, 0])
    np.testing.assert_allclose(unpack(loss["values"]), table[0].diagnostics_.losses, rtol=1e-9)
    np.testing.assert_allclose(unpack(trust["values"]), table[0].diagnostics_.trust)


def test_the_embedding_can_be_taken_away(table_page, table):
    model, bursts, _ = table
    (file,) = section(table_page, "Embedding").downloads
    assert list(file.columns) == ["burst_id", "z0", "z1", "trust", "loss", "standard_error"]
    data = file.data
    assert data["columns"][0] == bursts.ids.tolist()
    np.testing.assert_array_equal(unpack(data["columns"][2]), model.embedding_[:, 1])


def test_error_bars_are_drawn_or_it_is_said_how_to_get_them(page, table_page, table):
    words = " ".join(section(page, "Trust").paragraphs)
    assert "pyloca.diagnostics.agreement(model, bursts)" in words
    assert len(section(page, "Trust").figures) == 1
    with_bars = section(table_page, "Trust")
    assert len(with_bars.figures) == 3 and "1 pair of fits" in with_bars.paragraphs[1]
    model, bursts, _ = table
    with pytest.raises(ValueError, match="the agreement is about 3 bursts; expected 80"):
        user_report(model, bursts, agreement=Agreement(np.zeros((3, 2)), np.zeros((2, 3, 2)), np.ones(3)))
    with pytest.raises(ValueError, match="column 'who' has shape"):
        user_report(model, bursts, columns={"who": ["Ann"]})


def test_a_scale_for_each_feature_goes_into_the_page(table):
    """As one scaling on each side, whatever stands around the network in Python."""
    model, _, _ = table
    stored = explorer(model, np.zeros((5, 3)), title="x").data
    assert isinstance(model.encoder_.network, Standardized) and len(set(model.feature_scale_)) == 3
    inside = model.encoder_.network
    np.testing.assert_allclose(unpack(stored["encoder"]["in_scale"]), model.feature_scale_ * float(inside.in_scale))
    np.testing.assert_allclose(
        unpack(stored["decoder"]["out_shift"]), model.feature_scale_ * model.decoder_.network.out_shift.numpy()
    )


@pytest.mark.slow
def test_one_and_four_coordinates():
    for d in (1, 4):
        random = np.random.RandomState(0)
        jacobian = random.normal(size=(6, d))
        means = random.uniform(size=(60, d)) @ jacobian.T
        statistics = BurstStatistics.from_jacobians(means, np.tile(jacobian, (60, 1, 1)))
        model = short_fit(tiny_loca(n_components=d, burst_std=1.0), statistics)
        found = user_report(model, statistics)
        facts = dict(found.sections[1].tables[0].rows)
        assert facts["M, points per burst"] == "known exactly"
        assert render(found)


@pytest.mark.slow
def test_many_bursts_make_a_small_page():
    model = short_fit(tiny_loca(burst_std=1.0), smooth_statistics()[1])
    _, many = smooth_statistics(60_000)
    html = render(user_report(model, many))
    assert len(html) < 5e6
    (data,) = [json.loads(text) for text in Reader(html).texts["script"] if text.startswith("{")]
    assert data["total"] == 60_000 and data["points"]["shape"] == [3000, 2]


# -- the command ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("report")
    model, bursts = fitted
    model.save(path / "m.safetensors")
    save_bursts(Bursts(bursts), path / "bursts.csv")
    np.save(path / "flat.npy", bursts[:, :, :2])
    (path / "labels.txt").write_text("\n".join(f"place {i}" for i in range(80)), encoding="utf-8")
    return path


def run(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments], prog_name="pyloca")


@pytest.mark.slow
def test_the_command_writes_a_page(folder, tmp_path):
    out = tmp_path / "r.html"
    options = ("-o", out, "--labels", folder / "labels.txt", "--title", "<b>Mine</b>", "--json")
    done = run("report", folder / "m.safetensors", folder / "bursts.csv", *options)
    assert done.exit_code == 4, done.output  # the page is written, and says that the fit was cut short
    facts = json.loads(done.stdout)
    assert facts["page"] == str(out) and facts["bursts"] == 80 and facts["bytes"] == out.stat().st_size
    assert done.stderr.splitlines()[-1].startswith(f"Page: {out}")
    html = out.read_text(encoding="utf-8")
    assert "<title>&lt;b&gt;Mine&lt;/b&gt;</title>" in html
    assert "place 7" in html


@pytest.mark.slow
def test_the_command_colours_by_a_file(folder, tmp_path):
    colours = tmp_path / "shifts.csv"
    colours.write_text("burst_id,shift,hour\n" + "".join(f"{i},night,{i % 24}\n" for i in range(80)))
    out = tmp_path / "r.html"
    done = run("report", folder / "m.safetensors", folder / "bursts.csv", "-o", out, "--color-by", colours)
    assert done.exit_code == 4 and out.is_file(), done.output
    (data, _) = [json.loads(t) for t in Reader(out.read_text("utf-8")).texts["script"] if t.startswith("{")]
    assert [entry["name"] for entry in data["colours"][:2]] == ["shift", "hour"]
    assert data["colours"][0]["levels"] == ["night"]
    colours.write_text("burst_id,shift\nelsewhere,night\n")
    done = run("report", folder / "m.safetensors", folder / "bursts.csv", "-o", out, "--color-by", colours)
    assert done.exit_code == 3 and "has none of the bursts" in done.stderr


def test_data_that_the_model_cannot_read(folder, tmp_path):
    done = run("report", folder / "m.safetensors", folder / "flat.npy", "-o", tmp_path / "r.html")
    assert done.exit_code == 3
    assert "has 2 features, but LOCA is expecting 3" in done.stderr
    done = run("report", folder / "m.safetensors", folder / "nothing.npy", "-o", tmp_path / "r.html")
    assert done.exit_code == 3
    (tmp_path / "labels.txt").write_text("one\n")
    options = ("-o", tmp_path / "r.html", "--labels", tmp_path / "labels.txt")
    done = run("report", folder / "m.safetensors", folder / "bursts.csv", *options)
    assert done.exit_code == 3 and "1 labels for 80 bursts" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["labels.txt"]


def test_a_file_that_is_no_model(folder, tmp_path):
    done = run("report", folder / "bursts.csv", folder / "bursts.csv", "-o", tmp_path / "r.html")
    assert done.exit_code == 5
    assert "not a pyloca model file" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_written_is_refused_first(folder, tmp_path):
    done = run("report", "nothing", "nothing", "-o", tmp_path / "no" / "r.html")
    assert done.exit_code == 2
    assert "cannot write" in done.stderr
    assert run("report", folder / "m.safetensors", folder / "bursts.csv").exit_code == 2


def test_a_page_never_replaces_data_or_model(folder, tmp_path):
    for name in ("bursts.csv", "m.safetensors"):
        before = (folder / name).read_bytes()
        done = run("report", folder / "m.safetensors", folder / "bursts.csv", "-o", folder / name)
        assert done.exit_code == 2 and "expected a .html or .htm file" in done.stderr
        assert (folder / name).read_bytes() == before


@pytest.mark.slow
def test_without_jinja_the_extra_is_named(folder, tmp_path):
    code = "import sys; sys.modules['jinja2'] = None; from pyloca.cli import main; main()"
    command = [sys.executable, "-c", code, "report", "m", "b", "-o", str(tmp_path / "r.html")]
    done = subprocess.run(command, env={**os.environ}, capture_output=True, encoding="utf-8", timeout=HANG, check=False)
    assert done.returncode == 2
    assert "pip install 'pyloca[report]'" in done.stderr
