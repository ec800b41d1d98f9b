"""Bursts from pictures: spots in a photograph, and a camera that looks through a moving window."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from pyloca._arguments import as_numbers, as_random, brief, check_count, check_real, is_finite
from pyloca.bursts._arrays import Array, as_points
from pyloca.bursts._container import Bursts
from pyloca.bursts._pen import drawn_in
from pyloca.errors import BurstError

__all__ = ["from_image", "from_image_patches"]

MERGED = 1.6  # a cluster with this many times the pixels of the spots around it is two spots
FRAGMENT = 0.4  # and with this few it is a speck, or half a spot
AROUND = 12  # spots that it is compared with


def from_image(
    image: ArrayLike,
    threshold: float,
    eps: float = 1.5,
    min_points: int = 5,
    *,
    dilation: float | str | None = None,
) -> Bursts:
    """Find dark spots in a grey image; each is a burst of pixel positions (x, y), as in section 7.1 of the paper.

    Clusters that touch the border are clipped; those that are much larger or smaller than the spots around them are
    merged spots or specks. They are dropped and counted in ``provenance``.

    Pixels are not a sample of a spot: only those of its edge are uncertain. A burst of M pixels has an effective count
    of 1 + 8 M² / perimeter, and its points are drawn to its centre by the little by which a sample covariance (divisor
    M − 1) would exceed that of the spot.

    Parameters
    ----------
    image : array of shape (height, width)
    threshold : float
        Pixels below it are dark.
    eps : float
        Pixels that are at most this far apart belong together (DBSCAN).
    min_points : int
        Dark pixels within `eps` that make a cluster (DBSCAN).
    dilation : float, "estimate" or None
        How many pixels too far out the pen (or the threshold) drew the edge of every spot; negative: too far in. The
        points of each burst are drawn in to correct for it. It distorts distances, since small spots seem too round and
        too large, and on a bent sheet bursts alone cannot tell: the sheet stays flat. The distances between spots on a
        regular grid can, and "estimate" takes it from them. None corrects nothing, and warns if such a grid says that
        it should.

    Returns
    -------
    Bursts
        One per spot, of unequal length, with `effective_counts`. Their σ is not known.

    Raises
    ------
    BurstError
        If the image is not finite or not grey, if no spots are found in it, if a spot is not fatter than `dilation`,
        or if that cannot be estimated.
    ValueError
        If `eps`, `min_points` or `dilation` is wrong.

    Warns
    -----
    TrustWarning
        If `dilation` is None and the spots are too wide or too narrow for the grid that they lie on.

    Examples
    --------
    >>> import numpy as np
    >>> y, x = np.mgrid[:40, :40]
    >>> from_image(np.where((x % 10 - 5) ** 2 + (y % 10 - 5) ** 2 < 9, 0.0, 1.0), threshold=0.5)
    Bursts(N=16, M=25, D=2)
    """
    from sklearn.cluster import DBSCAN  # takes a while to import

    grey = as_numbers("image", image, BurstError)
    if grey.ndim != 2 or min(grey.shape) < 3:
        raise BurstError(f"image has shape {grey.shape}; expected one grey channel (height, width).")
    if not np.isfinite(grey).all():
        raise BurstError("the image has pixels that are not finite.")
    check_real("eps", eps)
    check_count("min_points", min_points, 1)
    if not (dilation is None or dilation == "estimate" or is_finite(dilation)):
        raise ValueError(f'dilation must be a number of pixels, "estimate" or None; got {brief(dilation)}.')
    row, column = np.nonzero(grey < threshold)
    if not len(row):
        raise BurstError(f"no pixel is darker than threshold = {threshold:g}; the darkest is {grey.min():g}.")
    if len(row) > 0.6 * grey.size:
        raise BurstError(
            f"{len(row) / grey.size:.0%} of the pixels are darker than threshold = {threshold:g}; lower it."
        )
    pixels = np.stack([column, row], axis=1).astype(np.float64)
    label = DBSCAN(eps=eps, min_samples=min_points).fit_predict(pixels)
    clusters = [pixels[label == i] for i in range(label.max() + 1)]
    height, width = grey.shape
    clipped = [bool((c.min() < 1) or (c[:, 0].max() > width - 2) or (c[:, 1].max() > height - 2)) for c in clusters]
    whole = [cluster for cluster, cut in zip(clusters, clipped, strict=True) if not cut]
    if len(whole) < 2:
        raise BurstError(
            f"{len(clusters)} spots were found and {len(clusters) - len(whole)} are clipped; expected more."
        )
    sizes = np.array([len(cluster) for cluster in whole], dtype=np.float64)
    expected = _local_median(np.array([cluster.mean(axis=0) for cluster in whole]), sizes)
    merged, specks = sizes > MERGED * expected, sizes < FRAGMENT * expected
    keep = [cluster for cluster, bad in zip(whole, merged | specks, strict=True) if not bad]
    points, effective_counts, note = drawn_in(keep, dilation)
    return Bursts(
        points,
        effective_counts=effective_counts,
        provenance=f"from_image: {len(keep)} spots{note}; dropped: {sum(clipped)} clipped, {merged.sum()} merged, "
        f"{specks.sum()} specks",
    )


def _local_median(centres: Array, sizes: Array) -> Array:
    """Compute the median size of the nearest spots: perspective makes all spots of a corner smaller."""
    from sklearn.neighbors import NearestNeighbors

    near = NearestNeighbors(n_neighbors=min(AROUND, len(sizes) - 1)).fit(centres).kneighbors(return_distance=False)
    return np.median(sizes[near], axis=1) if near.shape[1] else sizes


def from_image_patches(
    image: ArrayLike,
    positions: ArrayLike,
    window: int,
    jitter: float,
    n_points: int = 20,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> Bursts:
    """Look at a picture through a window: a burst is what a camera sees as it trembles about a position.

    Neighbouring positions must be nearer to each other than the finest detail in view: otherwise the difference of two
    windows is not a step along the picture, and distances come out short. Blur the picture or take more positions. A
    window must have texture in both directions; over a straight edge no camera can tell its position along the edge.

    Parameters
    ----------
    image : array of shape (height, width)
    positions : array of shape (N, 2)
        Centres (x, y) of the window in pixels: the latent variables.
    window : int
        Its side in pixels; a measurement is its window² grey values.
    jitter : float
        Standard deviation of the tremor in pixels, σ; fractions of a pixel are interpolated (cubic).
    n_points : int
        Measurements per burst, at least 3.
    random_state : int, RandomState or None
        Draws the tremor; an integer draws the same each time.

    Returns
    -------
    Bursts
        N bursts that know their σ.

    Raises
    ------
    BurstError
        If the image is not grey, or if a window leaves it.
    ValueError
        If another argument is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> y, x = np.mgrid[:60, :80]
    >>> from_image_patches(np.sin(x / 7) + np.cos(y / 5), [[30, 30], [31, 30]], window=8, jitter=0.3)
    Bursts(N=2, M=20, D=64)
    """
    from scipy.ndimage import map_coordinates  # takes a while to import

    grey = as_numbers("image", image, BurstError)
    if grey.ndim != 2:
        raise BurstError(f"image has shape {grey.shape}; expected one grey channel (height, width).")
    X = as_points(positions, "positions")
    check_count("window", window, 1)
    check_real("jitter", jitter)
    check_count("n_points", n_points, 3)
    if X.shape[1] != 2:
        raise BurstError(f"positions has shape {X.shape}; expected (N, 2).")
    centres = X[:, None] + jitter * as_random(random_state).standard_normal((len(X), n_points, 2))
    reach = (window - 1) / 2
    low, high = centres.min(axis=1) - reach, centres.max(axis=1) + reach
    outside = np.flatnonzero(
        (low < 0).any(axis=1) | (high[:, 0] > grey.shape[1] - 1) | (high[:, 1] > grey.shape[0] - 1)
    )
    if len(outside):
        raise BurstError(
            f"the window at position {outside[0]} {X[outside[0]]} (and {len(outside) - 1} more) leaves the picture of "
            f"{grey.shape[1]} × {grey.shape[0]} pixels; keep {reach + 4 * jitter:.1f} pixels away from its edge."
        )
    steps = np.arange(window) - reach
    seen = np.empty((len(X), n_points, window * window))
    for i, burst in enumerate(centres):
        rows = burst[:, 1, None, None] + steps[:, None] + 0 * steps
        columns = burst[:, 0, None, None] + steps + 0 * steps[:, None]
        seen[i] = map_coordinates(grey, [rows, columns], order=3).reshape(n_points, -1)
    return Bursts(
        seen,
        burst_std=float(jitter),
        provenance=f"from_image_patches: windows of {window} × {window} pixels, jitter {jitter:g} pixels",
    )
