"""k, from the spectra of the bursts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyloca._arguments import check_seed
from pyloca._html import html_card
from pyloca.errors import BurstError
from pyloca.estimator import Data
from pyloca.geometry import BurstSpectra, BurstStatistics, intrinsic_dim_from_spectra, without_spikes
from pyloca.selection._sound import scaled_bursts, sound_statistics
from pyloca.thresholds import PROBE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["IntrinsicDimEstimate", "estimate_intrinsic_dim"]

Array = NDArray[np.float64]

BOOTSTRAPS = 200


@dataclass(frozen=True)
class IntrinsicDimEstimate:
    """Estimate of k with its confidence.

    Attributes
    ----------
    intrinsic_dim : int
        The value for ``LOCA(intrinsic_dim=...)``; ``int(estimate)`` gives the same.
    confidence : float
        Fraction of bootstrap samples of the bursts that give the same k.
    spectrum, growth : (r,) array
        Median eigenvalues of the bursts, and how each direction grows with the radius: 1 for tangents and noise,
        above 1 for curvature (`pyloca.geometry.BurstSpectra`).

    Examples
    --------
    See `estimate_intrinsic_dim`.
    """

    intrinsic_dim: int
    confidence: float
    spectrum: Array = field(repr=False, compare=False)
    growth: Array = field(repr=False, compare=False)

    def __int__(self) -> int:
        return self.intrinsic_dim

    def __str__(self) -> str:
        return f"k = {self.intrinsic_dim} ({self.confidence:.0%} of bootstrap samples agree)"

    def _repr_html_(self) -> str:
        k, shown = self.intrinsic_dim, slice(0, self.intrinsic_dim + 3)
        rest = ", ".join(f"{value:.3g}" for value in self.spectrum[shown][k:])
        rows = {
            "intrinsic_dim": str(k),
            "confidence": f"{self.confidence:.0%} of bootstrap samples agree",
            "eigenvalues": ", ".join(f"{value:.3g}" for value in self.spectrum[:k])
            + (f"; then {rest}{', …' if len(self.spectrum) > k + 3 else ''}" if rest else ""),
        }
        return html_card("Estimate of k", rows)

    def plot(self) -> Figure:
        """Draw the spectrum and where the tangents end.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pyloca.plots import plot_intrinsic_dim

        return plot_intrinsic_dim(self.intrinsic_dim, self.confidence, self.spectrum, self.growth)


def estimate_intrinsic_dim(
    bursts: Data, *, random_state: int | np.random.RandomState | None = None
) -> IntrinsicDimEstimate:
    """Estimate k, the number of eigenvalues before the burst spectra drop to curvature and noise.

    Curvature grows with the square of the radius of a burst; noise does not grow and fills all directions evenly. If
    no drop is clear, k = D: a measurement may stretch one direction several times more than another.

    Parameters
    ----------
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path
    random_state : int, RandomState or None, default=None
        Draws the bootstrap samples, on which only the confidence depends.

    Returns
    -------
    IntrinsicDimEstimate

    Raises
    ------
    BurstError
        If the bursts cannot be used, noise hides them, or they have too few points to tell.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> print(estimate_intrinsic_dim(bursts, random_state=0))
    k = 2 (100% of bootstrap samples agree)
    """
    if isinstance(bursts, BurstStatistics):  # k is already fixed
        spectrum = np.median(bursts.spectra, axis=0)
        return IntrinsicDimEstimate(bursts.intrinsic_dim, 1.0, spectrum, np.ones_like(spectrum))
    raw = without_spikes(scaled_bursts(bursts).without_perturbations())  # they say what k is; this is about the clouds
    statistics, sound = sound_statistics(raw, None)
    k, raw = statistics.intrinsic_dim, raw[sound]
    spectra = BurstSpectra.of(raw, PROBE)
    check_seed("random_state", random_state)
    random = check_random_state(random_state)
    same = 0
    for _ in range(BOOTSTRAPS):
        try:
            again = intrinsic_dim_from_spectra(spectra[random.randint(len(spectra), size=len(spectra))], raw.n_features)
        except BurstError:
            continue
        same += again == k
    return IntrinsicDimEstimate(k, same / BOOTSTRAPS, np.median(spectra.values, axis=0), spectra.growth.mean(axis=0))
