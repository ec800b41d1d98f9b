"""The fast solver: a whole fit, what it can be given, when it stops, what must not matter."""

import copy
import itertools
from dataclasses import fields
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from benchmarks.shapes import alarms
from torch import nn

from helpers import (
    assert_same_up_to_rigid_motion,
    planar_bursts,
    planar_statistics,
    short_fit,
    smooth_map,
    smooth_statistics,
    tiny_loca,
)
from pyloca import LOCA, Bursts, datasets
from pyloca.alignment import align
from pyloca.errors import ConvergenceError
from pyloca.geometry import BurstStatistics
from pyloca.metrics import stress
from pyloca.networks import MLP, MLPKernel, pushforward
from pyloca.paper.experiments import _measurements
from pyloca.solvers import Monitor, Problem, _descent, _fast
from pyloca.solvers._descent import Evaluation

NOISY = SimpleNamespace(exact=False)  # of a task, all that the end of a rung asks for

# -- the fast solver: a whole fit -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mushroom_fit():
    """One fit with every default, which several tests look at."""
    data = datasets.mushroom(200, 30, random_state=0)
    return data, LOCA(2, burst_std=data.burst_std, random_state=0).fit(data.bursts)


def naive_grams(encoder, statistics, burst_std):
    """G_i = T_i T_iᵀ (N, k, k), T_i the tangents through the encoder's Jacobian, divided by σ."""
    jacobians = (
        torch.func.vmap(torch.func.jacrev(encoder))(torch.tensor(statistics.means)).detach().numpy()
    )  # (N, d, D)
    pushed = np.einsum("nkD,ndD->nkd", statistics.tangents, jacobians) / burst_std
    return np.einsum("nkd,nld->nkl", pushed, pushed)


def whitening_score(model, statistics):
    """The held-out score by its definition: likelihood, capped at 5 sampling floors a burst, weighted by M − 1."""
    held_out = statistics[model.validation_indices_]
    gram = naive_grams(model.encoder_, held_out, model.burst_std_)
    k = gram.shape[1]
    loss = np.trace(gram, axis1=1, axis2=2) - np.linalg.slogdet(gram)[1] - k
    return np.mean(held_out.weights * np.minimum(loss, 5 * k * (k + 1) / 2 / (held_out.counts - 1)))


def decoding_score(model, statistics):
    """Mean over held-out bursts of ‖y − γ(ρ(y))‖², and a hundredth of the same on tangents, all in unit size."""
    held_out = statistics[model.validation_indices_]
    scale, out_scale = float(model.encoder_.in_scale), float(model.encoder_.out_scale)
    means, tangents = torch.tensor(held_out.means), torch.tensor(held_out.tangents)
    value, pushed = pushforward(nn.Sequential(model.encoder_, model.decoder_), means, tangents)
    value, pushed = (value - means).detach().numpy(), (pushed - tangents).detach().numpy()
    unit = out_scale / (scale * model.burst_std_)
    return np.mean(np.square(value / scale).sum(axis=1) + 0.01 * np.square(unit * pushed).sum(axis=(1, 2)))


def losses(model, stage):
    return [record["validation_loss"] for record in model.history_ if record["stage"] == stage]


@pytest.mark.slow
def test_the_mushroom_is_found(mushroom_fit):
    data, model = mushroom_fit
    assert model.converged_
    assert stress(data.X, model.embedding_) < 1e-3
    assert stress(data.X, model.transform(data.Y)) < 1e-3
    assert np.square(model.inverse_transform(model.transform(data.Y)) - data.Y).sum(axis=1).mean() < 1e-4
    assert model.diagnostics_.warnings == ()


@pytest.mark.slow
def test_the_embedding_of_the_training_bursts_is_centred(mushroom_fit):
    data, model = mushroom_fit
    train = np.setdiff1d(np.arange(len(data.bursts)), model.validation_indices_)
    np.testing.assert_allclose(model.embedding_[train].mean(axis=0), 0, atol=1e-12)


