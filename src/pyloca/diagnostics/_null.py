"""The null test: how well does LOCA whiten bursts that have nothing to do with their places?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pyloca.diagnostics._refit import refit
from pyloca.errors import PylocaError
from pyloca.estimator import LOCA, Data, read_like
from pyloca.geometry import BurstStatistics

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["ShuffleTest", "shuffle_test"]


@dataclass(frozen=True)
class ShuffleTest:
    """Held-out whitening of the bursts as they are, and shuffled.

    Attributes
    ----------
    loss : float
        Median whitening loss of held-out bursts, real data.
    shuffled : (n,)
        The same of each fit to shuffled bursts; infinite where shuffled bursts could not be fitted at all.
    p_value : float
        (1 + number of shuffled fits as good as the real one) / (1 + n).
    """

    loss: float
    shuffled: NDArray[np.float64]

    @property
    def p_value(self) -> float:
        """Small when the relation between bursts and places is real; at least 1 / (1 + n)."""
        return float((1 + np.sum(self.shuffled <= self.loss)) / (1 + len(self.shuffled)))

    def __str__(self) -> str:
        low, high = self.shuffled.min(), self.shuffled.max()
        return (
            f"whitening loss {self.loss:.3g}; of {len(self.shuffled)} shuffles {low:.3g} to {high:.3g}; "
            f"p = {self.p_value:.2g} (at least {1 / (1 + len(self.shuffled)):.2g} with so many)"
        )

    def plot(self) -> Figure:
        """Draw the real loss among the shuffled ones."""
        from pyloca.plots import plot_shuffle_test

        return plot_shuffle_test(self.loss, self.shuffled, self.p_value)


def shuffle_test(model: LOCA, bursts: Data, *, n_shuffles: int = 5, random_state: int = 0) -> ShuffleTest:
    """Fit clones of `model` to `bursts` as they are, and with the clouds dealt out to other means.

    Everything but the relation between clouds and places is kept, so what a fit to shuffled bursts achieves is what
    this method makes of no information. Costs ``1 + n_shuffles`` fits.
    """
    if n_shuffles < 1:
        raise ValueError(f"n_shuffles must be at least 1; got {n_shuffles}.")
    statistics = read_like(model, bursts).statistics
    random = np.random.RandomState(random_state)
    losses = [_loss(model, statistics)]
    losses += [_loss(model, _shuffled(statistics, random)) for _ in range(n_shuffles)]
    return ShuffleTest(losses[0], np.array(losses[1:]))


def _shuffled(statistics: BurstStatistics, random: np.random.RandomState) -> BurstStatistics:
    order = random.permutation(len(statistics))
    return replace(
        statistics,
        tangents=statistics.tangents[order],
        counts=statistics.counts[order],
        residuals=statistics.residuals[order],
    )  # the places keep their ids


def _loss(model: LOCA, statistics: BurstStatistics) -> float:
    try:
        return float(refit(model, statistics).diagnostics_.median_loss)
    except PylocaError:
        return np.inf
