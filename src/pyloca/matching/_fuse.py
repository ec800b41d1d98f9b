"""`fuse`: many instruments, each of which has seen a part, in one coordinate system."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from pyloca._arguments import check_count
from pyloca._html import dots_svg, html_card, text_card
from pyloca._sealed import describing
from pyloca.errors import MatchError, TrustWarning
from pyloca.estimator import LOCA, Data, training_embedding
from pyloca.matching._anchors import Pairs, read_anchors
from pyloca.matching._file import Modules, check_fusion, read_bundle, read_rigid, read_seams, write_bundle
from pyloca.matching._match import Match, check_pair, match
from pyloca.matching._precision import coordinate_variance, decoder_variance
from pyloca.matching._prediction import Prediction, pushed_variance, support_trust
from pyloca.matching._rigid import inverse, parameter_jacobian
from pyloca.matching._seams import WAVE, Seams, solve_seams
from pyloca.matching._synchronize import Edge, adjusted, connected_to, synchronize
from pyloca.metrics import RigidMap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Fusion", "fuse"]

Array = NDArray[np.float64]

FORMAT = "pyloca-fusion"
ROUNDS = 3  # of maps given fields, and fields given maps


@dataclass(frozen=True)
class Fusion:
    """Instruments in one coordinate system, that of the first.

    Attributes
    ----------
    models : dict of str to LOCA
        The fitted models by name.
    maps : dict of str to RigidMap
        Coordinates of each connected instrument to the common ones.
    unconnected : tuple of str
        Instruments that no anchors connect with the first; they have no common coordinates.
    seams : Seams
        Errors of the encoders as far as their disagreement at anchors tells; they are subtracted, so that coordinates
        of two instruments agree where both see.
    covariances : dict of str to (p, p) array
        Of the parameters of each map, about `centres`.
    centres : dict of str to (d,) array
    overlaps : dict of (str, str) to (int, float, float)
        For each connected pair: anchors used, and their root mean square distance before and after the seams were
        taken out.
    warnings : tuple of str
        What should make a user look twice.

    Examples
    --------
    See `fuse`.
    """

    models: dict[str, LOCA]
    maps: dict[str, RigidMap]
    unconnected: tuple[str, ...]
    seams: Seams
    covariances: dict[str, Array]
    centres: dict[str, Array]
    overlaps: dict[tuple[str, str], tuple[int, float, float]]
    warnings: tuple[str, ...] = ()

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
        model, rigid = self._of(instrument)
        Z, trust = model.transform(Y, return_trust=True)
        there = self.without_seams(rigid.apply(Z), instrument)
        return (there, trust) if return_trust else there

    def without_seams(self, placed: Array, instrument: str) -> Array:
        """Subtract the expected error of an instrument from its coordinates after the rigid map.

        Parameters
        ----------
        placed : (n, d) array
        instrument : str

        Returns
        -------
        (n, d) array
        """
        return placed - self.seams.errors(self._index(instrument), placed)[0]

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
        there, trust = self.coordinates(Y, source, return_trust=True)
        model, rigid = self._of(target)
        W = inverse(rigid).apply(self.seams.undone(self._index(target), there))
        errors = self._errors(there, source) + (0 if source == target else self._errors(there, target))
        if source == target:
            errors = np.zeros_like(errors)
        turned = rigid.rotation @ errors @ rigid.rotation.T / rigid.scale**2
        values = model.decode(W)
        spread = decoder_variance(model) + pushed_variance(model, W, turned)
        per_coordinate = np.sqrt(np.trace(turned, axis1=1, axis2=2) / W.shape[1])
        trust = np.minimum(trust, support_trust(model, W))
        return Prediction(values, np.sqrt(spread), trust, W, per_coordinate, max(2.0, float(len(self.seams.places))))

    def _errors(self, places: Array, instrument: str) -> Array:
        """Covariances (n, d, d) of common coordinates: what is left of the field, and the error of the map."""
        rest = self.seams.errors(self._index(instrument), places)[1]
        slopes = parameter_jacobian(places, self.centres[instrument], scale=True)
        along = slopes @ self.covariances[instrument] @ slopes.transpose(0, 2, 1)
        return np.asarray(rest[:, None, None] * np.eye(places.shape[1]) + along)

    def _index(self, instrument: str) -> int:
        return list(self.maps).index(instrument)

    def _of(self, instrument: str) -> tuple[LOCA, RigidMap]:
        if instrument not in self.models:
            raise ValueError(f"there is no instrument {instrument!r}; there are {', '.join(map(repr, self.models))}.")
        if instrument not in self.maps:
            raise MatchError(
                f"instrument {instrument!r} is not connected with {next(iter(self.models))!r}: no anchors lead there. "
                "Give anchors with any of the connected instruments."
            )
        return self.models[instrument], self.maps[instrument]

    # -- looking at it ----------------------------------------------------------------------------------------------

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("instruments", f"{len(self.models)}, {len(self.maps)} of them connected")]
        if self.unconnected:
            facts.append(("NOT CONNECTED", ", ".join(map(repr, self.unconnected))))
        for (i, j), (n, before, after) in self.overlaps.items():
            facts.append(("overlaps", f"{i!r} and {j!r}: {n} anchors, {before:.3g} apart; {after:.3g} without seams"))
        facts += [("WARNING", word) for word in self.warnings]
        return facts

    def __str__(self) -> str:
        return text_card(self._facts())

    def _places(self) -> list[tuple[str, Array]]:
        return [
            (name, self.without_seams(rigid.apply(training_embedding(self.models[name])), name))
            for name, rigid in self.maps.items()
        ]

    def _repr_html_(self) -> str:
        every = np.concatenate([places for _, places in self._places()])
        plain = np.zeros(len(every), dtype=bool)
        return html_card(
            f"Fusion of {len(self.models)} instruments", self._facts(), dots_svg(every, plain, "All instruments")
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
        arrays: dict[str, Any] = {f"seams.{name}": array for name, array in vars(self.seams).items()}
        for i, name in enumerate(self.maps):
            arrays[f"rotation.{i}"], arrays[f"shift.{i}"] = self.maps[name].rotation, self.maps[name].shift
            arrays[f"covariance.{i}"], arrays[f"centre.{i}"] = self.covariances[name], self.centres[name]
        facts = {
            "connected": list(self.maps),
            "scales": [rigid.scale for rigid in self.maps.values()],
            "unconnected": list(self.unconnected),
            "overlaps": [[i, j, *values] for (i, j), values in self.overlaps.items()],
            "warnings": list(self.warnings),
        }
        return write_bundle(path, FORMAT, self.models, arrays, facts)

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
            names, scales, unconnected = facts["connected"], facts["scales"], tuple(facts["unconnected"])
            check_fusion(models, arrays, facts)
            every, d = range(len(names)), models[names[0]].n_components_
            maps = [read_rigid(arrays[f"rotation.{i}"], arrays[f"shift.{i}"], scales[i]) for i in every]
            return cls(
                models,
                dict(zip(names, maps, strict=True)),
                unconnected,
                read_seams(arrays, d, len(names)),
                {name: arrays[f"covariance.{i}"] for i, name in enumerate(names)},
                {name: arrays[f"centre.{i}"] for i, name in enumerate(names)},
                {(str(i), str(j)): (int(n), float(one), float(two)) for i, j, n, one, two in facts["overlaps"]},
                tuple(map(str, facts["warnings"])),
            )


def fuse(
    models: Mapping[str, LOCA] | Sequence[LOCA],
    anchors: Mapping[tuple[Any, Any], Pairs],
    *,
    random_state: int = 0,
) -> Fusion:
    """Put instruments that each have seen a part of the states into one coordinate system.

    Pairs of instruments are matched by their anchors; the maps are synchronised over the graph of these pairs, and all
    are refined together on all anchors. Then the seams are taken out: the error of an encoder is a smooth field, of the
    size that its fit expects of itself, and anchors tell how the fields of two instruments differ; the expected fields
    are subtracted, so that instruments agree where both see. The networks themselves are not trained again.

    Parameters
    ----------
    models : mapping of str to LOCA, or sequence of LOCA
        Fitted. In a sequence the names are "0", "1", … Common coordinates are those of the first.
    anchors : mapping of (name, name) to anchors
        For pairs of instruments, as `match` takes them: simultaneous readings or pairs of burst ids, d + 1 or more.
    random_state : int, default=0
        Seed of random subsets.

    Returns
    -------
    Fusion

    Raises
    ------
    MatchError
        If no anchors connect any instrument with the first, or numbers of components differ.
    ValueError
        If a model is not fitted or given twice, a name is unknown, or anchors do not make sense.

    Warns
    -----
    TrustWarning
        If instruments cannot be connected, or anchors contradict each other.

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
    names = list(models)
    free = np.array([not (models[name].burst_std_known_ and models[names[0]].burst_std_known_) for name in names])
    variances = {name: coordinate_variance(model) for name, model in models.items()}
    edges, words = [], []
    for (one, other), given in pairs.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrustWarning)
            try:
                found = match(models[one], models[other], given, names=(one, other), random_state=random_state)
            except MatchError as error:
                words.append(f"{one!r} and {other!r} are not connected: {error}")
                continue
        words += [f"{one!r} and {other!r}: {word}" for word in found.warnings]
        if found.chosen is None:
            words.append(f"{one!r} and {other!r} are not connected: {found._refusal()}")
            continue
        edges.append(_edge(found, names.index(one), names.index(other), given, variances))
    joined = connected_to(len(names), edges)
    lost = tuple(name for name, ok in zip(names, joined, strict=True) if not ok)
    if joined.sum() == 1:
        raise MatchError(f"no instrument is connected with {names[0]!r}. {' '.join(words)}")
    if lost:
        words.append(f"no anchors connect {', '.join(map(repr, lost))} with {names[0]!r}")
    for message in words:
        warnings.warn(message, TrustWarning, stacklevel=2)
    return _fused(models, [n for n, ok in zip(names, joined, strict=True) if ok], edges, free, variances, lost, words)


