"""`recalibrate`: an instrument that has changed, fitted again in its old coordinates."""

from __future__ import annotations

import copy
import warnings
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import chi2
from scipy.stats import f as fisher
from sklearn.base import clone
from torch import nn

from pyloca._arguments import check_count
from pyloca._html import html_card, text_card
from pyloca._threads import one_thread
from pyloca.errors import MatchError, TrustWarning
from pyloca.estimator import LOCA, Data, read_like, training_embedding, transform_unnamed
from pyloca.matching._anchors import Pairs, check_fitted, read_anchors
from pyloca.matching._explained import explained
from pyloca.matching._match import match
from pyloca.matching._matched import Match
from pyloca.matching._moved import moved_model, plain_networks
from pyloca.matching._placed import laid_onto, sensors_of, weighed
from pyloca.matching._rigid import inverse
from pyloca.matching._sensors import WAVES, Sensors
from pyloca.matching._support import Support
from pyloca.metrics import RigidMap, calibrate
from pyloca.thresholds import DRIFTED, NEW_PLACES, STILL_PLACED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Recalibration", "recalibrate"]

Array = NDArray[np.float64]

NEAR = 0.3  # of the spread: old coordinates that are off by less still say which of several candidates is right


@dataclass(frozen=True)
class Recalibration:
    """A new model of a changed instrument in the coordinates of the old one.

    Attributes
    ----------
    model : LOCA
        What to use from now on: `refitted`, or the old model where `kept` is true.
    refitted : LOCA
        Fitted to the new bursts; its coordinates are the old ones, by a rigid map.
    kept : bool
        Whether the old model is kept: the new bursts disagree with it by no more than noise and lie where it was
        fitted, so that a second fit would only add its own errors.
    match : Match
        Of the old model and the new one before it was moved: the evidence, and its errors.
    how : str
        What put the new model into the old coordinates: "anchors", "shape", "anchors and shape", or "shape and old
        encoder" where shapes alone were ambiguous; "… and sensors", where gains and offsets of the sensors tell it too.
    drifted : bool
        Whether new bursts disagree with the old model by more than noise.
    p_value : float
        Probability of such disagreement without drift: the smallest of the next three, times three.
    whitening_p, round_trip_p : float
        That new bursts are as round under the old encoder, and as well given back by the old decoder, as bursts that
        the old fit held out.
    displacement_p : float
        That the errors of both encoders explain `displacement`.
    displacement : (n,) array
        Distance between old and new coordinates of each new burst; nan where the old model has not seen the like.
    standard_error : float
        Of the new coordinates about the old ones, per coordinate, without drift.
    start : str
        What the new encoder was trained from: "old weights", or "random weights" where those are of no use.
    sensors : Sensors or None
        `gains` and `offsets` of the sensors since the old fit, which of them these `explained`, and a `doubt` where
        they do not put the new model into the old coordinates.

    Examples
    --------
    See `recalibrate`.
    """

    model: LOCA
    refitted: LOCA
    kept: bool
    match: Match
    how: str
    drifted: bool
    p_value: float
    whitening_p: float
    round_trip_p: float
    displacement_p: float
    displacement: Array
    standard_error: float
    start: str
    sensors: Sensors

    def coordinates(self, Y: Data) -> Array:
        """Compute old coordinates of new readings.

        Those of the old model where it is kept. Otherwise those of `model`, without what anchors tell of the errors of
        both encoders: the more anchors, the nearer to the old ones. Save `match` to keep them (its instruments are
        "old" and "new").

        Parameters
        ----------
        Y : (n, D) array or data frame, or bursts

        Returns
        -------
        (n, d) array
        """
        return transform_unnamed(self.model, Y)[0] if self.kept else self.match.coordinates(Y, "new")

    def _facts(self) -> list[tuple[str, str]]:
        moved = self.displacement[np.isfinite(self.displacement)]
        drift = "more than noise" if self.drifted else "not more than noise"
        facts = [
            ("coordinates", f"those of the old model, by {self.how}"),
            ("training", f"from {self.start}"),
            ("standard error", f"{self.standard_error:.3g} per coordinate, of the new fit"),
            ("drift", f"{drift} (p = {self.p_value:.2g})"),
        ]
        doubt = self.sensors.doubt
        facts.insert(1, ("sensors", f"not used: {doubt}" if doubt else self.sensors.told))
        if self.kept:
            facts.append(("model", "the old one is kept: a new fit would only add its own errors"))
        if len(moved):
            middle, most = np.median(moved), moved.max()
            off = f"off by {middle:.3g} (median), {most:.3g} (most)"
            facts.append(("new fit", off) if self.kept else ("without it", f"the old model would be {off}"))
        if len(moved) < len(self.displacement):
            unseen = len(self.displacement) - len(moved)
            facts.append(("new places", f"{unseen} of {len(self.displacement)} bursts the old model cannot place"))
        facts += [("WARNING", word) for word in self.match.warnings]
        return facts

    def __str__(self) -> str:
        return text_card(self._facts())

    def _repr_html_(self) -> str:
        return html_card("Recalibration", self._facts())

    def plot(self) -> Figure:
        """Draw what the old and the new model have seen, in the old coordinates.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pyloca.plots import plot_match

        title = "drift" if self.drifted else "no drift"
        return plot_match(
            training_embedding(self.match.a), [(title, training_embedding(self.refitted))], ("old", "new")
        )


def recalibrate(
    model: LOCA,
    new_bursts: Data,
    anchors: Pairs | None = None,
    *,
    weights: ArrayLike | None = None,
    unevenness: float = 3.0,
    choose: int | None = None,
    random_state: int = 0,
) -> Recalibration:
    """Fit an instrument again that has drifted, been repaired or replaced, and keep its coordinates.

    A model with the settings of the old one is fitted to the new bursts. Its encoder starts from the old weights, and
    an alignment of the new bursts guards it against their mistakes; where the solver reduces many measurements to a few
    directions first, which are others for other bursts, weights are random. It is put into the old coordinates by
    `match`, with anchors or by shape. Sensors are asked as well: where a new gain and a new offset of each explain the
    new readings by the old decoder, they tell far better than shapes, or a few anchors, where the new bursts are. Where
    shapes are ambiguous, as for a square, they decide; or the old encoder does, if it still places the new bursts
    roughly: the candidate nearest to its coordinates is taken. If the new bursts disagree with the old model by no more
    than noise, and lie where it was fitted, the old model is kept.

    Parameters
    ----------
    model : LOCA
        The old model, fitted.
    new_bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path
        From the instrument as it is now. Without anchors, of the same set of states as the old ones.
    anchors : pair of arrays, or sequence of pairs of ids; optional
        States that were measured before and after: old readings first, then new ones, or pairs of old and new burst
        ids.
    weights : (n,) array, optional
        How sure each anchor is.
    unevenness : float, default=3
        How many times as often some states may have been visited before or after.
    choose : int, optional
        Which candidate to take where shapes are ambiguous and the old encoder cannot tell; the error that says so lists
        them.
    random_state : int, default=0
        Seed of the fit and the match.

    Returns
    -------
    Recalibration

    Raises
    ------
    MatchError
        If the new model cannot be put into the old coordinates, or not in one way; or if anchors contradict the shape
        or the sensors.
    BurstError
        If the bursts cannot be used, or have other features than the fit.

    Warns
    -----
    TrustWarning
        If a check says that the new fit should not be believed, or some anchors were not used.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import LOCA
    >>> random = np.random.RandomState(0)
    >>> def measure(gain):
    ...     X = random.uniform(size=(400, 2)) * [2, 3]
    ...     X = X[(X[:, 0] < 0.8) | (X[:, 1] < 1)][:120]
    ...     Y = X[:, None] + 0.02 * random.standard_normal((120, 30, 2))
    ...     return X, gain * np.concatenate([Y, Y[..., :1] * Y[..., 1:]], axis=2)
    >>> model = LOCA(burst_std=0.02, hidden_layers=(10,), random_state=0).fit(measure(1.0)[1])
    >>> X, bursts = measure([1.0, 1.2, 1.0])
    >>> found = recalibrate(model, bursts)
    >>> found.drifted, found.how
    (True, 'shape and sensors')
    """
    check_fitted(model, "old")
    start = _old_weights(model)
    old = read_like(model, new_bursts).embed()  # refuses what are not readings of this instrument, before any work
    check_count("random_state", random_state, 0)
    fresh = _fitted(model, new_bursts, start, random_state)
    inside = Support(training_embedding(model)).inside(old) > 0
    whitening_p, round_trip_p = _drift(model, new_bursts, inside)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # of what it warns is said below
        found = match(
            model,
            fresh,
            anchors,
            weights=weights,
            names=("old", "new"),
            unevenness=unevenness,
            random_state=random_state,
        )
    means = read_like(model, new_bursts).statistics.means
    how, by_choice = found.how, ""
    read = None if anchors is None else read_anchors(model, fresh, anchors, weights, found.names)
    if choose is not None:
        by_choice = "" if found.chosen == choose else " and choice"
        found = found.choose(choose)
    elif found.chosen is None and found.ambiguous:
        found, how = _decided(found, means, old, inside)
    if read is None or choose is not None:
        found, sensors = laid_onto(found, sensors_of(found, means), read)
    else:
        found, sensors = weighed(found, means, read, unevenness, random_state)
    how += by_choice + " and sensors" * (not sensors.doubt)
    for message in found.warnings:
        warnings.warn(message, TrustWarning, stacklevel=2)
    back = inverse(found.rigid)
    moved = moved_model(fresh, back)
    error = found.rigid_error * back.scale
    displacement = np.where(inside, np.linalg.norm(moved.embedding_ - old, axis=1), np.nan)
    displacement_p = _displaced(displacement[inside], error, found.joint.degrees, model.n_components_)
    p = min(1.0, 3 * min(whitening_p, round_trip_p, displacement_p))
    tests = (whitening_p, round_trip_p, displacement_p)
    trained = "random weights" if start is None else "old weights"
    kept = bool(p >= DRIFTED and inside.mean() >= 1 - NEW_PLACES)
    best = model if kept else moved
    drifted = bool(p < DRIFTED)
    return Recalibration(best, moved, kept, found, how, drifted, p, *tests, displacement, error, trained, sensors)


def _decided(found: Match, means: Array, old: Array, inside: NDArray[np.bool_]) -> tuple[Match, str]:
    """Choose one of several candidates: the only one with which sensors agree, or the nearest to the old encoder's."""
    if not found.continuous:
        chosen = [found.choose(i) for i, one in enumerate(found.candidates) if one.possible]
        agree = [one for one in chosen if not sensors_of(one, means).doubt]
        if len(agree) == 1:
            return agree[0], found.how
    return _nearest(found, old, found.b.embedding_, inside), f"{found.how} and old encoder"


