"""L-BFGS on a flat vector, with a preconditioner that may change while the memory stays."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

from pyloca.errors import ConvergenceError

__all__ = ["LBFGS"]

Function = Callable[[Tensor], tuple[float, Tensor]]

MEMORY = 60
ARMIJO, CURVATURE = 1e-4, 0.9
MAX_TRIALS = 25


class LBFGS:
    """Minimise `function`: θ ↦ (value, gradient).

    The inverse Hessian starts from γ M, M the preconditioner and γ = sᵀy / yᵀMy of the latest step, so that M needs
    the right shape only, not the right size, and a full step is nearly always taken (Nocedal and Wright, chapter 7).
    A trial point with a non-finite value only shortens the step; a non-finite start is a `ConvergenceError`.
    """

    def __init__(self, function: Function, theta: Tensor) -> None:
        self.function = function
        self.theta = theta.clone()
        self.value, self.gradient = function(self.theta)
        if not math.isfinite(self.value):
            raise ConvergenceError(
                f"the loss is {self.value} at the start of training. The data or the network's output is out of range."
            )
        self.preconditioner: Callable[[Tensor], Tensor] | None = None
        self.n_evaluations = 1
        self._memory: deque[tuple[Tensor, Tensor, float]] = deque(maxlen=MEMORY)

    def restart(self, function: Function) -> None:
        """Go on from the present θ with another function."""
        preconditioner = self.preconditioner
        self.__init__(function, self.theta)  # type: ignore[misc]
        self.preconditioner = preconditioner

    def step(self) -> bool:
        """One iteration; False when no step along the gradient lowers the value any more."""
        if self._search(self._direction()):
            return True
        if not self._memory:
            return False
        self._memory.clear()  # a stale memory may point nowhere: once more from the preconditioned gradient
        return self._search(self._direction())

    def _direction(self) -> Tensor:
        q = self.gradient.clone()
        alphas = []
        for s, y, rho in reversed(self._memory):
            alpha = rho * float(torch.dot(s, q))
            alphas.append(alpha)
            q.sub_(y, alpha=alpha)
        metric = self.preconditioner
        q = q if metric is None else metric(q)
        if self._memory:
            _, y, rho = self._memory[-1]
            q.mul_(1 / (rho * float(torch.dot(y, y if metric is None else metric(y)))))
        else:
            q.mul_(min(1.0, 1.0 / max(float(q.abs().sum()), 1e-300)))
        for (s, y, rho), alpha in zip(self._memory, reversed(alphas), strict=True):
            q.add_(s, alpha=alpha - rho * float(torch.dot(y, q)))
        return q.neg_()

    def _search(self, direction: Tensor) -> bool:
        """Bracket a step that satisfies the Wolfe conditions, take it and remember it."""
        descent = float(torch.dot(self.gradient, direction))
        if not descent < 0:
            return False
        low, high, step = 0.0, math.inf, 1.0
        for _ in range(MAX_TRIALS):
            theta = torch.add(self.theta, direction, alpha=step)
            value, gradient = self.function(theta)
            self.n_evaluations += 1
            if not math.isfinite(value) or value > self.value + ARMIJO * step * descent:
                high = step
                # the parabola through what is known, while nothing shorter is known to be good
                guess = -descent * step**2 / (2 * (value - self.value - descent * step)) if low == 0 else math.nan
                step = guess if 0.1 * high < guess < 0.5 * high else 0.5 * (low + high)
            elif float(torch.dot(gradient, direction)) < CURVATURE * descent:
                low = step
                step = 2 * step if math.isinf(high) else 0.5 * (low + high)
            else:
                break
        else:
            return False
        s, y = direction.mul_(step), gradient - self.gradient
        self._memory.append((s, y, 1 / float(torch.dot(s, y))))  # positive by the curvature condition
        self.theta, self.value, self.gradient = theta, value, gradient
        return True
