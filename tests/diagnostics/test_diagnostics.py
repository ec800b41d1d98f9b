"""What the bursts say of a fit, and when not to believe it."""

import copy
import dataclasses
import json
import warnings

import numpy as np
import pytest
import torch
from benchmarks import faults, thresholds
from benchmarks.shapes import conditions, decoder
from scipy.spatial.distance import pdist
from scipy.stats import chi2, kstest
from torch import nn

from helpers import linear_map, planar_bursts, planar_statistics
from pyloca import LOCA, TrustWarning, datasets
from pyloca.bursts import Bursts
from pyloca.checks import (
    Whitening,
    _whitening,
    embedding_fault,
    lost_bursts,
    overlapping,
    sampled_stretch,
    whitening,
)
from pyloca.diagnostics import Diagnostics, Finding, agreement, diagnose, shuffle_test
from pyloca.errors import BurstError
from pyloca.estimator import read_like
from pyloca.findings import (
    Gap,
    Neighborhood,
    as_large_as_the_data,
    foreign_sensors,
    judge,
    largest_gap,
    uneven_units,
    unexplained_steps,
)
from pyloca.findings._precision import sampling_error
from pyloca.geometry import BurstStatistics
from pyloca.metrics import calibrate, stress
from pyloca.thresholds import UNEXPLAINED, WAVES


def linear_encoder(factors=(1.0, 1.0), dtype=torch.float64):
    """The exact inverse of `planar_bursts`, its outputs stretched by `factors`."""
    encoder = nn.Linear(3, 2, dtype=dtype)
    with torch.no_grad():
        encoder.weight.copy_(torch.tensor(np.linalg.pinv(linear_map(2, 3, 0)).T * np.array(factors)[:, None]))
    return encoder


def small_fit(data, seed=0, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return LOCA(
            data.n_components, burst_std=data.burst_std, hidden_layers=(20, 20), random_state=seed, **parameters
        ).fit(data.bursts)


@pytest.fixture(scope="module")
def mushroom():
    data = datasets.mushroom(400, 50, random_state=0)
    return data, small_fit(data)


# -- whitening, burst by burst ------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [10, 50])
def test_a_perfect_encoder_is_at_the_sampling_floor(m):
    _, bursts = planar_bursts(4000, m)
    found = judge(linear_encoder(), BurstStatistics.from_bursts(bursts, 2), 0.01)
    assert found.sampling_floor == pytest.approx(3 / (m - 1))
    assert found.whitening_loss == pytest.approx(found.sampling_floor, rel=0.15)  # the floor is to first order in 1/M
    assert found.findings == ()


def counted(tangents, counts):
    """Statistics of bursts of so many points, without noise."""
    return BurstStatistics(np.zeros((len(tangents), tangents.shape[2])), tangents, counts, np.zeros(len(tangents)))


@pytest.mark.parametrize(("m", "k"), [(6, 1), (8, 2), (30, 2), (20, 3)])
def test_p_values_of_a_perfect_encoder_are_uniform(m, k):
    random = np.random.RandomState(0)
    clouds = random.standard_normal((3000, m, k))
    centred = clouds - clouds.mean(axis=1, keepdims=True)
    tangents = np.linalg.qr(centred, mode="r") / np.sqrt(m - 1)
    white = Whitening.from_pushed(
        np.zeros((3000, k)), torch.as_tensor(tangents), counted(tangents, np.full(3000, float(m)))
    )
    assert kstest(white.p_values, "uniform").pvalue > 1e-3
    assert abs(white.excess_errors) < 4


def test_whitening_by_hand():
    tangents = np.array([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 0.5]], [[1.0, 0.0], [1.0, 0.0]]])
    white = Whitening.from_pushed(
        np.zeros((3, 2)), torch.as_tensor(tangents), counted(tangents, np.array([np.inf, 31.0, 31.0]))
    )
    assert white.losses[:2] == pytest.approx([0, 4 + 0.25 - 2])
    assert white.losses[2] == np.inf
    assert white.floors == pytest.approx([0, 0.1, 0.1])
    assert white.conditions[:2] == pytest.approx([1, 4])
    assert white.p_values[0] == 1
    assert white.p_values[1] < 1e-6
    assert lost_bursts(white).tolist() == [False, True, True]


