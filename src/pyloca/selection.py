"""Estimates of σ, k and d from the bursts themselves, each with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from pyloca._arguments import as_numbers, brief, check_seed, is_integer
from pyloca._html import html_card
from pyloca.alignment import align
from pyloca.bursts import Bursts, as_bursts
from pyloca.checks import Suggestion, suggest_components
from pyloca.errors import BurstError
from pyloca.estimator import LOCA, Data, compare_components
from pyloca.geometry import (
    BurstSpectra,
    BurstStatistics,
    feature_scale,
    find_strays,
    intrinsic_dim_from_spectra,
    sample_rows,
    without_spikes,
)
from pyloca.thresholds import PROBE, SAMPLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BurstStdEstimate",
    "ComponentSelection",
    "IntrinsicDimEstimate",
    "Suggestion",
    "estimate_burst_std",
    "estimate_intrinsic_dim",
    "select_n_components",
    "suggest_n_components",
]

Array = NDArray[np.float64]

BOOTSTRAPS = 200
MORE = 3  # components beyond k that are tried


@dataclass(frozen=True)
class BurstStdEstimate:
    """Estimate of σ with its standard error.

    Attributes
    ----------
    burst_std : float
        The value for ``LOCA(burst_std=...)``; ``float(estimate)`` gives the same.
    standard_error : float
        Infinite if σ rests on a single distance.
    known_scale : bool
        True if σ was found from known distances: it is in their unit, and coordinates found with it have the right
        scale. False: σ is the size of a burst in the measurements, and coordinates are right up to one factor.
    samples : (n,) array
        The estimates from single bursts (or single distances).

    Examples
    --------
    See `estimate_burst_std`.
    """

    burst_std: float
    standard_error: float
    known_scale: bool
    samples: Array = field(repr=False, compare=False)

    def __float__(self) -> float:
        return self.burst_std

    def __str__(self) -> str:
        error = f" ± {self.standard_error:.1g}" if np.isfinite(self.standard_error) else ", from a single distance"
        scale = "in the unit of the distances" if self.known_scale else "of the measurements as LOCA scales them"
        return f"σ = {self.burst_std:.4g}{error}, {scale}"

    def _repr_html_(self) -> str:
        known, one = np.isfinite(self.standard_error), "distance" if self.known_scale else "burst"
        low, high = np.quantile(self.samples, [0.05, 0.95])
        rows = {
            "burst_std": f"{self.burst_std:.4g}",
            "standard error": f"{self.standard_error:.1g}" if known else "not known: one distance alone",
            "scale": "that of the known distances"
            if self.known_scale
            else "that of the measurements: coordinates are right up to one factor",
            "samples": f"{len(self.samples)}, one per {one}"
            + (f"; 5 % to 95 % of them: {low:.3g} to {high:.3g}" if high > low else ""),
        }
        return html_card("Estimate of σ", rows)

    def plot(self) -> Figure:
        """Draw the estimates from single bursts (or distances).

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pyloca.plots import plot_burst_std

        return plot_burst_std(self.burst_std, self.samples, self.standard_error, self.known_scale)


