"""σ, from the bursts alone or from known distances."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import as_numbers
from pyloca._html import html_card
from pyloca.alignment import align
from pyloca.bursts import as_bursts
from pyloca.errors import BurstError
from pyloca.estimator import Data
from pyloca.geometry import BurstStatistics, sample_rows
from pyloca.selection._sound import sound_statistics
from pyloca.thresholds import SAMPLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BurstStdEstimate", "estimate_burst_std"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class BurstStdEstimate:
    """Estimate of σ with its standard error.

    Attributes
    ----------
    burst_std : float
        The value for ``LOCA(burst_std=...)``; ``float(estimate)`` gives the same.
    standard_error : float
        Infinite if σ rests on a single distance.
    known_scale : bool
        True if σ was found from known distances: it is in their unit, and coordinates found with it have the right
        scale. False: σ is the size of a burst in the measurements, and coordinates are right up to one factor.
    samples : (n,) array
        The estimates from single bursts (or single distances).

    Examples
    --------
    See `estimate_burst_std`.
    """

    burst_std: float
    standard_error: float
    known_scale: bool
    samples: Array = field(repr=False, compare=False)

    def __float__(self) -> float:
        return self.burst_std

    def __str__(self) -> str:
        error = f" ± {self.standard_error:.1g}" if np.isfinite(self.standard_error) else ", from a single distance"
        scale = "in the unit of the distances" if self.known_scale else "of the measurements as LOCA scales them"
        return f"σ = {self.burst_std:.4g}{error}, {scale}"

    def _repr_html_(self) -> str:
        known, one = np.isfinite(self.standard_error), "distance" if self.known_scale else "burst"
        low, high = np.quantile(self.samples, [0.05, 0.95])
        rows = {
            "burst_std": f"{self.burst_std:.4g}",
            "standard error": f"{self.standard_error:.1g}" if known else "not known: one distance alone",
            "scale": "that of the known distances"
            if self.known_scale
            else "that of the measurements: coordinates are right up to one factor",
            "samples": f"{len(self.samples)}, one per {one}"
            + (f"; 5 % to 95 % of them: {low:.3g} to {high:.3g}" if high > low else ""),
        }
        return html_card("Estimate of σ", rows)

    def plot(self) -> Figure:
        """Draw the estimates from single bursts (or distances).

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pyloca.plots import plot_burst_std

        return plot_burst_std(self.burst_std, self.samples, self.standard_error, self.known_scale)


def estimate_burst_std(
    bursts: Data, *, pairs: ArrayLike | None = None, distances: ArrayLike | None = None, n_components: int | None = None
) -> BurstStdEstimate:
    """Estimate σ from the bursts alone, or in the right unit from some known distances.

    From the bursts alone, σ² is the median first eigenvalue of the burst covariances (section 7.1 of the paper). That
    is the size of a burst in the *measurements*, after `LOCA` has scaled their features (``feature_scale="auto"``), so
    coordinates found with it are right up to one factor. If some
    latent distances are known, σ is chosen such that the closed-form alignment reproduces them; `LOCA.rescale`, which
    scales the finished embedding to the same distances, is more accurate.

    Parameters
    ----------
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path
    pairs : (n, 2) array of int, optional
        Pairs of bursts, by their numbers, whose latent distance is known.
    distances : (n,) array, optional
        Their distances.
    n_components : int, optional
        d of the alignment; None: k. Only with `pairs`.

    Returns
    -------
    BurstStdEstimate

    Raises
    ------
    BurstError
        If the bursts cannot be used or aligned, or two of a pair coincide.
    ValueError
        If `pairs` and `distances` do not match, or only one of them is given.

    Examples
    --------
    >>> from pyloca import datasets
    >>> data = datasets.mushroom(n_bursts=100, n_points=10, random_state=0)
    >>> estimate_burst_std(data.bursts).known_scale
    False
    >>> distance = float(np.linalg.norm(data.X[0] - data.X[1]))
    >>> estimate = estimate_burst_std(data.bursts, pairs=[(0, 1)], distances=[distance])
    >>> abs(float(estimate) / data.burst_std - 1) < 0.3
    True
    """
    if pairs is None and not isinstance(bursts, BurstStatistics):
        bursts = as_bursts(bursts).without_perturbations()  # they say what σ is; this is about the clouds
    statistics, sound = sound_statistics(bursts, 1 if pairs is None else None)
    if pairs is None or distances is None:
        if pairs is not None or distances is not None:
            raise ValueError(f"got only {'pairs' if distances is None else 'distances'}; pass pairs and distances.")
        if n_components is not None:
            raise ValueError(
                "n_components is used only with known distances; pass pairs and distances, or leave it out."
            )
        samples = np.sqrt(statistics.spectra[sound, 0])
        sigma = statistics[sound].burst_std()
        spread = 1.4826 * float(np.median(np.abs(samples - sigma)))
        return BurstStdEstimate(sigma, 1.25 * spread / np.sqrt(len(samples)), False, samples)
    ends, lengths = _check_pairs(pairs, distances, len(statistics))
    lost = np.setdiff1d(ends, sound)
    if len(lost):
        raise BurstError(
            f"{statistics.listed(lost)} cannot be aligned with the others (inspect_bursts says why), so a distance "
            "from there gives no scale. Remove these pairs."
        )
    rows = np.union1d(ends, sound[sample_rows(len(sound), SAMPLE)])
    places = align(statistics[rows], n_components, burst_std=1.0, max_bursts=len(rows), random_state=0).positions
    one, other = (places[np.searchsorted(rows, ends[:, side])] for side in (0, 1))
    aligned = np.linalg.norm(one - other, axis=1)
    if not np.all(aligned > 0):
        first, second = ends[np.argmin(aligned)]
        raise BurstError(
            f"{statistics.name_of(first)} and {statistics.name_of(second)} coincide, so their distance gives no scale. "
            "Remove this pair."
        )
    ratios = lengths / aligned
    sigma = float(lengths @ aligned / (aligned @ aligned))
    error = float(ratios.std(ddof=1) / np.sqrt(len(ratios))) if len(ratios) > 1 else np.inf
    return BurstStdEstimate(sigma, error, True, ratios)


def _check_pairs(pairs: ArrayLike, distances: ArrayLike, n: int) -> tuple[NDArray[np.int64], Array]:
    ends, lengths = np.asarray(pairs), as_numbers("distances", distances)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu" or lengths.shape != (len(ends),):
        raise ValueError(
            f"pairs must be integers of shape (n, 2) and distances of shape (n,); got {ends.dtype} {ends.shape} "
            f"and {lengths.shape}."
        )
    if not len(ends) or ends.min() < 0 or ends.max() >= n:
        raise ValueError(
            f"pairs must be numbers of bursts from 0 to {n - 1}; got "
            + (f"{ends.min()} to {ends.max()}." if len(ends) else "no pairs.")
        )
    if not np.all((lengths > 0) & np.isfinite(lengths)):
        bad = int(np.argmin((lengths > 0) & np.isfinite(lengths)))
        raise ValueError(f"distances must be finite and > 0; distances[{bad}] is {lengths[bad]}.")
    return ends.astype(np.int64), lengths
