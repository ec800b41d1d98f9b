"""A network between fixed scalings, so that the weights never see the units of the data."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pyloca.networks._mlp import MLP

__all__ = ["Standardized", "in_units", "widened_decoder", "widened_encoder"]


class Standardized(nn.Module):
    """The map y ↦ out_shift + out_scale · network((y − in_shift) / in_scale).

    Parameters
    ----------
    network : torch.nn.Module
    in_shift, in_scale, out_shift, out_scale : float or array
        One number, or one per feature.

    Examples
    --------
    >>> import torch
    >>> celsius = Standardized(torch.nn.Identity(), in_shift=32.0, in_scale=1.8, out_shift=0.0, out_scale=1.0)
    >>> celsius(torch.tensor([[212.0]])).item()
    100.0
    """

    in_shift: Tensor
    in_scale: Tensor
    out_shift: Tensor
    out_scale: Tensor

    def __init__(
        self,
        network: nn.Module,
        in_shift: float | NDArray[np.float64],
        in_scale: float | NDArray[np.float64],
        out_shift: float | NDArray[np.float64],
        out_scale: float | NDArray[np.float64],
    ) -> None:
        super().__init__()
        self.network = network
        for name, value in [
            ("in_shift", in_shift),
            ("in_scale", in_scale),
            ("out_shift", out_shift),
            ("out_scale", out_scale),
        ]:
            self.register_buffer(name, torch.tensor(np.asarray(value, dtype=np.float64)))

    def forward(self, y: Tensor) -> Tensor:
        """Apply the network between its scalings.

        Parameters
        ----------
        y : Tensor (n, n_in)

        Returns
        -------
        Tensor (n, n_out)
        """
        return self.out_shift + self.out_scale * self.network((y - self.in_shift) / self.in_scale)

    def moved(self, in_shift: NDArray[np.float64] | float, out_shift: NDArray[np.float64] | float) -> Standardized:
        """Move the origins of inputs and outputs.

        Parameters
        ----------
        in_shift, out_shift : float or array
            Added to the shifts.

        Returns
        -------
        Standardized
            With the same network.
        """
        ends = _ends(self)
        return Standardized(self.network, ends[0] + in_shift, ends[1], ends[2] + out_shift, ends[3])

    def around(self, network: nn.Module) -> Standardized:
        """Put the same scalings around another network.

        Parameters
        ----------
        network : torch.nn.Module

        Returns
        -------
        Standardized
        """
        ends = _ends(self)
        return Standardized(network, *ends).to(self.in_scale.dtype).eval()

    def stretched(self, *, into: float = 1.0, out: float = 1.0) -> Standardized:
        """Change the units of inputs and outputs.

        Parameters
        ----------
        into, out : float
            What inputs, and outputs, are multiplied by.

        Returns
        -------
        Standardized
            With the same network.
        """
        ends = _ends(self)
        wider = Standardized(self.network, into * ends[0], into * ends[1], out * ends[2], out * ends[3])
        return wider.to(next(self.network.parameters()).dtype).eval()


def in_units(
    network: nn.Module,
    *,
    in_scale: NDArray[np.float64] | None = None,
    out_scale: NDArray[np.float64] | None = None,
    out_shift: NDArray[np.float64] | float = 0.0,
) -> nn.Module:
    """Wrap a network so that its inputs or outputs are in the user's units.

    Parameters
    ----------
    network : torch.nn.Module
    in_scale, out_scale : (n,) array, optional
        Divisors of the features inside; None leaves them alone. Infinity leaves a feature out: the network is given 0
        in its place.
    out_shift : (n,) array
        What comes out for features that are left out; 0 for all others.

    Returns
    -------
    torch.nn.Module
        `network` itself if both are None.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> network = torch.nn.Linear(1, 2)  # takes metres
    >>> of_centimetres = in_units(network, in_scale=np.array([100.0]))
    >>> bool(torch.allclose(of_centimetres(torch.tensor([[250.0]])), network(torch.tensor([[2.5]]))))
    True
    """
    if in_scale is None and out_scale is None:
        return network
    out: NDArray[np.float64] | float = 1.0 if out_scale is None else np.where(np.isinf(out_scale), 0.0, out_scale)
    ends = (0.0, 1.0 if in_scale is None else in_scale, out_shift, out)
    return Standardized(network, *ends).to(next(network.parameters()).dtype).eval()


def widened_encoder(encoder: Standardized, centre: NDArray[np.float64], basis: NDArray[np.float64]) -> Standardized:
    """Let an encoder of reduced measurements Vᵀ(y − c) take measurements y.

    V is multiplied into the weights, so that the result is a plain network again.

    Parameters
    ----------
    encoder : Standardized
        Around an `MLP` with r inputs, with one scale for all.
    centre : (D,) array
        c.
    basis : (D, r) array
        V, orthonormal columns.

    Returns
    -------
    Standardized

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from pyloca.networks import MLP
    >>> narrow = Standardized(MLP(2, (5,), 2).double(), np.zeros(2), 1.0, np.zeros(2), 1.0)
    >>> wide = widened_encoder(narrow, np.zeros(100), np.eye(100)[:, :2])
    >>> wide(torch.zeros(4, 100, dtype=torch.float64)).shape
    torch.Size([4, 2])
    """
    inside = encoder.network
    assert isinstance(inside, MLP)
    turn = torch.tensor(basis, dtype=torch.float64)
    layers = inside.linear_layers()
    wide = _like(inside, len(basis), layers[-1].out_features)
    with torch.no_grad():
        for i, (old, new) in enumerate(zip(layers, wide.linear_layers(), strict=True)):
            new.weight.copy_(old.weight @ turn.T if i == 0 else old.weight)
            new.bias.copy_(old.bias)
        if inside.skip is not None and wide.skip is not None:
            wide.skip.weight.copy_(inside.skip.weight @ turn.T)
    ends = _ends(encoder)
    return Standardized(wide, centre + basis @ ends[0], ends[1], ends[2], ends[3]).eval()


def widened_decoder(decoder: Standardized, centre: NDArray[np.float64], basis: NDArray[np.float64]) -> Standardized:
    """Let a decoder of reduced measurements x return measurements c + V x.

    V becomes a second linear layer at the end.

    Parameters
    ----------
    decoder : Standardized
        Around an `MLP` with r outputs, with one scale for all.
    centre : (D,) array
        c.
    basis : (D, r) array
        V, orthonormal columns.

    Returns
    -------
    Standardized

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from pyloca.networks import MLP
    >>> narrow = Standardized(MLP(2, (5,), 2).double(), np.zeros(2), 1.0, np.zeros(2), 1.0)
    >>> wide = widened_decoder(narrow, np.zeros(100), np.eye(100)[:, :2])
    >>> wide(torch.zeros(4, 2, dtype=torch.float64)).shape
    torch.Size([4, 100])
    """
    inside = decoder.network
    assert isinstance(inside, MLP)
    turn = torch.tensor(basis, dtype=torch.float64)
    layers = inside.linear_layers()
    wide = _like(inside, layers[0].in_features, len(basis), tail=basis.shape[1])
    with torch.no_grad():
        for old, new in zip(layers, wide.linear_layers(), strict=True):
            new.weight.copy_(old.weight)
            new.bias.copy_(old.bias)
        assert wide.tail is not None
        wide.tail.weight.copy_(turn)
        wide.tail.bias.zero_()
        if inside.skip is not None and wide.skip is not None:
            wide.skip.weight.copy_(turn @ inside.skip.weight)
    ends = _ends(decoder)
    return Standardized(wide, ends[0], ends[1], centre + basis @ ends[2], ends[3]).eval()


def _ends(module: Standardized) -> list[NDArray[np.float64]]:
    """Return the shift and scale of the inputs, and those of the outputs."""
    buffers = (module.in_shift, module.in_scale, module.out_shift, module.out_scale)
    return [buffer.cpu().numpy() for buffer in buffers]


def _like(inside: MLP, n_in: int, n_out: int, tail: int = 0) -> MLP:
    """Build a float64 network of the same hidden layers, on the CPU."""
    hidden = [layer.out_features for layer in inside.linear_layers()[:-1]]
    skip, drawn = inside.skip is not None, torch.Generator()
    return MLP(n_in, hidden, n_out, inside.activation, skip=skip, linear_tail=tail or False, generator=drawn).double()
