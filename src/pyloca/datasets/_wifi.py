"""Section 7.2: places on a floor, measured by the signal strengths of 17 transmitters."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyloca.bursts import sensor_array
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
    """Return exp(−‖x − t‖² / 600²) for each transmitter t, (n, 2) → (n, 17)."""
    squared = np.square(x[:, None] - transmitters).sum(axis=2)  # (n, 17)
    return np.exp(-squared / REACH**2)


def wifi(
    n_bursts: int = 4000,
    n_receivers: int = 6,
    radius: float = 0.5,
    n_transmitters: int = 17,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Dataset:
    """Measure signal strengths with a ring of receivers at random places of a floor (section 7.2).

    The floor of 600 × 1000 pixels is not convex. A receiver at x measures exp(−‖x − t‖² / 600²) for a transmitter at t.

    Parameters
    ----------
    n_bursts : int, default=4000
        Number of places.
    n_receivers : int, default=6
        Receivers on the ring.
    radius : float, default=0.5
        Radius of the ring in pixels.
    n_transmitters : int, default=17
    random_state : int, RandomState or None, default=None
        Pass an integer for the same data on every call.

    Returns
    -------
    Dataset
        Latents are in pixels. `extras` has "transmitters" (n_transmitters, 2) and "rooms" (r, 4), each room as
        (left, bottom, right, top).

    Examples
    --------
    >>> data = wifi(n_bursts=100, random_state=0)
    >>> data.bursts
    Bursts(N=100, M=6, D=17)
    >>> round(data.burst_std, 3)
    0.387
    """
    random = check_random_state(random_state)
    transmitters = _uniform(n_transmitters, random)
    X = _uniform(n_bursts, random)
    measure = partial(signals, transmitters=transmitters)
    bursts = sensor_array(measure, X, radius, n_receivers).without_perturbations()
    assert bursts.burst_std is not None
    extras = {"transmitters": transmitters, "rooms": FLOOR_PLAN}
    return Dataset("wifi", X, measure(X), bursts, bursts.burst_std, 2, 2, measure, extras=extras)


def _uniform(n: int, random: np.random.RandomState) -> NDArray[np.float64]:
    """Draw n places uniformly on the floor. No two rooms overlap, so a room is drawn by its area."""
    low, high = FLOOR_PLAN[:, :2], FLOOR_PLAN[:, 2:]
    area = np.prod(high - low, axis=1)
    room = random.choice(len(FLOOR_PLAN), size=n, p=area / area.sum())
    return low[room] + (high - low)[room] * random.uniform(size=(n, 2))
