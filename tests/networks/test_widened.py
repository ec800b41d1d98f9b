"""Networks of reduced measurements as networks of measurements, and tangents pushed by reverse mode."""

import numpy as np
import torch

from pyloca.networks import MLP, Standardized, pushed_rows, pushforward, widened_decoder, widened_encoder


def reduced(n_in, n_out, seed):
    torch.manual_seed(seed)
    random = np.random.RandomState(seed)
    network = MLP(n_in, (6, 5), n_out, skip=True).double()
    return Standardized(network, random.normal(size=n_in), 1.7, random.normal(size=n_out), 0.4)


def test_widened_networks_are_those_of_reduced_measurements():
    random = np.random.RandomState(0)
    centre, basis = random.normal(size=9), np.linalg.qr(random.normal(size=(9, 4)))[0]
    V, c = torch.tensor(basis), torch.tensor(centre)
    encoder, decoder = reduced(4, 2, 0), reduced(2, 4, 1)
    y, z = torch.randn(7, 9, dtype=torch.float64), torch.randn(7, 2, dtype=torch.float64)
    wide = widened_encoder(encoder, centre, basis)
    torch.testing.assert_close(wide(y), encoder((y - c) @ V))
    back = widened_decoder(decoder, centre, basis)
    torch.testing.assert_close(back(z), c + decoder(z) @ V.T)
    assert back.network.tail.weight.shape == (9, 4)


def test_reverse_mode_pushes_as_forward_mode_does():
    module, points = reduced(5, 3, 0), torch.randn(6, 5, dtype=torch.float64)
    tangents = torch.randn(6, 2, 5, dtype=torch.float64)
    for found, expected in zip(
        pushed_rows(module, points, tangents), pushforward(module, points, tangents), strict=True
    ):
        torch.testing.assert_close(found, expected.detach())
        assert not found.requires_grad
