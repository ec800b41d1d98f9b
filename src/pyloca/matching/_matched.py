"""`Match`: two fitted models of one phenomenon in one coordinate system."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import is_integer
from pyloca._html import dots_svg, html_card, text_card
from pyloca._sealed import describing
from pyloca.errors import MatchError
from pyloca.estimator import LOCA, Data, training_embedding, transform_unnamed
from pyloca.matching._elastic import some_places
from pyloca.matching._file import Modules, read_bundle, read_match, read_rigid, write_bundle
from pyloca.matching._joint import Joint
from pyloca.matching._prediction import Prediction, predict
from pyloca.matching._rigid import inverse
from pyloca.matching._solution import Candidate
from pyloca.metrics import RigidMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Match", "sentence"]

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
    joint : Joint
        Both instruments in the coordinates of `b`, with what anchors tell of the errors of their encoders.
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
    >>> from pyloca.matching import match
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
    joint: Joint
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
        return self.candidates[self._answered()].rigid

    def _answered(self) -> int:
        """Return the chosen candidate, or refuse."""
        if self.chosen is None:
            raise MatchError(self.refusal())
        return self.chosen

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
        if candidate == self.chosen:
            return self
        return replace(self, chosen=int(candidate), joint=self.joint.placed(0, self.candidates[candidate].rigid))

    def refusal(self) -> str:
        """Say why there is no map, or more than one, and what would help.

        Returns
        -------
        str
        """
        a, b = self.names
        hint = ""
        if self.ambiguous:
            hint = " Or look at candidates and take one with choose(i) (--choose I in the shell)."
        elif self.how == "anchors":
            hint = " If the anchors are right all the same, take their map with choose(0) (--choose 0 in the shell)."
        return f"{a!r} and {b!r} are not matched: {self.reason()}{hint}"

    def reason(self) -> str:
        """Say what `refusal` says, without the instruments and the candidates.

        Returns
        -------
        str
        """
        told = " ".join(map(sentence, self.warnings))
        n, d, best = len(self.possible), self.a.n_components_, self.candidates[0]
        if self.how == "anchors":
            return told
        if n > 1:
            many = "infinitely many ways, as for a disc" if self.continuous else f"{n} ways"
            return (
                f"they fit together in {many}, which {self.how} cannot tell apart. {d + 1} anchors that are not on one "
                f"line or plane would decide. {told}".strip()
            )
        given = int(self.used.sum())
        more = "anchors would tell"
        if given > d:  # on one line, which `warnings` say
            more = "these anchors do not tell"
        elif given:
            more = f"anchors would tell: {d + 1 - given} more than the {given} given"
        return (
            f"no rigid map lays what one has seen onto what the other has seen (best overlap {best.overlap:.0%}, "
            f"p = {best.p_value:.2g} for the same set of states). {told}{' Or they' if told else 'They'} have seen "
            f"different states, or overlapping parts; {more}."
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
        if here != there:
            self._answered()
        models = (self.a, self.b)
        return predict(models[here], models[there], self.joint, Y, here, there)

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
        self._answered()
        return self.b.decode(self.joint.own(self.joint.common(transform_unnamed(self.a, Y)[0], 0), 1))

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
        Z, trust = transform_unnamed((self.a, self.b)[side], Y)
        if side == 1:
            self._answered()
            Z = self.joint.own(self.joint.common(Z, 1), 0)
        return (Z, trust) if return_trust else Z

    def _side(self, name: str) -> int:
        if name not in self.names:
            raise ValueError(f"there is no instrument {name!r}; expected {self.names[0]!r} or {self.names[1]!r}.")
        return self.names.index(name)

    @property
    def standard_error(self) -> float:
        """Of mapped coordinates, per coordinate, on average over the states that `a` was trained on."""
        return self._errors()[0]

    @property
    def rigid_error(self) -> float:
        """The same where only the rigid map is used, and not what anchors tell of the encoders' errors."""
        return self._errors()[1]

    def _errors(self) -> tuple[float, float]:
        places = some_places(self.a)
        there, errors = self.joint.carried(places, 0, 1)
        variance = float(np.trace(errors, axis1=1, axis2=2).mean()) / places.shape[1]
        bent = float(np.square(there - self.joint.maps[0].apply(places)).mean())
        return float(np.sqrt(variance)), float(np.sqrt(variance + bent))

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
        kind = "anchors" if self.how.startswith("anchors") else "bursts as anchors"
        facts.append(("evidence", self.how + (f" ({used} of {n} {kind})" if n else "")))
        if self.chosen is None:
            facts.append(("NO ANSWER", self.refusal()))
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
        if self.chosen is not None:  # or they are part of the refusal
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
        }
        arrays |= self.joint.arrays()
        names = ("overlap", "p_value", "density_p", "anchors_p")
        facts: dict[str, Any] = {
            "candidates": [
                {name: _or_none(getattr(one, name)) for name in names}
                | {"scale": one.rigid.scale, "possible": bool(one.possible)}
                for one in self.candidates
            ],
            "warnings": list(self.warnings),
        }
        facts |= {name: getattr(self, name) for name in ("chosen", "how", "continuous", "scaled")}
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
            joint = read_match(models, arrays, facts)
            (name_a, a), (name_b, b) = models.items()
            told = facts.pop("candidates")
            candidates = tuple(
                Candidate(
                    read_rigid(rotation, shift, one.pop("scale")),
                    possible=bool(one.pop("possible")),
                    **{name: np.nan if value is None else float(value) for name, value in one.items()},
                )
                for one, rotation, shift in zip(told, arrays["rotations"], arrays["shifts"], strict=True)
            )
            evidence = {"residuals": arrays["residuals"], "used": arrays["used"], "joint": joint}
            rest: dict[str, Any] = facts | evidence | {"warnings": tuple(map(str, facts["warnings"]))}
            return cls(a, b, (name_a, name_b), candidates, **rest)


def sentence(word: str) -> str:
    """Return a warning as a sentence."""
    return word[0].upper() + word[1:] + "." * (not word.endswith((".", "?")))


def _rms(values: Array) -> float:
    return float(np.sqrt(np.square(values).mean()))


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
