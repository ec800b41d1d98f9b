"""How white each burst is after an encoder, compared with what sampling alone explains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.stats import chi2, wishart
from torch import Tensor, nn

from pyloca.geometry import BurstStatistics, sample_rows
from pyloca.networks import pushed_rows
from pyloca.objectives import likelihood_pushed, sampling_floor, with_noise
from pyloca.thresholds import (
    POOR,
    SAMPLE,
    SAMPLED,
    SHARING,
    SIGNIFICANT,
    STRAIN_CAP,
    TAILS_ERROR,
    WHITE_BY_CHANCE,
)

__all__ = ["SharedStrain", "Whitening", "push", "sampled_stretch", "shared_strain", "whitening"]

Array = NDArray[np.float64]

CHUNK = 8192
SIMULATED = 2000  # bursts


@dataclass(frozen=True)
class Whitening:
    """How white bursts are after an encoder, one row per burst.

    Attributes
    ----------
    losses : (N,) array
        tr G − log det G − k; infinite where a direction has collapsed.
    floors : (N,) array
        Expected loss of a perfect encoder: k(k+1) / (2 (M − 1)) for Gaussian bursts, times `tails`.
    stretches : (N, k) array
        √ of the eigenvalues of G, largest first: factors by which tangents are stretched.
    p_values : (N,) array
        Probability of so large a loss by sampling alone: (M − 1) · loss is a likelihood ratio, χ² with k(k+1)/2 degrees
        of freedom after Bartlett's correction, times `tails`. 1 for bursts whose geometry is known exactly.
    embedding : (N, d) array
        The means after the encoder.
    tails : float
        As in `BurstStatistics`.

    Examples
    --------
    See `whitening`.
    """

    losses: Array
    floors: Array
    stretches: Array
    p_values: Array
    embedding: Array
    tails: float = 1.0

    def __getitem__(self, rows: NDArray[np.int64]) -> Whitening:
        return Whitening(
            self.losses[rows],
            self.floors[rows],
            self.stretches[rows],
            self.p_values[rows],
            self.embedding[rows],
            self.tails,
        )

    @classmethod
    def from_pushed(cls, embedding: Array, pushed: Tensor, statistics: BurstStatistics) -> Whitening:
        """Compute it from pushed tangents.

        Parameters
        ----------
        embedding : (N, d) array
        pushed : Tensor (N, k, d)
            Tangents T after the encoder, in units of σ; G = T Tᵀ.
        statistics : BurstStatistics
            Of the bursts: counts, and the noise in their covariances.

        Returns
        -------
        Whitening
        """
        k, counts = pushed.shape[1], statistics.counts
        if statistics.noise is not None:
            parts = (torch.as_tensor(part, dtype=pushed.dtype) for part in (statistics.total, statistics.noise))
            pushed = with_noise(pushed.transpose(0, 1), *parts).transpose(0, 1)
        # A collapsed direction has log det = −∞; "not a number" arises when rounding makes the determinant negative.
        loss = likelihood_pushed(pushed.transpose(0, 1)).numpy()
        loss = np.where(np.isnan(loss), np.inf, loss)
        exact = ~np.isfinite(counts)
        counted = np.where(exact, 2, counts)
        statistic = np.where(exact, 0, _bartlett(counted, k) * (counted - 1) * loss / statistics.tails)
        return cls(
            loss,
            sampling_floor(torch.as_tensor(counts), k, statistics.tails).numpy(),
            torch.linalg.svdvals(pushed).numpy(),
            chi2.sf(statistic, k * (k + 1) / 2),
            embedding,
            statistics.tails,
        )

    @property
    def conditions(self) -> Array:
        """Local distortion √(condition number of G), 1 for a conformal map, shape (N,)."""
        return self.stretches[:, 0] / np.maximum(self.stretches[:, -1], np.finfo(float).tiny)

    @property
    def expected(self) -> Array:
        """`floors` to the next order in 1 / M, by Bartlett's factor, (N,)."""
        k = self.stretches.shape[1]
        exact = self.floors == 0
        points = 1 + self.tails * self._freedom / np.where(exact, 1.0, self.floors)
        return np.where(exact, 0.0, self.floors / _bartlett(points, k))

    @property
    def excess(self) -> float:
        """Median loss minus the median that sampling explains."""
        return float(np.median(self.losses)) - self._unit * float(chi2.median(self._freedom))

    @property
    def excess_errors(self) -> float:
        """`excess` in standard errors; infinite when there is no sampling error.

        That of the median, or of the mean if it is smaller: chance moves one of them far now and then, even with a
        perfect encoder, and a wrong encoder moves both. What the bursts' tails add to what is expected is known
        less well than what Gaussian points would have.
        """
        if self._unit == 0:
            return float(np.copysign(np.inf, self.excess))
        freedom, n = self._freedom, len(self.losses)
        tails = TAILS_ERROR * abs(1 - 1 / self.tails)
        errors = []
        for seen, expected, chance in (
            (np.median(self.losses), chi2.median(freedom), 1 / (2 * chi2.pdf(chi2.median(freedom), freedom))),
            (np.mean(self.losses), freedom, np.sqrt(2 * freedom)),
        ):
            error = self._unit * np.hypot(chance / np.sqrt(n), tails * expected)
            errors.append((float(seen) - self._unit * expected) / error)
        return float(min(errors))

    @property
    def poor(self) -> bool:
        """Whether the median burst is less white than sampling explains."""
        return self.material(self.excess) and SIGNIFICANT.passed(self.excess_errors)

    def material(self, loss: float) -> bool:
        """Check whether a loss beyond sampling is large enough to matter.

        Parameters
        ----------
        loss : float

        Returns
        -------
        bool
        """
        # The loss is a sum over the numbers in G: where these are more than three (k = 2), each must be as far off.
        return POOR.passed(loss * min(1, 3 / self._freedom))

    @property
    def sampled(self) -> bool:
        """Whether losses are as large as those of random points; not so for a fixed array of sensors.

        One or two bursts are whiter than that by chance.
        """
        floor = float(np.median(self.floors)) / self.tails  # of a pattern that is always the same, tails tell nothing
        if floor == 0 or SAMPLED.passed(float(np.median(self.losses)) / floor):
            return True
        freedom = len(self.losses) * self._freedom
        return bool(chi2.cdf(SAMPLED.value * freedom, freedom) > WHITE_BY_CHANCE)

    @property
    def _freedom(self) -> float:
        """Degrees of freedom of χ²: independent numbers in G."""
        k = self.stretches.shape[1]
        return k * (k + 1) / 2

    @property
    def _unit(self) -> float:
        """Loss of a perfect encoder that corresponds to χ² = 1, for a burst of median length."""
        floor = float(np.median(self.floors))
        if floor == 0:
            return 0.0
        points = 1 + self.tails * self._freedom / floor
        return self.tails / (float(_bartlett(points, self.stretches.shape[1])) * (points - 1))


