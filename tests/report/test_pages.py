"""Pages in a real browser: Chromium opens the file, drags, types and looks; what it shows is compared with Python.

Without Chromium and its driver on the machine all of this is skipped, and the summary of pytest says so.
"""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from helpers import HANG, planar_bursts, random_model, short_fit, tiny_loca
from pyloca import LOCA, Bursts, TrustWarning, datasets
from pyloca.metrics import RigidMap
from pyloca.networks import ACTIVATIONS
from pyloca.report import Page, Section, Table, explorer, fusion_page, match_page, render, user_report

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
if not (BROWSER and DRIVER):
    pytest.skip("no chromium and chromedriver: THE PAGE TESTS WERE SKIPPED", allow_module_level=True)

pytestmark = pytest.mark.slow  # a browser is started and driven

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NUMBER = r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?"
EVIL = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    folder = tmp_path_factory.mktemp("downloads")
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.downloads = folder
    yield driver
    driver.quit()


@pytest.fixture
def open_page(chromium, tmp_path):
    """Open a page from a file, look, and see at the end that it neither complained nor asked for anything."""

    def open_(page, *, width=1000, scheme="light"):
        path = tmp_path / "page.html"
        path.write_text(page if isinstance(page, str) else render(page), encoding="utf-8")
        feature = {"name": "prefers-color-scheme", "value": scheme}
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        for kind in ("browser", "performance"):
            chromium.get_log(kind)  # forget what was before
        chromium.get(path.as_uri())
        return chromium

    yield open_
    assert chromium.get_log("browser") == []
    asked = [event["request"]["url"] for event in network(chromium, "requestWillBeSent")]
    assert [address for address in asked if not address.startswith(("data:", "blob:"))] == [
        (tmp_path / "page.html").as_uri()
    ]


def network(chromium, *kinds):
    """What the browser did on the network since the page was opened, or since this was asked last."""
    events = [json.loads(entry["message"])["message"] for entry in chromium.get_log("performance")]
    return [e["params"] for e in events if e["method"] in {f"Network.{kind}" for kind in kinds}]


@pytest.fixture(scope="module")
def mushroom():
    """A real fit, small."""
    data = datasets.mushroom(n_bursts=300, n_points=30, random_state=0)
    model = LOCA(n_components=2, burst_std=data.burst_std, hidden_layers=(20, 20), random_state=0)
    return model.fit(data.bursts), data


@pytest.fixture(scope="module")
def report(mushroom):
    model, data = mushroom
    return render(user_report(model, data.bursts, name="Mushroom"))


def play(model, means, **options):
    return Page("Play", "A page.", (Section("One", explorers=(explorer(model, means, title="Play", **options),)),))


def line(chromium, name):
    return chromium.find_element(By.CSS_SELECTOR, f"[data-line={name}]").text.replace("−", "-")


def numbers(text):
    return [float(found) for found in re.findall(NUMBER, text)]


def plane(chromium):
    """The canvas that is dragged on."""
    return chromium.find_element(By.CSS_SELECTOR, ".view canvas")


def drag(chromium, canvas, *steps):
    """Press in the middle, move by `steps`, let go."""
    chain = ActionChains(chromium, duration=50).move_to_element(canvas).click_and_hold()
    for step in steps:
        chain = chain.move_by_offset(*step)
    chain.release().perform()


def assert_decoded(chromium, model, scale):
    """The texts of the page agree with `inverse_transform` and `transform` to 1e-4 of the data."""
    z, y, back = (numbers(line(chromium, name)) for name in ("z", "y", "back"))
    expected = model.inverse_transform([z])[0]
    np.testing.assert_allclose(y, expected, atol=1e-4 * scale)
    np.testing.assert_allclose(back[: len(z)], model.transform([expected])[0], atol=1e-4)
    return np.array(z), np.array(y)


# -- dragging -----------------------------------------------------------------------------------------------------


