"""Instruments that are used wrongly: pictures too fine for the bursts, fat spots, cut recordings, dropouts, strays."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, map_coordinates
from scipy.spatial import cKDTree

from benchmarks.dirty.recordings import SYSTEMS, instrument, trajectory
from benchmarks.hidden.judging import GOOD, WHAT, judged
from benchmarks.hidden.maps import saturating
from benchmarks.rows import Row
from pyloca.bursts import from_image
from pyloca.datasets import _photograph
from pyloca.errors import BurstError, TrustWarning

__all__ = ["ROWS"]

Array = NDArray[np.float64]
FAT = "too fat"  # what `from_image` warns of: no fit of the bursts can tell
Random = np.random.RandomState


def pictures(seed: int, random: Random) -> dict[str, Any]:
    """A window of 16 × 16 pixels on a random picture, whose details are 1 to 6 pixels wide."""
    detail, n, points, std = random.uniform(1.0, 6.0), random.randint(200, 350), random.randint(12, 30), 0.2
    picture = gaussian_filter(random.standard_normal((70, 70)), detail)
    X = random.uniform(0, 30, size=(n, 2))
    corner = X[:, None] + std * random.standard_normal((n, points, 2)) + 10  # (n, M, 2)
    side = np.arange(16)
    rows, columns = np.broadcast_arrays(
        corner[..., 0, None, None] + side[:, None], corner[..., 1, None, None] + side[None]
    )
    seen = map_coordinates(picture / picture.std(), [rows.ravel(), columns.ravel()], order=3).reshape(n, points, -1)
    true = ("few_bursts", "folded", "round_trip", "poor_fit")
    return judged(X, seen, seed, true, burst_std=std) | {"detail": detail, "n": n, "points": points}


def spots(seed: int, random: Random) -> dict[str, Any]:
    """Printed spots on a bent sheet, photographed more or less sharply; σ is not known, nor is the scale."""
    spot, blur, size = random.uniform(0.2, 0.42), random.uniform(0.5, 3.0), int(random.randint(300, 600))
    with (
        mock.patch.object(_photograph, "SPOT", spot),
        mock.patch.object(_photograph, "GRID", 16),
        mock.patch.object(_photograph, "gaussian_filter", lambda image, _: gaussian_filter(image, blur)),
    ):
        photo = _photograph.bent_sheet(size, random_state=random)
    facts = {"spot": spot, "blur": blur, "size": size}
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", TrustWarning)
            bursts = from_image(photo.image, 0.5)
    except BurstError as error:  # spots that run into each other
        return {"value": 0.0, "ok": True, "verdict": "refused", "findings": ["refused"], "refusal": str(error)} | facts
    node = cKDTree(photo.Y).query(np.array([burst.mean(axis=0) for burst in bursts]))[1]
    true = ("few_points", "curved", "uneven_size", "uneven_shape", "poor_fit", FAT)
    before = tuple(FAT for warning in told if issubclass(warning.category, TrustWarning))
    return judged(photo.X[node], bursts, seed, true, before, always=True, scale=True) | facts


def cut(seed: int, random: Random) -> dict[str, Any]:
    """A recording of a diffusion, cut into windows as it is: pieces of a path, and no clouds."""
    name, window = str(random.choice(list(SYSTEMS))), int(random.choice([6, 10, 20, 40, 80, 150]))
    path = trajectory(name, random, 8000)
    seen = instrument(random, random.randint(3, 7))(path)
    n = min(len(path) // window, 600)
    X, clouds = (series[: n * window].reshape(n, window, -1) for series in (path, seen))
    true = ("path", "large_bursts", "refused", "few_points")
    facts = {"system": name, "n": n, "points": window}
    return judged(X.mean(axis=1), clouds, seed, true, always=True, scale=True) | facts


def _square(random: Random) -> tuple[Array, Array, float]:
    n, points, std = random.randint(200, 500), int(np.exp(random.uniform(*np.log([7, 50])))), 0.01
    measure = saturating(random, 2, random.randint(4, 9))
    X = random.uniform(size=(n, 2))
    return X, measure(X[:, None] + std * random.standard_normal((n, points, 2))), std


def dropouts(seed: int, random: Random) -> dict[str, Any]:
    """Single readings that fall to a fixed value, 1 to 20 % of them."""
    X, clouds, std = _square(random)
    share, value = random.uniform(0.01, 0.2), random.uniform(-1, 0) * 2
    lost = random.uniform(size=clouds.shape[:2]) < share / clouds.shape[2]
    where = random.randint(clouds.shape[2], size=clouds.shape[:2])
    clouds = clouds.copy()
    clouds[(*np.nonzero(lost), where[lost])] = value
    true = ("outliers", "noise", "large_bursts", "unrelated", "clipped", "poor_fit", "uneven_shape", "refused")
    facts = {"n": len(X), "points": clouds.shape[1], "share": share}
    return judged(X, clouds, seed, (*true, "more_tangents", "few_points"), **{"burst_std": std}) | facts


def odd_bursts(seed: int, random: Random) -> dict[str, Any]:
    """One to six bursts that belong elsewhere or are of another size; the others are sound."""
    X, clouds, std = _square(random)
    clouds, count = clouds.copy(), random.randint(1, 7)
    for i in random.permutation(len(X))[:count]:
        middle, kind = clouds[i].mean(axis=0), random.randint(3)
        if kind == 0:
            clouds[i] = middle + 3.0 ** random.choice([-1, 1]) * (clouds[i] - middle)
        elif kind == 1:
            clouds[i] += 0.5 * random.standard_normal(clouds.shape[2])
        else:
            other = clouds[random.randint(len(X))]
            clouds[i] = middle + other - other.mean(axis=0)
    facts = {"n": len(X), "points": clouds.shape[1], "odd": count}
    return judged(X, clouds, seed, ("outliers",), always=True, burst_std=std) | facts


def noise(seed: int, random: Random) -> dict[str, Any]:
    """Noise of 1 to 100 % of a burst in all sensors, which the user does not know of."""
    X, clouds, std = _square(random)
    share = float(np.exp(random.uniform(*np.log([0.01, 1.0]))))
    size = np.sqrt(clouds.var(axis=1).sum(axis=1).mean() / 2)
    clouds = clouds + share * size * random.standard_normal(clouds.shape)
    true = ("noise", "refused", "more_tangents", "few_points")
    return judged(X, clouds, seed, true, burst_std=std) | {"n": len(X), "points": clouds.shape[1], "noise": share}


KINDS: dict[str, Callable[[int, Random], dict[str, Any]]] = {
    "fine pictures": pictures,
    "photographed spots": spots,
    "cut recordings": cut,
    "dropouts": dropouts,
    "odd bursts": odd_bursts,
    "noise": noise,
}


def _facts(name: str, seed: int) -> dict[str, Any]:
    return KINDS[name](seed, Random(crc32(f"{name} {seed}".encode())))


ROWS = tuple(Row(f"instruments: {name}", GOOD, WHAT, partial(_facts, name)) for name in KINDS)