class SharedStrain(NamedTuple):
    """A strain that neighbouring bursts share.

    Attributes
    ----------
    loss : float
        Whitening loss that it causes: half its square.
    errors : float
        The same in standard errors.

    Examples
    --------
    See `shared_strain`.
    """

    loss: float
    errors: float


def shared_strain(embedding: Array, pushed: Array, *, scale: bool = True) -> SharedStrain:
    """Compute the strain that bursts share with their neighbours in the embedding.

    Sampling strains every burst by itself, whatever the distribution of its points, so that the mean product of the
    strains of neighbours is 0 but for chance; an encoder that is wrong strains neighbours alike.

    Parameters
    ----------
    embedding : (N, d) array
    pushed : (N, k, d) array
        Tangents T after the encoder, in units of σ; their strain is TᵀT less the projector on the tangents.
    scale : bool, default=True
        Whether one factor of all bursts counts. Where points have heavy tails most bursts are smaller than σ, and few
        are much larger.

    Returns
    -------
    SharedStrain

    Examples
    --------
    >>> clouds = np.random.RandomState(0).standard_t(3, size=(400, 20, 2)) / 3**0.5
    >>> places = np.random.RandomState(1).uniform(size=(400, 2))
    >>> tangents = np.linalg.svd(clouds - clouds.mean(axis=1, keepdims=True), full_matrices=False)
    >>> tangents = tangents[1][:, :, None] * tangents[2] / 19**0.5
    >>> right, wrong = (shared_strain(places, tangents * [f, 1.0], scale=False) for f in (1.0, 1.4))
    >>> abs(right.errors) < 3, wrong.errors > 4
    (True, True)
    """
    rows = sample_rows(len(embedding), SAMPLE)
    embedding, pushed = embedding[rows], pushed[rows]
    n = len(embedding)
    planes = np.linalg.svd(pushed, full_matrices=False)[2]  # (n, k, d)
    flat = np.einsum("nkd,nke->nde", planes, planes)
    flat = flat.reshape(n, -1)
    strains = np.einsum("nkd,nke->nde", pushed, pushed).reshape(n, -1) - flat
    # A few bursts with far points must not decide.
    sizes = np.linalg.norm(strains, axis=1)
    strains *= np.minimum(1, STRAIN_CAP * np.median(sizes) / np.maximum(sizes, np.finfo(float).tiny))[:, None]
    if not scale:
        strains -= np.einsum("ni,ni->n", strains, flat).mean() / pushed.shape[1] * flat
    # Strains of short waves cancel out in distances: what a tenth of the bursts share does not.
    count = min(max(2 * pushed.shape[1], int(SHARING * n)), n - 1)
    near = cKDTree(embedding).query(embedding, count + 1)[1][:, 1:]
    rows = np.repeat(np.arange(n), near.shape[1])
    ones, others = np.divmod(np.unique(np.minimum(rows, near.ravel()) * n + np.maximum(rows, near.ravel())), n)
    products = np.einsum("pi,pi->p", strains[ones], strains[others])
    error = float(np.sqrt(np.square(products).sum()))
    return SharedStrain(float(products.mean()) / 2, float(products.sum()) / error if error > 0 else 0.0)


