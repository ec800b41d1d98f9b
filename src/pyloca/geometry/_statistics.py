"""`BurstStatistics`: everything the fast solver needs of the data, computed in one chunked pass.

More than half of this file is the documentation of one public class. `_from_bursts` makes its fields from raw bursts,
`_from_tangents` from covariances or Jacobians.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import brief
from pyloca.bursts import Bursts
from pyloca.geometry._blocks import blocks
from pyloca.geometry._from_bursts import fields_from_bursts
from pyloca.geometry._from_tangents import fields_from_covariances, fields_from_jacobians
from pyloca.geometry._local import split_noise
from pyloca.geometry._look import KeepParts
from pyloca.geometry._merge import merge
from pyloca.geometry._noise import Noise, Whitener, as_noise, refuse_hidden
from pyloca.geometry._refusals import labels_of
from pyloca.geometry._rounding import rounded
from pyloca.geometry._scatter_rule import Scatter
from pyloca.geometry._spectra import burst_std_from_spectra, noise_from_spectra
from pyloca.geometry._without_tangents import refuse_without_tangents, why_without_tangents
from pyloca.thresholds import MIN_BURSTS

__all__ = ["PER_BURST", "BurstStatistics"]

PER_BURST = ("means", "tangents", "counts", "residuals", "total", "noise", "tilts", "ids", "marks", "set_aside")


@dataclass(frozen=True)
class BurstStatistics:
    """Means, tangents and counts of N bursts.

    Attributes
    ----------
    means : (N, D) array
        μ_i; the readings at displacement 0 where perturbations are known.
    tangents : (N, k, D) array
        A_i, rows orthogonal and longest first, with A_iᵀ A_i the rank-k part of the burst covariance.
    counts : (N,) array
        M_i, or `Bursts.effective_counts` if the bursts have them; ``inf`` where the covariance is known exactly
        (`from_covariances`, `from_jacobians`). Where perturbations are known, the points of a burst whose sampling
        error is as large as the error of the regression.
    residuals : (N,) array
        Trace of the covariance off the tangents: noise and curvature.
    total, noise : (N, k, k) array, optional
        E_i and R_i: covariance of the burst and of the noise in it, in the basis of the tangents (the burst covariance
        is A_iᵀ E_i A_i along them, of which A_iᵀ R_i A_i is noise). None: no noise is known.
    tilts : (N,) array, optional
        Square of the angle by which noise, or the error of a regression, tilts a tangent.
    instrument : Noise or None
        The measurement noise that was taken into account.
    tails : float
        How many times as much sampling changes the covariance of a burst as it does for Gaussian points: more where
        points are one-sided or have heavy tails, less where they fill a disc; `tails_from_fourths`. 1 where no points
        are known.
    scatter : Scatter or None
        Where points have heavy tails: how tangents follow from the scatter of the points, and not from their
        covariance. None: they follow from the covariance.
    ids : (N,) array
        Names of the bursts; their numbers if none were given.
    feature_names, units : tuple of D str, optional
        Names and units of the features.
    marks : (N,) array of str
        What the points of a burst say against it, such as "is clipped: …"; "" where nothing does. `find_strays` decides
        whether it is left out.
    set_aside : (N,) array of int
        Points of each burst that were set aside as spikes; they are not among the M_i.
    known_std : float or None
        σ, if the bursts knew it.

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
    total: NDArray[np.float64] | None = None
    noise: NDArray[np.float64] | None = None
    tilts: NDArray[np.float64] | None = None
    instrument: Noise | None = None
    tails: float = 1.0
    scatter: Scatter | None = None
    ids: NDArray[Any] = None  # type: ignore[assignment]  # filled in below
    feature_names: tuple[str, ...] | None = None
    units: tuple[str, ...] | None = None
    marks: NDArray[Any] = None  # type: ignore[assignment]
    set_aside: NDArray[np.int64] = None  # type: ignore[assignment]  # filled in below
    known_std: float | None = None

    def __post_init__(self) -> None:
        """Name bursts by their numbers if no names were given."""
        if self.ids is None:
            object.__setattr__(self, "ids", np.arange(len(self.means)))
        if self.marks is None:
            object.__setattr__(self, "marks", np.full(len(self.means), "", dtype=object))
        if self.set_aside is None:
            object.__setattr__(self, "set_aside", np.zeros(len(self.means), dtype=np.int64))

    @classmethod
    def from_bursts(
        cls,
        bursts: Bursts | ArrayLike,
        intrinsic_dim: int | None = None,
        *,
        max_dim: int | None = None,
        measurement_noise: Any = None,
        static: Bursts | ArrayLike | None = None,
        min_bursts: int = MIN_BURSTS,
        max_strays: float = 0.0,
        keep: KeepParts | None = None,
    ) -> BurstStatistics:
        """Compute the statistics of raw bursts, in one pass, without points that are spikes.

        Parameters
        ----------
        bursts : Bursts or (N, M, D) array
        intrinsic_dim : int, optional
            k; None: that of the perturbations if they are known, else estimated from the spectra of the bursts.
        max_dim : int, optional
            Largest k that the estimate may return.
        measurement_noise : float, array, Noise or "estimate", optional
            Noise of the instrument, in the forms that `LOCA` takes.
        static : Bursts, optional
            Bursts taken while nothing was perturbed, which tell the noise.
        min_bursts : int, default=10
            Fewer bursts than this raise an error.
        max_strays : float, default=0
            Fraction of the bursts that may have too few points, no spread or too few directions, plus one burst. They
            are kept with tangents of zero length until `find_strays` names them; 0 refuses them.
        keep : KeepParts, optional
            Where finished parts are kept, so that an interrupted run continues where it stopped (`write_statistics`).

        Returns
        -------
        BurstStatistics

        Raises
        ------
        BurstError
            If there are too few bursts, if a burst has too few points, no spread or a value that cannot be used, or
            if k cannot be estimated or is not that of the perturbations.
        ValueError
            If `measurement_noise` is given and perturbations are known: a regression has no noise to subtract.

        Examples
        --------
        >>> from pyloca import datasets
        >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
        >>> BurstStatistics.from_bursts(bursts).intrinsic_dim
        2
        """
        fields = fields_from_bursts(
            Bursts(bursts),
            intrinsic_dim,
            max_dim=max_dim,
            measurement_noise=measurement_noise,
            static=static,
            min_bursts=min_bursts,
            max_strays=max_strays,
            keep=keep,
        )
        out = cls(**fields)
        refuse_without_tangents(out, max_strays)
        out._refuse_hidden_bursts()
        return out

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
        fields = fields_from_covariances(means, covariances, intrinsic_dim, counts)
        out = cls(**fields, **labels_of(fields["means"], ids, feature_names))
        refuse_without_tangents(out)
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
        fields = fields_from_jacobians(anchors, jacobians, counts)
        out = cls(**fields, **labels_of(fields["means"], ids, feature_names))
        refuse_without_tangents(out)
        return out

    @classmethod
    def merge(cls, parts: Sequence[BurstStatistics]) -> BurstStatistics:
        """Join the statistics of several sets of bursts.

        Parameters
        ----------
        parts : sequence of BurstStatistics
            Computed with the same k, the same noise and the same features. Bursts that have no ids in any part are
            numbered from 0. `tails` is the mean of the parts, by their numbers of bursts.

        Returns
        -------
        BurstStatistics

        Raises
        ------
        BurstError
            If k, features, units, σ or the noise differ, or if two bursts have the same id.

        Examples
        --------
        >>> from pyloca import datasets
        >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
        >>> halves = [BurstStatistics.from_bursts(part, 2) for part in (bursts[:50], bursts[50:])]
        >>> len(BurstStatistics.merge(halves))
        100
        """
        return merge(parts, PER_BURST)

    # -- what it holds ------------------------------------------------------------------------------------------

    @property
    def intrinsic_dim(self) -> int:
        """k, the number of tangents per burst."""
        return self.tangents.shape[1]

    @property
    def n_features(self) -> int:
        """D, the dimension of the measurements."""
        return self.means.shape[1]

    @property
    def n_used(self) -> int:
        """Number of features that are not left out: those left out are zero everywhere."""
        return int((self.means.any(axis=0) | self.tangents.any(axis=(0, 1))).sum())

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
        tangents = self.tangents
        out = np.empty(tangents.shape[:2])
        for rows in blocks(len(out)):
            out[rows] = np.square(tangents[rows]).sum(axis=2)
        return out

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
            raise IndexError(f"expected a slice, a mask or a list of integers to select bursts; got {brief(rows)}.")
        chosen = {name: getattr(self, name) for name in PER_BURST}
        return replace(self, **{name: array[rows] for name, array in chosen.items() if array is not None})

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
        turn, singular, rows = np.linalg.svd(self.tangents / scale, full_matrices=False)
        inside = np.square(self.tangents).sum(axis=(0, 1))  # (D,)
        factor = float((inside / np.square(scale)).sum() / inside.sum())
        return replace(
            self,
            means=self.means / scale,
            tangents=singular[:, :, None] * rows,
            residuals=self.residuals * factor,
            instrument=None if self.instrument is None else self.instrument.scaled(scale),
            **self._turned(turn),
        )

    def projected(self, centre: NDArray[np.float64], basis: NDArray[np.float64]) -> BurstStatistics:
        """Express the bursts in coordinates Vᵀ(y − c) of a linear subspace.

        Parameters
        ----------
        centre : (D,) array
            c.
        basis : (D, r) array
            V, orthonormal columns.

        Returns
        -------
        BurstStatistics
            Of r features. What lies off the subspace is gone from means and tangents; residuals are unchanged.
        """
        turn, singular, rows = np.linalg.svd(self.tangents @ basis, full_matrices=False)
        return replace(
            self,
            means=(self.means - centre) @ basis,
            tangents=singular[:, :, None] * rows,
            instrument=None,  # in the basis of the tangents it is kept
            feature_names=None,
            units=None,
            **self._turned(turn),
        )

    def _turned(self, turn: NDArray[np.float64]) -> dict[str, Any]:
        """Return `total` and `noise` in the basis Uᵀ A_i of the tangents, U orthogonal, (N, k, k)."""
        if self.total is None or self.noise is None:
            return {}
        return {name: turn.transpose(0, 2, 1) @ getattr(self, name) @ turn for name in ("total", "noise")}

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
        """Centre the means and round them to 24 bits of their spread, and all else to 20 bits of a typical burst.

        This is far below sampling errors, but above the rounding of a change of units. Training amplifies differences
        in the last bit up to the error of the fit; after rounding, a table in millivolts and one in volts are the same.

        Returns
        -------
        BurstStatistics
        """
        return rounded(self)

    def without_noise(self, measurement_noise: Any) -> BurstStatistics:
        """Take noise into account that is part of the covariances.

        Only the part along the tangents can be: for noise that differs between sensors, `from_bursts` sees more.

        Parameters
        ----------
        measurement_noise : float, array, Noise, "estimate" or None
            In the forms that `LOCA` takes. "estimate" takes isotropic noise from the variance off the tangents; None
            returns the statistics unchanged, and so do statistics that know their noise.

        Returns
        -------
        BurstStatistics

        Raises
        ------
        BurstError
            If nearly all is noise, or the noise cannot be estimated.
        ValueError
            If `measurement_noise` is not one of the above.
        """
        if measurement_noise is None or self.noise is not None:
            return self
        k, dim = self.intrinsic_dim, self.n_features
        if isinstance(measurement_noise, str) and measurement_noise == "estimate":
            noise = Noise(np.full((1, dim), noise_from_spectra(self.residuals, self.counts, self.n_used, k)))
        elif isinstance(measurement_noise, Noise):
            noise = measurement_noise
        else:
            noise = as_noise(measurement_noise, len(self), dim, self.feature_names).placed(self.means)
        level = noise.at(self.means)
        flat = Whitener(np.ones((1, dim)) if level.ndim == 2 else np.eye(dim)[None], level)
        basis, lengths = self.frames()
        tangents, total, part = split_noise(flat, basis, lengths, self.counts)
        size = (level if level.ndim == 2 else np.diagonal(level, axis1=1, axis2=2)).mean(axis=1)
        rest = np.maximum(self.residuals - size * (dim - k), 0)
        out = replace(self, tangents=tangents, residuals=rest, total=total, noise=part, instrument=noise)
        out._refuse_hidden_bursts()
        return out

    @property
    def effective_counts(self) -> NDArray[np.float64]:
        """Points without noise that would tell as much of each burst's shape, (N,): M_i when there is no noise.

        With E_i the burst in units of its signal, (M_i − 1) k (k + 1) / (tr E_i² + (tr E_i)²) degrees of freedom.
        """
        if self.total is None:
            return self.counts
        k, trace = self.intrinsic_dim, np.trace(self.total, axis1=1, axis2=2)
        return 1 + (self.counts - 1) * k * (k + 1) / (np.square(self.total).sum(axis=(1, 2)) + np.square(trace))

    @property
    def sampled_counts(self) -> NDArray[np.float64]:
        """Points of a Gaussian burst without noise whose covariance would be as certain, (N,)."""
        return 1 + (self.effective_counts - 1) / self.tails

    @property
    def noise_shares(self) -> NDArray[np.float64]:
        """Part of each burst's variance that is noise, along the direction in which it is largest, (N,)."""
        if self.total is None or self.noise is None:
            return np.zeros(len(self))
        inverse = np.linalg.inv(np.linalg.cholesky(self.total))
        return np.asarray(np.linalg.eigvalsh(inverse @ self.noise @ inverse.transpose(0, 2, 1))[:, -1])

    def _refuse_hidden_bursts(self) -> None:
        if self.noise is not None:
            refuse_hidden(self.noise_shares, self.intrinsic_dim, self.n_features, float(np.median(self.counts)))

    def unusable(self) -> dict[int, str]:
        """Find the bursts that have fewer than k tangents.

        Returns
        -------
        dict of int to str
            Their positions, and why.
        """
        return why_without_tangents(self)
