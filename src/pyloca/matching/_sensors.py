"""Drift as sensors see it: each has a new gain and a new offset, y = g D(z) + o with the old decoder D.

Places z of the new bursts, gains and offsets are fitted together, and with them the rigid map of the new embedding: it
says how places lie to each other, and its shape roughly where. What sensors leave open stays as these say. A sensor
that no gain and offset explain, such as a replaced one, is left with a large residual, and counts the less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyloca.estimator import LOCA, feature_label
from pyloca.matching._precision import decoder_slopes, decoder_variance
from pyloca.matching._rigid import moved, parameter_jacobian, parameters
from pyloca.metrics import RigidMap

__all__ = ["Sensors", "read_sensors"]

Array = NDArray[np.float64]

STEPS = 30  # of Gauss–Newton at most; from where shapes lead, a handful are enough
SETTLED = 1e-3  # of the error of the shapes, by which the last step moves places
EXPLAINED = 3.0  # times the decoder's own error, up to which a gain and an offset explain a sensor
FINEST = 1e-4  # of a sensor's spread: no decoder is taken to be better, not even one of a plane
DEAD = 0.1  # gain below which a sensor hardly answers any more
WAVES = 4  # independent errors of a network: bursts next to each other share theirs
FAR = 3.0  # errors of the shapes by which sensors may move places; more is another set of states, or other drift
MOST = 1000  # sensors, evenly chosen: each adds two unknowns
TIGHT = 1e-6  # part of the largest variance of a map's parameters below which none of them is
NAMED = 3  # sensors at most in a sentence


@dataclass(frozen=True)
class Sensors:
    """What readings of single sensors, old and new, say about where new bursts are.

    Attributes
    ----------
    rows : (n,) array of int
        New bursts that were looked at: those where the old decoder is known.
    places : (n, d) array
        Their places in the old coordinates.
    errors : (n,) array
        Their standard errors, per coordinate; bursts share them.
    gains, offsets : (D,) arrays
        New readings are gain × old ones + offset; nan for sensors that were not looked at.
    explained : (D,) array of bool
        Whether they are, to within the decoder's error.
    told : str
        In words: how many sensors are explained, and which are not.
    doubt : str
        Why places are not to be used; "" where they are.
    """

    rows: NDArray[np.int64]
    places: Array
    errors: Array
    gains: Array
    offsets: Array
    explained: NDArray[np.bool_]
    told: str
    doubt: str


@dataclass(frozen=True)
class _Known:
    """What a fit is made of: sensors that are alive, new readings of them, the new embedding and its map by shape."""

    model: LOCA
    live: NDArray[np.int64]
    unit: Array  # (s,): the decoder's error, in which readings are counted
    readings: Array  # (n, s)
    fresh: Array  # (n, d)
    back: RigidMap
    information: Array  # (p, p), about the parameters of `back`
    apart: float  # variance of places about the mapped embedding

    @property
    def alike(self) -> float:
        """Bursts per independent observation: decoders and embeddings err in long waves."""
        return max(1.0, len(self.fresh) / WAVES)

    @property
    def centre(self) -> Array:
        return np.asarray(self.back.apply(self.fresh).mean(axis=0))

    def old(self, places: Array) -> Array:
        """Return old readings (n, s) at places."""
        return self.model.decode(places)[:, self.live] / self.unit

    def slopes(self, places: Array) -> Array:
        """Return their derivatives (n, s, d)."""
        return decoder_slopes(self.model, places)[:, self.live] / self.unit[:, None]


@dataclass(frozen=True)
class _State:
    gains: Array
    offsets: Array
    places: Array
    rigid: RigidMap


def read_sensors(
    model: LOCA, means: Array, fresh: Array, rows: NDArray[np.int64], back: RigidMap, variances: Array, error: float
) -> Sensors:
    """Find gains, offsets and places of new bursts.

    `means` (n, D) are those of the new bursts `rows` and `fresh` (n, d) their new embedding; `back` takes it to the old
    coordinates, by shape, with these variances of the parameters of `moved` and this standard error per coordinate.
    """
    start = np.asarray(back.apply(fresh))
    (n, d), own = start.shape, decoder_variance(model)
    spread = model.decode(start).var(axis=0)
    live = np.flatnonzero((own > 0) & (spread > own))
    own = np.maximum(own, FINEST**2 * spread)
    live = live[:: max(1, -(-len(live) // MOST))]
    gains, offsets = (np.full(len(own), np.nan) for _ in range(2))
    explained = np.zeros(len(own), dtype=bool)
    if len(live) <= d:  # any reading is one of some place
        told = f"{len(live)} are too few to tell gains from places"
        return Sensors(rows, start, np.full(n, np.inf), gains, offsets, explained, told, told)
    information = np.diag(1 / np.maximum(variances, TIGHT * variances.max()))
    unit = np.sqrt(own[live])
    known = _Known(model, live, unit, means[:, live] / unit, fresh, back, information, error**2)
    state, step = _regressed(known, start), np.inf
    for _ in range(STEPS):
        before = state.places
        state, errors = _stepped(known, state)
        step = float(np.sqrt(np.square(state.places - before).mean()))
        if not step > SETTLED * error:
            break
    gains[live], offsets[live] = state.gains, state.offsets * unit
    within = _variance(known, state) <= EXPLAINED**2 * _floor(state)
    explained[live] = within & (np.abs(state.gains) > DEAD)
    off = float(np.sqrt(np.square(state.places - start).mean()))
    told, left = _told(model, live, explained), len(live) - int(explained.sum())
    doubt = ""
    if len(live) - left - d <= left:  # d of them agree with any others, at some place
        doubt = told
    elif not step <= SETTLED * error:
        doubt = "gains and offsets do not settle"
    elif off > FAR * error:
        doubt = f"they put bursts {off:.3g} from where the shape does, which is off by about {error:.3g}"
    elif not np.sqrt(np.square(errors).mean()) < error:
        doubt = "they tell less than the shape"
    return Sensors(rows, state.places, errors, gains, offsets, explained, told, doubt)


def _told(model: LOCA, live: NDArray[np.int64], explained: NDArray[np.bool_]) -> str:
    names = [feature_label(model, int(j)) for j in live if not explained[j]]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    but = f"; not {', '.join(names[:NAMED])}{more}" if names else ""
    return f"a gain and an offset explain {len(live) - len(names)} of {len(live)}{but}"


def _regressed(known: _Known, places: Array) -> _State:
    """Return gains and offsets by regression of readings on old ones at given places."""
    old = known.old(places)
    middle, mean = old.mean(axis=0), known.readings.mean(axis=0)
    gains = ((old - middle) * (known.readings - mean)).sum(axis=0) / np.square(old - middle).sum(axis=0)
    return _State(gains, mean - gains * middle, places, known.back)


def _floor(state: _State) -> Array:
    """Return the variance (s,) of readings that the decoder's error explains."""
    return np.asarray(np.maximum(np.square(state.gains), DEAD**2))