@pytest.mark.slow
def test_the_best_held_out_weights_are_restored(mushroom_fit):
    data, model = mushroom_fit
    statistics = BurstStatistics.from_bursts(data.bursts, 2)
    whiten, decode = losses(model, "whiten"), losses(model, "decode")
    assert whiten[-1] > min(whiten)  # otherwise this shows nothing
    score = whitening_score(model, statistics)
    assert any(score == pytest.approx(loss, rel=1e-9) for loss in whiten)
    assert score < 1.01 * min(whiten)  # a lower decay that is better by chance only does not count
    assert decoding_score(model, statistics) == pytest.approx(min(decode), rel=1e-6)


@pytest.mark.slow
def test_a_stage_that_gains_nothing_is_undone():
    """Planes need no lower decay: the stage that tries one only loses, and its weights must not come out."""
    lost = 0
    for seed in range(4):
        _, bursts = planar_bursts(60, 12, seed=seed)
        model = short_fit(
            tiny_loca(
                max_iter=None,
                hidden_layers=(20,),
                random_state=seed,
                callbacks=[lambda record: record["stage"] == "fit decoder"],
            ),
            bursts,
        )
        whiten = [record for record in model.history_ if record["stage"] == "whiten"]
        score = whitening_score(model, BurstStatistics.from_bursts(bursts, 2))
        (taken,) = (r for r in whiten if r["validation_loss"] == pytest.approx(score, rel=1e-9))
        lost += taken["decay"] > 2 * min(record["decay"] for record in whiten)
    assert lost > 0


@pytest.mark.slow
def test_history_tells_the_whole_story(mushroom_fit):
    _, model = mushroom_fit
    stages = [record["stage"] for record in model.history_]
    assert list(dict.fromkeys(stages)) == ["fit encoder", "whiten", "fit decoder", "decode"]
    assert stages == sorted(stages, key=["fit encoder", "whiten", "fit decoder", "decode"].index)
    assert all(np.diff([record["iteration"] for record in model.history_]) > 0)
    assert all(np.diff([record["seconds"] for record in model.history_]) >= 0)
    assert model.n_iter_ == model.history_[-1]["iteration"]
    for record in model.history_:
        extra = {"validation_loss"} if record["stage"] in {"whiten", "decode"} else set()
        assert set(record) == {"stage", "iteration", "seconds", "loss", "decay"} | extra
        assert all(np.isfinite(value) for name, value in record.items() if name != "stage")


@pytest.mark.slow
def test_the_decay_is_lowered_stage_by_stage(mushroom_fit):
    _, model = mushroom_fit
    decays = np.array([record["decay"] for record in model.history_ if record["stage"] == "whiten"])
    assert len(set(decays)) > 1
    assert (np.diff(decays) > 0).sum() <= 1  # the best of them is used again at the end


def test_exact_jacobians_of_a_smooth_map():
    """Without noise nothing limits the fit but the network and its time."""
    X, statistics = smooth_statistics()
    model = LOCA(2, burst_std=1.0, random_state=0, max_iter=300).fit(statistics)
    assert stress(X, model.embedding_) < 1e-5
    assert_same_up_to_rigid_motion(model.embedding_, X, 0.02)
    new = np.random.RandomState(9).uniform(-0.9, 0.9, size=(200, 2))
    assert stress(new, model.transform(smooth_map(new))) < 1e-5


def test_a_linear_measurement_without_noise_is_solved_to_rounding():
    X, statistics = planar_statistics(60)
    model = LOCA(2, burst_std=1.0, random_state=0, hidden_layers=()).fit(statistics)
    assert model.converged_
    assert_same_up_to_rigid_motion(model.embedding_, X, 1e-6)
    np.testing.assert_allclose(model.inverse_transform(model.embedding_), statistics.means, atol=1e-6)


