"""Sensors at the end of their range: many points of a burst have exactly the largest or least reading of all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.thresholds import PILED

__all__ = ["Rails"]


class Rails:
    """Look for clipped bursts, block by block.

    Parameters
    ----------
    bursts : Bursts
        Whose blocks are to come.

    Examples
    --------
    >>> from pyloca import datasets
    >>> points = datasets.mushroom(n_bursts=50, n_points=10, random_state=0).bursts.to_array()
    >>> rails = Rails(Bursts(np.minimum(points, points[7].max(axis=(0, 1)))))
    >>> for rows, block in rails.bursts.blocks():
    ...     rails.add(rows, block)
    """

    def __init__(self, bursts: Bursts) -> None:
        self.bursts = bursts
        shape = (2, bursts.n_features)
        self._ends = np.full(shape, -np.inf)  # largest of the readings, and of minus the readings
        self._tied = np.zeros(shape, dtype=np.int64)  # bursts that repeat their own extreme reading, wherever it is
        self._piles: list[tuple[int, int, int, float, int]] = []  # burst, side, sensor, reading, points

    def add(self, rows: NDArray[np.int64], block: NDArray[np.float64]) -> None:
        """Look at some bursts of equal length.

        Parameters
        ----------
        rows : (b,) array of int
            Their positions.
        block : (b, M, D) array
        """
        least = max(2, int(np.ceil(PILED * block.shape[1])))
        for side, (tops, sign) in enumerate(((block.max(axis=1), 1), (block.min(axis=1), -1))):
            count = (block == tops[:, None]).sum(axis=1)  # (b, D)
            self._ends[side] = np.maximum(self._ends[side], (sign * tops).max(axis=0))
            piled = count >= least
            self._tied[side] += (piled & (count < block.shape[1])).sum(axis=0)  # a dead sensor is not one with steps
            # Only readings at the end so far can be at the end of all; what reads in steps would make the list long.
            for i, j in np.argwhere(piled & (sign * tops >= self._ends[side])):
                self._piles.append((int(rows[i]), side, int(j), float(sign * tops[i, j]), int(count[i, j])))

    def reasons(self) -> dict[int, str]:
        """Say which bursts are clipped.

        Returns
        -------
        dict of int to str
            Position of each burst, and the sensor that is at its end there.
        """
        counts = self.bursts.counts
        at_end = [pile for pile in self._piles if pile[3] == self._ends[pile[1], pile[2]]]
        number = np.zeros_like(self._tied)
        for _, side, sensor, _, _ in at_end:
            number[side, sensor] += 1
        # A sensor that reads in steps repeats readings everywhere, and not only at its end.
        elsewhere = self._tied - np.minimum(number, self._tied)
        found: dict[int, str] = {}
        for burst, side, sensor, _, points in at_end:
            if elsewhere[side, sensor] < number[side, sensor]:
                found[burst] = (
                    f"is clipped: {self.bursts.feature_label(sensor)} has its {('largest', 'least')[side]} reading at "
                    f"{points} of {counts[burst]} points"
                )
        return found
