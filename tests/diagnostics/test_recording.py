"""Faults of a recording: sensors that change, bursts of garbage, rows in wrong bursts."""

import numpy as np
import pytest
from benchmarks.hidden import rig
from benchmarks.shapes import alarms

from pyloca import LOCA, BurstError, TrustWarning
from pyloca.bursts import Bursts
from pyloca.findings import Finding, changed_sensor
from pyloca.findings._ahead import rows_ahead
from pyloca.findings._path import path, two_runs, wrong_rows
from pyloca.geometry import BurstStatistics, find_odd, find_strays
from pyloca.inspection import inspect_bursts

NAMES = ["a", "b", "c", "d", "e", "f"]


def readings(seed=0, n=300, order=None):
    """Six smooth sensors of two states: states, and (n, 20, 6)."""
    random = np.random.RandomState(seed)
    X = random.uniform(size=(n, 2))
    if order is not None:
        X = X[order(X)]
    lines, phases = 2 * random.standard_normal((2, 6)), random.uniform(0, 6, 6)
    x = X[:, None] + 0.01 * random.standard_normal((n, 20, 2))
    return X, np.sin(x @ lines + phases) + 0.5 * (x @ lines)


def statistics(points):
    return BurstStatistics.from_bursts(Bursts(points, feature_names=NAMES), 2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "order", [None, lambda X: np.argsort(X[:, 0]), lambda X: np.lexsort((X[:, 1], np.floor(8 * X[:, 0])))]
)
def test_sound_sensors_have_not_changed_in_whatever_order_states_come(seed, order):
    assert changed_sensor(statistics(readings(seed, order=order)[1])) is None


def test_turns_of_a_coil_one_after_the_other_are_no_change():
    """Without its height, a turn looks like the next; the height seems to have changed."""
    t = np.sort(np.random.RandomState(0).uniform(0, 20, 300))[:, None] + 0.03 * np.random.RandomState(1).randn(300, 20)
    coil = Bursts(np.stack([np.cos(t), np.sin(t), 0.3 * t], axis=2))
    assert changed_sensor(BurstStatistics.from_bursts(coil, 1)) is None


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda y: np.full_like(y, y[0, 0]), "stuck"),
        (lambda y: 25.4 * y, "times as large"),
        (lambda y: y + 2.0, "shifted"),
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_a_sensor_that_changed_is_named_with_the_burst(change, word, first):
    points = readings()[1]
    part = slice(0, 130) if first else slice(130, None)
    points[part, :, 3] = change(points[part, :, 3])
    found = changed_sensor(statistics(points))
    assert found is not None
    assert found.name == "changed"
    assert found.message.startswith("'d' changed")
    assert word in found.message
    # where both parts are consistent in themselves, nothing tells which is wrong
    assert min(abs(len(found.bursts) - n) for n in (130, 170)) <= 5


def test_a_factor_is_told():
    points = readings()[1]
    points[150:, :, 1] *= 1000.0
    message = changed_sensor(statistics(points)).message
    assert 900 < float(message.partition("readings are ")[2].partition(" times")[0]) < 1100


def test_a_drift_from_the_beginning_is_named():
    points = readings()[1]
    points[:, :, 4] += 0.8 * np.sin(np.arange(300) / 25)[:, None]
    assert "'e'" in changed_sensor(statistics(points)).message


def test_a_slight_change_is_named_only_if_it_explains_something():
    points = readings()[1]
    spread = points[:, :, 4].mean(axis=1).std()
    points[150:, :, 4] += 0.06 * spread
    known = statistics(points)
    assert changed_sensor(known) is None
    assert "'e'" in changed_sensor(known, Finding("folded", "")).message
    assert changed_sensor(known, Finding("few_points", "")) is None


def test_pieces_are_blamed_on_the_sensor_that_changed():
    points = readings()[1]
    points[150:, :, 2] += 500
    bursts = Bursts(points, feature_names=NAMES)
    with pytest.raises(BurstError, match=r"'c' changed.*Because of it, the bursts fall into 2 pieces"):
        LOCA(2, burst_std=0.01, feature_scale=None).fit(bursts)
    assert "'c' changed" in inspect_bursts(bursts, feature_scale=None).refusal


def garbage(random, points, kind):
    flat, shape = points.reshape(-1, 6), points.shape[1:]
    if kind == "mixed":
        return np.stack([random.choice(column, shape[0]) for column in flat.T], axis=1)
    if kind == "noise":
        return points[0].mean(axis=0) + points.std(axis=1).mean() * random.standard_normal(shape)
    return flat[random.randint(len(flat), size=shape[0])]


@pytest.mark.parametrize("kind", ["mixed", "noise", "rows from everywhere"])
def test_garbage_is_left_out_by_id_or_named(kind):
    random, points = np.random.RandomState(0), readings()[1]
    some = [17, 203]
    points[some] = [garbage(random, points, kind) for _ in some]
    bursts = Bursts(points)
    assert list(find_odd(BurstStatistics.from_bursts(bursts, 2), bursts)) == some
    strays = find_strays(BurstStatistics.from_bursts(bursts, 2, max_strays=0.01), 0.01, bursts=bursts)
    assert set(some) <= set(strays)
    assert find_strays(BurstStatistics.from_bursts(bursts, 2), 0.001, bursts=bursts).keys() != set(some)