@pytest.mark.slow
def test_a_curved_surface_needs_more_components_than_tangents():
    """A cap of the unit sphere through its projection: k = D = 2, d = 3."""
    random = np.random.RandomState(0)
    x = random.standard_normal((800, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x = x[x[:, 2] < -0.2][:200]
    # an orthonormal tangent frame (3, 2) through the Jacobian of (x₀, x₁) / (1 − x₂)
    frames = np.linalg.svd(x[:, None])[2][:, 1:].transpose(0, 2, 1)
    project = np.zeros((len(x), 2, 3))
    project[:, 0, 0] = project[:, 1, 1] = 1 / (1 - x[:, 2])
    project[:, :, 2] = x[:, :2] / (1 - x[:, 2:]) ** 2
    statistics = BurstStatistics.from_jacobians(x[:, :2] / (1 - x[:, 2:]), project @ frames)
    model = LOCA(3, burst_std=1.0, random_state=0, max_iter=300).fit(statistics)
    assert stress(x, model.embedding_) < 1e-3
    assert model.embedding_.shape == (200, 3)
    assert model.intrinsic_dim_ == 2


# -- the fast solver: what it can be given ----------------------------------------------------------------------


def test_statistics_in_place_of_bursts_change_nothing():
    _, bursts = planar_bursts(60, 30)
    raw = short_fit(tiny_loca(), bursts)
    compressed = short_fit(tiny_loca(), BurstStatistics.from_bursts(bursts, 2))
    np.testing.assert_array_equal(raw.embedding_, compressed.embedding_)
    assert raw.score(bursts) == compressed.score(BurstStatistics.from_bursts(bursts, 2))


def test_a_list_of_equal_bursts_is_the_array():
    _, bursts = planar_bursts(40, 20)
    expected = short_fit(tiny_loca(), bursts).embedding_
    for given in (list(bursts), Bursts(bursts), Bursts.from_ragged(bursts.reshape(-1, 3), np.arange(41) * 20)):
        np.testing.assert_array_equal(short_fit(tiny_loca(), given).embedding_, expected)


def test_ragged_bursts():
    X, bursts = planar_bursts(100, 60)
    counts = np.random.RandomState(0).randint(10, 61, size=100)
    model = tiny_loca(max_iter=300).fit([burst[:m] for burst, m in zip(bursts, counts, strict=True)])
    assert stress(X, model.embedding_) < 5e-3
    assert model.intrinsic_dim_ == 2


def test_all_bursts_are_trained_on_when_none_are_held_out():
    X, bursts = planar_bursts(60, 100)
    model = tiny_loca(validation_fraction=0, max_iter=300).fit(bursts)
    assert len(model.validation_indices_) == 0
    assert stress(X, model.embedding_) < 5e-3


def test_without_held_out_bursts_the_sampling_noise_of_the_training_bursts_is_not_followed():
    data = datasets.mushroom(100, 20, random_state=0)
    held, all_trained = (
        LOCA(burst_std=data.burst_std, validation_fraction=fraction, random_state=0).fit(data.bursts)
        for fraction in (0.1, 0)
    )
    assert stress(data.X, all_trained.embedding_) < 3 * stress(data.X, held.embedding_)


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["sigmoid", "softplus", "elu", "leaky_relu"])
def test_every_activation_trains(activation):
    X, bursts = planar_bursts(60, 100)
    model = tiny_loca(activation=activation, max_iter=250).fit(bursts)
    assert stress(X, model.embedding_) < 5e-3


def own_modules(seed=0):
    torch.manual_seed(seed)
    encoder = nn.Sequential(nn.Linear(3, 20), nn.Tanh(), nn.Linear(20, 2))
    return encoder, nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 3))


@pytest.mark.slow
def test_modules_of_your_own_are_trained_as_copies():
    X, statistics = smooth_statistics(100)
    encoder, decoder = own_modules()
    before = copy.deepcopy([encoder.state_dict(), decoder.state_dict()])
    model = LOCA(2, burst_std=1.0, random_state=0, encoder=encoder, decoder=decoder, tol=0.1).fit(statistics)
    for module, state in zip((encoder, decoder), before, strict=True):
        assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())
        assert all(p.dtype == torch.float32 and p.requires_grad and p.grad is None for p in module.parameters())
        assert module.training
    assert isinstance(model.encoder_.network.network, nn.Sequential)
    assert isinstance(model.decoder_.network.network, nn.Sequential)
    assert stress(X, model.embedding_) < 1e-4
    np.testing.assert_allclose(model.inverse_transform(model.embedding_), statistics.means, atol=0.1)


@pytest.mark.slow
def test_a_module_of_your_own_starts_from_the_alignment():
    """The first stage must bring it near the aligned picture: from random weights the whitening may end in a fold."""
    _, statistics = smooth_statistics()
    for seed in range(3):
        encoder, _ = own_modules(seed)
        model = short_fit(LOCA(2, burst_std=1.0, random_state=0, encoder=encoder, max_iter=200), statistics)
        fit = [record["loss"] for record in model.history_ if record["stage"] == "fit encoder"]
        assert model.history_[0]["iteration"] == 25
        assert fit[-1] < 0.5