def test_dragging_decodes_as_python_does(open_page, report, mushroom):
    model, data = mushroom
    chromium = open_page(report)
    scale = np.ptp(data.Y)
    _, first = assert_decoded(chromium, model, scale)
    canvas = plane(chromium)
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    drag(chromium, canvas, (60, -40))
    here, decoded = assert_decoded(chromium, model, scale)
    assert np.abs(decoded - first).max() > 0.01
    drag(chromium, canvas, (60, 40))
    there, _ = assert_decoded(chromium, model, scale)
    # 80 pixels down and none across: distances on the screen are distances.
    assert here[0] == pytest.approx(there[0], abs=1e-6)
    assert there[1] < here[1]
    drag(chromium, canvas, (100, 0), (-40, -40))
    moved, _ = assert_decoded(chromium, model, scale)
    np.testing.assert_allclose(moved, here, atol=1e-6)


def test_arrow_keys_move_the_point(open_page, report, mushroom):
    model, data = mushroom
    chromium = open_page(report)
    canvas = plane(chromium)
    canvas.click()
    assert chromium.switch_to.active_element == canvas
    start, _ = assert_decoded(chromium, model, np.ptp(data.Y))
    canvas.send_keys(Keys.ARROW_RIGHT)
    right, _ = assert_decoded(chromium, model, np.ptp(data.Y))
    step = right - start
    assert step[0] > 0 and step[1] == 0
    assert step[0] == pytest.approx(0.01 * np.ptp(model.embedding_, axis=0).max(), rel=1e-3)
    ActionChains(chromium).key_down(Keys.SHIFT).send_keys(Keys.ARROW_UP).key_up(Keys.SHIFT).perform()
    up, _ = assert_decoded(chromium, model, np.ptp(data.Y))
    assert up[0] == right[0]
    assert up[1] - right[1] == pytest.approx(10 * step[0], rel=1e-3)
    canvas.send_keys(Keys.ARROW_LEFT, Keys.ARROW_DOWN)
    back, _ = assert_decoded(chromium, model, np.ptp(data.Y))
    np.testing.assert_allclose(back, [start[0], up[1] - step[0]], atol=1e-6)


def test_a_finger_moves_the_point_and_not_the_page(open_page):
    chromium = open_page(play(random_model(), np.random.RandomState(0).normal(size=(50, 3))), width=360)
    frame = chromium.execute_script("return document.querySelector('.view canvas').getBoundingClientRect().toJSON()")
    x, y = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
    start = line(chromium, "z")
    for kind, dy in (("touchStart", 0), ("touchMove", 40), ("touchMove", 80), ("touchEnd", None)):
        points = [] if dy is None else [{"x": x, "y": y + dy}]
        chromium.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    assert numbers(line(chromium, "z"))[1] < numbers(start)[1]
    assert_decoded(chromium, random_model(), 1)
    assert chromium.execute_script("return window.scrollY") == 0


def test_all_of_it_can_be_reached_by_the_tab_key(open_page, report):
    chromium = open_page(report)
    body = chromium.find_element(By.TAG_NAME, "body")
    seen = set()
    for _ in range(40):
        ActionChains(chromium).send_keys(Keys.TAB).perform()
        active = chromium.switch_to.active_element
        if active == body:
            break
        outline = active.value_of_css_property("outline-style")
        seen.add((active.tag_name, outline))
    assert {"a", "canvas", "div"} <= {tag for tag, _ in seen}
    assert {outline for _, outline in seen} == {"solid"}


def test_far_from_all_bursts_the_page_says_so(open_page, report):
    chromium = open_page(report)
    assert line(chromium, "trust").startswith("inside the data")
    canvas = plane(chromium)
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    half = canvas.size["width"] // 2
    drag(chromium, canvas, (half - 5, half - 5))
    assert line(chromium, "trust").startswith("outside the data")
    heard = (By.CSS_SELECTOR, "[aria-live=polite]")
    WebDriverWait(chromium, HANG).until(
        lambda c: "outside the data" in c.find_element(*heard).get_attribute("textContent")
    )


def test_a_place_that_the_encoder_does_not_find_again_is_not_believed(open_page):
    """Random networks are no inverse of each other."""
    chromium = open_page(play(random_model(), np.random.RandomState(0).standard_normal((500, 3))))
    assert "the encoder takes this measurement elsewhere" in line(chromium, "trust")


