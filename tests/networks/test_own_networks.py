"""Modules of the user's own: their preconditioner against explicit Gauss–Newton matrices, and how well they train."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from helpers import planar_bursts, short_fit, tiny_loca
from pyloca import LOCA, datasets
from pyloca.metrics import stress
from pyloca.networks import MLP, MLPKernel, ModuleKernel, WithSkip, _kernel, start_like_ours, weights_without_blocks
from pyloca.networks._start import is_untouched

N_IN, N_OUT, N = 3, 2, 20
RIDGE = 0.3


def make_stack(k=2, n_in=N_IN, n=N):
    return torch.randn(1 + k, n, n_in, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def residual_rows(out):
    """Two residuals per burst that mix points and tangents: cotangents (2, 1 + k, n, d), constant in θ."""
    return torch.randn(2, *out.shape, generator=torch.Generator().manual_seed(7), dtype=out.dtype)


def random_like(tensor):
    return torch.randn(tensor.shape, generator=torch.Generator().manual_seed(2), dtype=tensor.dtype)


def explicit_jacobian(kernel, stack):
    """∂(residual r of burst n)/∂θ, shape (R · n, P), one backward pass per row."""
    rows = residual_rows(kernel.forward(stack))
    jacobian = []
    for row in rows:
        for burst in range(stack.shape[1]):
            cotangent = torch.zeros_like(row)
            cotangent[:, burst] = row[:, burst]
            kernel.forward(stack)
            grad = torch.zeros_like(kernel.theta)
            kernel.backward(cotangent, grad)
            jacobian.append(grad)
    return torch.stack(jacobian)


def places(kernel, *parameters):
    """Where the rows of some parameters lie in θ, side by side: (neurons, m)."""
    found = []
    for parameter in parameters:
        start = 0
        for p in kernel.module.parameters():
            if p is parameter:
                break
            start += p.numel() if p.requires_grad else 0
        found.append(torch.arange(start, start + parameter.numel()).view(len(parameter), -1))
    return torch.cat(found, dim=1)


def solve(jacobian, gradient, index):
    """(2/n JᵀJ + damping)⁻¹ of the gradient, neuron by neuron, in double precision."""
    grams = [2 / N * jacobian[:, row].T @ jacobian[:, row] for row in index]
    damping = 1e-3 * torch.stack([gram.diagonal() for gram in grams]).mean() + RIDGE
    eye = torch.eye(index.shape[1], dtype=torch.float64)
    return torch.stack(
        [torch.linalg.solve(gram + damping * eye, gradient[row]) for gram, row in zip(grams, index, strict=True)]
    )


def check_blocks(module, groups, stack=None):
    """The preconditioner on each group of parameters is the inverse of the group's explicit blocks."""
    torch.manual_seed(0)
    for p in module.parameters():
        nn.init.normal_(p, std=0.6)
    kernel = ModuleKernel(module.double())
    stack = make_stack() if stack is None else stack
    jacobian, gradient = explicit_jacobian(kernel, stack), random_like(kernel.theta)
    found = kernel.preconditioner(stack, residual_rows, RIDGE)(gradient)
    for group in groups:
        index = places(kernel, *group)
        torch.testing.assert_close(
            found[index], solve(jacobian, gradient, index), rtol=1e-4, atol=5e-5
        )  # single precision


def pairs(*layers):
    return [(layer.weight, layer.bias) for layer in layers]


# -- blocks -----------------------------------------------------------------------------------------------------


class Copy(nn.Module):
    """Our MLP as a user would write it."""

    def __init__(self, mlp):
        super().__init__()
        self.layers, self.skip = mlp.layers, mlp.skip

    def forward(self, x):
        h = x
        for layer in self.layers[:-1]:
            h = torch.tanh(layer(h))
        h = self.layers[-1](h)
        return h if self.skip is None else h + self.skip(x)


@pytest.mark.parametrize("k", [0, 1, 2, 3])
@pytest.mark.parametrize("skip", [False, True])
def test_blocks_are_those_of_our_own_kernel(skip, k):
    torch.manual_seed(0)
    mlp = MLP(N_IN, (7, 4), N_OUT, skip=skip).double()
    ours, general = MLPKernel(mlp), ModuleKernel(Copy(mlp))
    stack, gradient = make_stack(k), random_like(ours.theta)

    def module_order(flat):
        parts = []
        for rows, (n_in, _) in zip(ours._views(flat), ours._sizes, strict=True):
            parts += [rows[:, :n_in].reshape(-1), rows[:, n_in]]
        return torch.cat([*parts, rows[:, n_in + 1 :].reshape(-1)] if skip else parts)

    expected = ours.preconditioner(stack, residual_rows, RIDGE)(gradient)
    found = general.preconditioner(stack, residual_rows, RIDGE)(module_order(gradient))
    torch.testing.assert_close(found, module_order(expected), rtol=1e-5, atol=1e-5)  # single precision


