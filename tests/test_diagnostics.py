"""What the bursts say of a fit, and what they say of σ and k."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from helpers import linear_map, planar_bursts, planar_statistics
from pyloca import LOCA, Bursts, TrustWarning, datasets, diagnostics
from pyloca.diagnostics import diagnose_fit
from pyloca.geometry import BurstStatistics
from pyloca.selection import estimate_burst_std, estimate_intrinsic_dim

NONE_LOST = np.zeros(5, dtype=bool)


def linear_encoder(factors=(1.0, 1.0), dtype=torch.float64):
    """The exact inverse of `planar_bursts`, its outputs stretched by `factors`."""
    encoder = nn.Linear(3, 2, dtype=dtype)
    with torch.no_grad():
        encoder.weight.copy_(torch.tensor(np.linalg.pinv(linear_map(2, 3, 0)).T * np.array(factors)[:, None]))
    return encoder


@pytest.mark.parametrize("m", [10, 50])
def test_a_perfect_encoder_is_at_the_sampling_floor(m):
    _, bursts = planar_bursts(4000, m)
    found = diagnose_fit(linear_encoder(), BurstStatistics.from_bursts(bursts, 2), 0.01)
    assert found.sampling_floor == pytest.approx(3 / (m - 1))
    assert found.whitening_loss == pytest.approx(found.sampling_floor, rel=0.15)  # the floor is to first order in 1/M
    assert found.warnings == ()


def test_exact_jacobians_have_no_floor():
    found = diagnose_fit(linear_encoder(), planar_statistics(50)[1], 1.0)
    assert found.sampling_floor == 0
    assert abs(found.whitening_loss) < 1e-12
    assert found.stretch == pytest.approx((1, 1))
    assert found.warnings == ()


@pytest.mark.parametrize(("factors", "loss"), [((2.0, 2.0), 6 - 2 * np.log(4)), ((1.0, 0.5), 0.25 - np.log(0.25) - 1)])
def test_a_stretch_is_measured_and_warned_of(factors, loss):
    found = diagnose_fit(linear_encoder(factors), planar_statistics(50)[1], 1.0)
    assert found.whitening_loss == pytest.approx(loss)
    assert found.median_loss == pytest.approx(loss)
    assert found.stretch == pytest.approx((min(factors), max(factors)))
    assert len(found.warnings) == 1
    assert f"the median whitening loss is {loss:.2g}, where sampling alone explains 0" in found.warnings[0]


@pytest.mark.parametrize("factor", [1e-3, 0.0])
def test_a_collapse_is_named(factor):
    found = diagnose_fit(linear_encoder((1.0, factor)), planar_statistics(50)[1], 1.0)
    assert found.whitening_loss > 5
    assert len(found.warnings) == 1
    assert f"a dimension has collapsed: half of the held-out bursts are squeezed to {factor:.2g}" in found.warnings[0]


def test_the_warning_gives_the_number_that_it_tested():
    """Just above the threshold it speaks, just below it is silent."""
    for ratio, speaks in ((0.99, False), (1.01, True)):
        median = ratio * diagnostics.FAR_FROM_FLOOR * 0.2
        assert bool(diagnostics._warnings(np.ones((5, 2)), median, 0.2, NONE_LOST)) is speaks
    for median, speaks in ((0.99 * diagnostics.POOR_LOSS, False), (1.01 * diagnostics.POOR_LOSS, True)):
        assert bool(diagnostics._warnings(np.ones((5, 2)), median, 0.0, NONE_LOST)) is speaks
    for stretch, speaks in ((1.01 * diagnostics.COLLAPSED, False), (0.99 * diagnostics.COLLAPSED, True)):
        assert bool(diagnostics._warnings(np.full((5, 2), stretch), 0.0, 0.0, NONE_LOST)) is speaks


def test_long_bursts_count_for_more():
    _, bursts = planar_bursts(40, 60)
    ragged = [burst[: 5 if i < 20 else 60] for i, burst in enumerate(bursts)]
    statistics = BurstStatistics.from_bursts(ragged, 2)
    one = [diagnose_fit(linear_encoder(), statistics[rows], 0.01) for rows in (slice(0, 20), slice(20, 40))]
    both = diagnose_fit(linear_encoder(), statistics, 0.01)
    assert both.whitening_loss == pytest.approx((4 * one[0].whitening_loss + 59 * one[1].whitening_loss) / 63)


def test_chunks_and_precision_do_not_matter(monkeypatch):
    _, bursts = planar_bursts(50, 20)
    statistics = BurstStatistics.from_bursts(bursts, 2)
    whole = diagnose_fit(linear_encoder(), statistics, 0.01)
    monkeypatch.setattr(diagnostics, "CHUNK", 7)
    parts = diagnose_fit(linear_encoder(), statistics, 0.01)
    assert parts.whitening_loss == pytest.approx(whole.whitening_loss, rel=1e-12)
    assert parts.stretch == pytest.approx(whole.stretch, rel=1e-12)
    single = diagnose_fit(linear_encoder(dtype=torch.float32), statistics, 0.01)
    assert single.whitening_loss == pytest.approx(whole.whitening_loss, rel=1e-4)


def test_in_words():
    text = str(diagnose_fit(linear_encoder((1.0, 0.5)), planar_statistics(50)[1], 1.0))
    lines = text.splitlines()
    assert lines[0].startswith("whitening loss   0.636 (median 0.636; sampling alone leaves 0)")
    assert lines[1].startswith("local stretch    0.500 to 1.000")
    assert lines[2].startswith("WARNING          held-out bursts are not white")


# -- selection --------------------------------------------------------------------------------------------------


def test_burst_std_is_the_size_of_a_burst_in_the_measurements():
    _, bursts = planar_bursts(200, 100)
    largest = np.median([np.linalg.eigvalsh(np.cov(burst.T))[-1] for burst in bursts])
    for given in (bursts, Bursts(bursts), list(bursts), BurstStatistics.from_bursts(bursts, 2)):
        assert estimate_burst_std(given) == pytest.approx(np.sqrt(largest))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_intrinsic_dimension_of_a_plane(k):
    _, bursts = planar_bursts(40, 30, k=k, dim=5)
    assert estimate_intrinsic_dim(bursts) == k
    assert estimate_intrinsic_dim(Bursts(bursts)) == k
    assert estimate_intrinsic_dim(BurstStatistics.from_bursts(bursts, 1)) == 1  # statistics have made up their mind


def test_intrinsic_dimension_of_the_papers_data():
    for data in (datasets.mushroom(50, 30), datasets.sphere(30), datasets.wifi(50)):
        assert estimate_intrinsic_dim(data.bursts) == data.intrinsic_dim


@pytest.mark.parametrize("seed", range(3))
def test_a_circle_flattened_into_a_line_is_seen(seed):
    random = np.random.RandomState(seed)
    angle = random.uniform(0, 2 * np.pi, 400)[:, None] + 0.01 * random.standard_normal((400, 30))
    bursts = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    with pytest.warns(TrustWarning, match=r"folded or torn|not white|do not come back"):
        LOCA(1, burst_std=0.01, hidden_layers=(20,), random_state=seed).fit(bursts)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LOCA(2, burst_std=0.01, hidden_layers=(20,), random_state=seed).fit(bursts)
