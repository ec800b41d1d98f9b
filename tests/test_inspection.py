"""What `inspect` refuses `fit` refuses, by the same code: same exception, same words."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from helpers import linear_map, planar_bursts, short_fit
from pyloca import LOCA, BurstError
from pyloca.bursts import Bursts
from pyloca.cli import cli
from pyloca.findings import no_displacement
from pyloca.inspection import inspect_bursts, outline


def readings(seed=0, n=120, m=20, dim=8):
    """Radio readings at rest: n places, m readings each, noise of 2 to 6 dB, integers, floor at −100."""
    random = np.random.RandomState(seed)
    X, stations = random.uniform(0, 10, size=(n, 2)), random.uniform(-2, 12, size=(dim, 2))
    level = -45 - 30 * np.log10(np.linalg.norm(X[:, None] - stations, axis=2) + 0.5)
    noise = random.uniform(2, 6, size=dim) * random.standard_normal((n, m, dim))
    return np.maximum(np.round(level[:, None] + noise), -100)


def planar(**options):
    return planar_bursts(60, 20, **options)[1]


def apart():
    points = planar()
    points[30:] += 50
    return points


def with_value(value):
    points = planar()
    points[7, 3, 1] = value
    return points


def same_points():
    points = planar()
    points[4] = points[4, 0]
    return points


def flat_burst():
    points = planar()
    points[9] = points[9].mean(axis=0) + np.linspace(-1, 1, 20)[:, None] * [0.01, 0, 0]
    return points


def noisy(size, dim=10):
    random = np.random.RandomState(1)
    points = random.uniform(size=(120, 1, 2)) + 0.01 * random.standard_normal((120, 30, 2))
    return points @ linear_map(2, dim, 0) + size * random.standard_normal((120, 30, dim))


# data, parameters, a word of the refusal
BAD = {
    "too few bursts": (lambda: planar()[:9], {}, "at least 10"),
    "too few to train on": (lambda: planar()[:10], {"n_components": 9}, "can ask for"),
    "NaN": (lambda: with_value(np.nan), {}, "1 cell in burst 7"),
    "overflow": (lambda: with_value(1e200), {}, "overflow"),
    "one reading repeated": (same_points, {"max_strays": 0}, "no spread"),
    "a flat burst": (flat_burst, {"intrinsic_dim": 2, "max_strays": 0}, "spans only 1"),
    "short bursts": (lambda: planar()[:, :2], {"intrinsic_dim": 2}, "need at least 3"),
    "too short to tell k": (lambda: noisy(0)[:, :3, :6], {"n_components": 5}, "unknown"),
    "pieces": (apart, {}, "fall into 2 pieces"),
    "pieces, d > k": (apart, {"n_components": 3}, "fall into 2 pieces"),
    "d < k": (planar, {"n_components": 1, "intrinsic_dim": 2}, "cannot hold"),
    "d is huge": (planar, {"n_components": 40}, "can ask for"),
    "k > D": (planar, {"intrinsic_dim": 4}, "from 1 to D = 3"),
    "noise hides the bursts": (lambda: noisy(0.03), {"n_components": 2}, "measurement noise hides the bursts"),
    "no noise to estimate": (lambda: planar()[:, :, :2], {"measurement_noise": "estimate"}, "cannot be estimated"),
    "more noise than burst": (planar, {"measurement_noise": 1.0}, "noise hides the bursts"),
    "readings at rest": (readings, {"n_components": 2}, "do not move towards"),
    "wrong scale": (planar, {"feature_scale": [1.0, 2.0]}, "one number per feature"),
    "wrong parameter": (planar, {"intrinsic_dim": 0}, "must be an integer"),
}


def verdict_of_inspect(data, parameters):
    try:
        found = inspect_bursts(data, **parameters)
    except ValueError as error:
        return type(error), str(error)
    assert not found.refusal or found.remarks[0] == found.refusal
    return (BurstError, found.refusal) if found.refusal else (None, "")


def verdict_of_fit(data, parameters):
    try:
        LOCA(**({"n_components": "auto"} | parameters), random_state=0).fit(data)
    except ValueError as error:
        return type(error), str(error)
    return None, ""


@pytest.mark.parametrize("name", BAD)
def test_inspect_and_fit_agree(name):
    make, parameters, word = BAD[name]
    data = make()
    seen = verdict_of_inspect(data, parameters)
    assert seen == verdict_of_fit(data, parameters)
    assert seen[0] in (BurstError, ValueError) and word in seen[1]


@pytest.mark.parametrize("parameters", [{}, {"n_components": 2}, {"n_components": 3, "feature_scale": None}])
def test_good_bursts_are_not_refused(parameters):
    assert inspect_bursts(planar(), **parameters).refusal == ""


def test_pieces_are_refused_whatever_is_held_out():
    """One burst apart is refused also when it happens to be held out of the training."""
    points = planar()
    points[11] += 50
    messages = set()
    for seed in range(8):
        with pytest.raises(BurstError) as refused:
            LOCA(2, max_strays=0, random_state=seed).fit(points)
        messages.add(str(refused.value))
    assert messages == {inspect_bursts(points, n_components=2, max_strays=0).refusal}


# -- readings at one place again and again ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", [{}, {"dim": 4, "m": 30}, {"dim": 20}, {"n": 80, "m": 12}])
def test_readings_at_rest_are_named(seed, options):
    found = no_displacement(Bursts(readings(seed, **options)))
    assert found is not None and found.name == "no_displacement" and "from_positions" in found.message


def test_sensors_that_are_silent_at_some_places_do_not_count():
    points = readings(dim=12)
    found = no_displacement(Bursts(np.maximum(points, -75)))  # a third of all bursts are silent in some sensor
    assert found is not None


def shuffled(points):
    means = points.mean(axis=1, keepdims=True)
    return means + (points - means)[np.random.RandomState(3).permutation(len(points))]


@pytest.mark.parametrize("size", [0, 0.005, 0.01], ids=["clean", "50 % noise", "100 % noise"])
@pytest.mark.parametrize("dim", [2, 3, 4, 10])
def test_displaced_bursts_are_not(size, dim):
    assert no_displacement(Bursts(noisy(size, dim))) is None


def test_bursts_that_fill_all_sensors_are_not():
    random = np.random.RandomState(0)
    for dim in (2, 3, 4):
        points = random.uniform(size=(200, 1, dim)) + 0.02 * random.standard_normal((200, 20, dim))
        assert no_displacement(Bursts(points)) is None


def test_shuffled_bursts_are_not():
    """They are called unrelated."""
    sphere = np.random.RandomState(0).standard_normal((300, 1, 3)) + np.zeros((300, 20, 1))
    sphere /= np.linalg.norm(sphere, axis=2, keepdims=True)
    sphere += 0.03 * np.random.RandomState(1).standard_normal(sphere.shape)
    sphere /= np.linalg.norm(sphere, axis=2, keepdims=True)
    lifted = sphere @ linear_map(3, 6, 0)
    assert no_displacement(Bursts(shuffled(lifted))) is None
    assert no_displacement(Bursts(shuffled(noisy(0)))) is None


def test_units_do_not_matter():
    points = readings()
    factors = 10.0 ** np.random.RandomState(0).uniform(-6, 6, size=points.shape[2])
    one, other = (no_displacement(Bursts(p)) for p in (points, points * factors + 100 * factors))
    assert one == other


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_bad_values_are_left_to_others(bad):
    points = readings()
    points[3, 2, 1] = bad
    with np.errstate(all="raise"):
        assert no_displacement(Bursts(points)) is None


def test_a_fit_that_was_forced_says_so():
    points = readings()
    assert any("do not move" in remark for remark in inspect_bursts(points, intrinsic_dim=2).remarks)
    model = short_fit(LOCA(2, intrinsic_dim=2, hidden_layers=(3,), max_iter=5, random_state=0), points)
    assert [finding.name for finding in model.diagnostics_.findings] == ["unfinished", "no_displacement"]


# -- from the shell ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["NaN", "pieces", "d < k", "readings at rest", "more noise than burst", "k > D"])
def test_the_shell_refuses_both_with_one_message(name, tmp_path):
    make, parameters, word = BAD[name]
    np.save(tmp_path / "b.npy", make())
    options = [part for key, value in parameters.items() for part in (f"--{key.replace('_', '-')}", str(value))]
    options += [] if "n_components" in parameters else ["-d", "auto"]
    run = CliRunner().invoke
    looked = run(cli, ["inspect", str(tmp_path / "b.npy"), *options])
    fitted = run(cli, ["fit", str(tmp_path / "b.npy"), *options, "--json", "-q"])
    assert looked.exit_code == fitted.exit_code == 3
    assert looked.stderr.splitlines()[-1] == fitted.stderr.splitlines()[-1]
    assert word in looked.stderr and looked.stdout.startswith("bursts            N = ")  # what is known, all the same


def test_options_of_the_data_reach_the_inspection(tmp_path):
    np.save(tmp_path / "b.npy", noisy(0.005))
    run = CliRunner().invoke
    plain = run(cli, ["inspect", str(tmp_path / "b.npy"), "--json"])
    told = run(
        cli,
        ["inspect", str(tmp_path / "b.npy"), "--json", "--measurement-noise", "estimate", "--burst-std", "0.01"],
    )
    assert json.loads(told.stdout)["burst_std"] == 0.01 and json.loads(told.stdout)["burst_std_known"]
    assert any("noise of the instrument" in r for r in json.loads(plain.stdout)["remarks"])
    assert not any("noise of the instrument" in r for r in json.loads(told.stdout)["remarks"])
    wrong = run(cli, ["inspect", str(tmp_path / "b.npy"), "--feature-scale", "1,2"])
    assert wrong.exit_code == 2 and "one number per feature" in wrong.stderr


def test_outline_of_anything():
    assert outline(Bursts([[[1.0, 2.0]]])) == "bursts            N = 1, M = 1, D = 2"
    assert "M = 2..3" in outline(Bursts([np.zeros((2, 2)), np.full((3, 2), np.nan)]))