@pytest.mark.parametrize("activation", [nn.Tanh, nn.GELU, nn.Softplus, nn.SiLU])
@pytest.mark.parametrize("work", [1, 1 << 23])
def test_blocks_are_inverses_of_explicit_ones(activation, work, monkeypatch):
    monkeypatch.setattr(_kernel, "BLOCK_WORK", work)  # 1: burst by burst
    module = nn.Sequential(nn.Linear(N_IN, 6), activation(), nn.Linear(6, 5), activation(), nn.Linear(5, N_OUT))
    check_blocks(module, pairs(module[0], module[2], module[4]))


def test_large_blocks_are_replaced_by_their_diagonals(monkeypatch):
    monkeypatch.setattr(_kernel, "MAX_BLOCK", 5)
    module = nn.Sequential(nn.Linear(N_IN, 6), nn.Tanh(), nn.Linear(6, N_OUT)).double()
    kernel, stack = ModuleKernel(module), make_stack()
    jacobian, gradient = explicit_jacobian(kernel, stack), random_like(kernel.theta)
    found = kernel.preconditioner(stack, residual_rows, RIDGE)(gradient)
    small, large = (places(kernel, *pair) for pair in pairs(module[0], module[2]))
    torch.testing.assert_close(found[small], solve(jacobian, gradient, small), rtol=1e-4, atol=1e-5)
    diagonal = 2 / N * jacobian[:, large].square().sum(dim=0)
    torch.testing.assert_close(
        found[large], gradient[large] / (diagonal + 1e-3 * diagonal.mean() + RIDGE), rtol=1e-4, atol=1e-5
    )


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.inner, self.leave = nn.Linear(N_IN, 5), nn.Linear(5, 5, bias=False), nn.Linear(5, N_OUT)

    def forward(self, x):
        h = self.enter(x)
        return self.leave(input=h + torch.tanh(self.inner(h)))  # by keyword, as some write it


def test_a_residual_network_and_a_layer_without_bias():
    module = Residual()
    check_blocks(module, [*pairs(module.enter, module.leave), (module.inner.weight,)])


class Twice(nn.Module):
    """One layer called twice, and its weight used by another layer as well."""

    def __init__(self):
        super().__init__()
        self.first, self.tied, self.last = nn.Linear(N_IN, N_IN), nn.Linear(N_IN, N_IN), nn.Linear(N_IN, N_OUT)
        self.tied.weight = self.first.weight

    def forward(self, x):
        h = torch.tanh(self.first(torch.tanh(self.first(x))))
        return self.last(torch.tanh(self.tied(h)))


def test_a_layer_that_is_called_again_counts_with_all_its_calls():
    module = Twice()
    check_blocks(module, pairs(module.first, module.last))


class Tokens(nn.Module):
    """Every feature is a token, so that layers see (n, T, ·)."""

    def __init__(self):
        super().__init__()
        self.embed, self.mix, self.last = nn.Linear(1, 4), nn.Linear(4, 4), nn.Linear(4 * N_IN, N_OUT)

    def forward(self, x):
        tokens = torch.tanh(self.mix(torch.tanh(self.embed(x[:, :, None]))))
        return self.last(tokens.flatten(1))


@pytest.mark.parametrize("work", [1, 1 << 23])
def test_layers_on_tokens(work, monkeypatch):
    monkeypatch.setattr(_kernel, "BLOCK_WORK", work)
    module = Tokens()
    check_blocks(module, pairs(module.embed, module.mix, module.last))


@pytest.mark.parametrize(
    "options", [{}, {"padding": 1}, {"padding": "same", "dilation": 2}, {"padding": "valid", "stride": 2}]
)
def test_convolutions_in_one_dimension(options):
    conv = nn.Conv1d(1, 3, 4, **options)
    module = nn.Sequential(nn.Unflatten(1, (1, 10)), conv, nn.Tanh(), nn.Flatten(), nn.LazyLinear(N_OUT)).double()
    stack = make_stack(n_in=10)
    module(stack[0])
    check_blocks(module, pairs(conv, module[4]), stack)


