"""Section 7.2: where is a receiver on a floor, told by the strength of 17 transmitters?"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.datasets._dataset import Dataset

__all__ = ["FLOOR_PLAN", "wifi"]

REACH = 600.0  # pixels, ε in y = exp(−‖x − t‖² / ε²)

# Rooms and corridors of an invented floor of 600 × 1000 pixels, as (left, bottom, right, top). Their union is connected
# and far from convex: two wings with a court between them, a bridge, a hall with an annexe, dead-end rooms.
FLOOR_PLAN = np.array(
    [
        (0, 0, 240, 180),  # south-west hall
        (60, 180, 160, 620),  # west wing
        (0, 300, 60, 420),  # a room west of it
        (240, 60, 420, 130),  # south corridor
        (420, 0, 600, 240),  # south-east hall
        (470, 240, 560, 560),  # east wing
        (360, 330, 470, 440),  # a room into the court
        (160, 540, 470, 620),  # bridge
        (260, 620, 370, 760),  # stem
        (120, 760, 520, 900),  # north hall
        (520, 800, 600, 1000),  # annexe
        (0, 840, 120, 1000),  # north-west room
    ],
    dtype=np.float64,
)


def signals(x: NDArray[np.float64], transmitters: NDArray[np.float64]) -> NDArray[np.float64]:
    """y = exp(−‖x − t‖² / 600²) for each transmitter t."""
    squared = np.square(x[:, None] - transmitters).sum(axis=2)  # (n, 17)
    return np.exp(-squared / REACH**2)


def wifi(
    n_bursts: int = 4000,
    n_receivers: int = 6,
    radius: float = 0.5,
    n_transmitters: int = 17,
    *,
    random_state: int | None = None,
) -> Dataset:
    """A ring of receivers at each of `n_bursts` places of a non-convex floor; latents are in pixels.

    `extras` has "transmitters" (17, 2) and "rooms" (r, 4).
    """
    random = np.random.RandomState(random_state)
    transmitters = _uniform(n_transmitters, random)
    X = _uniform(n_bursts, random)
    angles = 2 * np.pi * np.arange(n_receivers) / n_receivers
    ring = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    measure = partial(signals, transmitters=transmitters)
    bursts = Bursts(measure((X[:, None] + ring).reshape(-1, 2)).reshape(n_bursts, n_receivers, n_transmitters))
    # The sample covariance divides by M − 1: a ring of M points has σ² = r²/2 · M/(M − 1).
    std = radius * np.sqrt(n_receivers / (2 * (n_receivers - 1)))
    extras = {"transmitters": transmitters, "rooms": FLOOR_PLAN}
    return Dataset("wifi", X, measure(X), bursts, std, 2, 2, measure, extras=extras)


def _uniform(n: int, random: np.random.RandomState) -> NDArray[np.float64]:
    """n places uniform on the floor. No two rooms overlap, so a room is drawn by its area."""
    low, high = FLOOR_PLAN[:, :2], FLOOR_PLAN[:, 2:]
    area = np.prod(high - low, axis=1)
    room = random.choice(len(FLOOR_PLAN), size=n, p=area / area.sum())
    return low[room] + (high - low)[room] * random.uniform(size=(n, 2))
