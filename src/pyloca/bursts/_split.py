"""The split into training and held-out items."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import as_random, brief, check_count, is_finite

__all__ = ["split_indices"]


def split_indices(
    n: int, fraction: float, seed: int | np.random.RandomState | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw the sorted positions of the training and the held-out items; at least one of n is trained on.

    Parameters
    ----------
    n : int
        Number of items.
    fraction : float in [0, 1)
        Fraction of them that is held out.
    seed : int, RandomState or None
        Seed of the draw.

    Returns
    -------
    train, held_out : integer arrays

    Examples
    --------
    >>> [part.tolist() for part in split_indices(5, 0.4, 0)]
    [[1, 3, 4], [0, 2]]
    """
    check_count("n", n)
    if not (is_finite(fraction) and 0 <= fraction < 1):
        raise ValueError(f"the fraction to hold out must be in [0, 1); got {brief(fraction)}.")
    order = as_random(seed, "seed").permutation(n)
    n_held = min(round(fraction * n), n - 1)
    return np.sort(order[n_held:]), np.sort(order[:n_held])
