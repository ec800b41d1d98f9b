"""Algorithm 1 to the letter: what is minimised when, by what step, until when, and which weights come out."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from helpers import planar_bursts, planar_statistics, short_fit, tiny_loca
from pyloca import LOCA
from pyloca.errors import BurstError, ConvergenceError
from pyloca.metrics import stress
from pyloca.networks import MLP
from pyloca.solvers import _paper
from pyloca.solvers._paper import _PaperSolver


def paper_loca(**options):
    return tiny_loca(solver="paper", **options)


def weights(networks):
    return torch.cat([p.detach().flatten().clone() for p in networks.parameters()])


@pytest.fixture
def short_schedule(monkeypatch):
    """Checks every 2 epochs, patience of 6, two learning rates."""
    monkeypatch.setattr(_paper, "CHECK_EVERY", 2)
    monkeypatch.setattr(_paper, "PATIENCE", 6)
    monkeypatch.setattr(_paper, "LEARNING_RATES", (1e-2, 1e-3))


def script_validation(monkeypatch, losses):
    """The held-out loss is what the script says: first at the start, then at each check; constant when it ends."""
    script = itertools.chain(losses, itertools.repeat(losses[-1]))
    monkeypatch.setattr(_PaperSolver, "_validation_loss", lambda self: next(script))


# -- the schedule of the paper ----------------------------------------------------------------------------------


def test_the_constants_are_the_papers():
    assert _paper.LEARNING_RATES == (1e-3, 3e-4, 1e-4)
    assert _paper.CHECK_EVERY == 100
    assert _paper.PATIENCE == 2000


def test_epochs_alternate_between_the_losses(monkeypatch):
    seen = []
    for name in ("_whitening", "_reconstruction"):
        loss = getattr(_PaperSolver, name)

        def spy(self, batch, name=name, loss=loss):
            if torch.is_grad_enabled():  # not the look at the held-out bursts
                seen.append((self.state.epoch, name))
            return loss(self, batch)

        monkeypatch.setattr(_PaperSolver, name, spy)
    short_fit(paper_loca(max_iter=6), planar_bursts(40, 20)[1])
    epochs = list(dict.fromkeys(seen))
    assert epochs == [(i, "_reconstruction" if i % 2 else "_whitening") for i in range(6)]
    assert len(seen) == 6 * _paper.BATCHES


def test_whitening_trains_the_encoder_and_reconstruction_both(monkeypatch):
    changes = []
    epoch = _PaperSolver._epoch

    def spy(self, optimizer, *, whitening):
        before = weights(self.encoder), weights(self.decoder)
        out = epoch(self, optimizer, whitening=whitening)
        moved = [not torch.equal(b, weights(n)) for b, n in zip(before, (self.encoder, self.decoder), strict=True)]
        changes.append((whitening, *moved))
        return out

    monkeypatch.setattr(_PaperSolver, "_epoch", spy)
    short_fit(paper_loca(max_iter=4), planar_bursts(40, 20)[1])
    assert changes == [(True, True, False), (False, True, True)] * 2


def test_losses_are_the_papers_formulas():
    """Equations 8 and 9 burst by burst in NumPy; the held-out loss is their sum."""
    _, bursts = planar_bursts(40, 20)
    model = short_fit(paper_loca(max_iter=4), bursts)
    held_out = bursts[model.validation_indices_]
    whitening = [
        np.square(np.cov(model.transform(burst).T) / model.burst_std_**2 - np.eye(2)).sum() for burst in held_out
    ]
    decoded = model.decode(model.encode(held_out))
    expected = np.mean(whitening) + np.square(decoded - held_out).sum(axis=2).mean()
    found = [record["validation_loss"] for record in model.history_]
    assert found == pytest.approx([expected], rel=1e-3)  # float32


@pytest.mark.parametrize(("max_iter", "checks"), [(300, [100, 200, 300]), (250, [100, 200, 250]), (7, [7])])
def test_a_check_every_hundred_epochs_and_at_the_end(monkeypatch, max_iter, checks):
    monkeypatch.setattr(_paper, "BATCHES", 1)
    model = short_fit(paper_loca(max_iter=max_iter), planar_bursts(20, 10)[1])
    assert [record["iteration"] for record in model.history_] == checks
    assert all(
        set(record) == {"stage", "iteration", "seconds", "loss", "validation_loss", "best_loss"}
        for record in model.history_
    )
    assert {record["stage"] for record in model.history_} == {"adam 0.001"}
    assert not model.converged_


@pytest.mark.parametrize(
    ("losses", "checks"),
    [
        # never better than at the start: each rate ends 6 epochs after it began
        ([5.0, 9.0], {"adam 0.01": [2, 4, 6], "adam 0.001": [8, 10, 12]}),
        # best at epoch 4: the first rate ends 6 epochs later
        ([5.0, 4.0, 3.0, 9.0], {"adam 0.01": [2, 4, 6, 8, 10], "adam 0.001": [12, 14, 16]}),
        # an equal loss is no gain
        ([5.0, 5.0], {"adam 0.01": [2, 4, 6], "adam 0.001": [8, 10, 12]}),
        # a gain at the last moment, epoch 6, and one in the second rate, at epoch 14
        (
            [5.0, 9.0, 9.0, 4.0, 9.0, 9.0, 9.0, 3.0, 9.0],
            {"adam 0.01": [2, 4, 6, 8, 10, 12], "adam 0.001": [14, 16, 18, 20]},
        ),
    ],
)
@pytest.mark.usefixtures("short_schedule")
def test_a_rate_ends_when_the_best_is_old(monkeypatch, losses, checks):
    script_validation(monkeypatch, losses)
    model = short_fit(paper_loca(max_iter=None), planar_bursts(20, 10)[1])
    found = {}
    for record in model.history_:
        found.setdefault(record["stage"], []).append(record["iteration"])
    assert found == checks
    assert model.converged_
    assert model.n_iter_ == checks["adam 0.001"][-1]
    best = itertools.accumulate([record["validation_loss"] for record in model.history_], min, initial=losses[0])
    assert [record["best_loss"] for record in model.history_] == list(best)[1:]


@pytest.mark.usefixtures("short_schedule")
def test_a_gain_smaller_than_tol_does_not_count(monkeypatch):
    script_validation(monkeypatch, [5.0, 4.9, 4.8, 4.7, 4.6])
    model = short_fit(paper_loca(max_iter=None, tol=0.1), planar_bursts(20, 10)[1])
    assert model.n_iter_ == 12
    assert {record["best_loss"] for record in model.history_} == {5.0}


@pytest.mark.usefixtures("short_schedule")
def test_each_rate_starts_from_the_best_weights(monkeypatch):
    script_validation(monkeypatch, [5.0, 4.0, 9.0])
    starts, at_epoch = [], {}
    stage, epoch = _PaperSolver._stage, _PaperSolver._epoch

    def spy_stage(self):
        starts.append((self.state.rate, weights(self.networks)))
        stage(self)

    def spy_epoch(self, optimizer, *, whitening):
        out = epoch(self, optimizer, whitening=whitening)
        at_epoch[self.state.epoch + 1] = weights(self.networks), optimizer.param_groups[0]["lr"]
        return out

    monkeypatch.setattr(_PaperSolver, "_stage", spy_stage)
    monkeypatch.setattr(_PaperSolver, "_epoch", spy_epoch)
    model = short_fit(paper_loca(max_iter=None), planar_bursts(20, 10)[1])
    assert [rate for rate, _ in starts] == [1e-2, 1e-3]
    best = at_epoch[2][0]  # the only check that gained
    assert not torch.equal(best, at_epoch[8][0])
    assert torch.equal(starts[1][1], best)
    assert torch.equal(weights(nn.ModuleList([model.encoder_, model.decoder_])), best)
    assert [rate for _, rate in at_epoch.values()] == [1e-2] * 8 + [1e-3] * 6


def test_the_best_weights_are_restored(monkeypatch):
    """A step far too large spoils the weights again and again; what comes out is the best that was seen."""
    monkeypatch.setattr(_paper, "LEARNING_RATES", (0.3,))
    monkeypatch.setattr(_paper, "CHECK_EVERY", 1)
    _, bursts = planar_bursts(40, 20)
    model = short_fit(paper_loca(max_iter=40), bursts)
    losses = [record["validation_loss"] for record in model.history_]
    assert losses[-1] > 1.01 * min(losses)  # otherwise this shows nothing
    held_out = torch.tensor(bursts[model.validation_indices_], dtype=torch.float32)
    encoded = model.encode(held_out.numpy())
    whitening = np.mean([np.square(np.cov(z.T) / 1e-4 - np.eye(2)).sum() for z in encoded])
    rebuilt = np.square(model.decode(encoded) - held_out.numpy()).sum(axis=2).mean()
    assert whitening + rebuilt == pytest.approx(min(losses), rel=1e-3)


# -- networks and data ------------------------------------------------------------------------------------------


def test_networks_of_the_appendix():
    """Hidden layers with an activation each, then two linear layers, and no skip: [50, 50, 2, 2]."""
    model = short_fit(
        LOCA(2, burst_std=0.01, solver="paper", max_iter=2, random_state=0, decoder_activation="leaky_relu"),
        planar_bursts(20, 10)[1],
    )
    for network, sizes, activation in (
        (model.encoder_, [(3, 50), (50, 50), (50, 2)], "tanh"),
        (model.decoder_, [(2, 50), (50, 50), (50, 3)], "leaky_relu"),
    ):
        assert type(network) is MLP
        assert [(layer.in_features, layer.out_features) for layer in network.linear_layers()] == sizes
        assert (network.tail.in_features, network.tail.out_features) == (sizes[-1][1],) * 2
        assert network.skip is None
        assert network.activation == activation
        assert all(p.dtype == torch.float32 for p in network.parameters())


def test_batches_go_through_all_bursts_in_another_order_each_epoch(monkeypatch):
    """Nine batches, as of the paper's 1800 bursts by 200; every burst once an epoch."""
    seen = []
    whitening = _PaperSolver._whitening

    def spy(self, batch):
        if torch.is_grad_enabled():
            seen.append(batch.clone())
        return whitening(self, batch)

    monkeypatch.setattr(_PaperSolver, "_whitening", spy)
    _, bursts = planar_bursts(100, 10)
    model = short_fit(paper_loca(max_iter=3), bursts)
    train = np.setdiff1d(np.arange(100), model.validation_indices_)
    assert [len(batch) for batch in seen] == [10] * 18
    first, second = torch.cat(seen[:9]), torch.cat(seen[9:])
    assert not torch.equal(first, second)
    for epoch in (first, second):
        order = np.argsort(epoch[:, 0, 0].numpy())
        expected = bursts[train].astype(np.float32)
        np.testing.assert_array_equal(epoch.numpy()[order], expected[np.argsort(expected[:, 0, 0])])


