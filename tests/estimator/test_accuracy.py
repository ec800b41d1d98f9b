"""Small versions of the paper's experiments with every default, against bars of about five times the worst of several
seeds; the solver's whole objective against a naive twin; and what must not matter."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from helpers import (
    assert_same_up_to_rigid_motion,
    planar_bursts,
    random_rotation,
    short_fit,
    smooth_map,
    tiny_loca,
)
from pyloca import LOCA, Bursts, datasets
from pyloca.geometry import BurstStatistics
from pyloca.metrics import stress
from pyloca.solvers import _descent, _fast, _shards

# These fits end when the encoder is trained: the decoder has tests of its own.
pytestmark = pytest.mark.filterwarnings("ignore:training was ended by max_iter")

# -- experiments ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ring:
    """A ring in the plane, with a hole that no burst crosses, on a bent sheet in R³."""

    X: np.ndarray
    Y: np.ndarray
    bursts: Bursts
    burst_std: float = 0.02
    n_components: int = 2

    @classmethod
    def draw(cls, seed, n=300, m=50):
        random = np.random.RandomState(seed)
        radius, angle = np.sqrt(random.uniform(0.36, 1, size=n)), random.uniform(0, 2 * np.pi, size=n)
        X = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
        clouds = X[:, None] + 0.02 * random.standard_normal((n, m, 2))
        return cls(X, smooth_map(X), Bursts(smooth_map(clouds.reshape(-1, 2)).reshape(n, m, 3)))


# name: (data by seed, most stress, most mean squared error of the decoder)
EXPERIMENTS = {
    "mushroom": (lambda seed: datasets.mushroom(500 if seed == 0 else 300, 50, random_state=seed), 7e-4, 5e-5),
    "sphere": (lambda seed: datasets.sphere(100, random_state=seed), 5e-3, 2e-4),
    "wifi": (lambda seed: datasets.wifi(600 if seed == 0 else 300, random_state=seed), 1e-2, 3e-6),
    "ring": (Ring.draw, 6e-3, 2e-4),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("seed", range(3))
def test_experiments_with_the_defaults(name, seed):
    """No run over three seeds is collapsed, folded or merely bad. The decoder, which changes nothing of it, once."""
    draw, most_stress, most_error = EXPERIMENTS[name]
    data = draw(seed)
    stop = [] if seed == 0 else [lambda record: record["stage"] == "fit decoder"]
    model = LOCA(data.n_components, burst_std=data.burst_std, random_state=seed, callbacks=stop).fit(data.bursts)
    assert stress(data.X, model.transform(data.Y)) < most_stress
    assert stress(data.X, model.embedding_) < most_stress
    assert [doubt for doubt in model.diagnostics_.warnings if "decoder is not trained" not in doubt] == []
    assert 0.7 < model.diagnostics_.stretch[0] < model.diagnostics_.stretch[1] < 1.35  # 50 points tell it to ± 20 %
    if name == "sphere":
        assert stress(data.tests["cap"].X, model.transform(data.tests["cap"].Y)) < 3e-4
    if seed == 0:
        error = np.square(model.inverse_transform(model.transform(data.Y)) - data.Y).sum(axis=1).mean()
        assert error < most_error


# -- the objective of the whitening as the solver uses it -------------------------------------------------------


def naive_whitening(theta, sizes, statistics, burst_std, encoder, decay, anchors=None):
    """Σ w_i (tr G_i − log det G_i − k) / N + decay · ‖θ‖², burst by burst, weights w_i ∝ M_i − 1 of mean 1.

    With aligned positions p_i in embedding units, also Σ 3 ‖ρ(μ_i) − p_i‖² / N over the mean M − 1.

    θ has (n_out, n_in + 1) of each layer, the bias last; in the last layer, the skip follows it in each row.
    """
    layers, start = [], 0
    for n_in, n_out in sizes[:-1]:
        layers.append(theta[start : start + (n_in + 1) * n_out].reshape(n_out, n_in + 1).T)
        start += (n_in + 1) * n_out
    last = theta[start:].reshape(sizes[-1][1], -1).T
    layers.append(last[: sizes[-1][0] + 1])
    skip = last[sizes[-1][0] + 1 :]
    shift, scale, out_scale = encoder.in_shift.numpy(), float(encoder.in_scale), float(encoder.out_scale)
    weights = (statistics.counts - 1) / np.mean(statistics.counts - 1)
    total = 0.0
    for i_burst, (mean, tangents, weight) in enumerate(
        zip(statistics.means, statistics.tangents, weights, strict=True)
    ):
        x, t = (mean - shift) / scale, tangents / scale / burst_std  # (D,), (k, D)
        h, pushed = x, t
        for i, layer in enumerate(layers):
            h, pushed = h @ layer[:-1] + layer[-1], pushed @ layer[:-1]
            if i < len(layers) - 1:
                h = np.tanh(h)
                pushed = pushed * (1 - h**2)
        pushed = out_scale * (pushed + t @ skip)
        gram = pushed @ pushed.T
        total += weight * (np.trace(gram) - np.log(np.linalg.det(gram)) - len(gram))
        if anchors is not None:
            off = h + x @ skip - anchors[i_burst]
            total += (30 if statistics.intrinsic_dim == 1 else 3) * off @ off / np.mean(statistics.counts - 1)
    return total / len(weights) + decay * theta @ theta


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [7, 2048])
@pytest.mark.parametrize(("k", "dim", "d"), [(2, 3, 2), (1, 2, 2), (2, 3, 3)])
def test_the_whole_whitening_objective_and_its_gradient(monkeypatch, k, dim, d, chunk):
    """Captured from a running fit of ragged bursts; central differences of the twin in float64."""
    monkeypatch.setattr(_shards, "CHUNK", chunk)
    captured = []
    init = _descent.Evaluation.__init__

    def spy(self, kernel, stack, loss, decay, shards=None):
        init(self, kernel, stack, loss, decay, shards)
        if loss.func in (_fast._likelihood, _fast._anchored):
            captured.append(self)

    aligned, align = [], _fast.align
    monkeypatch.setattr(_descent.Evaluation, "__init__", spy)
    monkeypatch.setattr(
        _fast, "align", lambda *given, **options: aligned.append(align(*given, **options)) or aligned[0]
    )
    _, bursts = planar_bursts(30, 20, k=k, dim=dim)
    bursts = [burst[: 8 + i % 5] for i, burst in enumerate(bursts)]
    model = short_fit(tiny_loca(n_components=d, hidden_layers=(4, 3), max_iter=260, intrinsic_dim=k), bursts)
    evaluation = captured[0]
    assert evaluation.decay > 0
    statistics = BurstStatistics.from_bursts(bursts, k)
    train = statistics[np.setdiff1d(np.arange(30), model.validation_indices_)]
    theta = evaluation.kernel.theta + 0.1 * torch.randn(
        len(evaluation.kernel.theta), dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    value, gradient = evaluation(theta)
    anchors = aligned[0].positions / np.sqrt(np.square(aligned[0].positions).mean()) if d > k else None

    def twin(flat):
        return naive_whitening(
            flat, [(dim, 4), (4, 3), (3, d)], train, model.burst_std_, model.encoder_, evaluation.decay, anchors
        )

    flat = theta.numpy().copy()
    assert value == pytest.approx(twin(flat), rel=1e-11)
    steps = 1e-6 * np.eye(len(flat))
    differences = np.array([(twin(flat + step) - twin(flat - step)) / 2e-6 for step in steps])
    np.testing.assert_allclose(gradient.numpy(), differences, rtol=1e-6, atol=1e-6 * np.abs(differences).max())


# -- what must not matter ---------------------------------------------------------------------------------------


def fit_plainly(bursts):
    """A fit on all bursts, so that no random split differs between two orders of them."""
    return tiny_loca(max_iter=400, validation_fraction=0, burst_std=0.05).fit(bursts).embedding_


@pytest.fixture(scope="module")
def sheet():
    """Bursts (80, 60, 3) on the bent sheet and their embedding."""
    random = np.random.RandomState(0)
    X = random.uniform(-1, 1, size=(80, 2))
    clouds = X[:, None] + 0.05 * random.standard_normal((80, 60, 2))
    bursts = smooth_map(clouds.reshape(-1, 2)).reshape(80, 60, 3)
    return bursts, fit_plainly(bursts)


@pytest.mark.slow
def test_a_rigid_motion_of_the_measurements(sheet):
    bursts, Z = sheet
    moved = bursts @ random_rotation(3, 1) + np.array([5.0, -3.0, 1.0])
    assert_same_up_to_rigid_motion(fit_plainly(moved), Z, 0.06)


@pytest.mark.slow
def test_a_scale_of_the_measurements(sheet):
    bursts, Z = sheet
    assert_same_up_to_rigid_motion(fit_plainly(100 * bursts), Z, 0.06)


@pytest.mark.slow
def test_the_order_of_bursts(sheet):
    bursts, Z = sheet
    order = np.random.RandomState(1).permutation(len(bursts))
    assert_same_up_to_rigid_motion(fit_plainly(bursts[order]), Z[order], 0.06)


@pytest.mark.slow
def test_the_order_of_points(sheet):
    bursts, Z = sheet
    shuffled = bursts[:, np.random.RandomState(1).permutation(60)]
    assert_same_up_to_rigid_motion(fit_plainly(shuffled), Z, 0.06)


@pytest.mark.slow
def test_a_channel_that_says_nothing(sheet):
    bursts, Z = sheet
    assert_same_up_to_rigid_motion(fit_plainly(np.concatenate([bursts, np.ones((80, 60, 2))], axis=2)), Z, 0.06)