def _variance(known: _Known, state: _State) -> Array:
    """Return the variance (s,) of each sensor about its gain and offset; never below the decoder's own."""
    old = known.old(state.places)
    rest = known.readings - state.gains * old - state.offsets
    return np.maximum(np.square(rest).mean(axis=0), _floor(state))


def _stepped(known: _Known, state: _State) -> tuple[_State, Array]:
    """Take a step of Gauss–Newton; return also the standard errors (n,) of places.

    −log likelihood is Σ (y − g D(z) − o)²/2s² + Σ ‖z − rigid(z′)‖²/2v, of `alike` bursts one, + that of the map about
    the one by shape. Places are eliminated burst by burst: what is left are two unknowns per sensor, and the map.
    """
    (n, d), s = state.places.shape, len(known.live)
    old = known.old(state.places)
    weights = 1 / _variance(known, state)  # (s,)
    rest = known.readings - state.gains * old - state.offsets
    ahead = state.rigid.apply(known.fresh)
    by_place = state.gains[:, None] * known.slopes(state.places)  # (n, s, d)
    information = known.alike * known.information
    by_map = parameter_jacobian(ahead, known.centre, scale=len(information) > d * (d + 1) // 2)  # (n, d, p)
    weighted = weights[:, None] * by_place
    own = np.linalg.inv(by_place.transpose(0, 2, 1) @ weighted + np.eye(d) / known.apart)  # (n, d, d)
    pull = np.einsum("nsd,ns->nd", weighted, rest) + (ahead - state.places) / known.apart
    parts = (old[..., None] * weighted, weighted, -by_map.transpose(0, 2, 1) / known.apart)
    mixed = np.concatenate(parts, axis=1)  # (n, q, d): of unknowns and places
    q = mixed.shape[1]
    sensor, turn = np.arange(s), slice(2 * s, q)
    H, b = np.zeros((q, q)), np.zeros(q)
    H[sensor, sensor], H[s + sensor, s + sensor] = weights * np.square(old).sum(axis=0), n * weights
    H[sensor, s + sensor] = H[s + sensor, sensor] = weights * old.sum(axis=0)
    H[turn, turn] = np.einsum("ndp,ndq->pq", by_map, by_map) / known.apart + information
    b[:s], b[s : 2 * s] = weights * (old * rest).sum(axis=0), weights * rest.sum(axis=0)
    offset = parameters(known.back, state.rigid, known.centre, scale=by_map.shape[2] > d * (d + 1) // 2)
    b[turn] = np.einsum("ndp,nd->p", by_map, state.places - ahead) / known.apart - information @ offset
    roots = np.linalg.cholesky(own)
    flat = (mixed @ roots).transpose(1, 0, 2).reshape(q, n * d)
    H -= flat @ flat.T
    b -= flat @ (roots.transpose(0, 2, 1) @ pull[..., None]).ravel()
    scale = 1 / np.sqrt(np.maximum(H.diagonal(), 1e-300))
    covariance = scale[:, None] * np.linalg.pinv(scale[:, None] * H * scale, hermitian=True) * scale
    change = covariance @ b
    places = state.places + np.einsum("nij,nj->ni", own, pull - np.einsum("nqd,q->nd", mixed, change))
    rigid = moved(state.rigid, change[turn], known.centre)
    shared = np.einsum("nij,nqj->niq", own, mixed)
    errors = known.alike * np.einsum("niq,qr,nir->n", shared, covariance, shared) + np.trace(own, axis1=1, axis2=2)
    found = _State(state.gains + change[:s], state.offsets + change[s : 2 * s], places, rigid)
    return found, np.sqrt(errors / d)