@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_every_network_runs_in_the_page_as_in_python(activation, tail, open_page):
    random = np.random.RandomState(1)
    model = random_model(5, 3, activation=activation, skip=not tail, tail=tail)
    means, z = random.normal(size=(30, 5)), random.normal(size=(20, 3)) * 8
    chromium = open_page(play(model, means))
    decoded = chromium.execute_script("return arguments[0].map((z) => pyloca[0].decode(z))", z.tolist())
    np.testing.assert_allclose(decoded, model.inverse_transform(z), rtol=1e-10, atol=1e-10)
    encoded = chromium.execute_script("return arguments[0].map((y) => pyloca[0].encode(y))", means.tolist())
    np.testing.assert_allclose(encoded, model.transform(means), rtol=1e-10, atol=1e-10)


def test_weights_in_float32_are_good_enough(open_page):
    model = random_model(3000, 2, hidden=(70, 70))
    means = np.random.RandomState(0).normal(size=(20, 3000))
    chromium = open_page(play(model, means))
    decoded = chromium.execute_script("return pyloca[0].decode([0.3, -0.2])")
    expected = model.inverse_transform([[0.3, -0.2]])[0]
    np.testing.assert_allclose(decoded, expected, atol=1e-5 * np.ptp(expected))
    assert line(chromium, "y").startswith("3000 numbers from")


# -- other kinds --------------------------------------------------------------------------------------------------


def test_the_floor_snaps_to_what_was_measured(open_page):
    random = np.random.RandomState(0)
    model, means, places = random_model(17), random.normal(size=(200, 17)), random.uniform(0, 100, size=(200, 2))
    motion = RigidMap(
        np.array([[0.6, 0.8], [-0.8, 0.6]]), np.array([40.0, 60.0]), 1.5
    )  # no reflection: those are symmetric
    options = {
        "kind": "floor",
        "motion": motion,
        "coordinates": places,
        "walls": [[0, 0, 60, 100], [60, 0, 100, 50]],
        "unit": "px",
    }
    chromium = open_page(play(model, means, **options))
    canvas, visited = plane(chromium), set()
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    for step in [(0, 0), (80, 80), (-100, 60)]:
        drag(chromium, canvas, step)
        place, found, error = (numbers(line(chromium, name)) for name in ("place", "found", "error"))
        row = int(place[2])
        visited.add(row)
        np.testing.assert_allclose(place[:2], places[row], rtol=1e-5)
        expected = motion.apply(model.transform(means[row : row + 1]))[0]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-2)
        assert error[0] == pytest.approx(np.linalg.norm(expected - places[row]), rel=1e-4)
        assert line(chromium, "error").endswith("px")
    assert len(visited) == 3
    canvas.send_keys(*[Keys.ARROW_UP] * 30)
    assert numbers(line(chromium, "place"))[1] > place[1] + 10


def test_four_coordinates_are_chosen_and_slid(open_page):
    random = np.random.RandomState(0)
    model, means = random_model(6, 4), random.normal(size=(200, 6))
    chromium = open_page(play(model, means))
    sliders = [s for s in chromium.find_elements(By.CSS_SELECTOR, "input[type=range]") if s.is_displayed()]
    assert [s.find_element(By.XPATH, "..").text for s in sliders] == ["z2", "z3"]
    start = np.array(numbers(line(chromium, "z")))
    sliders[0].send_keys(*[Keys.ARROW_RIGHT] * 5)
    slid, _ = assert_decoded(chromium, model, 1)
    assert slid[2] > start[2]
    np.testing.assert_array_equal(np.delete(slid, 2), np.delete(start, 2))
    across = chromium.find_element(By.TAG_NAME, "select")
    across.send_keys("z3")
    assert chromium.find_element(By.CSS_SELECTOR, ".view figcaption").text.startswith("Embedding (z3 to the right")
    plane(chromium).send_keys(Keys.ARROW_RIGHT)
    moved, _ = assert_decoded(chromium, model, 1)
    assert np.flatnonzero(moved != slid).tolist() == [3]


@pytest.mark.parametrize(
    ("n_features", "d", "options"),
    [
        (1, 1, {}),
        (2, 2, {}),
        (3, 3, {}),
        (4, 1, {"names": ["a", "b", "c", "d"]}),
        (100, 2, {}),
        (12, 2, {"image_shape": (3, 4)}),
    ],
)
def test_every_kind_of_measurement_is_drawn_and_follows(n_features, d, options, open_page):
    means = np.random.RandomState(0).normal(size=(50, n_features))
    chromium = open_page(play(random_model(n_features, d), means, **options))
    look = "return Array.from(document.querySelectorAll('.view canvas'), (canvas) => canvas.toDataURL())"
    before = chromium.execute_script(look)
    assert len(before) == 2
    plane(chromium).send_keys(*[Keys.ARROW_RIGHT] * 20)
    after = chromium.execute_script(look)
    assert before[0] != after[0] and before[1] != after[1]


