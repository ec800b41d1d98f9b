"""The fast solver: seconds, no learning rate, no collapsed or folded run.

1. *Fit* the encoder to positions and frames of the alignment, smoothly.
2. *Whiten*: minimise the likelihood, with a weight decay that is lowered as long as the held-out score improves. An
   encoder that comes out folded or collapsed is abandoned, and another alignment is tried.
3. *Decode*: solve for the decoder in closed form (`_features`), on values and tangents.

It needs only `BurstStatistics`; `_descent` has the optimisation, also of your own decoder.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyloca.alignment import MAX_BURSTS, Alignment, align, strain_beyond_sampling, unbend
from pyloca.checks import Whitening, embedding_fault, overlapping
from pyloca.errors import BurstError
from pyloca.geometry import BurstStatistics, chosen_statistics, usual_neighbors
from pyloca.networks import (
    MLP,
    MLPKernel,
    PushforwardKernel,
    Standardized,
    WithSkip,
    initialize,
    make_kernel,
    start_like_ours,
    weights_without_blocks,
)
from pyloca.objectives import (
    gauss_newton_rows,
    likelihood_noisy_with_gradient,
    likelihood_pushed_with_gradient,
    sampling_floor,
)
from pyloca.solvers._descent import (
    FIT_ITERATIONS,
    MAX_RATIO,
    Descent,
    Loss,
    Progress,
    Score,
    Task,
    forward_all,
    is_staged,
)
from pyloca.solvers._features import Candidate, FeatureDecoder
from pyloca.solvers._monitor import Monitor, StopTraining
from pyloca.solvers._problem import Problem, Solution
from pyloca.solvers._shards import MANY, training_client
from pyloca.solvers._stack import LazyStack
from pyloca.thresholds import CURED, MANY_APART, STRAINED

__all__ = ["FastState", "solve_fast"]

WHITEN, DECODE = "whiten", "decode"  # the stages in which a checkpoint is written
MAX_ITER = 4000  # over all stages; noise-free data would go on improving forever
WHITEN_ITERATIONS, DECODE_ITERATIONS = 1000, 400
# Weight decay as a multiple of (held-out loss) / (number of residuals N k (k + 1)/2), which at the sampling floor is
# 1 / Σ (M_i − 1): there −2 log likelihood + c ‖θ‖² is minimised, with a prior θ ~ N(0, 1/c) that does not depend on N,
# M or k, and without noise the decay vanishes with the loss. Lowered rung by rung while that helps.
DECAYS = (30.0, 1.0, 0.03, 0.001)
# First of all where many bursts begin with some (`python -m benchmarks accuracy --only mushroom`), and where bursts
# have many directions, followed by as many weights per neuron (`sizes --only camera`). A few bursts do not recover,
# and a surface that can bend is straightened: no burst sees that.
STRONGEST, STRONGEST_RATIO = 300.0, 0.3
MANY_DIRECTIONS, ENOUGH_BURSTS = 20, 400
START_DECAY = 100.0  # the same in the fit to the alignment, whose errors are large and have long waves
# A burst counts in the held-out score with at most this many times the sampling floor. The few bursts where the
# measurement is singular would otherwise drown the many that tell smoothing from overfitting. But when more than a few
# are beyond the cap, training goes on while it recovers them: where a measurement squeezes a whole strip, that is slow.
SCORE_CAP, FEW_BEYOND = 5.0, 0.04
DECODER_DECAY_RATIOS = (3e-2, 3e-4)  # of your own decoder; ours is solved for
TANGENT_WEIGHT = 0.01  # of tangents, relative to values, in the loss of your own decoder
# When d > k, bursts do not see bending, and the network would drift away from the shape that it started from. Aligned
# positions are then a prior: 3 ‖ρ(μ_i) − p_i‖² per burst in −2 log likelihood, positions in embedding units. That is
# weak against what bursts tell, at any M; a fixed weight of 0.1 beside the loss made a dome at M = 2000 20 × as bad.
ANCHOR = 3.0
UNBENT_ANCHOR = 30.0  # positions with fewer needless bends are worth more; with 10 the encoder drifts half-way back
# The encoder's surface and the most evenly bent one both have errors, which partly cancel in their mean
# (`python -m benchmarks shapes --only closed`).
UNBENT_PART = 0.5
CURVE_ANCHOR = 30.0  # nothing but the alignment tells the shape of a curve
MAGNIFIED = 50.0  # times: beyond it the prior on a linear part costs more than it does good (condition 100 and 1000)
EXACT = 3000.0  # points that an exact covariance counts for here, lest the prior vanish
# Alignments to start from. When the first one, or its result, is folded, the others are made, the least folded first.
# Where bends are hardly sampled, fewer neighbours do not reach across them; where frames are turned over at a bend,
# geodesics know the way; and more bursts, if there are more, sample bends better.
STARTS: tuple[dict[str, Any], ...] = (
    {},
    {"denser": 0.6},
    {"denser": 2},
    {"method": "geodesic"},
    {"max_bursts": 4 * MAX_BURSTS},
)
# Graphs that may relieve strain, tried in turn while neighbours are so far that measurements bend on the way to them:
# the more dimensions, the farther off are 4 k + 2 neighbours. A burst needs k + 2 to hold its place, six on a surface.
SPARSER = (0.6, 0.4, 0.3)
FEWEST_NEIGHBORS = 6


def solve_fast(problem: Problem, monitor: Monitor) -> Solution:
    """Train by alignment → encoder → decoder.

    Parameters
    ----------
    problem : Problem
    monitor : Monitor

    Returns
    -------
    Solution

    Raises
    ------
    ConvergenceError
        If the loss is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> from pyloca.solvers import Monitor, Problem
    >>> bursts = datasets.mushroom(60, 20, random_state=0).bursts
    >>> train, held_out = np.arange(50), np.arange(50, 60)
    >>> problem = Problem(
    ...     BurstStatistics.from_bursts(bursts, 2), None, train, held_out, n_components=2, burst_std=0.01,
    ...     hidden_layers=(5,), activation="tanh", decoder_activation="tanh", encoder=None, decoder=None,
    ...     device=torch.device("cpu"), seed=0, max_iter=50, tol=None,
    ... )
    >>> solve_fast(problem, Monitor()).encoder(torch.zeros(3, 2, dtype=torch.float64)).shape
    torch.Size([3, 2])
    """
    return _FastSolver(problem, monitor).solve()


@dataclass
class FastState(Progress):
    """All that a run of the fast solver needs to resume: the network in training, and what came before it."""

    alignments: int = 0  # how many starts have been used
    restarts: tuple[str, ...] = ()  # what was wrong with each start that was abandoned
    out_scale: float = 1.0  # the unit of the encoder in training
    anchors: Tensor = field(default_factory=partial(torch.empty, 0))  # (n, 1 + d), see `_start`; empty when d = k
    unbent: bool = False  # whether needless bends have been taken out of the encoder in training
    # The best encoder whose training has ended: the decoder uses it, unless it is faulty and another start does better.
    encoder: Tensor = field(default_factory=partial(torch.empty, 0))
    encoder_scale: float = 1.0
    encoder_score: float = np.inf


class _Data(NamedTuple):
    """Stacks (1 + k, n, D) of means and tangents, the tangents in units of the embedding."""

    out_scale: float
    train: Tensor
    held_out: Tensor


class _FastSolver:
    def __init__(self, problem: Problem, monitor: Monitor) -> None:
        self.problem, self.monitor = problem, monitor
        self.random = np.random.RandomState(problem.seed)
        self.generator = torch.Generator().manual_seed(problem.seed)
        self.tol = 1e-2 if problem.tol is None else problem.tol
        # Without held-out bursts, the training bursts are used instead.
        self.held_out = problem.validation if len(problem.validation) else problem.train
        few = len(problem.train) < MANY
        self.trained = (
            problem.statistics[problem.train] if few else chosen_statistics(problem.statistics, problem.train)
        )
        means = self.trained.means
        self.shift = means.mean(axis=0)
        spread = np.square(means - self.shift).sum(axis=1).mean()
        self.scale = float(np.sqrt(spread / self.trained.n_used))
        self.data = _Data(np.nan, torch.empty(0), torch.empty(0))

        self.encoder = self._new_encoder()
        self.decoder = self._network(
            problem.decoder, problem.n_components, self.trained.n_features, problem.decoder_activation
        )
        self.encoder_kernel, self.decoder_kernel = self._kernel(), make_kernel(self.decoder)
        self.state = FastState()
        client = training_client(len(problem.statistics)) if problem.device.type == "cpu" else None
        self.descent = Descent(monitor, self.state, self._budget(), self.random, self.generator, client)

    def solve(self) -> Solution:
        self._warn("encoder", self.encoder, self.trained.n_features)
        self._warn("decoder", self.decoder, self.problem.n_components)
        converged, unfinished = True, ""
        self._resume()
        try:
            if self.state.stage != DECODE:
                self._whiten()
            self._decode()
        except StopTraining:
            converged = False
            self._load_encoder()
            # Without max_iter, the solver's own budget may well end in the last stage, on data without noise.
            if self.monitor.stage != DECODE or self.problem.max_iter is not None:
                unfinished = self.monitor.stage
        # Whitening leaves the origin free; the embedding of the training bursts is centred there.
        centre = forward_all(self.encoder_kernel, self.data.train)[0].mean(dim=0).cpu().numpy()
        out_scale = self.data.out_scale
        return Solution(
            Standardized(self.encoder, self.shift, self.scale, -out_scale * centre, out_scale),
            Standardized(self.decoder, np.zeros(len(centre)), out_scale, self.shift, self.scale),
            converged=converged,
            unfinished=unfinished,
            restarts=self.state.restarts,
        )

    def _resume(self) -> None:
        """Restore the state of an interrupted run, if there was one."""
        state = self.state
        if self.monitor.resume(state):
            self.monitor.refuse(self._fault())
            for name in ("theta", "best_theta", "theta_before", "encoder", "anchors"):
                setattr(state, name, getattr(state, name).to(self.problem.device))
            state.optimizer = {name: part.to(self.problem.device) for name, part in state.optimizer.items()}
            self.descent.restore()
            self.descent.budget = self._budget()
        of_decoder = 0 if self.problem.decoder is None else FIT_ITERATIONS + DECODE_ITERATIONS
        self.monitor.expect(min(self.descent.budget, FIT_ITERATIONS + WHITEN_ITERATIONS + of_decoder))

    def _fault(self) -> str:
        """Name what the state that was read cannot have in this problem; "" if nothing."""
        state, n, d = self.state, len(self.trained), self.problem.n_components
        size, solved = len(self.encoder_kernel.theta), self.problem.decoder is None and self.state.stage == DECODE
        anchored = d > self.trained.intrinsic_dim
        known = {
            "stage": state.stage in (WHITEN, DECODE),
            "encoder": state.encoder.shape == (size,) or (state.stage == WHITEN and state.encoder.shape == (0,)),
            "anchors": state.anchors.shape == ((n, 1 + d) if anchored else (0,)),
            "out_scale": 0 < state.out_scale < np.inf and 0 < state.encoder_scale < np.inf,
            "alignments": state.alignments <= len(STARTS) and len(state.restarts) <= len(STARTS),
        }
        fault = next((name for name, good in known.items() if not good), "")
        if fault or solved:  # the optimizer is not used then
            return fault or self.descent.drawn_fault()
        if state.stage == DECODE:
            return self.descent.fault(len(self.decoder_kernel.theta), n, len(DECODER_DECAY_RATIOS))
        return self.descent.fault(size, n, len(self._decays()))

    def _budget(self) -> int:
        """Compute the iterations over all stages: `max_iter`, or a budget of our own for each start."""
        own = MAX_ITER * (1 + len(self.state.restarts))
        return own if self.problem.max_iter is None else self.problem.max_iter

    # -- start --------------------------------------------------------------------------------------------------

    def _starts(self) -> Iterator[tuple[Alignment, str]]:
        """Yield alignments that do not overlap themselves, and what was wrong with the first if another comes first.

        When all of them do, yield the best one after all: then the data are at fault. A run that was interrupted goes
        on where it was: alignments are the same each time they are made.
        """
        state = self.state
        if state.alignments >= len(STARTS):
            return
        first = self._aligned(STARTS[0])
        good = first is not None and not MANY_APART.passed(first[0])
        if good and first is not None and state.alignments == 0:
            state.alignments = 1
            yield self._less_strained(first[1]), ""
        tried = [] if good or first is None else [first]
        tried += [one for options in STARTS[1:] if (one := self._aligned(options)) is not None]
        tried.sort(key=lambda one: one[0])
        sound = [start for apart, start in tried if not MANY_APART.passed(apart)]
        if not sound and not good:
            sound = [tried[0][1] if tried else self._align({})]  # the latter says which pieces there are
        for start in sound[max(state.alignments - good, 0) :]:
            fresh = state.alignments == 0
            state.alignments += 1
            yield start, "folded" if fresh and (first is None or start is not first[1]) else ""
        state.alignments = len(STARTS)

    def _aligned(self, options: dict[str, Any]) -> tuple[float, Alignment] | None:
        """Align and tell which part of the bursts overlaps; None if that is not another start, or leaves pieces."""
        n, curved = len(self.trained), self.problem.n_components > self.trained.intrinsic_dim
        if (curved and "method" in options) or n <= MAX_BURSTS < options.get("max_bursts", 0):
            return None
        try:
            start = self._align(options)
        except BurstError:
            if options or n > MAX_BURSTS:  # a part of the bursts may fall into pieces where all do not
                return None
            raise
        return overlapping(start.positions, self.trained[start.rows], self.problem.burst_std), start

    def _align(self, options: dict[str, Any]) -> Alignment:
        problem = self.problem
        return align(
            self.trained, problem.n_components, burst_std=problem.burst_std, random_state=problem.seed, **options
        )

    def _less_strained(self, start: Alignment) -> Alignment:
        """Return a sparser alignment instead, if edges mismatch by more than sampling, and far less in that one."""
        if len(STARTS) == 1:
            return start
        k, best = self.trained.intrinsic_dim, start
        strain = beyond = self._strain(start)
        for denser in SPARSER:
            if not STRAINED.passed(beyond) or round(denser * usual_neighbors(k)) < max(k + 2, FEWEST_NEIGHBORS):
                break
            # frames that were turned over at a bend stay so; geodesics do not ask them
            tried = [self._aligned({"denser": denser} | method) for method in ({}, {"method": "geodesic"})]
            sound = [one[1] for one in tried if one is not None and not MANY_APART.passed(one[0])]
            if not sound:
                break
            other = min(sound, key=self._strain)
            beyond = self._strain(other)
            best = other if CURED.passed(beyond / strain) else best
        return best

    def _strain(self, start: Alignment) -> float:
        return strain_beyond_sampling(start, self.trained[start.rows])

    def _start(self, start: Alignment, fault: str) -> None:
        """Fit a new encoder to an alignment; `fault` is why the one before was abandoned, "" if there was none."""
        state = self.state
        if state.stage == WHITEN:
            self.encoder = self._new_encoder()
            self.encoder_kernel = self._kernel()
        state.out_scale = float(np.sqrt(np.square(start.positions).mean()))
        self._set_unit(state.out_scale)
        if fault:
            state.restarts += (fault,)
            self.descent.budget = self._budget()
            self.monitor.record(f"restart: {fault}", state.iteration)
        state.unbent = False
        self._fit_encoder(start.rows, start.positions, start.frames)

    def _fit_encoder(
        self, rows: NDArray[np.int64], positions: NDArray[np.float64], frames: NDArray[np.float64]
    ) -> None:
        """Fit the encoder to positions and frames of these training bursts, which anchor it from now on if d > k."""
        targets = np.concatenate([positions[None] / self.state.out_scale, frames.transpose(1, 0, 2)])
        if self.problem.n_components > self.trained.intrinsic_dim:
            self.state.anchors = self._anchors(rows, targets[0])
        some = self.descent.subset(len(rows))
        aligned = self.data.train[:, torch.as_tensor(rows)[some]].contiguous()
        loss = partial(_squares, self._tensor(targets[:, some.numpy()]), None)
        ratio = START_DECAY / aligned[..., 0].numel() / targets.shape[2]
        self.descent.fit("encoder", self.encoder_kernel, aligned, loss, self._signs, ratio)

    def _unbend(self) -> None:
        """Fit the encoder to itself with fewer bends that nothing asks for: it knows lengths better than its start."""
        rows = torch.nonzero(self.state.anchors[:, 0]).ravel().cpu().numpy()
        output = forward_all(self.encoder_kernel, self.data.train[:, torch.as_tensor(rows)]).cpu().numpy()
        positions = self.data.out_scale * output[0]
        self.state.unbent = True
        self._fit_encoder(rows, *unbend(self.trained[rows], positions, output[1:].transpose(1, 0, 2), UNBENT_PART))

    def _anchors(self, rows: NDArray[np.int64], positions: NDArray[np.float64]) -> Tensor:
        """Return the weight and the aligned position of each training burst, (n, 1 + d); 0 where it has none."""
        anchors = np.zeros((len(self.trained), 1 + positions.shape[1]))
        anchors[rows, 0] = self._anchor_weight() * len(anchors) / len(rows)
        anchors[rows, 1:] = positions
        return self._tensor(anchors)

    def _anchor_weight(self) -> float:
        anchor = UNBENT_ANCHOR if self.state.unbent else ANCHOR
        anchor = CURVE_ANCHOR if self.trained.intrinsic_dim == 1 else anchor
        return anchor / float(np.minimum(self.trained.counts - 1, EXACT).mean())

    # -- whiten -------------------------------------------------------------------------------------------------

    def _whiten(self) -> None:
        """Train an encoder from one start after another until it has no fault."""
        fault = ""
        if self.state.stage == WHITEN:
            self._set_unit(self.state.out_scale)
            fault = self._train_encoder(resumed=True)
            if not fault:
                return
        for start, passed_over in self._starts():
            self._start(start, fault or passed_over)
            fault = self._train_encoder()
            if not fault:
                return

    def _train_encoder(self, *, resumed: bool = False) -> str:
        """Train from the current start and return its fault; keep the result if it has none, or is the best so far."""
        state = self.state
        self.descent.descend(self._whitening(), resumed=resumed)
        if self.problem.n_components > self.trained.intrinsic_dim > 1 and not state.unbent:
            self._unbend()
            self.descent.settle(self._whitening())
        output = forward_all(self.encoder_kernel, self.data.train).cpu()
        embedding = self.data.out_scale * output[0].numpy()
        white = Whitening.from_pushed(embedding, output[1:].transpose(0, 1), self.trained)
        fault = embedding_fault(white, self.trained, self.problem.burst_std)
        if not fault or state.best_score < state.encoder_score:
            state.encoder = self.encoder_kernel.theta.clone()
            state.encoder_scale, state.encoder_score = state.out_scale, state.best_score
        return fault

    def _whitening(self) -> Task:
        """Pose the whitening task: the likelihood tr G − log det G − k, a burst having the weight M_i − 1.

        When d > k, aligned positions anchor what bursts leave free; the held-out score is the likelihood alone.
        """
        held = self.problem.statistics[self.held_out]
        weights, held_weights = self._tensor(self.trained.weights), self._tensor(held.weights)
        counts = self._tensor(held.counts)
        caps = SCORE_CAP * sampling_floor(counts, held.intrinsic_dim, max(held.tails, 1.0))
        caps = torch.where(torch.isfinite(counts), caps, torch.inf)
        anchors = self.state.anchors

        noise, held_noise = self._noise(self.trained), self._noise(held)

        def loss(rows: Tensor) -> Loss:
            chosen = weights[rows]
            likelihood = partial(_likelihood, chosen / chosen.mean(), tuple(part[rows] for part in noise))
            return partial(_anchored, likelihood, anchors[rows]) if len(anchors) else likelihood

        def cotangents(output: Tensor) -> Tensor:
            of_tangents = gauss_newton_rows(output[1:])
            rows = torch.cat([torch.zeros_like(of_tangents[:, :1]), of_tangents], dim=1)
            return torch.cat([rows, _anchor_rows(output, self._anchor_weight())]) if len(anchors) else rows

        def score(output: Tensor) -> Score:
            value = _with_gradient(output[1:], held_noise)[0]
            beyond = float((value > caps).double().mean())
            each = held_weights * torch.minimum(value, caps)
            beyond_cap = held_weights * torch.where(value > caps, caps * (value / caps).log(), 0.0)
            seen = each + beyond_cap
            return Score(float(each.mean()), beyond > FEW_BEYOND, each, float(seen.mean()), seen)

        return Task(
            name=WHITEN,
            kernel=self.encoder_kernel,
            train=self.data.train,
            held_out=self.data.held_out,
            loss=loss,
            cotangents=cotangents,
            score=score,
            iterations=WHITEN_ITERATIONS,
            ratios=self._decays(),
            max_ratio=STRONGEST_RATIO if self._decays()[0] == STRONGEST else MAX_RATIO,
            idle_gain=self.tol,
            residuals=held.intrinsic_dim * (held.intrinsic_dim + 1) // 2,
            exact=not bool(torch.isfinite(counts).any()),
            network=self.encoder,
            narrowed=_narrowed,
        )

    def _decays(self) -> tuple[float, ...]:
        n, rigid = len(self.trained), self.problem.n_components == self.trained.intrinsic_dim
        wide = self.trained.n_used >= MANY_DIRECTIONS and n >= ENOUGH_BURSTS
        # Training bursts would have the decay lowered to the end: where they have sampling noise, that is followed.
        blind = not len(self.problem.validation) and bool(np.isfinite(self.trained.counts).any())
        decays = DECAYS[:1] if blind else DECAYS
        return (STRONGEST, *decays) if rigid and (is_staged(n) or wide) else decays

    # -- decode -------------------------------------------------------------------------------------------------

    def _decode(self) -> None:
        """Train the decoder of the best encoder: ours in closed form, your own by least squares and a descent."""
        resumed = self.state.stage == DECODE
        self._load_encoder()
        if self.problem.decoder is None:
            self._solve_decoder()
            return
        task = self._decoding()
        if not resumed:
            rows = self.descent.subset(task.train.shape[1])
            inputs = task.train[:, rows].contiguous()
            self.descent.fit("decoder", self.decoder_kernel, inputs, task.loss(rows), task.cotangents)
        self.descent.descend(task, resumed=resumed)

    def _solve_decoder(self) -> None:
        """Choose features and solve for their outer weights; a resumed run chooses again, the same."""
        state, (_, train, held_out) = self.state, self.data
        done = [record["stage"] for record in self.monitor.history].count("fit decoder")  # by a run that is resumed
        state.stage = DECODE
        inputs, held_inputs = self._encoded()
        activation, seed = self.problem.decoder_activation, self.problem.seed
        linear = not self.problem.hidden_layers
        features = FeatureDecoder(inputs, train, held_inputs, held_out, activation, seed, linear=linear)

        def seen(best: Candidate) -> None:
            nonlocal done
            if done:
                done -= 1
                return
            state.iteration += 1
            self.monitor.record(
                "fit decoder", state.iteration, partial(replace, state), loss=best.error**2, decay=best.ridge
            )

        choice = features.choose(seen)
        self.decoder = features.network(choice).to(self.problem.device)
        self.decoder_kernel = make_kernel(self.decoder)
        task = self._decoding()
        score = task.score(forward_all(self.decoder_kernel, held_inputs)).value
        state.iteration += 1
        self.monitor.record(DECODE, state.iteration, loss=score, validation_loss=score, decay=choice.ridge)

    def _load_encoder(self) -> None:
        """Take the best encoder so far; before the first is trained, that is the one in training."""
        if len(self.state.encoder):
            self._set_unit(self.state.encoder_scale)
            self.encoder_kernel.load(self.state.encoder)

    def _encoded(self) -> tuple[Tensor, Tensor]:
        """Return the embedded training and held-out bursts as stacks, centred."""
        inputs, held_inputs = (forward_all(self.encoder_kernel, stack) for stack in self.data[1:])
        centre = inputs[0].mean(dim=0)
        inputs[0] -= centre
        held_inputs[0] -= centre
        return inputs, held_inputs

    def _decoding(self) -> Task:
        """Pose the decoding task: γ(ρ(μ_i)) ≈ μ_i, and T_i pushed through γ ≈ A_i."""
        _, train, held_out = self.data
        inputs, held_inputs = self._encoded()
        weights = torch.full((len(train), 1, 1), TANGENT_WEIGHT**0.5, dtype=train.dtype, device=train.device)
        weights[0] = 1

        def loss(rows: Tensor) -> Loss:
            return partial(_squares, train[:, rows], weights)

        def cotangents(output: Tensor) -> Tensor:
            return weights * self._signs(output)

        def score(output: Tensor) -> Score:
            return Score(_squares(held_out, weights, output, slice(None))[0] / output.shape[1])

        return Task(
            name=DECODE,
            kernel=self.decoder_kernel,
            train=inputs,
            held_out=held_inputs,
            loss=loss,
            cotangents=cotangents,
            score=score,
            iterations=DECODE_ITERATIONS,
            ratios=DECODER_DECAY_RATIOS,
            idle_gain=max(self.tol, 0.05),
        )

    def _signs(self, output: Tensor) -> Tensor:
        """Draw six random signs per residual: cotangents whose expected Gram matrix is that of all residuals."""
        signs = torch.randint(0, 2, (6, *output.shape), generator=self.generator)
        return (2 * signs - 1).to(output)

    # -- networks and data in unit size -------------------------------------------------------------------------

    def _new_encoder(self) -> nn.Module:
        problem = self.problem
        return self._network(problem.encoder, self.trained.n_features, problem.n_components, problem.activation)

    def _kernel(self) -> PushforwardKernel:
        """Make the kernel of the encoder.

        With as many features as dimensions, tangents determine the linear part, however much it must magnify a
        direction that is hardly measured: a prior on it would only squeeze that. Elsewhere the prior does good.
        """
        kernel = make_kernel(self.encoder)
        square = self.trained.n_used == self.trained.intrinsic_dim
        if square and isinstance(kernel, MLPKernel) and self._unevenly_measured() > MAGNIFIED:
            kernel.spare_skip()
        return kernel

    def _unevenly_measured(self) -> float:
        """Return how many times as large as along the shortest direction a burst is along the longest, on average."""
        tangents = self.trained.tangents.reshape(-1, self.trained.n_features)
        lengths = np.linalg.svd(tangents, compute_uv=False)[: self.trained.intrinsic_dim]
        return float(lengths[0] / max(lengths[-1], np.finfo(float).tiny))

    def _network(self, given: nn.Module | None, n_in: int, n_out: int, activation: str) -> nn.Module:
        if given is not None:
            own = copy.deepcopy(given).to(dtype=torch.float64, device=self.problem.device).eval()
            start_like_ours(own, self._tensor(np.zeros((2, n_in))), self.generator)
            if not getattr(given, "linear_skip", True):
                return own
            return WithSkip(own, n_in, n_out).to(dtype=torch.float64, device=self.problem.device).eval()
        hidden = self.problem.hidden_layers
        network = MLP(n_in, hidden, n_out, activation, skip=True, generator=torch.Generator()).double()
        initialize(network, self.generator)
        return network.to(self.problem.device)

    def _warn(self, name: str, network: nn.Module, n_in: int) -> None:
        """Warn by a plain `UserWarning`: the fit may take longer, but its result is checked like any other."""
        if parts := weights_without_blocks(network, self._tensor(np.zeros((2, n_in)))):
            warnings.warn(
                f"{name}: {parts} can only be preconditioned by their diagonal, so training may need more iterations. "
                "Linear, Conv1d and Conv2d layers (groups=1, zero padding) that are called as modules train best.",
                stacklevel=2,
            )

    def _tensor(self, array: NDArray[np.float64]) -> Tensor:
        return torch.as_tensor(array, dtype=torch.float64, device=self.problem.device).contiguous()

    def _set_unit(self, out_scale: float) -> None:
        """Convert the data to units of an embedding of size `out_scale`."""
        if out_scale != self.data.out_scale:
            stacks = (self._stack(rows, out_scale) for rows in (self.problem.train, self.held_out))
            self.data = _Data(out_scale, *stacks)

    def _noise(self, statistics: BurstStatistics) -> tuple[Tensor, ...]:
        """Return total and noise of each burst in the basis of its tangents; () when there is no noise."""
        if statistics.noise is None or statistics.total is None:
            return ()
        return self._tensor(statistics.total), self._tensor(statistics.noise)

    def _stack(self, rows: NDArray[np.int64], out_scale: float) -> Tensor:
        """Stack means and tangents in units of the data, scaled so that pushed tangents are T_i: (1 + k, n, D)."""
        unit = out_scale / (self.scale * self.problem.burst_std)
        stack: Any = LazyStack(self.problem.statistics, rows, self.shift, self.scale, unit, self.problem.device)
        return stack if len(rows) >= MANY else stack[:, :]


def _squares(targets: Tensor, weights: Tensor | None, output: Tensor, part: slice) -> tuple[float, Tensor]:
    """Compute Σ w² (output − target)² and its gradient."""
    residual = output - targets[:, part]
    if weights is not None:
        residual *= weights
    value = float(residual.square().sum())
    return value, residual.mul_(2) if weights is None else residual.mul_(2 * weights)


def _likelihood(weights: Tensor, noise: tuple[Tensor, ...], output: Tensor, part: slice) -> tuple[float, Tensor]:
    """Compute Σ w_i (tr G_i − log det G_i − k) and its gradient; the positions do not enter."""
    value, gradient = _with_gradient(output[1:], tuple(array[part] for array in noise))
    cotangent = torch.zeros_like(output)
    torch.mul(gradient, weights[part, None], out=cotangent[1:])
    return float(torch.dot(value, weights[part])), cotangent


def _narrowed(loss: Any, part: slice) -> Loss:
    """Take a loss of whitening to that of a part of its bursts."""
    if loss.func is _anchored:
        inner, anchors = loss.args
        return partial(_anchored, _narrowed(inner, part), anchors[part])
    weights, noise = loss.args
    return partial(_likelihood, weights[part], tuple(array[part] for array in noise))


def _with_gradient(pushed: Tensor, noise: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    return likelihood_noisy_with_gradient(pushed, *noise) if noise else likelihood_pushed_with_gradient(pushed)


def _anchored(loss: Loss, anchors: Tensor, output: Tensor, part: slice) -> tuple[float, Tensor]:
    """Add Σ a_i ‖ρ(μ_i) − p_i‖² to a loss that does not see positions; `anchors` is (a_i, p_i), (n, 1 + d)."""
    value, cotangent = loss(output, part)
    weight, residual = anchors[part, :1], output[0] - anchors[part, 1:]
    torch.mul(residual, 2 * weight, out=cotangent[0])
    return value + float((weight * residual.square()).sum()), cotangent


def _anchor_rows(output: Tensor, weight: float) -> Tensor:
    """Return the cotangents of an anchored burst's d residuals, (d, 1 + k, n, d)."""
    d = output.shape[2]
    rows = output.new_zeros(d, *output.shape)
    rows[range(d), 0, :, range(d)] = weight**0.5
    return rows
