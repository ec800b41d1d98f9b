"""The stated precision of distances: its parts, and the findings that follow from it."""

import numpy as np
import pytest
import torch
from benchmarks.hidden import maps
from benchmarks.hidden.judging import judged
from torch import nn

from helpers import linear_map, planar_bursts
from pyloca.checks import whitening
from pyloca.findings import judge
from pyloca.findings._precision import precision
from pyloca.findings._unforeseen import unforeseen_part
from pyloca.geometry import BurstStatistics
from pyloca.metrics import stress


class Reads(nn.Linear):
    """The exact inverse of `linear_map(2, 3, 0)`; of `fold`, the first coordinate is its distance from there."""

    def __init__(self, fold=None):
        super().__init__(3, 2, bias=False, dtype=torch.float64)
        self.weight.data, self.fold = torch.tensor(np.linalg.pinv(linear_map(2, 3, 0)).T), fold

    def forward(self, y):
        z = super().forward(y)
        return z if self.fold is None else torch.stack([(z[..., 0] - self.fold).abs(), z[..., 1]], dim=-1)


def of(bursts, std, encoder):
    statistics = BurstStatistics.from_bursts(bursts, 2)
    return statistics, precision(encoder, whitening(encoder, statistics, std), statistics, std, sampled=True)


@pytest.mark.parametrize(("std", "m"), [(0.15, 20), (0.05, 5)])
def test_places_are_as_uncertain_as_told(std, m):
    """A perfect encoder of a plane: nothing but the means of the bursts is off."""
    X, bursts = planar_bursts(400, m, std=std)
    statistics, errors = of(bursts, std, Reads())
    places = whitening(Reads(), statistics, std).embedding
    assert 2 * errors.places**2 == pytest.approx(stress(X, places) / X.var(axis=0).sum(), rel=0.2)
    assert errors.bends < 1e-6


def test_bursts_that_are_large_for_their_points_are_told():
    _, bursts = planar_bursts(400, 8, std=0.1)
    (finding,) = judge(Reads(), BurstStatistics.from_bursts(bursts, 2), 0.1).findings
    assert finding.name == "imprecise" and "Take smaller bursts or more points" in finding.message


def test_a_fold_is_not_foreseen():
    _, bursts = planar_bursts(400, 30)
    statistics = BurstStatistics.from_bursts(bursts, 2)
    flat, folded = (
        unforeseen_part(statistics, encoder, 0.01, whitening(encoder, statistics, 0.01).embedding)
        for encoder in (Reads(), Reads(fold=0.3))
    )
    assert flat < 1e-10 and folded > 0.05


def test_bends_between_bursts_are_counted_as_the_trapezoidal_rule_misses_them():
    """On a line measured as e^(5x), steps h of the encoder 0.2 log y are off by h³ · 25 / 12, to third order.

    The median of the two neighbours is that of steps h, but for the first and the last burst of fifty.
    """
    h = 0.02
    x = np.arange(0, 1, h)[:, None] + 0.001 * np.array([-1.0, 1.0]) / np.sqrt(2)
    statistics = BurstStatistics.from_bursts(np.exp(5 * x)[:, :, None], 1)

    class Logarithm(nn.Linear):
        def forward(self, y):
            return 0.2 * torch.log(y[..., :1])

    encoder = Logarithm(1, 1, dtype=torch.float64)
    places = whitening(encoder, statistics, 0.001).embedding
    off = unforeseen_part(statistics, encoder, 0.001, places) * float(places.var())
    assert off == pytest.approx((h**3 * 25 / 12) ** 2 * (48 + 2 * (1 + 2**6) / 2) / 50, rel=0.1)


def test_the_expected_loss_of_short_bursts():
    """Six points make G = W / 5, with W of Wishart: to the next order in 1 / M."""
    clouds = np.random.RandomState(0).standard_normal((4000, 6, 2))
    statistics = BurstStatistics.from_bursts(clouds + 100 * clouds[:, :1], 2)
    white = whitening(_Same(), statistics, 1.0)
    assert white.losses.mean() == pytest.approx(white.expected.mean(), rel=0.05)
    assert white.losses.mean() > 1.1 * white.floors.mean()


class _Same(nn.Linear):
    def __init__(self):
        super().__init__(2, 2, bias=False, dtype=torch.float64)
        self.weight.data = torch.eye(2, dtype=torch.float64)


def test_two_bursts_that_are_not_white_by_chance_are_no_change_of_sigma():
    """36 bursts of a cubic, whose slope changes by two between neighbours."""
    case = maps.draw("few bursts", 880)
    found = judged(case.X, case.bursts, 880, maps.CAUSES, **case.settings)
    assert found["stress"] < 0.005 and not found["findings"]