@pytest.mark.slow
def test_a_module_of_your_own_like_ours_gives_the_same_model():
    """An MLP in disguise goes through torch.func, by diagonals only: the loss that it reports is the same one."""

    class Disguised(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.inner = MLP(3, (8,), 2, skip=True)

        def forward(self, x):
            return self.inner(x)

    _, bursts = planar_bursts(60, 30)
    with pytest.warns(UserWarning, match="encoder: 3 × Linear"):  # which the MLP does not call as modules
        model = short_fit(tiny_loca(encoder=Disguised(), max_iter=300), bursts)
    statistics = BurstStatistics.from_bursts(bursts, 2)
    assert min(losses(model, "whiten")) == pytest.approx(whitening_score(model, statistics), rel=1e-9)


# -- the fast solver: when it stops -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("max_iter", [1, 24, 25, 26, 90, 230, 700])
def test_max_iter_counts_over_all_stages(max_iter):
    _, bursts = planar_bursts(60, 30)
    seen = []
    model = short_fit(tiny_loca(max_iter=max_iter, tol=0, callbacks=[seen.append]), bursts)
    assert model.n_iter_ <= max_iter
    if not model.converged_:
        assert model.n_iter_ == max_iter
    if max_iter < 100:
        assert not model.converged_
    assert seen == model.history_
    assert np.isfinite(model.transform(bursts[0])).all()
    assert np.isfinite(model.inverse_transform(model.embedding_)).all()


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["fit encoder", "whiten", "fit decoder", "decode"])
def test_a_callback_stops_the_training(stage):
    X, bursts = planar_bursts(60, 100)
    model = short_fit(tiny_loca(max_iter=None, callbacks=[lambda record: record["stage"] == stage]), bursts)
    assert not model.converged_
    assert [record["stage"] for record in model.history_].count(stage) == 1
    assert model.history_[-1]["stage"] == stage
    assert np.isfinite(model.inverse_transform(model.embedding_)).all()
    assert stress(X, model.embedding_) < (5e-2 if stage == "fit encoder" else 5e-3)


def test_a_callback_may_stop_at_a_restart_before_anything_is_trained(monkeypatch):
    fractions = itertools.chain([1.0], itertools.repeat(0.0))
    monkeypatch.setattr(_fast, "overlapping", lambda *given: next(fractions))
    model = short_fit(
        tiny_loca(callbacks=[lambda record: record["stage"] == "restart: folded"]), planar_bursts(60, 30)[1]
    )
    assert not model.converged_
    assert model.diagnostics_.restarts == ("folded",)
    assert np.isfinite(model.embedding_).all()


def test_a_stop_in_the_middle_leaves_the_best_weights():
    _, bursts = planar_bursts(60, 12)
    statistics = BurstStatistics.from_bursts(bursts, 2)
    worse = []

    def stop_after_a_loss(record):
        if record["stage"] == "whiten":
            worse.append(record["validation_loss"])
        return worse[-1] > min(worse) if worse else False

    model = short_fit(tiny_loca(max_iter=None, hidden_layers=(30,), callbacks=[stop_after_a_loss]), bursts)
    assert worse[-1] > min(worse)
    assert model.history_[-1]["stage"] == "whiten"
    assert whitening_score(model, statistics) == pytest.approx(min(worse), rel=1e-9)


def test_an_error_in_a_callback_is_the_users():
    def fail(record):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tiny_loca(callbacks=[fail]).fit(planar_bursts(40, 20)[1])


@pytest.mark.slow
def test_stages_begin_on_a_few_bursts_and_end_on_all(monkeypatch):
    monkeypatch.setattr(_descent, "FIRST_BURSTS", 15)
    X, bursts = planar_bursts(150, 30)
    seen = []
    evaluate = _descent.Evaluation.__call__

    def spy(self, theta):
        seen.append(self.n)
        return evaluate(self, theta)

    monkeypatch.setattr(_descent.Evaluation, "__call__", spy)
    at = {}  # history index → bursts in use
    model = tiny_loca(max_iter=None, callbacks=[lambda record: at.update({record["iteration"]: seen[-1]})]).fit(bursts)
    assert list(dict.fromkeys(seen)) == [15, 60, 135]
    assert stress(X, model.embedding_) < 5e-3
    whiten = [record for record in model.history_ if record["stage"] == "whiten"]
    finish = [record["validation_loss"] for record in whiten if at[record["iteration"]] == 135]
    score = whitening_score(model, BurstStatistics.from_bursts(bursts, 2))
    assert any(score == pytest.approx(loss, rel=1e-9) for loss in finish)