@dataclass(frozen=True)
class IntrinsicDimEstimate:
    """Estimate of k with its confidence.

    Attributes
    ----------
    intrinsic_dim : int
        The value for ``LOCA(intrinsic_dim=...)``; ``int(estimate)`` gives the same.
    confidence : float
        Fraction of bootstrap samples of the bursts that give the same k.
    spectrum, growth : (r,) array
        Median eigenvalues of the bursts, and how each direction grows with the radius: 1 for tangents and noise,
        above 1 for curvature (`pyloca.geometry.BurstSpectra`).

    Examples
    --------
    See `estimate_intrinsic_dim`.
    """

    intrinsic_dim: int
    confidence: float
    spectrum: Array = field(repr=False, compare=False)
    growth: Array = field(repr=False, compare=False)

    def __int__(self) -> int:
        return self.intrinsic_dim

    def __str__(self) -> str:
        return f"k = {self.intrinsic_dim} ({self.confidence:.0%} of bootstrap samples agree)"

    def _repr_html_(self) -> str:
        k, shown = self.intrinsic_dim, slice(0, self.intrinsic_dim + 3)
        rest = ", ".join(f"{value:.3g}" for value in self.spectrum[shown][k:])
        rows = {
            "intrinsic_dim": str(k),
            "confidence": f"{self.confidence:.0%} of bootstrap samples agree",
            "eigenvalues": ", ".join(f"{value:.3g}" for value in self.spectrum[:k])
            + (f"; then {rest}{', …' if len(self.spectrum) > k + 3 else ''}" if rest else ""),
        }
        return html_card("Estimate of k", rows)

    def plot(self) -> Figure:
        """Draw the spectrum and where the tangents end.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pyloca.plots import plot_intrinsic_dim

        return plot_intrinsic_dim(self.intrinsic_dim, self.confidence, self.spectrum, self.growth)


@dataclass(frozen=True)
class ComponentSelection:
    """Selected d, with the fits that it was selected from.

    Attributes
    ----------
    n_components : int
        The smallest d that no other candidate improves on for held-out bursts; among those whose fit has no finding,
        if there are any.
    intrinsic_dim : int
        k.
    candidates : tuple of int
        All d that were fitted.
    losses, excess : (n,) array
        Held-out whitening loss of each candidate (a burst counts at most 5 times its sampling floor), and its excess
        over the floor.
    standard_errors : (n,) array
        Of the difference from the best candidate, burst by burst.
    hint : int
        The d suggested by the closed-form alignment: k if the latent space is flat, k + 1 if one more dimension
        relieves the strain.
    models : dict of LOCA
        The fits, by d.

    Examples
    --------
    See `select_n_components`.
    """

    n_components: int
    intrinsic_dim: int
    candidates: tuple[int, ...]
    losses: Array
    excess: Array
    standard_errors: Array
    hint: int
    models: dict[int, LOCA] = field(repr=False)

    def __str__(self) -> str:
        lines = [f"d = {self.n_components} (k = {self.intrinsic_dim}; the alignment suggests {self.hint})"]
        for d, loss, excess in zip(self.candidates, self.losses, self.excess, strict=True):
            chosen = " <-" if d == self.n_components else ""
            lines.append(f"  d = {d}: held-out loss {loss:.4g}, {excess:+.2g} beyond the sampling floor{chosen}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = {
            "n_components": str(self.n_components),
            "intrinsic_dim": str(self.intrinsic_dim),
            "alignment suggests": str(self.hint),
        }
        for i, d in enumerate(self.candidates):
            found = ", ".join(finding.name for finding in self.models[d].diagnostics_.findings)
            name = f"d = {d}{', chosen' if d == self.n_components else ''}"
            rows[name] = (
                f"held-out loss {self.losses[i]:.4g}, {self.excess[i]:+.2g} beyond the sampling floor; standard error "
                f"{self.standard_errors[i]:.1g} of the difference to the best; {found or 'no fault found'}"
            )
        return html_card("Selection of d", rows)

    def plot(self) -> Figure:
        """Draw the loss against d.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from pyloca.plots import plot_component_selection

        floor = float((self.losses - self.excess)[0])
        return plot_component_selection(self.n_components, self.candidates, self.losses, self.standard_errors, floor)


def estimate_burst_std(
    bursts: Data, *, pairs: ArrayLike | None = None, distances: ArrayLike | None = None, n_components: int | None = None
) -> BurstStdEstimate:
    """Estimate σ from the bursts alone, or in the right unit from some known distances.

    From the bursts alone, σ² is the median first eigenvalue of the burst covariances (section 7.1 of the paper). That
    is the size of a burst in the *measurements*, after `LOCA` has scaled their features (``feature_scale="auto"``), so
    coordinates found with it are right up to one factor. If some
    latent distances are known, σ is chosen such that the closed-form alignment reproduces them; `LOCA.rescale`, which
    scales the finished embedding to the same distances, is more accurate.

    Parameters
    ----------
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path
    pairs : (n, 2) array of int, optional
        Pairs of bursts, by their numbers, whose latent distance is known.
    distances : (n,) array, optional
        Their distances.
    n_components : int, optional
        d of the alignment; None: k. Only with `pairs`.

    Returns
    -------
    BurstStdEstimate

    Raises
    ------
    BurstError
        If the bursts cannot be used or aligned, or two of a pair coincide.
    ValueError
        If `pairs` and `distances` do not match, or only one of them is given.

    Examples
    --------
    >>> from pyloca import datasets
    >>> data = datasets.mushroom(n_bursts=100, n_points=10, random_state=0)
    >>> estimate_burst_std(data.bursts).known_scale
    False
    >>> distance = float(np.linalg.norm(data.X[0] - data.X[1]))
    >>> estimate = estimate_burst_std(data.bursts, pairs=[(0, 1)], distances=[distance])
    >>> abs(float(estimate) / data.burst_std - 1) < 0.3
    True
    """
    if pairs is None and not isinstance(bursts, BurstStatistics):
        bursts = as_bursts(bursts).without_perturbations()  # they say what σ is; this is about the clouds
    statistics, sound = _statistics(bursts, 1 if pairs is None else None)
    if pairs is None or distances is None:
        if pairs is not None or distances is not None:
            raise ValueError(f"got only {'pairs' if distances is None else 'distances'}; pass pairs and distances.")
        if n_components is not None:
            raise ValueError(
                "n_components is used only with known distances; pass pairs and distances, or leave it out."
            )
        samples = np.sqrt(statistics.spectra[sound, 0])
        sigma = statistics[sound].burst_std()
        spread = 1.4826 * float(np.median(np.abs(samples - sigma)))
        return BurstStdEstimate(sigma, 1.25 * spread / np.sqrt(len(samples)), False, samples)
    ends, lengths = _check_pairs(pairs, distances, len(statistics))
    lost = np.setdiff1d(ends, sound)
    if len(lost):
        raise BurstError(
            f"{statistics.listed(lost)} cannot be aligned with the others (inspect_bursts says why), so a distance "
            "from there gives no scale. Remove these pairs."
        )
    rows = np.union1d(ends, sound[sample_rows(len(sound), SAMPLE)])
    places = align(statistics[rows], n_components, burst_std=1.0, max_bursts=len(rows), random_state=0).positions
    one, other = (places[np.searchsorted(rows, ends[:, side])] for side in (0, 1))
    aligned = np.linalg.norm(one - other, axis=1)
    if not np.all(aligned > 0):
        first, second = ends[np.argmin(aligned)]
        raise BurstError(
            f"{statistics.name_of(first)} and {statistics.name_of(second)} coincide, so their distance gives no scale. "
            "Remove this pair."
        )
    ratios = lengths / aligned
    sigma = float(lengths @ aligned / (aligned @ aligned))
    error = float(ratios.std(ddof=1) / np.sqrt(len(ratios))) if len(ratios) > 1 else np.inf
    return BurstStdEstimate(sigma, error, True, ratios)