def test_a_cloud_in_three_dimensions_turns(open_page):
    chromium = open_page(play(random_model(3), np.random.RandomState(0).normal(size=(50, 3))))
    cloud = chromium.find_elements(By.CSS_SELECTOR, ".view canvas")[1]
    pictures = {chromium.execute_script("return arguments[0].toDataURL()", cloud)}
    point = line(chromium, "z")
    cloud.send_keys(Keys.ARROW_LEFT)
    pictures.add(chromium.execute_script("return arguments[0].toDataURL()", cloud))
    drag(chromium, cloud, (30, 30))
    pictures.add(chromium.execute_script("return arguments[0].toDataURL()", cloud))
    assert len(pictures) == 3
    assert line(chromium, "z") == point


# -- sensors, colours and the download ----------------------------------------------------------------------------

SENSORS, UNITS = ("pressure", EVIL, "U"), ("Pa", "K", "")


@pytest.fixture(scope="module")
def table():
    """Bursts of named sensors whose sizes differ by 10⁹, and a model of them."""
    X, bursts = planar_bursts(80, 20)
    ids = [f"run {i}" for i in range(78)] + ['a "quoted", id', EVIL]
    named = Bursts(bursts * [1e6, 1.0, 1e-3], ids=ids, feature_names=SENSORS, units=UNITS)
    return short_fit(tiny_loca(), named), named, X


@pytest.fixture(scope="module")
def table_page(table):
    model, bursts, X = table
    columns = {"who": ["Ann", EVIL, ""] * 26 + ["Ann", "Bob"], "x": np.where(X[:, 0] > 0.9, np.nan, X[:, 0])}
    return render(user_report(model, bursts, columns=columns, name=EVIL))


def test_features_of_any_size_run_in_the_page_as_in_python(open_page, table_page, table):
    model, bursts, _ = table
    assert model.feature_scale_[0] > 1e8 * model.feature_scale_[2]
    chromium = open_page(table_page)
    means = bursts.to_array().mean(axis=1)[:20]
    z = model.encode(means)
    encoded = chromium.execute_script("return arguments[0].map((y) => pyloca[0].encode(y))", means.tolist())
    np.testing.assert_allclose(encoded, z, rtol=1e-9, atol=1e-9)
    decoded = chromium.execute_script("return arguments[0].map((z) => pyloca[0].decode(z))", z.tolist())
    np.testing.assert_allclose(decoded, model.decode(z), rtol=1e-9)


def choose(chromium, words):
    Select(chromium.find_element(By.CSS_SELECTOR, ".colour-by")).select_by_visible_text(words)


def test_the_embedding_is_coloured_by_what_is_chosen(open_page, table_page):
    chromium = open_page(table_page)
    picker = Select(chromium.find_element(By.CSS_SELECTOR, ".colour-by"))
    names = [option.text for option in picker.options]
    quality = ["whitening loss", "reconstruction error", "trust"]
    assert names == ["one colour", "pressure (Pa)", f"{EVIL} (K)", "U", "who", "x", *quality]
    look = "return document.querySelector('.view canvas').toDataURL()"
    pictures = []
    for name in names:
        choose(chromium, name)
        pictures.append(chromium.execute_script(look))
    assert len(set(pictures)) == len(names)
    legend = chromium.find_element(By.CSS_SELECTOR, ".scale")
    choose(chromium, "who")
    levels = [level.text for level in chromium.find_elements(By.CSS_SELECTOR, ".level")]
    assert sorted(levels) == sorted([f"{EVIL} (26)", "Ann (27)", "Bob (1)", "no value (26)"])
    choose(chromium, "x")
    assert "no value (" in legend.text
    choose(chromium, "one colour")
    assert not legend.is_displayed()
    assert chromium.execute_script(look) == pictures[0]