def test_exact_jacobians_have_no_floor():
    found = judge(linear_encoder(), planar_statistics(50)[1], 1.0)
    assert found.sampling_floor == 0
    assert abs(found.whitening_loss) < 1e-12
    assert found.stretch == pytest.approx((1, 1))
    assert found.findings == ()


@pytest.mark.parametrize(("factors", "loss"), [((2.0, 2.0), 6 - 2 * np.log(4)), ((1.0, 0.5), 0.25 - np.log(0.25) - 1)])
def test_a_stretch_is_measured_and_warned_of(factors, loss):
    found = judge(linear_encoder(factors), planar_statistics(50)[1], 1.0)
    assert found.whitening_loss == pytest.approx(loss)
    assert found.median_loss == pytest.approx(loss)
    assert found.losses == pytest.approx(loss)
    assert found.stretch == pytest.approx((min(factors), max(factors)))
    assert [finding.name for finding in found.findings] == ["scale" if factors[0] == 2 else "poor_fit"]
    if factors[0] == 2:
        assert "come out 2 times as large as σ says" in found.warnings[0]
        return
    assert f"the median whitening loss is {loss:.3g}, where sampling alone explains 0" in found.warnings[0]


def test_the_card_has_the_median_of_the_finding():
    """Three bursts that are stretched more than the others are held out: their median is not that of all."""
    _, statistics = planar_statistics(50)
    tangents = statistics.tangents.copy()
    tangents[:3] *= [[1], [3]]
    bent = dataclasses.replace(statistics, tangents=tangents)
    found = judge(linear_encoder((1.0, 0.5)), bent, 1.0, np.arange(3))
    told = f"{0.25 - np.log(0.25) - 1:.3g}"
    assert [finding.name for finding in found.findings] == ["poor_fit"]
    assert f"the median whitening loss is {told}," in found.warnings[0]
    assert f"{told} is the median of all bursts" in " ".join(str(found).split())
    assert found.median_loss != pytest.approx(found.median_of_all)


@pytest.mark.parametrize("factor", [1e-3, 0.0])
def test_a_collapse_is_named(factor):
    found = judge(linear_encoder((1.0, factor)), planar_statistics(50)[1], 1.0)
    assert found.whitening_loss > 5
    assert [finding.name for finding in found.findings] == ["collapsed"]
    assert f"a dimension has collapsed: half of the bursts are squeezed to {factor:.2g}" in found.warnings[0]


def test_long_bursts_count_for_more():
    _, bursts = planar_bursts(40, 60)
    ragged = [burst[: 5 if i < 20 else 60] for i, burst in enumerate(bursts)]
    statistics = BurstStatistics.from_bursts(ragged, 2)
    one = [judge(linear_encoder(), statistics[rows], 0.01) for rows in (slice(0, 20), slice(20, 40))]
    both = judge(linear_encoder(), statistics, 0.01)
    assert both.whitening_loss == pytest.approx((4 * one[0].whitening_loss + 59 * one[1].whitening_loss) / 63)


def test_chunks_and_precision_do_not_matter(monkeypatch):
    _, bursts = planar_bursts(50, 20)
    statistics = BurstStatistics.from_bursts(bursts, 2)
    whole = judge(linear_encoder(), statistics, 0.01)
    monkeypatch.setattr(_whitening, "CHUNK", 7)
    parts = judge(linear_encoder(), statistics, 0.01)
    assert parts.whitening_loss == pytest.approx(whole.whitening_loss, rel=1e-12)
    assert parts.stretch == pytest.approx(whole.stretch, rel=1e-12)
    single = judge(linear_encoder(dtype=torch.float32), statistics, 0.01)
    assert single.whitening_loss == pytest.approx(whole.whitening_loss, rel=1e-4)


