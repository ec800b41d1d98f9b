"""Estimates of σ, k and the ambient noise from the eigenvalues of the burst covariances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry._moves import moves, unexplained_share
from pyloca.geometry._sample import sample_rows
from pyloca.geometry._spikes import well_kept
from pyloca.geometry._thin import thin_svd
from pyloca.thresholds import (
    CERTAIN_GAP,
    CLEAR_GAP,
    COMPARED,
    CURVED_GROWTH,
    INDEPENDENT,
    INDEPENDENT_PART,
    NEAR,
    NEIGHBORS_ALONG,
    NO_GAP,
    NOISE_DIRECTIONS,
    NOT_CURVATURE,
    OFF_GAP,
    STAYS,
    STEP,
    UNEVEN,
)

__all__ = [
    "BurstSpectra",
    "burst_std_from_spectra",
    "intrinsic_dim_from_spectra",
    "largest_of_noise",
    "noise_from_spectra",
]

NUMBERS = 1 << 23  # kept for a comparison with neighbours (64 MB)
SIMULATED = 20_000  # numbers in a burst of noise up to which its eigenvalues are simulated


@dataclass(frozen=True)
class BurstSpectra:
    """Spectra of bursts, and how each principal direction grows with the radius of the burst.

    Attributes
    ----------
    values : (n, r) array
        Leading eigenvalues of the covariance of each burst, r ≤ min(D, M − 1).
    growth : (n, r) array
        Mean over the points of u_j² ρ², u_j the coordinate along direction j and ρ the radius in the directions before
        it, all of unit variance, divided by its value for independent ones. A tangent is independent of those before
        it, and so is noise: 1. Curvature is quadratic in the tangents: u_j² grows with ρ⁴, and this is 1 + 4 / j.
    counts : (n,) array
        Points per burst.
    n_features : int
        D.
    unexplained : (n, s) array
        Part of each of the first directions that no quadratic function of those before it explains: 1 for tangents and
        noise, 0 for curvature.
    means : (n, D) array
    directions : (n, s, D) array
        The first s principal directions; s is less than r, and 0 where D is so large that they would fill the memory.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> spectra = BurstSpectra.of(bursts, 50)
    >>> spectra.values.shape
    (50, 2)
    """

    values: NDArray[np.float64]
    growth: NDArray[np.float64]
    counts: NDArray[np.float64]
    n_features: int
    unexplained: NDArray[np.float64]
    means: NDArray[np.float64]
    directions: NDArray[np.float64]

    @classmethod
    def of(cls, bursts: Bursts, size: int) -> BurstSpectra:
        """Compute the spectra of a random sample of bursts, the same one on every call.

        Parameters
        ----------
        bursts : Bursts
        size : int
            Largest number of bursts to read.

        Returns
        -------
        BurstSpectra
        """
        sample = well_kept(bursts[sample_rows(len(bursts), size)])
        spectra = cls.empty(sample.counts, bursts.n_used, bursts.n_features)
        for rows, block in sample.blocks():
            spectra.add(rows, block)
        return spectra

    @classmethod
    def empty(cls, counts: NDArray[np.int64], n_features: int, width: int | None = None) -> BurstSpectra:
        """Allocate spectra, to be filled by `add`.

        Parameters
        ----------
        counts : (n,) array of int
            Points per burst.
        n_features : int
            D.
        width : int, optional
            Features in a block, if some of them are left out.

        Returns
        -------
        BurstSpectra
        """
        width = n_features if width is None else width
        n, rank = len(counts), min(n_features, int(counts.min()) - 1)
        some = min(rank, COMPARED) if n * COMPARED * width <= NUMBERS else 0
        values, growth, unexplained = np.empty((n, rank)), np.empty((n, rank)), np.empty((n, some))
        means, directions = np.empty((n, width if some else 0)), np.empty((n, some, width))
        return cls(values, growth, counts.astype(np.float64), n_features, unexplained, means, directions)

    def add(self, rows: NDArray[np.int64], block: NDArray[np.float64]) -> None:
        """Fill in the spectra of some bursts of equal length.

        Parameters
        ----------
        rows : (b,) array of int
            Their places in these spectra.
        block : (b, M, D) array
            Their points.
        """
        m, rank = block.shape[1], self.values.shape[1]
        centres = block.mean(axis=1)
        some = self.unexplained.shape[1]
        left, singular, right = thin_svd(block - centres[:, None], some)
        self.values[rows] = np.square(singular[:, :rank]) / (m - 1)
        squares = np.square(left[:, :, :rank])
        before = np.cumsum(squares, axis=2) - squares
        # Σ over points of two independent squares is 1 / (M + 2), so this is 1 for each direction before.
        together = (m + 2) * np.einsum("bpj,bpj->bj", squares, before)
        self.growth[rows] = np.where(np.arange(rank), together / np.maximum(np.arange(rank), 1), 1)  # 1: none before
        if some:
            self.means[rows] = centres
            self.directions[rows] = right
        for j in range(some):
            self.unexplained[rows, j] = unexplained_share(left, j) if j else 1.0

    def moves(self, j: int) -> tuple[float, float]:
        """Compute how far neighbours lie along direction `j` (from 0), and their spacing: `pyloca.geometry._moves`.

        Parameters
        ----------
        j : int

        Returns
        -------
        ratio, spacing : float
            NaN where it is not known: where neighbours are nearer than their means are certain, for instance.
        """
        if j >= self.unexplained.shape[1]:
            return np.nan, np.nan
        rows = np.unique(self.means, axis=0, return_index=True)[1]  # each burst once, also in a bootstrap sample
        lengths, points = np.sqrt(self.values[rows]), float(np.median(self.counts))
        ratio, spacing = moves(self.means[rows], self.directions[rows], lengths, points, j)
        return (ratio, spacing) if spacing > 2 / points else (np.nan, np.nan)

    def is_tangent(self, j: int) -> bool:
        """Check whether direction `j` (from 0) is certainly a tangent: no curvature, and neighbours lie along it.

        Parameters
        ----------
        j : int

        Returns
        -------
        bool
            False where it is not known.
        """
        if j >= self.unexplained.shape[1] or not np.median(self.unexplained[:, j]) > INDEPENDENT_PART:
            return False
        ratio, spacing = self.moves(j)
        return bool(ratio > NEIGHBORS_ALONG and spacing < NEAR)

    def is_noise(self, j: int) -> bool:
        """Check whether direction `j` (from 0) is certainly no tangent: neighbours do not lie along it.

        Parameters
        ----------
        j : int

        Returns
        -------
        bool
            False where it is not known.
        """
        if j >= self.unexplained.shape[1] or not np.median(self.unexplained[:, j]) > INDEPENDENT_PART:
            return False  # curvature
        return bool(self.moves(j)[0] < STAYS)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: NDArray[np.int64]) -> BurstSpectra:
        of_bursts = (self.unexplained[rows], self.means[rows], self.directions[rows])
        return BurstSpectra(self.values[rows], self.growth[rows], self.counts[rows], self.n_features, *of_bursts)


def burst_std_from_spectra(spectra: NDArray[np.float64]) -> float:
    """Estimate σ as in section 7.1 of the paper: σ² is the median first eigenvalue of the burst covariances.

    Parameters
    ----------
    spectra : (N, r) array
        Eigenvalues of each burst, largest first.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> burst_std_from_spectra(np.array([[4.0, 1.0], [4.0, 2.0], [9.0, 1.0]]))
    2.0
    """
    return float(np.sqrt(np.median(spectra[:, 0])))


def intrinsic_dim_from_spectra(
    spectra: BurstSpectra | NDArray[np.float64], n_features: int, max_dim: int | None = None
) -> int:
    """Estimate k, the number of eigenvalues before the median spectrum drops to curvature or noise.

    Tangents end at the first drop that is certain, at the first direction that is curvature (it grows with the radius
    of the burst) or that begins an even floor of noise, and otherwise at the largest drop. But a direction along which
    neighbours lie, and which no curvature explains, is a tangent however small it is. When all D eigenvalues are
    tangent there is no floor to drop to; then k = min(D, `max_dim`) unless an earlier drop is clear.

    Parameters
    ----------
    spectra : BurstSpectra or (N, r) array
        An array holds eigenvalues only; curvature and noise are then recognised by drops alone.
    n_features : int
        D.
    max_dim : int, optional
        Largest k to return.

    Returns
    -------
    int

    Raises
    ------
    BurstError
        If noise hides the bursts, if they span more than `max_dim` directions, or if they have too few points to tell.

    Examples
    --------
    >>> import numpy as np
    >>> intrinsic_dim_from_spectra(np.array([[1.0, 0.5, 1e-5]]), 3)
    2
    """
    values = spectra.values if isinstance(spectra, BurstSpectra) else spectra
    rank = values.shape[1]
    level = np.median(values, axis=0)
    level = np.maximum(level, max(level[0] * np.finfo(float).eps ** 2, np.finfo(float).tiny))
    last = min(rank, n_features if max_dim is None else max_dim)
    drops = level[:last][: rank - 1] / level[1 : last + 1]  # drops[j] lies between eigenvalues j + 1 and j + 2
    ends = drops > CERTAIN_GAP
    noise = np.zeros(len(drops), dtype=bool)
    if isinstance(spectra, BurstSpectra):
        noise = _even_floor(spectra, level)[: len(drops)]
        growth, before = spectra.growth.mean(axis=0)[1 : last + 1], np.arange(1, len(drops) + 1)
        curved = (growth > 1 + CURVED_GROWTH / before) & (drops > OFF_GAP)
        # Heavy tails and one-sided points grow as well, but no quadratic explains them.
        open_part = np.median(spectra.unexplained, axis=0)[1 : last + 1]
        curved[: len(open_part)] &= open_part[: len(curved)] < NOT_CURVATURE
        if curved.any():  # sensors in other units make any gap between tangents; what follows it is then independent
            independent = np.abs(growth - 1) < INDEPENDENT / before
            ends &= ~(independent & (np.arange(len(drops)) < np.argmax(curved)))
        ends |= curved | (noise & (drops > OFF_GAP))
        while ends[: last - 1].any() and spectra.is_tangent(int(np.argmax(ends)) + 1):
            ends[np.argmax(ends)] = False
        if not ends.any():
            drops[: last - 1] = _without_tangents(spectra, drops[: last - 1])
            # Places on a line do not tell either: there, bursts are not ten times as long as wide.
            ends[: last - 1] = [drop > STEP and spectra.is_noise(j + 1) for j, drop in enumerate(drops[: last - 1])]
    if ends.any():
        return int(np.argmax(ends)) + 1
    even = rank > last and NO_GAP.passed(drops.max())
    if even and noise[-1]:
        raise BurstError(
            f"measurement noise hides the bursts: their eigenvalues from number {last + 1} on are as even as those "
            f"of noise, and the earlier ones are hardly larger (median {level[: last + 1]}). Take larger bursts, or "
            "average several readings."
        )
    if even:
        raise BurstError(
            f"the bursts span more than n_components = {last} directions: the next eigenvalue is hardly smaller than "
            f"the others (median {level[: last + 1]}). Use a larger n_components; if the rest is noise, pass "
            "intrinsic_dim and measurement_noise='estimate'."
        )
    if len(drops) and (rank > last or drops.max() > CLEAR_GAP):
        return int(np.argmax(drops)) + 1
    if rank < min(n_features, n_features if max_dim is None else max_dim):
        raise BurstError(
            f"the bursts have {rank + 1} points, which span {rank} directions, and no noise floor is visible among "
            f"them, so their intrinsic dimension is unknown. Take more points per burst or pass intrinsic_dim."
        )
    return last


def _without_tangents(spectra: BurstSpectra, drops: NDArray[np.float64]) -> NDArray[np.float64]:
    """Even out large drops to directions that are certainly tangents."""
    drops = drops.copy()
    while drops.max(initial=1.0) > CLEAR_GAP and spectra.is_tangent(int(np.argmax(drops)) + 1):
        drops[np.argmax(drops)] = 1.0
    return drops


def _even_floor(spectra: BurstSpectra, level: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell for each direction 2, 3, …, r whether it and all that follow are as even as noise."""
    rank = len(level)
    before = np.arange(1, rank)
    directions = spectra.n_features - before  # that would hold noise
    freedom = np.median(spectra.counts) - 1
    rest = np.cumsum(level[::-1])[::-1][1:] / (rank - before)  # mean of this eigenvalue and all that follow
    # Marchenko and Pastur: extreme eigenvalues of noise in p directions, n degrees of freedom, over their mean
    ratio = directions / freedom
    top, bottom = (np.square(1 + sign * np.sqrt(ratio)) / np.maximum(1, ratio) for sign in (1, -1))
    many = np.minimum(directions, rank - before) >= NOISE_DIRECTIONS
    return many & (level[1:] < UNEVEN * top * rest) & (level[-1] > bottom * rest / UNEVEN**2)