def test_many_sensors_are_coloured_by_what_the_decoder_says(open_page):
    """Means of so many are too large for a page."""
    model, means = random_model(500), np.random.RandomState(0).normal(size=(1000, 500))
    chromium = open_page(play(model, means))
    choose(chromium, "y3 (decoded)")
    words = chromium.execute_script("return pyloca[0].colouring.words(7)").replace("−", "-")
    assert numbers(words.split(": ")[1])[0] == pytest.approx(model.decode(model.encode(means[7]))[3], rel=1e-4)


def test_a_mouse_on_a_burst_reads_its_id_and_value(open_page, table_page, table):
    _, bursts, X = table
    chromium = open_page(table_page)
    choose(chromium, "x")
    canvas = plane(chromium)
    chromium.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    lone = "return Array.from(pyloca[0].frame.toScreen(pyloca[0].shown(pyloca[0].points[arguments[0]])))"
    row = int(np.argmin(X[:, 0]))
    x, y = chromium.execute_script(lone, row)
    size = canvas.size
    ActionChains(chromium).move_to_element_with_offset(
        canvas, round(x + 1 - size["width"] / 2), round(y + 1 - size["height"] / 2)
    ).perform()
    tip = chromium.find_element(By.CSS_SELECTOR, ".tip")
    assert tip.is_displayed()
    assert tip.text.startswith(f"burst {bursts.ids[row]}, x: ")
    assert numbers(tip.text.split("x: ")[1])[0] == pytest.approx(X[row, 0], rel=1e-5)
    ActionChains(chromium).move_to_element_with_offset(canvas, 0, -size["height"] // 2 - 20).perform()
    assert not tip.is_displayed()


def test_the_embedding_is_downloaded_as_csv(open_page, table_page, table):
    """From a file, without a network; read back with all its digits."""
    model, bursts, _ = table
    chromium = open_page(table_page)
    chromium.find_element(By.CSS_SELECTOR, ".download button").click()
    file = chromium.downloads / "embedding.csv"
    WebDriverWait(chromium, HANG).until(lambda _: file.exists() and file.stat().st_size > 0)
    read = pd.read_csv(file, dtype={"burst_id": str})
    assert list(read) == ["burst_id", "z0", "z1", "trust", "loss"]
    assert read["burst_id"].tolist() == bursts.ids.tolist()
    np.testing.assert_array_equal(read[["z0", "z1"]].to_numpy(), model.embedding_)
    np.testing.assert_allclose(read["trust"], model.diagnostics_.trust)
    np.testing.assert_allclose(read["loss"], model.diagnostics_.losses)


@pytest.mark.parametrize("width", [320, 1200])
def test_a_page_of_hostile_names_fits_the_screen_and_runs_nothing(width, open_page, table_page):
    chromium = open_page(table_page, width=width)
    choose(chromium, "who")
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
    assert chromium.title == EVIL
    assert chromium.find_elements(By.CSS_SELECTOR, "[onerror]") == []
    assert EVIL in line(chromium, "y")


def test_notebooks_show_hostile_names_and_run_nothing(chromium, table, tmp_path):
    model, bursts, _ = table
    path = tmp_path / "cards.html"
    cards = [bursts._repr_html_(), model._repr_html_(), model.diagnostics_._repr_html_()]
    path.write_text(f"<meta charset=utf-8><title>cards</title>{''.join(cards)}", encoding="utf-8")
    chromium.get_log("browser")
    chromium.get(path.as_uri())
    assert chromium.title == "cards"
    assert chromium.find_element(By.TAG_NAME, "body").text.count(EVIL) == 2
    assert chromium.find_elements(By.CSS_SELECTOR, "script, img") == []
    assert chromium.find_element(By.TAG_NAME, "svg").size["width"] == 220
    assert chromium.get_log("browser") == []


# -- looks and safety ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 360, 1200])
def test_the_page_is_never_wider_than_the_screen(width, scheme, open_page, report):
    chromium = open_page(report, width=width, scheme=scheme)
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= width
    assert chromium.execute_script("return document.querySelector('.view canvas').width") <= width
    background = chromium.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
    red = numbers(background.split("(")[1])[0]
    assert (red < 60) == (scheme == "dark")


def test_long_words_and_wide_tables_stay_in_their_boxes(open_page):
    word = "x" * 300
    table = Table(tuple(f"column {i}" for i in range(30)), (tuple("0.123456" for _ in range(30)),), word)
    chromium = open_page(
        Page(word, word, (Section(word, (word,), (table,)),), {word: word}, {"a": "b"}, (word,)), width=320
    )
    assert chromium.execute_script("return document.documentElement.scrollWidth") <= 320
    box = chromium.find_element(By.CSS_SELECTOR, ".table")
    assert chromium.execute_script("return arguments[0].scrollWidth > arguments[0].clientWidth", box)


def test_the_drawing_follows_the_colour_scheme_and_the_width(open_page, report):
    chromium = open_page(report)
    look = "return document.querySelector('.view canvas').toDataURL()"
    light = chromium.execute_script(look)
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    WebDriverWait(chromium, HANG).until(lambda c: c.execute_script(look) != light)
    screen = {"width": 400, "height": 900, "deviceScaleFactor": 2, "mobile": True}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    size = "const c = document.querySelector('.view canvas'); return [c.width, c.clientWidth, c.height, c.clientHeight]"
    WebDriverWait(chromium, HANG).until(lambda c: c.execute_script(size)[0] < 800)
    width, shown, height, tall = chromium.execute_script(size)
    assert (width, height) == pytest.approx((2 * shown, 2 * tall), abs=4)


def test_a_script_in_a_label_is_shown_and_not_run(open_page):
    means = np.random.RandomState(0).normal(size=(50, 3))
    found = explorer(random_model(), means, title=EVIL, names=[EVIL] * 3, labels=[EVIL] * 50, unit=EVIL)
    table = Table((EVIL,), ((EVIL,),), EVIL)
    page = Page(EVIL, EVIL, (Section(EVIL, (EVIL,), (table,), explorers=(found,)),), {EVIL: EVIL}, warnings=(EVIL,))
    chromium = open_page(page)
    assert chromium.find_element(By.TAG_NAME, "h1").text == EVIL
    assert chromium.title == EVIL
    assert EVIL in line(chromium, "trust") and EVIL in line(chromium, "z")
    assert chromium.find_elements(By.CSS_SELECTOR, "[onerror]") == []


def test_the_policy_of_the_page_stops_what_would_slip_in(chromium, report, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(report, encoding="utf-8")
    chromium.get(path.as_uri())
    network(chromium)
    chromium.execute_script(
        """
        const script = document.createElement("script");
        script.textContent = "window.taken = 1";
        document.body.append(script);
        const image = document.createElement("img");
        image.src = "https://example.org/x.png";
        image.onerror = () => { window.stopped = (window.stopped || 0) + 1; };
        document.body.append(image);
        fetch("https://example.org/").catch(() => { window.stopped = (window.stopped || 0) + 1; });
        """
    )
    WebDriverWait(chromium, HANG).until(lambda c: c.execute_script("return window.stopped") == 2)
    assert chromium.execute_script("return window.taken") is None
    assert {event["blockedReason"] for event in network(chromium, "loadingFailed")} == {"csp"}
    complaints = [entry["message"] for entry in chromium.get_log("browser")]
    assert len(complaints) >= 3 and all("Content Security Policy" in words for words in complaints)


def test_the_page_has_landmarks_and_words_for_every_picture(open_page, report):
    chromium = open_page(report)
    for tag in ("header", "nav", "main", "footer", "h1"):
        assert len(chromium.find_elements(By.TAG_NAME, tag)) == 1, tag
    for picture in chromium.find_elements(By.CSS_SELECTOR, "img, canvas"):
        assert picture.get_attribute("alt") or picture.get_attribute("aria-label")
    for box in chromium.find_elements(By.CSS_SELECTOR, "[tabindex='0']"):
        assert box.accessible_name or box.tag_name == "figure", box.get_attribute("outerHTML")[:200]
    chromium.find_element(By.LINK_TEXT, "Training").click()
    assert chromium.execute_script("return document.getElementById(location.hash.slice(1)).textContent") == "Training"


# -- two instruments --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def matched():
    from instruments import fit, gauge, plan, sheet
    from pyloca.matching import match

    a, b = fit(sheet, plan(80, 0), 0), fit(gauge, plan(80, 1), 1)
    X = plan(400, 9)[:: 400 // 6]
    return match(a, b, (sheet(X), gauge(X)), names=("sheet", EVIL))


def test_the_maps_of_a_match_are_linked(open_page, chromium, matched):
    open_page(match_page(matched))
    for side in (0, 1):
        canvas = chromium.find_element(By.ID, f"map-{side}")
        ActionChains(chromium).move_to_element_with_offset(canvas, -60, 30).click_and_hold().move_by_offset(
            9, 4
        ).release().perform()
        numbers = [float(x) for x in re.findall(NUMBER, chromium.find_element(By.ID, "told").text)]
        here, there = numbers[:2], numbers[2:4]
        forth = matched.rigid.apply([here if side == 0 else there])[0]
        back = there if side == 0 else here
        assert np.linalg.norm(forth - back) < 0.2  # the rigid map, and what anchors tell beyond it
    canvas.send_keys(Keys.ARROW_RIGHT)
    moved = [float(x) for x in re.findall(NUMBER, chromium.find_element(By.ID, "told").text)]
    assert moved[0] > here[0]
    assert len(chromium.find_elements(By.CSS_SELECTOR, "#sensors tr")) == 3


def test_the_maps_of_a_refused_match_are_not_linked(open_page, chromium, matched):
    none = tuple(replace(one, possible=False) for one in matched.candidates)
    page = match_page(replace(matched, chosen=None, candidates=none, warnings=("'sheet' is upside down",)))
    open_page(page)
    assert '"linked": false' in page and "'Sheet'" not in chromium.find_element(By.CLASS_NAME, "warning").text
    assert "not matched" in chromium.find_element(By.ID, "told").text
    assert not chromium.find_element(By.CLASS_NAME, "table").is_displayed()


@pytest.fixture(scope="module")
def fused():
    """Three instruments, of which one has no anchors."""
    from instruments import fit, gauge, plan, sheet
    from pyloca.matching import fuse

    X = plan(240, 0)
    low, high = X[X[:, 1] < 2], X[X[:, 1] > 1]
    models = {"south": fit(sheet, low, 0), EVIL: fit(gauge, high, 1), "alone": fit(sheet, plan(80, 2), 2)}
    both = low[low[:, 1] > 1.1][:8]
    with pytest.warns(TrustWarning, match="no anchors connect 'alone'"):
        return fuse(models, {("south", EVIL): (sheet(both), gauge(both))})


def test_the_maps_of_a_fusion_are_linked(open_page, chromium, fused):
    """One point on all maps; what the page says of it is what Python says."""
    open_page(fusion_page(fused))
    assert len(chromium.find_elements(By.CSS_SELECTOR, ".maps canvas")) == 2
    assert "No anchors connect" in chromium.find_element(By.CSS_SELECTOR, ".warning").text
    told = chromium.find_element(By.ID, "told")
    places = [fused.joint.common(fused.models[name].embedding_, i) for i, name in enumerate(fused.connected)]
    reading = fused.models["south"].decode(fused.models["south"].embedding_)
    said = set()
    for side, (x, y) in ((0, (0, -150)), (0, (0, 150)), (1, (0, -150)), (1, (0, 0)), (1, (0, 150))):
        canvas = chromium.find_element(By.ID, f"map-{side}")
        drag(chromium, canvas, (x, y))
        here = [float(number) for number in re.findall(NUMBER, told.text)[:2]]
        apart = [np.linalg.norm(of_one - here, axis=1) for of_one in places]
        names = [name for name, distance in zip(fused.connected, apart, strict=True) if distance.min() < 0.08]
        assert all(name in told.text for name in names)  # they have been there
        far = [name for name, distance in zip(fused.connected, apart, strict=True) if distance.min() > 0.6]
        assert not any(name in told.text for name in far)
        rows = chromium.find_elements(By.CSS_SELECTOR, "#sensors tr")
        if "south" in told.text:
            values = [float(row.find_elements(By.TAG_NAME, "td")[2].text) for row in rows[:3]]
            np.testing.assert_allclose(values, reading[apart[0].argmin()], rtol=1e-3, atol=1e-3)
        said.add(("south" in told.text, EVIL in told.text))
    assert len(said) > 1
    canvas.send_keys(Keys.ARROW_RIGHT)
    assert float(re.findall(NUMBER, told.text)[0]) > here[0]
    assert chromium.title != "taken"
