"""`shared`: which coordinates two instruments have in common, when each also sees something of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import check_count
from pyloca._html import html_card, text_card
from pyloca.errors import MatchError
from pyloca.estimator import LOCA, Data, transform_unnamed
from pyloca.matching._anchors import Pairs, check_fitted, read_anchors
from pyloca.thresholds import NOT_SHARED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Shared", "canonical", "shared"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Shared:
    """Directions of two instruments' coordinates that move together.

    Attributes
    ----------
    a, b : LOCA
    names : (str, str)
    correlations : (r,) array
        Canonical correlations, descending; r is the smaller of both numbers of components.
    p_values : (r,) array
        Probability of so much correlation in this and all further directions if readings were paired at random.
    n_shared : int
        How many directions are common: those before the first whose p-value is not below 0.01.
    directions_a : (r, d_a) array
    directions_b : (r, d_b) array
        Unit vectors in the coordinates of each instrument, sensor-free; the first `n_shared` are common.
    slopes : (r,) array
        How far coordinates of `b` move when those of `a` move by 1, along these directions: 1 for a coordinate that
        both see, with the same σ.
    centre_a, centre_b : arrays
        Means of the anchors.

    Examples
    --------
    See `shared`.
    """

    a: LOCA
    b: LOCA
    names: tuple[str, str]
    correlations: Array
    p_values: Array
    n_shared: int
    directions_a: Array
    directions_b: Array
    slopes: Array
    centre_a: Array
    centre_b: Array

    def coordinates(self, Y: Data, instrument: str) -> Array:
        """Compute the common coordinates of readings.

        Parameters
        ----------
        Y : (n, D) array or data frame, or bursts
        instrument : str
            The one that measured them: one of `names`.

        Returns
        -------
        (n, n_shared) array
            In the units of the instrument's own coordinates; equal for both, up to `slopes` and errors.

        Raises
        ------
        MatchError
            If the instruments have nothing in common.
        ValueError
            If the name is unknown.
        """
        if instrument not in self.names:
            raise ValueError(f"there is no instrument {instrument!r}; expected one of {self.names}.")
        if not self.n_shared:
            raise MatchError(f"{self.names[0]!r} and {self.names[1]!r} have no coordinate in common by these anchors.")
        first = instrument == self.names[0]
        model, centre = (self.a, self.centre_a) if first else (self.b, self.centre_b)
        directions = self.directions_a if first else self.directions_b
        return np.asarray((transform_unnamed(model, Y)[0] - centre) @ directions[: self.n_shared].T)

    def _facts(self) -> list[tuple[str, str]]:
        lines = [
            (
                "instruments",
                f"{self.names[0]!r} (d = {self.a.n_components_}), {self.names[1]!r} (d = {self.b.n_components_})",
            ),
            ("in common", f"{self.n_shared} of {len(self.correlations)} directions"),
        ]
        for i, (r, p, slope) in enumerate(zip(self.correlations, self.p_values, self.slopes, strict=True)):
            word = "common" if i < self.n_shared else "not more than chance"
            lines.append(("directions", f"{i}: correlation {r:.3f}, slope {slope:.3g}, p = {p:.2g}: {word}"))
        return lines

    def __str__(self) -> str:
        return text_card(self._facts())

    def _repr_html_(self) -> str:
        return html_card(f"Shared({self.names[0]}, {self.names[1]})", self._facts())

    def plot(self) -> Figure:
        """Draw the correlation of each direction with its p-value.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pyloca.plots import plot_correlations

        return plot_correlations(self.correlations, self.p_values, self.n_shared)


