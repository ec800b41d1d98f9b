"""`BurstStatistics`: everything the fast solver needs of the data, computed in one chunked pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry._refusals import (
    as_counts,
    as_finite,
    check_k,
    labels_of,
    refuse_bad_values,
    refuse_few,
    refuse_short,
)
from pyloca.geometry._spectra import (
    BurstSpectra,
    burst_std_from_spectra,
    intrinsic_dim_from_spectra,
    noise_from_spectra,
)
from pyloca.thresholds import MIN_BURSTS, PROBE

__all__ = ["BurstStatistics", "burst_means"]

EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class BurstStatistics:
    """Means, tangents and counts of N bursts.

    Attributes
    ----------
    means : (N, D) array
        μ_i.
    tangents : (N, k, D) array
        A_i, rows orthogonal and longest first, with A_iᵀ A_i the rank-k part of the burst covariance.
    counts : (N,) array
        M_i, or `Bursts.effective_counts` if the bursts have them; ``inf`` where the covariance is known exactly
        (`from_covariances`, `from_jacobians`).
    residuals : (N,) array
        Trace of the covariance off the tangents: noise and curvature.
    noise_variance : float
        Isotropic ambient noise that was subtracted from the covariances; 0 if none was.
    ids : (N,) array
        Names of the bursts; their numbers if none were given.
    feature_names, units : tuple of D str, optional
        Names and units of the features.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> statistics = BurstStatistics.from_bursts(bursts)
    >>> statistics.tangents.shape
    (100, 2, 2)
    >>> len(statistics[:20])
    20
    """

    means: NDArray[np.float64]
    tangents: NDArray[np.float64]
    counts: NDArray[np.float64]
    residuals: NDArray[np.float64]
    noise_variance: float = 0.0
    ids: NDArray[Any] = None  # type: ignore[assignment]  # filled in below
    feature_names: tuple[str, ...] | None = None
    units: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Name bursts by their numbers if no names were given."""
        if self.ids is None:
            object.__setattr__(self, "ids", np.arange(len(self.means)))

    @classmethod
    def from_bursts(
        cls,
        bursts: Bursts | ArrayLike,
        intrinsic_dim: int | None = None,
        *,
        max_dim: int | None = None,
        measurement_noise: float | str | None = None,
        min_bursts: int = MIN_BURSTS,
    ) -> BurstStatistics:
        """Compute the statistics of raw bursts, in one pass.

        Parameters
        ----------
        bursts : Bursts or (N, M, D) array
        intrinsic_dim : int, optional
            k; None: estimated from the spectra of the bursts.
        max_dim : int, optional
            Largest k that the estimate may return.
        measurement_noise : float or "estimate", optional
            Noise to subtract, as in `without_noise`.
        min_bursts : int, default=10
            Fewer bursts than this raise an error.

        Returns
        -------
        BurstStatistics

        Raises
        ------
        BurstError
            If there are too few bursts, if a burst has too few points, no spread or a value that cannot be used, or
            if k cannot be estimated.

        Examples
        --------
        >>> from pyloca import datasets
        >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
        >>> BurstStatistics.from_bursts(bursts).intrinsic_dim
        2
        """
        bursts = Bursts(bursts)
        refuse_few(len(bursts), min_bursts)
        k = _choose_k(bursts, intrinsic_dim, max_dim)
        n, dim = len(bursts), bursts.n_features
        means, tangents, residuals = np.empty((n, dim)), np.empty((n, k, dim)), np.empty(n)
        for rows, block in bursts.blocks():
            refuse_bad_values(bursts, rows, block)
            means[rows] = block.mean(axis=1)
            tangents[rows], residuals[rows] = _tangents(block - means[rows, None], k)
        out = cls(
            means,
            tangents,
            bursts.counts.astype(np.float64) if bursts.effective_counts is None else bursts.effective_counts,
            residuals,
            ids=bursts.ids,
            feature_names=bursts.feature_names,
            units=bursts.units,
        )
        out._refuse_flat_bursts()
        return out.without_noise(measurement_noise)

    @classmethod
    def from_covariances(
        cls,
        means: ArrayLike,
        covariances: ArrayLike,
        intrinsic_dim: int | None = None,
        counts: ArrayLike | None = None,
        *,
        ids: Sequence[Any] | NDArray[Any] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> BurstStatistics:
        """Take means and covariances of bursts that were obtained elsewhere.

        Parameters
        ----------
        means : (N, D) array
        covariances : (N, D, D) array
            Symmetric and positive semi-definite.
        intrinsic_dim : int, optional
            k; None: estimated from the eigenvalues.
        counts : int or (N,) array, optional
            Points per burst behind each covariance; None: it is exact.
        ids : (N,) sequence, optional
            Names of the bursts.
        feature_names : sequence of D str, optional

        Returns
        -------
        BurstStatistics

        Raises
        ------
        BurstError
            If the shapes do not match, or a covariance is not symmetric, has a negative eigenvalue or has rank < k.

        Examples
        --------
        >>> import numpy as np
        >>> means = np.random.RandomState(0).standard_normal((20, 3))
        >>> covariances = np.tile(np.diag([1.0, 0.5, 1e-9]), (20, 1, 1))
        >>> BurstStatistics.from_covariances(means, covariances).intrinsic_dim
        2
        """
        means, covariances = as_finite(means, "means", 2), as_finite(covariances, "covariances", 3)
        n, dim = means.shape
        refuse_few(n)
        if covariances.shape != (n, dim, dim):
            raise BurstError(f"covariances has shape {covariances.shape}; expected {(n, dim, dim)} as for means.")
        asymmetry = np.abs(covariances - covariances.transpose(0, 2, 1)).max(axis=(1, 2))
        worst = int(np.argmax(asymmetry - 1e-8 * np.abs(covariances).max(axis=(1, 2))))
        if asymmetry[worst] > 1e-8 * np.abs(covariances[worst]).max():
            raise BurstError(f"covariance {worst} is not symmetric (by {asymmetry[worst]:.3g}).")
        values, vectors = np.linalg.eigh(covariances)
        values, vectors = values[:, ::-1], vectors[:, :, ::-1]
        negative = np.flatnonzero(values[:, -1] < -1e-8 * values[:, 0])
        if len(negative):
            raise BurstError(f"covariance {negative[0]} has the negative eigenvalue {values[negative[0], -1]:.3g}.")
        values = np.maximum(values, 0)
        k = check_k(intrinsic_dim_from_spectra(values, dim) if intrinsic_dim is None else intrinsic_dim, dim)
        tangents = np.sqrt(values[:, :k, None]) * vectors[:, :, :k].transpose(0, 2, 1)  # (N, k, D)
        out = cls(
            means, tangents, as_counts(counts, n), values[:, k:].sum(axis=1), **labels_of(means, ids, feature_names)
        )
        out._refuse_flat_bursts()
        return out

    @classmethod
    def from_jacobians(
        cls,
        anchors: ArrayLike,
        jacobians: ArrayLike,
        counts: ArrayLike | None = None,
        *,
        ids: Sequence[Any] | NDArray[Any] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> BurstStatistics:
        """Take Jacobians of the measurement function f in place of bursts.

        A Jacobian is a burst with σ = 1: pass ``burst_std=1`` to `LOCA` for coordinates in the latent units.

        Parameters
        ----------
        anchors : (N, D) array
            Measurements y_i = f(x_i).
        jacobians : (N, D, k) array
            J_f(x_i), each up to a rotation of the latent space.
        counts : int or (N,) array, optional
            Points per burst behind each Jacobian; None: it is exact.
        ids : (N,) sequence, optional
            Names of the bursts.
        feature_names : sequence of D str, optional

        Returns
        -------
        BurstStatistics

        Raises
        ------
        BurstError
            If the shapes do not match, a value is not finite, or a Jacobian has rank < k.

        Examples
        --------
        >>> import numpy as np
        >>> x = np.random.RandomState(0).uniform(size=(20, 2))
        >>> BurstStatistics.from_jacobians(x, np.tile(np.eye(2), (20, 1, 1))).intrinsic_dim
        2
        """
        anchors, jacobians = as_finite(anchors, "anchors", 2), as_finite(jacobians, "jacobians", 3)
        refuse_few(len(anchors))
        if jacobians.shape[:2] != anchors.shape:
            raise BurstError(f"jacobians has shape {jacobians.shape}; expected (N, D, k) with N, D = {anchors.shape}.")
        check_k(jacobians.shape[2], anchors.shape[1])
        _, singular, rows = np.linalg.svd(jacobians.transpose(0, 2, 1), full_matrices=False)  # (N, k), (N, k, D)
        out = cls(
            anchors,
            singular[:, :, None] * rows,
            as_counts(counts, len(anchors)),
            np.zeros(len(anchors)),
            **labels_of(anchors, ids, feature_names),
        )
        out._refuse_flat_bursts()
        return out

    # -- what it holds ------------------------------------------------------------------------------------------

    @property
    def intrinsic_dim(self) -> int:
        """k, the number of tangents per burst."""
        return self.tangents.shape[1]

    @property
    def n_features(self) -> int:
        """D, the dimension of the measurements."""
        return self.means.shape[1]

    def burst_std(self, known: float | None = None) -> float:
        """Return σ as given, or else estimate it from the bursts.

        Parameters
        ----------
        known : float, optional
            σ if it is known; None: the paper's estimate, with which coordinates are right up to one factor.

        Returns
        -------
        float
        """
        return burst_std_from_spectra(self.spectra) if known is None else float(known)

    @property
    def spectra(self) -> NDArray[np.float64]:
        """Leading k covariance eigenvalues of each burst, largest first, (N, k)."""
        return np.square(self.tangents).sum(axis=2)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights of the bursts in the likelihood, (N,): M_i − 1 divided by its mean."""
        if not np.all(np.isfinite(self.counts)):
            return np.ones(len(self))
        freedom = self.counts - 1
        return freedom / freedom.mean()

    def __len__(self) -> int:
        return len(self.means)

    def __getitem__(self, rows: Any) -> BurstStatistics:
        if np.ndim(self.counts[rows]) != 1:
            raise IndexError(f"expected a slice, a mask or a list of integers to select bursts; got {rows!r}.")
        return replace(
            self,
            means=self.means[rows],
            tangents=self.tangents[rows],
            counts=self.counts[rows],
            residuals=self.residuals[rows],
            ids=self.ids[rows],
        )

    def name_of(self, row: int) -> str:
        """Return what a message calls a burst.

        Parameters
        ----------
        row : int

        Returns
        -------
        str
            For example ``"burst 'run 7'"``, or ``"burst 12"`` if it has only a number.
        """
        return f"burst {self.ids[row : row + 1].tolist()[0]!r}"

    def listed(self, rows: Any, most: int = 5) -> str:
        """List some bursts for a message.

        Parameters
        ----------
        rows : slice, mask or sequence of int
        most : int, default=5
            Further bursts are only counted.

        Returns
        -------
        str
            For example ``"bursts 'run 7', 'run 9'"``.
        """
        ids = self.ids[rows].tolist()
        more = f" and {len(ids) - most} more" if len(ids) > most else ""
        return f"burst{'s' * (len(ids) != 1)} {', '.join(repr(name) for name in ids[:most])}{more}"

    def scaled(self, scale: NDArray[np.float64] | None) -> BurstStatistics:
        """Divide every feature by a scale.

        Only the trace of the covariance off the tangents is known; it is assumed to be distributed over the features
        as the tangents are.

        Parameters
        ----------
        scale : (D,) array or None
            None returns the statistics unchanged.

        Returns
        -------
        BurstStatistics
        """
        if scale is None:
            return self
        _, singular, rows = np.linalg.svd(self.tangents / scale, full_matrices=False)
        inside = np.square(self.tangents).sum(axis=(0, 1))  # (D,)
        factor = float((inside / np.square(scale)).sum() / inside.sum())
        return replace(
            self,
            means=self.means / scale,
            tangents=singular[:, :, None] * rows,
            residuals=self.residuals * factor,
            noise_variance=self.noise_variance * factor,
        )

    def frames(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Factor the tangents as A_i = diag(s_i) Q_i.

        Returns
        -------
        basis : (N, k, D) array
            Q_i, with orthonormal rows.
        scale : (N, k) array
            s_i, the standard deviations along them.
        """
        scale = np.sqrt(self.spectra)
        return self.tangents / scale[:, :, None], scale

    def rounded(self) -> BurstStatistics:
        """Centre the means and round them to 24 bits of their spread, and the tangents to 20 bits of a typical one.

        This is far below sampling errors, but above the rounding of a change of units. Training amplifies differences
        in the last bit up to the error of the fit; after rounding, a table in millivolts and one in volts are the same.

        Returns
        -------
        BurstStatistics
        """
        spread = float(np.median(self.means.std(axis=0)))
        centred = self.means - self.means.mean(axis=0)
        tangents = _round(self.tangents, self.burst_std(), 20)
        # An SVD does not determine the sign of a tangent.
        longest = np.take_along_axis(tangents, np.abs(tangents).argmax(axis=2)[:, :, None], axis=2)
        return replace(self, means=_round(centred, spread, 24), tangents=tangents * np.where(longest < 0, -1.0, 1.0))

    def without_noise(self, measurement_noise: float | str | None) -> BurstStatistics:
        """Subtract isotropic measurement noise from the tangents.

        Parameters
        ----------
        measurement_noise : float, "estimate" or None
            Standard deviation of the noise; "estimate" takes it from the variance off the tangents, None returns the
            statistics unchanged.

        Returns
        -------
        BurstStatistics

        Raises
        ------
        BurstError
            If a tangent is no larger than the noise, or the noise cannot be estimated.
        ValueError
            If `measurement_noise` is not one of the above.
        """
        if measurement_noise is None:
            return self
        if measurement_noise == "estimate":
            variance = noise_from_spectra(self.residuals, self.counts, self.n_features, self.intrinsic_dim)
        elif isinstance(measurement_noise, str) or not np.isfinite(measurement_noise) or measurement_noise < 0:
            raise ValueError(f'measurement_noise must be None, "estimate" or a number ≥ 0; got {measurement_noise!r}.')
        else:
            variance = float(measurement_noise) ** 2
        spectra = self.spectra
        # The leading directions of a sample lean towards its noise: they hold this much more of it than any other.
        excess = variance * (1 + (self.n_features - self.intrinsic_dim) / (self.counts - 1))
        small = np.flatnonzero(spectra[:, -1] <= excess)
        if len(small):
            i = small[0]
            raise BurstError(
                f"{self.name_of(i)} (and {len(small) - 1} more) has a tangent of variance {spectra[i, -1]:.3g}, no "
                f"larger than the measurement noise along it, {excess[i]:.3g}: nothing is left when it is subtracted. "
                "Take larger bursts, remove these, or pass a smaller measurement_noise."
            )
        tangents = self.tangents * np.sqrt(1 - excess[:, None] / spectra)[:, :, None]
        rest = np.maximum(self.residuals - variance * (self.n_features - self.intrinsic_dim), 0)
        return replace(self, tangents=tangents, residuals=rest, noise_variance=self.noise_variance + variance)

    def _refuse_flat_bursts(self) -> None:
        spectra = self.spectra
        # Rounding of the coordinates themselves puts this much variance into a burst of identical points.
        rounding = (64 * EPS * np.abs(self.means).max(axis=1)) ** 2
        same = np.flatnonzero(spectra[:, 0] <= rounding)
        if len(same):
            raise BurstError(
                f"{self.name_of(same[0])} (and {len(same) - 1} more) has no spread: its points are identical, to "
                "rounding. Remove such bursts, or check that the instrument did not repeat one reading."
            )
        k = self.intrinsic_dim
        flat = np.flatnonzero(spectra[:, -1] <= np.maximum(rounding, (EPS * 64) ** 2 * spectra[:, 0]))
        if len(flat):
            i = int(flat[0])
            spans = int((spectra[i] > rounding[i]).sum())
            raise BurstError(
                f"{self.name_of(i)} (and {len(flat) - 1} more) spans only {min(spans, k - 1)} of the k = {k} directions"
                f" (variances {np.array2string(spectra[i], precision=3)}). Remove it, or lower intrinsic_dim."
            )


def burst_means(bursts: Bursts) -> NDArray[np.float64]:
    """Compute the means of bursts, without their tangents.

    Parameters
    ----------
    bursts : Bursts

    Returns
    -------
    (N, D) array

    Raises
    ------
    BurstError
        If a value is not finite or too large to be squared.

    Examples
    --------
    >>> from pyloca import datasets
    >>> burst_means(datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts).shape
    (100, 2)
    """
    means = np.empty((len(bursts), bursts.n_features))
    for rows, block in bursts.blocks():
        refuse_bad_values(bursts, rows, block)
        means[rows] = block.mean(axis=1)
    return means


def _tangents(centred: NDArray[np.float64], k: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute tangents (b, k, D) and residual traces (b,) of centred bursts (b, M, D), by thin SVD."""
    m, dim = centred.shape[1:]
    total = np.square(centred).sum(axis=(1, 2)) / (m - 1)
    if m > 2 * dim:  # the triangular factor has the same right singular vectors and is smaller
        centred = np.asarray(np.linalg.qr(centred, mode="r"))
    _, singular, rows = np.linalg.svd(centred, full_matrices=False)
    singular = singular[:, :k] / np.sqrt(m - 1)
    return singular[:, :, None] * rows[:, :k], np.maximum(total - np.square(singular).sum(axis=1), 0)


def _choose_k(bursts: Bursts, intrinsic_dim: int | None, max_dim: int | None) -> int:
    counts, dim = bursts.counts, bursts.n_features
    if intrinsic_dim is not None:
        k = check_k(intrinsic_dim, dim)
    else:
        if counts.min() < 2:
            refuse_short(bursts, 1)
        step = max(1, len(bursts) // PROBE)
        probe = bursts[np.arange(0, len(bursts), step)]
        spectra = BurstSpectra.empty(probe.counts, dim)
        for rows, block in probe.blocks():
            refuse_bad_values(probe, rows, block)
            spectra.add(rows, block)
        k = intrinsic_dim_from_spectra(spectra, dim, max_dim)
    refuse_short(bursts, k)
    return k


def _round(values: NDArray[np.float64], size: float, bits: int) -> NDArray[np.float64]:
    """Round to multiples of 2^−`bits` times a power of two near `size`; a `size` of 0 leaves the values unchanged."""
    if not size > 0:
        return values
    unit = 2.0 ** (np.round(np.log2(size)) - bits)  # not floor: scaled means have a spread of 1
    return np.round(values / unit) * unit
