"""How the fast solver trains one network: L-BFGS, preconditioned by Gauss–Newton, validated on held-out bursts.

The weight decay starts strong and is lowered rung by rung, as long as the held-out score improves, on a few bursts
first and then on more; weights are averaged over the latest iterations where that does no harm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from pyloca.errors import ConvergenceError
from pyloca.networks import MLPKernel, PushforwardKernel
from pyloca.solvers._checkpoint import State, is_state
from pyloca.solvers._monitor import Monitor, StopTraining
from pyloca.solvers._problem import CHUNK
from pyloca.solvers._quasi_newton import LBFGS
from pyloca.solvers._shards import DATA, SHARD, Loss, Shards, shard_sums

__all__ = ["Descent", "Evaluation", "Loss", "Progress", "Score", "Task", "forward_all", "is_staged"]

FIT_ITERATIONS = 400  # at most: a coil of ten turns takes most of them, a sheet an eighth
FIT_GAIN = 0.1  # a segment that lowers the loss by less than this part ends a fit
FIT_DECAY = 1e-3
FIT_DECAY_RATIO = 3e-2  # of the loss, once that is known
SEGMENT = 25  # iterations between two checks on the held-out bursts
TAIL = 12  # the last iterations of a segment, whose mean is a candidate
SAME_SCORE = 0.005
# Checks without gain that end a decay: one, but four at the end, with the best decay on all bursts, where long waves
# must settle. To the score of a few held-out bursts, a later gain would be luck.
PATIENCE, LAST_PATIENCE = 1, 4
MANY_HELD_OUT = 20
MAX_RATIO = 3e-2  # of the decay to the held-out score: a few exact bursts would be smoothed too much
FIRST_BURSTS = 500  # stages begin with this many bursts and go on with WIDEN times as many, until all are used
WIDEN = 4
COARSE_GAIN = 0.03  # a stage on some of the bursts only finds a start: it ends at smaller gains than this
# A lower decay must be better by the standard error. With very many held-out bursts this part of it is enough: one that
# is too low costs little there, one that is too high twice the stress (`python -m benchmarks sizes`).
VERY_MANY, ENOUGH = 1000, 0.3
GAIN_RESIDUALS = 5000.0  # with more residuals than this, smaller gains count
PROBES = 450  # bursts that shape the preconditioner

Cotangents = Callable[[Tensor], Tensor]  # of the residuals whose Gauss–Newton matrix is wanted, at a network's output


class Score(NamedTuple):
    """How good a network is on the held-out bursts: lower is better."""

    value: float
    many_lost: bool = False  # whether many bursts are beyond the cap at which `value` counts them
    each: Tensor | None = None  # the score of each burst, whose mean is `value`
    progress: float = np.nan  # the same with bursts beyond the cap counted by their logarithm; NaN: as `value`
    each_seen: Tensor | None = None  # the same of each burst, whose mean is `progress`

    @property
    def seen(self) -> float:
        """What tells whether training still gains: it sees bursts beyond the cap come nearer."""
        return self.value if np.isnan(self.progress) else self.progress


@dataclass
class Task:
    """One network to train: inputs as stacks, a loss on outputs, and cotangents that shape its preconditioner."""

    name: str
    kernel: PushforwardKernel
    train: Tensor  # (1 + k, n, ·)
    held_out: Tensor
    loss: Callable[[Tensor], Loss]  # of the training bursts in these rows
    cotangents: Cotangents
    score: Callable[[Tensor], Score]  # of the network's output on the held-out bursts
    iterations: int  # at most; half as many with each number of bursts when there are several
    ratios: tuple[float, ...]  # weight decays as multiples of the held-out score, high to low
    idle_gain: float  # a stage is idle when the score falls by less than this part of itself in a segment
    # How many independent residuals a burst has. With them, `ratios` is divided by the number of all residuals: the
    # prior that ‖θ‖² is stays the same, and the bursts outweigh it the more of them there are. 0: no division.
    residuals: int = 0
    exact: bool = False  # whether bursts have no sampling noise
    max_ratio: float = MAX_RATIO  # of a decay to the held-out score
    # To train on workers: the network of `kernel`, and what takes a loss to that of a part of its bursts.
    network: nn.Module | None = None
    narrowed: Callable[[Loss, slice], Loss] | None = None

    def ratio(self, rung: int, n: int) -> float:
        """Return the decay on n bursts as a multiple of the held-out score."""
        return min(self.max_ratio, self.ratios[rung] / (n * self.residuals or 1))

    def gain(self, n: int) -> float:
        """Return the gain below which n bursts are idle: a fixed number of parameters' worth when there are many."""
        return self.idle_gain * min(1.0, GAIN_RESIDUALS / (n * self.residuals or 1))