@pytest.mark.slow
def test_hidden_layers_that_the_decay_has_killed_are_woken(monkeypatch):
    """This map is nearly linear: strong decays leave nothing of the hidden layers, and weak ones need them again."""
    random = np.random.RandomState(4)
    curve = _measurements.smooth_map(2, 6, random)
    X = random.uniform(size=(2000, 2))
    bursts = curve(X[:, None] + 0.01 * random.standard_normal((2000, 30, 2)))
    woken, drawn = MLPKernel.woken, []

    def spy(self, theta, generator):
        drawn.append(len(theta))
        return woken(self, theta, generator)

    monkeypatch.setattr(MLPKernel, "woken", spy)
    model = LOCA(2, burst_std=0.01, random_state=4).fit(bursts)
    assert drawn
    hidden = [p for name, p in model.encoder_.named_parameters() if "layers" in name and "weight" in name]
    assert all(float(weights.detach().norm()) > 0.1 for weights in hidden)


def test_a_held_out_loss_that_is_not_finite_is_an_error(monkeypatch):
    scores = iter(map(_descent.Score, [1.0, np.nan, np.nan]))
    monkeypatch.setattr(_descent.Descent, "_score", lambda self, task, theta: next(scores))
    with pytest.raises(ConvergenceError, match="the held-out loss became nan in stage 'whiten'"):
        tiny_loca(max_iter=None).fit(planar_bursts(40, 20)[1])


@pytest.mark.slow
def test_the_decay_is_lowered_while_many_bursts_are_lost(monkeypatch):
    """The held-out score stands still then, for it counts them as merely bad."""
    monkeypatch.setattr(MLPKernel, "is_dead", lambda self, theta: False)  # of planes they are, which lowers it too

    def decays(many_lost):
        monkeypatch.setattr(_descent.Descent, "_score", lambda self, task, theta: _descent.Score(1.0, many_lost))
        model = short_fit(tiny_loca(max_iter=None), planar_bursts(40, 20)[1])
        return {record["decay"] for record in model.history_ if record["stage"] == "whiten"}

    assert len(decays(False)) == 2
    assert len(decays(True)) == len(_fast.DECAYS)


@pytest.mark.slow
def test_a_decay_goes_on_while_lost_bursts_come_nearer(monkeypatch):
    """The capped score does not register that: a squeezed strip of `frame` was left as it was."""
    monkeypatch.setattr(MLPKernel, "is_dead", lambda self, theta: False)

    def checks(gain):
        asked = iter(range(1000))

        def score(self, task, theta):
            return _descent.Score(1.0, False, progress=2.0 * (1 - gain) ** next(asked))

        monkeypatch.setattr(_descent.Descent, "_score", score)
        model = short_fit(
            tiny_loca(max_iter=None, hidden_layers=(5,)), datasets.mushroom(60, 20, random_state=0).bursts
        )
        return sum(record["stage"] == "whiten" for record in model.history_)

    assert checks(0.05) > checks(0.0) + 5