def _displaced(distance: Array, error: float, degrees: float, d: int) -> float:
    """Return the probability that encoders alone put bursts so far from their old places.

    Errors of an encoder are a few long waves, so all bursts together count as `WAVES` observations.
    """
    if not len(distance):
        return 0.0
    ratio = float(np.median(np.square(distance)) / (d * error**2)) * d / chi2.median(d)
    return float(fisher.sf(ratio, WAVES, degrees))


def _old_weights(model: LOCA) -> nn.Module | None:
    """Return the old encoder's network to start from; None where the solver would not see the same inputs again."""
    networks = plain_networks(model)
    reduced = getattr(networks["decoder"].network, "tail", None) is not None
    if model.solver != "fast" or reduced:
        return None
    start = copy.deepcopy(networks["encoder"].network).double()
    start.linear_skip = False  # type: ignore[assignment]  # it has one of its own
    return start


def _fitted(model: LOCA, data: Data, start: nn.Module | None, random_state: int) -> LOCA:
    """Fit a model with the settings of the old one; σ that the old one knew holds for the new one too."""
    known = {"burst_std": model.burst_std_} if model.burst_std_known_ else {}
    settings = {"n_components": model.n_components_, "random_state": random_state, "encoder": start, **known}
    fresh: LOCA = clone(model).set_params(**settings)
    with one_thread() if start is not None else nullcontext():  # a fit of a module keeps the user's threads
        fresh.fit(data)
    return fresh.set_params(encoder=None)  # its network is a plain one