def test_in_words():
    found = judge(linear_encoder((1.0, 0.5)), planar_statistics(50)[1], 1.0, restarts=("folded",))
    lines = str(found).splitlines()
    assert lines[0].startswith("whitening loss   0.636 (sampling alone leaves 0); 0.636 is the median of all bursts")
    assert lines[1].startswith("local stretch    0.500 to 1.000")
    assert lines[2] == "suspect bursts   0 of 50 that sampling does not explain"
    assert lines[3] == "restarted        once, from another alignment (before it: folded)"
    assert lines[4].startswith("WARNING          bursts are not white")
    assert "Not knowable from bursts" in str(found)
    assert all(len(line) <= 110 for line in lines)
    assert "no fault found" in str(judge(linear_encoder(), planar_statistics(50)[1], 1.0))


def test_to_dict_and_back():
    arrays = {"losses": np.arange(3.0), "p_values": np.ones(3), "conditions": np.ones(3)}
    found = Diagnostics(1.0, 2.0, 3.0, (0.9, 1.1), (Finding("noise", "loud", (1, 2)),), ("folded",), **arrays)
    assert Diagnostics.from_dict(found.to_dict(), **arrays) == found
    assert found.warnings == ("loud",)
    more = {"round_trip": (0.1, 0.2), "sampling_stretch": (0.8, 1.2), "gap": Gap((0.0, 1.0), 2.0, 0.1)}
    full = dataclasses.replace(found, **more)
    assert Diagnostics.from_dict(json.loads(json.dumps(full.to_dict())), **arrays) == full
    old = {name: value for name, value in found.to_dict().items() if name not in more}  # as an earlier version wrote it
    assert Diagnostics.from_dict(old, **arrays) == found


def test_suspects_are_the_worst_first():
    found = Diagnostics(0, 0, 0, (1, 1), losses=np.array([1.0, 5.0, 3.0]), p_values=np.array([0.5, 1e-9, 1e-5]))
    assert found.suspects.tolist() == [1, 2]


# -- faults by name -------------------------------------------------------------------------------------------------


@pytest.fixture
def fewer_bursts(monkeypatch):
    monkeypatch.setattr(faults, "N", 400)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["outliers", "crossing", "unrelated", "few_points", "curved", "large_bursts"])
def test_a_planted_fault_is_named(name, fewer_bursts):
    """The others, and all of them on twenty seeds: ``python -m benchmarks faults``."""
    data = faults.FAULTS[name](0)
    found = small_fit(data).diagnostics_
    assert found.findings[0].name == name
    if name == "outliers":
        named = set(found.findings[0].bursts)
        assert len(named - set(data.extras["outliers"].tolist())) < 0.1 * len(named)


@pytest.mark.parametrize(
    ("name", "word"), [("noise", "contain measurement noise"), ("pieces", "pieces that do not touch")]
)
def test_a_planted_fault_is_refused(name, word, fewer_bursts):
    data = faults.FAULTS[name](0)
    with pytest.raises(BurstError, match=word):
        LOCA(2, burst_std=data.burst_std).fit(data.bursts)


@pytest.mark.parametrize("seed", range(3))
def test_sheets_that_cross_go_on_beyond_each_other_and_kinks_do_not(seed):
    """Both have near bursts with different tangents."""
    crossing, kinks = (
        Neighborhood(BurstStatistics.from_bursts(make(seed).bursts, 2)) for make in (faults.crossing, faults.kinks)
    )
    assert crossing.crossing().name == "crossing"
    assert np.mean(kinks._cosines < 0.5) > 0.01 and kinks.crossing() is None


@pytest.mark.slow
def test_a_tangent_that_curvature_hides_is_told(fewer_bursts):
    data = thresholds.squeezed(0)
    found = small_fit(data)
    assert found.intrinsic_dim_ == 1
    assert [finding.name for finding in found.diagnostics_.findings] == ["large_bursts"]
    assert "k = 2" in found.diagnostics_.findings[0].message and "was tried" in found.diagnostics_.findings[0].message
    assert "smaller bursts" in found.diagnostics_.findings[0].message