def test_ragged_bursts_and_none_held_out():
    _, bursts = planar_bursts(40, 20)
    ragged = [burst[: 5 + i % 3] for i, burst in enumerate(bursts)]
    model = short_fit(paper_loca(max_iter=4, validation_fraction=0), ragged)
    assert np.isfinite(model.embedding_).all()
    assert np.isfinite(model.history_[-1]["validation_loss"])


def test_modules_of_your_own_are_trained_as_copies():
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    decoder = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 3))
    before = weights(encoder), weights(decoder)
    model = short_fit(paper_loca(encoder=encoder, decoder=decoder, max_iter=100), planar_bursts(40, 20)[1])
    assert torch.equal(weights(encoder), before[0])
    assert torch.equal(weights(decoder), before[1])
    assert isinstance(model.encoder_, nn.Sequential)
    assert not torch.equal(weights(model.encoder_), before[0].float())


def test_statistics_are_refused():
    with pytest.raises(BurstError, match='solver="paper" trains on raw bursts; it cannot use BurstStatistics'):
        paper_loca(burst_std=1.0).fit(planar_statistics(20)[1])


def test_the_same_seed_gives_the_same_bits():
    _, bursts = planar_bursts(40, 20)
    first, second = (short_fit(paper_loca(max_iter=20), bursts) for _ in range(2))
    np.testing.assert_array_equal(first.embedding_, second.embedding_)
    other = short_fit(paper_loca(max_iter=20, random_state=1), bursts)
    assert not np.array_equal(first.embedding_, other.embedding_)


