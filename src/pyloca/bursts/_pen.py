"""Spots that are drawn too wide: the correction, what their pixels are worth, and what a grid says about the pen."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts._arrays import Array
from pyloca.errors import BurstError, TrustWarning

__all__ = ["Pen", "covariances", "drawn_in", "pixel_worth", "seen_pen"]

# Error of a covariance by pixels: E‖C^{-½} Ĉ C^{-½} − I‖² = 6 P / (8 M²) for M pixels in a spot of perimeter P, where M
# independent points have 6 / M. Only the pixels of the edge are uncertain. 8 is from ellipses at random places and
# angles, M = 13 to 1257, axes 1 : 1 to 4 : 1 (6.2 to 12.4), and 8.3 on photographs with blur and noise
# (tests/bursts/test_spots.py).
PIXEL_WORTH = 8.0
# Pixels and standard errors by which spots on a grid must be too wide before anything is said: blur and threshold move
# the edges of right spots by up to 0.15 pixels, and a period of whole pixels, which makes their errors alike, by 0.3.
FAT, FAT_ERRORS = 0.5, 4.0
UNSURE = 0.25  # pixels: standard error of an estimate that is not worth applying
THINNEST = 0.5  # pixels: a semi-axis that a correction leaves; less is not a spot
NEAREST = 25  # spots among which neighbours on the grid are looked for
UNEVEN = 0.1  # a grid's opposite neighbours cancel to within this part of their distance
SKEW = 2.0  # and are as far in units of the spot one way as another, to within this factor of squares
ALIKE = 0.02  # a line needs widths that differ by at least this part of their mean
INNER = 30  # spots inside the grid that an estimate needs


@dataclass(frozen=True)
class Pen:
    """What spots on a regular grid say about the pen.

    Attributes
    ----------
    dilation, error : float
        How much too wide the spots are, in pixels, and its standard error; nan when it cannot be told.
    reason : str
        Why it cannot be told; "" when it can.
    """

    dilation: float
    error: float
    reason: str = ""


def drawn_in(spots: list[Array], dilation: float | str | None) -> tuple[list[Array], Array, str]:
    """Draw the pixels of spots in by what the pen added; return them, their effective counts, and a note on it.

    A uniform ellipse has semi-axes 2√λ, and the pen makes each longer by `dilation`. This is exact for a disc; at 2 : 1
    the outline moved outwards is no longer an ellipse, and both semi-axes remain 0.7 % too long.
    """
    centres, moments = covariances(spots)
    counts = np.array([len(spot) for spot in spots], dtype=np.float64)
    values, axes = np.linalg.eigh(moments)
    drawn = 2 * np.sqrt(np.maximum(values, 0))  # (N, 2) semi-axes
    _refuse_thin(centres, drawn, 0.0)
    pen, note = _dilation(centres, moments, dilation)
    true = drawn - pen
    _refuse_thin(centres, true, pen)
    # A sample covariance has the divisor M − 1, and that of the points that are returned must be the spot's.
    factors = true / drawn * np.sqrt(1 - 1 / counts)[:, None]
    maps = np.einsum("nia,na,nja->nij", axes, factors, axes)
    points = [c + (spot - c) @ shrink for spot, c, shrink in zip(spots, centres, maps, strict=True)]
    # The error of an axis in pixels stays what it was, and is a larger part of the axis that is left.
    worth = 1 + (pixel_worth(counts, drawn) - 1) * np.square(true / drawn).mean(axis=1)
    return points, np.maximum(worth, 2), note


def _refuse_thin(centres: Array, axes: Array, pen: float) -> None:
    thin = np.flatnonzero(axes[:, 0] < THINNEST)
    if not len(thin):
        return
    i = int(thin[0])
    seen = f"the spot at x = {centres[i, 0]:.0f}, y = {centres[i, 1]:.0f} (and {len(thin) - 1} more)"
    if pen:
        raise BurstError(
            f"{seen} has a semi-axis of {axes[i, 0] + pen:.2f} pixels, of which dilation = {pen:.2f} leaves nothing."
        )
    raise BurstError(f"{seen} is a line one pixel wide; raise min_points, or photograph the spots larger.")


def _dilation(centres: Array, moments: Array, given: float | str | None) -> tuple[float, str]:
    """Return how much too wide the spots are, as given or estimated, and a note; warn if nothing is given."""
    if given is not None and not isinstance(given, str):
        return float(given), f", corrected by {given:g} pixels" if given else ""
    pen = seen_pen(centres, moments)
    if given is None:
        if abs(pen.dilation) > max(FAT, FAT_ERRORS * pen.error):  # nan is not
            warnings.warn(
                f"the spots are {abs(pen.dilation):.2f} ± {pen.error:.2f} pixels too "
                f"{'wide' if pen.dilation > 0 else 'narrow'} for the grid that they lie on: distances will be wrong "
                f'where the sheet is tilted. Pass dilation="estimate", or dilation=0 if they are right.',
                TrustWarning,
                stacklevel=4,
            )
        return 0.0, ""
    reason = pen.reason
    if not reason and pen.error > UNSURE:
        reason = f"the sheet is bent too little ({pen.dilation:.2f} ± {pen.error:.2f} pixels)"
    if reason:
        raise BurstError(
            f"how much the pen widened the spots cannot be told from them: {reason}. Pass dilation as a number: half "
            "the difference between the width of a spot and what it should be."
        )
    return pen.dilation, f", {pen.dilation:.2f} ± {pen.error:.2f} pixels too wide by their grid, corrected"


def covariances(spots: list[Array]) -> tuple[Array, Array]:
    """Compute the centres (N, 2) and covariances (N, 2, 2) of spots, as figures and not as samples: divisor M."""
    centres = np.array([spot.mean(axis=0) for spot in spots])
    moments = [(spot - centre).T @ (spot - centre) / len(spot) for spot, centre in zip(spots, centres, strict=True)]
    return centres, np.array(moments)


def pixel_worth(counts: Array, axes: Array) -> Array:
    """Compute how many independent points tell as much as M pixels of semi-axes (N, 2) do: 1 + 8 M² / perimeter."""
    b, a = axes.T
    perimeter = np.pi * (3 * (a + b) - np.sqrt((3 * a + b) * (a + 3 * b)))  # Ramanujan
    return np.asarray(1 + PIXEL_WORTH * np.square(counts) / perimeter)


def seen_pen(centres: Array, moments: Array) -> Pen:
    """Estimate how much too wide spots on a regular grid are: their distances do not know the pen.

    The vectors v to the neighbours on a square or hexagonal grid have Σ v vᵀ ∝ J Jᵀ, as the covariance C of a spot has.
    So the width of a spot along any direction n is 2 √(nᵀ C n) = c √(nᵀ S n) + dilation, with one c for all: a line.
    """
    if len(centres) < INNER:
        return Pen(np.nan, np.nan, f"there are only {len(centres)} spots")
    reasons = []
    for n_neighbors in (4, 6):
        inner, lattice, reason = _lattice(centres, moments, n_neighbors)
        if reason:
            reasons.append(reason)
            continue
        values, axes = np.linalg.eigh(lattice)
        width = np.sqrt(values).ravel()  # (2 n,) of the grid
        spot = 2 * np.sqrt(np.einsum("nda,nde,nea->na", axes, moments[inner], axes)).ravel()
        centred = width - width.mean()
        if centred.std() < ALIKE * width.mean():
            return Pen(np.nan, np.nan, "all of them look alike, which is also why it hardly matters")
        slope = float(centred @ spot / (centred @ centred))
        left = spot - spot.mean() - slope * centred
        error = np.sqrt(left @ left / (len(left) - 2) * (1 / len(left) + width.mean() ** 2 / (centred @ centred)))
        return Pen(float(spot.mean() - slope * width.mean()), float(error))
    return Pen(np.nan, np.nan, reasons[0])


def _lattice(centres: Array, moments: Array, n_neighbors: int) -> tuple[NDArray[np.int64], Array, str]:
    """Return the spots inside a grid, their Σ v vᵀ (n, 2, 2), and "" or why they are not one."""
    from sklearn.neighbors import NearestNeighbors  # takes a while to import

    near = NearestNeighbors(n_neighbors=min(NEAREST, len(centres)) - 1).fit(centres).kneighbors(return_distance=False)
    steps = centres[near] - centres[:, None]  # (N, K, 2)
    factor = np.linalg.cholesky(np.linalg.inv(moments))
    whitened = steps @ factor  # in units of the spot, where a tilted grid looks straight
    order = np.argsort(np.square(whitened).sum(axis=2), axis=1)[:, :n_neighbors, None]
    steps, whitened = np.take_along_axis(steps, order, axis=1), np.take_along_axis(whitened, order, axis=1)
    # how far each neighbour's opposite is from where it should be, as a part of the distance
    sums = np.linalg.norm(whitened[:, :, None] + whitened[:, None], axis=3).min(axis=2)
    unclosed = (sums / np.linalg.norm(whitened, axis=2)).max(axis=1)
    lattice = np.einsum("nka,nkb->nab", steps, steps)
    inner = np.flatnonzero(unclosed < 3 * UNEVEN)  # a spot at the border has no neighbours beyond
    if len(inner) < max(INNER, len(centres) // 2) or np.median(unclosed[inner]) > UNEVEN:
        return inner, lattice[inner], "they do not lie on a regular grid"
    values = np.linalg.eigvalsh(np.einsum("nka,nkb->nab", whitened[inner], whitened[inner]))
    if np.median(values[:, 1] / values[:, 0]) > SKEW:
        return inner, lattice[inner], "their grid is neither square nor hexagonal"
    return inner, lattice[inner], ""