def test_bursts_on_kinks_are_no_garbage():
    random = np.random.RandomState(0)
    x = random.uniform(size=(400, 1, 2)) + 0.01 * random.standard_normal((400, 20, 2))
    bursts = Bursts(np.concatenate([x, np.abs(x - 0.4), np.abs(x.sum(axis=2, keepdims=True) - 1)], axis=2))
    assert find_odd(BurstStatistics.from_bursts(bursts, 2), bursts) == {}


def test_if_most_bursts_are_noise_none_is_odd():
    bursts = Bursts(np.random.RandomState(0).standard_normal((100, 20, 6)))
    assert find_odd(BurstStatistics.from_bursts(bursts, 2), bursts) == {}


def test_rows_of_the_next_burst_are_no_path():
    points = np.roll(readings()[1].reshape(-1, 6), 10, axis=0).reshape(300, 20, 6)
    share, last = two_runs(Bursts(points))
    assert share > 0.9
    assert last == 10
    found = path(Bursts(points), Finding("large_bursts", "why", bursts=(3,)))
    assert found.name == "rows"
    assert found.bursts == (3,)
    walk = np.cumsum(np.random.RandomState(0).standard_normal((60, 40, 3)), axis=1)
    assert two_runs(Bursts(walk))[0] < 0.7
    assert path(Bursts(walk), Finding("large_bursts", "why")).name == "path"


def snake(X):
    """An order in which neighbours follow each other."""
    row = np.floor(12 * X[:, 1])
    return np.lexsort((np.where(row % 2, -X[:, 0], X[:, 0]), row))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("off", [-1, 2, 5])
def test_rows_that_belong_to_the_next_burst_of_a_route_are_told(seed, off):
    points = readings(seed, order=snake)[1]
    cut = Bursts(np.roll(points.reshape(-1, 6), off, axis=0).reshape(points.shape))
    found = rows_ahead(cut, BurstStatistics.from_bursts(cut, 2))
    assert found.name == "rows"
    if off == -1:
        assert "row 20 lies" in found.message


@pytest.mark.parametrize("order", [None, snake])
def test_perturbations_know_nothing_of_the_route(order):
    for seed in range(5):
        points = readings(seed, order=order)[1]
        design = points + 0.1 * np.linspace(-1, 1, 20)[:, None]  # the same in all bursts
        for bursts in (Bursts(points), Bursts(design)):
            assert rows_ahead(bursts, BurstStatistics.from_bursts(bursts, 2)) is None


def test_many_spikes_are_rows_in_wrong_bursts():
    points = readings()[1]
    known = BurstStatistics.from_bursts(Bursts(points), 2)
    assert wrong_rows(known) is None
    aside = np.full(300, 10)
    object.__setattr__(known, "set_aside", aside)
    assert wrong_rows(known).name == "rows"
    assert wrong_rows(known, Finding("columns", "another cause")) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in rig.KINDS])
def test_faults_of_a_rig_are_named(name):
    assert dict((row.name, row) for row in rig.ROWS)[f"rig: {name}"].measure(0)["ok"]


@pytest.mark.slow
def test_units_are_not_advised_where_they_are_set():
    """Rows in any burst, in units 10⁶ apart."""
    random, points = np.random.RandomState(0), readings()[1] * [1, 1e3, 1e-3, 1, 1e6, 1]
    mixed = random.permutation(points.reshape(-1, 6)).reshape(points.shape)
    with pytest.warns(TrustWarning):
        model = LOCA(2, burst_std=0.01, max_iter=30, random_state=0).fit(Bursts(mixed, feature_names=NAMES))
    assert "feature_scale" not in str(model.diagnostics_)
    assert "units" not in {finding.name for finding in model.diagnostics_.findings}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_noise_of_two_sensors_is_called_that_and_the_advice_helps(seed):
    """It was "more_tangents", with the advice intrinsic_dim=4, or "round_trip"."""
    random = np.random.RandomState(seed)
    x = random.uniform(size=(300, 1, 2)) + 0.01 * random.standard_normal((300, 30, 2))
    points = np.sin(1.5 * x @ random.standard_normal((2, 6)) + random.uniform(0, 6, 6))
    points[..., 4:] += points.std(axis=1).mean() * random.standard_normal((300, 30, 2))
    with pytest.warns(TrustWarning, match="noise of single sensors"):
        LOCA(2, burst_std=0.01, random_state=0).fit(Bursts(points))
    model = LOCA(2, burst_std=0.01, measurement_noise="estimate", random_state=0).fit(Bursts(points))
    assert model.diagnostics_.findings == ()


@pytest.mark.parametrize(("kind", "seed"), [(alarms.dead_zone, 862), (alarms.sparse_torus, 861)])
def test_states_that_the_others_do_not_tell_apart_are_no_change(kind, seed):
    """Without one sensor a torus lies on itself: half of its steps are foretold badly, at one end more by chance."""
    assert changed_sensor(BurstStatistics.from_bursts(kind(seed)[1], 2)) is None
