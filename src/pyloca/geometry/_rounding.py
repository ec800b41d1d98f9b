"""Statistics rounded far below their sampling errors, so that a change of units does not change them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pyloca.geometry._blocks import blocks

if TYPE_CHECKING:
    from pyloca.geometry._statistics import BurstStatistics

__all__ = ["rounded"]


def rounded(statistics: BurstStatistics) -> BurstStatistics:
    """Centre and round; see `BurstStatistics.rounded`."""
    spreads = statistics.means.std(axis=0)
    spread = float(np.median(spreads[spreads > 0])) if spreads.any() else 0.0  # those left out have none
    centred = statistics.means - statistics.means.mean(axis=0)
    tangents = _round(statistics.tangents, statistics.burst_std(), 20)
    sign = _signs(tangents)
    tangents *= sign
    return replace(
        statistics,
        means=_round(centred, spread, 24),
        tangents=tangents,
        residuals=_round(statistics.residuals, statistics.burst_std() ** 2, 20),
        tails=round(statistics.tails, 6),
        **statistics._turned(sign * np.eye(statistics.intrinsic_dim)),
    )


def _signs(tangents: NDArray[np.float64]) -> NDArray[np.float64]:
    """Signs that make the longest entry of each tangent positive, (N, k, 1): an SVD does not determine them."""
    sign = np.empty((*tangents.shape[:2], 1))
    for rows in blocks(len(tangents)):
        part = tangents[rows]
        longest = np.take_along_axis(part, np.abs(part).argmax(axis=2)[:, :, None], axis=2)
        sign[rows] = np.where(longest < 0, -1.0, 1.0)
    return sign


def _round(values: NDArray[np.float64], size: float, bits: int) -> NDArray[np.float64]:
    """Round to multiples of 2^−`bits` times a power of two near `size`; a `size` of 0 only copies them."""
    if not size > 0:
        return values.copy()
    unit = 2.0 ** (np.round(np.log2(size)) - bits)  # not floor: scaled means have a spread of 1
    out = values / unit
    np.round(out, out=out)
    out *= unit
    return out
