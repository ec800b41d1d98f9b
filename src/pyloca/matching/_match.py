"""`match`: find the rigid map between the coordinates of two fitted models of one phenomenon."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pyloca._arguments import brief, check_count, is_finite
from pyloca.errors import MatchError, TrustWarning
from pyloca.estimator import LOCA
from pyloca.matching._anchors import Pairs, check_fitted, read_anchors
from pyloca.matching._matched import Match
from pyloca.matching._precision import look
from pyloca.matching._solution import Settings
from pyloca.matching._solve import solve

__all__ = ["check_pair", "match"]


def match(
    a: LOCA,
    b: LOCA,
    anchors: Pairs | None = None,
    *,
    weights: ArrayLike | None = None,
    names: tuple[str, str] = ("a", "b"),
    density: bool = False,
    unevenness: float = 3.0,
    random_state: int = 0,
) -> Match:
    """Find the rigid map between the coordinates of two instruments that observe the same phenomenon.

    Coordinates of both are isometric to the same states, so they differ by a rotation or reflection, a shift, and a
    scale where a σ is not known. d + 1 anchors or more fix the map by orthogonal Procrustes, whatever else each
    instrument has seen; wrong ones among them are found and left out. Where all are wrong in the same way, as with the
    rows of one table in another order, the shapes may tell; then nothing is chosen. What is left between anchors after
    the map is the error of both encoders, a smooth field: it is interpolated (kriging) and subtracted. Fewer are
    completed by the shape of what both have seen, and without any the shapes alone are laid onto each other, which
    needs that both have seen the same set of states. Where that leaves several answers, all are listed in `candidates`,
    and predictions are refused until one is chosen.

    Parameters
    ----------
    a, b : LOCA
        Fitted, with the same number of components. Coordinates of `a` are those of the match.
    anchors : pair of arrays, or sequence of pairs of ids; optional
        States that both instruments have measured: simultaneous readings (n, D_a) and (n, D_b), also as bursts; or
        pairs of burst ids of the two fits.
    weights : (n,) array, optional
        How sure each anchor is, as inverse variances.
    names : (str, str), default=("a", "b")
        What to call the instruments.
    density : bool, default=False
        Whether both have seen each state equally often, so that densities may tell candidates apart as shapes do.
    unevenness : float, default=3
        How many times as often, relative to the other, an instrument may have visited some states, where shapes are
        compared.
    random_state : int, default=0
        Seed of subsets and random labels. The same models and anchors give the same match.

    Returns
    -------
    Match

    Raises
    ------
    MatchError
        If the models have different numbers of components, or no anchor lies where both were fitted; also a
        `ValueError`.
    ValueError
        If a model is not fitted or given twice, or anchors do not make sense.

    Warns
    -----
    TrustWarning
        If there is no answer, or more than one, or anchors contradict each other or the shapes.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import LOCA
    >>> from pyloca.bursts import from_function
    >>> def instrument(seed, f):
    ...     X = np.random.RandomState(seed).uniform(size=(250, 2)) * [2, 3]
    ...     X = X[(X[:, 0] < 0.8) | (X[:, 1] < 1)]  # an L, one arm longer than the other
    ...     return LOCA(hidden_layers=(10,), random_state=0).fit(from_function(f, X, 0.01, 20, random_state=seed))
    >>> a = instrument(0, lambda x: np.c_[x, x[:, 0] * x[:, 1]])
    >>> b = instrument(1, lambda x: np.c_[x[:, 1], 3 - x[:, 0]])
    >>> found = match(a, b)  # without anchors
    >>> found.how, found.chosen
    ('shape', 0)
    """
    names = check_pair(a, b, names)
    check_count("random_state", random_state, 0)
    if not is_finite(unevenness) or unevenness < 1:
        raise ValueError(f"unevenness must be a number ≥ 1; got {brief(unevenness)}.")
    if weights is not None and anchors is None:
        raise ValueError("weights are of anchors, and there are none.")
    pairs = None if anchors is None else read_anchors(a, b, anchors, weights, names)
    scaled = not (a.burst_std_known_ and b.burst_std_known_)
    settings = Settings(scaled, bool(density), float(unevenness), int(random_state), names)
    found = solve(look(a), look(b), pairs, settings)
    possible = [i for i, one in enumerate(found.candidates) if one.possible]
    made = Match(
        a,
        b,
        names,
        found.candidates,
        possible[0] if len(possible) == 1 else None,
        found.how,
        found.residuals,
        found.used,
        found.joint,
        found.continuous,
        scaled,
        found.words,
    )
    for message in made.warnings if made.chosen is not None else (made.refusal(),):
        warnings.warn(message, TrustWarning, stacklevel=2)
    return made


def check_pair(a: Any, b: Any, names: Any) -> tuple[str, str]:
    """Refuse what are not two fitted models of the same number of components with two names."""
    if not isinstance(names, (tuple, list)) or len(names) != 2 or names[0] == names[1]:
        raise ValueError(f"names must be two different names; got {brief(names)}.")
    for model, name in ((a, names[0]), (b, names[1])):
        check_fitted(model, name)
    if a is b or _same_fit(a, b):
        raise ValueError(
            f"instruments {names[0]!r} and {names[1]!r} are the same model; expected two. Give each instrument once."
        )
    if a.n_components_ != b.n_components_:
        raise MatchError(
            f"instrument {names[0]!r} has d = {a.n_components_} coordinates and {names[1]!r} has {b.n_components_}; "
            "only equal ones can be laid onto each other. pyloca.matching.shared finds what they have in common."
        )
    return str(names[0]), str(names[1])


def _same_fit(a: LOCA, b: LOCA) -> bool:
    """Whether both are copies of one fit, such as a file that was loaded twice."""
    return a.n_features_in_ == b.n_features_in_ and np.array_equal(a.embedding_, b.embedding_, equal_nan=True)