@pytest.mark.slow
@pytest.mark.parametrize("n_components", [2, "auto"])
def test_where_a_tangent_may_be_hidden_both_k_are_fitted(n_components):
    random = np.random.RandomState(0)
    X = random.uniform(size=(300, 2))
    points = conditions.measure(X[:, None] + 0.01 * random.standard_normal((300, 50, 2)), 100, 5, True, 0)
    model = LOCA(n_components, burst_std=0.01, random_state=0).fit(points)
    assert (model.intrinsic_dim_, model.n_components_) == (2, 2) and not model.diagnostics_.findings
    assert stress(X, model.embedding_) < 2e-3 * X.var(axis=0).sum()
    assert "k = 2 is used" in model.diagnostics_.tangents and "tangents   " in str(model.diagnostics_)
    with pytest.warns(TrustWarning, match=r"Pass intrinsic_dim=2"):
        kept = LOCA(2, intrinsic_dim=1, burst_std=0.01, random_state=0).fit(points)
    assert kept.intrinsic_dim_ == 1


@pytest.mark.parametrize(("share", "fault"), [(0.05, ""), (0.2, "torn"), (0.6, "")])
def test_a_torn_embedding_has_lost_many_bursts_but_not_most(share, fault):
    _, statistics = planar_statistics(100)
    white = whitening(linear_encoder(), statistics, 1.0)
    losses = np.where(np.arange(100) < 100 * share, 5.0, white.losses)
    assert embedding_fault(dataclasses.replace(white, losses=losses), statistics, 1.0) == fault


def disc(n, inner=0.0, seed=0):
    random = np.random.RandomState(seed)
    angle, radius = random.uniform(0, 2 * np.pi, n), np.sqrt(random.uniform(inner**2, 1, n))
    return radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_a_hole_is_found_where_it_is():
    gap = largest_gap(np.add(disc(1500, inner=0.5), [3.0, 0.0]))
    assert np.linalg.norm(np.subtract(gap.centre, [3.0, 0.0])) < 0.05
    assert gap.radius == pytest.approx(0.5, abs=0.05)
    assert "nothing was measured within 0.5" in str(gap)
    line = np.concatenate([np.linspace(0, 1, 100), np.linspace(2, 3, 100)])[:, None]
    assert largest_gap(line).centre == pytest.approx((1.5,)) and largest_gap(line).radius == pytest.approx(0.5)
    cube = np.random.RandomState(0).uniform(size=(3000, 3))
    gap = largest_gap(cube[np.abs(cube - 0.5).max(axis=1) > 0.45])
    assert gap is not None and np.abs(np.array(gap.centre) - 0.5).max() < 0.1


@pytest.mark.parametrize("n", [30, 300, 3000])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_random_points_have_no_wide_gap(n, d):
    assert largest_gap(np.random.RandomState(n + d).uniform(size=(n, d))) is None


def test_no_gap_is_looked_for_where_there_is_no_sense_in_it():
    assert largest_gap(np.random.RandomState(0).uniform(size=(100, 4))) is None
    assert largest_gap(np.zeros((100, 2))) is None
    assert largest_gap(np.linspace(0, 1, 100)[:, None] * [1.0, 2.0]) is None


@pytest.mark.parametrize("m", [5, 30])
def test_what_sampling_does_to_stretches(m):
    expected = np.sqrt(chi2.ppf([0.05, 0.95], m - 1) / (m - 1))
    np.testing.assert_allclose(sampled_stretch(m, 1), expected, rtol=0.05)
    _, bursts = planar_bursts(3000, m)
    found = judge(linear_encoder(), BurstStatistics.from_bursts(bursts, 2), 0.01)
    np.testing.assert_allclose(found.sampling_stretch, found.stretch, rtol=0.05)
    assert sampled_stretch(np.inf, 2) == (1.0, 1.0)


def test_few_bursts_are_checked_as_far_as_they_go():
    _, bursts = planar_bursts(20, 40)
    statistics = BurstStatistics.from_bursts(bursts, 2)
    clean = judge(linear_encoder(), statistics, 0.01)
    assert not clean.findings and "20 bursts are too few to compare neighbours" in str(clean)
    assert [f.name for f in judge(linear_encoder((3.0, 3.0)), statistics, 0.01).findings] == ["scale"]
    assert [f.name for f in judge(linear_encoder((2.0, 0.5)), statistics, 0.01).findings] == ["poor_fit"]