def shared(
    a: LOCA,
    b: LOCA,
    anchors: Pairs,
    *,
    names: tuple[str, str] = ("a", "b"),
    n_permutations: int = 999,
    random_state: int = 0,
) -> Shared:
    """Find the coordinates that two instruments have in common.

    Canonical correlations of the paired encodings, with a permutation test. It finds coordinates that are flat in both:
    if the states are (x, u) for one instrument and (x, w) for the other, with u and w moving independently of x, then x
    is a linear part of either embedding and is found with correlation and slope near 1. It cannot find a common
    coordinate that is curved in one of them, nor tell a common coordinate from two that merely move together in these
    anchors: a correlation well below 1, or a slope other than 1, says that something else goes on.

    Parameters
    ----------
    a, b : LOCA
        Fitted; their numbers of components may differ.
    anchors : pair of arrays, or sequence of pairs of ids
        States that both instruments have measured, as for `match`; more than d_a + d_b + 1 of them.
    names : (str, str), default=("a", "b")
        What to call the instruments.
    n_permutations : int, default=999
        No p-value is below 1 / (n_permutations + 1).
    random_state : int, default=0
        Seed of the permutations.

    Returns
    -------
    Shared

    Raises
    ------
    ValueError
        If a model is not fitted or given twice, or anchors do not make sense or are too few.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import LOCA
    >>> from pyloca.bursts import from_function
    >>> X = np.random.RandomState(0).uniform(size=(120, 3))
    >>> def left(x): return np.c_[x[:, 0], x[:, 1], x[:, 0] * x[:, 1]]
    >>> def right(x): return np.c_[x[:, 0] + x[:, 1], x[:, 1]]
    >>> a, b = (
    ...     LOCA(hidden_layers=(10,), random_state=0).fit(from_function(f, X[:, use], 0.01, 20, random_state=0))
    ...     for f, use in ((left, [0, 1]), (right, [0, 2]))
    ... )
    >>> found = shared(a, b, (left(X[:30, [0, 1]]), right(X[:30, [0, 2]])))
    >>> found.n_shared, bool(found.correlations[0] > 0.99)
    (1, True)
    """
    check_count("n_permutations", n_permutations, 99)
    check_count("random_state", random_state, 0)
    for model, name in zip((a, b), names, strict=True):
        check_fitted(model, name)
    if a is b:
        raise ValueError("both instruments are the same model; expected two.")
    pairs = read_anchors(a, b, anchors, None, names)
    n, need = len(pairs), a.n_components_ + b.n_components_ + 2
    if n < need:
        raise ValueError(f"{n} anchors are too few for directions of {need - 2} coordinates; expected at least {need}.")
    correlations, left, right = canonical(pairs.A, pairs.B)
    p_values = _permuted(pairs.A, pairs.B, n_permutations, random_state)
    chance = np.flatnonzero(p_values >= NOT_SHARED)
    n_shared = int(chance[0]) if len(chance) else len(p_values)
    centres = pairs.A.mean(axis=0), pairs.B.mean(axis=0)
    scores = (pairs.A - centres[0]) @ left.T, (pairs.B - centres[1]) @ right.T
    slopes = scores[1].std(axis=0) / scores[0].std(axis=0)  # the symmetric one: neither is free of errors
    return Shared(a, b, names, correlations, p_values, n_shared, left, right, slopes, *centres)


def canonical(A: Array, B: Array) -> tuple[Array, Array, Array]:
    """Return canonical correlations (r,) and directions (r, d_a), (r, d_b), unit vectors, of paired rows."""
    (qa, ta), (qb, tb) = _whitened(A), _whitened(B)
    left, values, right = np.linalg.svd(qa.T @ qb, full_matrices=False)
    directions: list[Any] = [(ta @ left).T, (tb @ right.T).T]
    directions = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in directions]
    return np.clip(values, 0, 1), directions[0], directions[1]


def _whitened(points: Array) -> tuple[Array, Array]:
    """Return centred points with orthonormal columns, (n, d), and the map (d, d) that makes them so."""
    centred = points - points.mean(axis=0)
    _, singular, right = np.linalg.svd(centred, full_matrices=False)
    if singular[-1] <= 1e-10 * singular[0]:
        raise ValueError("the anchors do not span all coordinates of an instrument; choose them in more places.")
    transform = right.T / singular
    return centred @ transform, transform


def _permuted(A: Array, B: Array, n_permutations: int, seed: int) -> Array:
    """Test each direction after those before it have been removed (Winkler et al. 2020), (r,)."""
    (qa, _), (qb, _) = _whitened(A), _whitened(B)
    left, values, right = np.linalg.svd(qa.T @ qb, full_matrices=False)
    u, v = qa @ left, qb @ right.T  # (n, r)
    random = np.random.RandomState(seed)
    p_values = np.empty(len(values))
    for i in range(len(values)):
        rest_u, rest_v = u[:, i:], v[:, i:]
        observed = _wilks(values[i:])
        more = 0
        for _ in range(n_permutations):
            drawn = np.linalg.svd(rest_u.T @ rest_v[random.permutation(len(v))], compute_uv=False)
            more += _wilks(drawn) >= observed
        p_values[i] = (1 + more) / (1 + n_permutations)
    return np.maximum.accumulate(p_values)


def _wilks(values: Array) -> float:
    """Return −Σ log(1 − r²)."""
    return float(-np.log1p(-np.square(np.minimum(values, 1 - 1e-12))).sum())
