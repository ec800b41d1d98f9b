"""The hand-written kernel against the module it stands for, finite differences and explicit Gauss–Newton matrices."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

from pyloca.networks import (
    ACTIVATIONS,
    MLP,
    MLPKernel,
    ModuleKernel,
    Standardized,
    _kernel,
    make_kernel,
    pushforward,
)
from pyloca.networks._kernel import initialize

N_IN, N_OUT, N = 3, 2, 5
SHAPES = [(), (6,), (7, 4), (5, 4, 3)]


def make_mlp(activation="tanh", hidden=(7, 4), *, skip=True, linear_tail=False, seed=0):
    torch.manual_seed(seed)
    return MLP(N_IN, hidden, N_OUT, activation, skip=skip, linear_tail=linear_tail).double()


def make_stack(k=2, n=N, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(1 + k, n, N_IN, generator=generator, dtype=torch.float64)


def random_like(tensor, seed=2):
    return torch.randn(tensor.shape, generator=torch.Generator().manual_seed(seed), dtype=tensor.dtype)


def scalar(kernel, stack, cotangent, theta):
    """Σ cotangent · output at θ, with θ put back."""
    before = kernel.theta.clone()
    kernel.load(theta)
    value = float((kernel.forward(stack) * cotangent).sum())
    kernel.load(before)
    return value


def finite_differences(kernel, stack, cotangent, step=1e-6):
    theta = kernel.theta.clone()
    out = torch.empty_like(theta)
    for i in range(len(theta)):
        e = torch.zeros_like(theta)
        e[i] = step
        up, down = scalar(kernel, stack, cotangent, theta + e), scalar(kernel, stack, cotangent, theta - e)
        out[i] = (up - down) / (2 * step)
    return out


def module_order(kernel, flat):
    """A flat vector in the kernel's order → in the order of module.parameters()."""
    module = kernel.module
    parts = []
    for rows, (n_in, _) in zip(kernel._views(flat), kernel._sizes, strict=True):
        parts += [rows[:, :n_in].reshape(-1), rows[:, n_in]]
    if module.skip is not None:
        parts.append(rows[:, n_in + 1 :].reshape(-1))
    out = torch.cat(parts)
    assert out.numel() == sum(p.numel() for p in module.parameters())
    return out


# -- the module -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("linear_tail", [False, True])
def test_an_mlp_is_its_formula(skip, linear_tail):
    module = make_mlp("tanh", (4, 3), skip=skip, linear_tail=linear_tail)
    x = make_stack()[0]
    first, second, last = module.layers
    expected = last(torch.tanh(second(torch.tanh(first(x)))))
    if linear_tail:
        expected = expected @ module.tail.weight.T + module.tail.bias
    if skip:
        expected = expected + x @ module.skip.weight.T
    torch.testing.assert_close(module(x), expected)


def test_the_papers_encoder_has_two_linear_layers_at_the_end():
    """[50, 50, 2, 2] of the appendix: hidden layers (50, 50), then 2 and 2 without an activation."""
    sizes = [tuple(p.shape) for p in MLP(2, (50, 50), 2, linear_tail=True).parameters() if p.dim() == 2]
    assert sizes == [(50, 2), (50, 50), (2, 50), (2, 2)]


@pytest.mark.parametrize("hidden", [(0,), (5, -1), (2.5,), (True,)])
def test_layers_that_cannot_be(hidden):
    with pytest.raises(ValueError, match="hidden_layers must be integers of at least 1"):
        MLP(2, hidden, 2)


def test_an_unknown_activation():
    with pytest.raises(ValueError, match=r"activation must be one of elu, .*tanh; got 'relu6'"):
        MLP(2, (5,), 2, "relu6")


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_slope_and_bend_are_the_derivatives_of_the_activation(name):
    phi = ACTIVATIONS[name]
    u = torch.linspace(-3, 3, 40, dtype=torch.float64, requires_grad=True)  # an even number: 0 is not among them
    h = phi.value(u)
    (slope,) = torch.autograd.grad(h.sum(), u, create_graph=True)
    torch.testing.assert_close(phi.slope(h.detach()), slope.detach())
    bend = phi.bend(h.detach())
    if bend is None:
        assert torch.unique(slope.detach()).numel() == 2  # piecewise linear: nothing bends
    else:
        (second,) = torch.autograd.grad(slope.sum(), u)
        torch.testing.assert_close(bend * slope.detach(), second)


# -- push-forward -----------------------------------------------------------------------------------------------


