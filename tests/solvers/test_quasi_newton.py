"""L-BFGS with a preconditioner."""

import numpy as np
import pytest
import scipy.optimize
import torch

from pyloca.errors import ConvergenceError
from pyloca.solvers import LBFGS, minimize
from pyloca.solvers._quasi_newton import _Memory


def quadratic(condition=1e4, dim=40, seed=0):
    """½ xᵀ A x − bᵀ x with eigenvalues of A from 1 to `condition`; the function, A and the minimum."""
    random = np.random.RandomState(seed)
    basis = np.linalg.qr(random.standard_normal((dim, dim)))[0]
    A = torch.tensor(basis * np.geomspace(1, condition, dim) @ basis.T)
    b = torch.tensor(random.standard_normal(dim))

    def function(x):
        return float(0.5 * x @ A @ x - b @ x), A @ x - b

    return function, A, torch.linalg.solve(A, b)


def rosenbrock(x):
    with torch.enable_grad():
        y = x.clone().requires_grad_()
        value = (100 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2).sum()
        return value.item(), torch.autograd.grad(value, y)[0]


def minimise(function, start, *, preconditioner=None, steps=500, tol=1e-9):
    optimizer = LBFGS(function, start)
    optimizer.preconditioner = preconditioner
    for _ in range(steps):
        if not optimizer.step() or optimizer.gradient.norm() < tol:
            break
    return optimizer


def scipy_minimum(function, start):
    def flat(x):
        value, gradient = function(torch.tensor(x))
        return value, gradient.numpy()

    options = {"maxiter": 5000, "maxfun": 5000, "ftol": 1e-15, "gtol": 1e-10}
    return scipy.optimize.minimize(flat, start.numpy(), jac=True, method="L-BFGS-B", options=options)


def test_a_quadratic_as_scipy_does_it():
    function, _, minimum = quadratic()
    start = torch.zeros(40, dtype=torch.float64)
    ours, theirs = minimise(function, start), scipy_minimum(function, start)
    np.testing.assert_allclose(ours.theta, minimum, atol=1e-5)
    np.testing.assert_allclose(ours.theta, theirs.x, atol=1e-5)
    assert ours.value <= theirs.fun + 1e-12
    assert ours.n_evaluations < 3 * theirs.nfev


@pytest.mark.parametrize("dim", [2, 5, 20])
def test_rosenbrock_as_scipy_does_it(dim):
    start = torch.full((dim,), 0.5, dtype=torch.float64)
    start[0] = -1.2 if dim == 2 else 0.5
    ours, theirs = minimise(rosenbrock, start), scipy_minimum(rosenbrock, start)
    np.testing.assert_allclose(ours.theta, np.ones(dim), atol=1e-8)
    np.testing.assert_allclose(ours.theta, theirs.x, atol=1e-4)
    assert ours.n_evaluations < 3 * theirs.nfev


def test_every_step_satisfies_the_wolfe_conditions():
    optimizer = LBFGS(rosenbrock, torch.tensor([-1.2, 1.0], dtype=torch.float64))
    for _ in range(20):
        theta, value, gradient = optimizer.theta, optimizer.value, optimizer.gradient
        assert optimizer.step()
        move = optimizer.theta - theta
        assert optimizer.value <= value + 1e-4 * float(gradient @ move) + 1e-15
        assert float(optimizer.gradient @ move) >= 0.9 * float(gradient @ move)


@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
def test_a_preconditioner_needs_the_right_shape_only(size):
    """The same minimum in far fewer evaluations, however wrong the preconditioner's size."""
    function, A, minimum = quadratic()
    inverse = size * torch.linalg.inv(A + 0.1 * torch.eye(40))
    start = torch.ones(40, dtype=torch.float64)
    plain = minimise(function, start, tol=1e-6)
    helped = minimise(function, start, preconditioner=lambda q: inverse @ q, tol=1e-6)
    np.testing.assert_allclose(helped.theta, minimum, atol=1e-6)
    np.testing.assert_allclose(plain.theta, minimum, atol=1e-6)
    assert helped.n_evaluations < 0.3 * plain.n_evaluations