@pytest.mark.parametrize(("lost", "gained"), [(0.5, True), (0.0, False)])
def test_bringing_back_lost_bursts_is_a_gain(lost, gained):
    """The cap hides it: one seed of `mushroom` went back to a decay that left a strip squeezed."""
    chance = 0.3 * torch.randn(100, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    chance -= chance.mean()

    def score(self, task, theta):
        before = bool(theta)
        each = 1.0 + (chance if before else 0 * chance)
        return _descent.Score(1.0, False, each, 1.0, each + lost * before)

    state = _descent.Progress(theta_before=torch.ones(()), best_theta=torch.zeros(()), score_before=1.0, best_score=1.0)
    descent = type("_", (_descent.Descent,), {"_score": score})(
        None, state, 1, np.random.RandomState(0), torch.Generator()
    )
    assert descent._gained(NOISY, 0.01) == gained


@pytest.mark.slow
@pytest.mark.parametrize("nearer", [True, False])
def test_the_next_decay_goes_on_where_lost_bursts_are_nearest(monkeypatch, nearer):
    """Else what a rung has gained on them is lost: a seed of `mushroom` and one of `frame` were far worse."""
    monkeypatch.setattr(MLPKernel, "is_dead", lambda self, theta: False)
    asked, started = {}, []

    def score(self, task, theta):  # weights that are asked for later are better, or worse
        order = asked.setdefault(theta.numpy().tobytes(), len(asked))
        return _descent.Score(1e-3, True, progress=2.0 * (0.9 if nearer else 1.1) ** min(order, 9))

    class Spy(_descent.LBFGS):
        def __init__(self, function, theta):
            started.append((theta.clone(), self))
            super().__init__(function, theta)

    lower = _descent.Descent._lower

    def spied(self, task, **options):
        monkeypatch.setattr(_descent, "LBFGS", Spy)
        lower(self, task, **options)

    monkeypatch.setattr(_descent.Descent, "_score", score)
    monkeypatch.setattr(_descent.Descent, "_lower", spied)
    short_fit(tiny_loca(max_iter=None, hidden_layers=(5,)), datasets.mushroom(60, 20, random_state=0).bursts)
    (_, first), (theta, _) = started[:2]
    assert torch.equal(theta, first.theta) is nearer


def test_progress_sees_what_the_capped_score_does_not(monkeypatch):
    solvers = []
    train = _fast._FastSolver._train_encoder

    def spy(self, **options):
        solvers.append(self)
        return train(self, **options)

    monkeypatch.setattr(_fast._FastSolver, "_train_encoder", spy)
    short_fit(tiny_loca(max_iter=None), planar_bursts(60, 30)[1])
    score = solvers[0]._whitening().score
    held = torch.zeros(3, 6, 2, dtype=torch.float64)
    held[1, :, 0] = held[2, :, 1] = 1.0
    white = score(held)
    held[1, 0, 0] = 1e-4  # one burst is squeezed; then half as much
    far = score(held)
    held[1, 0, 0] = 1e-2
    near = score(held)
    assert white.progress == white.value
    assert far.value == near.value > white.value
    assert far.progress > near.progress > near.value


def test_one_held_out_burst_has_no_standard_error(monkeypatch):
    """Its score must fall by the smallest gain that counts; the error of one number is not defined."""
    scores = {0.0: 1.0, 1.0: 0.5, 2.0: 0.999}

    def score(self, task, theta):
        value = scores[float(theta)]
        return _descent.Score(value, each=torch.tensor([value]))

    monkeypatch.setattr(_descent.Descent, "_score", score)
    state = _descent.Progress(score_before=1.0, theta_before=torch.tensor(0.0), best_theta=torch.tensor(1.0))
    descent = _descent.Descent(None, state, 1, None, None)
    assert descent._gained(NOISY, 1e-2)
    state.best_theta = torch.tensor(2.0)
    assert not descent._gained(NOISY, 1e-2)


@pytest.mark.parametrize(("n", "dim", "strong"), [(40, 30, False), (450, 30, True), (450, 6, False)])
def test_bursts_of_many_directions_begin_with_a_stronger_decay(monkeypatch, n, dim, strong):
    tasks = []
    whitening = _fast._FastSolver._whitening

    def spy(self):
        tasks.append(whitening(self))
        raise _fast.StopTraining

    monkeypatch.setattr(_fast._FastSolver, "_whitening", spy)
    short_fit(tiny_loca(hidden_layers=(3,), max_iter=None), planar_bursts(n, 20, dim=dim)[1])
    assert (tasks[0].ratios[0] == _fast.STRONGEST) is strong
    assert tasks[0].max_ratio == (_fast.STRONGEST_RATIO if strong else _descent.MAX_RATIO)


def test_the_decay_is_a_prior_that_bursts_outweigh():
    task = _descent.Task(
        "t", None, None, None, None, None, None, iterations=1, ratios=(30.0, 1.0), idle_gain=1e-2, residuals=3
    )
    assert task.ratio(1, 1000) == pytest.approx(1 / 3000)
    assert task.ratio(0, 100_000) == pytest.approx(task.ratio(0, 1000) / 100)
    assert task.ratio(0, 10) == _descent.MAX_RATIO
    assert task.gain(100) == 1e-2
    assert task.gain(200_000) == pytest.approx(task.gain(20_000) / 10)
    task.residuals = 0  # as it stands, whatever the number of bursts
    task.ratios = (2e-2,)
    assert task.ratio(0, 1000) == 2e-2
    assert task.gain(200_000) == 1e-2


# -- the fast solver: what must not matter ----------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits():
    _, bursts = planar_bursts(60, 30)
    first, second = (short_fit(tiny_loca(max_iter=500), bursts) for _ in range(2))
    np.testing.assert_array_equal(first.embedding_, second.embedding_)
    np.testing.assert_array_equal(
        first.inverse_transform(first.embedding_), second.inverse_transform(second.embedding_)
    )
    clock = {"seconds": 0.0}
    assert [record | clock for record in first.history_] == [record | clock for record in second.history_]
    other = short_fit(tiny_loca(random_state=1, max_iter=500), bursts)
    assert not np.array_equal(first.embedding_, other.embedding_)


def test_a_random_state_object_is_used_up():
    _, bursts = planar_bursts(40, 20)
    random = np.random.RandomState(0)
    first, second = (short_fit(tiny_loca(random_state=random), bursts) for _ in range(2))
    assert not np.array_equal(first.embedding_, second.embedding_)
    np.testing.assert_array_equal(first.embedding_, short_fit(tiny_loca(random_state=0), bursts).embedding_)


@pytest.mark.parametrize("solver", ["fast", "paper"])
def test_a_fit_leaves_global_random_states_and_threads_alone(solver):
    _, bursts = planar_bursts(40, 20)
    torch.manual_seed(5)
    np.random.seed(5)
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy(), torch.get_num_threads()
    short_fit(tiny_loca(solver=solver, max_iter=3), bursts)
    assert torch.equal(torch.random.get_rng_state(), before[0])
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])
    assert torch.get_num_threads() == before[2]
    assert torch.get_default_dtype() == torch.float32