def _drift(model: LOCA, data: Data, inside: NDArray[np.bool_]) -> tuple[float, float]:
    """Compare losses and round trips of new bursts under the old model with those of bursts that it held out.

    Only bursts that it places where it was fitted: elsewhere it errs without any drift. If it places none of them
    there, that is drift enough.
    """
    seen = read_like(model, data)
    rows = np.intersect1d(np.flatnonzero(inside), seen.sound)
    if len(rows) < max(3, (1 - STILL_PLACED) * len(seen.sound)):
        return 0.0, 0.0
    told = explained(model, seen, rows)
    return told.whitening_p, told.round_trip_p


def _nearest(found: Match, old: Array, new: Array, inside: NDArray[np.bool_]) -> Match:
    """Choose the candidate that agrees with the old encoder, if that still tells."""
    if inside.mean() < STILL_PLACED:
        raise MatchError(_undecided(found, "it does not place the new bursts"))
    before, after = old[inside], new[inside]
    spread = float(np.sqrt(before.var(axis=0).sum()))
    off = [
        float(np.sqrt(np.median(np.square(one.rigid.apply(before) - after).sum(axis=1)))) if one.possible else np.inf
        for one in found.candidates
    ]
    order = np.argsort(off)
    if not off[order[0]] < NEAR * spread:
        raise MatchError(_undecided(found, f"it is off by {off[order[0]]:.3g}"))
    if not found.continuous:
        return found.choose(int(order[0]))
    # Of infinitely many, the one that the old encoder asks for.
    asked = calibrate(after, before, scale=found.scaled)
    chosen = replace(found.candidates[order[0]], rigid=asked)
    return replace(found, candidates=(chosen, *found.candidates)).choose(0)


def _undecided(found: Match, why: str) -> str:
    """Say what is possible, and what the user can do about it."""
    d = found.a.n_components_
    ways = "infinitely many ways" if found.continuous else f"{len(found.possible)} ways"
    listed = "; ".join(
        f"{i}: overlap {one.overlap:.1%}, {_turn(one.rigid)}" for i, one in enumerate(found.candidates) if one.possible
    )
    return (
        f"the new fit goes into the old coordinates in {ways}, which {found.how} cannot tell apart, and neither can "
        f"the old encoder: {why}. Give {d + 1} anchors that are not on one line or plane, or take a candidate by "
        f"choose=I (--choose I): {listed}."
    )


def _turn(rigid: RigidMap) -> str:
    """Describe a map from old to new coordinates."""
    mirrored = "mirrored" if np.linalg.det(rigid.rotation) < 0 else "not mirrored"
    if len(rigid.rotation) != 2:
        return mirrored
    return f"turned by {np.degrees(np.arctan2(rigid.rotation[0, 1], rigid.rotation[0, 0])):.0f}°, {mirrored}"
