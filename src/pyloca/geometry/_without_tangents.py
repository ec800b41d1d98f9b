"""Bursts that have fewer than k tangents: too short, without spread, or flat."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyloca.errors import BurstError
from pyloca.geometry._refusals import allowed_strays, may_be_left_out

if TYPE_CHECKING:
    from pyloca.geometry._statistics import BurstStatistics

__all__ = ["refuse_without_tangents", "why_without_tangents"]

EPS = np.finfo(np.float64).eps


class _Lacking(NamedTuple):
    """Which bursts are too short, have no spread or are flat, and how many directions each spans; (N,) each."""

    short: NDArray[np.bool_]
    same: NDArray[np.bool_]
    flat: NDArray[np.bool_]
    spans: NDArray[np.int64]


def _lacking(statistics: BurstStatistics) -> _Lacking:
    spectra, k = statistics.spectra, statistics.intrinsic_dim
    # Rounding of the coordinates themselves puts this much variance into a burst of identical points.
    rounding = (64 * EPS * np.abs(statistics.means).max(axis=1)) ** 2
    # Counts of regressions are what their error is worth, and may be small; only a short burst has no tangents.
    short = (statistics.counts <= k) & (spectra[:, 0] == 0)
    same = ~short & (spectra[:, 0] <= rounding)
    flat = ~short & ~same & (spectra[:, -1] <= np.maximum(rounding, (EPS * 64) ** 2 * spectra[:, 0]))
    return _Lacking(short, same, flat, np.minimum((spectra > rounding[:, None]).sum(axis=1), k - 1))


def why_without_tangents(statistics: BurstStatistics) -> dict[int, str]:
    """Say of each burst without tangents what is wrong with it; see `BurstStatistics.unusable`."""
    found = {}
    short, same, flat, spans = _lacking(statistics)
    k = statistics.intrinsic_dim
    for row in np.flatnonzero(short | same | flat):
        if short[row]:
            points = int(statistics.counts[row])
            why = f"has {points} point{'s' * (points > 1)}; k = {k} tangents need at least {k + 1}"
        elif same[row]:
            why = "has no spread: its points are identical, to rounding"
        elif statistics.marks[row]:
            why = str(statistics.marks[row])
        else:
            why = f"is flat: it spans only {spans[row]} of the k = {k} directions"
        found[int(row)] = why
    return found


def refuse_without_tangents(statistics: BurstStatistics, max_strays: float = 0.0) -> None:
    """Refuse bursts without tangents if they are more than may be left out; short ones alone have been refused."""
    short, no_spread, no_tangent, spans = _lacking(statistics)
    same, flat = np.flatnonzero(no_spread), np.flatnonzero(no_tangent)
    allowed = allowed_strays(len(statistics), max_strays)
    if short.sum() + len(same) + len(flat) <= allowed:
        return
    k, more = statistics.intrinsic_dim, may_be_left_out(allowed, max_strays)
    clipped = [int(row) for row in flat if statistics.marks[row]]
    if 2 * len(clipped) > len(same) + len(flat):
        raise BurstError(
            f"{statistics.name_of(clipped[0])} (and {len(clipped) - 1} more) {statistics.marks[clipped[0]]}, and spans "
            f"fewer than k = {k} directions. Give the sensor a larger range, or remove these bursts. {more}".rstrip()
        )
    if len(same) > len(flat):
        raise BurstError(
            f"{statistics.name_of(same[0])} (and {len(same) - 1} more) has no spread: its points are identical, to "
            f"rounding. Remove such bursts, or check that the instrument did not repeat one reading. {more}".rstrip()
        )
    if len(flat):
        i = int(flat[0])
        raise BurstError(
            f"{statistics.name_of(i)} (and {len(flat) - 1} more) spans only {spans[i]} of the k = {k} directions"
            f" (variances {np.array2string(statistics.spectra[i], precision=3)}). Remove it, or lower intrinsic_dim. "
            f"{more}".rstrip()
        )
