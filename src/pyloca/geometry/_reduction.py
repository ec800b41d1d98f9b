"""Linear reduction of many features to the directions in which burst means and tangents lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from pyloca.geometry._sample import sample_rows
from pyloca.geometry._statistics import BurstStatistics

__all__ = ["Reduction", "find_reduction"]

Array = NDArray[np.float64]

FEWEST_FEATURES = 48  # features; with fewer there is nothing to gain
MOST_KEPT = 0.5  # part of the features that a reduction may keep
# What may be left out: of the means, as a part of the data's size; of the tangents, as a part of the shortest tangent
# of the burst, for all but a few bursts. What noise explains may be left out too.
LEFT_MEANS, LEFT_TANGENTS, MOST_BURSTS = 5e-4, 0.05, 0.95
TRIED = (96, 400)  # directions looked at, until that is enough
SAMPLED_BURSTS = 600  # bursts that the directions are found from


@dataclass(frozen=True)
class Reduction:
    """Orthonormal directions that hold the means and tangents of bursts.

    Attributes
    ----------
    centre : (D,) array
        Mean of the burst means.
    basis : (D, r) array
        V, orthonormal columns.
    left_means : float
        Part of the variance of the means that lies off V.
    left_tangents : float
        What lies off V of a tangent, as a part of the shortest tangent of its burst, median over the bursts.

    Examples
    --------
    See `find_reduction`.
    """

    centre: Array
    basis: Array
    left_means: float
    left_tangents: float

    def apply(self, statistics: BurstStatistics) -> BurstStatistics:
        """Express bursts in the coordinates Vᵀ(y − centre).

        Parameters
        ----------
        statistics : BurstStatistics
            Of D features.

        Returns
        -------
        BurstStatistics
            Of r features without names. The tangents are again orthogonal; residuals are those of all D features, and
            the noise, which is kept in the basis of the tangents, is turned with them.
        """
        return statistics.projected(self.centre, self.basis)

    def words(self) -> str:
        """Say how many directions are used, and what was left out.

        Returns
        -------
        str
        """
        n, kept = self.basis.shape
        return (
            f"{kept} of {n} directions of the measurements are used; the others hold {self.left_means:.2g} of the "
            f"variance of the means and {self.left_tangents:.1%} of a burst's shortest tangent (median)"
        )


def find_reduction(statistics: BurstStatistics, n_components: int) -> Reduction | None:
    """Find the fewest directions that hold the means and tangents of bursts.

    The likelihood does not change under a linear map that is invertible on the tangents, and the decoder needs the
    means. Rows are means and tangents, each in units of what may be left out of it, and V are the leading right
    singular vectors of their matrix; r is the smallest number with which no more is left out than that, or than noise.

    Parameters
    ----------
    statistics : BurstStatistics
        Of the training bursts.
    n_components : int
        d.

    Returns
    -------
    Reduction or None
        None if there are few features, or if more than half of the directions would be kept.

    Examples
    --------
    >>> random = np.random.RandomState(0)
    >>> places, mixing = random.uniform(size=(60, 2)), random.standard_normal((2, 100))
    >>> statistics = BurstStatistics.from_jacobians(places @ mixing, np.tile(mixing.T, (60, 1, 1)))
    >>> find_reduction(statistics, 2).basis.shape[1] < 10
    True
    """
    n_features, k = statistics.n_features, statistics.intrinsic_dim
    if n_features < FEWEST_FEATURES:
        return None
    sample = statistics[sample_rows(len(statistics), SAMPLED_BURSTS)]
    centre = statistics.means.mean(axis=0)
    means = sample.means - centre
    size = float(np.sqrt(np.square(means).sum(axis=1).mean()))
    shortest = np.sqrt(sample.spectra[:, -1])  # (n,)
    if not size > 0:
        return None
    units = np.concatenate([np.full(len(sample), LEFT_MEANS * size), np.repeat(LEFT_TANGENTS * shortest, k)])
    rows = np.concatenate([means, sample.tangents.reshape(-1, n_features)]) / units[:, None]
    noise = _noise_per_direction(sample)
    most = min(len(rows), int(MOST_KEPT * n_features))
    for tried in TRIED:
        basis, coordinates = _leading(rows, min(tried, most))
        # what is left of each row when the first r = 1, 2, … directions are kept, in units of what may be
        lost = np.square(rows).sum(axis=1)[:, None] - np.cumsum(np.square(coordinates), axis=1)
        np.maximum(lost, 0, out=lost)
        of_means = lost[: len(sample)].mean(axis=0)
        of_tangents = lost[len(sample) :].reshape(len(sample), k, -1).max(axis=1)
        of_noise = noise * (n_features - 1 - np.arange(lost.shape[1]))
        allowed = 1 + of_noise / np.square(LEFT_TANGENTS * shortest)[:, None]
        enough = of_means <= 1 + of_noise / (LEFT_MEANS * size) ** 2
        enough &= (of_tangents <= allowed).mean(axis=0) >= MOST_BURSTS
        if enough.any():
            kept = min(max(int(np.argmax(enough)) + 1, 2 * k + 1, n_components + 1), lost.shape[1])
            return Reduction(
                centre,
                np.ascontiguousarray(basis[:, :kept]),
                left_means=float(of_means[kept - 1] * LEFT_MEANS**2),
                left_tangents=float(np.median(np.sqrt(of_tangents[:, kept - 1])) * LEFT_TANGENTS),
            )
        if tried >= most:
            break
    return None


def _leading(rows: Array, most: int) -> tuple[Array, Array]:
    """Return leading right singular vectors (D, q), signs fixed, and the coordinates of the rows along them (n, q)."""
    _, _, vectors = randomized_svd(rows, most, n_iter=2, random_state=0, flip_sign=False)
    # A singular vector has no sign of its own, and a resumed fit must find the same.
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=1)[:, None], axis=1)
    basis = (vectors * np.where(largest < 0, -1.0, 1.0)).T
    return basis, rows @ basis


def _noise_per_direction(statistics: BurstStatistics) -> float:
    """Variance that noise gives a mean, or a tangent, in each direction off the tangents, at most."""
    counts = np.maximum(statistics.counts - 1, 1)
    off = max(statistics.n_used - statistics.intrinsic_dim, 1)
    level = float(np.median(statistics.residuals / counts)) / off
    if statistics.instrument is not None:
        levels = statistics.instrument.levels
        diagonal = levels if levels.ndim == 2 else np.diagonal(levels, axis1=1, axis2=2)
        level += float(np.median(diagonal.mean(axis=1)) / np.median(counts))
    return level