def test_a_callback_stops_the_training(monkeypatch):
    monkeypatch.setattr(_paper, "CHECK_EVERY", 5)
    model = short_fit(
        paper_loca(max_iter=None, callbacks=[lambda record: record["iteration"] == 10]), planar_bursts(40, 20)[1]
    )
    assert model.n_iter_ == 10
    assert not model.converged_
    assert np.isfinite(model.inverse_transform(model.embedding_)).all()


@pytest.mark.slow
def test_it_learns(monkeypatch):
    """Some hundred epochs are too few to finish and enough to see that the way is down."""
    monkeypatch.setattr(_paper, "LEARNING_RATES", (1e-2,))
    monkeypatch.setattr(_paper, "BATCHES", 2)
    X, bursts = planar_bursts(60, 20, std=0.1)
    model = short_fit(paper_loca(max_iter=500, burst_std=0.1), bursts)
    losses = [record["validation_loss"] for record in model.history_]
    assert losses[-1] < 0.5 * losses[0]
    assert stress(X, model.embedding_) < 0.05


# -- a loss that is not finite ----------------------------------------------------------------------------------


def spoil(monkeypatch, bad_epochs):
    """Make the loss of these epochs NaN and the weights with it; what each epoch saw: (weights before, rate)."""
    seen = {}
    epoch = _PaperSolver._epoch

    def spoiled(self, optimizer, *, whitening):
        seen[self.state.epoch] = weights(self.networks), optimizer.param_groups[0]["lr"]
        loss = epoch(self, optimizer, whitening=whitening)
        if self.state.epoch not in bad_epochs:
            return loss
        with torch.no_grad():
            for p in self.networks.parameters():
                p.fill_(torch.nan)
        return float("nan")

    monkeypatch.setattr(_PaperSolver, "_epoch", spoiled)
    return seen


