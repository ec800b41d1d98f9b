"""Algorithm 1 of the paper, to the letter, with its schedule.

Adam; epochs alternate between the whitening loss (encoder) and the reconstruction loss (encoder and decoder); every 100
epochs the sum of both on the held-out bursts is evaluated and the best weights are kept; a learning rate ends when the
best has not changed for 2000 epochs; 10⁻³, 3·10⁻⁴, 10⁻⁴, each from the best weights so far. Nothing here is ours except
the guard against a non-finite loss.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from pyloca.bursts import Bursts
from pyloca.errors import BurstError, ConvergenceError
from pyloca.networks import MLP
from pyloca.objectives import burst_covariance, frobenius, reconstruction
from pyloca.solvers._checkpoint import State, is_state
from pyloca.solvers._monitor import Monitor, StopTraining
from pyloca.solvers._problem import Problem, Solution

__all__ = ["PaperState", "solve_paper"]

LEARNING_RATES = (1e-3, 3e-4, 1e-4)
CHECK_EVERY = 100  # epochs
PATIENCE = 2000  # epochs
BATCHES = 9  # 1800 bursts in batches of 200 on `mushroom`; the other experiments have 9 to 18
ADAM = ("step", "exp_avg", "exp_avg_sq")  # what it remembers of a parameter
RETRIES = 3


def solve_paper(problem: Problem, monitor: Monitor) -> Solution:
    """Train encoder and decoder on the raw bursts.

    Parameters
    ----------
    problem : Problem
    monitor : Monitor

    Returns
    -------
    Solution

    Raises
    ------
    BurstError
        If there are only statistics.
    ValueError
        If the perturbations of the bursts are known, which Algorithm 1 does not use, or their measurement noise.
    ConvergenceError
        If the loss becomes non-finite again and again.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> from pyloca.solvers import Monitor, Problem
    >>> bursts = datasets.mushroom(20, 10, random_state=0).bursts.without_perturbations()
    >>> train, held_out = np.arange(15), np.arange(15, 20)
    >>> problem = Problem(
    ...     BurstStatistics.from_bursts(bursts, 2), bursts, train, held_out, n_components=2, burst_std=0.01,
    ...     hidden_layers=(5,), activation="tanh", decoder_activation="tanh", encoder=None, decoder=None,
    ...     device=torch.device("cpu"), seed=0, max_iter=2, tol=None,
    ... )
    >>> solve_paper(problem, Monitor()).converged
    False
    """
    if problem.bursts is None:
        raise BurstError(
            'solver="paper" trains on raw bursts; it cannot use BurstStatistics. Pass the bursts, or solver="fast".'
        )
    if problem.bursts.perturbed_dim is not None:
        raise ValueError(
            'solver="paper" trains on covariances and does not use the perturbations that these bursts know. Pass '
            'bursts.without_perturbations(), if they are equally wide in all directions, or solver="fast".'
        )
    noise = problem.statistics.instrument
    if noise is not None and noise.levels.any():
        raise ValueError(
            'solver="paper" trains on raw points and cannot take their measurement noise into account. Use '
            'solver="fast", or measurement_noise=0 to leave the noise in.'
        )
    return _PaperSolver(problem, problem.bursts, monitor).solve()


@dataclass
class PaperState(State):
    """All that a run needs to resume, bit for bit. `_snapshot` adds networks, optimizers and generator."""

    place: int = 0  # in the schedule of learning rates
    rate: float = 0.0  # the learning rate, smaller than the schedule's after a retry
    retries: int = 0
    epoch: int = 0
    best_epoch: int = 0  # when the best weights were found, or this learning rate began
    best_loss: float = math.inf
    best: dict[str, Tensor] = field(default_factory=dict)
    networks: dict[str, Tensor] = field(default_factory=dict)
    moments: dict[str, Tensor] = field(default_factory=dict)  # of both Adams
    generator: Tensor = field(default_factory=partial(torch.empty, 0, dtype=torch.uint8))


class _PaperSolver:
    def __init__(self, problem: Problem, bursts: Bursts, monitor: Monitor) -> None:
        self.problem, self.monitor = problem, monitor
        self.generator = torch.Generator().manual_seed(problem.seed)
        dim, d = problem.statistics.n_features, problem.n_components
        self.encoder = self._network(problem.encoder, dim, d, problem.activation)
        self.decoder = self._network(problem.decoder, d, dim, problem.decoder_activation)
        self.networks = nn.ModuleList([self.encoder, self.decoder])
        self.groups = self._tensors(bursts[problem.train])
        held_out = problem.validation if len(problem.validation) else problem.train
        self.held_out = self._tensors(bursts[held_out])
        self.budget = math.inf if problem.max_iter is None else problem.max_iter
        self.tol = 0.0 if problem.tol is None else problem.tol
        self.state = PaperState()

    def solve(self) -> Solution:
        converged = True
        loss = self._validation_loss()
        self._keep_best(loss if math.isfinite(loss) else math.inf)
        if self.monitor.resume(self.state):
            self.monitor.refuse(self._fault())
            self._restore()
        else:
            self._begin(0)
        try:
            self._train()
        except StopTraining:
            converged = False
        self._load_best()
        return Solution(self.encoder, self.decoder, converged)

    # -- training loop ------------------------------------------------------------------------------------------

    def _train(self) -> None:
        """Follow the schedule from the current learning rate on, each from the best weights so far."""
        self._stage()
        for place in range(self.state.place + 1, len(LEARNING_RATES)):
            self._load_best()
            self._begin(place)
            self._stage()

    def _begin(self, place: int) -> None:
        state = self.state
        state.place, state.rate, state.retries = place, LEARNING_RATES[place], 0
        state.best_epoch = state.epoch
        self.adams = self._new_adams()

    def _stage(self) -> None:
        """Train at one learning rate, until the best weights are `PATIENCE` epochs old."""
        state = self.state
        while state.epoch - state.best_epoch < PATIENCE:
            if state.epoch >= self.budget:
                raise StopTraining
            whitening = state.epoch % 2 == 0
            loss = self._epoch(self.adams[0 if whitening else 1], whitening=whitening)
            state.epoch += 1
            self.monitor.advance()
            if not math.isfinite(loss):
                self._retry(loss)
            elif state.epoch % CHECK_EVERY == 0 or state.epoch >= self.budget:
                validation = self._validation_loss()
                if validation < state.best_loss * (1 - self.tol):
                    self._keep_best(validation)
                self.monitor.record(
                    f"adam {state.rate:g}",
                    state.epoch,
                    self._snapshot,
                    loss=loss,
                    validation_loss=validation,
                    best_loss=state.best_loss,
                )

    def _retry(self, loss: float) -> None:
        """Go back to the best weights and take smaller steps."""
        state = self.state
        state.retries += 1
        if state.retries > RETRIES:
            raise ConvergenceError(
                f"the loss became {loss} at epoch {state.epoch}, {state.retries} times in spite of smaller steps. "
                'Scale the measurements to unit size, or use solver="fast".'
            )
        self._load_best()
        state.rate /= 10
        self.adams = self._new_adams()

    def _keep_best(self, loss: float) -> None:
        state = self.state
        state.best_loss, state.best_epoch, state.best = loss, state.epoch, _weights(self.networks)

    def _load_best(self) -> None:
        self.networks.load_state_dict(self.state.best)

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
        """Yield bursts in random order, in batches of equal length (n, M, D)."""
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

    def _snapshot(self) -> PaperState:
        """Copy the state together with the current networks, optimizers and generator."""
        moments = {
            f"{i}.{j}.{name}": value.clone()
            for i, adam in enumerate(self.adams)
            for j, values in adam.state_dict()["state"].items()
            for name, value in values.items()
        }
        return replace(
            self.state, networks=_weights(self.networks), moments=moments, generator=self.generator.get_state()
        )

    def _fault(self) -> str:
        """Name what the state that was read cannot have in this problem; "" if nothing."""
        state, weights = self.state, _weights(self.networks)
        shapes = {name: (value.shape, value.dtype) for name, value in weights.items()}
        known = {
            name: {key: (value.shape, value.dtype) for key, value in getattr(state, name).items()} == shapes
            for name in ("best", "networks")
        }
        known |= {
            "weights": all(bool(torch.isfinite(value).all()) for value in state.best.values()),
            "place": state.place < len(LEARNING_RATES),
            "rate": 0 < state.rate <= max(LEARNING_RATES),
            "retries": state.retries <= RETRIES,
            "epoch": state.best_epoch <= state.epoch,
            "moments": self._are_moments(state.moments),
            "generator": is_state(state.generator),
        }
        return next((name for name, good in known.items() if not good), "")

    def _are_moments(self, moments: dict[str, Tensor]) -> bool:
        """Whether a dict of tensors may be what both Adams remember."""
        expected: dict[str, torch.Size] = {}
        for i, parameters in enumerate((self.encoder.parameters(), self.networks.parameters())):
            for j, parameter in enumerate(parameters):
                shapes = (torch.Size(()), parameter.shape, parameter.shape)
                expected |= {f"{i}.{j}.{name}": shape for name, shape in zip(ADAM, shapes, strict=True)}
        return all(
            expected.get(name) == value.shape and value.is_floating_point() for name, value in moments.items()
        ) and all(f"{name.rpartition('.')[0]}.{part}" in moments for name in moments for part in ADAM)

    def _restore(self) -> None:
        """Invert `_snapshot`."""
        self.networks.load_state_dict(self.state.networks)
        self.generator.set_state(self.state.generator)
        self.adams = self._new_adams()
        moments: tuple[dict[int, dict[str, Tensor]], ...] = ({}, {})
        for key, value in self.state.moments.items():
            i, j, name = key.split(".")
            moments[int(i)].setdefault(int(j), {})[name] = value
        for adam, of_adam in zip(self.adams, moments, strict=True):
            adam.load_state_dict(adam.state_dict() | {"state": of_adam})

    # -- set-up -------------------------------------------------------------------------------------------------

    def _network(self, given: nn.Module | None, n_in: int, n_out: int, activation: str) -> nn.Module:
        if given is not None:
            network = copy.deepcopy(given)
        else:
            drawn = torch.Generator().manual_seed(self.problem.seed)
            network = MLP(n_in, self.problem.hidden_layers, n_out, activation, linear_tail=True, generator=drawn)
        return network.to(dtype=torch.float32, device=self.problem.device)

    def _new_adams(self) -> tuple[torch.optim.Adam, torch.optim.Adam]:
        """Create one Adam for whitening and one for reconstruction, at the current learning rate."""
        parameters = self.encoder.parameters(), self.networks.parameters()
        whitening, reconstruction = (torch.optim.Adam(p, lr=self.state.rate) for p in parameters)
        return whitening, reconstruction

    def _tensors(self, bursts: Bursts) -> list[Tensor]:
        """Load all bursts into memory, those of equal length together: (n, M, D) each."""
        groups: dict[int, list[np.ndarray]] = {}
        for _, block in bursts.blocks():
            groups.setdefault(block.shape[1], []).append(block)
        return [
            torch.as_tensor(np.concatenate(blocks), dtype=torch.float32, device=self.problem.device)
            for blocks in groups.values()
        ]


def _weights(networks: nn.ModuleList) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in networks.state_dict().items()}
