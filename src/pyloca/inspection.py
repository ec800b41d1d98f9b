"""What bursts say of themselves before any training: sizes, spectra, σ and k, outliers, and how they go together."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca.alignment import align
from pyloca.bursts import Bursts, as_bursts
from pyloca.errors import BurstError
from pyloca.findings import (
    Neighborhood,
    as_large_as_the_data,
    noise,
    size_error,
    strain_beyond_sampling,
    uneven_units,
)
from pyloca.geometry import BurstSpectra, BurstStatistics, feature_scale
from pyloca.thresholds import PROBE, ROUGH, STRAINED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Inspection", "inspect_bursts", "median_spectrum"]

Array = NDArray[np.float64]

SHOWN = 8  # eigenvalues of a spectrum


@dataclass(frozen=True)
class Inspection:
    """What `inspect_bursts` found; ``print`` shows it as a page.

    Attributes
    ----------
    n_bursts, n_features, intrinsic_dim : int
    n_points : (int, int)
        Least and most points of a burst.
    spectrum : (r,)
        Median over bursts of the leading covariance eigenvalues.
    burst_std : float
        σ: that of the bursts when they know it, else the median first eigenvalue's root.
    burst_std_known : bool
    off_tangent : float
        Median part of a burst's variance off its tangents: noise and curvature.
    strain : float
        Relative mismatch of the aligned edges at d = k; nan when the bursts could not be aligned.
    outliers : tuple of int
        Bursts whose size does not go with that of their neighbours.
    remarks : tuple of str
        What may go wrong, and what to do.
    feature_scale : tuple of D float or None
        What features were divided by before anything else, as `LOCA` does; None when they keep their units.
    """

    n_bursts: int
    n_points: tuple[int, int]
    n_features: int
    intrinsic_dim: int
    spectrum: Array = field(repr=False)
    burst_std: float
    burst_std_known: bool
    off_tangent: float
    strain: float
    outliers: tuple[int, ...]
    remarks: tuple[str, ...]
    positions: Array | None = field(default=None, repr=False)
    feature_scale: tuple[float, ...] | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """All of it but the positions, as JSON has it."""
        facts = {name: value for name, value in vars(self).items() if name != "positions"}
        strain = None if np.isnan(self.strain) else self.strain
        return facts | {"spectrum": self.spectrum.tolist(), "strain": strain}

    def plot(self) -> Figure:
        """Draw the spectrum and, when the bursts could be aligned, their positions."""
        from pyloca.plots import plot_alignment

        return plot_alignment(self.spectrum, self.intrinsic_dim, self.positions, self.strain)

    def __str__(self) -> str:
        low, high = self.n_points
        points = str(low) if low == high else f"{low}..{high}"
        known = "known" if self.burst_std_known else "estimated: coordinates will be right up to one factor"
        lines = [
            f"bursts            N = {self.n_bursts}, M = {points}, D = {self.n_features}",
            *([] if self.feature_scale is None else ["features          divided by their spread, as LOCA does"]),
            f"spectrum          {'  '.join(f'{value:.2e}' for value in self.spectrum)} (median eigenvalues)",
            f"intrinsic dim     k = {self.intrinsic_dim}",
            f"burst std         σ = {self.burst_std:.4g} ({known})",
            f"off the tangents  {self.off_tangent:.2%} of a burst's variance (noise and curvature)",
            f"alignment         {'not possible' if np.isnan(self.strain) else f'strain {self.strain:.3f}'}",
            f"outlier bursts    {', '.join(map(str, self.outliers[:10])) or 'none'}"
            + (f" … ({len(self.outliers)})" if len(self.outliers) > 10 else ""),
        ]
        return "\n".join(lines + [f"NOTE              {remark}" for remark in self.remarks])


def inspect_bursts(
    bursts: Bursts | ArrayLike | str | os.PathLike[str],
    *,
    n_components: int | None = None,
    intrinsic_dim: int | None = None,
) -> Inspection:
    """Look at bursts without training anything; bad values are refused as `LOCA.fit` refuses them.

    Bursts are seen as `LOCA` sees them by default, features of different kinds divided by their spread; what is asked
    both before and after a fit is asked by the same functions.
    """
    bursts = as_bursts(bursts)
    scale = feature_scale(bursts)
    bursts = bursts if scale is None else bursts.scaled(scale)
    statistics = BurstStatistics.from_bursts(bursts, intrinsic_dim, max_dim=n_components)
    k, spectra = statistics.intrinsic_dim, statistics.spectra
    total = spectra.sum(axis=1) + statistics.residuals
    off = float(np.median(statistics.residuals / total))
    sigma = statistics.burst_std(bursts.burst_std)
    positions, strain, excess, apart = None, np.nan, np.nan, ""
    try:
        alignment = align(statistics, k, burst_std=sigma, random_state=0)
        positions, strain = alignment.positions, alignment.strain
        excess = strain_beyond_sampling(alignment, statistics)
    except BurstError as error:
        apart = str(error)
    near = Neighborhood(statistics)
    outliers = tuple(int(i) for i in near.rows[near.giants])
    # As in a fit: one cause has many symptoms, and bursts that stand out make their neighbours look uneven.
    beside = near.unrelated() or near.crossing() or near.outliers() or near.uneven_size()
    faults = [uneven_units(bursts, k), as_large_as_the_data(statistics), noise(statistics, bursts), beside]
    counts = bursts.counts
    remarks = [*([apart] if apart else []), *(fault.message for fault in faults if fault is not None)]
    rough = size_error(statistics.counts)
    if ROUGH.passed(rough):
        remarks.append(
            f"a burst of {int(np.median(counts))} points tells its size to {rough:.0%}; more points or bursts help "
            "(unless they are a fixed array of sensors, which has no sampling error)."
        )
    if intrinsic_dim is None and k == bursts.n_features >= 3:
        remarks.append(
            f"no direction of a burst stands out as noise or curvature, so all D = {k} count as tangents; if the "
            "latent space has fewer dimensions, give intrinsic_dim."
        )
    # With more components than k, bursts need not fit together in k dimensions.
    if (n_components is None or n_components <= k) and STRAINED.passed(excess):
        remarks.append(
            f"the bursts do not fit together in {k} dimensions: their edges mismatch by {excess:.0%} beyond sampling. "
            f"The latent space is curved (try n_components={k + 1}), or bursts are not isotropic, or too few."
        )
    return Inspection(
        n_bursts=len(bursts),
        n_points=(int(counts.min()), int(counts.max())),
        n_features=bursts.n_features,
        intrinsic_dim=k,
        spectrum=median_spectrum(bursts),
        burst_std=sigma,
        burst_std_known=bursts.burst_std is not None,
        off_tangent=off,
        strain=float(strain),
        outliers=outliers,
        remarks=tuple(remarks),
        positions=positions,
        feature_scale=None if scale is None else tuple(scale.tolist()),
    )


def median_spectrum(bursts: Bursts) -> Array:
    """Median over (a sample of) bursts of the leading covariance eigenvalues."""
    return np.asarray(np.median(BurstSpectra.of(bursts, PROBE).values, axis=0)[:SHOWN])
