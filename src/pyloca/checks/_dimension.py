"""How many components the bursts need: directly from the alignment, or by comparing fits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyloca._html import html_card
from pyloca.alignment import align
from pyloca.geometry import BurstStatistics, sample_rows
from pyloca.thresholds import CURED, ENOUGH_ERRORS, LOSS_CAP, MATERIAL, MATERIAL_PART, SAMPLE

__all__ = ["Suggestion", "enough_components", "suggest_components"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Suggestion:
    """What the closed-form alignment suggests for d.

    Attributes
    ----------
    n_components : int
        k when the latent space is flat, k + 1 when one more dimension relieves the strain.
    intrinsic_dim : int
    strains : (float, float)
        Relative mismatch of the aligned edges in k and in k + 1 dimensions.

    Examples
    --------
    >>> Suggestion(n_components=3, intrinsic_dim=2, strains=(0.4, 0.1)).n_components  # one more relieves the strain
    3
    """

    n_components: int
    intrinsic_dim: int
    strains: tuple[float, float]

    def _repr_html_(self) -> str:
        flat, bent = self.strains
        why = "curved: one more dimension relieves it" if self.n_components > self.intrinsic_dim else "flat"
        rows = {
            "n_components": str(self.n_components),
            "intrinsic_dim": str(self.intrinsic_dim),
            "latent space": why,
            "strain": f"{flat:.3g} in k = {self.intrinsic_dim} dimensions, {bent:.3g} in {self.intrinsic_dim + 1}",
            "confidence": "a first look, without training; select_n_components compares fits",
        }
        return html_card("Suggestion of d", rows)


def suggest_components(statistics: BurstStatistics, burst_std: float | None = None) -> Suggestion:
    """Suggest d without training: k when the latent space is flat, k + 1 when it is not.

    On a curved surface, edges that do not fit together in k dimensions do so in one more, and the strain of the aligned
    bursts falls. (The eigenvalues of the synchronisation do not show this: on a stereographic sphere with D = k, frames
    are parallel although the sphere is not flat.)

    Parameters
    ----------
    statistics : BurstStatistics
    burst_std : float, optional
        σ; None estimates it.

    Returns
    -------
    Suggestion

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> suggest_components(BurstStatistics.from_bursts(datasets.sphere(300, random_state=0).bursts, 2)).n_components
    3
    """
    statistics = statistics[sample_rows(len(statistics), SAMPLE)]
    k = statistics.intrinsic_dim
    flat, bent = (align(statistics, d, burst_std=burst_std, random_state=0).strain for d in (k, k + 1))
    cured = flat > 0 and CURED.passed(bent / flat)
    return Suggestion(k + 1 if cured else k, k, (flat, bent))


def enough_components(
    losses: Array, counts: Array, k: int, tails: float = 1.0
) -> tuple[NDArray[np.bool_], Array, Array]:
    """Find the candidates that are enough, with the means and standard errors that show it.

    A candidate is enough unless the best one is better by 2.5 standard errors, burst by burst, and by a tenth. A burst
    counts with at most 5 times its sampling floor.

    Parameters
    ----------
    losses : (n, m) array
        Whitening losses of m held-out bursts under n fits.
    counts : (m,) array
        Points of these bursts.
    k : int
        Intrinsic dimension.
    tails : float, default=1
        As in `BurstStatistics`.

    Returns
    -------
    enough : (n,) array of bool
    means : (n,) array
        Mean losses.
    errors : (n,) array
        Standard errors of their differences from the smallest.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> losses = 0.1 + 0.01 * random.standard_normal((2, 50)) + [[5.0], [0.0]]  # two candidates, fifty held-out bursts
    >>> enough, means, errors = enough_components(losses, np.full(50, 30), 2)
    >>> enough
    array([False,  True])
    """
    floors = max(tails, 1.0) * k * (k + 1) / (2 * (counts - 1))
    capped = np.minimum(losses, np.where(np.isfinite(counts), LOSS_CAP * floors, np.inf))
    means = capped.mean(axis=1)
    best = int(np.argmin(means))
    errors = (capped - capped[best]).std(axis=1) / np.sqrt(capped.shape[1])
    enough = means - means[best] <= np.maximum(ENOUGH_ERRORS * errors, MATERIAL_PART * means[best] + MATERIAL)
    return enough, means, errors