@dataclass
class Progress(State):
    """Progress of the network in training, all that the next segment needs. `Descent` adds optimizer and generators."""

    stage: str = ""  # the task's name; "" before the first
    iteration: int = 0  # over all tasks
    last: int = 0  # iteration at which the task ends
    subset: Tensor = field(default_factory=partial(torch.empty, 0, dtype=torch.int64))  # rows in use
    theta: Tensor = field(default_factory=partial(torch.empty, 0))
    best_theta: Tensor = field(default_factory=partial(torch.empty, 0))
    best_score: float = np.inf
    best_rung: int = 0
    rung: int = 0  # which of the task's decays is in use
    score_before: float = np.inf  # the best when this decay began: its score, weights and decay
    theta_before: Tensor = field(default_factory=partial(torch.empty, 0))
    rung_before: int = 0
    decay: float = np.inf  # in use
    score: float = np.inf  # the latest, and whether many bursts were beyond its cap
    many_lost: bool = False
    progress: float = np.inf  # the latest, as `Score.seen`
    stage_best: float = np.inf  # the best score with this decay
    idle: int = 0  # checks without gain since then
    going: bool = True  # False when the optimizer cannot go lower
    settling: bool = False  # whether the best decay is in use again, to the end
    optimizer: dict[str, Tensor] = field(default_factory=dict)
    generator: Tensor = field(default_factory=partial(torch.empty, 0, dtype=torch.uint8))
    random: Tensor = field(default_factory=partial(torch.empty, 0, dtype=torch.int64))
    random_place: int = 0  # in those numbers


