"""Figure 1: a laser heats spots of a curved surface, one at a time, under a thermal camera. d = 3, k = D = 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyloca._arguments import brief, check_count, check_real
from pyloca.bursts import Bursts, from_spots
from pyloca.datasets._dataset import Dataset

__all__ = ["thermal_surface"]

Array = NDArray[np.float64]

VIEW = 1.3  # the camera sees the square [−1.3, 1.3]²; spots are on the unit disc
AMBIENT, HEAT = 20.0, 30.0  # degrees
KEPT = 20  # frames in `extras`
SUBPIXELS = 3

SURFACES: dict[str, Callable[[Array, Array], Array]] = {
    "dome": lambda x, y: 0.9 * (1 - x**2 - y**2),
    "saddle": lambda x, y: 0.6 * (x**2 - y**2),
    "wave": lambda x, y: 0.3 * np.sin(np.pi * x) + 0 * y,
}


def thermal_surface(
    kind: str = "dome",
    n_spots: int = 400,
    burst_std: float = 0.04,
    *,
    size: int = 128,
    noise: float = 0.1,
    random_state: int | np.random.RandomState | None = None,
) -> Dataset:
    """Heat spots of a surface z = h(x, y) and look at them from above (Fig. 1 of the paper).

    A spot has the temperature exp(−r² / 2σ²), r the distance from its centre in space, and is round on the surface; the
    camera sees it shortened where the surface is steep. One frame is taken per spot, and
    `pyloca.bursts.from_spots` makes the bursts.

    Parameters
    ----------
    kind : {"dome", "saddle", "wave"}, default="dome"
        Shape of the surface over the unit disc: 0.9 (1 − x² − y²), 0.6 (x² − y²) or 0.3 sin πx. Bursts see lengths on
        the surface. They do not see it bend: a wave is a flat sheet to them, and a saddle can bend.
    n_spots : int, default=400
    burst_std : float, default=0.04
        σ, the width of a spot on the surface; at least a pixel.
    size : int, default=128
        Width and height of a frame, which shows [−1.3, 1.3]², in pixels.
    noise : float, default=0.1
        Standard deviation of a pixel, in degrees; the spots are 30 degrees warmer than the surface.
    random_state : int, RandomState or None, default=None
        Pass an integer for the same data on every call.

    Returns
    -------
    Dataset
        With n_components = 3; X are places in space. ``extras["frames"]`` are the first 20 frames.

    Raises
    ------
    ValueError
        If an argument is wrong.

    Examples
    --------
    >>> data = thermal_surface("dome", n_spots=20, random_state=0)
    >>> data.X.shape, data.bursts, data.extras["frames"].shape
    ((20, 3), Bursts(N=20, M=8, D=2), (20, 128, 128))
    """
    if kind not in SURFACES:
        raise ValueError(f"kind must be one of {', '.join(map(repr, SURFACES))}; got {brief(kind)}.")
    check_count("n_spots", n_spots)
    check_count("size", size, 16)
    check_real("burst_std", burst_std)
    check_real("noise", noise, positive=False)
    pixel = 2 * VIEW / size
    if burst_std < pixel:
        raise ValueError(f"burst_std = {burst_std:g} is less than a pixel, {pixel:.3g}; use a larger size.")
    random = check_random_state(random_state)
    radius, angle = np.sqrt(random.uniform(size=n_spots)), random.uniform(0, 2 * np.pi, size=n_spots)
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    X = np.stack([x, y, SURFACES[kind](x, y)], axis=1)
    kept: list[Array] = []

    def frames() -> Iterator[Array]:
        for clean in _frames(kind, X, burst_std, size):
            frame = clean + noise * random.standard_normal(clean.shape)
            if len(kept) < KEPT:
                kept.append(frame)
            yield frame

    seen = Bursts(
        from_spots(frames(), pixel_size=pixel),
        burst_std=burst_std,
        provenance=f"thermal_surface: a camera over a {kind}, spots of σ = {burst_std:g}, pixels of {pixel:.3g}",
    )
    camera = partial(_from_above, size)
    extras = {"frames": np.array(kept)}
    return Dataset("thermal_surface", X, camera(X), seen, burst_std, 3, 2, camera, extras=extras)


def _from_above(size: int, x: Array) -> Array:
    """Return where the camera sees a place, (n, 3) → (n, 2), from the centre of the first pixel."""
    return x[:, :2] + VIEW * (1 - 1 / size)


def _frames(kind: str, X: Array, burst_std: float, size: int) -> Iterator[Array]:
    """Yield one frame (size, size) per place, each pixel the mean of its subpixels."""
    fine = size * SUBPIXELS
    side = VIEW * ((2 * np.arange(fine) + 1) / fine - 1)
    height = SURFACES[kind](side[None, :], side[:, None])
    reach = int(np.ceil(6 * burst_std / (2 * VIEW) * size)) + 1  # pixels; a spot is never wider than on the surface
    for place in X:
        middle = ((place[:2] / VIEW + 1) / 2 * size).astype(int)
        low, high = np.maximum(middle - reach, 0), np.minimum(middle + reach + 1, size)
        columns, rows = (slice(a * SUBPIXELS, b * SUBPIXELS) for a, b in zip(low, high, strict=True))
        squares = (
            np.square(side[columns][None, :] - place[0])
            + np.square(side[rows][:, None] - place[1])
            + np.square(height[rows, columns] - place[2])
        )
        heat = np.exp(-0.5 * squares / burst_std**2)
        h, w = high[1] - low[1], high[0] - low[0]
        frame = np.full((size, size), AMBIENT)
        frame[low[1] : high[1], low[0] : high[0]] += HEAT * heat.reshape(h, SUBPIXELS, w, SUBPIXELS).mean(axis=(1, 3))
        yield frame