def estimate_intrinsic_dim(
    bursts: Data, *, random_state: int | np.random.RandomState | None = None
) -> IntrinsicDimEstimate:
    """Estimate k, the number of eigenvalues before the burst spectra drop to curvature and noise.

    Curvature grows with the square of the radius of a burst; noise does not grow and fills all directions evenly. If
    no drop is clear, k = D: a measurement may stretch one direction several times more than another.

    Parameters
    ----------
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path
    random_state : int, RandomState or None, default=None
        Draws the bootstrap samples, on which only the confidence depends.

    Returns
    -------
    IntrinsicDimEstimate

    Raises
    ------
    BurstError
        If the bursts cannot be used, noise hides them, or they have too few points to tell.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> print(estimate_intrinsic_dim(bursts, random_state=0))
    k = 2 (100% of bootstrap samples agree)
    """
    if isinstance(bursts, BurstStatistics):  # k is already fixed
        spectrum = np.median(bursts.spectra, axis=0)
        return IntrinsicDimEstimate(bursts.intrinsic_dim, 1.0, spectrum, np.ones_like(spectrum))
    raw = without_spikes(_raw(bursts).without_perturbations())  # they say what k is; this is about the clouds
    statistics, sound = _statistics(raw, None)
    k, raw = statistics.intrinsic_dim, raw[sound]
    spectra = BurstSpectra.of(raw, PROBE)
    check_seed("random_state", random_state)
    random = check_random_state(random_state)
    same = 0
    for _ in range(BOOTSTRAPS):
        try:
            again = intrinsic_dim_from_spectra(spectra[random.randint(len(spectra), size=len(spectra))], raw.n_features)
        except BurstError:
            continue
        same += again == k
    return IntrinsicDimEstimate(k, same / BOOTSTRAPS, np.median(spectra.values, axis=0), spectra.growth.mean(axis=0))


def suggest_n_components(
    bursts: Data, *, burst_std: float | None = None, intrinsic_dim: int | None = None
) -> Suggestion:
    """Suggest d in closed form, without training: k if the latent space is flat, k + 1 if it is not.

    Parameters
    ----------
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path
    burst_std : float, optional
        σ; None: estimated.
    intrinsic_dim : int, optional
        k; None: estimated.

    Returns
    -------
    Suggestion

    Raises
    ------
    BurstError
        If the bursts cannot be used.

    Examples
    --------
    >>> from pyloca import datasets
    >>> suggest_n_components(datasets.mushroom(300, 50, random_state=0).bursts).n_components
    2
    """
    statistics, sound = _statistics(bursts, intrinsic_dim)
    return suggest_components(statistics[sound], burst_std)


