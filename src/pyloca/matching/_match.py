"""`match`: two fitted models of one phenomenon, and the rigid map between their coordinates."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from pyloca._arguments import brief, check_count, is_finite, is_integer
from pyloca._html import dots_svg, html_card, text_card
from pyloca._sealed import describing
from pyloca.errors import MatchError, TrustWarning
from pyloca.estimator import LOCA, Data, training_embedding
from pyloca.matching._anchors import Pairs, read_anchors
from pyloca.matching._file import Modules, check_match, read_bundle, read_rigid, read_seams, write_bundle
from pyloca.matching._prediction import Prediction, predict
from pyloca.matching._rigid import inverse, parameter_jacobian
from pyloca.matching._seams import Seams, no_seams
from pyloca.matching._solve import Candidate, Settings, solve
from pyloca.metrics import RigidMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Match", "check_pair", "match"]

Array = NDArray[np.float64]

FORMAT = "pyloca-match"
LISTED = 12  # candidates that are shown


@dataclass(frozen=True)
class Match:
    """Two instruments in one coordinate system, that of the first.

    Attributes
    ----------
    a, b : LOCA
        The fitted models.
    names : (str, str)
        What the instruments are called.
    candidates : tuple of Candidate
        All rigid maps from the coordinates of `a` to those of `b` that were found, the best first. Those that are
        `possible` cannot be told apart by the evidence.
    chosen : int or None
        The candidate that predictions use; None where the evidence does not choose one: see `choose`.
    how : str
        "anchors", "anchors and shape" or "shape": the evidence.
    residuals : (n,) array
        Distance of each anchor from its place under the best candidate, in the coordinates of `b`; nan for anchors that
        one of the instruments has not seen the like of.
    used : (n,) array of bool
        Anchors that were used; the others contradict them, or lie outside what an instrument has seen.
    variance : float
        Of mapped coordinates of `a` about those of `b` for the same state, per coordinate: the errors of both encoders.
    degrees : float
        Degrees of freedom of the errors.
    seams : Seams
        What anchors tell of the errors of both encoders; it is subtracted after the rigid map.
    covariance : (p, p) array
        Of the parameters of the map: turns about `centre`, shifts, and the logarithm of the scale if it is free.
    centre : (d,) array
    continuous : bool
        Whether the possible candidates are samples of infinitely many, as for a disc.
    scaled : bool
        Whether the map may scale: only where a σ is not known.
    warnings : tuple of str
        What should make a user look twice.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import LOCA
    >>> from pyloca.bursts import from_function
    >>> X = np.random.RandomState(0).uniform(size=(200, 2)) * [2, 1]
    >>> def bend(x): return np.c_[x, x[:, 0] * x[:, 1]]
    >>> def turn(x): return np.c_[x[:, 1], 3 - x[:, 0], x[:, 1] ** 2]
    >>> models = [
    ...     LOCA(hidden_layers=(10,), random_state=0).fit(from_function(f, X[rows], 0.01, 20, random_state=0))
    ...     for f, rows in ((bend, slice(0, 100)), (turn, slice(100, 200)))
    ... ]
    >>> found = match(*models, anchors=(bend(X[:4]), turn(X[:4])))
    >>> bool(np.abs(found.a_to_b(bend(X)) - turn(X)).max() < 0.05)
    True
    """

    a: LOCA
    b: LOCA
    names: tuple[str, str]
    candidates: tuple[Candidate, ...]
    chosen: int | None
    how: str
    residuals: Array
    used: NDArray[np.bool_]
    variance: float
    degrees: float
    seams: Seams
    covariance: Array
    centre: Array
    continuous: bool = False
    scaled: bool = False
    warnings: tuple[str, ...] = ()

    # -- which map --------------------------------------------------------------------------------------------------

    @property
    def models(self) -> dict[str, LOCA]:
        """Both models by name."""
        return dict(zip(self.names, (self.a, self.b), strict=True))

    @property
    def possible(self) -> tuple[Candidate, ...]:
        """Candidates that the evidence allows."""
        return tuple(one for one in self.candidates if one.possible)

    @property
    def ambiguous(self) -> bool:
        """Whether the evidence allows more than one candidate."""
        return len(self.possible) > 1

    @property
    def p_value(self) -> float:
        """Of the hypothesis that both instruments have seen the same set of states, under the best candidate."""
        return self.candidates[0].p_value

    @property
    def rigid(self) -> RigidMap:
        """The map from coordinates of `a` to those of `b`; raises `MatchError` where there is not one."""
        if self.chosen is None:
            raise MatchError(self._refusal())
        return self.candidates[self.chosen].rigid

    def choose(self, candidate: int) -> Match:
        """Decide for one of the candidates.

        Parameters
        ----------
        candidate : int
            Position in `candidates`.

        Returns
        -------
        Match
            A copy that predicts by this candidate.

        Raises
        ------
        ValueError
            If there is no such candidate.
        """
        if not is_integer(candidate, 0) or candidate >= len(self.candidates):
            raise ValueError(f"candidate={candidate!r}; expected an integer from 0 to {len(self.candidates) - 1}.")
        return replace(self, chosen=int(candidate))

    def _refusal(self) -> str:
        a, b = self.names
        n = len(self.possible)
        if n > 1:
            many = "infinitely many ways, as for a disc" if self.continuous else f"{n} ways"
            need = f"{self.a.n_components_ + 1} anchors that are not on one line or plane would decide"
            return (
                f"{a!r} and {b!r} fit together in {many}, which {self.how} cannot tell apart. {need}; or look at "
                "candidates and take one with choose(i)."
            )
        reason = " ".join(f"{word[0].upper()}{word[1:]}." for word in self.warnings)
        if self.how == "anchors":
            return f"{a!r} and {b!r} are not matched. {reason}"
        best = self.candidates[0]
        return (
            f"{a!r} and {b!r} are not matched: no rigid map lays what one has seen onto what the other has seen (best "
            f"overlap {best.overlap:.0%}, p = {best.p_value:.2g} for the same set of states). They have seen different "
            f"states, or overlapping parts; anchors would tell. {reason}".strip()
        )

    # -- using it ---------------------------------------------------------------------------------------------------

    def predict(self, Y: Data, source: str, target: str) -> Prediction:
        """Predict readings of one instrument from those of the other, with their errors.

        Parameters
        ----------
        Y : (n, D) array or data frame, or bursts
            Readings of the source instrument.
        source, target : str
            Two of `names`.

        Returns
        -------
        Prediction

        Raises
        ------
        MatchError
            If the evidence allows no map, or several.
        ValueError
            If a name is unknown or the readings cannot be used.
        """
        here, there = self._side(source), self._side(target)
        models, d = (self.a, self.b), self.a.n_components_
        itself = here == there
        return predict(
            models[here],
            models[there],
            RigidMap(np.eye(d), np.zeros(d)) if itself else self.rigid,
            Y,
            seams=no_seams(0.0, d) if itself else self.seams,
            covariance=np.zeros_like(self.covariance) if itself else self.covariance,
            centre=self.centre,
            degrees=self.degrees,
            scaled=self.scaled,
            backward=here == 1 and not itself,
        )

    def a_to_b(self, Y: Data) -> Array:
        """Predict readings of `b` from readings of `a`.

        Parameters
        ----------
        Y : (n, D) array or data frame, or bursts

        Returns
        -------
        (n, D) array
            See `predict` for errors and trust.

        Raises
        ------
        MatchError
            If the evidence allows no map, or several.
        """
        places = self.rigid.apply(self.a.transform(Y))
        return self.b.decode(places - self.seams.errors(0, places)[0])

    def b_to_a(self, Y: Data) -> Array:
        """Predict readings of `a` from readings of `b`.

        Parameters
        ----------
        Y : (n, D) array or data frame, or bursts

        Returns
        -------
        (n, D) array
            See `predict` for errors and trust.

        Raises
        ------
        MatchError
            If the evidence allows no map, or several.
        """
        return self.a.decode(self.coordinates(Y, self.names[1]))

    @overload
    def coordinates(self, Y: Data, instrument: str, *, return_trust: Literal[False] = ...) -> Array: ...

    @overload
    def coordinates(self, Y: Data, instrument: str, *, return_trust: Literal[True]) -> tuple[Array, Array]: ...

    def coordinates(self, Y: Data, instrument: str, *, return_trust: bool = False) -> Array | tuple[Array, Array]:
        """Compute coordinates in the system of the first instrument.

        Parameters
        ----------
        Y : (n, D) array or data frame, or bursts
        instrument : str
            The one that measured them: one of `names`.
        return_trust : bool, default=False
            Also return the trust of that instrument in each reading.

        Returns
        -------
        Z : (n, d) array
        trust : (n,) array
            Only if `return_trust` is true.

        Raises
        ------
        MatchError
            If the evidence allows no map, or several, and readings are of the second instrument.
        """
        side = self._side(instrument)
        Z, trust = (self.a, self.b)[side].transform(Y, return_trust=True)
        if side == 1:
            Z = inverse(self.rigid).apply(self.seams.undone(0, Z))
        return (Z, trust) if return_trust else Z

    def _side(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"there is no instrument {name!r}; expected {self.names[0]!r} or {self.names[1]!r}.")
        return self.names.index(name)

    @property
    def standard_error(self) -> float:
        """Of mapped coordinates, per coordinate, on average over the states that `a` was trained on."""
        places = self.candidates[self.chosen or 0].rigid.apply(training_embedding(self.a))
        slopes = parameter_jacobian(places, self.centre, scale=self.scaled)
        weights, rest = self.seams.weights(0, places)
        if len(self.seams.places):
            known = parameter_jacobian(self.seams.places, self.centre, scale=self.scaled)
            slopes = slopes - np.einsum("nm,mdp->ndp", weights, known)
        along = np.einsum("ndp,pq,ndq->", slopes, self.covariance, slopes) / (slopes.shape[0] * slopes.shape[1])
        return float(np.sqrt(rest.mean() + along))

    @property
    def rigid_error(self) -> float:
        """The same where only the rigid map is used, and the seams stay."""
        places = self.candidates[self.chosen or 0].rigid.apply(training_embedding(self.a))
        slopes = parameter_jacobian(places, self.centre, scale=self.scaled)
        covariance = self.covariance
        if len(self.seams.places):  # by least squares, for which residuals are independent
            known = parameter_jacobian(self.seams.places, self.centre, scale=self.scaled)
            covariance = self.variance * np.linalg.pinv(np.einsum("ndp,ndq->pq", known, known))
        along = np.einsum("ndp,pq,ndq->", slopes, covariance, slopes) / (slopes.shape[0] * slopes.shape[1])
        return float(np.sqrt(self.variance + along))

    # -- looking at it ----------------------------------------------------------------------------------------------

    def facts(self) -> list[tuple[str, str]]:
        """List what is known about the match, as pairs of a name and a sentence.

        Returns
        -------
        list of (str, str)
        """
        a, b = self.names
        facts = [("instruments", f"{a!r} (D = {self.a.n_features_in_}) and {b!r} (D = {self.b.n_features_in_})")]
        used, n = int(self.used.sum()), len(self.used)
        facts.append(("evidence", self.how + (f" ({used} of {n} anchors)" if n else "")))
        if self.chosen is None:
            facts.append(("NO ANSWER", self._refusal()))
        else:
            rigid = self.rigid
            turned = "with a reflection" if np.linalg.det(rigid.rotation) < 0 else "without a reflection"
            scale = f", scale {rigid.scale:.4g}" if self.scaled else ""
            facts.append(("map", f"candidate {self.chosen}, {turned}{scale}"))
            facts.append(("standard error", f"{self.standard_error:.3g} per coordinate, in the units of {b!r}"))
        if used:
            facts.append(("residuals", f"{_rms(self.residuals[self.used]):.3g} (root mean square over anchors used)"))
        for i, one in enumerate(self.candidates[:LISTED]):
            tested = "" if np.isnan(one.p_value) else f", p = {one.p_value:.2g} for the same states"
            dense = "" if np.isnan(one.density_p) else f", p = {one.density_p:.2g} for the same density"
            word = "possible" if one.possible else "not possible"
            facts.append(("candidates", f"{i}: overlap {one.overlap:.1%}{tested}{dense}: {word}"))
        facts += [("WARNING", word) for word in self.warnings]
        return facts

    def __str__(self) -> str:
        return text_card(self.facts())

    def _repr_html_(self) -> str:
        placed = self.candidates[self.chosen or 0].rigid.apply(training_embedding(self.a))
        other = training_embedding(self.b)
        both = np.concatenate([placed, other])
        of_b = np.arange(len(both)) >= len(placed)
        label = f"{self.names[0]} in blue and {self.names[1]} in orange, in the coordinates of {self.names[1]}"
        return html_card(f"Match({self.names[0]}, {self.names[1]})", self.facts(), dots_svg(both, of_b, label))

    def plot(self) -> Figure:
        """Draw what both instruments have seen in the coordinates of the first, with the anchors' residuals.

        Returns
        -------
        matplotlib.figure.Figure
            One panel; of an ambiguous match, one for each of the first candidates.
        """
        from pyloca.plots import plot_match

        shown = [self.chosen] if self.chosen is not None else list(range(min(8, len(self.candidates))))
        own, other = training_embedding(self.a), training_embedding(self.b)
        panels = []
        for i in shown:
            one = self.candidates[i]
            words = f"candidate {i}: overlap {one.overlap:.0%}" + ("" if one.possible else ", not possible")
            panels.append((words, inverse(one.rigid).apply(other)))
        return plot_match(own, panels, self.names)

    # -- files ------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write both models and the match to one `.safetensors` file, atomically.

        Parameters
        ----------
        path : path

        Returns
        -------
        Path
            The file that was written.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        arrays = {
            "rotations": np.stack([one.rigid.rotation for one in self.candidates]),
            "shifts": np.stack([one.rigid.shift for one in self.candidates]),
            "residuals": self.residuals,
            "used": self.used,
            "covariance": self.covariance,
            "centre": self.centre,
        }
        arrays |= {f"seams.{name}": array for name, array in vars(self.seams).items()}
        names = ("overlap", "p_value", "density_p", "anchors_p")
        facts: dict[str, Any] = {
            "candidates": [
                {name: _or_none(getattr(one, name)) for name in names}
                | {"scale": one.rigid.scale, "possible": bool(one.possible)}
                for one in self.candidates
            ],
            "warnings": list(self.warnings),
        }
        facts |= {
            name: getattr(self, name) for name in ("chosen", "how", "variance", "degrees", "continuous", "scaled")
        }
        return write_bundle(path, FORMAT, self.models, arrays, facts)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, networks: Modules | None = None) -> Match:
        """Read a match that `save` wrote.

        Parameters
        ----------
        path : path
        networks : mapping of str to (module, module), optional
            Your own encoder and decoder by the name of the instrument, for models that were fitted with such; None in a
            pair stands for a network of pyloca.

        Returns
        -------
        Match

        Raises
        ------
        ModelFileError
            If the file is not a match, or was altered or damaged.
        """
        models, arrays, facts = read_bundle(path, FORMAT, networks)
        with describing("a match", os.fspath(path)):
            check_match(models, arrays, facts)
            (name_a, a), (name_b, b) = models.items()
            told = facts.pop("candidates")
            candidates = tuple(
                Candidate(
                    read_rigid(rotation, shift, one.pop("scale")),
                    possible=bool(one.pop("possible")),
                    **{name: np.nan if value is None else float(value) for name, value in one.items()},
                )
                for one, rotation, shift in zip(told, arrays.pop("rotations"), arrays.pop("shifts"), strict=True)
            )
            seams = read_seams(arrays, a.n_components_, 2)
            rest: dict[str, Any] = facts | arrays | {"seams": seams, "warnings": tuple(map(str, facts["warnings"]))}
            return cls(a, b, (name_a, name_b), candidates, **rest)


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
    instrument has seen; wrong ones among them are found and left out. What is left between anchors after the map is the
    error of both encoders, a smooth field: it is interpolated (kriging) and subtracted. Fewer are completed by the
    shape of what both have seen, and without any the shapes alone are laid onto each other, which needs that both have
    seen the same set of states. Where that leaves several answers, all are listed in `candidates`, and predictions are
    refused until one is chosen.

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
        If there is no answer, or more than one, or anchors contradict each other.

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
    found = solve(a, b, pairs, Settings(scaled, bool(density), float(unevenness), int(random_state)))
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
        found.variance,
        found.degrees,
        found.seams,
        found.covariance,
        found.centre,
        found.continuous,
        scaled,
        found.words,
    )
    told = (*made.warnings, *([made._refusal()] if made.chosen is None else []))
    for message in dict.fromkeys(told):
        warnings.warn(message, TrustWarning, stacklevel=2)
    return made


def check_pair(a: Any, b: Any, names: Any) -> tuple[str, str]:
    """Refuse what are not two fitted models of the same number of components with two names."""
    if not isinstance(names, (tuple, list)) or len(names) != 2 or names[0] == names[1]:
        raise ValueError(f"names must be two different names; got {brief(names)}.")
    for model, name in ((a, names[0]), (b, names[1])):
        if not isinstance(model, LOCA):
            raise TypeError(f"instrument {name!r} is a {type(model).__name__}; expected a fitted LOCA.")
        check_is_fitted(model)
    if a is b:
        raise ValueError("both instruments are the same model; expected two.")
    if a.n_components_ != b.n_components_:
        raise MatchError(
            f"instrument {names[0]!r} has d = {a.n_components_} coordinates and {names[1]!r} has {b.n_components_}; "
            "only equal ones can be laid onto each other. pyloca.matching.shared finds what they have in common."
        )
    return str(names[0]), str(names[1])


def _rms(values: Array) -> float:
    return float(np.sqrt(np.square(values).mean()))


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