def test_a_preconditioner_may_change_on_the_way():
    function, A, minimum = quadratic(1e6)
    optimizer = LBFGS(function, torch.ones(40, dtype=torch.float64))
    for i in range(60):
        inverse = torch.linalg.inv(A + 10.0 ** (3 - i % 4) * torch.eye(40))
        optimizer.preconditioner = lambda q, inverse=inverse: q @ inverse
        if optimizer.gradient.norm() < 1e-8 or not optimizer.step():
            break
    np.testing.assert_allclose(optimizer.theta, minimum, atol=1e-5)


@pytest.mark.parametrize("beyond", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_only_shortens_the_step(beyond):
    """50 x² − log x, which is nothing at x ≤ 0, where the first step leads."""
    trials = []

    def function(x):
        trials.append(float(x))
        if float(x) <= 0:
            return beyond, torch.full_like(x, beyond)
        return float(50 * x**2 - x.log()), 100 * x - 1 / x

    optimizer = minimise(function, torch.tensor([0.5], dtype=torch.float64))
    assert min(trials) < 0
    assert float(optimizer.theta) == pytest.approx(0.1, abs=1e-8)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_start_that_is_not_finite_is_refused(value):
    with pytest.raises(ConvergenceError, match=f"the loss is {value} at the start of training"):
        LBFGS(lambda x: (value, x), torch.ones(2, dtype=torch.float64))


def test_at_the_minimum_there_is_no_step():
    function, _, _ = quadratic(10)
    optimizer = minimise(function, torch.zeros(40, dtype=torch.float64), tol=0)
    before = optimizer.theta.clone()
    assert not optimizer.step()
    assert torch.equal(optimizer.theta, before)
    flat = LBFGS(lambda x: (1.0, torch.zeros_like(x)), torch.ones(3, dtype=torch.float64))
    assert not flat.step()


@pytest.mark.parametrize("ridge", [3.0, -0.5, -0.999])
def test_a_ridge_changes_the_memory_and_is_forgotten_nowhere(ridge):
    """On a quadratic, y = A s exactly, so the memory must be that of A + ridge · I; pairs that turn negative go."""
    function, A, _ = quadratic(100)
    optimizer = LBFGS(function, torch.ones(40, dtype=torch.float64))
    for _ in range(12):
        optimizer.step()
    changed = A + ridge * torch.eye(40, dtype=torch.float64)

    def with_ridge(x):
        value, gradient = function(x)
        return value + 0.5 * ridge * float(x @ x), gradient + ridge * x

    other = optimizer.follow(with_ridge, optimizer.theta, ridge)
    memory, naive = other._memory, _Memory(other.theta)
    assert len(memory) > 6
    for s, y in zip(*memory._window()[:2], strict=True):
        torch.testing.assert_close(y, changed @ s)
        assert float(s @ y) == pytest.approx(1)
        naive.append(s.clone(), torch.zeros_like(y), y.clone())
    torch.testing.assert_close(memory.direction(other.gradient), naive.direction(other.gradient))
    fresh = LBFGS(with_ridge, optimizer.theta)
    for _ in range(10):
        assert other.step() and fresh.step()
    assert other.value < fresh.value


def test_pairs_that_a_ridge_makes_negative_are_dropped():
    function, _, _ = quadratic(100)
    optimizer = LBFGS(function, torch.ones(40, dtype=torch.float64))
    for _ in range(12):
        optimizer.step()
    optimizer._memory.add_ridge(-1000.0)
    assert len(optimizer._memory) == 0


def test_the_start_is_left_alone():
    function, _, _ = quadratic(10)
    start = torch.zeros(40, dtype=torch.float64)
    optimizer = LBFGS(function, start)
    for _ in range(5):
        optimizer.step()
    assert torch.equal(start, torch.zeros(40, dtype=torch.float64))


@pytest.mark.parametrize("preconditioned", [False, True])
def test_directions_are_those_of_the_two_loop_recursion(preconditioned):
    """The textbook's recursion with vectors, on the pairs that the memory still holds."""
    function, A, _ = quadratic(11)
    metric = torch.diag(1 / A.diagonal())
    apply = (lambda q: metric @ q) if preconditioned else torch.clone
    optimizer = LBFGS(function, torch.ones(40, dtype=torch.float64))
    optimizer.preconditioner = apply if preconditioned else None
    size = 7  # fewer than the steps, so that the oldest are dropped
    optimizer._memory = _Memory(optimizer.theta, size)
    optimizer.preconditioner = apply if preconditioned else None
    pairs, theta, gradient = [], optimizer.theta, optimizer.gradient
    for _ in range(12):
        q, alphas = optimizer.gradient.clone(), []
        for s, y in reversed(pairs[-size:]):
            alphas.append(torch.dot(s, q) / torch.dot(s, y))
            q = q - alphas[-1] * y
        q = apply(q)
        if pairs:
            s, y = pairs[-1]
            q = q * torch.dot(s, y) / torch.dot(y, apply(y))
            for (s, y), alpha in zip(pairs[-size:], reversed(alphas), strict=True):
                q = q + (alpha - torch.dot(y, q) / torch.dot(s, y)) * s
            torch.testing.assert_close(optimizer._memory.direction(optimizer.gradient), -q, rtol=1e-7, atol=1e-10)
        assert optimizer.step()
        pairs.append((optimizer.theta - theta, optimizer.gradient - gradient))
        theta, gradient = optimizer.theta, optimizer.gradient


# -- minimize ---------------------------------------------------------------------------------------------------


def test_minimize_finds_the_minimum_and_leaves_the_start_alone():
    function, A, minimum = quadratic()
    start = torch.ones(40, dtype=torch.float64)
    found = minimize(function, start, max_iter=500, tol=0)
    np.testing.assert_allclose(found.theta, minimum, atol=1e-5)
    assert found.value == function(found.theta)[0]
    assert torch.equal(start, torch.ones(40, dtype=torch.float64))
    inverse = torch.linalg.inv(A)
    helped = minimize(function, start, max_iter=500, tol=0, preconditioner=lambda q: inverse @ q)
    np.testing.assert_allclose(helped.theta, minimum, atol=1e-5)
    assert helped.n_iter < 0.3 * found.n_iter


@pytest.mark.parametrize("max_iter", [0, 1, 7, 20])
def test_minimize_takes_max_iter_steps_and_looks_at_every_fifth(max_iter):
    start = torch.full((20,), 0.5, dtype=torch.float64)
    found = minimize(rosenbrock, start, max_iter=max_iter, tol=0, check_every=5)
    optimizer = LBFGS(rosenbrock, start)
    values = [optimizer.value]
    for _ in range(max_iter):
        optimizer.step()
        values.append(optimizer.value)
    assert found.n_iter == max_iter
    assert torch.equal(found.theta, optimizer.theta)
    assert found.history == values[::5]


@pytest.mark.parametrize("level", [0.0, -1e6, 1e6])
def test_minimize_ends_when_the_gain_is_a_small_part_of_the_value(level):
    """Also of a negative value; without a value to compare with it goes on until there is no step."""

    def function(x):
        value, gradient = rosenbrock(x)
        return value + level, gradient

    start = torch.full((20,), 0.5, dtype=torch.float64)
    found = minimize(function, start, max_iter=1000, tol=1e-3, check_every=5)
    if level == 0:
        np.testing.assert_allclose(found.theta, 1, atol=1e-3)
    else:
        assert found.n_iter == 5
