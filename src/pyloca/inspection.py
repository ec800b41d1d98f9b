"""What bursts show before any training: sizes, spectra, σ and k, outliers, and how well they fit together."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca.alignment import align
from pyloca.bursts import Bursts, as_bursts
from pyloca.errors import BurstError
from pyloca.estimator import LOCA, Data, Prepared, check_parameters, prepare, refuse_unfit, told_noise
from pyloca.findings import (
    Finding,
    Neighborhood,
    as_large_as_the_data,
    changed_sensor,
    clipped,
    clipped_words,
    foreign_sensors,
    no_displacement,
    noise,
    size_error,
    spike_words,
    strain_beyond_sampling,
    uneven_units,
)
from pyloca.geometry import BurstSpectra, BurstStatistics, look_at_columns
from pyloca.thresholds import PROBE, ROUGH, STRAINED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Inspection", "inspect_bursts", "median_spectrum", "outline"]

Array = NDArray[np.float64]

SHOWN = 8  # eigenvalues of a spectrum


@dataclass(frozen=True)
class Inspection:
    """Result of `inspect_bursts`; ``print`` shows it as a page.

    Attributes
    ----------
    n_bursts, n_features, intrinsic_dim : int
        N, D and k.
    n_points : (int, int)
        Smallest and largest number of points of a burst.
    spectrum : (r,) array
        Median over bursts of the leading covariance eigenvalues.
    burst_std : float
        σ of the bursts if it is known, else the square root of the median first eigenvalue.
    burst_std_known : bool
    off_tangent : float
        Median fraction of a burst's variance off its tangents: noise and curvature.
    strain : float
        Relative mismatch of the aligned edges at d = k; nan when the bursts could not be aligned.
    set_aside : str
        How many points were set aside as spikes, and where, in words; empty when none were.
    noise : str
        The measurement noise that was taken into account, in words; empty when none was.
    outliers : tuple
        Ids of the bursts whose size does not match that of their neighbours.
    remarks : tuple of str
        What may go wrong, and what to do.
    positions : (n, k) array or None
        Aligned positions of the bursts, or of a sample; None when they could not be aligned.
    feature_scale : tuple of D float or None
        Divisors of the features, as `LOCA` chooses them, infinite for those left out; None when they keep their units.
    refusal : str
        What `LOCA.fit` raises for these bursts, the first remark; empty if it does not refuse them.
    strays : dict
        Bursts that a fit would leave out, by id, each with the reason. All else is about the other bursts.
    provenance : str
        Where the bursts come from, and what was left out of them.

    Examples
    --------
    See `inspect_bursts`.
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
    outliers: tuple[Any, ...]
    remarks: tuple[str, ...]
    positions: Array | None = field(default=None, repr=False)
    set_aside: str = ""
    noise: str = ""
    feature_scale: tuple[float, ...] | None = field(default=None, repr=False)
    refusal: str = ""
    strays: dict[Any, str] = field(default_factory=dict)
    provenance: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the positions, ready for JSON.

        Returns
        -------
        dict
        """
        facts = {name: value for name, value in vars(self).items() if name != "positions"}
        strain = None if np.isnan(self.strain) else self.strain
        strays = {str(name): reason for name, reason in self.strays.items()}
        scale = self.feature_scale
        divisors = None if scale is None else tuple(value if np.isfinite(value) else None for value in scale)
        return facts | {
            "spectrum": self.spectrum.tolist(),
            "strain": strain,
            "strays": strays,
            "feature_scale": divisors,
        }

    @property
    def _scaled(self) -> bool:
        return any(value != 1 for value in self.feature_scale or () if np.isfinite(value))

    def plot(self) -> Figure:
        """Draw the spectrum and, when the bursts could be aligned, their positions.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pyloca.plots import plot_alignment

        return plot_alignment(self.spectrum, self.intrinsic_dim, self.positions, self.strain)

    def __str__(self) -> str:
        known = "known" if self.burst_std_known else "estimated: coordinates will be right up to one factor"
        lines = [
            _sizes(self.n_bursts, self.n_points, self.n_features),
            *([f"provenance        {self.provenance}"] if self.provenance else []),
            *([f"set aside         {self.set_aside}"] if self.set_aside else []),
            *(["features          divided by their spread, as LOCA does"] if self._scaled else []),
            _spectrum_words(self.spectrum),
            f"intrinsic dim     k = {self.intrinsic_dim}",
            f"burst std         σ = {self.burst_std:.4g} ({known})",
            f"off the tangents  {self.off_tangent:.2%} of a burst's variance (noise and curvature)",
            *([f"noise             {self.noise}"] if self.noise else []),
            f"alignment         {'not possible' if np.isnan(self.strain) else f'strain {self.strain:.3f}'}",
            *[f"left out          burst {name!r} {reason}" for name, reason in self.strays.items()][:10],
            f"outlier bursts    {', '.join(map(str, self.outliers[:10])) or 'none'}"
            + (f" … ({len(self.outliers)})" if len(self.outliers) > 10 else ""),
        ]
        return "\n".join(lines + [f"NOTE              {remark}" for remark in self.remarks])


