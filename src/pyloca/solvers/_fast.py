"""The fast solver: seconds, no learning rate, no collapsed or folded run.

1. *Fit* the encoder to positions and frames of the alignment, smoothly.
2. *Whiten*: minimise the likelihood, with a weight decay that is lowered as long as held-out bursts gain by it. An
   encoder that comes out folded or collapsed is given up, and another alignment tried.
3. *Decode*: the same for the decoder, on values and tangents.
On `BurstStatistics` alone; `_descent` has the optimisation.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyloca.alignment import Alignment, align
from pyloca.diagnostics import MANY_APART, Whitening, embedding_fault, overlapping
from pyloca.geometry import BurstStatistics
from pyloca.networks import (
    MLP,
    PushforwardKernel,
    Standardized,
    initialize,
    make_kernel,
    start_like_ours,
    weights_without_blocks,
)
from pyloca.objectives import gauss_newton_rows, likelihood_pushed_with_gradient, sampling_floor
from pyloca.solvers._checkpoint import State
from pyloca.solvers._descent import FIT_ITERATIONS, Descent, Loss, Score, Task, forward_all
from pyloca.solvers._monitor import Monitor, StopTraining
from pyloca.solvers._problem import Problem, Solution

__all__ = ["solve_fast"]

MAX_ITER = 2000  # over all stages; noise-free data would go on improving for ever
WHITEN_ITERATIONS, DECODE_ITERATIONS = 1000, 200
# Weight decay as a multiple of the held-out loss: so it vanishes by itself on noise-free data and stays put at the
# sampling floor of noisy data. Lowered stage by stage while that pays.
DECAY_RATIOS = (3e-2, 3e-4, 3e-6)
DECODER_DECAY_RATIOS = (3e-2,)  # the means carry no noise to tell from signal, so nothing would stop a descent
# A burst counts in the held-out score with at most this many times the sampling floor. The few bursts where the
# measurement is singular would otherwise drown the many that tell smoothing from overfitting. But when more than a few
# are beyond, training goes on while it wins them: where a measurement squeezes a whole strip, that takes its time.
SCORE_CAP, FEW_BEYOND = 5.0, 0.04
# Without a linear skip the weights are larger, and at the same ratio decay is most of the loss.
OWN_DECODE_ITERATIONS, OWN_DECODER_DECAY_RATIOS = 400, (3e-2, 3e-4)
TANGENT_WEIGHT = 0.01  # of tangents beside values in the decoder's loss
# Alignments to begin with. The next one is tried when this one is folded, or what comes of it.
RESTART = "restart"
STARTS: tuple[dict[str, Any], ...] = ({}, {"denser": 2}, {"method": "geodesic"})


def solve_fast(problem: Problem, monitor: Monitor) -> Solution:
    """Alignment → encoder → decoder."""
    return _FastSolver(problem, monitor).solve()


@dataclass
class _Encoder:
    """An encoder on its way, with the data in its units."""

    network: nn.Module
    kernel: PushforwardKernel
    out_scale: float
    train: Tensor  # (1 + k, n, D)
    held_out: Tensor
    score: float = np.inf


class _FastSolver:
    def __init__(self, problem: Problem, monitor: Monitor) -> None:
        self.problem, self.monitor = problem, monitor
        self.random = np.random.RandomState(problem.seed)
        self.generator = torch.Generator().manual_seed(problem.seed)
        budget = MAX_ITER if problem.max_iter is None else problem.max_iter
        self.descent = Descent(monitor, budget, self.random, self.generator)
        self.tol = 1e-2 if problem.tol is None else problem.tol
        self.converged = True
        self.encoder: _Encoder | None = None  # the best so far
        # Without held-out bursts the training bursts stand in for them.
        self.held_out = problem.validation if len(problem.validation) else problem.train

    def solve(self) -> Solution:
        problem = self.problem
        statistics, d = problem.statistics, problem.n_components
        trained = statistics[problem.train]
        self.shift = trained.means.mean(axis=0)
        spread = np.square(trained.means - self.shift).sum(axis=1).mean()
        self.scale = float(np.sqrt(spread / statistics.n_features))
        self.monitor.expect(min(self.descent.budget, 2 * FIT_ITERATIONS + WHITEN_ITERATIONS + DECODE_ITERATIONS))

        first = self._network(problem.encoder, statistics.n_features, d, problem.activation)
        decoder = self._network(problem.decoder, d, statistics.n_features, problem.decoder_activation)
        self._warn("encoder", first, statistics.n_features)
        self._warn("decoder", decoder, d)
        unfinished = ""
        resumed = self.monitor.resume()
        try:
            if resumed is None or resumed.stage == "whiten":
                encoder = self._encode(first, trained, resumed)
                resumed = None
            else:
                encoder = self.encoder = self._encoder(first, resumed.numbers["out_scale"])
                encoder.kernel.load(resumed.tensors["encoder"].to(problem.device))
            self.descent.numbers["out_scale"] = encoder.out_scale
            self.descent.tensors["encoder"] = encoder.kernel.theta
            decoder_kernel = make_kernel(decoder)
            decoding = self._decoding(encoder, decoder_kernel)
            if resumed is None:
                part = self.descent.subset(decoding.train.shape[1])
                inputs = decoding.train[:, torch.as_tensor(part)].contiguous()
                self.descent.fit("decoder", decoder_kernel, inputs, decoding.loss(part), decoding.rows)
            self.descent.descend(decoding, resumed)
        except StopTraining:
            self.converged = False
            # A budget of the solver's own may well end in the last stage, on data without noise.
            if self.monitor.stage != "decode" or problem.max_iter is not None:
                unfinished = self.monitor.stage
        best = self.encoder
        assert best is not None  # there is a start, or an error before
        # Whitening leaves the origin free; the embedding of the training bursts is centred there.
        centre = forward_all(best.kernel, best.train)[0].mean(dim=0).cpu().numpy()
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
        fault = ""
        for attempt, start in enumerate(self._starts(trained, resumed)):
            if resumed is not None and attempt < resumed.numbers["attempt"]:
                continue
            if fault:
                self._give_up(fault)
            self.descent.numbers["attempt"] = attempt
            size = float(np.sqrt(np.square(start.positions).mean()))
            if self.encoder is not None:
                network = self._network(
                    self.problem.encoder, trained.n_features, self.problem.n_components, self.problem.activation
                )
            tried = self._encoder(network, size if resumed is None else resumed.numbers["out_scale"])
            self.encoder = tried if self.encoder is None else self.encoder
            if resumed is None:
                self._fit_start(tried, start)
            tried.score = self.descent.descend(self._whitening(tried), resumed)
            resumed = None
            fault = self._fault(tried, trained)
            if not fault:
                self.encoder = tried
                break
            self.encoder = min(self.encoder, tried, key=lambda encoder: encoder.score)
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
            self.descent.budget += MAX_ITER
        self.monitor.record(f"{RESTART}: {fault}", self.descent.iteration)

    def _restarts(self) -> tuple[str, ...]:
        """What was wrong each time, also before an interruption."""
        stages = (record["stage"] for record in self.monitor.history)
        return tuple(stage.removeprefix(f"{RESTART}: ") for stage in stages if stage.startswith(RESTART))

    def _encoder(self, network: nn.Module, out_scale: float) -> _Encoder:
        self.descent.numbers["out_scale"] = out_scale
        train, held_out = (self._stack(rows, out_scale) for rows in (self.problem.train, self.held_out))
        return _Encoder(network, make_kernel(network), out_scale, train, held_out)

    def _fit_start(self, encoder: _Encoder, start: Alignment) -> None:
        targets = np.concatenate([start.positions[None] / encoder.out_scale, start.frames.transpose(1, 0, 2)])
        aligned = encoder.train[:, torch.as_tensor(start.rows)].contiguous()
        self.descent.fit(
            "encoder", encoder.kernel, aligned, partial(_squares, self._tensor(targets), None), self._signs
        )

    def _fault(self, encoder: _Encoder, trained: BurstStatistics) -> str:
        output = forward_all(encoder.kernel, encoder.train).cpu()
        embedding = encoder.out_scale * output[0].numpy()
        white = Whitening.from_pushed(embedding, output[1:].transpose(0, 1), trained.counts)
        return embedding_fault(white, trained, self.problem.burst_std)

    # -- networks and data in unit size -------------------------------------------------------------------------

    def _network(self, given: nn.Module | None, n_in: int, n_out: int, activation: str) -> nn.Module:
        if given is not None:
            own = copy.deepcopy(given).to(dtype=torch.float64, device=self.problem.device).eval()
            start_like_ours(own, self._tensor(np.zeros((2, n_in))), self.generator)
            return own
        with torch.random.fork_rng(devices=[]):  # PyTorch's own initialisation draws from the global generator
            network = MLP(n_in, self.problem.hidden_layers, n_out, activation, skip=True).double()
        initialize(network, self.generator)
        return network.to(self.problem.device)

    def _warn(self, name: str, network: nn.Module, n_in: int) -> None:
        """A plain `UserWarning`: the fit may take longer, but what comes of it is checked like any other."""
        if parts := weights_without_blocks(network, self._tensor(np.zeros((2, n_in)))):
            warnings.warn(
                f"{name}: {parts} can be preconditioned by their diagonal only, so training may need more iterations. "
                "Linear, Conv1d and Conv2d layers (groups=1, zero padding) that are called as modules train best.",
                stacklevel=2,
            )

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

    def _whitening(self, encoder: _Encoder) -> Task:
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

        def score(output: Tensor) -> Score:
            value = likelihood_pushed_with_gradient(output[1:])[0]
            beyond = float((value > caps).double().mean())
            return Score(float((held_weights * torch.minimum(value, caps)).mean()), beyond > FEW_BEYOND)

        return Task(
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

    def _decoding(self, encoder: _Encoder, decoder: PushforwardKernel) -> Task:
        """γ(ρ(μ_i)) ≈ μ_i and T_i pushed through γ ≈ A_i."""
        train, held_out = encoder.train, encoder.held_out
        inputs, held_inputs = (forward_all(encoder.kernel, stack) for stack in (train, held_out))
        centre = inputs[0].mean(dim=0)
        inputs[0] -= centre
        held_inputs[0] -= centre
        weights = torch.full((len(train), 1, 1), TANGENT_WEIGHT**0.5, dtype=train.dtype, device=train.device)
        weights[0] = 1

        def loss(rows: NDArray[np.int64] | None) -> Loss:
            return partial(_squares, held_out if rows is None else train[:, torch.as_tensor(rows)], weights)

        def score(output: Tensor) -> Score:
            return Score(_squares(held_out, weights, output, slice(None))[0] / output.shape[1])

        def rows(output: Tensor) -> Tensor:
            return weights * self._signs(output)

        gain = max(self.tol, 0.05)
        own = self.problem.decoder is not None
        iterations = OWN_DECODE_ITERATIONS if own else DECODE_ITERATIONS
        ratios = OWN_DECODER_DECAY_RATIOS if own else DECODER_DECAY_RATIOS
        return Task("decode", decoder, inputs, held_inputs, loss, rows, score, iterations, ratios, gain)

    def _signs(self, output: Tensor) -> Tensor:
        """Six random signs a residual: cotangents whose Gram matrix is, on average, that of all residuals."""
        signs = torch.randint(0, 2, (6, *output.shape), generator=self.generator)
        return (2 * signs - 1).to(output)


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