def noise_from_spectra(
    residual_traces: NDArray[np.float64], counts: NDArray[np.float64], n_features: int, k: int
) -> float:
    """Estimate the variance of isotropic ambient noise: the median over bursts of the variance off the tangents.

    Parameters
    ----------
    residual_traces : (N,) array
        Trace of each burst covariance without its k leading eigenvalues, which use k of the M − 1 degrees of freedom.
    counts : (N,) array
        Points per burst.
    n_features : int
        D.
    k : int
        Intrinsic dimension.

    Returns
    -------
    float
        Variance per direction.

    Raises
    ------
    BurstError
        If no direction or no degree of freedom is left to estimate it from.

    Examples
    --------
    >>> import numpy as np
    >>> noise_from_spectra(np.array([3.0, 3.0, 3.0]), np.array([9.0, 9.0, 9.0]), n_features=4, k=2)
    2.0
    """
    if n_features <= k:
        raise BurstError(
            f"measurement_noise cannot be estimated: all D = {n_features} directions are tangent (k = {k}). "
            "Pass its standard deviation as a number, or None."
        )
    kept = 1 - k / (np.maximum(counts, 2) - 1)
    if np.median(kept) <= 0:
        raise BurstError(
            f"measurement_noise cannot be estimated from bursts of {k + 1} points: k = {k} tangents use all their "
            "degrees of freedom. Take more points per burst, or pass the noise as a number."
        )
    usable = kept > 0
    return float(np.median(residual_traces[usable] / kept[usable])) / (n_features - k)


@cache
def largest_of_noise(dim: int, freedom: int) -> float:
    """Compute the median of the largest eigenvalue of pure noise of variance 1.

    Parameters
    ----------
    dim, freedom : int
        D and M − 1.

    Returns
    -------
    float
    """
    if dim * freedom > SIMULATED:  # Marchenko and Pastur
        return float(np.square(1 + np.sqrt(dim / freedom)))
    draws = np.random.RandomState(0).standard_normal((200, freedom, dim))
    return float(np.median(np.square(np.linalg.svd(draws, compute_uv=False)[:, 0]))) / freedom