class Descent:
    """Train networks one after the other within one budget of iterations, reporting to one monitor.

    `state` is kept up to date and is what the monitor writes to a checkpoint; a solver may add fields to it.
    """

    def __init__(
        self,
        monitor: Monitor,
        state: Progress,
        budget: int,
        random: np.random.RandomState,
        generator: torch.Generator,
        client: Any = None,
    ) -> None:
        self.monitor, self.state, self.budget = monitor, state, budget
        self.random, self.generator = random, generator
        self.client = client  # of Dask, whose workers evaluate large stages
        self.shards: Shards | None = None  # the bursts that they hold

    def fit(
        self,
        name: str,
        kernel: PushforwardKernel,
        stack: Tensor,
        loss: Loss,
        cotangents: Cotangents,
        ratio: float = FIT_DECAY_RATIO,
    ) -> None:
        """Fit by least squares to start with: at a fixed decay to find the loss, then at `ratio` times the loss."""
        decay, theta = FIT_DECAY, kernel.theta.clone()
        single = _single(kernel)
        stack = stack.to(single.theta.dtype)
        for _ in range(2):
            function = Evaluation(single, stack, loss, decay)
            optimizer, before = LBFGS(function, theta), np.inf
            for _ in range(FIT_ITERATIONS // (2 * SEGMENT)):
                self._precondition(function, optimizer, cotangents)
                going = self._run(optimizer, SEGMENT)
                theta = optimizer.theta
                kernel.load(theta)
                self.monitor.record(f"fit {name}", self.state.iteration, loss=optimizer.value, decay=decay)
                if self.state.iteration >= self.budget:
                    raise StopTraining
                if not going or optimizer.value > (1 - FIT_GAIN) * before:
                    break
                before = optimizer.value
            decay = ratio * Evaluation(single, stack, loss, 0.0)(theta)[0]

    def descend(self, task: Task, *, resumed: bool = False) -> None:
        """Lower the weight decay rung by rung while the held-out score improves; leave the best weights in place.

        This is done on a few bursts first. Their best weights and decay are where four times as many begin, and so on
        until all are used. Starts from the network's weights, or from the state if it was read from a checkpoint of
        this task.
        """
        if not resumed:
            self._begin(task)
        self._lower(task, resumed=resumed)
        while len(self.state.subset) < task.train.shape[1]:
            self._widen(task)
            self._lower(task)
        task.kernel.load(self.state.best_theta)

    def settle(self, task: Task) -> None:
        """Go on from the network's weights with all bursts and the decay that was best, after the task has changed."""
        at = self.state
        at.last = at.iteration + task.iterations // 2
        at.theta = at.best_theta = task.kernel.theta.clone()
        at.best_score = at.score_before = np.inf
        at.rung = at.best_rung
        self._lower(task)
        task.kernel.load(at.best_theta)

    def _begin(self, task: Task) -> None:
        at = self.state
        at.stage, at.subset = task.name, self.subset(task.train.shape[1])
        at.last = at.iteration + task.iterations // (1 if len(at.subset) == task.train.shape[1] else 2)
        at.theta = at.best_theta = task.kernel.theta.clone()
        at.best_score = at.score_before = np.inf
        at.best_rung = at.rung = 0

    def _widen(self, task: Task) -> None:
        """Go on with more bursts from the best weights so far, whatever score these had with fewer.

        The decay is one rung above the best: a few bursts may be followed too closely, and weights that have grown for
        them do not find back by themselves (`frame`, one seed of ten).
        """
        at, n = self.state, task.train.shape[1]
        rest = np.setdiff1d(np.arange(n), at.subset.numpy())
        size = WIDEN * len(at.subset)
        more = rest if 2 * size > n else self.random.permutation(rest)[: size - len(at.subset)]
        at.subset = torch.from_numpy(np.sort(np.concatenate([at.subset.numpy(), more])))
        at.last = at.iteration + task.iterations // 2
        at.theta, at.rung = at.best_theta, max(at.best_rung - 1, 0)
        at.best_score = at.score_before = np.inf

    def subset(self, n: int) -> Tensor:
        """Choose the rows of n that stages begin with."""
        rows = np.sort(self.random.permutation(n)[:FIRST_BURSTS]) if is_staged(n) else np.arange(n)
        return torch.from_numpy(rows)

    def fault(self, size: int, n: int, rungs: int) -> str:
        """Name what a state that was read cannot have with so many parameters, bursts and decays; "" if nothing."""
        at, some = self.state, self.state.subset
        inside = some.ndim == 1 and len(some) > 0 and int(some[0]) >= 0 and int(some[-1]) < n
        known = {
            "theta": at.theta.shape == at.best_theta.shape == (size,),
            "optimizer": LBFGS.fits(at.optimizer, size),
            "subset": inside and bool((some.diff() > 0).all()),
            "theta_before": at.theta_before.shape == (size,) or not np.isfinite(at.score_before),
            "rung": max(at.rung, at.best_rung, at.rung_before) < rungs,
            "decay": 0 <= at.decay < np.inf,
        }
        return next((name for name, good in known.items() if not good), "") or self.drawn_fault()

    def drawn_fault(self) -> str:
        """Name the generator whose state cannot be one; "" if there is none."""
        at = self.state
        numbers = at.random.shape == (624,) and bool(((at.random >= 0) & (at.random < 2**32)).all())
        if not len(at.generator):
            return ""  # nothing is restored
        return "" if is_state(at.generator) and numbers and at.random_place <= 624 else "generator"

    def restore(self) -> None:
        """Set the generators as the state has them, after it was read from a checkpoint."""
        at = self.state
        if len(at.generator):
            self.generator.set_state(at.generator)
            self.random.set_state(("MT19937", at.random.numpy().astype(np.uint32), at.random_place, 0, 0.0))

    def _snapshot(self, optimizer: LBFGS, decay: float) -> Progress:
        """Copy the state together with the optimizer and the generators."""
        drawn: Any = self.random.get_state(legacy=False)
        return replace(
            self.state,
            decay=decay,
            optimizer=optimizer.state(),
            generator=self.generator.get_state(),
            random=torch.from_numpy(drawn["state"]["key"].astype(np.int64)),
            random_place=int(drawn["state"]["pos"]),
        )

    def _lower(self, task: Task, *, resumed: bool = False) -> None:
        """Lower the decay rung by rung on the bursts in use; when they are all, settle with the best decay."""
        at, n = self.state, len(self.state.subset)
        staged = task.train[:, at.subset].contiguous() if n < task.train.shape[1] else task.train
        loss, gain, patience = task.loss(at.subset), task.gain(n), PATIENCE
        if n < task.train.shape[1]:
            gain = max(gain, COARSE_GAIN)
        elif task.held_out.shape[1] >= MANY_HELD_OUT:
            patience = LAST_PATIENCE
        self.shards = self._shards(task, staged, loss)
        # Single precision is enough for what other bursts or the settling go on from.
        precise = n == task.train.shape[1] and (at.settling or patience == PATIENCE)
        evaluation = self._evaluation(task, staged, loss, precise=precise)
        while True:
            optimizer, decay, ratio = None, np.inf, task.ratio(at.rung, n)
            if resumed:
                decay, score, resumed = at.decay, Score(at.score, at.many_lost, progress=at.progress), False
                function = evaluation(decay)
                optimizer = LBFGS.resume(function, at.optimizer)
                at.optimizer = {}
            else:
                at.stage_best, at.idle, at.going = np.inf, 0, True
                if _is_dead(task.kernel, at.theta):
                    at.theta = task.kernel.woken(at.theta, self.generator)
                score = self._score(task, at.theta)
            limit = patience if at.settling else PATIENCE
            while at.going and at.idle < limit and at.iteration < at.last:
                if optimizer is None or ratio * score.value < 0.5 * decay:
                    before, decay = decay, ratio * score.value
                    function = evaluation(decay)
                    if optimizer is None:
                        optimizer = LBFGS(function, at.theta)
                    else:
                        optimizer = optimizer.follow(function, at.theta, 2 * (decay - before))
                self._precondition(function, optimizer, task.cotangents)
                at.going = self._run(optimizer, SEGMENT)
                at.theta = optimizer.theta
                candidate, score = self._candidate(task, at.theta)
                if score.value < at.best_score:
                    at.best_score, at.best_theta, at.best_rung = score.value, candidate, at.rung
                at.idle = 0 if score.seen < (1 - gain) * at.stage_best else at.idle + 1
                at.stage_best = min(score.seen, at.stage_best)
                at.score, at.many_lost, at.progress = score.value, score.many_lost, score.seen
                snapshot = partial(self._snapshot, optimizer, decay)
                self._record(task, optimizer, score.value, decay, at.best_theta, snapshot)
            if at.settling:
                break
            gained, dead = self._gained(task, gain), _is_dead(task.kernel, at.theta)
            if not gained and not score.many_lost:  # what is better by chance only is not as smooth
                at.best_score, at.best_theta, at.best_rung = at.score_before, at.theta_before, at.rung_before
            at.score_before, at.theta_before, at.rung_before = at.best_score, at.best_theta, at.best_rung
            # Without the memory of L-BFGS, which would mislead: another decay leads far. The best weights go on, unless
            # bursts that are still lost have come nearer since.
            if not (score.many_lost and score.seen < self._score(task, at.best_theta).seen):
                at.theta = at.best_theta
            if (gained or score.many_lost or dead) and at.rung + 1 < len(task.ratios):
                at.rung += 1
            elif patience > PATIENCE:
                at.settling, at.rung = True, at.best_rung
                evaluation = self._evaluation(task, staged, loss, precise=True)
            else:
                break
        at.settling = False
        if self.shards is not None:
            self.shards.release()

    def _gained(self, task: Task, gain: float) -> bool:
        """Tell whether this decay is better than the one before, by more than chance would often make it.

        Most of a score is sampling noise, which both have in common, so a part of the score says little. To bring back
        bursts that were lost, which the cap hides, is a gain too. Bursts without such noise need no more smoothness
        than held-out ones ask for.
        """
        at = self.state
        if not np.isfinite(at.score_before):
            return True
        before, now = self._score(task, at.theta_before), self._score(task, at.best_theta)
        if task.exact:
            return now.value < (1 + gain) * before.value
        if before.each is None or now.each is None or len(now.each) == 1:  # which has no standard error
            return now.value < (1 - gain) * before.value
        pairs = ((before.each, now.each), (before.each_seen, now.each_seen))
        return any(one is not None and other is not None and _significant(one - other) for one, other in pairs)

    def _shards(self, task: Task, stack: Tensor, loss: Loss) -> Shards | None:
        """Put a stage of several shards on the workers, if there are any."""
        if self.client is None or task.network is None or task.narrowed is None or stack.shape[1] <= SHARD:
            return None
        return Shards(self.client, task.network, stack, loss, task.narrowed)

    def _evaluation(self, task: Task, stack: Tensor, loss: Loss, *, precise: bool) -> Callable[[float], Evaluation]:
        """Pose a stage, to be evaluated in double or in single precision with any decay."""
        kernel = task.kernel if precise else _single(task.kernel)
        stack = stack.to(DATA if stack.shape[1] > SHARD else kernel.theta.dtype)
        return partial(Evaluation, kernel, stack, loss, shards=self.shards)

    def _record(
        self,
        task: Task,
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
                task.name, self.state.iteration, state, loss=optimizer.value, validation_loss=score, decay=decay
            )
        except StopTraining:
            task.kernel.load(best)
            raise
        if self.state.iteration >= self.budget:
            task.kernel.load(best)
            raise StopTraining

    def _precondition(self, function: Evaluation, optimizer: LBFGS, cotangents: Cotangents) -> None:
        kernel, stack = function.kernel, function.stack
        chosen = torch.randperm(stack.shape[1], generator=self.generator)[:PROBES]
        kernel.theta.copy_(optimizer.theta)
        probes = stack[:, chosen].to(kernel.theta.dtype).contiguous()
        optimizer.preconditioner = kernel.preconditioner(probes, cotangents, 2 * function.decay)

    def _run(self, optimizer: LBFGS, iterations: int) -> bool:
        """Iterate; return False when the optimizer cannot go lower."""
        self.tail = deque([optimizer.theta], maxlen=TAIL)
        for _ in range(min(iterations, self.budget - self.state.iteration)):
            self.state.iteration += 1
            self.monitor.advance()
            if not optimizer.step():
                return False
            self.tail.append(optimizer.theta)
        return True

    def _candidate(self, task: Task, theta: Tensor) -> tuple[Tensor, Score]:
        """Return the mean of the latest iterates, or θ if the mean is worse, with its score.

        Iterates oscillate in the long waves of the embedding, which hardly change the loss but do change distances;
        their mean does not (docs/algorithm.md has figures).
        """
        mean = torch.stack(list(self.tail)).mean(dim=0)
        score, mean_score = self._score(task, theta), self._score(task, mean)
        return (mean, mean_score) if mean_score.value < (1 + SAME_SCORE) * score.value else (theta, score)

    def _score(self, task: Task, theta: Tensor) -> Score:
        task.kernel.theta.copy_(theta)
        return task.score(forward_all(task.kernel, task.held_out))


def is_staged(n: int) -> bool:
    """Tell whether n bursts are so many that training begins on some of them."""
    return n >= 2 * FIRST_BURSTS


def _significant(differences: Tensor) -> bool:
    """Tell whether the mean of differences is more than its standard error, or the part of it that is enough."""
    enough = ENOUGH if len(differences) >= VERY_MANY else 1.0
    return float(differences.mean()) > enough * float(differences.std()) / len(differences) ** 0.5


def _single(kernel: PushforwardKernel) -> PushforwardKernel:
    """Return the kernel's twin in single precision; your own network keeps the precision that it has."""
    return kernel.single() if isinstance(kernel, MLPKernel) else kernel


def _is_dead(kernel: PushforwardKernel, theta: Tensor) -> TypeGuard[MLPKernel]:
    return isinstance(kernel, MLPKernel) and kernel.is_dead(theta)


class Evaluation:
    """θ ↦ (mean loss over the bursts + decay · ‖θ‖², its gradient), shard by shard, here or on workers."""

    def __init__(
        self,
        kernel: PushforwardKernel,
        stack: Tensor,
        loss: Loss,
        decay: float,
        shards: Shards | None = None,  # the same bursts on workers
    ) -> None:
        self.kernel, self.stack, self.loss, self.decay, self.shards = kernel, stack, loss, decay, shards
        self.n = stack.shape[1]

    def __call__(self, theta: Tensor) -> tuple[float, Tensor]:
        self.kernel.theta.copy_(theta)
        if self.shards is None:
            sums = shard_sums(self.kernel, self.stack, self.loss)
        else:
            sums = self.shards.sums(theta, self.kernel.theta.dtype)
        total, gradient = 0.0, torch.zeros_like(theta)
        for value, part in sums:
            total += value
            gradient += part
        decayed = theta if self.kernel.penalty is None else theta * self.kernel.penalty
        gradient.div_(self.n).add_(decayed, alpha=2 * self.decay)
        return total / self.n + self.decay * float(torch.dot(theta, decayed)), gradient


def forward_all(kernel: PushforwardKernel, stack: Tensor) -> Tensor:
    """Compute the network's output for a whole stack, (1 + k, n, ·), in chunks."""
    out = torch.empty(0)
    for start in range(0, stack.shape[1], CHUNK):
        part = kernel.forward(stack[:, start : start + CHUNK].contiguous())
        if not start:
            out = part.new_empty(len(part), stack.shape[1], part.shape[2])
        out[:, start : start + CHUNK] = part
    return out