def test_the_data_is_left_alone():
    _, bursts = planar_bursts(40, 20)
    before = bursts.copy()
    short_fit(tiny_loca(), bursts)
    np.testing.assert_array_equal(bursts, before)


# -- shapes that can bend -----------------------------------------------------------------------------------------


def circle_bursts(seed, n=150, m=60):
    """Bursts on the unit circle, measured by a smooth map of the plane."""
    random = np.random.RandomState(seed)
    angle = random.uniform(0, 2 * np.pi, size=(n, 1))
    cloud = angle + 0.02 * random.standard_normal((n, m))
    x, y = np.cos(cloud), np.sin(cloud)
    bursts = np.stack([x + 0.3 * y**2, y + 0.2 * np.sin(2 * x), 0.4 * x * y], axis=2)
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1), bursts


@pytest.mark.slow
def test_a_closed_curve_keeps_the_shape_of_its_alignment():
    X, bursts = circle_bursts(0)
    start = align(BurstStatistics.from_bursts(bursts), 2, burst_std=0.02, random_state=0)
    model = LOCA(2, burst_std=0.02, random_state=0, hidden_layers=(20, 20)).fit(bursts)
    assert stress(X, model.embedding_) < 1.2 * stress(X, start.positions)


def test_anchors_are_the_aligned_positions_and_exist_only_where_bending_is_free(monkeypatch):
    states = []
    start = _fast._FastSolver._start

    def spy(self, *given):
        states.append(self.state)
        start(self, *given)

    monkeypatch.setattr(_fast._FastSolver, "_start", spy)
    _, bursts = circle_bursts(0, n=60, m=20)
    short_fit(tiny_loca(n_components=2, burst_std=0.02, hidden_layers=(4,)), bursts)
    anchors = states[0].anchors
    assert anchors.shape == (54, 3)
    assert torch.allclose(anchors[:, 0], torch.tensor(30 / 19, dtype=torch.float64))
    assert float(anchors[:, 1:].square().mean()) == pytest.approx(1)
    states.clear()
    _, flat = planar_bursts(60, 20)
    short_fit(tiny_loca(n_components=2, burst_std=0.02, hidden_layers=(4,)), flat)
    assert not len(states[0].anchors)


