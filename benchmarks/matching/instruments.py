"""A floor plan and the instruments that see it: a radio, a camera, a curved gauge; and other rooms."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pyloca import LOCA, TrustWarning, datasets

__all__ = ["INSTRUMENTS", "PLANS", "Instrument", "fitted", "make", "readings", "states"]

Array = NDArray[np.float64]
Rooms = NDArray[np.float64]

BURSTS, POINTS = 400, 30
METRE = 100.0  # pixels

# Rooms as (left, bottom, right, top), in metres.
PLANS: dict[str, Rooms] = {
    "floor": datasets.wifi(1, random_state=0).extras["rooms"] / METRE,
    "square": np.array([(0, 0, 5.0, 5.0)]),
    "L": np.array([(0, 0, 6.0, 2.5), (0, 2.5, 2.5, 8.0)]),
    "T": np.array([(0, 4.0, 7.5, 6.0), (2.0, 0, 4.0, 4.0)]),
}


def states(plan: str, n: int, random: np.random.RandomState) -> Array:
    """Draw n places of a plan, evenly; "disc" has no rooms."""
    if plan == "disc":
        radius, angle = 2.8 * np.sqrt(random.uniform(size=n)), random.uniform(0, 2 * np.pi, size=n)
        return 3 + radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    rooms = PLANS[plan]
    low, high = rooms[:, :2], rooms[:, 2:]
    area = np.prod(high - low, axis=1)
    room = random.choice(len(rooms), size=n, p=area / area.sum())
    return low[room] + (high - low)[room] * random.uniform(size=(n, 2))


@dataclass(frozen=True)
class Instrument:
    """What is measured in a state, (n, 2) → (n, D), and σ of its bursts in metres."""

    name: str
    measure: Callable[[Array], Array]
    burst_std: float


def radio(seed: int) -> Instrument:
    """Signal strengths of 17 transmitters, as in section 7.2."""
    random = np.random.RandomState([seed, 17])
    transmitters = random.uniform((0, 0), (6, 10), size=(17, 2))
    return Instrument("radio", lambda x: np.exp(-np.square(x[:, None] - transmitters).sum(axis=2) / 36), 0.05)


def camera(seed: int) -> Instrument:
    """A window of 32 × 32 pixels, 2.5 m wide, on a smooth floor cloth, in grey values from 0 to 255."""
    random = np.random.RandomState([seed, 1024])
    length, angle = random.uniform(15, 40, size=10), random.uniform(0, 2 * np.pi, size=10)
    waves = 2 * np.pi / length * np.stack([np.cos(angle), np.sin(angle)])  # (2, 10)
    phase = random.uniform(0, 2 * np.pi, size=10)
    across = np.linspace(-1.25, 1.25, 32)
    window = np.stack(np.meshgrid(across, across, indexing="ij"), axis=-1).reshape(-1, 2)  # (1024, 2)
    cosines, sines = np.cos(window @ waves + phase).T, np.sin(window @ waves + phase).T  # (10, 1024)

    def measure(x: Array) -> Array:
        return 128 + 20 * (np.cos(x @ waves) @ cosines - np.sin(x @ waves) @ sines)

    return Instrument("camera", measure, 0.04)


def gauge(seed: int) -> Instrument:
    """Two readings, bent: D = 2, in millivolts."""
    random = np.random.RandomState([seed, 2])
    turn, phase = random.uniform(0, 2 * np.pi), random.uniform(0, 2 * np.pi)
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])

    def measure(x: Array) -> Array:
        u, v = ((x - (3, 5)) @ rotation).T
        return np.column_stack([10 * u + 0.12 * v**3, 12 * v - 6 * np.sin(0.5 * u + phase)])

    return Instrument("gauge", measure, 0.06)


INSTRUMENTS: dict[str, Callable[[int], Instrument]] = {"radio": radio, "camera": camera, "gauge": gauge}


def make(instrument: Instrument, X: Array, n_points: int, random: np.random.RandomState) -> Array:
    """Bursts (N, M, D) at the states X."""
    clouds = X[:, None] + instrument.burst_std * random.standard_normal((len(X), n_points, 2))
    return instrument.measure(clouds.reshape(-1, 2)).reshape(len(X), n_points, -1)


def readings(names: tuple[str, ...], plan: str, seed: int, n: int, stream: int = 0) -> tuple[Array, dict[str, Array]]:
    """Simultaneous readings of instruments at n states that no fit has seen."""
    X = states(plan, n, np.random.RandomState([seed, stream, 99]))
    return X, {name: INSTRUMENTS[name](seed).measure(X) for name in names}


@lru_cache(maxsize=256)
def fitted(name: str, plan: str, seed: int, n_bursts: int = BURSTS, known: bool = True) -> tuple[Array, LOCA]:
    """States (N, 2) and the model of one instrument that saw a plan; each instrument is there at its own times."""
    instrument = INSTRUMENTS[name](seed)
    random = np.random.RandomState([seed, sum(map(ord, name + plan))])
    X = states(plan, n_bursts, random)
    return X, fit(make(instrument, X, POINTS, random), instrument.burst_std if known else None, seed)


def fit(bursts: Array, burst_std: float | None, seed: int) -> LOCA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return LOCA(burst_std=burst_std, random_state=seed).fit(bursts)
