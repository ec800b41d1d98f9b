"""The decoder in closed form, beside a naive twin."""

import numpy as np
import pytest
import torch

from pyloca.networks import ACTIVATIONS, pushforward
from pyloca.solvers import _features
from pyloca.solvers._features import Candidate, FeatureDecoder


def stacks(function, n, seed):
    """Points and tangents of a map by complex steps, (1 + k, n, d) and (1 + k, n, D)."""
    random = np.random.RandomState(seed)
    points, tangents = random.uniform(-1.5, 1.5, (n, 2)), random.normal(size=(2, n, 2))
    values = [np.imag(function(points + 1e-20j * tangent)) / 1e-20 for tangent in tangents]
    inputs, targets = np.stack([points, *tangents]), np.stack([function(points), *values])
    return torch.tensor(inputs), torch.tensor(targets)


def waves(x):
    return np.stack([np.sin(3 * x[:, 0]), np.cos(2 * x[:, 1] - x[:, 0]), x[:, 0] * x[:, 1]], axis=1)


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_outer_weights_solve_the_penalised_least_squares(activation):
    data = stacks(waves, 30, 0)
    choice = Candidate(0.0, 0.0, 20, 2.0, 0.05, 1e-4)
    network = FeatureDecoder(*data, *data, activation, 0).network(choice)

    def loss():
        value, pushed = pushforward(network, data[0][0], data[0][1:].transpose(0, 1))
        last = network.linear_layers()[-1]
        size = sum(part.square().sum() for part in (last.weight, last.bias, network.skip.weight))
        tangents = (pushed.transpose(0, 1) - data[1][1:]).square().sum()
        return (value - data[1][0]).square().sum() + 0.05 * tangents + 1e-4 * 30 * size

    loss().backward()
    last = network.linear_layers()[-1]
    for part in (last.weight, last.bias, network.skip.weight):
        assert part.grad.abs().max() < 1e-6
    assert float(loss().detach()) < 0.1 * float(data[1].square().sum())


@pytest.mark.parametrize("held", [40, 10])
def test_bursts_that_are_not_fitted_are_predicted(held, monkeypatch):
    """With few held-out bursts, training bursts take turns."""
    monkeypatch.setattr(_features, "WIDTHS", (32, 96))
    seen = []
    decoder = FeatureDecoder(*stacks(waves, 200, 0), *stacks(waves, held, 1), "tanh", 0)
    choice = decoder.choose(seen.append)
    assert choice.width in (32, 96) and len(seen) >= len(_features.ROUGHNESS)
    inputs, targets = stacks(waves, 100, 2)
    with torch.no_grad():
        error = (decoder.network(choice)(inputs[0]) - targets[0]).norm(dim=1).mean()
    assert float(error) < 0.02 * float(targets[0].norm(dim=1).mean())


def test_without_units_it_is_affine():
    data = stacks(lambda x: x @ np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]]) + 1, 20, 0)
    decoder = FeatureDecoder(*data, *data, "tanh", 0, linear=True)
    network = decoder.network(decoder.choose())
    torch.testing.assert_close(network(data[0][0]), data[1][0], atol=1e-6, rtol=0)
    assert [layer.in_features for layer in network.linear_layers()] == [2]
