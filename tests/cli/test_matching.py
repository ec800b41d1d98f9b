"""``pyloca match``, ``fuse``, ``recalibrate`` and ``transform --from --to``."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from instruments import SIGMA, fit, gauge, measured, plan, sheet
from pyloca import LOCA
from pyloca.bursts import Bursts
from pyloca.cli import cli
from pyloca.cli._anchors import read_ids, read_named_ids
from pyloca.errors import BurstError
from pyloca.matching import Fusion, Match

STATES = plan(150, 0)


def bursts(measure, states, seed, names):
    data = measured(measure, states, seed)
    return Bursts(data, ids=[f"{i}" for i in range(len(states))], feature_names=names)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two model files whose first ten bursts are of the same states, and tables of readings."""
    path = tmp_path_factory.mktemp("cli")
    options = {"burst_std": SIGMA, "hidden_layers": (10,), "random_state": 0}
    other = np.concatenate([STATES[:10], plan(140, 1)])
    for name, measure, states, sensors in (
        ("sheet", sheet, STATES, ["x", "y", "z"]),
        ("gauge", gauge, other, ["left", "right"]),
    ):
        LOCA(**options).fit(bursts(measure, states, 1, sensors)).save(path / f"{name}.safetensors")
        write(path / f"{name}.csv", sensors, measure(plan(20, 9)))
    write(path / "pairs.csv", ["sheet", "gauge"], [(i, i) for i in range(10)])
    return path