def inspect_bursts(
    bursts: Bursts | ArrayLike | str | os.PathLike[str],
    *,
    n_components: int | str | None = None,
    burst_std: float | None = None,
    intrinsic_dim: int | None = None,
    feature_scale: str | ArrayLike | None = "auto",
    measurement_noise: Any = None,
    max_strays: float = 0.01,
    static: Data | None = None,
) -> Inspection:
    """Look at bursts without training anything.

    Bursts are read and refused by the functions of `LOCA.fit`, and checks that are made both before and after a fit are
    the same: what is refused here is refused by a fit with these parameters, in the same words.

    Parameters
    ----------
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, or path
    n_components : int or "auto", optional
        d of the fit to come: bursts span at most so many directions. None is "auto".
    burst_std : float, optional
        σ; None: that of the bursts, or estimated.
    intrinsic_dim : int, optional
        k; None estimates it.
    feature_scale : "auto", None or (D,) array, default="auto"
        As for `LOCA`.
    measurement_noise : optional
        As for `LOCA`.
    max_strays : float, default=0.01
        Fraction of the bursts that may be left out, as in `LOCA`; the rest is inspected.
    static : bursts in any form, optional
        Bursts taken while nothing was perturbed, as for `LOCA.fit`.

    Returns
    -------
    Inspection
        Its `refusal` is what a fit would raise, if the bursts can be looked at all the same.

    Raises
    ------
    BurstError
        If the bursts cannot be used at all, as in `LOCA.fit`.
    ValueError
        If a parameter is wrong, as in `LOCA.fit`.

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.inspection import inspect_bursts
    >>> found = inspect_bursts(datasets.mushroom(n_bursts=200, n_points=20, random_state=0).bursts)
    >>> found.intrinsic_dim, found.n_points
    (2, (20, 20))
    """
    raw = as_bursts(bursts)
    model = LOCA(
        "auto" if n_components is None else n_components,
        burst_std=burst_std,
        intrinsic_dim=intrinsic_dim,
        feature_scale=feature_scale,
        measurement_noise=measurement_noise,
        max_strays=max_strays,
    )
    check_parameters(model)
    ready = prepare(model, raw, static)
    statistics, scale, known = ready.statistics, ready.scale, ready.burst_std
    strays = {ready.ids[row : row + 1].tolist()[0]: reason for row, reason in ready.strays.items()}
    assert ready.bursts is not None  # raw bursts were given
    bursts = ready.bursts
    refusal = ""
    try:
        refuse_unfit(model, statistics)
    except BurstError as error:
        refusal = str(error)
    k, spectra = statistics.intrinsic_dim, statistics.spectra
    total = spectra.sum(axis=1) + statistics.residuals
    off = float(np.median(statistics.residuals / total))
    sigma = statistics.burst_std(known)
    positions, strain, excess = None, np.nan, np.nan
    try:
        alignment = align(statistics, k, burst_std=sigma, random_state=0)
        positions, strain = alignment.positions, alignment.strain
        excess = strain_beyond_sampling(alignment, statistics)
    except BurstError as error:
        refusal = refusal or str(error)
    near = Neighborhood(statistics)
    outliers = tuple(statistics.ids[near.rows[near.giants]].tolist())
    # As in a fit: one cause has many symptoms, and bursts that stand out make their neighbours look uneven.
    beside = near.unrelated() or near.crossing() or near.outliers() or near.uneven_size()
    faults = [
        changed_sensor(statistics),
        None if isinstance(feature_scale, str) else uneven_units(bursts, k),
        no_displacement(bursts, statistics.instrument),
        foreign_sensors(statistics),
        as_large_as_the_data(statistics, bursts),
        noise(statistics, bursts),
        beside,
    ]
    counts = bursts.counts
    columns = _columns(ready)
    cut = clipped_words(statistics)
    remarks = [
        *([refusal] if refusal else []),
        *columns,
        *([f"{cut}."] if cut else []),
        *(fault.message for fault in faults if fault is not None and not _is_clipped(statistics, fault)),
    ]
    rough = size_error(statistics.counts)
    if ROUGH.passed(rough) and bursts.perturbed_dim is not None:
        remarks.append(
            f"the regression on the known perturbations tells the size of a burst only to within {rough:.0%}, by its "
            "residuals; more points, bursts or readings to average help."
        )
    elif ROUGH.passed(rough):
        remarks.append(
            f"a burst of {int(np.median(counts))} points tells its size to within {rough:.0%}; more points or bursts "
            "help (unless they are a fixed array of sensors, which has no sampling error)."
        )
    if intrinsic_dim is None and k == bursts.n_features >= 3:
        remarks.append(
            f"no direction of a burst stands out as noise or curvature, so all D = {k} count as tangents; if the "
            "latent space has fewer dimensions, give intrinsic_dim."
        )
    # With more components than k, bursts need not fit together in k dimensions.
    if (n_components in (None, "auto") or int(model.n_components) <= k) and STRAINED.passed(excess):
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
        burst_std_known=known is not None,
        off_tangent=off,
        strain=float(strain),
        outliers=outliers,
        remarks=tuple(remarks),
        positions=positions,
        set_aside=spike_words(statistics),
        noise=told_noise(ready, measurement_noise, static),
        feature_scale=None if scale is None else tuple(scale.tolist()),
        refusal=refusal,
        strays=strays,
        provenance=raw.provenance,
    )