def test_pushforward_is_value_and_jacobian():
    module = make_mlp("softplus")
    stack = make_stack(k=2)
    value, pushed = pushforward(module, stack[0], stack[1:].transpose(0, 1))
    jacobian = torch.func.vmap(torch.func.jacrev(module))(stack[0])  # (n, d, D)
    torch.testing.assert_close(value, module(stack[0]))
    torch.testing.assert_close(pushed, stack[1:].transpose(0, 1) @ jacobian.transpose(1, 2))


@pytest.mark.parametrize("k", [0, 1, 2, 3])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("hidden", SHAPES)
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_kernel_forward_is_the_module_and_its_jvp(name, hidden, skip, k):
    module = make_mlp(name, hidden, skip=skip)
    stack = make_stack(k)
    out = MLPKernel(module).forward(stack)
    assert out.shape == (1 + k, N, N_OUT)
    torch.testing.assert_close(out[0], module(stack[0]).detach())
    for axis in range(k):
        _, tangent = torch.func.jvp(module, (stack[0],), (stack[1 + axis],))
        torch.testing.assert_close(out[1 + axis], tangent.detach())


@pytest.mark.parametrize("hidden", SHAPES)
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_kernel_backward_is_the_gradient(name, hidden):
    """Finite differences in float64. Leaky ReLU has no kink within a step of these points: the difference shows."""
    kernel = MLPKernel(make_mlp(name, hidden))
    stack = make_stack()
    cotangent = random_like(kernel.forward(stack))
    grad = torch.zeros_like(kernel.theta)
    kernel.forward(stack)
    kernel.backward(cotangent, grad)
    torch.testing.assert_close(grad, finite_differences(kernel, stack, cotangent), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_both_kernels_agree(name, skip, k):
    module = make_mlp(name, skip=skip)
    ours, general = MLPKernel(module), ModuleKernel(module)
    stack = make_stack(k)
    out = ours.forward(stack).clone()
    torch.testing.assert_close(general.forward(stack), out)
    cotangent = random_like(out)
    kept = cotangent.clone()
    grad, twin = torch.zeros_like(ours.theta), torch.zeros_like(general.theta)
    ours.backward(cotangent, grad)
    general.backward(cotangent, twin)
    torch.testing.assert_close(module_order(ours, grad), twin)
    torch.testing.assert_close(cotangent, kept)  # the caller's cotangent is not eaten


def test_module_kernel_gradient_against_finite_differences():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(N_IN, 4), nn.SiLU(), nn.Linear(4, N_OUT)).double()
    kernel = ModuleKernel(module)
    stack = make_stack()
    cotangent = random_like(kernel.forward(stack))
    grad = torch.zeros_like(kernel.theta)
    kernel.backward(cotangent, grad)
    torch.testing.assert_close(grad, finite_differences(kernel, stack, cotangent), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", [MLPKernel, ModuleKernel])
def test_backward_adds(kind):
    kernel = kind(make_mlp())
    stack = make_stack()
    cotangent = random_like(kernel.forward(stack))
    once, twice = torch.zeros_like(kernel.theta), torch.full_like(kernel.theta, 3.0)
    kernel.backward(cotangent, once)
    kernel.forward(stack)
    kernel.backward(cotangent, twice)
    torch.testing.assert_close(twice, once + 3.0)


def test_stacks_of_changing_size():
    """Buffers are kept between calls; a smaller, larger or strided stack must not see what lay in them."""
    module = make_mlp()
    kernel = MLPKernel(module)
    for n, k in [(5, 2), (3, 2), (8, 2), (8, 0), (5, 1)]:
        stack = make_stack(k, n, seed=n)
        for given in (stack, stack.transpose(0, 1).contiguous().transpose(0, 1)):
            torch.testing.assert_close(kernel.forward(given), ModuleKernel(module).forward(stack))
            grad, twin = torch.zeros_like(kernel.theta), torch.zeros_like(kernel.theta)
            cotangent = torch.ones(1 + k, n, N_OUT, dtype=torch.float64)
            kernel.backward(cotangent, grad)
            other = ModuleKernel(module)
            other.forward(stack)
            other.backward(cotangent, twin)
            torch.testing.assert_close(module_order(kernel, grad), twin)


@pytest.mark.parametrize("kind", [MLPKernel, ModuleKernel])
@pytest.mark.parametrize("skip", [False, True])
def test_load_writes_the_module(kind, skip):
    module = make_mlp(skip=skip)
    kernel = kind(module)
    stack = make_stack()
    target = make_mlp(skip=skip, seed=9)
    theta = kind(target).theta.clone()
    kernel.load(theta)
    torch.testing.assert_close(kernel.theta, theta)
    torch.testing.assert_close(parameters_to_vector(module.parameters()), parameters_to_vector(target.parameters()))
    torch.testing.assert_close(module(stack[0]), target(stack[0]))
    torch.testing.assert_close(kernel.forward(stack)[0], target(stack[0]).detach())
    theta.zero_()  # the caller's vector is copied, not kept
    torch.testing.assert_close(kernel.forward(stack)[0], target(stack[0]).detach())


def test_theta_of_our_own_kernel_is_not_the_modules_memory():
    module = make_mlp()
    before = parameters_to_vector(module.parameters()).detach().clone()
    MLPKernel(module).theta.zero_()
    torch.testing.assert_close(parameters_to_vector(module.parameters()).detach(), before)


def test_a_module_follows_its_kernels_theta():
    module = make_mlp()
    ModuleKernel(module).theta.zero_()
    assert not parameters_to_vector(module.parameters()).detach().any()


def test_frozen_parameters_stay():
    module = nn.Sequential(nn.Linear(N_IN, 4), nn.Tanh(), nn.Linear(4, N_OUT)).double()
    module[0].requires_grad_(False)
    kernel = ModuleKernel(module)
    assert len(kernel.theta) == 4 * N_OUT + N_OUT
    with pytest.raises(ValueError, match="no parameters to train"):
        ModuleKernel(module.requires_grad_(False))


def test_a_parameter_that_is_not_used_has_no_gradient():
    class Idle(nn.Module):
        def __init__(self):
            super().__init__()
            self.idle, self.used = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(1))

        def forward(self, x):
            return self.used * x

    kernel = ModuleKernel(Idle().double())
    out = kernel.forward(make_stack())
    grad = torch.zeros_like(kernel.theta)
    kernel.backward(torch.ones_like(out), grad)
    torch.testing.assert_close(grad[:3], torch.zeros(3, dtype=torch.float64))
    torch.testing.assert_close(grad[3], make_stack().sum())