def test_bursts_off_the_surface_are_outliers():
    _, bursts = planar_bursts(300, 30)
    A = linear_map(2, 3, 0)
    normal = np.linalg.svd(A)[2][2]
    decoder = nn.Linear(2, 3, bias=False, dtype=torch.float64)
    decoder.weight.data = torch.tensor(A.T)
    encoder = linear_encoder()
    encoder.bias.data.zero_()
    assert not judge(encoder, BurstStatistics.from_bursts(bursts, 2), 0.01, decoder=decoder).findings
    bursts[[7, 70, 170, 270]] += normal
    found = judge(encoder, BurstStatistics.from_bursts(bursts, 2), 0.01, decoder=decoder).findings
    assert [finding.name for finding in found] == ["outliers"]
    assert sorted(found[0].bursts) == [7, 70, 170, 270] and "off the surface" in found[0].message


SENSORS = {  # latent points (n, 2) → features
    "pascals beside fractions": lambda x: np.stack([1e5 + 2e4 * x[:, 0] + 3e3 * x[:, 1] ** 2, 0.5 * x[:, 1]], axis=1),
    "kelvin, volt, a small fraction": lambda x: np.stack(
        [300 + 20 * x[:, 0] + 3 * x[:, 1] ** 2, np.sin(x[:, 0] + x[:, 1]), 5e-3 * x[:, 1]], axis=1
    ),
}


def sensed(f, noise=0.0):
    random = np.random.RandomState(0)
    X = random.uniform(size=(200, 2))
    points = f((X[:, None] + 0.01 * random.standard_normal((200, 30, 2))).reshape(-1, 2)).reshape(200, 30, -1)
    return Bursts(points + noise * random.standard_normal(points.shape))


@pytest.mark.parametrize("name", SENSORS)
def test_units_that_drown_a_feature_are_named(name):
    bursts = sensed(SENSORS[name])
    k = BurstStatistics.from_bursts(bursts).intrinsic_dim
    assert "Fit with feature_scale='auto'" in uneven_units(bursts, k).message
    points = bursts.to_array()
    even = Bursts(points / points.std(axis=(0, 1)))
    assert BurstStatistics.from_bursts(even).intrinsic_dim == 2
    assert uneven_units(even, 2) is None


@pytest.mark.parametrize("name", SENSORS)
def test_rows_in_wrong_bursts_are_not_blamed_on_units(name):
    """Then bursts are as large as the data in every feature, and dividing these by their spreads would not help."""
    bursts = sensed(SENSORS[name])
    points = np.random.RandomState(0).permutation(bursts.to_array().reshape(-1, bursts.n_features))
    mixed = Bursts(points.reshape(200, 30, -1))
    k = BurstStatistics.from_bursts(mixed).intrinsic_dim
    assert uneven_units(mixed, k) is None
    assert "wrong bursts" in as_large_as_the_data(BurstStatistics.from_bursts(mixed), mixed).message


def test_small_features_that_drown_nothing_are_left_in_peace():
    """Distant receptors hardly answer, but say nothing that near ones do not; channels of mere noise say nothing."""
    centres = np.random.RandomState(1).uniform(-1, 2, size=(60, 2))

    def receptors(x):
        return np.exp(-np.square(x[:, None] - centres).sum(axis=2) / (2 * 0.15**2))

    for bursts in (
        sensed(receptors),
        sensed(receptors, 1e-4),
        sensed(lambda x: np.c_[np.sin(x @ [[1, 2], [2, -1]]), 0 * x], 1e-5),
    ):
        assert uneven_units(bursts, 2) is None


@pytest.mark.slow
def test_fits_of_halves_and_of_shuffled_bursts_do_not_call_back(mushroom):
    data, fitted = mushroom
    calls = []
    model = copy.copy(fitted).set_params(callbacks=[calls.append], n_components="auto")
    agreement(model, data.bursts[:100], n_splits=1, random_state=0)
    shuffle_test(model, data.bursts[:100], n_shuffles=1, random_state=0)
    assert not calls


