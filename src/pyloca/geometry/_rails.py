"""Sensors at the end of their range: many points of a burst have exactly the largest or least reading of all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.thresholds import PILED, STEPPED

__all__ = ["Rails"]


class _Piles(NamedTuple):
    """Points of a burst that share its largest or least reading of a sensor, p times."""

    bursts: NDArray[np.int64]
    sensors: NDArray[np.int64]
    readings: NDArray[np.float64]  # minus the reading where it is the least
    points: NDArray[np.int64]
    between: NDArray[np.int64]  # points between the two extremes of the burst
    distinct: NDArray[np.int64]  # readings among these


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
        self._constant = np.zeros(bursts.n_features, dtype=np.int64)  # bursts that have one reading only
        self._piles: tuple[list[_Piles], list[_Piles]] = [], []

    def add(self, rows: NDArray[np.int64], block: NDArray[np.float64]) -> None:
        """Look at some bursts of equal length.

        Parameters
        ----------
        rows : (b,) array of int
            Their positions.
        block : (b, M, D) array
        """
        m = block.shape[1]
        least = max(2, int(np.ceil(PILED * m)))
        self._constant += (block == block[:, :1]).all(axis=1).sum(axis=0)
        for side, (tops, sign) in enumerate(((block.max(axis=1), 1), (block.min(axis=1), -1))):
            count = (block == tops[:, None]).sum(axis=1)  # (b, D)
            self._ends[side] = np.maximum(self._ends[side], (sign * tops).max(axis=0))
            piled = count >= least
            self._tied[side] += (piled & (count < m)).sum(axis=0)  # a dead sensor is not one with steps
            # Only readings at the end so far can be at the end of all; what reads in steps would make the list long.
            burst, sensor = np.nonzero(piled & (sign * tops >= self._ends[side]))
            points = count[burst, sensor]
            between, distinct = np.zeros((2, len(burst)), dtype=np.int64)
            cut = points < m
            between[cut], distinct[cut] = _between(block[burst[cut], :, sensor[cut]])
            readings = sign * tops[burst, sensor]
            self._piles[side].append(_Piles(rows[burst], sensor, readings, points, between, distinct))

    def taken(self) -> dict[str, NDArray[Any]]:
        """Return what was seen as arrays, for `merge`.

        Returns
        -------
        dict of str to array
        """
        seen = {"ends": self._ends, "tied": self._tied, "constant": self._constant}
        for side, piles in enumerate(self._piles):
            for name, parts in zip(_Piles._fields, zip(*piles, strict=True), strict=True) if piles else ():
                seen[f"{name}{side}"] = np.concatenate(parts)
        return seen

    def merge(self, rows: NDArray[np.int64], seen: dict[str, NDArray[Any]]) -> None:
        """Add what was seen of a part of the bursts; the order of parts makes no difference.

        Parameters
        ----------
        rows : (b,) array of int
            Positions of the bursts of that part.
        seen : dict of str to array
            What `taken` gave there.
        """
        self._ends = np.maximum(self._ends, seen["ends"])
        self._tied, self._constant = self._tied + seen["tied"], self._constant + seen["constant"]
        for side in range(2):
            if f"bursts{side}" in seen:
                piles = _Piles(*(seen[f"{name}{side}"] for name in _Piles._fields))
                self._piles[side].append(piles._replace(bursts=rows[piles.bursts]))

    def reasons(self) -> dict[int, str]:
        """Say which bursts are clipped.

        Returns
        -------
        dict of int to str
            Position of each burst, and the sensor that is at its end there.
        """
        counts, scale = self.bursts.counts, self.bursts.scale
        found: dict[int, str] = {}
        for side, which in enumerate(("largest", "least")):
            for burst, sensor, reading, points in zip(*self._clipped(side), strict=True):
                reading *= (1 - 2 * side) * (1 if scale is None else scale[sensor])
                found[burst] = (
                    f"is clipped: {self.bursts.feature_label(sensor)} has its {which} reading, {reading:.4g}, at "
                    f"{points} of {counts[burst]} points"
                )
        return found

    def _clipped(self, side: int) -> tuple[list[int], list[int], list[float], list[int]]:
        """Choose the bursts, sensors, readings and points of piles that are at the end of a range."""
        if not self._piles[side]:
            return [], [], [], []
        piles = _Piles(*(np.concatenate(part) for part in zip(*self._piles[side], strict=True)))
        at_end = piles.readings == self._ends[side, piles.sensors]
        piles = _Piles(*(part[at_end] for part in piles))

        def total(values: NDArray[Any]) -> NDArray[np.float64]:
            return np.bincount(piles.sensors, values, self.bursts.n_features).astype(np.float64)

        number, whole = total(np.ones(len(piles.sensors))), total(piles.points == self.bursts.counts[piles.bursts])
        # A sensor that reads in steps repeats readings everywhere, and not only at its end; so does a label, which is
        # the same at all points of a burst.
        stepped = self._tied[side] - np.minimum(number, self._tied[side]) >= number
        stepped |= (number > whole) & (total(piles.distinct) <= STEPPED * total(piles.between))
        chosen = ~(stepped | (self._constant - whole >= number))[piles.sensors]
        chosen &= (self._ends[0] > -self._ends[1])[piles.sensors]
        return tuple(part[chosen].tolist() for part in piles[:4])


def _between(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the points of a sensor between its extremes in a burst, and their readings; values (p, M), (p,) each."""
    values = np.sort(values, axis=1)
    inner = (values > values[:, :1]) & (values < values[:, -1:])
    new = inner[:, 1:] & (values[:, 1:] > values[:, :-1])
    return inner.sum(axis=1), new.sum(axis=1)