def write(path, header, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(np.asarray(rows).tolist())


def run(*words, code=0):
    done = CliRunner().invoke(cli, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture(scope="module")
def matched(folder):
    path = folder / "match.safetensors"
    models = folder / "sheet.safetensors", folder / "gauge.safetensors"
    done = run("match", *models, "--anchors", folder / "pairs.csv", "-o", path, "--json")
    facts = json.loads(done.stdout)
    assert facts["evidence"] == "anchors" and facts["chosen"] == 0 and "10 of 10 anchors" in done.stderr
    return path


def expected(path):
    found = Match.load(path)
    return found.b.decode(found.joint.carried(found.a.encode(sheet(plan(20, 9))), 0, 1)[0])


def test_transform_from_to(folder, matched):
    done = run("transform", matched, folder / "sheet.csv", "--from", "sheet", "--to", "gauge", "--trust", "--errors")
    rows = list(csv.reader(done.stdout.splitlines()))
    assert rows[0] == ["left", "right", "left_error", "right_error", "trust"]
    found = np.array(rows[1:], dtype=float)
    np.testing.assert_allclose(found[:, :2], expected(matched), rtol=1e-9)
    assert np.sqrt(np.square(found[:, :2] - gauge(plan(20, 9))).sum(axis=1).mean()) < 120  # of 3,000


def test_transform_without_to_gives_common_coordinates(folder, matched):
    ways = [
        run("transform", matched, folder / f"{name}.csv", "--from", name).stdout.splitlines()
        for name in ("sheet", "gauge")
    ]
    assert ways[0][0] == ways[1][0] == "z0,z1"
    one, other = (np.array([row.split(",") for row in way[1:]], dtype=float) for way in ways)
    assert np.sqrt(np.square(one - other).sum(axis=1).mean()) < 0.1


def test_report_of_a_match(folder, matched, tmp_path):
    page = tmp_path / "match.html"
    run("report", matched, "-o", page, "--title", "<b>")
    text = page.read_text(encoding="utf-8")
    assert text.count("<canvas") == 2 and "<b>" not in text and "https://" not in text
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    told = data["sides"][0]["predicted"]
    assert told["sensors"] == ["left", "right"] and len(told["values"]) == len(data["sides"][0]["places"])
    assert "takes no DATA" in run("report", matched, folder / "sheet.csv", "-o", page, code=2).stderr
    assert "Missing argument" in run("report", folder / "sheet.safetensors", "-o", page, code=2).stderr


def test_readings_are_anchors(folder, tmp_path):
    models = folder / "sheet.safetensors", folder / "gauge.safetensors"
    readings = folder / "sheet.csv", folder / "gauge.csv"
    run("match", *models, "--readings", *readings, "-o", tmp_path / "m.safetensors")
    assert len(Match.load(tmp_path / "m.safetensors").used) == 20


def test_fuse(folder, tmp_path):
    write(tmp_path / "pairs.csv", ["a", "i", "b", "j"], [("sheet", i, "gauge", i) for i in range(10)])
    models = folder / "sheet.safetensors", folder / "gauge.safetensors"
    done = run("fuse", *models, "--anchors", tmp_path / "pairs.csv", "-o", tmp_path / "f.safetensors", "--json")
    assert json.loads(done.stdout)["connected"] == ["sheet", "gauge"]
    run("transform", tmp_path / "f.safetensors", folder / "gauge.csv", "--from", "gauge", "--to", "sheet")
    found = Fusion.load(tmp_path / "f.safetensors")
    code = 4 if found.warnings else 0
    done = run("report", tmp_path / "f.safetensors", "-o", tmp_path / "f.html", "--json", code=code)
    assert json.loads(done.stdout)["connected"] == ["sheet", "gauge"]
    assert "<h1>sheet, gauge</h1>" in (tmp_path / "f.html").read_text(encoding="utf-8")
    data = folder / "sheet.csv"
    assert "takes no DATA" in run("report", tmp_path / "f.safetensors", data, "-o", tmp_path / "g.html", code=2).stderr
    np.save(tmp_path / "sheet.npy", measured(sheet, STATES, 1))
    given = "--anchors", tmp_path / "pairs.csv", "--bursts", f"sheet={tmp_path / 'sheet.npy'}"
    run("fuse", *models, *given, "-o", tmp_path / "g.safetensors")
    assert (tmp_path / "g.safetensors").read_bytes() != (tmp_path / "f.safetensors").read_bytes()
    wrong = "--bursts", "x=y", "-o", tmp_path / "h.safetensors"
    done = run("fuse", *models, "--anchors", tmp_path / "pairs.csv", *wrong, code=2)
    assert "expected NAME=FILE" in done.stderr
    write(tmp_path / "wrong.csv", ["a", "i", "b", "j"], [("sheet", 0, "radio", 0)])
    done = run("fuse", *models, "--anchors", tmp_path / "wrong.csv", "-o", tmp_path / "g.safetensors", code=3)
    assert "line 2" in done.stderr and "among sheet, gauge" in done.stderr


def test_recalibrate(folder, tmp_path):
    states = plan(150, 41)
    clouds = states[:, None] + SIGMA * np.random.RandomState(41).standard_normal((150, 30, 2))
    readings = sheet(clouds.reshape(-1, 2)) * [1.1, 1, 1]
    rows = [[f"r{i // 30}", *row] for i, row in enumerate(readings.tolist())]
    write(tmp_path / "today.csv", ["burst_id", "x", "y", "z"], np.array(rows, dtype=object))
    path = tmp_path / "new.safetensors"
    call = ("recalibrate", folder / "sheet.safetensors", tmp_path / "today.csv", "-o", path)
    drift = tmp_path / "drift.safetensors"
    done = run(*call, "--json", "--match", drift)
    facts = json.loads(done.stdout)
    assert facts["drifted"] and not facts["old_model_kept"] and "more than noise" in done.stderr
    new, old = LOCA.load(path), LOCA.load(folder / "sheet.safetensors")
    truth = old.encode(sheet(states))
    moved = np.abs(new.encode(sheet(states) * [1.1, 1, 1]) - truth)
    assert moved.max() < 0.4
    write(tmp_path / "readings.csv", ["x", "y", "z"], (sheet(states) * [1.1, 1, 1]).tolist())
    done = run("transform", drift, tmp_path / "readings.csv", "--from", "new")
    told = np.loadtxt(done.stdout.splitlines()[1:], delimiter=",")
    assert np.square(told - truth).sum() <= 1.05 * np.square(moved).sum()  # the match knows displacements as well


def test_recalibrate_refuses_a_candidate_that_is_not_there(folder, tmp_path):
    states = plan(60, 42)
    rows = [[f"r{i}", *row] for i, burst in enumerate(measured(sheet, states, 42)) for row in burst.tolist()]
    write(tmp_path / "today.csv", ["burst_id", "x", "y", "z"], np.array(rows, dtype=object))
    path = tmp_path / "new.safetensors"
    call = ("recalibrate", folder / "sheet.safetensors", tmp_path / "today.csv", "-o", path)
    assert "candidate=99" in run(*call, "--choose", 99, code=2).stderr
    assert not path.exists()


def test_wrong_usage_is_named(folder, matched, tmp_path):
    a, b = folder / "sheet.safetensors", folder / "gauge.safetensors"
    out = tmp_path / "m.safetensors"
    assert "two instruments are called 'sheet'" in run("match", a, a, "-o", out, code=2).stderr
    done = run("match", a, a, "--names", "x,y", "-o", out, code=2)
    assert "instruments 'x' and 'y' are the same model" in done.stderr
    assert "--names has 1" in run("match", a, b, "--names", "x", "-o", out, code=2).stderr
    assert "say which instrument" in run("transform", matched, folder / "sheet.csv", code=2).stderr
    done = run("transform", matched, folder / "sheet.csv", "--from", "radio", code=2)
    assert "there are sheet, gauge" in done.stderr
    assert "file that match or fuse wrote" in run("transform", a, folder / "sheet.csv", "--to", "gauge", code=2).stderr
    assert (
        "--errors needs --to"
        in run("transform", matched, folder / "sheet.csv", "--from", "sheet", "--errors", code=2).stderr
    )
    write(tmp_path / "pairs.csv", ["a", "b"], [(0, 0), (1, 999), (2, 2)])
    done = run("match", a, b, "--anchors", tmp_path / "pairs.csv", "-o", out, code=3)
    assert "line 3: the second instrument has no burst '999'" in done.stderr
    assert not out.exists()
    write(tmp_path / "pairs.csv", ["a", "b"], [(0, 0), (1, 1), (2, 2), (1, 3)])
    done = run("match", a, b, "--anchors", tmp_path / "pairs.csv", "-o", out, code=3)
    assert (
        "pairs.csv: line 5: burst '1' of the first instrument is an anchor twice, the first time in line 3"
        in done.stderr
    )
    write(tmp_path / "pairs.csv", ["a", "i", "b", "j"], [("sheet", 0, "gauge", 0), ("gauge", 1, "sheet", 0)])
    done = run("fuse", a, b, "--anchors", tmp_path / "pairs.csv", "-o", out, code=3)
    assert "pairs.csv: line 3: burst '0' of instrument 'sheet' is an anchor twice" in done.stderr


def test_exchanged_columns_of_ids_are_named(tmp_path):
    named = [SimpleNamespace(burst_ids_=np.array([f"{letter}{i}" for i in range(3)])) for letter in "AB"]
    write(tmp_path / "pairs.csv", ["light", "radio"], [("B0", "A0"), ("B1", "A1")])
    with pytest.raises(BurstError, match=r"line 2: the first instrument has no burst 'B0'. .* columns, or the models"):
        read_ids(tmp_path / "pairs.csv", *named)
    write(tmp_path / "named.csv", ["a", "i", "b", "j"], [("light", "A0", "radio", "B0")])
    with pytest.raises(BurstError, match=r"'light' has no burst 'A0'. 'radio' has: are the columns exchanged"):
        read_named_ids(tmp_path / "named.csv", dict(zip(("radio", "light"), named, strict=True)))


def test_a_third_column_is_a_weight_only_by_name(folder, tmp_path):
    """Positions beside the ids would weigh the anchors in silence."""
    models, table = (folder / "sheet.safetensors", folder / "gauge.safetensors"), tmp_path / "pairs.csv"
    rows = [(i, i, 1 + i % 2) for i in range(10)]
    write(table, ["sheet", "gauge", "x_m"], rows)
    done = run("match", *models, "--anchors", table, "-o", tmp_path / "m.safetensors", code=3)
    assert "the third column is 'x_m'" in done.stderr and "named 'weight'" in done.stderr
    write(table, ["sheet", "gauge", "weight"], rows)
    run("match", *models, "--anchors", table, "-o", tmp_path / "m.safetensors")
    write(table, ["sheet", "gauge", "weight"], [*rows[:3], (3, 3, -1)])
    done = run("match", *models, "--anchors", table, "-o", tmp_path / "m.safetensors", code=3)
    assert "line 5: the weight is '-1'; expected a positive number" in done.stderr


def test_no_answer_has_an_exit_code(folder, tmp_path):
    square = fit(gauge, np.random.RandomState(3).uniform(0, 1.7, size=(150, 2)), 3)
    square.save(tmp_path / "square.safetensors")
    out = tmp_path / "m.safetensors"
    done = run("match", folder / "sheet.safetensors", tmp_path / "square.safetensors", "-o", out, code=4)
    assert "NO ANSWER" in done.stderr and out.exists()
    done = run("transform", out, folder / "sheet.csv", "--from", "sheet", "--to", "square", code=4)
    assert "anchors would tell" in done.stderr
    run("report", out, "-o", tmp_path / "m.html", code=4)
    assert "Read this first" in (tmp_path / "m.html").read_text(encoding="utf-8")


def test_readings_may_be_bursts(folder, tmp_path):
    """Rows of one burst are one anchor, and names that are the same in both tables say which belong together."""
    states, models = plan(8, 9), (folder / "sheet.safetensors", folder / "gauge.safetensors")
    order = [3, 1, 2, 0, 7, 6, 5, 4]
    for name, measure, sensors, rows in (
        ("sheet", sheet, ["x", "y", "z"], range(8)),
        ("gauge", gauge, ["left", "right"], order),
    ):
        table = [[f"p{i}", *row] for i in rows for row in measured(measure, states[[i]], i)[0].tolist()]
        write(tmp_path / f"{name}.csv", ["burst_id", *sensors], np.array(table, dtype=object))
    readings = tmp_path / "sheet.csv", tmp_path / "gauge.csv"
    done = run("match", *models, "--readings", *readings, "-o", tmp_path / "m.safetensors")
    assert "paired by their names" in done.stderr and "8 of 8 anchors" in done.stderr
    done = run(
        "match", *models, "--readings", readings[0], folder / "gauge.csv", "-o", tmp_path / "n.safetensors", code=3
    )
    assert "has 8 bursts and" in done.stderr and "has 20 rows" in done.stderr


def test_a_refusal_is_said_once(folder, tmp_path):
    corners = np.array([[0.1, 0.2], [0.7, 0.2], [0.7, 2.6], [0.1, 2.6]])
    write(tmp_path / "sheet.csv", ["x", "y", "z"], sheet(corners))
    write(tmp_path / "gauge.csv", ["left", "right"], gauge(corners[[1, 0, 3, 2]]))
    models, out = (folder / "sheet.safetensors", folder / "gauge.safetensors"), tmp_path / "m.safetensors"
    call = ("match", *models, "--readings", tmp_path / "sheet.csv", tmp_path / "gauge.csv", "-o", out)
    told = " ".join(run(*call, code=4).stderr.split())
    assert told.count("shapes contradict the anchors") == 1 and ".." not in told and "--choose 0" in told
    assert "candidate 0" in run(*call, "--choose", 0, code=4).stderr


def test_fuse_says_how_many_anchors_are_missing(folder, tmp_path):
    part = fit(gauge, plan(400, 6)[plan(400, 6)[:, 1] < 1.5][:120], 6)
    part.save(tmp_path / "part.safetensors")
    write(tmp_path / "pairs.csv", ["a", "i", "b", "j"], [("sheet", 0, "part", 0), ("sheet", 1, "part", 1)])
    models = folder / "sheet.safetensors", tmp_path / "part.safetensors"
    done = run("fuse", *models, "--anchors", tmp_path / "pairs.csv", "-o", tmp_path / "f.safetensors", code=4)
    assert "anchors would tell: 1 more than the 2 given" in " ".join(done.stderr.split())
