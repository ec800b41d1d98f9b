"""Whether neighbours stay neighbours (Venna and Kaski 2001)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import check_count
from pyloca.metrics._arrays import check_pair

__all__ = ["continuity", "trustworthiness"]


def trustworthiness(X: ArrayLike, Z: ArrayLike, *, n_neighbors: int = 10) -> float:
    """Whether neighbours in the embedding are neighbours in truth.

    1 − 2/(nK(2n − 3K − 1)) Σ max(0, true rank − K) over the K nearest neighbours of each embedded point. It needs all
    n × n distances.

    Parameters
    ----------
    X : (n, d) array
        True latents.
    Z : (n, e) array
        Embedding of the same points.
    n_neighbors : int, default=10
        K, less than n / 2.

    Returns
    -------
    float
        1 if every neighbour is a true one; 0 at worst.

    Raises
    ------
    ValueError
        If the arrays do not match or are not finite, or if `n_neighbors` is not below n / 2.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(size=(30, 2))
    >>> trustworthiness(X, 2 * X)
    1.0
    """
    X, Z = check_pair(X, Z)
    return _trustworthiness(X, Z, n_neighbors)


def continuity(X: ArrayLike, Z: ArrayLike, *, n_neighbors: int = 10) -> float:
    """Whether true neighbours are neighbours in the embedding: trustworthiness with X and Z exchanged.

    Parameters
    ----------
    X : (n, d) array
        True latents.
    Z : (n, e) array
        Embedding of the same points.
    n_neighbors : int, default=10
        K, less than n / 2.

    Returns
    -------
    float
        1 if no neighbour was lost; 0 at worst.

    Raises
    ------
    ValueError
        As `trustworthiness`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> torn = X + np.where(X[:, :1] < 0.5, 0.0, 100.0)
    >>> continuity(X, torn) < trustworthiness(X, torn)
    True
    """
    X, Z = check_pair(X, Z)
    return _trustworthiness(Z, X, n_neighbors)


def _trustworthiness(true: NDArray[np.float64], shown: NDArray[np.float64], n_neighbors: int) -> float:
    from sklearn import manifold  # here: it takes longer to import than all of pyloca.metrics

    check_count("n_neighbors", n_neighbors)
    if n_neighbors >= len(true) / 2:
        raise ValueError(f"n_neighbors must be below half of the {len(true)} points; got {n_neighbors}.")
    return float(manifold.trustworthiness(true, shown, n_neighbors=n_neighbors))
