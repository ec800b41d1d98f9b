"""Input and output of every solver."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from pyloca._sealed import digest
from pyloca.bursts import Bursts
from pyloca.geometry import BurstStatistics

__all__ = ["CHUNK", "Problem", "Solution"]

CHUNK = 2048  # bursts evaluated at a time: buffers of that size stay in the cache
# Threads wait for each other after every matrix product. On a busy machine one of them waits for a core, which takes
# some milliseconds, so that a product should take more than that: this many multiplications take 20 ms or so.
PAYS = 2e8


TOLD = ("means", "tangents", "counts", "residuals", "total", "noise", "tilts")  # what statistics tell a solver


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

    Examples
    --------
    See `solve_fast`.
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

    @property
    def wants_threads(self) -> bool:
        """Whether matrix products of one evaluation are large enough for several threads.

        Own networks may do anything, and keep the user's settings.
        """
        if self.encoder is not None or self.decoder is not None or self.device.type != "cpu":
            return True
        widths = [self.statistics.n_features, *self.hidden_layers, self.n_components]
        largest = max(a * b for a, b in pairwise(widths))
        points = (1 + self.statistics.intrinsic_dim) * min(len(self.train), CHUNK)
        return float(largest) * points >= PAYS

    def facts(self, *, raw: bool = False) -> dict[str, Any]:
        """List what two runs must have in common for one to resume the other; `max_iter` may grow.

        "data" is a SHA-256 digest of the statistics and the split. It comes last: a setting that differs is reported
        before the data that differ because of it.

        Parameters
        ----------
        raw : bool, default=False
            Whether the solver trains on raw points, which the digest then includes.

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
            "encoder": _module_digest(self.encoder),
            "decoder": _module_digest(self.decoder),
            "seed": self.seed,
            "held_out": len(self.validation),
            "tol": self.tol,
            "data": self._digest(raw=raw),
        }

    def _digest(self, *, raw: bool) -> str:
        arrays = {name: getattr(self.statistics, name) for name in TOLD}
        arrays |= {"train": self.train, "validation": self.validation}
        points = hashlib.sha256()
        if raw and self.bursts is not None:
            for _, block in self.bursts.blocks():
                points.update(np.ascontiguousarray(block).data)
        told = {"tails": self.statistics.tails, "points": points.hexdigest()}
        return digest({name: array for name, array in arrays.items() if array is not None}, told)


def _module_digest(module: nn.Module | None) -> str | None:
    """Return a digest of a module of the user's own: its parts and its weights, from which training starts."""
    if module is None:
        return None
    return digest({name: value.numpy(force=True) for name, value in module.state_dict().items()}, {"is": repr(module)})


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

    Examples
    --------
    See `solve_fast`.
    """

    encoder: nn.Module
    decoder: nn.Module
    converged: bool
    unfinished: str = ""
    restarts: tuple[str, ...] = ()
