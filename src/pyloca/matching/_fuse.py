"""`fuse`: many instruments, each of which has seen a part, in one coordinate system."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import check_count
from pyloca._html import dots_svg, html_card, text_card
from pyloca._sealed import describing
from pyloca.errors import MatchError, TrustWarning
from pyloca.estimator import LOCA, Data, training_embedding, transform_unnamed
from pyloca.matching._anchors import Pairs, read_anchors
from pyloca.matching._doubts import contradicted, refuse_torn, too_close
from pyloca.matching._elastic import some_places
from pyloca.matching._file import Modules, read_bundle, read_fusion, write_bundle
from pyloca.matching._joint import Edge, Joint, refine
from pyloca.matching._match import check_pair, match
from pyloca.matching._matched import sentence
from pyloca.matching._precision import Instrument, look
from pyloca.matching._prediction import Prediction, predict
from pyloca.matching._rigid import freedom
from pyloca.matching._solution import PRIOR_DEGREES
from pyloca.matching._synchronize import connected_to, synchronize
from pyloca.metrics import RigidMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Fusion", "fuse"]

Array = NDArray[np.float64]

FORMAT = "pyloca-fusion"
TAILS = 4.0  # of distances at anchors: some lie in gaps between bursts, where encoders are wrong by far more


@dataclass(frozen=True)
class Fusion:
    """Instruments in one coordinate system, that of the first.

    Attributes
    ----------
    models : dict of str to LOCA
        The fitted models by name.
    unconnected : tuple of str
        Instruments that no anchors connect with the first; they have no common coordinates.
    joint : Joint
        Maps and displacements of all connected instruments, refined together, and their errors.
    overlaps : dict of (str, str) to (int, float, float)
        For each connected pair: anchors used, and their root mean square distance by rigid maps alone and by all.
    warnings : tuple of str
        What should make a user look twice.

    Examples
    --------
    See `fuse`.
    """

    models: dict[str, LOCA]
    unconnected: tuple[str, ...]
    joint: Joint
    overlaps: dict[tuple[str, str], tuple[int, float, float]]
    warnings: tuple[str, ...] = ()

    @property
    def connected(self) -> tuple[str, ...]:
        """Instruments with common coordinates, in the order of `joint`."""
        return tuple(name for name in self.models if name not in self.unconnected)

    @property
    def maps(self) -> dict[str, RigidMap]:
        """Rigid part of the way from the coordinates of each connected instrument to the common ones."""
        return dict(zip(self.connected, self.joint.maps, strict=True))

    @property
    def standard_errors(self) -> dict[str, float]:
        """Standard error of the common coordinates of each connected instrument, per coordinate, over its bursts.

        Bursts see lengths and not bends: it is large for what hangs on by a narrow neck, without anchors beyond.
        """
        errors = [self.joint.errors(some_places(self.models[name]), i) for i, name in enumerate(self.connected)]
        return {name: _root_mean(one) for name, one in zip(self.connected, errors, strict=True)}

    # -- using it ---------------------------------------------------------------------------------------------------

    @overload
    def coordinates(self, Y: Data, instrument: str, *, return_trust: Literal[False] = ...) -> Array: ...

    @overload
    def coordinates(self, Y: Data, instrument: str, *, return_trust: Literal[True]) -> tuple[Array, Array]: ...

    def coordinates(self, Y: Data, instrument: str, *, return_trust: bool = False) -> Array | tuple[Array, Array]:
        """Compute common coordinates of readings.

        Parameters
        ----------
        Y : (n, D) array or data frame, or bursts
        instrument : str
            The one that measured them.
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
            If the instrument is not connected.
        ValueError
            If there is no such instrument.
        """
        i = self._index(instrument)
        Z, trust = transform_unnamed(self.models[instrument], Y)
        there = self.joint.common(Z, i)
        return (there, trust) if return_trust else there

    def predict(self, Y: Data, source: str, target: str) -> Prediction:
        """Predict readings of one instrument from those of another, with their errors.

        Parameters
        ----------
        Y : (n, D) array or data frame, or bursts
            Readings of the source instrument.
        source, target : str

        Returns
        -------
        Prediction
            Its trust is near 0 where the target has not been.

        Raises
        ------
        MatchError
            If one of them is not connected.
        ValueError
            If there is no such instrument.
        """
        i, j = self._index(source), self._index(target)
        return predict(self.models[source], self.models[target], self.joint, Y, i, j)

    def _index(self, instrument: str) -> int:
        if instrument not in self.models:
            raise ValueError(f"there is no instrument {instrument!r}; there are {', '.join(map(repr, self.models))}.")
        if instrument in self.unconnected:
            raise MatchError(
                f"instrument {instrument!r} is not connected with {next(iter(self.models))!r}: no anchors lead there. "
                "Give anchors with any of the connected instruments."
            )
        return self.connected.index(instrument)

    # -- looking at it ----------------------------------------------------------------------------------------------

    def facts(self) -> list[tuple[str, str]]:
        """Say in words what is known, as `print` shows it.

        Returns
        -------
        list of (str, str)
            A name and a text; names may come more than once.
        """
        facts = [("instruments", f"{len(self.models)}, {len(self.connected)} of them connected")]
        if self.unconnected:
            facts.append(("NOT CONNECTED", ", ".join(map(repr, self.unconnected))))
        errors = ", ".join(f"{name!r} {error:.3g}" for name, error in self.standard_errors.items())
        facts.append(("standard errors", f"{errors} per coordinate"))
        for (i, j), (n, before, after) in self.overlaps.items():
            facts.append(
                ("overlaps", f"{i!r} and {j!r}: {n} anchors, {after:.3g} apart; {before:.3g} by rigid maps alone")
            )
        facts += [("WARNING", word) for word in self.warnings]
        return facts

    def __str__(self) -> str:
        return text_card(self.facts())

    def _places(self) -> list[tuple[str, Array]]:
        return [
            (name, self.joint.common(training_embedding(self.models[name]), i)) for i, name in enumerate(self.connected)
        ]

    def _repr_html_(self) -> str:
        every = np.concatenate([places for _, places in self._places()])
        plain = np.zeros(len(every), dtype=bool)
        return html_card(
            f"Fusion of {len(self.models)} instruments", self.facts(), dots_svg(every, plain, "All instruments")
        )

    def plot(self) -> Figure:
        """Draw what all connected instruments have seen, in the common coordinates.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pyloca.plots import plot_fusion

        return plot_fusion(self._places())

    # -- files ------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write all models and the fusion to one `.safetensors` file, atomically.

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
        facts = {
            "unconnected": list(self.unconnected),
            "overlaps": [[i, j, *values] for (i, j), values in self.overlaps.items()],
            "warnings": list(self.warnings),
        }
        return write_bundle(path, FORMAT, self.models, self.joint.arrays(), facts)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, networks: Modules | None = None) -> Fusion:
        """Read a fusion that `save` wrote.

        Parameters
        ----------
        path : path
        networks : mapping of str to (module, module), optional
            Your own encoder and decoder by the name of the instrument, for models that were fitted with such.

        Returns
        -------
        Fusion

        Raises
        ------
        ModelFileError
            If the file is not a fusion, or was altered or damaged.
        """
        models, arrays, facts = read_bundle(path, FORMAT, networks)
        with describing("a fusion", os.fspath(path)):
            joint = read_fusion(models, arrays, facts)
            overlaps = {(str(i), str(j)): (int(n), float(one), float(two)) for i, j, n, one, two in facts["overlaps"]}
            return cls(models, tuple(facts["unconnected"]), joint, overlaps, tuple(map(str, facts["warnings"])))


