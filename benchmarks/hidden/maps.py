"""Random measurements of 1 to 6 latent variables, with random numbers of sensors, bursts and points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from benchmarks.hidden.judging import GOOD, WHAT, judged
from benchmarks.rows import Row

__all__ = ["KINDS", "ROWS", "draw"]

Array = NDArray[np.float64]
Random = np.random.RandomState
Measure = Callable[[Array], Array]

# What may be wrong with a fit of sound bursts: they are too few, too short or too large for the bends.
CAUSES = ("few_bursts", "few_points", "imprecise", "folded", "poor_fit", "round_trip", "large_bursts")


@dataclass(frozen=True)
class Case:
    """Latent variables, what was measured, and how to fit it."""

    X: Array
    bursts: Array
    settings: dict[str, Any]
    facts: dict[str, Any]


def _units(random: Random, n: int, k: int) -> Array:
    """(k, n) unit vectors, of any direction."""
    vectors = random.standard_normal((k, n))
    return vectors / np.linalg.norm(vectors, axis=0)


def polynomial(random: Random, k: int, dim: int) -> Measure:
    """The latent variables, mixed, plus random squares and cubes of lines through the middle."""
    mix, lines = np.linalg.qr(random.standard_normal((dim, dim)))[0][:k], _units(random, dim, k)
    squares, cubes = 0.6 * random.standard_normal((2, dim))

    def measure(x: Array) -> Array:
        u = (x - 0.5) @ lines
        return np.asarray((x - 0.5) @ mix + squares * u**2 + cubes * u**3)

    return measure


def corners(random: Random, k: int, dim: int) -> Measure:
    """The latent variables, |u·x − c| and max(u·x − c, 0), in random places."""
    lines, places = _units(random, dim - k, k), random.uniform(-0.4, 0.4, dim - k)
    absolute = random.uniform(size=dim - k) < 0.5

    def measure(x: Array) -> Array:
        u = (x - 0.5) @ lines - places
        return np.concatenate([x, np.where(absolute, np.abs(u), np.maximum(u, 0))], axis=-1)

    return measure


def softplus(random: Random, k: int, dim: int) -> Measure:
    """log(1 + exp(a (u·x − c))) / a: sensors with a soft onset."""
    lines, places, a = _units(random, dim, k), random.uniform(-0.5, 0.3, dim), random.uniform(3, 15, dim)
    return lambda x: np.logaddexp(0, a * ((x - 0.5) @ lines - places)) / a


def fourier(random: Random, k: int, dim: int, rate: float = 2.5) -> Measure:
    """Waves of all lengths down to that of the cube, or to a part of it."""
    rates, phases = rate * random.standard_normal((k, dim)), random.uniform(0, 2 * np.pi, dim)
    return lambda x: np.cos(x @ rates + phases)


def saturating(random: Random, k: int, dim: int) -> Measure:
    """An array of sensors tanh(a (u·x − c))."""
    lines, places, a = _units(random, dim, k), random.uniform(-0.5, 0.5, dim), random.uniform(1, 5, dim)
    return lambda x: np.tanh(a * ((x - 0.5) @ lines - places))


def beacons(random: Random, k: int, dim: int) -> Measure:
    """Signals that fall with the distance from beacons around the cube."""
    places = 0.5 + random.uniform(0.4, 1.5, dim)[:, None] * _units(random, dim, k).T
    return lambda x: np.log(0.1 + np.square(x[..., None, :] - places).sum(axis=-1))


def bumps(random: Random, k: int, dim: int) -> Measure:
    """Receptive fields: Gaussian bumps in the cube."""
    places, width = random.uniform(size=(dim, k)), random.uniform(0.35, 0.7, dim)
    return lambda x: np.exp(-np.square(x[..., None, :] - places).sum(axis=-1) / (2 * width**2))


def _draw(random: Random, tails: str) -> Callable[[tuple[int, ...]], Array]:
    """Displacements of unit variance."""
    if tails == "t3":
        return lambda shape: random.standard_t(3, size=shape) / np.sqrt(3)
    if tails == "t5":
        return lambda shape: random.standard_t(5, size=shape) / np.sqrt(5 / 3)
    if tails == "lognormal":
        mean, std = np.exp(0.18), np.exp(0.18) * np.sqrt(np.exp(0.36) - 1)
        return lambda shape: (np.exp(0.6 * random.standard_normal(shape)) - mean) / std
    if tails == "Laplace":
        return lambda shape: random.laplace(size=shape) / np.sqrt(2)
    if tails == "uniform":
        return lambda shape: random.uniform(-np.sqrt(3), np.sqrt(3), size=shape)
    return random.standard_normal


def _case(
    seed: int,
    kind: Callable[[Random, int, int], Measure],
    *,
    k: tuple[int, ...] = (2,),
    n: tuple[int, int] = (200, 600),
    points: tuple[int, int] = (12, 60),
    sensors: tuple[int, int] = (3, 7),
    std: tuple[float, float] = (0.005, 0.02),
    tails: tuple[str, ...] = ("normal",),
    places: Callable[[Random, Array], Array] | None = None,
    units: bool = False,
) -> Case:
    """Draw all that is random: k, N, M, σ (evenly in the logarithm) and k + `sensors` sensors."""
    random = Random(seed)
    dims = int(random.choice(k))
    n_bursts, n_points = (round(float(np.exp(random.uniform(*np.log(ends))))) for ends in (n, points))
    sigma, tail = float(np.exp(random.uniform(*np.log(std)))), str(random.choice(tails))
    measure = kind(random, dims, dims + random.randint(*sensors))
    X = random.uniform(size=(n_bursts, dims))
    X = X if places is None else places(random, X)
    clouds = measure(X[:, None] + sigma * _draw(random, tail)((len(X), n_points, dims)))
    if units:
        clouds = clouds * 10.0 ** random.uniform(-4, 4, clouds.shape[2]) + random.uniform(-10, 10, clouds.shape[2])
    facts = {"n": len(X), "points": n_points, "sensors": clouds.shape[2], "std": sigma, "tails": tail}
    return Case(X, clouds, {"burst_std": sigma, "n_components": dims}, facts)


def _narrow(random: Random, X: Array) -> Array:
    """A strip, one side a tenth to a quarter of the other."""
    return X * np.r_[random.uniform(0.1, 0.25), np.ones(X.shape[1] - 1)]


def _crowded(random: Random, X: Array) -> Array:
    """Half of the bursts in two small clusters, the others over the square."""
    half = len(X) // 2
    centres = random.uniform(0.2, 0.8, (2, X.shape[1]))
    X[:half] = centres[np.arange(half) % 2] + 0.06 * random.standard_normal((half, X.shape[1]))
    return X


def _cloud(random: Random, X: Array) -> Array:
    """Normal latent variables: an edge that thins out."""
    return np.asarray(0.5 + 0.25 * random.standard_normal(X.shape))


def _holed(random: Random, X: Array) -> Array:
    """A round hole and a notch."""
    centre, radius = random.uniform(0.3, 0.7, 2), random.uniform(0.15, 0.25)
    hole = np.linalg.norm(X[:, :2] - centre, axis=1) < radius
    notch = (np.abs(X[:, 0] - 0.5) < 0.08) & (X[:, 1] > random.uniform(0.6, 0.9))
    return X[~(hole | notch)]


def helix(seed: int) -> Case:
    """A curve that winds 1 to 8 times around an axis, with a radius that wobbles, by arc length."""
    random = Random(seed)
    turns, wobble, pitch = random.uniform(1, 8), random.uniform(0, 0.3), random.uniform(0.3, 1)
    n_bursts, n_points, rate = int(turns * random.randint(40, 80)) + 40, random.randint(15, 60), random.randint(2, 6)
    t = np.linspace(-0.1, turns * 2 * np.pi + 0.1, 100_000)
    radius = 1 + wobble * np.sin(rate * t / 3)
    curve = np.stack([radius * np.cos(t), radius * np.sin(t), pitch * t], axis=1)
    length = np.r_[0, np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))]
    X = random.uniform(*np.interp([0, t[-1] - 0.1], t, length), n_bursts)[:, None]
    steps = X + 0.03 * random.standard_normal((n_bursts, n_points))
    clouds = np.stack([np.interp(steps, length, column) for column in curve.T], axis=2)
    facts = {"n": n_bursts, "points": n_points, "turns": turns, "wobble": wobble}
    return Case(X, clouds, {"burst_std": 0.03, "n_components": 1}, facts)


def draw(name: str, seed: int) -> Case:
    """The case of a seed; the same seed draws other numbers in other rows."""
    return KINDS[name](crc32(f"{name} {seed}".encode()))


def _facts(name: str, seed: int) -> dict[str, Any]:
    case = draw(name, seed)
    return judged(case.X, case.bursts, seed, CAUSES, **case.settings) | case.facts


KINDS: dict[str, Callable[[int], Case]] = {
    "polynomials": partial(_case, kind=polynomial, k=(2, 3)),
    "corners": partial(_case, kind=corners, k=(2, 3)),
    "softplus sensors": partial(_case, kind=softplus, k=(2, 3), sensors=(5, 10)),
    "random waves": partial(_case, kind=fourier, sensors=(4, 12)),
    "fine waves": partial(_case, kind=partial(fourier, rate=6.0), sensors=(4, 12)),
    "saturating array": partial(_case, kind=saturating, k=(2, 3), sensors=(6, 14)),
    "beacons": partial(_case, kind=beacons, k=(2, 3), sensors=(4, 10)),
    "receptive fields": partial(_case, kind=bumps, sensors=(6, 20)),
    "helices": helix,
    "k = 4 to 6": partial(_case, kind=polynomial, k=(4, 5, 6), n=(400, 800), points=(25, 60), sensors=(6, 12)),
    "few bursts": partial(_case, kind=polynomial, k=(1, 2), n=(12, 80), points=(8, 100), std=(0.01, 0.03)),
    "few and short": partial(_case, kind=saturating, k=(1, 2, 3), n=(12, 60), points=(6, 14), sensors=(3, 8)),
    "short bursts": partial(_case, kind=beacons, n=(60, 400), points=(6, 10), sensors=(3, 8)),
    "other tails": partial(
        _case, kind=saturating, n=(30, 500), points=(8, 60), tails=("t3", "t5", "lognormal", "Laplace", "uniform")
    ),
    "mixed units": partial(_case, kind=softplus, sensors=(5, 10), units=True),
    "narrow strip": partial(_case, kind=beacons, k=(2,), places=_narrow, std=(0.005, 0.01)),
    "crowded places": partial(_case, kind=polynomial, places=_crowded),
    "normal cloud": partial(_case, kind=fourier, places=_cloud),
    "holes and notches": partial(_case, kind=saturating, places=_holed, sensors=(4, 10)),
    "large bursts": partial(_case, kind=beacons, std=(0.04, 0.15)),
    "long and many": partial(_case, kind=softplus, n=(1500, 3000), points=(60, 200), sensors=(4, 8)),
}
ROWS = tuple(Row(f"maps: {name}", GOOD, WHAT, partial(_facts, name)) for name in KINDS)
