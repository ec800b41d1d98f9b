"""A linear path beside a module of the user's own."""

from __future__ import annotations

from torch import Tensor, nn

__all__ = ["WithSkip"]


class WithSkip(nn.Module):
    """x ↦ network(x) + S x, the linear map S at first 0: what the built-in networks have.

    Layers that saturate or normalise leave an isometry, which is mostly linear, to be put together from their bends.

    Parameters
    ----------
    network : torch.nn.Module
        (n, n_in) → (n, n_out).
    n_in, n_out : int

    Examples
    --------
    >>> import torch
    >>> inner = torch.nn.Linear(3, 2)
    >>> bool((WithSkip(inner, 3, 2)(torch.ones(1, 3)) == inner(torch.ones(1, 3))).all())
    True
    """

    def __init__(self, network: nn.Module, n_in: int, n_out: int) -> None:
        super().__init__()
        self.network = network
        self.skip = nn.utils.skip_init(nn.Linear, n_in, n_out, bias=False)
        nn.init.zeros_(self.skip.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Add the linear map to the network.

        Parameters
        ----------
        x : (n, n_in) tensor

        Returns
        -------
        (n, n_out) tensor
        """
        return self.network(x) + self.skip(x)
