"""Null test: fits to bursts that are unrelated to their places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from pyloca._arguments import check_count, check_seed
from pyloca.diagnostics._refit import refit
from pyloca.errors import PylocaError
from pyloca.estimator import LOCA, Data, read_like
from pyloca.geometry import BurstStatistics

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["ShuffleTest", "shuffle_test"]


@dataclass(frozen=True)
class ShuffleTest:
    """Held-out whitening loss of the bursts as measured, and shuffled.

    Attributes
    ----------
    loss : float
        Median whitening loss of held-out bursts as measured.
    shuffled : (n,) array
        The same for each fit to shuffled bursts; infinite if they could not be fitted at all.
    p_value : float
        (1 + number of shuffled fits that are as good as the real one) / (1 + n).

    Examples
    --------
    >>> ShuffleTest(0.1, np.array([1.0, 2.0, 3.0])).p_value
    0.25
    """

    loss: float
    shuffled: NDArray[np.float64]

    @property
    def p_value(self) -> float:
        """p-value, small if the relation between bursts and places is real; at least 1 / (1 + n)."""
        return float((1 + np.sum(self.shuffled <= self.loss)) / (1 + len(self.shuffled)))

    def __str__(self) -> str:
        low, high = self.shuffled.min(), self.shuffled.max()
        return (
            f"whitening loss {self.loss:.3g}; {low:.3g} to {high:.3g} in {len(self.shuffled)} shuffles; "
            f"p = {self.p_value:.2g} (cannot be below {1 / (1 + len(self.shuffled)):.2g} with that many)"
        )

    def plot(self) -> Figure:
        """Draw the loss as measured among the shuffled ones.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pyloca.plots import plot_shuffle_test

        return plot_shuffle_test(self.loss, self.shuffled, self.p_value)


def shuffle_test(
    model: LOCA,
    bursts: Data,
    *,
    n_shuffles: int = 5,
    random_state: int | np.random.RandomState | None = None,
) -> ShuffleTest:
    """Fit clones of a model to the bursts as measured, and with their tangents permuted among their means.

    A shuffle keeps everything but the relation between bursts and places, so the loss of a shuffled fit is what the
    method reaches without information. The cost is ``1 + n_shuffles`` fits.

    Parameters
    ----------
    model : LOCA
        Fitted.
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path
        From the same instrument, usually those that the model was fitted to.
    n_shuffles : int, default=5
    random_state : int, RandomState or None, default=None
        Draws the permutations.

    Returns
    -------
    ShuffleTest

    Raises
    ------
    BurstError
        If the bursts cannot be used, or are not from the instrument that the model was fitted to.
    ValueError
        If `n_shuffles` is not an integer of at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import LOCA
    >>> from pyloca.bursts import from_function
    >>> X = np.random.RandomState(0).uniform(size=(100, 2))
    >>> bursts = from_function(lambda x: np.c_[x, x[:, 0] * x[:, 1]], X, 0.01, 20, random_state=0)
    >>> model = LOCA(burst_std=0.01, hidden_layers=(5,), max_iter=100, random_state=0).fit(bursts)
    >>> 0.5 <= shuffle_test(model, bursts, n_shuffles=1, random_state=0).p_value <= 1
    True
    """
    check_count("n_shuffles", n_shuffles)
    statistics = read_like(model, bursts).without_strays().statistics
    check_seed("random_state", random_state)
    random = check_random_state(random_state)
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