def test_make_kernel_takes_the_fast_one_where_it_can():
    assert isinstance(make_kernel(make_mlp()), MLPKernel)
    assert isinstance(make_kernel(make_mlp(linear_tail=True)), ModuleKernel)
    assert isinstance(make_kernel(nn.Linear(2, 2)), ModuleKernel)


# -- preconditioner ---------------------------------------------------------------------------------------------


def residual_rows(out):
    """Two residuals a burst that mix points and tangents: cotangents (2, 1 + k, n, d), constant in θ."""
    generator = torch.Generator().manual_seed(7)
    return torch.randn(2, *out.shape, generator=generator, dtype=out.dtype)


def explicit_jacobian(kernel, stack):
    """∂(residual r of burst n)/∂θ, shape (R · n, P), one backward pass for each row."""
    out = kernel.forward(stack)
    rows = residual_rows(out)
    jacobian = []
    for r in range(len(rows)):
        for burst in range(stack.shape[1]):
            cotangent = torch.zeros_like(out)
            cotangent[:, burst] = rows[r, :, burst]
            kernel.forward(stack)
            grad = torch.zeros_like(kernel.theta)
            kernel.backward(cotangent, grad)
            jacobian.append(grad)
    return torch.stack(jacobian)


def neuron_blocks(kernel):
    """Positions in θ of the weights that enter each neuron, layer by layer; a skip enters the last layer's."""
    positions = torch.arange(len(kernel.theta)).double()
    return [layer.long() for layer in kernel._views(positions)]  # (neurons, m) each


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("hidden", SHAPES)
@pytest.mark.parametrize("name", ["tanh", "leaky_relu", "elu"])
@pytest.mark.parametrize("work", [1, 1 << 23])
def test_preconditioner_is_the_inverse_of_explicit_gauss_newton_blocks(name, hidden, skip, work, monkeypatch):
    monkeypatch.setattr(_kernel, "BLOCK_WORK", work)
    kernel = MLPKernel(make_mlp(name, hidden, skip=skip))
    stack, ridge = make_stack(n=20), 0.3
    jacobian = explicit_jacobian(kernel, stack)
    gradient = random_like(kernel.theta)
    expected = torch.empty_like(gradient)
    for layer in neuron_blocks(kernel):
        grams = [2 / 20 * jacobian[:, index].T @ jacobian[:, index] for index in layer]
        damping = 1e-3 * torch.stack([gram.diagonal() for gram in grams]).mean() + ridge
        for index, gram in zip(layer, grams, strict=True):
            expected[index] = torch.linalg.solve(
                gram + damping * torch.eye(len(index), dtype=torch.float64), gradient[index]
            )
    apply = kernel.preconditioner(stack, residual_rows, ridge)
    torch.testing.assert_close(apply(gradient), expected, rtol=1e-4, atol=1e-5)  # single precision