@pytest.mark.slow
def test_the_round_trip_is_told_as_a_part_of_the_data(mushroom):
    data, model = mushroom
    means = read_like(model, data.bursts).statistics.means
    errors = np.linalg.norm(model.inverse_transform(model.transform(means)) - means, axis=1)
    errors /= np.sqrt(np.square(means - means.mean(axis=0)).sum(axis=1).mean())
    found = diagnose(model, data.bursts)
    assert found.round_trip == pytest.approx((np.median(errors), errors.max()))
    assert f"round trip       {np.median(errors):.2%}" in str(found)
    held_out = errors[model.validation_indices_]
    assert model.diagnostics_.round_trip == pytest.approx((np.median(held_out), held_out.max()))


def test_tangents_that_the_fit_left_out_are_not_called_noise():
    """A model of a line, judged on bursts that span a plane."""
    _, bursts = planar_bursts(200, 30)
    line = nn.Linear(3, 1, dtype=torch.float64)
    statistics = BurstStatistics.from_bursts(bursts, intrinsic_dim=1)
    found = judge(line, statistics, 0.01, bursts=Bursts(bursts)).findings
    assert [finding.name for finding in found] == ["more_tangents"]
    assert "span 2 directions" in found[0].message and "intrinsic_dim=2" in found[0].message


@pytest.mark.slow
def test_moderate_noise_is_named(fewer_bursts):
    data = faults.plant("noise", 0, n_features=8)
    points = data.bursts.to_array()
    noise = 0.4 * np.sqrt(points.var(axis=1).sum(axis=1).mean() / 2)
    noisy = Bursts(points + noise * np.random.RandomState(5).standard_normal(points.shape))
    found = small_fit(dataclasses.replace(data, bursts=noisy)).diagnostics_
    assert [finding.name for finding in found.findings] == ["noise"]


@pytest.mark.slow
def test_clean_data_raises_no_alarm(mushroom, fewer_bursts):
    assert mushroom[1].diagnostics_.findings == ()
    assert small_fit(faults.plant("clean", 3)).diagnostics_.findings == ()


@pytest.mark.slow
def test_a_folded_start_is_given_up(fewer_bursts):
    data = faults.plant("clean", 0)
    with faults.bad_start("folded", only_start=False):
        model = small_fit(data)
    assert model.diagnostics_.restarts == ("folded",)
    assert model.diagnostics_.findings == ()
    assert any(record["stage"].startswith("restart") for record in model.history_)
    with faults.bad_start("folded", only_start=True):
        model = small_fit(data)
    assert [finding.name for finding in model.diagnostics_.findings] == ["folded"]


