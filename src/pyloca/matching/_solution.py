"""What comes out of matching two models: candidates, the best first, and both in common coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyloca.estimator import training_embedding
from pyloca.matching._anchors import Anchors
from pyloca.matching._joint import Joint
from pyloca.matching._precision import Instrument
from pyloca.metrics import RigidMap

__all__ = ["PRIOR_DEGREES", "Candidate", "Settings", "Solution", "expected_variance", "relative_size", "unrefined"]

Array = NDArray[np.float64]

PRIOR_DEGREES = 8.0  # observations that the fits' own word on their errors is worth


@dataclass(frozen=True)
class Candidate:
    """One way to lay the coordinates of A onto those of B.

    Attributes
    ----------
    rigid : RigidMap
        Coordinates of A to coordinates of B.
    overlap : float
        Mean of the part of A inside the support of B and of the part of B inside that of A.
    p_value : float
        Of the hypothesis that both cover the same support under this map; nan where that was not tested: with enough
        anchors it need not be so, and candidates that overlap clearly less than the best are not tested.
    density_p : float
        The same for the densities; nan if they were not compared.
    anchors_p : float
        Probability of the residuals of the anchors under this map; nan without anchors.
    possible : bool
        Whether this may be the right one.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca.metrics import RigidMap
    >>> mirror = Candidate(RigidMap(np.diag([-1.0, 1.0]), np.zeros(2)), overlap=0.97, p_value=0.4)
    >>> mirror.possible, mirror.rigid.apply([[1.0, 2.0]])
    (True, array([[-1.,  2.]]))
    """

    rigid: RigidMap
    overlap: float
    p_value: float = np.nan
    density_p: float = np.nan
    anchors_p: float = np.nan
    possible: bool = True


@dataclass(frozen=True)
class Settings:
    """What `match` was asked for."""

    scale: bool
    density: bool
    unevenness: float
    seed: int
    names: tuple[str, str] = ("a", "b")


@dataclass(frozen=True)
class Solution:
    """Candidates, the best first, and what is known about their errors.

    Attributes
    ----------
    candidates : tuple of Candidate
    how : str
        "anchors", "anchors and shape" or "shape".
    residuals : (n,) array
        Distance of each anchor from where it should be, under the best candidate.
    used : (n,) array of bool
        Anchors that were used.
    joint : Joint
        Both instruments in the coordinates of B, by the best candidate.
    continuous : bool
        Whether the possible candidates are samples of a continuum.
    words : tuple of str
        What the user should know.
    """

    candidates: tuple[Candidate, ...]
    how: str
    residuals: Array
    used: NDArray[np.bool_]
    joint: Joint
    continuous: bool = False
    words: tuple[str, ...] = ()


def relative_size(a: Instrument, b: Instrument, scale: bool) -> float:
    """Return about how large coordinates of B are beside those of A; 1 where both σ are known."""
    sizes = [training_embedding(one.model).var(axis=0).sum() for one in (a, b)]
    return float(np.sqrt(sizes[1] / sizes[0])) if scale else 1.0


def unrefined(a: Instrument, b: Instrument, rigid: RigidMap, centre: Array) -> Joint:
    """Return both instruments in the coordinates of B, before anything is refined."""
    maps = rigid, RigidMap(np.eye(len(centre)), np.zeros(len(centre)))
    rough = np.array([a.rough, b.rough])
    return Joint.start(maps, (a.elastic, b.elastic), np.tile(centre, (2, 1)), rough, PRIOR_DEGREES)


def expected_variance(a: Instrument, b: Instrument, anchors: Anchors, settings: Settings) -> Array:
    """Return the variance (n,) of residuals of anchors under a rigid map, per coordinate."""
    size = relative_size(a, b, settings.scale) ** 2
    return np.asarray(size * a.variance_at(anchors.A) + b.variance_at(anchors.B) + anchors.variance)
