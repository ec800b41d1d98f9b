"""Section 7.1: a photograph of a printed grid of spots on a sheet that was bent by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid
from scipy.ndimage import gaussian_filter
from sklearn.utils import check_random_state

__all__ = ["Photograph", "bent_sheet"]

Array = NDArray[np.float64]

GRID = 50  # spots per side
SPOT = 0.3  # radius of a spot, in units of the distance between two
PAPER, INK = 0.95, 0.1
SUBPIXELS = 4
MARGIN = 0.08  # of the picture, around the sheet
HEIGHT = 2.2  # of the camera over the sheet, in units of its side


@dataclass(frozen=True)
class Photograph:
    """A grey-scale photograph of a bent sheet, and the truth about the sheet.

    Attributes
    ----------
    image : (height, width) array
        From 0 (black) to about 1.
    X : (2500, 2) array
        Nodes of the grid on the flat sheet, whose side is 1.
    Y : (2500, 2) array
        The same nodes in the photograph, (x, y) in pixels.
    corners : (4,) array of int
        Rows of X and Y that are the corners.
    burst_std : float
        σ of a spot on the sheet: half its radius.

    Examples
    --------
    See `bent_sheet`.
    """

    image: Array = field(repr=False)
    X: Array = field(repr=False)
    Y: Array = field(repr=False)
    corners: NDArray[np.int64] = field(repr=False)
    burst_std: float


def bent_sheet(size: int = 1000, *, random_state: int | np.random.RandomState | None = None) -> Photograph:
    """Photograph a sheet with 50 × 50 printed spots, bent without stretching, from above (section 7.1).

    The bend is a cylinder over a random smooth curve in a random direction, with slopes up to about 40 degrees. The
    camera has perspective and tilt; blur, noise and uneven light are added.

    Parameters
    ----------
    size : int, default=1000
        Width and height of the photograph in pixels.
    random_state : int, RandomState or None, default=None
        Pass an integer for the same data on every call.

    Returns
    -------
    Photograph
        `pyloca.bursts.from_image` turns its spots into bursts.

    Examples
    --------
    >>> bent_sheet(400, random_state=0).image.shape
    (400, 400)
    """
    random = check_random_state(random_state)
    side = np.arange(GRID) / (GRID - 1)
    X = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    project = _camera(random)
    outline = project(X)
    low, span = outline.min(axis=0), float((outline.max(axis=0) - outline.min(axis=0)).max())
    scale = size * (1 - 2 * MARGIN) / span
    shape = (int(size), int(size))

    def to_pixels(x: Array) -> Array:
        return (project(x) - low) * scale + MARGIN * size

    Y = to_pixels(X)
    radius = SPOT / (GRID - 1)
    coverage = _spots(to_pixels, X, radius, shape)
    row, column = np.mgrid[: shape[0], : shape[1]] / size
    tilt = random.uniform(-0.25, 0.25, size=2)
    light = 0.9 + tilt[0] * (column - 0.5) + tilt[1] * (row - 0.5)
    image = light * (PAPER + (INK - PAPER) * coverage)
    image = gaussian_filter(image, 0.7) + 0.015 * random.standard_normal(shape)
    corners = np.array([0, GRID - 1, GRID * (GRID - 1), GRID * GRID - 1])
    return Photograph(image, X, Y, corners, radius / 2)


def _camera(random: np.random.RandomState) -> Callable[[Array], Array]:
    """Return a random map from the flat sheet to the picture, both in units of the side."""
    direction = random.uniform(0, np.pi)
    turn = np.array([[np.cos(direction), -np.sin(direction)], [np.sin(direction), np.cos(direction)]])
    s = np.linspace(-0.8, 0.8, 2001)
    waves = random.uniform(0.4, 0.7), random.uniform(0, 2 * np.pi), random.uniform(2.5, 4.5)
    slope = waves[0] * np.sin(waves[2] * s + waves[1])  # the angle of the profile, at most 40 degrees
    along = cumulative_trapezoid(np.cos(slope), s, initial=0)
    up = cumulative_trapezoid(np.sin(slope), s, initial=0)
    along, up = along - np.interp(0, s, along), up - up.mean()
    angles = random.uniform(-0.2, 0.2, size=2)

    def project(x: Array) -> Array:
        flat = (x - 0.5) @ turn
        space = np.stack([np.interp(flat[:, 0], s, along), flat[:, 1], np.interp(flat[:, 0], s, up)], axis=1)
        depth = HEIGHT - space[:, 2] + np.sin(angles[0]) * space[:, 0] + np.sin(angles[1]) * space[:, 1]
        return space[:, :2] / depth[:, None]

    return project


def _spots(to_pixels: Callable[[Array], Array], X: Array, radius: float, shape: tuple[int, int]) -> Array:
    """Compute how much of every pixel is ink; the camera is linear within a spot, which is a disk on the sheet."""
    step = 1e-4
    sides = [to_pixels(X + step * axis) - to_pixels(X - step * axis) for axis in np.eye(2)]
    jacobian = np.stack(sides, axis=2) / (2 * step)  # (n, 2, 2)
    inverse = np.linalg.inv(jacobian)
    reach = int(np.ceil(radius * np.linalg.norm(jacobian, axis=(1, 2)).max())) + 1
    sub = (np.arange(SUBPIXELS) + 0.5) / SUBPIXELS - 0.5
    window = np.arange(-reach, reach + 1)
    offset = (window[:, None] + sub).ravel()
    ink = np.zeros(shape)
    for centre, back in zip(to_pixels(X), inverse, strict=True):
        column, row = np.rint(centre).astype(int)
        dx = column + offset - centre[0]
        dy = row + offset - centre[1]
        place = np.stack(np.broadcast_arrays(dx[None, :], dy[:, None]), axis=-1) @ back.T
        inside = (np.square(place).sum(axis=-1) <= radius**2).astype(float)
        part = inside.reshape(len(window), SUBPIXELS, len(window), SUBPIXELS).mean(axis=(1, 3))
        ink[row - reach : row + reach + 1, column - reach : column + reach + 1] += part
    return np.minimum(ink, 1)
