"""The fast solver: seconds, no learning rate, no collapsed or folded run.

1. *Fit* the encoder to positions and frames of the alignment, smoothly.
2. *Whiten*: minimise the likelihood, with a weight decay that is lowered as long as held-out bursts gain by it. An
   encoder that comes out folded or collapsed is given up, and another alignment tried.
3. *Decode*: the same for the decoder, on values and tangents.
All by L-BFGS with a Gauss–Newton preconditioner, on `BurstStatistics` alone.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyloca.alignment import Alignment, align
from pyloca.diagnostics import MANY_APART, Whitening, embedding_fault, overlapping
from pyloca.errors import ConvergenceError
from pyloca.geometry import BurstStatistics
from pyloca.networks import MLP, PushforwardKernel, Standardized, initialize, make_kernel
from pyloca.objectives import gauss_newton_rows, likelihood_pushed_with_gradient, sampling_floor
from pyloca.solvers._checkpoint import State
from pyloca.solvers._monitor import Monitor, StopTraining
from pyloca.solvers._problem import Problem, Solution
from pyloca.solvers._quasi_newton import LBFGS

__all__ = ["solve_fast"]

MAX_ITER = 2000  # over all stages; noise-free data would go on improving for ever
FIT_ITERATIONS = 200
FIT_DECAY = 1e-3
SEGMENT = 50  # iterations between two looks at the held-out bursts
TAIL = 25  # of these the last, whose mean is looked at
SAME_SCORE = 0.005
PATIENCE = 1  # such looks without gain end a stage
WHITEN_ITERATIONS, DECODE_ITERATIONS = 1000, 200
# Weight decay as a multiple of the held-out loss: so it vanishes by itself on noise-free data and stays put at the
# sampling floor of noisy data. Lowered stage by stage while that pays.
DECAY_RATIOS = (3e-2, 3e-4, 3e-6)
DECODER_DECAY_RATIOS = (3e-2,)  # the means carry no noise to tell from signal, so nothing would stop a descent
# A burst counts in the held-out score with at most this many times the sampling floor. The few bursts where the
# measurement is singular would otherwise drown the many that tell smoothing from overfitting.
SCORE_CAP = 5.0
TANGENT_WEIGHT = 0.01  # of tangents beside values in the decoder's loss
STAGED_BURSTS = 4000  # stages run on at most this many bursts; a last one then sees all
FINISH_ITERATIONS = 100
PROBES = 450  # bursts that shape the preconditioner
# Alignments to begin with. The next one is tried when this one is folded, or what comes of it.
RESTART = "restart"
STARTS: tuple[dict[str, Any], ...] = ({}, {"denser": 2}, {"method": "geodesic"})
CHUNK = 2048  # bursts evaluated at a time: buffers of that size stay in the cache

Loss = Callable[[Tensor, slice], tuple[float, Tensor]]


def solve_fast(problem: Problem, monitor: Monitor) -> Solution:
    """Alignment → encoder → decoder."""
    return _FastSolver(problem, monitor).solve()


@dataclass
class _Task:
    """One network to train: inputs as stacks, a loss on outputs, and rows that shape its preconditioner."""

    name: str
    kernel: PushforwardKernel
    train: Tensor  # (1 + k, n, ·)
    held_out: Tensor
    loss: Callable[[NDArray[np.int64] | None], Loss]  # of some training bursts, None: of the held-out ones
    rows: Callable[[Tensor], Tensor]
    score: Callable[[Tensor], float]  # of the network's output on the held-out bursts
    iterations: int
    ratios: tuple[float, ...]
    idle_gain: float  # a stage is idle when the score falls by less than this part of itself in a segment


@dataclass
class _Encoder:
    """An encoder on its way, with the data in its units."""

    network: nn.Module
    kernel: PushforwardKernel
    out_scale: float
    train: Tensor  # (1 + k, n, D)
    held_out: Tensor
    score: float = np.inf


@dataclass
class _Progress:
    """How far a task is: what it takes to go on after an interruption. The memory of L-BFGS is not kept."""

    theta: Tensor
    best_theta: Tensor
    last: int  # iteration at which it ends
    ratio: int = 0  # which of the decays it is at
    before: float = np.inf  # the best score when this decay began
    best_score: float = np.inf
    best_decay: float = 0.0


class _FastSolver:
    def __init__(self, problem: Problem, monitor: Monitor) -> None:
        self.problem, self.monitor = problem, monitor
        self.random = np.random.RandomState(problem.seed)
        self.generator = torch.Generator().manual_seed(problem.seed)
        self.budget = MAX_ITER if problem.max_iter is None else problem.max_iter
        self.tol = 1e-2 if problem.tol is None else problem.tol
        self.iteration = 0
        self.converged = True
        self.finished: dict[str, Tensor] = {}  # weights of networks that are trained
        self.encoder: _Encoder | None = None  # the best so far
        self.attempt = 0
        # Without held-out bursts the training bursts stand in for them.
        self.held_out = problem.validation if len(problem.validation) else problem.train

    def solve(self) -> Solution:
        problem = self.problem
        statistics, d = problem.statistics, problem.n_components
        trained = statistics[problem.train]
        self.shift = trained.means.mean(axis=0)
        spread = np.square(trained.means - self.shift).sum(axis=1).mean()
        self.scale = float(np.sqrt(spread / statistics.n_features))
        self.monitor.expect(min(self.budget, 2 * FIT_ITERATIONS + WHITEN_ITERATIONS + DECODE_ITERATIONS))

        first = self._network(problem.encoder, statistics.n_features, d, problem.activation)
        decoder = self._network(problem.decoder, d, statistics.n_features, problem.decoder_activation)
        unfinished = ""
        resumed = self.monitor.resume()
        try:
            if resumed is None or resumed.stage == "whiten":
                encoder = self._encode(first, trained, resumed)
                resumed = None
            else:
                encoder = self.encoder = self._encoder(first, resumed.numbers["out_scale"])
                encoder.kernel.load(resumed.tensors["encoder"].to(problem.device))
            self.out_scale = encoder.out_scale
            self.finished = {"encoder": encoder.kernel.theta}
            decoder_kernel = make_kernel(decoder)
            decoding = self._decoding(encoder, decoder_kernel)
            if resumed is None:
                part = self._subset(decoding.train.shape[1])
                inputs = decoding.train[:, torch.as_tensor(part)].contiguous()
                self._fit("decoder", decoder_kernel, inputs, decoding.loss(part), decoding.rows)
            self._descend(decoding, resumed)
        except StopTraining:
            self.converged = False
            if self.monitor.stage != "decode":
                unfinished = self.monitor.stage
        best = self.encoder
        assert best is not None  # there is a start, or an error before
        # Whitening leaves the origin free; the embedding of the training bursts is centred there.
        centre = _forward_all(best.kernel, best.train)[0].mean(dim=0).cpu().numpy()
        return Solution(
            Standardized(best.network, self.shift, self.scale, -best.out_scale * centre, best.out_scale),
            Standardized(decoder, np.zeros(d), best.out_scale, self.shift, self.scale),
            self.converged,
            unfinished,
            self._restarts(),
        )

    # -- starts -------------------------------------------------------------------------------------------------

    def _encode(self, network: nn.Module, trained: BurstStatistics, resumed: State | None) -> _Encoder:
        """Train an encoder from one start after the other until one has no fault; if all have, the best of them."""
        for attempt, start in enumerate(self._starts(trained, resumed)):
            if resumed is not None and attempt < resumed.numbers["attempt"]:
                continue
            self.attempt = attempt
            size = float(np.sqrt(np.square(start.positions).mean()))
            if self.encoder is not None:
                network = self._network(
                    self.problem.encoder, trained.n_features, self.problem.n_components, self.problem.activation
                )
            tried = self._encoder(network, size if resumed is None else resumed.numbers["out_scale"])
            self.encoder = tried if self.encoder is None else self.encoder
            if resumed is None:
                self._fit_start(tried, start)
            tried.score = self._descend(self._whitening(tried), resumed)
            resumed = None
            fault = self._fault(tried, trained)
            if not fault:
                self.encoder = tried
                break
            self.encoder = min(self.encoder, tried, key=lambda encoder: encoder.score)
            self._give_up(fault)
        assert self.encoder is not None
        return self.encoder

    def _starts(self, trained: BurstStatistics, resumed: State | None) -> Iterator[Alignment]:
        """Alignments that do not lie on themselves; the first one when all do, for then the data is at fault."""
        first, usable = None, False
        for options in STARTS:
            start = align(
                trained,
                self.problem.n_components,
                burst_std=self.problem.burst_std,
                random_state=self.random,
                labels=self.problem.train,
                **options,
            )
            first = start if first is None else first
            if overlapping(start.positions, trained[start.rows], self.problem.burst_std) > MANY_APART:
                continue
            if first is not start and not usable and resumed is None:
                self._give_up("folded")
            usable = True
            yield start
        if first is not None and not usable:
            yield first

    def _give_up(self, fault: str) -> None:
        if self.problem.max_iter is None:
            self.budget += MAX_ITER
        self.monitor.record(f"{RESTART}: {fault}", self.iteration)

    def _restarts(self) -> tuple[str, ...]:
        """What was wrong each time, also before an interruption."""
        stages = (record["stage"] for record in self.monitor.history)
        return tuple(stage.removeprefix(f"{RESTART}: ") for stage in stages if stage.startswith(RESTART))

    def _encoder(self, network: nn.Module, out_scale: float) -> _Encoder:
        self.out_scale = out_scale
        train, held_out = (self._stack(rows, out_scale) for rows in (self.problem.train, self.held_out))
        return _Encoder(network, make_kernel(network), out_scale, train, held_out)

    def _fit_start(self, encoder: _Encoder, start: Alignment) -> None:
        targets = np.concatenate([start.positions[None] / encoder.out_scale, start.frames.transpose(1, 0, 2)])
        aligned = encoder.train[:, torch.as_tensor(start.rows)].contiguous()
        self._fit("encoder", encoder.kernel, aligned, partial(_squares, self._tensor(targets), None), self._signs)

    def _fault(self, encoder: _Encoder, trained: BurstStatistics) -> str:
        output = _forward_all(encoder.kernel, encoder.train).cpu()
        embedding = encoder.out_scale * output[0].numpy()
        white = Whitening.from_pushed(embedding, output[1:].transpose(0, 1), trained.counts)
        return embedding_fault(white, trained, self.problem.burst_std)

    # -- networks and data in unit size -------------------------------------------------------------------------

    def _network(self, given: nn.Module | None, n_in: int, n_out: int, activation: str) -> nn.Module:
        if given is not None:
            return copy.deepcopy(given).to(dtype=torch.float64, device=self.problem.device).eval()
        with torch.random.fork_rng(devices=[]):  # PyTorch's own initialisation draws from the global generator
            network = MLP(n_in, self.problem.hidden_layers, n_out, activation, skip=True).double()
        initialize(network, self.generator)
        return network.to(self.problem.device)

    def _tensor(self, array: NDArray[np.float64]) -> Tensor:
        return torch.as_tensor(array, dtype=torch.float64, device=self.problem.device).contiguous()

    def _stack(self, rows: NDArray[np.int64], out_scale: float) -> Tensor:
        """Means and tangents in units of the data, the tangents such that pushed ones are T_i: (1 + k, n, D)."""
        statistics, problem = self.problem.statistics, self.problem
        stack = np.empty((1 + statistics.intrinsic_dim, len(rows), statistics.n_features))
        stack[0] = (statistics.means[rows] - self.shift) / self.scale
        unit = out_scale / (self.scale * problem.burst_std)
        for axis in range(statistics.intrinsic_dim):
            np.multiply(statistics.tangents[rows, axis], unit, out=stack[1 + axis])
        return self._tensor(stack)

    # -- the three objectives -----------------------------------------------------------------------------------

    def _fit(
        self, name: str, kernel: PushforwardKernel, stack: Tensor, loss: Loss, rows: Callable[[Tensor], Tensor]
    ) -> None:
        """A least-squares start: at a fixed decay to find its size, then at one in proportion to it."""
        decay, theta = FIT_DECAY, kernel.theta.clone()
        for _ in range(2):
            optimizer = LBFGS(_Evaluation(kernel, stack, loss, decay), theta)
            for _ in range(FIT_ITERATIONS // (2 * SEGMENT)):
                self._precondition(kernel, optimizer, stack, rows, decay)
                going = self._run(optimizer, SEGMENT)
                theta = optimizer.theta
                kernel.load(theta)
                self.monitor.record(f"fit {name}", self.iteration, loss=optimizer.value, decay=decay)
                if self.iteration >= self.budget:
                    raise StopTraining
                if not going:
                    break
            decay = DECAY_RATIOS[0] * _Evaluation(kernel, stack, loss, 0.0)(theta)[0]

    def _whitening(self, encoder: _Encoder) -> _Task:
        """The likelihood tr G − log det G − k, a burst weighing M_i − 1."""
        statistics = self.problem.statistics
        trained, held = statistics[self.problem.train], statistics[self.held_out]
        weights, held_weights = self._tensor(trained.weights), self._tensor(held.weights)
        counts = self._tensor(held.counts)
        caps = SCORE_CAP * sampling_floor(counts, statistics.intrinsic_dim)
        caps = torch.where(torch.isfinite(counts), caps, torch.inf)

        def loss(rows: NDArray[np.int64] | None) -> Loss:
            chosen = held_weights if rows is None else weights[torch.as_tensor(rows)]
            return partial(_likelihood, chosen / chosen.mean())

        def rows(output: Tensor) -> Tensor:
            tangent_rows = gauss_newton_rows(output[1:])
            return torch.cat([torch.zeros_like(tangent_rows[:, :1]), tangent_rows], dim=1)

        def score(output: Tensor) -> float:
            value = likelihood_pushed_with_gradient(output[1:])[0]
            return float((held_weights * torch.minimum(value, caps)).mean())

        return _Task(
            "whiten",
            encoder.kernel,
            encoder.train,
            encoder.held_out,
            loss,
            rows,
            score,
            WHITEN_ITERATIONS,
            DECAY_RATIOS,
            self.tol,
        )

    def _decoding(self, encoder: _Encoder, decoder: PushforwardKernel) -> _Task:
        """γ(ρ(μ_i)) ≈ μ_i and T_i pushed through γ ≈ A_i."""
        train, held_out = encoder.train, encoder.held_out
        inputs, held_inputs = (_forward_all(encoder.kernel, stack) for stack in (train, held_out))
        centre = inputs[0].mean(dim=0)
        inputs[0] -= centre
        held_inputs[0] -= centre
        weights = torch.full((len(train), 1, 1), TANGENT_WEIGHT**0.5, dtype=train.dtype, device=train.device)
        weights[0] = 1

        def loss(rows: NDArray[np.int64] | None) -> Loss:
            return partial(_squares, held_out if rows is None else train[:, torch.as_tensor(rows)], weights)

        def score(output: Tensor) -> float:
            return _squares(held_out, weights, output, slice(None))[0] / output.shape[1]

        def rows(output: Tensor) -> Tensor:
            return weights * self._signs(output)

        gain = max(self.tol, 0.05)
        return _Task(
            "decode", decoder, inputs, held_inputs, loss, rows, score, DECODE_ITERATIONS, DECODER_DECAY_RATIOS, gain
        )

    def _signs(self, output: Tensor) -> Tensor:
        """Six random signs a residual: cotangents whose Gram matrix is, on average, that of all residuals."""
        signs = torch.randint(0, 2, (6, *output.shape), generator=self.generator)
        return (2 * signs - 1).to(output)

    # -- training -----------------------------------------------------------------------------------------------

    def _descend(self, task: _Task, resumed: State | None) -> float:
        """Lower the weight decay stage by stage while the held-out score gains; leave the best weights in place."""
        n = task.train.shape[1]
        rows = self._subset(n)
        staged = task.train[:, torch.as_tensor(rows)].contiguous() if len(rows) < n else task.train
        loss = task.loss(rows)
        at = self._begin(task, resumed)
        while at.ratio < len(task.ratios):
            ratio, stage_best, decay = task.ratios[at.ratio], np.inf, np.inf
            score = self._score(task, at.theta)
            optimizer, idle = None, 0
            while self.iteration < at.last:
                if optimizer is None or ratio * score < 0.5 * decay:
                    decay = ratio * score
                    optimizer = LBFGS(_Evaluation(task.kernel, staged, loss, decay), at.theta)
                going = self._segment(task, optimizer, staged, decay)
                at.theta = optimizer.theta
                candidate, score = self._candidate(task, at.theta)
                if score < at.best_score:
                    at.best_score, at.best_theta, at.best_decay = score, candidate, decay
                self._record(task, optimizer, score, decay, at.best_theta, partial(self._state, task, at))
                idle = 0 if score < (1 - task.idle_gain) * stage_best else idle + 1
                stage_best = min(score, stage_best)
                if not going or idle == PATIENCE:
                    break
            if not at.best_score < (1 - task.idle_gain) * at.before:
                break
            at.theta, at.before, at.ratio = at.best_theta, at.best_score, at.ratio + 1
        best_theta = self._finish(task, at.best_theta, at.best_decay) if len(rows) < n else at.best_theta
        task.kernel.load(best_theta)
        return float(at.best_score)

    def _begin(self, task: _Task, resumed: State | None) -> _Progress:
        if resumed is None:
            theta = task.kernel.theta.clone()
            return _Progress(theta, theta, self.iteration + task.iterations)
        numbers = resumed.numbers
        self.iteration = int(numbers["iteration"])
        theta, best_theta = (resumed.tensors[name].to(self.problem.device) for name in ("theta", "best_theta"))
        last, ratio = int(numbers["last"]), int(numbers["ratio"])
        scores = (numbers[name] for name in ("before", "best_score", "best_decay"))
        return _Progress(theta, best_theta, last, ratio, *scores)

    def _state(self, task: _Task, at: _Progress) -> State:
        numbers = vars(at) | {"iteration": self.iteration, "attempt": self.attempt, "out_scale": self.out_scale}
        weights = {name: numbers.pop(name) for name in ("theta", "best_theta")}
        return State(task.name, numbers, weights | self.finished)

    def _subset(self, n: int) -> NDArray[np.int64]:
        return np.arange(n) if n <= STAGED_BURSTS else np.sort(self.random.permutation(n)[:STAGED_BURSTS])

    def _finish(self, task: _Task, theta: Tensor, decay: float) -> Tensor:
        """A last stage on all bursts, from the best of the subset."""
        loss = task.loss(np.arange(task.train.shape[1]))
        optimizer = LBFGS(_Evaluation(task.kernel, task.train, loss, decay), theta)
        best_score, best_theta = np.inf, theta
        for _ in range(FINISH_ITERATIONS // SEGMENT):
            going = self._segment(task, optimizer, task.train, decay)
            candidate, score = self._candidate(task, optimizer.theta)
            if score < best_score:
                best_score, best_theta = score, candidate
            self._record(task, optimizer, score, decay, best_theta)
            if not going:
                break
        return best_theta

    def _segment(self, task: _Task, optimizer: LBFGS, stack: Tensor, decay: float) -> bool:
        self._precondition(task.kernel, optimizer, stack, task.rows, decay)
        return self._run(optimizer, SEGMENT)

    def _record(
        self,
        task: _Task,
        optimizer: LBFGS,
        score: float,
        decay: float,
        best: Tensor,
        state: Callable[[], State] | None = None,
    ) -> None:
        if not np.isfinite(score):
            raise ConvergenceError(f"the held-out loss became {score} in stage '{task.name}'; check the data's range.")
        try:
            self.monitor.record(
                task.name, self.iteration, state, loss=optimizer.value, validation_loss=score, decay=decay
            )
        except StopTraining:
            task.kernel.load(best)
            raise
        if self.iteration >= self.budget:
            task.kernel.load(best)
            raise StopTraining

    def _precondition(
        self, kernel: PushforwardKernel, optimizer: LBFGS, stack: Tensor, rows: Callable[[Tensor], Tensor], decay: float
    ) -> None:
        chosen = torch.randperm(stack.shape[1], generator=self.generator)[:PROBES]
        kernel.theta.copy_(optimizer.theta)
        optimizer.preconditioner = kernel.preconditioner(stack[:, chosen].contiguous(), rows, 2 * decay)

    def _run(self, optimizer: LBFGS, iterations: int) -> bool:
        """Iterate; False when the optimizer can go no lower."""
        self.tail = deque([optimizer.theta], maxlen=TAIL)
        for _ in range(min(iterations, self.budget - self.iteration)):
            self.iteration += 1
            self.monitor.advance()
            if not optimizer.step():
                return False
            self.tail.append(optimizer.theta)
        return True

    def _candidate(self, task: _Task, theta: Tensor) -> tuple[Tensor, float]:
        """θ or the mean of the latest, and its score: the mean unless that is worse.

        Iterates swing about in the long waves of the embedding, which the loss hardly feels but distances do; their
        mean does not (docs/algorithm.md has figures).
        """
        mean = torch.stack(list(self.tail)).mean(dim=0)
        score, mean_score = self._score(task, theta), self._score(task, mean)
        return (mean, mean_score) if mean_score < (1 + SAME_SCORE) * score else (theta, score)

    def _score(self, task: _Task, theta: Tensor) -> float:
        task.kernel.theta.copy_(theta)
        return task.score(_forward_all(task.kernel, task.held_out))


class _Evaluation:
    """θ ↦ (mean loss over the bursts + decay · ‖θ‖², its gradient), chunk by chunk through one set of buffers."""

    def __init__(self, kernel: PushforwardKernel, stack: Tensor, loss: Loss, decay: float) -> None:
        self.kernel, self.loss, self.decay = kernel, loss, decay
        self.n = stack.shape[1]
        self.chunks = [
            (slice(start, start + CHUNK), stack[:, start : start + CHUNK].contiguous())
            for start in range(0, self.n, CHUNK)
        ]

    def __call__(self, theta: Tensor) -> tuple[float, Tensor]:
        self.kernel.theta.copy_(theta)
        total, gradient = 0.0, torch.zeros_like(theta)
        for part, stack in self.chunks:
            value, cotangent = self.loss(self.kernel.forward(stack), part)
            total += value
            self.kernel.backward(cotangent, gradient)
        gradient.div_(self.n).add_(theta, alpha=2 * self.decay)
        return total / self.n + self.decay * float(torch.dot(theta, theta)), gradient


def _squares(targets: Tensor, weights: Tensor | None, output: Tensor, part: slice) -> tuple[float, Tensor]:
    """Σ w² (output − target)² and its gradient."""
    residual = output - targets[:, part]
    if weights is not None:
        residual *= weights
    value = float(residual.square().sum())
    return value, residual.mul_(2) if weights is None else residual.mul_(2 * weights)


def _likelihood(weights: Tensor, output: Tensor, part: slice) -> tuple[float, Tensor]:
    """Σ w_i (tr G_i − log det G_i − k) and its gradient; the positions do not enter."""
    value, gradient = likelihood_pushed_with_gradient(output[1:])
    cotangent = torch.zeros_like(output)
    torch.mul(gradient, weights[part, None], out=cotangent[1:])
    return float(torch.dot(value, weights[part])), cotangent


def _forward_all(kernel: PushforwardKernel, stack: Tensor) -> Tensor:
    """The network's output for a whole stack, (1 + k, n, ·), in chunks."""
    parts = [
        kernel.forward(stack[:, start : start + CHUNK].contiguous()).clone()
        for start in range(0, stack.shape[1], CHUNK)
    ]
    return torch.cat(parts, dim=1)