def sampled_stretch(count: float, k: int) -> tuple[float, float]:
    """Compute the stretches of a perfect encoder that sampling alone causes.

    Parameters
    ----------
    count : float
        Points per burst.
    k : int
        Intrinsic dimension.

    Returns
    -------
    (float, float)
        Their 5 % and 95 % quantiles.

    Examples
    --------
    >>> low, high = sampled_stretch(20, 2)
    >>> low < 1 < high
    True
    """
    if not np.isfinite(count):
        return 1.0, 1.0
    degrees = max(int(count) - 1, k)
    covariances = wishart.rvs(degrees, np.eye(k) / degrees, size=SIMULATED, random_state=0).reshape(-1, k, k)
    low, high = np.quantile(np.sqrt(np.linalg.eigvalsh(covariances)), [0.05, 0.95])
    return float(low), float(high)


def _bartlett(counts: Array | float, k: int) -> Array:
    """Compute Bartlett's factor, with which the likelihood ratio follows χ² to the next order in 1 / M."""
    return np.maximum(1 - (2 * k**2 + 3 * k - 1) / (6 * (k + 1) * (np.asarray(counts) - 1)), 0.1)


def whitening(encoder: nn.Module, statistics: BurstStatistics, burst_std: float) -> Whitening:
    """Push bursts through an encoder and measure how white they are.

    Parameters
    ----------
    encoder : torch.nn.Module
    statistics : BurstStatistics
    burst_std : float
        σ.

    Returns
    -------
    Whitening

    Examples
    --------
    >>> from pyloca import LOCA, datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> data = datasets.mushroom(100, 20, random_state=0)
    >>> model = LOCA(burst_std=0.01, feature_scale=None, hidden_layers=(10,), random_state=0).fit(data.bursts)
    >>> white = whitening(model.encoder_, BurstStatistics.from_bursts(data.bursts, 2), 0.01)
    >>> white.losses.shape
    (100,)
    """
    embedding, pushed = push(encoder, statistics, burst_std)
    return Whitening.from_pushed(embedding, pushed, statistics)


def push(encoder: nn.Module, statistics: BurstStatistics, burst_std: float) -> tuple[Array, Tensor]:
    """Push means and tangents of bursts through an encoder.

    Parameters
    ----------
    encoder : torch.nn.Module
    statistics : BurstStatistics
    burst_std : float
        σ.

    Returns
    -------
    embedding : (N, d) array
    pushed : Tensor (N, k, d)
        Tangents in units of σ.

    Examples
    --------
    >>> import torch
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> statistics = BurstStatistics.from_bursts(datasets.mushroom(30, 20, random_state=0).bursts, 2)
    >>> embedded, tangents = push(torch.nn.Linear(2, 2), statistics, 0.01)
    >>> embedded.shape, tangents.shape
    ((30, 2), torch.Size([30, 2, 2]))
    """
    dtype = next(encoder.parameters()).dtype
    values, tangents = np.empty(0), torch.empty(0)
    with torch.no_grad():
        for start in range(0, len(statistics), CHUNK):
            rows = slice(start, start + CHUNK)
            means = torch.as_tensor(statistics.means[rows], dtype=dtype)
            scaled = torch.as_tensor(statistics.tangents[rows] / burst_std, dtype=dtype)
            embedded, pushed = pushed_rows(encoder, means, scaled)
            if not start:  # made once: small arrays that stay, between large ones that go, would keep these resident
                values = np.empty((len(statistics), embedded.shape[1]))
                tangents = torch.empty(len(statistics), *pushed.shape[1:], dtype=torch.float64)
            values[rows] = embedded.double().numpy()
            tangents[rows] = pushed  # (n, k, d)
    return values, tangents
