"""Input and output of every solver."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pyloca.bursts import Bursts
from pyloca.geometry import BurstStatistics

__all__ = ["Problem", "Solution"]


@dataclass(frozen=True)
class Problem:
    """Bursts, how they are split, and the networks to train.

    Attributes
    ----------
    statistics : BurstStatistics
    bursts : Bursts or None
        Raw bursts; None when only statistics were given.
    train, validation : (n,) array of int
        Positions of the training and the held-out bursts.
    n_components : int
        d.
    burst_std : float
        σ.
    hidden_layers : sequence of int
    activation, decoder_activation : str
    encoder, decoder : torch.nn.Module or None
        The user's own modules; None for an MLP.
    device : torch.device
    seed : int
    max_iter : int or None
    tol : float or None
    """

    statistics: BurstStatistics
    bursts: Bursts | None
    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    n_components: int
    burst_std: float
    hidden_layers: Sequence[int]
    activation: str
    decoder_activation: str
    encoder: nn.Module | None
    decoder: nn.Module | None
    device: torch.device
    seed: int
    max_iter: int | None
    tol: float | None

    def facts(self) -> dict[str, Any]:
        """List what two runs must have in common for one to resume the other; `max_iter` may grow.

        "data" is a SHA-256 digest of means, tangents, counts and split. It comes last: a setting that differs is
        reported before the data that differ because of it.

        Returns
        -------
        dict
        """
        statistics = self.statistics
        return {
            "N": len(statistics),
            "D": statistics.n_features,
            "k": statistics.intrinsic_dim,
            "n_components": self.n_components,
            "burst_std": float(self.burst_std),
            "hidden_layers": list(self.hidden_layers),
            "activation": self.activation,
            "decoder_activation": self.decoder_activation,
            "own_modules": [self.encoder is not None, self.decoder is not None],
            "seed": self.seed,
            "held_out": len(self.validation),
            "tol": self.tol,
            "data": self._digest(),
        }

    def _digest(self) -> str:
        digest = hashlib.sha256()
        statistics = self.statistics
        for array in (statistics.means, statistics.tangents, statistics.counts, self.train, self.validation):
            digest.update(np.ascontiguousarray(array, dtype=np.float64).data)
        return digest.hexdigest()


@dataclass(frozen=True)
class Solution:
    """Trained networks, with measurement units on one side and latent units on the other.

    Attributes
    ----------
    encoder, decoder : torch.nn.Module
    converged : bool
        False when `max_iter` or a callback ended the training.
    unfinished : str
        The stage in which it was ended, if that was before the decoder was trained; else "".
    restarts : tuple of str
        What was wrong with each start that was abandoned.
    """

    encoder: nn.Module
    decoder: nn.Module
    converged: bool
    unfinished: str = ""
    restarts: tuple[str, ...] = ()
