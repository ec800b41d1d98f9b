"""Bursts from a survey: readings at places whose relative positions are known, by tape measure or odometry."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import brief, check_real, is_integer
from pyloca.bursts._arrays import Array, as_points, offsets_of
from pyloca.bursts._container import Bursts
from pyloca.errors import BurstError

__all__ = ["from_positions"]


def from_positions(
    positions: ArrayLike, readings: ArrayLike, radius: float, *, anchors: int | ArrayLike | None = None
) -> Bursts:
    """Take the readings within `radius` of each anchor as a burst with known perturbations: their relative positions.

    LOCA regresses readings on positions in each burst, which averages their noise, and counts a burst by the error of
    that regression. Positions are compared within bursts only: they may drift over distances beyond `radius`, as those
    of odometry do.

    Parameters
    ----------
    positions : array of shape (n, k)
        Where each reading was taken.
    readings : array of shape (n, D)
        Repeated readings at one place are several rows.
    radius : float
        Of a burst, in the units of `positions`: small against the bends of the readings, large enough for the
        regression to average their noise.
    anchors : int or array of shape (N, k), optional
        Centres of the bursts: places, or a number of readings that are spread evenly. None takes each place where a
        reading was taken.

    Returns
    -------
    Bursts
        One per anchor, of unequal length, in the units of `positions`.

    Raises
    ------
    BurstError
        If an anchor has too few readings around it, or if they lie on a line (in a plane); if the arrays do not match
        or are not finite.
    ValueError
        If `radius` or `anchors` is wrong.

    Notes
    -----
    Bursts that overlap share readings, so their errors are not independent: held-out losses look better than they are.
    Anchors more than two radii apart share none.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.RandomState(0).uniform(size=(200, 2))
    >>> bursts = from_positions(x, np.c_[x, x[:, 0] ** 2], 0.2, anchors=50)
    >>> len(bursts), bursts.perturbed_dim
    (50, 2)
    """
    from scipy.spatial import cKDTree  # takes a while to import

    places, values = as_points(positions, "positions"), as_points(readings, "readings")
    if len(places) != len(values):
        raise BurstError(f"there are {len(places)} positions and {len(values)} readings; expected one of each per row.")
    check_real("radius", radius)
    centres = _anchors(places, anchors)
    near = cKDTree(places).query_ball_point(centres, float(radius), return_sorted=True)
    counts = np.array([len(rows) for rows in near])
    needed = places.shape[1] + 2  # one more than a Jacobian needs: the error of the regression is in what is left
    few = np.flatnonzero(counts < needed)
    if len(few):
        i = few[0]
        raise BurstError(
            f"anchor {i} at {centres[i].tolist()} (and {len(few) - 1} more) has {counts[i]} readings within {radius:g}"
            f"; {needed} are needed in {places.shape[1]} dimensions. Use a larger radius (the median is "
            f"{np.median(counts):g} readings), or pass anchors where there are enough."
        )
    rows = np.concatenate(near).astype(np.int64)
    try:
        return Bursts.from_ragged(
            values[rows],
            offsets_of(counts),
            perturbations=places[rows] - np.repeat(centres, counts, axis=0),
            provenance=f"from_positions: {len(centres)} anchors, {counts.min()} to {counts.max()} readings within "
            f"{radius:g} of each; bursts may share readings",
        )
    except BurstError as error:
        raise BurstError(f"{error} Here a burst is an anchor, and its perturbations are relative positions.") from None


def _anchors(places: Array, anchors: int | ArrayLike | None) -> Array:
    if anchors is None:
        return np.unique(places, axis=0)
    if isinstance(anchors, (int, np.integer)) and is_integer(anchors, 1):
        return places[_spread(places, int(anchors))]
    if not isinstance(anchors, (list, tuple)) and np.ndim(anchors) == 0:
        raise ValueError(f"anchors must be an integer ≥ 1, an array (N, k) of places, or None; got {brief(anchors)}.")
    centres = as_points(anchors, "anchors")
    if centres.shape[1] != places.shape[1]:
        raise BurstError(f"anchors have {centres.shape[1]} coordinates and positions have {places.shape[1]}.")
    return centres


def _spread(places: Array, n: int) -> NDArray[np.int64]:
    """Choose n different places, each the farthest from those before it; the first is nearest to the centre."""
    distance = np.linalg.norm(places - places.mean(axis=0), axis=1)
    chosen = [int(np.argmin(distance))]
    left = np.linalg.norm(places - places[chosen[0]], axis=1)
    while len(chosen) < n and left.max() > 0:
        chosen.append(int(np.argmax(left)))
        left = np.minimum(left, np.linalg.norm(places - places[chosen[-1]], axis=1))
    if len(chosen) < n:
        raise BurstError(f"anchors = {n} places cannot be chosen: readings were taken at {len(chosen)} places.")
    return np.sort(chosen)
