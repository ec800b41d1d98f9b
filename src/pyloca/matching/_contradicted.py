"""Anchors that agree with each other, and not with the shapes: all of them may be wrong in the same way.

Few anchors on a regular figure, with the rows of one table in another order, fit a wrong map as well as a right one.
The shapes tell, if they alone have one answer and it is another map. But instruments that have seen different parts of
the same form look like this as well, and there anchors are right. So the shapes are believed where a common mistake in
the tables explains the anchors under their map: rows in another order, or two columns exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyloca.estimator import LOCA
from pyloca.matching._anchors import Anchors
from pyloca.matching._mistakes import of_columns, of_rows
from pyloca.matching._register import Registered, Registration
from pyloca.matching._robust import robust_procrustes
from pyloca.matching._solution import PRIOR_DEGREES
from pyloca.metrics import RigidMap
from pyloca.thresholds import CONTRADICTED, SAME_STATES

__all__ = ["Contradiction", "contradiction"]

Array = NDArray[np.float64]

NEARER = 0.5  # of the distance between both maps: so near to that of the shapes are anchors without their mistake
MOST = 0.75  # of the pairs, at least, that belong together without the mistake; a shifted table has some that do not


@dataclass(frozen=True)
class Contradiction:
    """What the shapes say against anchors.

    Attributes
    ----------
    explained : bool
        Whether a mistake in the tables would make the anchors agree with it.
    words : str
    """

    explained: bool
    words: str


def contradiction(
    models: tuple[LOCA, LOCA],
    names: tuple[str, str],
    anchors: Anchors,
    expected: Array,
    rigid: RigidMap,
    shape: Registration,
) -> Contradiction | None:
    """Ask the shapes about the map `rigid` of anchors, whose residuals have the variance `expected` (n,)."""
    n, d = anchors.A.shape
    if shape.same(rigid, brief=True).p_value >= SAME_STATES:
        return None
    possible = [one for one in shape.search() if one.possible]
    if len(possible) != 1 or possible[0].p_value < SAME_STATES:
        return None
    (other,) = possible
    if not _worse(rigid, other, shape):
        return None
    apart = shape.distance(rigid, other.rigid)
    told = (
        f"the shapes contradict the anchors: under the map of these {n} the sets overlap by "
        f"{shape.overlap(rigid):.0%}, and under another one, {apart:.3g} away, by {other.overlap:.0%} "
        f"(p = {other.p_value:.2g} for the same set of states)"
    )
    for mistake, A, B in (*of_rows(names, anchors, other.rigid), *of_columns(models, names, anchors)):
        without = _agreed(A, B, float(expected.mean()), shape)
        if without and shape.distance(without, other.rigid) < NEARER * apart:
            told += f". With {mistake}, they fit that one: look at the tables"
            return Contradiction(explained=True, words=told)
    # Different parts of the same form are rarer than this, and many anchors are seldom all wrong.
    if n <= d + 2 and _worse(shape.refined(rigid), other, shape):
        told += ". Have the instruments seen different parts of the same form? If not, check each pair of anchors"
        return Contradiction(explained=False, words=told)
    return None


def _worse(rigid: RigidMap, other: Registered, shape: Registration) -> bool:
    """Whether the sets overlap clearly less than under the other map."""
    overlap = shape.overlap(rigid)
    return overlap < other.overlap and not shape.judged([other, Registered(rigid, overlap)])[1].possible


def _agreed(A: Array, B: Array, expected: float, shape: Registration) -> RigidMap | None:
    """Return the map of pairs that belong together, but for a few, and that lays the shapes onto each other."""
    n, d = A.shape
    if n < d + 1:
        return None
    prior = np.full(n, expected)
    found = robust_procrustes(A, B, np.ones(n), prior, PRIOR_DEGREES, scale=shape.scale, seed=shape.seed)
    if found.right.sum() < max(d + 1, MOST * n) or found.variance > CONTRADICTED * expected:
        return None
    same = shape.same(shape.refined(found.rigid), brief=True).p_value >= SAME_STATES
    return found.rigid if same else None
