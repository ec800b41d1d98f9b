"""L-BFGS on a flat vector, with a preconditioner that may change while the memory stays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from pyloca.errors import ConvergenceError

__all__ = ["LBFGS", "Minimum", "minimize"]

Function = Callable[[Tensor], tuple[float, Tensor]]
Preconditioner = Callable[[Tensor], Tensor]

MEMORY = 30
ARMIJO, CURVATURE = 1e-4, 0.9
MAX_TRIALS = 25


class Minimum(NamedTuple):
    """Result of `minimize`.

    Attributes
    ----------
    theta : Tensor (n,)
    value : float
        The function at `theta`.
    n_iter : int
        Steps that were taken.
    history : list of float
        The value at the start and at every check.

    Examples
    --------
    See `minimize`.
    """

    theta: Tensor
    value: float
    n_iter: int
    history: list[float]


def minimize(
    function: Function,
    theta: Tensor,
    *,
    max_iter: int,
    tol: float,
    check_every: int = 10,
    preconditioner: Preconditioner | None = None,
) -> Minimum:
    """Minimise a smooth function of a flat vector by L-BFGS.

    Parameters
    ----------
    function : callable
        θ ↦ (value, gradient).
    theta : Tensor (n,)
        Start; not changed.
    max_iter : int
        Maximum number of steps; 0 returns the start.
    tol : float
        Stop when `check_every` steps lower the value by no more than this fraction of it.
    check_every : int, default=10
        Steps between two checks.
    preconditioner : callable, optional
        g ↦ M g, M symmetric and positive definite; it should approximate the inverse Hessian up to a factor.

    Returns
    -------
    Minimum
        θ, the value there, the number of steps, and the values at the start and at every check.

    Raises
    ------
    ConvergenceError
        If the value at the start is not finite.

    Examples
    --------
    >>> import torch
    >>> from pyloca.solvers import minimize
    >>> def squares(x):
    ...     return float((x - 1).square().sum()), 2 * (x - 1)
    >>> found = minimize(squares, torch.zeros(3), max_iter=100, tol=1e-6)
    >>> [round(x, 3) for x in found.theta.tolist()]
    [1.0, 1.0, 1.0]
    """
    optimizer = LBFGS(function, theta)
    optimizer.preconditioner = preconditioner
    history, n_iter = [optimizer.value], 0
    while n_iter < max_iter and optimizer.step():
        n_iter += 1
        if n_iter % check_every == 0:
            history.append(optimizer.value)
            if history[-2] - history[-1] <= tol * abs(history[-2]):
                break
    return Minimum(optimizer.theta, optimizer.value, n_iter, history)


class LBFGS:
    """L-BFGS, one step at a time.

    The inverse Hessian starts from γ M, with M the preconditioner and γ = sᵀy / yᵀMy of the latest step, so that M
    matters only up to a factor, and a full step is nearly always taken (Nocedal and Wright, chapter 7). A trial point
    with a non-finite value only shortens the step.

    Parameters
    ----------
    function : callable
        θ ↦ (value, gradient).
    theta : Tensor (n,)
        Start; not changed.

    Attributes
    ----------
    theta, value, gradient : Tensor (n,), float, Tensor (n,)
        The current point, and the function there.
    n_evaluations : int
        Calls of the function so far.

    Raises
    ------
    ConvergenceError
        If the value at the start is not finite.

    Examples
    --------
    See `minimize`.
    """

    def __init__(self, function: Function, theta: Tensor) -> None:
        self.function = function
        self.theta = theta.clone()
        self.value, self.gradient = function(self.theta)
        if not math.isfinite(self.value):
            raise ConvergenceError(
                f"the loss is {self.value} at the start of training. The data or the network's output is out of range."
            )
        self.n_evaluations = 1
        self._memory = _Memory(self.theta)

    @property
    def preconditioner(self) -> Preconditioner | None:
        """M, a symmetric positive definite map of vectors (n,), or of rows (m, n); None is the identity."""
        return self._memory.metric

    @preconditioner.setter
    def preconditioner(self, metric: Preconditioner | None) -> None:
        self._memory.set_metric(metric)

    def state(self) -> dict[str, Tensor]:
        """Return the current point and the memory, without the preconditioner: what `resume` needs.

        Returns
        -------
        dict of str to Tensor
            Copies.
        """
        at = {"theta": self.theta, "gradient": self.gradient, "value": torch.tensor(self.value, dtype=torch.float64)}
        return {name: tensor.clone() for name, tensor in (at | self._memory.state()).items()}

    @staticmethod
    def fits(state: dict[str, Tensor], size: int) -> bool:
        """Whether a dict of tensors has the form of a state of so many parameters.

        Parameters
        ----------
        state : dict of str to Tensor
        size : int

        Returns
        -------
        bool
        """
        first, pairs = state.get("first"), state.get("s")
        if first is None or pairs is None or first.shape != () or first.dtype != torch.int64 or pairs.ndim != 2:
            return False
        n, wide = len(pairs), (len(pairs), size)
        shapes = {"theta": (size,), "gradient": (size,), "value": (), "s": wide, "y": wide, "sy": (n, n), "first": ()}
        alike = {name: tuple(tensor.shape) for name, tensor in state.items()} == shapes
        numbers = all(
            tensor.dtype == torch.float64 and bool(torch.isfinite(tensor).all())
            for name, tensor in state.items()
            if name != "first"
        )
        return alike and numbers and n <= MEMORY and 0 <= int(first) <= 2 * MEMORY - n

    @classmethod
    def resume(cls, function: Function, state: dict[str, Tensor]) -> LBFGS:
        """Go on, bit for bit, from a state of an optimizer of the same function, once a preconditioner is set.

        Parameters
        ----------
        function : callable
            θ ↦ (value, gradient).
        state : dict of str to Tensor
            Not changed.

        Returns
        -------
        LBFGS
        """
        other = cls.__new__(cls)
        other.function, other.n_evaluations = function, 0
        other.theta, other.gradient = state["theta"].clone(), state["gradient"].clone()
        other.value = float(state["value"])
        other._memory = _Memory.resume(state)
        return other

    def follow(self, function: Function, theta: Tensor, ridge: float) -> LBFGS:
        """Minimise another function that differs by a quadratic only, and keep what is known of the curvature.

        Parameters
        ----------
        function : callable
            The present function + ½ `ridge` ‖θ‖².
        theta : Tensor (n,)
            Start; not changed.
        ridge : float
            It may be negative.

        Returns
        -------
        LBFGS
            It takes over the memory; the present one must not be used any more.
        """
        other = LBFGS(function, theta)
        other._memory = self._memory
        other._memory.add_ridge(ridge)
        return other

    def step(self) -> bool:
        """Take one step.

        Returns
        -------
        bool
            False when no step along the gradient lowers the value any more.
        """
        if self._search(self._memory.direction(self.gradient)):
            return True
        if not len(self._memory):
            return False
        self._memory.clear()  # an outdated memory may give no descent: try the preconditioned gradient
        return self._search(self._memory.direction(self.gradient))

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
                # minimum of the parabola through the known values, while no shorter step is known to be good
                guess = -descent * step**2 / (2 * (value - self.value - descent * step)) if low == 0 else math.nan
                step = guess if 0.1 * high < guess < 0.5 * high else 0.5 * (low + high)
            elif float(torch.dot(gradient, direction)) < CURVATURE * descent:
                low = step
                step = 2 * step if math.isinf(high) else 0.5 * (low + high)
            else:
                break
        else:
            return False
        self._memory.append(direction.mul_(step), self.gradient, gradient)
        self.theta, self.value, self.gradient = theta, value, gradient
        return True


class _Memory:
    """The latest steps s and gradient changes y, and the inverse Hessian that they make of γ M.

    It is in the compact form of Byrd, Nocedal and Schnabel (1994), so that a direction takes four products with
    matrices instead of hundreds with vectors. Pairs are kept divided by √(sᵀy), which makes the triangle's diagonal 1.
    They lie oldest first in a window of buffers twice as long, and move to the front when it reaches the end.
    """

    def __init__(self, like: Tensor, size: int = MEMORY) -> None:
        self.size = size
        self.metric: Preconditioner | None = None
        self._latest: tuple[Tensor, Tensor] | None = None  # a gradient g and M g
        self._pairs = [like.new_zeros(2 * size, len(like)) for _ in range(3)]  # s, y and M y, as rows
        self._products = [like.new_zeros(2 * size, 2 * size) for _ in range(2)]  # s y′ and y M y′
        self._first = self._last = 0

    def __len__(self) -> int:
        return self._last - self._first

    def state(self) -> dict[str, Tensor]:
        """Return the pairs, their products and where they lie; what the metric makes of them follows from it.

        Where they lie may matter to the last bit: matrix products depend on how their operands are aligned.
        """
        s, y, _, sy, _ = self._window()
        return {"s": s, "y": y, "sy": sy, "first": torch.tensor(self._first)}

    @classmethod
    def resume(cls, state: dict[str, Tensor]) -> _Memory:
        """Invert `state`; the metric must be set before anything is asked."""
        memory = cls(state["theta"])
        memory._first = int(state["first"])
        memory._last = memory._first + len(state["s"])
        s, y, _, sy, _ = memory._window()
        for window, name in ((s, "s"), (y, "y"), (sy, "sy")):
            window.copy_(state[name])
        return memory

    def clear(self) -> None:
        self._first = self._last = 0

    def _window(self) -> tuple[Tensor, ...]:
        now = slice(self._first, self._last)
        return *(buffer[now] for buffer in self._pairs), *(buffer[now, now] for buffer in self._products)

    def set_metric(self, metric: Preconditioner | None) -> None:
        self.metric, self._latest = metric, None
        _, y, my, _, ymy = self._window()
        if len(y):
            my.copy_(self._apply(y))
            torch.mm(y, my.T, out=ymy)

    def append(self, s: Tensor, before: Tensor, after: Tensor) -> None:
        """Remember a step with sᵀy > 0 and the gradients at its ends; the oldest goes when the memory is full."""
        applied = self._apply_to_gradient(before)
        self._remember(s, after - before, self._apply_to_gradient(after) - applied)

    def _remember(self, s: Tensor, y: Tensor, my: Tensor) -> None:
        if len(self) == self.size:
            self._first += 1
        if self._last == 2 * self.size:
            self._to_front()
        self._last += 1
        root = float(torch.dot(s, y)) ** 0.5
        window_s, window_y, window_my, sy, ymy = self._window()
        torch.div(s, root, out=window_s[-1])
        latest = torch.div(y, root, out=window_y[-1])
        torch.div(my, root, out=window_my[-1])
        torch.mv(window_s, latest, out=sy[:, -1])
        ymy[-1] = ymy[:, -1] = torch.mv(window_my, latest)

    def _to_front(self) -> None:
        now, n = slice(self._first, self._last), len(self)
        for pairs in self._pairs:
            pairs[:n] = pairs[now].clone()
        for products in self._products:
            products[:n, :n] = products[now, now].clone()
        self._first, self._last = 0, n

    def add_ridge(self, ridge: float) -> None:
        """Change the remembered curvature by ridge · I: y + ridge s in place of y. Pairs with a small sᵀy go."""
        s, y, *_ = self._window()
        pairs = list(zip(s.clone(), torch.add(y, s, alpha=ridge), strict=True))
        self.clear()
        for s, y in pairs:
            if float(torch.dot(s, y)) > 0.1:  # of 1
                self._remember(s, y, self._apply(y))

    def direction(self, gradient: Tensor) -> Tensor:
        """Compute −H g, H = γM + S R⁻ᵀ(I + γ YᵀMY)R⁻¹Sᵀ − γ(S R⁻ᵀYᵀM + MY R⁻¹Sᵀ), R the upper triangle of SᵀY."""
        applied = self._apply_to_gradient(gradient)
        if not len(self):
            return applied * -min(1.0, 1.0 / max(float(applied.abs().sum()), 1e-300))
        s, _, my, sy, ymy = self._window()
        gamma = float(1 / ymy[-1, -1])
        u = torch.linalg.solve_triangular(sy, torch.mv(s, gradient)[:, None], upper=True)  # R⁻¹ Sᵀ g
        v = torch.addmm(u, ymy, u, alpha=gamma).sub_(torch.mv(my, gradient)[:, None], alpha=gamma)
        v = torch.linalg.solve_triangular(sy.T, v, upper=False)
        out = applied * -gamma
        return out.addmv_(s.T, v[:, 0], alpha=-1.0).addmv_(my.T, u[:, 0], alpha=gamma)

    def _apply_to_gradient(self, gradient: Tensor) -> Tensor:
        """Return M g, kept for the latest gradient: a step asks for it at its end, and the next at its start."""
        if self._latest is None or self._latest[0] is not gradient:
            self._latest = gradient, self._apply(gradient)
        return self._latest[1]

    def _apply(self, vectors: Tensor) -> Tensor:
        return vectors.clone() if self.metric is None else self.metric(vectors)