def test_anchor_rows_are_the_residuals_of_the_positions():
    rows = _fast._anchor_rows(torch.zeros(3, 5, 4), 0.25)  # k = 2, n = 5, d = 4
    assert rows.shape == (4, 3, 5, 4)
    gram = torch.einsum("rna,rnb->nab", rows[:, 0], rows[:, 0])
    assert torch.allclose(gram, 0.25 * torch.eye(4))
    assert not rows[:, 1:].any()


@pytest.mark.parametrize("spared", [False, True])
def test_the_gradient_of_an_evaluation_with_decay(spared):
    torch.manual_seed(0)
    kernel = MLPKernel(MLP(3, (4,), 2, "tanh", skip=True).double())
    if spared:
        kernel.spare_skip()
    stack, targets = torch.randn(3, 7, 3, dtype=torch.float64), torch.randn(3, 7, 2, dtype=torch.float64)
    evaluate = Evaluation(kernel, stack, partial(_fast._squares, targets, None), 0.3)
    theta = kernel.theta.clone()
    gradient, step = evaluate(theta)[1].clone(), 1e-6
    for i, e in enumerate(step * torch.eye(len(theta), dtype=torch.float64)):
        slope = (evaluate(theta + e)[0] - evaluate(theta - e)[0]) / (2 * step)
        assert float(gradient[i]) == pytest.approx(slope, abs=1e-6)


def test_single_precision_evaluates_the_same_function():
    torch.manual_seed(0)
    kernel = MLPKernel(MLP(3, (6,), 2, "tanh", skip=True).double())
    kernel.spare_skip()
    stack = torch.randn(3, 9, 3, dtype=torch.float64)
    loss = partial(_fast._likelihood, torch.ones(9, dtype=torch.float64), ())
    theta = kernel.theta + 0.3 * torch.randn_like(kernel.theta)
    value, gradient = Evaluation(kernel, stack, loss, 0.3)(theta)
    twin = kernel.single()
    single, slope = Evaluation(twin, stack.float(), loss, 0.3)(theta)
    assert twin.theta.dtype == torch.float32 and slope.dtype == torch.float64
    assert single == pytest.approx(value, rel=1e-5) and single != value
    assert torch.allclose(slope, gradient, rtol=1e-4, atol=1e-4 * float(gradient.abs().max()))


@pytest.mark.parametrize("n", [60, 260])
def test_the_last_weights_are_found_in_double_precision(monkeypatch, n):
    """Few bursts do not settle: they are trained in double precision from the start, others once they settle."""
    used = []
    call = Evaluation.__call__

    def spy(self, theta):
        used.append(self.kernel.theta.dtype)
        return call(self, theta)

    monkeypatch.setattr(Evaluation, "__call__", spy)
    _, bursts = planar_bursts(n, 30)
    LOCA(2, burst_std=0.01, random_state=0).fit(bursts)
    assert used[0] == torch.float32 and used[-1] == torch.float64


def test_a_direction_that_is_hardly_measured_is_not_squeezed():
    """With D = k the linear part is not decayed: one variable is magnified a thousand times."""
    X, bursts = planar_bursts(150, 30, dim=2)
    model = LOCA(2, burst_std=0.01, random_state=0).fit(bursts @ np.diag([1.0, 1e-3]))
    assert stress(X, model.embedding_) < 5e-4 * X.var(axis=0).sum()
    assert not model.diagnostics_.findings


@pytest.mark.slow
def test_a_start_whose_neighbours_are_far_gives_way_to_one_with_fewer():
    """In six dimensions 26 neighbours lie so far that measurements bend on the way, and parts are turned over."""
    X, bursts, settings = alarms.six_dimensions(614)
    statistics = BurstStatistics.from_bursts(bursts, 6)
    facts = dict.fromkeys(field.name for field in fields(Problem)) | {"statistics": statistics, "hidden_layers": (5,)}
    facts |= settings | {"train": np.arange(600), "validation": np.arange(0), "n_components": 6, "seed": 0}
    facts |= {"activation": "tanh", "decoder_activation": "tanh", "device": torch.device("cpu")}
    solver = _fast._FastSolver(Problem(**facts), Monitor())
    start, passed_over = next(solver._starts())
    plain = align(statistics, 6, burst_std=0.01, random_state=0)
    assert not passed_over
    assert stress(X, start.positions) < 0.4 * stress(X, plain.positions)