@pytest.mark.usefixtures("short_schedule")
def test_a_loss_that_is_not_finite_is_retried_from_the_best_by_smaller_steps(monkeypatch):
    seen = spoil(monkeypatch, {1, 3})
    model = short_fit(paper_loca(max_iter=5), planar_bursts(40, 20)[1])
    assert [rate for _, rate in seen.values()] == pytest.approx([1e-2, 1e-2, 1e-3, 1e-3, 1e-4])
    best = seen[0][0]  # no check has come before: the start is the best
    assert torch.equal(seen[2][0], best)
    assert torch.equal(seen[4][0], best)
    assert np.isfinite(model.embedding_).all()


@pytest.mark.usefixtures("short_schedule")
def test_after_three_retries_it_is_an_error(monkeypatch):
    seen = spoil(monkeypatch, {0, 1, 2, 3})
    with pytest.raises(ConvergenceError, match="the loss became nan at epoch 4, 4 times in spite of smaller steps"):
        paper_loca(max_iter=None).fit(planar_bursts(40, 20)[1])
    assert [rate for _, rate in seen.values()] == pytest.approx([1e-2, 1e-3, 1e-4, 1e-5])


def test_measurements_beyond_single_precision_are_an_error():
    _, bursts = planar_bursts(40, 20)
    with pytest.raises(ConvergenceError, match='Scale the measurements to unit size, or use solver="fast"'):
        paper_loca(max_iter=None).fit(1e25 * bursts)