def select_n_components(
    bursts: Data,
    *,
    burst_std: float | None = None,
    intrinsic_dim: int | None = None,
    candidates: Sequence[int] | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    **parameters: Any,
) -> ComponentSelection:
    """Fit several d and select the smallest that no other improves on for held-out bursts.

    The criterion is the paper's: the held-out whitening loss against its sampling floor, compared burst by burst. A d
    is sufficient if no candidate is better by more than 2.5 standard errors and by more than a tenth. Fits with a
    finding are passed over if there is one without.

    Parameters
    ----------
    bursts : (N, M, D) array, list of (M_i, D) arrays, Bursts, BurstStatistics or path
    burst_std : float, optional
        σ; None: estimated.
    intrinsic_dim : int, optional
        k; None: estimated.
    candidates : sequence of int, optional
        The d to fit, at least k; None: k to k + 3.
    random_state : int, RandomState or None, default=None
        Seed of the fits; all candidates have the same one.
    n_jobs : int, optional
        Number of fits that run at the same time, as in scikit-learn.
    **parameters
        Further parameters of `LOCA`.

    Returns
    -------
    ComponentSelection

    Raises
    ------
    BurstError
        If the bursts cannot be used, or a candidate is smaller than k.

    Examples
    --------
    >>> from pyloca.bursts import from_function
    >>> X = np.random.RandomState(0).uniform(size=(100, 2))
    >>> bursts = from_function(lambda x: np.c_[x, x[:, 0] * x[:, 1]], X, 0.01, 20, random_state=0)
    >>> found = select_n_components(
    ...     bursts, burst_std=0.01, candidates=[2, 3], hidden_layers=(5,), max_iter=100, random_state=0
    ... )
    >>> found.n_components
    2
    """
    raw = bursts if isinstance(bursts, BurstStatistics) else _raw(bursts)
    statistics, sound = _statistics(raw, intrinsic_dim, parameters.get("max_strays"))
    k = statistics.intrinsic_dim
    asked = range(k, k + MORE + 1) if candidates is None else candidates
    if not isinstance(asked, Iterable) or not all(is_integer(d, 1) for d in asked):
        raise ValueError(f"candidates must be integers of at least 1; got {brief(candidates)}.")
    ds = tuple(sorted({int(d) for d in asked}))
    if not ds or ds[0] < k:
        raise BurstError(
            f"candidates must be at least k = {k}, the dimension that bursts span; got {brief(candidates)}."
        )
    # One seed for all: candidates are compared on the same held-out bursts, which the seed draws.
    check_seed("random_state", random_state)
    seed = random_state if isinstance(random_state, Integral) else check_random_state(random_state).randint(2**31 - 1)
    shared = {"burst_std": burst_std, "intrinsic_dim": k, "random_state": int(seed), **parameters}
    models = {d: LOCA(n_components=d, **shared) for d in ds}
    fits = compare_components(models, raw, statistics.counts, n_jobs)
    hint = suggest_components(statistics[sound], burst_std).n_components
    return ComponentSelection(
        n_components=fits.n_components,
        intrinsic_dim=k,
        candidates=ds,
        losses=fits.losses,
        excess=fits.losses - fits.floor,
        standard_errors=fits.standard_errors,
        hint=hint,
        models=fits.models,
    )


def _raw(bursts: Data) -> Bursts:
    """Return raw bursts in the units in which `LOCA` would fit them."""
    if isinstance(bursts, BurstStatistics):
        raise BurstError("expected raw bursts; got BurstStatistics, which hold only their tangents. Pass the bursts.")
    raw = as_bursts(bursts)
    scale = feature_scale(raw)
    return raw if scale is None else raw.scaled(scale)


def _statistics(
    bursts: Data, intrinsic_dim: int | None, max_strays: float | None = None
) -> tuple[BurstStatistics, NDArray[np.int64]]:
    """Return statistics of all bursts, and the positions of those that `LOCA` would train on."""
    most = LOCA().max_strays if max_strays is None else max_strays
    if not isinstance(bursts, BurstStatistics):
        bursts = BurstStatistics.from_bursts(_raw(bursts), intrinsic_dim, max_strays=most)
    # With fewer tangents than bursts span, neighbours cannot tell what lies off their surface.
    strays = bursts.unusable() if intrinsic_dim == 1 else find_strays(bursts, most)
    return bursts, np.delete(np.arange(len(bursts)), list(strays))


def _check_pairs(pairs: ArrayLike, distances: ArrayLike, n: int) -> tuple[NDArray[np.int64], Array]:
    ends, lengths = np.asarray(pairs), as_numbers("distances", distances)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu" or lengths.shape != (len(ends),):
        raise ValueError(
            f"pairs must be integers of shape (n, 2) and distances of shape (n,); got {ends.dtype} {ends.shape} "
            f"and {lengths.shape}."
        )
    if not len(ends) or ends.min() < 0 or ends.max() >= n:
        raise ValueError(
            f"pairs must be numbers of bursts from 0 to {n - 1}; got "
            + (f"{ends.min()} to {ends.max()}." if len(ends) else "no pairs.")
        )
    if not np.all((lengths > 0) & np.isfinite(lengths)):
        bad = int(np.argmin((lengths > 0) & np.isfinite(lengths)))
        raise ValueError(f"distances must be finite and > 0; distances[{bad}] is {lengths[bad]}.")
    return ends.astype(np.int64), lengths
