"""The same few of many rows each time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["sample_rows"]


def sample_rows(n: int, size: int) -> NDArray[np.int64]:
    """At most `size` of `n` rows, sorted; random, because data may come as a grid, and the same ones each time."""
    return np.sort(np.random.RandomState(0).permutation(n)[:size])
