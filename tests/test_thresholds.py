"""One table of the numbers that decide verdicts: one name, one value, one idea; and what was seen of them."""

import ast
import json
import threading
from pathlib import Path

import house
import numpy as np
import pytest

from helpers import planar_bursts
from pyloca import thresholds
from pyloca.bursts import Bursts
from pyloca.findings import Diagnostics, Neighborhood
from pyloca.geometry import BurstStatistics
from pyloca.inspection import inspect_bursts
from pyloca.thresholds import LARGE, TABLE, Threshold, recording

ROOT = Path(__file__).parent.parent
SEEN = json.loads((ROOT / "benchmarks" / "results" / "thresholds.json").read_text(encoding="utf-8"))
THRESHOLDS = [row for row in TABLE if isinstance(row, Threshold)]
JUDGING = ("checks", "findings", "geometry", "inspection", "selection")
# Constants of these rooms that decide nothing: sizes of chunks, simulations, lists and tables.
NOT_VERDICTS = {
    "KEY",
    "ROWS",
    "VERSION",
    "UNLIKE",
    "CHUNK",
    "BLOCK",
    "HEAVIEST",
    "SIMULATED",
    "SHOWN",
    "BOOTSTRAPS",
    "MORE",
    "SLAB",
    "EPS",
    "LARGEST",
}
# geometry/_spikes.py, _far_points.py: how much is looked at, and how an iteration ends
NOT_VERDICTS |= {
    "AT_LEAST",
    "LOOKED_AT",
    "PAIRS",
    "STEPS",
    "ITERATIONS",
    "CAUCHY_STEPS",
    "SETTLED",
    "GAUSSIAN_MAD",
    "VALUES",
    "TINY",
    "EQUAL",
}
# geometry/_apart.py, _noise*.py, _local.py, _regression.py: how much is looked at, how an iteration ends, what keeps
# numbers finite
NOT_VERDICTS |= {
    "JOINED",
    "BURSTS",
    "NUMBERS",
    "ROUNDS",
    "MOST_SENSORS",
    "FOLLOWED",
    "FLOOR",
    "LEAST_SIGNAL",
    # how much a linear reduction may leave out, and when it pays
    "FEWEST_FEATURES",
    "LEFT_MEANS",
    "LEFT_TANGENTS",
    "MOST_BURSTS",
    "MOST_KEPT",
    "SAMPLED_BURSTS",
    "TREE",
    "WIDE",
    # which bursts bend, and what their tails tell: parts of an estimate
    "BENDS",
    "FLAT",
    "LONG",
    "FEWEST_POINTS",
    "LEAST_TAILS",
    "MOST_TAILS",
    "OUTLYING",
    "OWN_UNITS",
    "OWN_UNITS_PER_DIMENSION",
    "SHORT_TAILS",
    "SIMULATED",
}
NOT_VERDICTS |= {
    "SAME_DIRECTION",
    "PRIOR_FREEDOM",
    "MOST_POINTS",
    "ROUNDING",
    "LESS",
    "DRAWS",
    "NEAR",
    "KEPT",
    "BETTER",
    "ALIKE",
    "TRIED",
}
# geometry/_factor_analysis.py, _noise_places.py, _noise_static.py: the same
NOT_VERDICTS |= {
    "QUICK",
    "SLOW",
    "MOST",
    "FEW_SENSORS",
    "HIDDEN_SHARE",
    "SLOPES",
    "LINEAR",
    "FEWEST",
    "STIFF",
    "LEAST",
    "PLACES",
    "PER_SENSOR",
}
# geometry/_scatter.py, _scatter_rule.py: how the shape of heavy-tailed bursts is estimated, and when that pays
NOT_VERDICTS |= {
    "DEGREES",
    "EVEN",
    "FAMILY_ERROR",
    "FARTHEST",
    "FARTHEST_PART",
    "FIRST_LOOK",
    "GAIN",
    "LAWS",
    "LEAST_EXPONENT",
    "LONGEST",
    "LOOKED_AT",
    "NEIGHBORS",
    "SHIFTS",
}
# geometry/_sheets.py: how neighbours are looked up
NOT_VERDICTS |= {"BRUTE", "CANDIDATES", "AVERAGED"}
# findings/_ahead.py, _rounded.py: which steps are from one part of a route to another; how long a list is
NOT_VERDICTS |= {"JUMP", "NAMED"}


def sources():
    return {
        path: ast.parse(path.read_text(encoding="utf-8")) for path in house.modules() if path.name != "thresholds.py"
    }


def numbers_in(value, kinds):
    """Whether an expression is made of numbers alone, or of a tuple of them."""
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return all(isinstance(p, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Call, ast.Attribute)) for p in parts) and any(
        isinstance(node, ast.Constant) and isinstance(node.value, kinds) and not isinstance(node.value, bool)
        for p in parts
        for node in ast.walk(p)
    )


def constants(tree, kinds=(int, float)):
    """Names in capitals that a module gives a number."""
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and numbers_in(node.value, kinds):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [name for target in targets for name in getattr(target, "elts", [target])]
            yield from (name.id for name in names if isinstance(name, ast.Name) and name.id.isupper())


# -- the table ----------------------------------------------------------------------------------------------------


def test_names_are_unique_and_say_what_they_are():
    names = [row.name for row in TABLE]
    assert len(set(names)) == len(names)
    for row in TABLE:
        value = getattr(thresholds, row.name)
        assert value is row if isinstance(row, Threshold) else value == row.value
        assert row.compared_with and row.findings if isinstance(row, Threshold) else row.meaning


def test_every_row_is_used():
    used = {
        node.id
        for tree in sources().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id.isupper()
    }
    assert {row.name for row in TABLE} - used == set()