def _is_clipped(statistics: BurstStatistics, fault: Finding) -> bool:
    """Whether clipped bursts explain a fault, which is then told already."""
    cause = clipped(statistics, fault)
    return cause is not None and cause.name == "clipped"


def outline(bursts: Bursts) -> str:
    """Describe bursts that cannot be used: what can be said of any.

    Parameters
    ----------
    bursts : Bursts

    Returns
    -------
    str
        The first lines of an `Inspection`.

    Examples
    --------
    >>> from pyloca import datasets
    >>> print(outline(datasets.mushroom(n_bursts=5, n_points=20, random_state=0).bursts).splitlines()[0])
    bursts            N = 5, M = 20, D = 2
    """
    counts = bursts.counts
    lines = [_sizes(len(bursts), (int(counts.min()), int(counts.max())), bursts.n_features)]
    if counts.min() > 1:
        # values that are not finite have no spectrum
        with np.errstate(invalid="ignore", over="ignore"), suppress(np.linalg.LinAlgError):
            lines.append(_spectrum_words(median_spectrum(bursts)))
    return "\n".join(lines)


def _sizes(n: int, n_points: tuple[int, int], n_features: int) -> str:
    low, high = n_points
    return f"bursts            N = {n}, M = {low if low == high else f'{low}..{high}'}, D = {n_features}"


def _spectrum_words(spectrum: Array) -> str:
    return f"spectrum          {'  '.join(f'{value:.2e}' for value in spectrum)} (median eigenvalues)"


def _columns(ready: Prepared) -> list[str]:
    """Say which columns are left out, and which others may be no measurement."""
    unused = [] if ready.scale is None else np.flatnonzero(np.isinf(ready.scale)).tolist()
    bursts = ready.source[ready.rows]
    look = look_at_columns(bursts)
    doubtful = [j for j, kind in look.suspects.items() if j not in unused and kind in ("between", "clock")]
    remarks = []
    if unused:
        remarks.append(f"left out, because they do not measure the state: {look.listed(unused, bursts)}.")
    if doubtful:
        remarks.append(
            f"columns that may be no measurement of the state: {look.listed(doubtful, bursts)}. Leave them out if so "
            "(exclude=…, --exclude)."
        )
    return remarks


def median_spectrum(bursts: Bursts) -> Array:
    """Compute the median over (a sample of) bursts of the leading covariance eigenvalues.

    Parameters
    ----------
    bursts : Bursts

    Returns
    -------
    (r,) array
        Descending, r ≤ 8.

    Examples
    --------
    >>> from pyloca import datasets
    >>> median_spectrum(datasets.mushroom(n_bursts=50, n_points=20, random_state=0).bursts).shape
    (2,)
    """
    return np.asarray(np.median(BurstSpectra.of(bursts, PROBE).values, axis=0)[:SHOWN])
