"""The containers that the data sets are returned in."""

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
    """Points that are not among the bursts.

    Attributes
    ----------
    X : (n, d) array
        Latents.
    Y : (n, D) array
        Their measurements.

    Examples
    --------
    >>> import numpy as np
    >>> unseen = TestSet(X=np.zeros((5, 2)), Y=np.ones((5, 3)))
    >>> len(unseen.X) == len(unseen.Y)
    True
    """

    __test__ = False  # pytest would take it for a test class because of its name

    X: NDArray[np.float64]
    Y: NDArray[np.float64]


@dataclass(frozen=True)
class Dataset:
    """Bursts together with the truth, which is unknown in practice.

    Attributes
    ----------
    name : str
    X : (N, d) array
        Latents of the burst centres.
    Y : (N, D) array
        Anchors: measurements of the burst centres themselves.
    bursts : Bursts
    burst_std : float
        σ in the units of X.
    n_components, intrinsic_dim : int
        d and k.
    measure : callable
        The measurement function f, (n, d) → (n, D).
    tests : dict of TestSet
        Points that are not among the bursts, by the paper's name for them.
    extras : dict of arrays
        What else is known about the data set; see the function that makes it.

    Examples
    --------
    >>> from pyloca import datasets
    >>> data = datasets.mushroom(n_bursts=100, n_points=10, random_state=0)
    >>> data.X.shape, data.Y.shape, data.bursts
    ((100, 2), (100, 2), Bursts(N=100, M=10, D=2))
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
