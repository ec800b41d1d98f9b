"""What every data set returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts

__all__ = ["Dataset", "TestSet"]

Measurement = Callable[[NDArray[np.float64]], NDArray[np.float64]]


@dataclass(frozen=True)
class TestSet:
    """Latents X (n, d) with their measurements Y (n, D)."""

    __test__ = False  # not a test class, whatever pytest thinks of the name

    X: NDArray[np.float64]
    Y: NDArray[np.float64]


@dataclass(frozen=True)
class Dataset:
    """Bursts with the truth that a user does not have.

    Attributes
    ----------
    X : (N, d)
        Latents of the burst centres.
    Y : (N, D)
        Anchors: measurements of the burst centres themselves.
    bursts : Bursts
    burst_std : float
        σ in the units of X.
    n_components, intrinsic_dim : int
        d and k.
    tests : dict of TestSet
        Points that are not among the bursts, by the paper's name for them.
    measure : callable
        The measurement function f, (n, d) → (n, D).
    """

    name: str
    X: NDArray[np.float64]
    Y: NDArray[np.float64]
    bursts: Bursts
    burst_std: float
    n_components: int
    intrinsic_dim: int
    measure: Measurement = field(repr=False)
    tests: dict[str, TestSet] = field(default_factory=dict, repr=False)
    extras: dict[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)