def test_overlap_is_seen_on_both_sides_of_a_fold():
    X, statistics = planar_statistics(600)
    assert overlapping(X, statistics, 1.0) == 0
    folded = np.column_stack([np.abs(X[:, 0] - np.median(X[:, 0])), X[:, 1]])
    assert overlapping(folded, statistics, 1.0) > 0.2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_circle_flattened_into_a_line_is_seen(seed):
    random = np.random.RandomState(seed)
    angle = random.uniform(0, 2 * np.pi, 400)[:, None] + 0.01 * random.standard_normal((400, 30))
    bursts = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    with pytest.warns(TrustWarning, match=r"1 dimension cannot hold this surface.* try n_components=2"):
        LOCA(1, burst_std=0.01, hidden_layers=(20,), random_state=seed).fit(bursts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LOCA(2, burst_std=0.01, hidden_layers=(20,), random_state=seed).fit(bursts)


def test_diagnose_on_its_own_and_on_other_bursts(mushroom):
    data, model = mushroom
    again = diagnose(model, data.bursts)
    assert again.findings == ()
    assert again.losses == pytest.approx(model.diagnostics_.losses)
    other = diagnose(model, datasets.mushroom(100, 50, random_state=7).bursts)
    assert other.findings == ()
    assert len(other.losses) == 100
    wrong = diagnose(model, datasets.mushroom(100, 50, burst_std=0.03, random_state=7).bursts)
    assert [finding.name for finding in wrong.findings] == ["scale"]
    assert "all bursts come out 3.0" in wrong.warnings[0] or "all bursts come out 2.9" in wrong.warnings[0]
    with pytest.raises(BurstError, match="features"):
        diagnose(model, np.zeros((20, 5, 3)))


# -- trust in new points --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_trust_is_uniform_on_the_same_kind_and_nil_elsewhere():
    data = faults.plant("clean", 1)
    model = small_fit(dataclasses.replace(data, bursts=data.bursts[:400]))
    Z, trust = model.transform(data.bursts.to_array()[400:1000, 0], return_trust=True)
    assert np.array_equal(Z, model.transform(data.bursts.to_array()[400:1000, 0]))
    assert 0.35 < trust.mean() < 0.65
    assert np.mean(trust < 0.05) < 0.12
    normal = np.linalg.svd(data.Y[:400] - data.Y[:400].mean(axis=0))[2][-1]
    for strange in (data.Y[:50] + normal, 5 * data.Y[:50], np.full((1, 5), 1e6)):
        assert model.transform(strange, return_trust=True)[1].max() < 0.01


def test_trust_has_one_number_per_row(mushroom):
    data, model = mushroom
    Z, trust = model.transform(data.bursts[:3], return_trust=True)
    assert (Z.shape, trust.shape) == ((3, 2), (3,))
    assert np.array_equal(trust, model.diagnostics_.trust[:3])
    Z, trust = model.transform(data.bursts[1][:4], return_trust=True)
    assert (Z.shape, trust.shape) == ((4, 2), (4,))


# -- null test and error bars ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_real_bursts_are_far_from_shuffled_ones(mushroom):
    data, model = mushroom
    test = shuffle_test(model, data.bursts, n_shuffles=3, random_state=0)
    assert test.p_value == 0.25
    assert test.shuffled.min() > 3 * test.loss
    assert "p = 0.25" in str(test)


@pytest.mark.slow
def test_error_bars_hold_the_truth(mushroom):
    data, model = mushroom
    found = agreement(model, data.bursts, n_splits=2, random_state=0)
    assert found.embeddings.shape == (4, 400, 2)
    error = np.linalg.norm(calibrate(data.X, found.embedding).apply(found.embedding) - data.X, axis=1)
    assert 0.7 < np.mean(error < found.radius()) <= 1  # one data set: ``python -m benchmarks coverage`` has many
    assert np.median(found.standard_errors) < 0.02


# -- what a first user ran into --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_few_bursts_are_no_alarm():
    data = faults.plant("few", 4)
    for n in (30, 60):
        assert small_fit(dataclasses.replace(data, bursts=data.bursts[:n])).diagnostics_.findings == ()


@pytest.mark.slow
@pytest.mark.parametrize("factor", [3, 40])
def test_a_few_giants_are_outliers(factor, fewer_bursts):
    data = faults.plant("giants", 2)
    points = data.bursts.to_array().copy()
    means = points[:6].mean(axis=1, keepdims=True)
    points[:6] = means + factor * (points[:6] - means)
    found = small_fit(dataclasses.replace(data, bursts=Bursts(points))).diagnostics_.findings
    assert [finding.name for finding in found] == ["outliers"]
    assert set(range(6)) <= set(found[0].bursts)


@pytest.mark.slow
def test_points_dealt_to_any_burst(fewer_bursts):
    data = faults.plant("dealt", 2)
    points = data.bursts.to_array()
    order = np.random.RandomState(0).permutation(points.shape[0] * points.shape[1])
    dealt = points.reshape(-1, points.shape[2])[order].reshape(points.shape)
    found = small_fit(dataclasses.replace(data, bursts=Bursts(dealt)), intrinsic_dim=2).diagnostics_.findings
    assert [finding.name for finding in found] == ["large_bursts"]
    assert "as large as the data" in found[0].message


def test_no_sensor_is_blamed_where_all_others_bend_between_neighbours():
    """The coordinates themselves beside fine waves: what the waves foresee is wrong, not the coordinates."""
    random = np.random.RandomState(0)
    X = random.uniform(size=(400, 2))
    points = decoder._sines(random)(X[:, None] + 0.005 * random.standard_normal((400, 30, 2)))
    statistics = BurstStatistics.from_bursts(points, 2)
    assert np.nanmin(unexplained_steps(statistics)[:2]) > UNEXPLAINED
    assert foreign_sensors(statistics) is None


@pytest.mark.parametrize("call", [shuffle_test, agreement])
def test_none_at_all_is_refused(call, mushroom):
    data, model = mushroom
    with pytest.raises(ValueError, match="at least 1; got 0"):
        call(model, data.bursts, **{"n_shuffles" if call is shuffle_test else "n_splits": 0})


def test_fine_bends_and_many_dimensions_are_no_outliers():
    """No burst is parallel to its neighbours there; a burst is turned only among neighbours that agree."""
    random = np.random.RandomState(0)
    clouds = random.uniform(size=(300, 1, 2)) + 0.004 * random.standard_normal((300, 20, 2))
    fine = np.concatenate([clouds, 0.05 * np.sin(25 * clouds)], axis=-1)
    near = Neighborhood(BurstStatistics.from_bursts(fine, 2))
    assert near.outliers() is None and near.crossing() is None
    found = near.few_bursts()
    assert found.name == "few_bursts" and "Take more bursts" in found.message
    flat = Neighborhood(BurstStatistics.from_bursts(clouds @ random.standard_normal((2, 4)), 2))
    assert flat.few_bursts() is None


def test_what_an_unfinished_fit_shows_is_not_blamed_on_the_data():
    _, bursts = planar_bursts(60, 4)
    with pytest.warns(TrustWarning):
        model = LOCA(2, burst_std=0.01, hidden_layers=(5,), max_iter=2, random_state=0).fit(bursts)
    assert [finding.name for finding in model.diagnostics_.findings] == ["unfinished", "few_points"]


def test_a_sensor_that_bends_between_neighbours_is_not_foreign():
    random = np.random.RandomState(0)
    clouds = random.uniform(size=(300, 1, 2)) + 0.004 * random.standard_normal((300, 20, 2))
    statistics = BurstStatistics.from_bursts(np.concatenate([clouds, 0.05 * np.sin(40 * clouds)], axis=-1), 2)
    assert foreign_sensors(statistics) is None


@pytest.mark.parametrize(("k", "m"), [(1, 30), (2, 10), (3, 30)])
def test_the_mean_strain_is_as_uncertain_as_told(k, m):
    """Distances after the best linear encoder; what varies from place to place is left to a factor."""
    random, n = np.random.RandomState(0), 40
    X = random.standard_normal((200, k))
    errors, told = [], []
    for _ in range(100):
        clouds = random.standard_normal((n, m, k))
        clouds -= clouds.mean(axis=1, keepdims=True)
        covariances = np.einsum("nmk,nml->nkl", clouds, clouds) / (m - 1)
        white = np.linalg.inv(np.linalg.cholesky(covariances.mean(axis=0)))
        stretched, true = pdist(X @ white.T), pdist(X)
        errors.append(np.square(stretched - true).sum() / np.square(true).sum())
        pushed = np.linalg.cholesky(white @ covariances @ white.T).transpose(0, 2, 1)
        seen = Whitening.from_pushed(np.zeros((n, k)), torch.as_tensor(pushed), counted(pushed, np.full(n, float(m))))
        told.append(sampling_error(seen, counted(pushed, np.full(n, float(m)))) ** 2 / (WAVES * k))
    assert np.mean(told) == pytest.approx(np.mean(errors), rel=0.3)


def test_the_card_tells_the_precision():
    found = Diagnostics(0.1, 0.1, 0.1, (1.0, 1.0), precision=0.054)
    assert "standard error of about 5.4%" in str(found) and "heavy tails" not in str(found)
    assert "heavy tails" in str(dataclasses.replace(found, tails=2.0))
    assert "precision" not in str(dataclasses.replace(found, precision=None))
    assert Diagnostics.from_dict(found.to_dict()).precision == 0.054
