"""Points that lie together, in groups of equal size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts._arrays import Array

__all__ = ["cells_of"]

MOST = 20  # of more features, only this many principal directions are looked at: cells are cut across the longest


def cells_of(points: Array, size: int) -> NDArray[np.int64]:
    """Divide points (n, D) into cells of `size` points that lie together, (n // size, size) positions.

    A set is cut across its longest direction into halves of whole cells, and these again. The last n modulo `size`
    points are in no cell.
    """
    if points.shape[1] > MOST:
        points = points @ np.linalg.eigh(np.cov(points.T))[1][:, -MOST:]
    cells: list[NDArray[np.int64]] = []
    waiting = [np.arange(len(points) // size * size)]
    while waiting:
        rows = waiting.pop()
        n = len(rows) // size
        if n == 1:
            cells.append(rows)
        elif n > 1:
            cloud = points[rows] - points[rows].mean(axis=0)
            longest = np.linalg.eigh(cloud.T @ cloud)[1][:, -1]  # (D,)
            order = rows[np.argsort(cloud @ longest, kind="stable")]
            waiting += [order[n // 2 * size :], order[: n // 2 * size]]  # the lower half comes first
    return np.array(cells, dtype=np.int64).reshape(-1, size)