def test_large_blocks_are_replaced_by_their_diagonals(monkeypatch):
    monkeypatch.setattr(_kernel, "MAX_BLOCK", 5)  # of the blocks of sizes 4, 8 and 5 + 3 only the first is small
    kernel = MLPKernel(make_mlp(hidden=(7, 4)))
    stack, ridge = make_stack(n=20), 0.3
    jacobian = explicit_jacobian(kernel, stack)
    gradient = random_like(kernel.theta)
    expected = torch.empty_like(gradient)
    for layer in neuron_blocks(kernel):
        grams = [2 / 20 * jacobian[:, index].T @ jacobian[:, index] for index in layer]
        damping = 1e-3 * torch.stack([gram.diagonal() for gram in grams]).mean() + ridge
        for index, gram in zip(layer, grams, strict=True):
            gram = gram if len(index) <= 5 else torch.diag(gram.diagonal())
            expected[index] = torch.linalg.solve(
                gram + damping * torch.eye(len(index), dtype=torch.float64), gradient[index]
            )
    apply = kernel.preconditioner(stack, residual_rows, ridge)
    torch.testing.assert_close(apply(gradient), expected, rtol=1e-4, atol=1e-5)  # single precision


# -- start and scaling ------------------------------------------------------------------------------------------


def test_initial_weights_come_from_the_generator_alone():
    first, second, other = (make_mlp(hidden=(50, 40), seed=i) for i in range(3))
    for module, seed in ((first, 5), (second, 5), (other, 6)):
        initialize(module, torch.Generator().manual_seed(seed))
    vectors = [parameters_to_vector(module.parameters()).detach() for module in (first, second, other)]
    assert torch.equal(vectors[0], vectors[1])
    assert not torch.equal(vectors[0], vectors[2])
    assert torch.all(first.skip.weight == 0)
    assert torch.all(first.layers[-1].bias == 0)
    assert float(first.layers[1].weight.detach().std()) == pytest.approx(1 / np.sqrt(50), rel=0.1)
    assert float(first.layers[2].weight.detach().std()) == pytest.approx(0.1 / np.sqrt(40), rel=0.2)


def test_standardized_is_its_formula():
    network = make_mlp()
    shift_in, shift_out = np.array([1.0, -2.0, 3.0]), np.array([10.0, 20.0])
    module = Standardized(network, shift_in, 4.0, shift_out, 0.5)
    y = make_stack()[0]
    expected = torch.tensor(shift_out) + 0.5 * network((y - torch.tensor(shift_in)) / 4.0)
    torch.testing.assert_close(module(y), expected)
    assert {"in_shift", "in_scale", "out_shift", "out_scale"} <= set(module.state_dict())
    assert {name.split(".")[0] for name, _ in module.named_parameters()} == {"network"}


def test_the_skip_can_be_spared_from_the_decay():
    kernel = MLPKernel(make_mlp())
    assert kernel.penalty is None
    kernel.spare_skip()
    n_skip = N_IN * N_OUT
    flat = module_order(kernel, kernel.penalty)
    np.testing.assert_array_equal(flat, [1.0] * (len(flat) - n_skip) + [0.0] * n_skip)
    kernel = MLPKernel(make_mlp(skip=False))
    kernel.spare_skip()
    assert kernel.penalty is None


def test_dead_hidden_layers_are_drawn_anew():
    module = make_mlp()
    kernel = MLPKernel(module)
    assert not kernel.is_dead(kernel.theta)
    with torch.no_grad():
        for layer in module.linear_layers():
            layer.weight *= 1e-3
    kernel, skip = MLPKernel(module), module.skip.weight.clone()
    dead = kernel.theta.clone()
    assert kernel.is_dead(dead)
    woken = kernel.woken(dead, torch.Generator().manual_seed(0))
    assert torch.equal(dead, kernel.theta)  # not changed in place
    assert torch.equal(woken, kernel.woken(dead, torch.Generator().manual_seed(0)))
    kernel.load(woken)
    assert not kernel.is_dead(woken)
    assert torch.equal(module.skip.weight, skip)


def test_a_network_without_hidden_layers_or_skip_cannot_die():
    for kernel in (MLPKernel(make_mlp(hidden=())), MLPKernel(make_mlp(skip=False))):
        assert not kernel.is_dead(torch.zeros_like(kernel.theta))
