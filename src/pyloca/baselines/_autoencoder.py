"""A plain autoencoder: reconstruction only, to show what whitening adds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from pyloca._arguments import brief, check_count
from pyloca.baselines._base import Baseline
from pyloca.baselines._extension import warn_outside
from pyloca.baselines._kernels import Euclidean, max_min, slabs
from pyloca.geometry import BurstStatistics
from pyloca.networks import ACTIVATIONS, MLP, Standardized, apply_rows, initialize
from pyloca.objectives import compressed_points
from pyloca.solvers import minimize

__all__ = ["Autoencoder"]

Array = NDArray[np.float64]

TOL, CHECK_EVERY = 1e-3, 50  # training ends when that many steps lower the loss by no more than this part of it


class Autoencoder(Baseline):
    """Plain autoencoder with LOCA's networks, which minimises ‖y − γ(ρ(y))‖² only.

    Any invertible change of its coordinates reconstructs equally well, so distances between them have no meaning.

    Parameters
    ----------
    n_components : int, default=2
        d.
    hidden_layers : sequence of int, default=(50, 50)
        Widths of the hidden layers of the encoder; the decoder has the same.
    activation : str, default="tanh"
        Any that `pyloca.LOCA` accepts.
    max_iter : int, default=300
        Largest number of L-BFGS steps.
    random_state : int, RandomState or None, default=None
        Draws the initial weights.

    Attributes
    ----------
    embedding_ : (N, d) array
        Of the training points or burst means.
    n_iter_ : int
        Steps taken.
    loss_ : float
        Mean squared error of the reconstruction, as a fraction of the variance of the data.
    encoder_, decoder_ : torch.nn.Module
        The trained networks.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> Autoencoder(hidden_layers=(5,), max_iter=20, random_state=0).fit_transform(bursts).shape
    (100, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        hidden_layers: Sequence[int] = (50, 50),
        activation: str = "tanh",
        max_iter: int = 300,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.hidden_layers = hidden_layers
        self.activation = activation
        self.max_iter = max_iter
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("max_iter", self.max_iter)
        if isinstance(self.hidden_layers, str) or not hasattr(self.hidden_layers, "__iter__"):
            raise ValueError(f"hidden_layers must be integers, such as (50, 50); got {brief(self.hidden_layers)}.")
        if not isinstance(self.activation, str) or self.activation not in ACTIVATIONS:
            raise ValueError(
                f"activation must be one of {', '.join(sorted(ACTIVATIONS))}; got {brief(self.activation)}."
            )

    def _fit(self, points: Array, statistics: BurstStatistics | None) -> Array:
        self._distance = Euclidean(points)
        self._spacing = max_min(self._distance)
        generator = torch.Generator().manual_seed(int(check_random_state(self.random_state).randint(2**31 - 1)))
        dim, d = points.shape[1], self.n_components
        shift = points.mean(axis=0)
        scale = float(np.sqrt(np.square(points - shift).mean()))
        encoder, decoder = (
            MLP(n_in, self.hidden_layers, n_out, self.activation, skip=True, generator=torch.Generator()).double()
            for n_in, n_out in ((dim, d), (d, dim))
        )
        for network in (encoder, decoder):
            initialize(network, generator)
        _open(encoder, (points - shift) / scale)
        self.loss_, self.n_iter_ = _train(
            torch.nn.Sequential(encoder, decoder), _compressed(points, statistics, shift, scale), self.max_iter
        )
        self.encoder_ = Standardized(encoder, shift, scale, np.zeros(d), 1.0).eval()
        self.decoder_ = Standardized(decoder, np.zeros(d), 1.0, shift, scale).eval()
        return apply_rows(self.encoder_, points, d)

    def _extend(self, points: Array) -> Array:
        nearest = np.empty(len(points))
        for rows in slabs(len(points), len(self._distance)):
            nearest[rows] = self._distance.squared_from(points[rows]).min(axis=1)
        warn_outside(nearest, self._spacing)
        return apply_rows(self.encoder_, points, self.n_components)

    def inverse_transform(self, Z: ArrayLike) -> Array:
        """Decode embedded points.

        Parameters
        ----------
        Z : (n, d) array

        Returns
        -------
        (n, D) array

        Raises
        ------
        ValueError
            If `Z` is not finite or does not have d columns.
        """
        check_is_fitted(self)
        points = check_array(Z, dtype=np.float64)
        if points.shape[1] != self.n_components:
            raise ValueError(f"Z has {points.shape[1]} features, but Autoencoder is expecting {self.n_components}.")
        return apply_rows(self.decoder_, points, self.n_features_in_)


def _compressed(points: Array, statistics: BurstStatistics | None, shift: Array, scale: float) -> torch.Tensor:
    """Return the points to reconstruct; for bursts, μ_i and μ_i ± √k a_il, which have their mean and covariance."""
    if statistics is not None:
        around = compressed_points(torch.from_numpy(statistics.means), torch.from_numpy(statistics.tangents))
        points = np.concatenate([points, around.reshape(-1, points.shape[1]).numpy()])
    return torch.from_numpy((points - shift) / scale)


def _open(encoder: MLP, points: Array) -> None:
    """Start the skip at the leading principal axes: an encoder that starts at 0 has nothing to decode."""
    _, _, axes = np.linalg.svd(points[:: max(1, len(points) // 2000)], full_matrices=False)
    rank = min(len(axes), encoder.skip.weight.shape[0]) if encoder.skip is not None else 0
    with torch.no_grad():
        if encoder.skip is not None:
            encoder.skip.weight[:rank] = torch.from_numpy(axes[:rank])


def _train(network: torch.nn.Module, points: torch.Tensor, max_iter: int) -> tuple[float, int]:
    """Full-batch L-BFGS on the mean squared error, in units of the data's variance; its last value, and the steps."""
    parameters = list(network.parameters())

    def loss(theta: torch.Tensor) -> tuple[float, torch.Tensor]:
        vector_to_parameters(theta, parameters)
        value = (network(points) - points).square().mean()
        return float(value.detach()), parameters_to_vector(torch.autograd.grad(value, parameters)).detach()

    start = parameters_to_vector(parameters).detach()
    found = minimize(loss, start, max_iter=max_iter, tol=TOL, check_every=CHECK_EVERY)
    vector_to_parameters(found.theta, parameters)
    return found.value, found.n_iter
