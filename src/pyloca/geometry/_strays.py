"""Bursts to leave out before anything is trained: too short, flat, clipped, or apart from all others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry._apart import find_apart
from pyloca.geometry._odd import find_odd
from pyloca.geometry._refusals import allowed_strays, may_be_left_out
from pyloca.geometry._statistics import BurstStatistics
from pyloca.thresholds import FEW

__all__ = ["find_strays"]


def find_strays(
    statistics: BurstStatistics,
    max_strays: float,
    *,
    bursts: Bursts | None = None,
    also: Sequence[tuple[NDArray[np.bool_], str]] = (),
) -> dict[int, str]:
    """Find the bursts that must be left out of a fit, each with the reason.

    Left out are bursts that have no k tangents (too few points, no spread, flat), those that are no piece of the
    surface (`find_odd`), bursts with a clipped sensor, and bursts that lie apart from the others. If more are no piece
    of the surface than may be left out, they are kept for the checks of the fit to name; so are clipped ones, since
    most of what they tell is right (`BurstStatistics.marks` still names them), and larger pieces that lie apart, which
    the alignment refuses.

    Parameters
    ----------
    statistics : BurstStatistics
        As ``from_bursts(..., max_strays=max_strays)`` returns them.
    max_strays : float
        Fraction of the bursts that may be left out, plus one, so that small sets may have a stray. 0: none.
    bursts : Bursts, optional
        The same, raw, which show more of what is odd.
    also : sequence of ((N,) array of bool, str)
        Further bursts to leave out, and why.

    Returns
    -------
    dict of int to str
        Positions and reasons, in the order of the bursts.

    Raises
    ------
    BurstError
        If more bursts cannot be used than may be left out.

    Examples
    --------
    >>> from pyloca import datasets
    >>> points = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts.to_array()
    >>> points[7] = points[7, 0]
    >>> statistics = BurstStatistics.from_bursts(points, max_strays=0.01)
    >>> find_strays(statistics, 0.01)
    {7: 'has no spread: its points are identical, to rounding'}
    """
    allowed = allowed_strays(len(statistics), max_strays)
    if not allowed:
        return {}
    found: dict[int, str] = {}
    for mask, reason in also:
        found |= {int(row): reason for row in np.flatnonzero(mask)}
    found |= statistics.unusable()
    if len(found) > allowed:
        first = min(found)
        raise BurstError(
            f"{len(found)} of {len(statistics)} bursts cannot be used: {statistics.name_of(first)} {found[first]} (and "
            f"{len(found) - 1} more). {may_be_left_out(allowed, max_strays)} Look at these bursts, and remove them."
        )
    usable = np.delete(np.arange(len(statistics)), sorted(found))
    odd = find_odd(statistics[usable], None if bursts is None else bursts[usable])
    if len(found) + len(odd) <= allowed:
        found |= {int(usable[row]): reason for row, reason in odd.items()}
    clipped = {int(row): str(statistics.marks[row]) for row in np.flatnonzero(statistics.marks != "")}
    if len(clipped | found) <= allowed:
        found = clipped | found
    sound = np.delete(np.arange(len(statistics)), sorted(found))
    apart = find_apart(statistics[sound], allowed - len(found)) if len(sound) >= FEW and len(found) < allowed else {}
    found |= {int(sound[row]): reason for row, reason in apart.items()}
    return dict(sorted(found.items()))
