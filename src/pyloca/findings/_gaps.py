"""Regions where nothing was measured: the largest gap in the embedding, whether a hole or a notch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import Delaunay, QhullError, cKDTree

from pyloca.geometry import sample_rows
from pyloca.thresholds import GAP_BURSTS, GAP_DIMENSIONS, WIDE

__all__ = ["Gap", "largest_gap"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Gap:
    """A ball between the embedded bursts that contains none of them.

    Attributes
    ----------
    centre : tuple of d float
    radius : float
    spacing : float
        Median distance of a burst to its nearest neighbour (d = 1: to the next one).

    Examples
    --------
    See `largest_gap`.
    """

    centre: tuple[float, ...]
    radius: float
    spacing: float

    def __str__(self) -> str:
        at = ", ".join(f"{x:.3g}" for x in self.centre)
        return (
            f"nothing was measured within {self.radius:.3g} of ({at}), {self.radius / self.spacing:.0f} times the "
            "usual spacing of bursts: there encoder and decoder extrapolate"
        )


def largest_gap(embedding: Array) -> Gap | None:
    """Find the largest empty ball with its centre between bursts, if it is much wider than their spacing.

    The largest empty balls are the circumscribed balls of Delaunay simplices; in one dimension, intervals.

    Parameters
    ----------
    embedding : (N, d) array

    Returns
    -------
    Gap or None

    Examples
    --------
    >>> import numpy as np
    >>> square = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> ring = square[np.linalg.norm(square - 0.5, axis=1) > 0.3]
    >>> largest_gap(square) is None, round(largest_gap(ring).radius, 1)
    (True, 0.3)
    """
    points = embedding[sample_rows(len(embedding), GAP_BURSTS)]
    d = points.shape[1]
    if d > GAP_DIMENSIONS or len(points) < d + 2:
        return None
    if d == 1:
        line = np.sort(points[:, 0])
        centres, radii = (line[1:] + line[:-1])[:, None] / 2, np.diff(line) / 2
        spacing = 2 * float(np.median(radii))
    else:
        spacing = float(np.median(cKDTree(points).query(points, 2)[0][:, 1]))
        try:
            mesh = Delaunay(points)
        except QhullError:  # all on one line
            return None
        centres, radii = _circumscribed(points[mesh.simplices])
        between = mesh.find_simplex(centres) >= 0
        centres, radii = centres[between], radii[between]
    if not len(radii) or not radii.max() > WIDE * spacing > 0:
        return None
    widest = int(np.argmax(radii))
    return Gap(tuple(float(x) for x in centres[widest]), float(radii[widest]), spacing)


def _circumscribed(simplices: Array) -> tuple[Array, Array]:
    """Centres (s, d) and radii (s,) of the spheres through the corners of simplices (s, d + 1, d)."""
    corner, edges = simplices[:, 0], simplices[:, 1:] - simplices[:, :1]
    flat = np.abs(np.linalg.det(edges)) <= 1e-9 * np.linalg.norm(edges, axis=2).prod(axis=1)
    edges, corner = edges[~flat], corner[~flat]
    towards = np.linalg.solve(2 * edges, np.square(edges).sum(axis=2)[:, :, None])[:, :, 0]
    return corner + towards, np.linalg.norm(towards, axis=1)