def fuse(
    models: Mapping[str, LOCA] | Sequence[LOCA],
    anchors: Mapping[tuple[Any, Any], Pairs],
    *,
    bursts: Mapping[str, Data] | Sequence[Data] | None = None,
    random_state: int = 0,
) -> Fusion:
    """Put instruments that each have seen a part of the states into one coordinate system.

    Pairs of instruments are matched by their anchors, and the maps are synchronised over the graph of these pairs. Then
    all encoders are refined together on the likelihood of each instrument's bursts and on the agreement at anchors:
    rigid maps, and a smooth displacement of each embedding. Bursts see strain and not bending, so a part that is soft,
    as two rooms on both sides of a door are, is held in shape by its neighbours. The networks themselves stay. With
    `bursts`, each encoder is taken for a smooth function of its readings, as smooth as makes its bursts most likely:
    this takes out what a network owes to chance where bursts are few and the set is soft.

    Parameters
    ----------
    models : mapping of str to LOCA, or sequence of LOCA
        Fitted. In a sequence the names are "0", "1", … Common coordinates are those of the first.
    anchors : mapping of (name, name) to anchors
        For pairs of instruments, as `match` takes them: simultaneous readings or pairs of burst ids, d + 1 or more.
    bursts : mapping of str to bursts, or sequence of bursts; optional
        What the models were fitted to, of all of them or of some. Model files do not contain bursts; without them,
        each fit is taken for the best explanation of its own, to second order, which is less exact. Give them.
    random_state : int, default=0
        Seed of random subsets.

    Returns
    -------
    Fusion

    Raises
    ------
    MatchError
        If no anchors connect any instrument with the first, numbers of components differ, or the refinement would
        leave nothing of a fit.
    BurstError
        If bursts are not those of the fit: in other units, of other states, with columns in another order or with
        another σ, or of an instrument that has changed. They are compared with bursts that the fit held out.
    ValueError
        If a model is not fitted or given twice, a name is unknown, or anchors do not make sense.

    Warns
    -----
    TrustWarning
        If instruments cannot be connected, anchors contradict each other or the bursts, or the fit of an instrument
        follows its bursts more closely than chance allows (only where `bursts` are given).

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import LOCA
    >>> from pyloca.bursts import from_function
    >>> X = np.random.RandomState(0).uniform(size=(300, 2)) * [3, 1]
    >>> def left(x): return np.c_[x, x[:, 0] * x[:, 1]]
    >>> def right(x): return np.c_[x[:, 1], 3 - x[:, 0]]
    >>> seen = {"left": (left, X[:, 0] < 2), "right": (right, X[:, 0] > 1)}
    >>> models = {
    ...     name: LOCA(hidden_layers=(10,), random_state=0).fit(from_function(f, X[rows], 0.01, 20, random_state=0))
    ...     for name, (f, rows) in seen.items()
    ... }
    >>> both = X[(X[:, 0] > 1.1) & (X[:, 0] < 1.9)][:8]
    >>> found = fuse(models, {("left", "right"): (left(both), right(both))})
    >>> found.coordinates(right(X[:5]), "right").shape
    (5, 2)
    """
    models = dict(models) if isinstance(models, Mapping) else {str(i): model for i, model in enumerate(models)}
    check_count("random_state", random_state, 0)
    pairs = _checked(models, anchors)
    given = _checked_bursts(models, bursts)
    names = list(models)
    looked = [_looked(name, model, given.get(name)) for name, model in models.items()]
    edges, between, words = [], [], []
    for (one, other), readings in pairs.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrustWarning)
            try:
                found = match(models[one], models[other], readings, names=(one, other), random_state=random_state)
            except MatchError as error:
                words.append(f"{one!r} and {other!r} are not connected: {error}")
                continue
        if found.chosen is None:
            words.append(f"{one!r} and {other!r} are not connected: {found.reason()}")
            continue
        words += [f"{one!r} and {other!r}: {word}" for word in found.warnings]
        read, i, j = read_anchors(found.a, found.b, readings, None, found.names), names.index(one), names.index(other)
        noise = read.variance + found.rigid.scale**2 * looked[i].rough_at(read.A) + looked[j].rough_at(read.B)
        edges.append(Edge(i, j, read.A[found.used], read.B[found.used], noise[found.used], TAILS))
        between.append(found.rigid)
    joined = connected_to(len(names), edges)
    lost = tuple(name for name, ok in zip(names, joined, strict=True) if not ok)
    if joined.sum() == 1:
        told = " ".join(map(sentence, words)) or "No anchors lead there."
        raise MatchError(f"no instrument is connected with {names[0]!r}. {told}")
    if lost:
        words.append(f"no anchors connect {', '.join(map(repr, lost))} with {names[0]!r}")
    kept = {i: k for k, i in enumerate(np.flatnonzero(joined).tolist())}
    with_maps = [(replace(e, i=kept[e.i], j=kept[e.j]), r) for e, r in zip(edges, between, strict=True) if e.i in kept]
    refined = {names[i]: looked[i] for i in kept}
    joint, factor = _joined(list(refined.values()), [e for e, _ in with_maps], [r for _, r in with_maps])
    refuse_torn(refined, joint)
    overlaps = {}
    for e, _ in with_maps:
        rigid = joint.maps[e.i].apply(e.A) - joint.maps[e.j].apply(e.B)
        after = joint.common(e.A, e.i) - joint.common(e.B, e.j)
        ends = [[name for name in names if name not in lost][k] for k in (e.i, e.j)]
        overlaps[ends[0], ends[1]] = (len(e.A), _rms(rigid), _rms(after))
    words += contradicted(refined, [e for e, _ in with_maps], joint, factor)
    words += too_close(refined, joint)
    for message in words:
        warnings.warn(message, TrustWarning, stacklevel=2)
    return Fusion(models, lost, joint, overlaps, tuple(words))


