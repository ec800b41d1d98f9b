"""Error bars from fits to random halves of the bursts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.stats import f
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from pyloca._arguments import check_count, check_seed
from pyloca.diagnostics._refit import refit
from pyloca.errors import BurstError
from pyloca.estimator import LOCA, Data, read_like
from pyloca.geometry import BurstStatistics
from pyloca.metrics import calibrate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


__all__ = ["Agreement", "agreement"]

Array = NDArray[np.float64]

LEAST = 4  # bursts, of which each half has two
SMOOTHED = 50  # neighbours over which a standard error is averaged: six differences alone are rough


@dataclass(frozen=True)
class Agreement:
    """Agreement of fits to independent halves of the bursts, after a rigid motion.

    Attributes
    ----------
    embedding : (N, d) array
        Burst means, embedded by the model.
    embeddings : (2 n_splits, N, d) array
        The same by each half, moved rigidly onto `embedding`; the two halves of a split follow each other.
    standard_errors : (N,) array
        Of the embedded burst means, per coordinate.

    Examples
    --------
    See `agreement`.
    """

    embedding: Array
    embeddings: Array
    standard_errors: Array

    def radius(self, level: float = 0.95) -> Array:
        """Return the radius of a confidence ball around each embedded mean.

        By Hotelling's law, since the standard error itself is estimated from d coordinates of n_splits differences.

        Parameters
        ----------
        level : float, default=0.95
            Probability with which the ball contains the truth.

        Returns
        -------
        (N,) array
        """
        n, d = len(self.embeddings) // 2, self.embeddings.shape[2]
        return np.asarray(self.standard_errors * np.sqrt(d * f.ppf(level, d, n * d)))

    def __str__(self) -> str:
        low, middle, high = np.quantile(self.standard_errors, [0.05, 0.5, 0.95])
        return f"standard error {middle:.2g} (median; 5 % and 95 % quantiles over bursts: {low:.2g} and {high:.2g})"

    def plot(self) -> Figure:
        """Draw the first two coordinates with 95 % confidence regions.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pyloca.plots import plot_agreement

        return plot_agreement(self.embedding, self.radius())


def agreement(
    model: LOCA,
    bursts: Data,
    *,
    n_splits: int = 3,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Agreement:
    """Fit clones of a model to random halves of the bursts and compare their embeddings.

    Two halves share no burst, so their difference shows everything that sampling, seed and stopping do to a fit; its
    variance is four times that of a fit to all bursts. It cannot show an error that both halves share, such as a wrong
    σ or bursts that bend. The cost is about `n_splits` fits.

    Parameters
    ----------
    model : LOCA
        Fitted.
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path
        From the same instrument, usually those that the model was fitted to.
    n_splits : int, default=3
        Number of times that the bursts are halved.
    random_state : int, RandomState or None, default=None
        Draws the halves and the seeds of the fits.
    n_jobs : int, optional
        Number of fits that run at the same time, as in scikit-learn.

    Returns
    -------
    Agreement

    Raises
    ------
    BurstError
        If the bursts cannot be used, or are not from the instrument that the model was fitted to.
    ValueError
        If `n_splits` is not an integer of at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pyloca import LOCA
    >>> from pyloca.bursts import from_function
    >>> X = np.random.RandomState(0).uniform(size=(100, 2))
    >>> bursts = from_function(lambda x: np.c_[x, x[:, 0] * x[:, 1]], X, 0.01, 20, random_state=0)
    >>> bursts = bursts.without_perturbations()  # which would leave no error to speak of
    >>> model = LOCA(burst_std=0.01, hidden_layers=(5,), max_iter=100, random_state=0).fit(bursts)
    >>> found = agreement(model, bursts, n_splits=1, random_state=0)
    >>> bool(0.001 < np.median(found.standard_errors) < 0.02)
    True
    >>> found.radius(0.95).shape
    (100,)
    """
    check_count("n_splits", n_splits)
    seen = read_like(model, bursts)
    statistics, sound = seen.statistics, seen.sound
    if len(sound) < LEAST:
        raise BurstError(f"of {len(sound)} usable bursts there are no two halves to fit; expected {LEAST} or more.")
    check_seed("random_state", random_state)
    random = check_random_state(random_state)
    jobs = []
    for _ in range(n_splits):
        order = sound[random.permutation(len(sound))]
        for half in (order[: len(order) // 2], order[len(order) // 2 :]):
            jobs.append((half, int(random.randint(np.iinfo(np.int32).max))))
    fitted = Parallel(n_jobs=n_jobs)(delayed(_embed)(model, statistics, half, seed) for half, seed in jobs)
    embedding = seen.embed()
    embeddings = np.stack([calibrate(embedding[sound], part[sound]).apply(part) for part in fitted])
    squared = np.square(embeddings[0::2] - embeddings[1::2]).mean(axis=(0, 2)) / 4  # per coordinate
    _, near = cKDTree(embedding[sound]).query(embedding, min(SMOOTHED, len(sound)))
    errors = squared[sound][near].mean(axis=1)
    strays = list(seen.strays)
    errors[strays] = np.maximum(errors, squared)[strays]  # which may lie far from all others
    return Agreement(embedding, embeddings, np.sqrt(errors))


def _embed(model: LOCA, statistics: BurstStatistics, rows: NDArray[np.int64], seed: int) -> Array:
    return np.asarray(refit(model, statistics[rows], random_state=seed).encode(statistics.means))