@pytest.mark.parametrize("options", [{}, {"padding": (1, 0), "bias": False}, {"padding": "same"}, {"stride": (2, 1)}])
def test_convolutions_in_two_dimensions(options):
    conv = nn.Conv2d(2, 3, (3, 5), **options)
    module = nn.Sequential(nn.Unflatten(1, (2, 5, 6)), conv, nn.Tanh(), nn.Flatten(), nn.LazyLinear(N_OUT)).double()
    stack = make_stack(n_in=60)
    module(stack[0])
    check_blocks(module, [(conv.weight,) if conv.bias is None else (conv.weight, conv.bias)], stack)


def test_layers_whose_outputs_are_added_share_their_blocks():
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.hidden, self.last, self.skip = nn.Linear(N_IN, 4), nn.Linear(4, N_OUT), nn.Linear(N_IN, N_OUT)

        def forward(self, x):
            return self.skip(x) + self.last(torch.tanh(self.hidden(x)))

    module = Sum()
    check_blocks(module, [*pairs(module.hidden), (*pairs(module.skip)[0], *pairs(module.last)[0])])


# -- what has no neurons ----------------------------------------------------------------------------------------


class Bent(nn.Module):
    """A free matrix, a free vector and a normalisation beside a linear layer."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Linear(N_IN, 6), nn.LayerNorm(6)
        self.matrix, self.idle = nn.Parameter(torch.zeros(N_OUT, 6)), nn.Parameter(torch.ones(2))

    def forward(self, x):
        return torch.tanh(self.norm(self.first(x))) @ self.matrix.T


def test_other_parameters_have_a_diagonal(monkeypatch):
    monkeypatch.setattr("pyloca.networks._module_kernel.DRAWS", 600)
    torch.manual_seed(0)
    module = Bent().double()
    nn.init.normal_(module.matrix)
    kernel, stack = ModuleKernel(module), make_stack()
    jacobian, gradient = explicit_jacobian(kernel, stack), random_like(kernel.theta)
    found = kernel.preconditioner(stack, residual_rows, RIDGE)(gradient)
    (block,) = (places(kernel, *pair) for pair in pairs(module.first))
    torch.testing.assert_close(found[block], solve(jacobian, gradient, block), rtol=1e-4, atol=1e-5)
    for parameter in (module.norm.weight, module.norm.bias, module.matrix, module.idle):
        index = places(kernel, parameter).flatten()
        diagonal = 2 / N * jacobian[:, index].square().sum(dim=0)
        expected = gradient[index] / (diagonal + 1e-3 * diagonal.mean() + RIDGE)
        torch.testing.assert_close(found[index], expected, rtol=0.3, atol=1e-5)  # random signs: 6 % each


def test_a_module_without_layers_has_a_diagonal():
    class Scale(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor([2.0, 3.0, 4.0]))

        def forward(self, x):
            return self.scale * x

    kernel = ModuleKernel(Scale().double())
    gradient = random_like(kernel.theta)
    found = kernel.preconditioner(make_stack(), residual_rows, RIDGE)(gradient)
    assert torch.all(found * gradient > 0)
    assert torch.all(found.abs() <= gradient.abs() / RIDGE)


@pytest.mark.parametrize("frozen", ["weight", "bias"])
def test_a_frozen_part_of_a_layer_is_left_out(frozen):
    module = nn.Sequential(nn.Linear(N_IN, 4), nn.Tanh(), nn.Linear(4, N_OUT)).double()
    getattr(module[0], frozen).requires_grad_(False)
    kernel, stack = ModuleKernel(module), make_stack()
    jacobian, gradient = explicit_jacobian(kernel, stack), random_like(kernel.theta)
    found = kernel.preconditioner(stack, residual_rows, RIDGE)(gradient)
    assert found.shape == kernel.theta.shape
    groups = [pairs(module[2])[0]] + ([(module[0].weight,)] if frozen == "bias" else [])
    for group in groups:
        index = places(kernel, *group)
        torch.testing.assert_close(found[index], solve(jacobian, gradient, index), rtol=1e-4, atol=1e-5)


def test_a_preconditioner_leaves_the_module_as_it_was():
    module = Residual().double()
    kernel, stack = ModuleKernel(module), make_stack()
    before, output = copy.deepcopy(module.state_dict()), module(stack[0])
    kernel.preconditioner(stack, residual_rows, RIDGE)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert torch.equal(module(stack[0]), output)
    assert not any(part._forward_hooks for part in module.modules())
    assert all(p.grad is None for p in module.parameters())


def test_the_same_kernel_gives_the_same_bits():
    results = []
    for _ in range(2):
        torch.manual_seed(0)
        kernel = ModuleKernel(Bent().double())
        results.append(kernel.preconditioner(make_stack(), residual_rows, RIDGE)(random_like(kernel.theta)))
    assert torch.equal(*results)


# -- warnings ---------------------------------------------------------------------------------------------------


def sequential(n_in=N_IN, n_out=N_OUT, width=20, activation=nn.Tanh, seed=0):
    torch.manual_seed(seed)
    parts = [nn.Linear(n_in, width), nn.LayerNorm(width), activation(), nn.Linear(width, width), activation()]
    return nn.Sequential(*parts, nn.Linear(width, n_out)).double()


def zeros(n_in=N_IN):
    return torch.zeros(2, n_in, dtype=torch.float64)


@pytest.mark.parametrize("module", [sequential(), Residual().double(), Tokens().double(), MLP(N_IN, (4,), N_OUT)])
def test_modules_of_linear_layers_and_vectors_are_covered(module):
    assert weights_without_blocks(module, zeros().to(next(module.parameters()).dtype)) == ""


def test_parts_without_blocks_are_named():
    class Mixed(nn.Module):
        def __init__(self):
            super().__init__()
            self.bend, self.linear = nn.Bilinear(N_IN, N_IN, 4), nn.Linear(4, N_OUT)
            self.group = nn.ModuleList(nn.Conv1d(2, 2, 1, groups=2) for _ in range(2))

        def forward(self, x):
            h = self.bend(x, x)[:, None].repeat(1, 2, 1)  # (n, 2, 4)
            return self.linear(self.group[1](self.group[0](h))[:, 0])

    # 36 + 2 · 2 of 36 + 4 + 2 · (2 + 2) + 8 + 2 weights
    assert weights_without_blocks(Mixed().double(), zeros()) == "1 × Bilinear, 2 × Conv1d (69% of the weights)"


def test_a_layer_that_is_never_called_as_a_module_is_named():
    class Functional(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(N_IN, 4), nn.Linear(4, N_OUT)

        def forward(self, x):
            return self.last(torch.tanh(nn.functional.linear(x, self.first.weight, self.first.bias)))

    assert weights_without_blocks(Functional().double(), zeros()) == "1 × Linear (46% of the weights)"


def test_a_parametrized_layer_is_named_and_trained_by_its_diagonal():
    linear = nn.utils.parametrizations.weight_norm(nn.Linear(N_IN, 4))
    module = nn.Sequential(linear, nn.Tanh(), nn.Linear(4, N_OUT)).double()
    assert weights_without_blocks(module, zeros()).startswith("1 × ParametrizationList")
    kernel = ModuleKernel(module)
    gradient = random_like(kernel.theta)
    found = kernel.preconditioner(make_stack(), residual_rows, RIDGE)(gradient)
    assert float(found @ gradient) > 0


@pytest.mark.parametrize("name", ["encoder", "decoder"])
def test_a_fit_warns_before_training(name):
    class Bilinear(nn.Module):
        def __init__(self):
            super().__init__()
            self.bend, self.linear = nn.Bilinear(2, 2, 2), nn.Linear(2, 2)

        def forward(self, x):
            return self.bend(x, x) + self.linear(x)

    bursts = np.random.RandomState(0).standard_normal((60, 2))[:, None] + 0.05 * np.random.RandomState(
        1
    ).standard_normal((60, 20, 2))
    model = LOCA(2, burst_std=0.05, random_state=0, max_iter=20, **{name: Bilinear()})
    with pytest.warns(
        UserWarning, match=rf"{name}: 1 × Bilinear \(40% of the weights\) can only be preconditioned"
    ) as caught:
        model.fit(bursts)
    assert sum("preconditioned" in str(warning.message) for warning in caught) == 1


# -- start ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_fresh_modules_are_recognised(seed):
    assert is_untouched(sequential(width=10 + seed, seed=seed))


def changed(change):
    module = sequential()
    with torch.no_grad():
        if change == "xavier":
            nn.init.xavier_normal_(module[3].weight)
        elif change == "bias":
            module[3].bias.zero_()
        elif change == "scale":
            module[3].weight.mul_(0.5)
        else:
            module[0].requires_grad_(False)
    return module


@pytest.mark.parametrize("change", ["xavier", "bias", "scale", "frozen"])
def test_weights_that_somebody_has_set_are_kept(change):
    module = changed(change)
    before = copy.deepcopy(module.state_dict())
    assert not start_like_ours(module, zeros(), torch.Generator().manual_seed(0))
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_a_trained_module_is_kept():
    module = sequential()
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3)
    x = make_stack()[0]
    for _ in range(20):
        optimizer.zero_grad()
        (module(x) - x[:, :N_OUT]).square().mean().backward()
        optimizer.step()
    assert not is_untouched(module)


@pytest.mark.parametrize("module", [nn.Linear(N_IN, N_OUT), nn.Conv1d(1, 40, 3), nn.Sequential()])
def test_too_few_weights_to_tell(module):
    assert not is_untouched(module)


def test_a_fresh_module_starts_as_ours_do():
    module = sequential(width=80)
    norm = copy.deepcopy(module[1].state_dict())
    assert start_like_ours(module, zeros(), torch.Generator().manual_seed(5))
    first, middle, last = (module[i].requires_grad_(False) for i in (0, 3, 5))
    assert float(first.bias.std()) == pytest.approx(1, rel=0.3)
    assert float(middle.bias.std()) == pytest.approx(1, rel=0.3)
    assert float(middle.weight.std()) == pytest.approx(80**-0.5, rel=0.1)
    assert float(last.weight.std()) == pytest.approx(0.1 * 80**-0.5, rel=0.3)
    assert not last.bias.any()
    assert all(torch.equal(value, norm[name]) for name, value in module[1].state_dict().items())
    again = sequential(width=80, seed=3)
    start_like_ours(again, zeros(), torch.Generator().manual_seed(5))  # the generator alone decides
    assert torch.equal(again[3].weight, middle.weight)


# -- training ---------------------------------------------------------------------------------------------------


def plain(n_in, n_out, width=25):
    layers = [nn.Linear(n_in, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, n_out)]
    return nn.Sequential(*layers)


@pytest.mark.slow
def test_your_own_network_is_trained_as_well_as_ours():
    """`python -m benchmarks own_networks` has more data, architectures and seeds."""
    data = datasets.mushroom(200, random_state=0)
    torch.manual_seed(0)
    options = {"burst_std": data.burst_std, "random_state": 0}
    ours = LOCA(2, hidden_layers=(25, 25), **options).fit(data.bursts)
    own = LOCA(2, encoder=plain(2, 2), decoder=plain(2, 2), **options).fit(data.bursts)
    assert isinstance(own.encoder_.network.network, nn.Sequential)  # beside it a linear path, as ours has
    found, expected = (stress(data.X, model.embedding_) for model in (own, ours))
    assert found < 3 * expected
    assert found < 1e-4


def test_the_linear_path_can_be_declined_and_is_kept_in_files(tmp_path):
    _, bursts = planar_bursts(40, 20, dim=2)
    for skip in (True, False):
        own = plain(2, 2)
        own.linear_skip = skip
        model = short_fit(tiny_loca(encoder=own), bursts)
        assert isinstance(model.encoder_.network, WithSkip) == skip
        path = model.save(tmp_path / "own.safetensors")
        assert np.array_equal(LOCA.load(path, encoder=plain(2, 2)).transform(bursts), model.embedding_)


@pytest.mark.parametrize(
    "layer",
    [
        nn.LayerNorm(6),
        nn.LayerNorm(6, elementwise_affine=False),
        nn.RMSNorm(6),
        nn.GroupNorm(2, 6),
        nn.GELU(),
        nn.SiLU(),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_gradients_of_pushed_tangents_are_those_of_finite_differences(layer):
    """Third derivatives of the network: PyTorch's own are wrong for LayerNorm, in forward and in reverse mode."""
    module = nn.Sequential(nn.Linear(N_IN, 6), layer, nn.Linear(6, N_OUT)).double()
    kernel, stack = ModuleKernel(module), make_stack()
    weights = random_like(kernel.forward(stack))
    gradient, found = torch.zeros_like(kernel.theta), []
    kernel.forward(stack)
    kernel.backward(weights, gradient)
    start, step = kernel.theta.clone(), 1e-6
    for i in range(len(start)):
        values = []
        for sign in (1, -1):
            kernel.theta.copy_(start)
            kernel.theta[i] += sign * step
            values.append(float((kernel.forward(stack) * weights).sum()))
        found.append((values[0] - values[1]) / (2 * step))
    torch.testing.assert_close(gradient, torch.tensor(found, dtype=torch.float64), rtol=1e-5, atol=1e-6)
    assert not any(part._forward_hooks for part in module.modules())
