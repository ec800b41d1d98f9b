"""Error bars: fit both halves of the bursts, several times, and see how far the embeddings differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.stats import f
from sklearn.utils.parallel import Parallel, delayed

from pyloca.diagnostics._refit import refit
from pyloca.estimator import LOCA, Data, read_like
from pyloca.geometry import BurstStatistics
from pyloca.metrics import calibrate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["Agreement", "agreement"]

Array = NDArray[np.float64]

SMOOTHED = 50  # neighbours over which a standard error is averaged: six differences alone are rough


@dataclass(frozen=True)
class Agreement:
    """How far fits to independent halves of the bursts agree, after a rigid motion.

    Attributes
    ----------
    embedding : (N, d)
        Of the burst means, by the model.
    embeddings : (2 n, N, d)
        The same by the halves, each moved rigidly onto that; halves of one split follow each other.
    standard_errors : (N,)
        Of the embedded burst means, along each coordinate.
    """

    embedding: Array
    embeddings: Array
    standard_errors: Array

    def radius(self, level: float = 0.95) -> Array:
        """Radius of the ball around each embedded mean that holds the truth with this probability, (N,).

        By Hotelling's law: the standard error itself is estimated from d coordinates of n differences.
        """
        n, d = len(self.embeddings) // 2, self.embeddings.shape[2]
        return np.asarray(self.standard_errors * np.sqrt(d * f.ppf(level, d, n * d)))

    def __str__(self) -> str:
        low, middle, high = np.quantile(self.standard_errors, [0.05, 0.5, 0.95])
        return f"standard error {middle:.2g} (5 % and 95 % of the bursts: {low:.2g} and {high:.2g})"

    def plot(self) -> Figure:
        """Draw the first two coordinates with 95 % regions."""
        from pyloca.plots import plot_agreement

        return plot_agreement(self.embedding, self.radius())


def agreement(
    model: LOCA, bursts: Data, *, n_splits: int = 3, random_state: int = 0, n_jobs: int | None = None
) -> Agreement:
    """Fit clones of `model` to random halves of `bursts` and compare them.

    Two halves share no burst, so their difference A − B shows all that sampling, seed and stopping do to a fit: its
    variance is four times that of a fit to all. What it cannot show is an error that both halves share (σ that is
    wrong, bursts that bend). Costs about ``n_splits`` fits.
    """
    if n_splits < 1:
        raise ValueError(f"n_splits must be at least 1; got {n_splits}.")
    seen = read_like(model, bursts)
    statistics = seen.statistics
    random = np.random.RandomState(random_state)
    jobs = []
    for _ in range(n_splits):
        order = random.permutation(len(statistics))
        for half in (order[: len(order) // 2], order[len(order) // 2 :]):
            jobs.append((half, int(random.randint(np.iinfo(np.int32).max))))
    fitted = Parallel(n_jobs=n_jobs)(delayed(_embed)(model, statistics, half, seed) for half, seed in jobs)
    embedding = seen.embed()
    embeddings = np.stack([calibrate(embedding, part).apply(part) for part in fitted])
    squared = np.square(embeddings[0::2] - embeddings[1::2]).mean(axis=(0, 2)) / 4  # a coordinate
    _, near = cKDTree(embedding).query(embedding, min(SMOOTHED, len(embedding)))
    return Agreement(embedding, embeddings, np.sqrt(squared[near].mean(axis=1)))


def _embed(model: LOCA, statistics: BurstStatistics, rows: NDArray[np.int64], seed: int) -> Array:
    return np.asarray(refit(model, statistics[rows], random_state=seed).encode(statistics.means))