def _looked(name: str, model: LOCA, bursts: Data | None) -> Instrument:
    """Look at one instrument; its name is in what is wrong with its bursts."""
    try:
        return look(model, bursts)
    except ValueError as error:
        raise type(error)(f"bursts of instrument {name!r}: {error}") from error


def _joined(looked: list[Instrument], edges: list[Edge], between: list[RigidMap]) -> tuple[Joint, float]:
    """Synchronise connected instruments and refine them together, in the coordinates of the first.

    Returns also what anchors cost, over what is expected.
    """
    d, known = looked[0].model.n_components_, looked[0].model.burst_std_known_
    scaled = np.array([not (known and one.model.burst_std_known_) for one in looked])
    maps = synchronize(len(looked), edges, between, d, scaled)
    free = np.ones((len(looked), freedom(d, scale=True)), dtype=bool)
    free[:, -1], free[0] = scaled, False
    centres = np.stack([rigid.apply(one.elastic.centre) for rigid, one in zip(maps, looked, strict=True)])
    rough = np.array([one.rough for one in looked])
    start = Joint.start(maps, [one.elastic for one in looked], centres, rough, PRIOR_DEGREES)
    joint, cost = refine(start, [one.seen for one in looked], edges, free, PRIOR_DEGREES)
    return joint, cost / max(d * sum(len(edge.A) for edge in edges) - int(free.sum()), 1)