def compared(tree):
    """Names that are compared with something."""
    sides = (node for node in ast.walk(tree) if isinstance(node, ast.Compare))
    return {name.id for side in sides for name in ast.walk(side) if isinstance(name, ast.Name)}


def test_no_other_module_has_numbers_that_decide():
    for path, tree in sources().items():
        if house.top(path) in JUDGING:
            assert set(constants(tree)) - NOT_VERDICTS == set(), path
        elif house.top(path) == "report":  # integers are sizes of what a page can hold
            assert set(constants(tree, float)) & compared(tree) == set(), path


def test_such_a_number_would_be_seen():
    tree = ast.parse("FEW = 30\nBENT, OFF = 0.1, 0.2\nSLAB = 1 << 18\nNAMES = ('a', 'b')\nlow = 3\nLEVEL: float = -0.5")
    assert list(constants(tree)) == ["FEW", "BENT", "OFF", "SLAB", "LEVEL"]
    assert list(constants(tree, float)) == ["BENT", "OFF", "LEVEL"]
    assert compared(ast.parse("if x > 2 * FEW and BENT:\n    pass")) == {"x", "FEW"}


def test_findings_that_are_decided_have_names_that_are_given():
    given = {
        node.args[0].value
        for tree in sources().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Finding" and isinstance(node.args[0], ast.Constant)
    }
    assert {name for row in THRESHOLDS for name in row.findings} <= given


# -- comparing ----------------------------------------------------------------------------------------------------


def test_sides():
    above, below = (Threshold("NAME", 0.5, "a part", ("finding",), side) for side in ("above", "below"))
    assert [above.passed(x) for x in (0.4, 0.5, 0.6, np.inf, np.nan)] == [False, True, True, True, False]
    assert [below.passed(x) for x in (0.4, 0.5, 0.6, -np.inf, np.nan)] == [True, True, False, True, False]


def test_nothing_is_recorded_unless_asked():
    with recording() as seen:
        pass
    LARGE.passed(0.1)
    assert seen == {}


def test_what_is_recorded():
    with recording() as outer:
        LARGE.passed(np.float64(0.1))
        with recording() as inner:
            LARGE.passed(0.2)
        LARGE.passed(0.3)
        other = threading.Thread(target=LARGE.passed, args=(0.4,))
        other.start()
        other.join()
    assert outer == {"LARGE": [0.1, 0.3]} and inner == {"LARGE": [0.2]}
    assert type(outer["LARGE"][0]) is float


def test_recording_ends_with_an_error():
    with pytest.raises(KeyError), recording() as seen:
        raise KeyError
    LARGE.passed(0.1)
    assert seen == {}


# -- inspect and fit ask the same -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("m", "rough"), [(4, True), (5, True), (6, False), (9, False)])
def test_short_bursts_are_remarked_where_a_fit_would(m, rough):
    remarks = inspect_bursts(planar_bursts(200, m)[1], intrinsic_dim=2).remarks
    assert any("points tells its size" in remark for remark in remarks) == rough


def test_noise_is_remarked_in_the_words_of_the_fit():
    bursts = planar_bursts(200, 60)[1]
    lifted = bursts @ np.linalg.qr(np.random.RandomState(1).standard_normal((8, 3)))[0].T
    noisy = lifted + 0.004 * np.random.RandomState(0).standard_normal(lifted.shape)
    assert any("noise of the instrument is" in remark for remark in inspect_bursts(noisy, intrinsic_dim=2).remarks)
    assert not inspect_bursts(lifted).remarks


def test_few_bursts_are_not_compared_with_neighbours():
    """Sizes that jump at random: a finding with enough bursts, with or without a fit, and none with fewer."""
    latent, bursts = planar_bursts(200, 40)
    middle = bursts.mean(axis=1, keepdims=True)
    uneven = middle + np.where(latent[:, :1, None] > np.median(latent[:, 0]), 3.0, 1.0) * (bursts - middle)
    for n, seen in ((200, True), (60, True), (thresholds.FEW - 1, False)):
        near = Neighborhood(BurstStatistics.from_bursts(Bursts(uneven[:n]), 2))
        assert (near.uneven_size() is not None) == seen
        said = any("not of one size" in remark for remark in inspect_bursts(uneven[:n], intrinsic_dim=2).remarks)
        assert said == seen


@pytest.mark.parametrize(("n", "missing"), [(29, ["folds", "crossing"]), (99, ["crossing"]), (100, [])])
def test_the_page_says_what_was_not_looked_at(n, missing):
    page = str(Diagnostics(0.1, 0.1, 0.1, (1.0, 1.0), losses=np.zeros(n)))
    assert [word for word in ("folds", "crossing") if word in page] == missing


# -- what was seen ------------------------------------------------------------------------------------------------


def test_every_threshold_was_measured():
    assert set(SEEN["rows"]) == {row.name for row in THRESHOLDS}
    assert len(SEEN["seed_list"]) >= 2


@pytest.mark.parametrize("row", THRESHOLDS, ids=lambda row: row.name)
def test_thresholds_lie_between_clean_data_and_faults(row):
    """Or the table says what else has a say."""
    clean, fault = SEEN["rows"][row.name]["clean"], SEEN["rows"][row.name]["fault"]
    between = (clean is None or not row.passed(clean["number"])) and (fault is None or row.passed(fault["number"]))
    assert between or row.note


def test_clean_sets_are_quiet_and_faults_are_named():
    for case, facts in SEEN["cases"].items():
        expected = case.partition(": ")[0]
        assert set(facts["called"]) == {"" if expected == "clean" else expected}, case
        assert facts.get("remarks", []) == [], case
