"""Clean sets that look as if they had strays: bursts with heavy tails, and positions with sparse outskirts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.dirty._sensors import SIGMA
from pyloca.paper.experiments._measurements import smooth_map

__all__ = ["heavy_sets"]

Array = NDArray[np.float64]
Random = np.random.RandomState
N, M, DIM = 300, 20, 6


def student(freedom: int) -> Callable[[Random], Array]:
    """Student's t, of unit variance."""

    def draw(random: Random) -> Array:
        stretch = np.sqrt((freedom - 2) / random.chisquare(freedom, size=(N, M, 1)))
        return stretch * random.standard_normal((N, M, 2))

    return draw


def lognormal(random: Random) -> Array:
    """Radii that differ by lognormal factors from those of a Gaussian."""
    return np.exp(0.6 * random.standard_normal((N, M, 1)) - 0.36) * random.standard_normal((N, M, 2))


def one_sided(random: Random) -> Array:
    return random.exponential(size=(N, M, 2)) - 1


def outskirts(random: Random) -> Array:
    """A tenth of the bursts lie around a square that is a fifth as wide."""
    places = random.uniform(size=(N, 2))
    dense = random.uniform(size=N) > 0.1
    places[dense] = 0.4 + 0.2 * places[dense]
    return places


def arm(random: Random) -> Array:
    """A square with a long thin arm."""
    places = random.uniform(size=(N, 2))
    places[: N // 12] = [1, 0.5] + [1, 0.02] * places[: N // 12]
    return places


CLOUDS: dict[str, Callable[[Random], Array]] = {
    "t3": student(3),
    "t5": student(5),
    "lognormal": lognormal,
    "one-sided": one_sided,
    "Gaussian": lambda random: random.standard_normal((N, M, 2)),
}
PLACES: dict[str, Callable[[Random], Array]] = {
    "uniform": lambda random: random.uniform(size=(N, 2)),
    "Gaussian": lambda random: 0.5 + 0.2 * random.standard_normal((N, 2)),
    "outskirts": outskirts,
    "arm": arm,
}


def heavy_sets(seed: int) -> Iterator[tuple[str, Array]]:
    """Draw bursts of each kind at places of each kind: what they are, and (N, M, D)."""
    # Limits were set on seeds below 11 000.
    random = Random(20_000 + seed)
    for where, places in PLACES.items():
        for kind, cloud in CLOUDS.items():
            measure = smooth_map(2, DIM, random)
            points = places(random)[:, None] + SIGMA * cloud(random)
            yield f"{kind} bursts, {where}", measure(points.reshape(-1, 2)).reshape(N, M, DIM)