def _checked_bursts(models: dict[str, LOCA], bursts: Any) -> dict[str, Data]:
    """Return the bursts by the names of their instruments."""
    if bursts is None:
        return {}
    if not isinstance(bursts, Mapping):
        if not isinstance(bursts, (list, tuple)) or len(bursts) != len(models):
            raise ValueError(
                f"bursts must be a mapping from names, or one set per instrument; got a {type(bursts).__name__}."
            )
        return dict(zip(models, bursts, strict=True))
    for name in bursts:
        if name not in models:
            raise ValueError(f"bursts name {name!r}; there are {', '.join(map(repr, models))}.")
    return dict(bursts)


def _checked(models: dict[str, LOCA], anchors: Mapping[tuple[Any, Any], Pairs]) -> dict[tuple[str, str], Pairs]:
    if len(models) < 2:
        raise ValueError(f"fuse needs at least 2 instruments; got {len(models)}.")
    names = list(models)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            check_pair(models[one], models[other], (one, other))
    if not isinstance(anchors, Mapping):
        raise TypeError(f"anchors is a {type(anchors).__name__}; expected a mapping from pairs of names to anchors.")
    pairs: dict[tuple[str, str], Pairs] = {}
    for key, given in anchors.items():
        if not isinstance(key, tuple) or len(key) != 2:
            raise ValueError(f"anchors has the key {key!r}; expected a pair of names.")
        one, other = str(key[0]), str(key[1])
        for name in (one, other):
            if name not in models:
                raise ValueError(f"anchors name {name!r}; there are {', '.join(map(repr, models))}.")
        if one == other:
            raise ValueError(f"anchors of {one!r} with itself say nothing.")
        if (one, other) in pairs or (other, one) in pairs:
            raise ValueError(f"anchors of {one!r} and {other!r} are given twice; put them into one.")
        pairs[one, other] = given
    return pairs


def _root_mean(values: Array) -> float:
    return float(np.sqrt(np.square(values).mean()))


def _rms(difference: Array) -> float:
    return float(np.sqrt(np.square(difference).sum(axis=1).mean()))
