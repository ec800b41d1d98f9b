"""Statistics of some of many bursts, of which arrays are made when they are wanted: a copy would double the memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca.geometry._blocks import blocks
from pyloca.geometry._statistics import PER_BURST, BurstStatistics

__all__ = ["chosen_statistics"]


def chosen_statistics(statistics: BurstStatistics, rows: NDArray[np.int64]) -> BurstStatistics:
    """Choose bursts without a copy: an array of them is made whenever it is asked for, and is not kept.

    Parameters
    ----------
    statistics : BurstStatistics
    rows : (n,) array of int
        The bursts that are meant.

    Returns
    -------
    BurstStatistics

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> chosen = chosen_statistics(BurstStatistics.from_bursts(bursts), np.arange(0, 100, 2))
    >>> len(chosen), chosen.means.shape, chosen[:5].ids.tolist()
    (50, (50, 2), [0, 2, 4, 6, 8])
    """
    return _Chosen(statistics, rows)


class _Chosen(BurstStatistics):
    def __init__(self, statistics: BurstStatistics, rows: NDArray[np.int64]) -> None:
        of_all = {field.name: getattr(statistics, field.name) for field in fields(statistics)}
        self.__dict__.update({name: value for name, value in of_all.items() if name not in PER_BURST})
        self.__dict__.update(_source=statistics, _rows=rows)

    def __getattribute__(self, name: str) -> Any:
        if name not in PER_BURST:
            return super().__getattribute__(name)
        array = getattr(self._source, name)
        return None if array is None else array[self._rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: Any) -> BurstStatistics:
        return self._source[self._rows[rows]]

    @property
    def intrinsic_dim(self) -> int:
        return self._source.intrinsic_dim

    @property
    def n_features(self) -> int:
        return self._source.n_features

    @property
    def n_used(self) -> int:
        used = [
            self._source.means[rows].any(axis=0) | self._source.tangents[rows].any(axis=(0, 1))
            for rows in self._blocks()
        ]
        return int(np.any(used, axis=0).sum())

    def _blocks(self) -> Iterator[NDArray[np.int64]]:
        return (self._rows[rows] for rows in blocks(len(self)))