def _checked(models: dict[str, LOCA], anchors: Mapping[tuple[Any, Any], Pairs]) -> dict[tuple[str, str], Pairs]:
    if len(models) < 2:
        raise ValueError(f"fuse needs at least 2 instruments; got {len(models)}.")
    names = list(models)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            if models[one] is models[other]:
                raise ValueError(f"instruments {one!r} and {other!r} are the same model; give each once.")
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


def _edge(found: Match, i: int, j: int, given: Pairs, variances: dict[str, float]) -> Edge:
    read = read_anchors(found.a, found.b, given, None, found.names)
    used = found.used
    one, other = found.names
    variance = found.rigid.scale**2 * variances[one] + variances[other] + read.variance[used]
    return Edge(i, j, found.rigid, read.A[used], read.B[used], variance, read.variance[used])


def _fused(
    models: dict[str, LOCA],
    names: list[str],
    edges: list[Edge],
    free: NDArray[np.bool_],
    variances: dict[str, float],
    lost: tuple[str, ...],
    words: list[str],
) -> Fusion:
    """Synchronise connected instruments and take out the seams."""
    every = list(models)
    kept = {every.index(name): k for k, name in enumerate(names)}
    edges = [e.renumbered(kept[e.i], kept[e.j]) for e in edges if e.i in kept]
    d = models[names[0]].n_components_
    maps, covariance, centres = synchronize(len(names), edges, d, free[list(kept)])
    for _ in range(ROUNDS):
        seams = _seams(models, names, maps, edges, variances)
        maps, covariance = adjusted(maps, edges, centres, free[list(kept)], seams.covariance())
    seams = _seams(models, names, maps, edges, variances)
    placed = [(maps[e.i].apply(e.A), maps[e.j].apply(e.B)) for e in edges]
    overlaps = {}
    for e, (one, other) in zip(edges, placed, strict=True):
        after = one - seams.errors(e.i, one)[0] - other + seams.errors(e.j, other)[0]
        overlaps[names[e.i], names[e.j]] = (len(e.A), _rms(one - other), _rms(after))
    p = len(covariance) // max(len(names) - 1, 1)
    inflated = {}
    for k, name in enumerate(names):
        rows = slice((k - 1) * p, k * p)
        inflated[name] = np.zeros((p, p)) if k == 0 else covariance[rows, rows]
    return Fusion(
        models,
        dict(zip(names, maps, strict=True)),
        lost,
        seams,
        inflated,
        dict(zip(names, centres, strict=True)),
        overlaps,
        tuple(words),
    )


def _seams(
    models: dict[str, LOCA], names: list[str], maps: list[RigidMap], edges: list[Edge], variances: dict[str, float]
) -> Seams:
    """Solve the error fields of all encoders for these maps."""
    placed = [(maps[e.i].apply(e.A), maps[e.j].apply(e.B)) for e in edges]
    scales = np.array([rigid.scale for rigid in maps])
    return solve_seams(
        np.concatenate([(one + other) / 2 for one, other in placed]),
        np.concatenate([np.tile([e.i, e.j], (len(e.A), 1)) for e in edges]),
        np.concatenate([one - other for one, other in placed]),
        scales**2 * np.array([variances[name] for name in names]),
        np.array([WAVE * s * _extent(models[name]) for s, name in zip(scales, names, strict=True)]),
        np.concatenate([maps[e.j].scale ** 2 * e.noise for e in edges]),
    )


def _extent(model: LOCA) -> float:
    return float(np.sqrt(2 * training_embedding(model).var(axis=0).sum()))


def _rms(difference: Array) -> float:
    return float(np.sqrt(np.square(difference).sum(axis=1).mean()))
