"""What bursts do not foresee of the steps to their neighbours: bends of the measurement that lie between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import nn

from pyloca.checks import push
from pyloca.findings._diagnostics import Finding
from pyloca.findings._round_trip import data_size, noise_of_means, unforeseen_steps
from pyloca.findings._sampling import few_bursts
from pyloca.geometry import BurstStatistics, sample_rows
from pyloca.thresholds import SAMPLE, SPARSE, UNFORESEEN

__all__ = ["unforeseen", "unforeseen_between", "unforeseen_part"]

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Ends = tuple[Array, Array, Array]  # means, tangents, and tangents in the embedding

FLAT = 1e-12  # rounding
FARTHEST = 0.25  # of the variance


def unforeseen_between(statistics: BurstStatistics, encoder: nn.Module, burst_std: float, *pairs: Rows) -> Array:
    """Compute what bursts do not foresee of the steps between pairs of them, (n, D).

    Parameters
    ----------
    statistics : BurstStatistics
    encoder : torch.nn.Module
    burst_std : float
        σ.
    *pairs : (n,) array of int
        Bursts at both ends.

    Returns
    -------
    (n, D) array
    """
    start, end, steps = _ends(statistics, encoder, burst_std, *pairs)
    return unforeseen_steps(start, end, steps)


def _ends(statistics: BurstStatistics, encoder: nn.Module, burst_std: float, *pairs: Rows) -> tuple[Ends, Ends, Array]:
    """Return means, tangents and pushed tangents at both ends of steps, and the steps in the embedding."""
    ends, places = [], []
    for rows in pairs:
        some = statistics[rows]
        embedded, pushed = push(encoder, some, burst_std)
        places.append(embedded)
        ends.append((some.means, some.tangents, burst_std * pushed.numpy()))
    return ends[0], ends[1], places[1] - places[0]


def unforeseen_part(statistics: BurstStatistics, encoder: nn.Module, burst_std: float, places: Array) -> float:
    """Compute how far bursts are off from where their near neighbours foresee them, squared, over the variance.

    Steps are seen through the mean of the inverse Jacobians at both ends, which bursts and encoder tell; what leaves
    their tangents is no error of a distance. Errors of tangents by sampling cancel, since the encoder, which is fitted
    to the same tangents, makes them as well. Of a burst the median of its neighbours counts, so that one burst in a
    wrong place is not held against those around it, and none counts as off by more than half the spread of all: where
    the measurement is singular, a step says nothing.

    Parameters
    ----------
    statistics : BurstStatistics
    encoder : torch.nn.Module
    burst_std : float
        σ.
    places : (N, d) array
        The embedding.

    Returns
    -------
    float
    """
    k = statistics.intrinsic_dim
    heads, tails = _near(places, k)
    squares = np.empty(len(heads))
    for first in range(0, len(heads), SAMPLE):  # pictures have many features
        part = slice(first, first + SAMPLE)
        squares[part] = _squared(*_ends(statistics, encoder, burst_std, heads[part], tails[part]))
    of_bursts = np.median(squares.reshape(-1, min(2 * k, len(places) - 1)), axis=1)
    return float(np.minimum(of_bursts / float(places.var(axis=0).sum()), FARTHEST).mean())


def _squared(start: Ends, end: Ends, steps: Array) -> Array:
    """Square what is not foreseen of steps in the embedding, (n,)."""
    slopes = sum(np.linalg.pinv(pushed) @ tangents for _, tangents, pushed in (start, end)) / 2  # (e, d, D)
    _, sizes, axes = np.linalg.svd(slopes, full_matrices=False)
    k = start[1].shape[1]
    along = np.einsum("ekD,eD->ek", axes[:, :k], unforeseen_steps(start, end, steps))
    along /= np.maximum(sizes[:, :k], FLAT * sizes.max())  # at the edge of a fold, tangents at both ends cancel
    return np.asarray(np.square(along).sum(axis=1))


def unforeseen(
    statistics: BurstStatistics, encoder: nn.Module, burst_std: float, places: Array, counts: NDArray[np.int64] | Array
) -> Finding | None:
    """Check whether so few bursts foresee what is measured between them.

    Where there are many, the checks of neighbours see it.

    Parameters
    ----------
    statistics : BurstStatistics
    encoder : torch.nn.Module
    burst_std : float
        σ.
    places : (N, d) array
        The embedding.
    counts : (N,) array
        Points of each burst.

    Returns
    -------
    Finding or None
    """
    if len(statistics) >= SPARSE:
        return None
    heads, tails = _near(places, statistics.intrinsic_dim)
    noise = float(np.median(noise_of_means(statistics, counts)))
    missing = np.square(unforeseen_between(statistics, encoder, burst_std, heads, tails)).sum(axis=1)
    parts = np.sqrt(np.maximum(missing - 2 * noise, 0)) / data_size(statistics.means)
    typical = float(np.quantile(parts, 0.75))
    if not UNFORESEEN.passed(typical):
        return None
    return few_bursts(
        statistics,
        f"in a quarter of the steps from one burst to the next, readings change otherwise than the bursts at both ends "
        f"say, by {typical:.0%} of the data's size or more, so that what lies between them is guessed",
        heads[np.argsort(-parts, kind="stable")],
    )


def _near(places: Array, k: int) -> tuple[Rows, Rows]:
    """Pair a sample of the bursts with the 2 k nearest in the embedding."""
    rows = sample_rows(len(places), SAMPLE)
    near = cKDTree(places).query(places[rows], min(2 * k, len(places) - 1) + 1)[1][:, 1:]
    return np.repeat(rows, near.shape[1]), near.ravel()
