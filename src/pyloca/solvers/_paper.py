"""Algorithm 1 of the paper, to the letter, with its schedule.

Adam; epochs alternate between the whitening loss (encoder) and the reconstruction loss (encoder and decoder); every 100
epochs the sum of both on the held-out bursts is evaluated and the best weights are kept; a learning rate ends when the
best has not changed for 2000 epochs; 10⁻³, 3·10⁻⁴, 10⁻⁴, each from the best weights so far. Nothing here is ours except
the guard against a non-finite loss.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from pyloca.bursts import Bursts
from pyloca.errors import BurstError, ConvergenceError
from pyloca.networks import MLP
from pyloca.objectives import burst_covariance, frobenius, reconstruction
from pyloca.solvers._checkpoint import State
from pyloca.solvers._monitor import Monitor, StopTraining
from pyloca.solvers._problem import Problem, Solution

__all__ = ["solve_paper"]

LEARNING_RATES = (1e-3, 3e-4, 1e-4)
CHECK_EVERY = 100  # epochs
PATIENCE = 2000  # epochs
BATCHES = 9  # 1800 bursts in batches of 200 on `mushroom`; the other experiments have 9 to 18
RETRIES = 3


def solve_paper(problem: Problem, monitor: Monitor) -> Solution:
    """Train encoder and decoder on the raw bursts."""
    if problem.bursts is None:
        raise BurstError(
            'solver="paper" trains on raw bursts; it cannot use BurstStatistics. Pass the bursts, or solver="fast".'
        )
    return _PaperSolver(problem, monitor).solve()


@dataclass
class _Stage:
    """A learning rate of the schedule: which, the rate itself (smaller after a retry), and its two Adams."""

    place: int
    rate: float
    retries: int
    optimizers: tuple[torch.optim.Adam, torch.optim.Adam]


class _PaperSolver:
    def __init__(self, problem: Problem, monitor: Monitor) -> None:
        assert problem.bursts is not None
        self.problem, self.monitor = problem, monitor
        self.generator = torch.Generator().manual_seed(problem.seed)
        dim, d = problem.statistics.n_features, problem.n_components
        self.encoder = self._network(problem.encoder, dim, d, problem.activation)
        self.decoder = self._network(problem.decoder, d, dim, problem.decoder_activation)
        self.groups = self._tensors(problem.bursts[problem.train])
        held_out = problem.validation if len(problem.validation) else problem.train
        self.held_out = self._tensors(problem.bursts[held_out])
        self.budget = math.inf if problem.max_iter is None else problem.max_iter
        self.tol = 0.0 if problem.tol is None else problem.tol
        self.epoch = 0

    def solve(self) -> Solution:
        best = _Best(self._networks(), self._validation_loss())
        converged = True
        resumed = self.monitor.resume()
        try:
            if resumed is None:
                self._train(self._begin(0, best), best)
            else:
                self._train(self._restore(resumed, best), best)
        except StopTraining:
            converged = False
        best.restore(self._networks())
        return Solution(self.encoder, self.decoder, converged)

    # -- training loop ------------------------------------------------------------------------------------------

    def _train(self, stage: _Stage, best: _Best) -> None:
        """The schedule from `stage` on."""
        self._stage(stage, best)
        for place in range(stage.place + 1, len(LEARNING_RATES)):
            best.restore(self._networks())
            self._stage(self._begin(place, best), best)

    def _begin(self, place: int, best: _Best) -> _Stage:
        best.epoch = self.epoch
        return _Stage(place, LEARNING_RATES[place], 0, self._optimizers(LEARNING_RATES[place]))

    def _stage(self, stage: _Stage, best: _Best) -> None:
        """One learning rate, until the best weights are `PATIENCE` epochs old."""
        while self.epoch - best.epoch < PATIENCE:
            if self.epoch >= self.budget:
                raise StopTraining
            whitening = self.epoch % 2 == 0
            loss = self._epoch(stage.optimizers[0 if whitening else 1], whitening=whitening)
            self.epoch += 1
            self.monitor.advance()
            if not math.isfinite(loss):
                stage.retries += 1
                if stage.retries > RETRIES:
                    raise ConvergenceError(
                        f"the loss became {loss} at epoch {self.epoch}, {stage.retries} times at ever smaller steps. "
                        'Scale the measurements to unit size, or use solver="fast".'
                    )
                best.restore(self._networks())
                stage.rate /= 10
                stage.optimizers = self._optimizers(stage.rate)
            elif self.epoch % CHECK_EVERY == 0 or self.epoch >= self.budget:
                validation = self._validation_loss()
                if validation < best.loss * (1 - self.tol):
                    best.keep(self._networks(), validation, self.epoch)
                self.monitor.record(
                    f"adam {stage.rate:g}",
                    self.epoch,
                    partial(self._state, stage, best),
                    loss=loss,
                    validation_loss=validation,
                    best_loss=best.loss,
                )

    def _epoch(self, optimizer: torch.optim.Optimizer, *, whitening: bool) -> float:
        total = torch.zeros((), device=self.problem.device)
        n = 0
        for batch in self._batches():
            optimizer.zero_grad(set_to_none=True)
            loss = self._whitening(batch) if whitening else self._reconstruction(batch)
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(batch)
            n += len(batch)
        return float(total) / n

    def _batches(self) -> Iterator[Tensor]:
        """Bursts in random order, in batches of equal length (n, M, D)."""
        n = sum(len(group) for group in self.groups)
        size = max(1, n // BATCHES)
        batches = [
            group[part]
            for group in self.groups
            for part in torch.randperm(len(group), generator=self.generator).to(group.device).split(size)
        ]
        order = torch.randperm(len(batches), generator=self.generator) if len(self.groups) > 1 else range(len(batches))
        return (batches[int(i)] for i in order)

    # -- losses -------------------------------------------------------------------------------------------------

    def _whitening(self, batch: Tensor) -> Tensor:
        return frobenius(burst_covariance(self._encode(batch)), self.problem.burst_std).mean()

    def _reconstruction(self, batch: Tensor) -> Tensor:
        decoded = self.decoder(self._encode(batch).flatten(0, 1))  # (n M, D)
        return reconstruction(batch.flatten(0, 1), decoded).mean()

    def _encode(self, batch: Tensor) -> Tensor:
        return self.encoder(batch.flatten(0, 1)).unflatten(0, batch.shape[:2])  # (n, M, d)

    def _validation_loss(self) -> float:
        with torch.no_grad():
            sums = [len(group) * float(self._whitening(group) + self._reconstruction(group)) for group in self.held_out]
        return sum(sums) / sum(len(group) for group in self.held_out)

    # -- interrupted and resumed: the same run, bit for bit -----------------------------------------------------

    def _state(self, stage: _Stage, best: _Best) -> State:
        numbers = {
            "place": stage.place,
            "rate": stage.rate,
            "retries": stage.retries,
            "epoch": self.epoch,
            "best_epoch": best.epoch,
            "best_loss": best.loss,
        }
        tensors = {f"networks.{name}": value.clone() for name, value in self._networks().state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in best.weights.items()}
        tensors["generator"] = self.generator.get_state()
        for i, optimizer in enumerate(stage.optimizers):
            for j, moments in optimizer.state_dict()["state"].items():
                tensors |= {f"adam.{i}.{j}.{name}": value.clone() for name, value in moments.items()}
        return State(f"adam {stage.rate:g}", numbers, tensors)

    def _restore(self, state: State, best: _Best) -> _Stage:
        numbers = state.numbers
        best.weights = {name: value.to(self.problem.device) for name, value in _below(state.tensors, "best").items()}
        best.epoch, best.loss = int(numbers["best_epoch"]), numbers["best_loss"]
        self._networks().load_state_dict(_below(state.tensors, "networks"))
        self.generator.set_state(state.tensors["generator"])
        self.epoch = int(numbers["epoch"])
        optimizers = self._optimizers(numbers["rate"])
        for i, optimizer in enumerate(optimizers):
            moments: dict[int, dict[str, Tensor]] = {}
            for name, value in _below(state.tensors, f"adam.{i}").items():
                j, _, moment = name.partition(".")
                moments.setdefault(int(j), {})[moment] = value
            optimizer.load_state_dict(optimizer.state_dict() | {"state": moments})
        return _Stage(int(numbers["place"]), numbers["rate"], int(numbers["retries"]), optimizers)

    # -- set-up -------------------------------------------------------------------------------------------------

    def _network(self, given: nn.Module | None, n_in: int, n_out: int, activation: str) -> nn.Module:
        if given is not None:
            network = copy.deepcopy(given)
        else:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.problem.seed)
                network = MLP(n_in, self.problem.hidden_layers, n_out, activation, linear_tail=True)
        return network.to(dtype=torch.float32, device=self.problem.device)

    def _networks(self) -> nn.ModuleList:
        return nn.ModuleList([self.encoder, self.decoder])

    def _optimizers(self, rate: float) -> tuple[torch.optim.Adam, torch.optim.Adam]:
        whitening = torch.optim.Adam(self.encoder.parameters(), lr=rate)
        return whitening, torch.optim.Adam(self._networks().parameters(), lr=rate)

    def _tensors(self, bursts: Bursts) -> list[Tensor]:
        """All bursts in memory, those of equal length together: (n, M, D) each."""
        groups: dict[int, list[np.ndarray]] = {}
        for _, block in bursts.blocks():
            groups.setdefault(block.shape[1], []).append(block)
        return [
            torch.as_tensor(np.concatenate(blocks), dtype=torch.float32, device=self.problem.device)
            for blocks in groups.values()
        ]


class _Best:
    """The best weights so far and when they were found."""

    def __init__(self, networks: nn.ModuleList, loss: float) -> None:
        self.epoch = 0
        self.keep(networks, loss if math.isfinite(loss) else math.inf, 0)

    def keep(self, networks: nn.ModuleList, loss: float, epoch: int) -> None:
        self.loss, self.epoch = loss, epoch
        self.weights = {name: value.clone() for name, value in networks.state_dict().items()}

    def restore(self, networks: nn.ModuleList) -> None:
        networks.load_state_dict(self.weights)


def _below(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(f"{prefix}."): t for name, t in tensors.items() if name.startswith(f"{prefix}.")}
