"""σ, k and d from the bursts themselves, each with a word on how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._html import html_card
from pyloca.alignment import align
from pyloca.bursts import Bursts, as_bursts
from pyloca.checks import Suggestion, suggest_components
from pyloca.errors import BurstError
from pyloca.estimator import LOCA, Data, compare_components
from pyloca.geometry import BurstSpectra, BurstStatistics, intrinsic_dim_from_spectra, sample_rows

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

PROBE = 1000  # bursts that are looked at
ALIGNED = 1500  # bursts that are aligned when distances are known
BOOTSTRAPS = 200
MORE = 3  # components beyond k that are tried


@dataclass(frozen=True)
class BurstStdEstimate:
    """σ with its standard error.

    Attributes
    ----------
    burst_std : float
        What to give to ``LOCA(burst_std=...)``; ``float(estimate)`` is the same.
    standard_error : float
    known_scale : bool
        True when σ came from known distances: then it is in their unit, and coordinates made with it have the right
        scale. Else it is the size of a burst in the measurements, and coordinates are right up to one factor.
    samples : (n,) array
        What single bursts (or single distances) say.
    """

    burst_std: float
    standard_error: float
    known_scale: bool
    samples: Array = field(repr=False)

    def __float__(self) -> float:
        return self.burst_std

    def __str__(self) -> str:
        error = f" ± {self.standard_error:.1g}" if np.isfinite(self.standard_error) else ", by one distance alone"
        scale = "in the unit of the distances" if self.known_scale else "in the unit of the measurements"
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
        """Draw what single bursts say."""
        from pyloca.plots import plot_burst_std

        return plot_burst_std(self.burst_std, self.samples, self.standard_error, self.known_scale)


@dataclass(frozen=True)
class IntrinsicDimEstimate:
    """k with its confidence.

    Attributes
    ----------
    intrinsic_dim : int
        What to give to ``LOCA(intrinsic_dim=...)``; ``int(estimate)`` is the same.
    confidence : float
        Part of bootstrap samples of the bursts that give the same k.
    spectrum, growth : (r,) array
        Median eigenvalues of the bursts, and how each direction grows with the radius: 1 for tangents and noise, more
        for curvature (`pyloca.geometry.BurstSpectra`).
    """

    intrinsic_dim: int
    confidence: float
    spectrum: Array = field(repr=False)
    growth: Array = field(repr=False)

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
        """Draw the spectrum and where the tangents end."""
        from pyloca.plots import plot_intrinsic_dim

        return plot_intrinsic_dim(self.intrinsic_dim, self.confidence, self.spectrum, self.growth)


@dataclass(frozen=True)
class ComponentSelection:
    """Which d the bursts ask for.

    Attributes
    ----------
    n_components : int
        The smallest d that no larger candidate betters on held-out bursts; one whose fit has no finding, if there is.
    intrinsic_dim : int
    candidates : tuple of int
    losses, excess : (n,)
        Held-out whitening loss at each candidate (a burst counts with at most 5 times its sampling floor), and what is
        left of it beyond the floor.
    standard_errors : (n,)
        Of the difference to the best candidate, burst by burst.
    hint : int
        What the closed-form alignment says at once: k when the latent space is flat, k + 1 when one more dimension
        relieves it.
    models : dict of LOCA
        The fits, by d.
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
        """Draw the loss against d."""
        from pyloca.plots import plot_component_selection

        floor = float((self.losses - self.excess)[0])
        return plot_component_selection(self.n_components, self.candidates, self.losses, self.standard_errors, floor)


def estimate_burst_std(
    bursts: Data, *, pairs: ArrayLike | None = None, distances: ArrayLike | None = None, n_components: int | None = None
) -> BurstStdEstimate:
    """σ from the bursts alone, or in the right unit from some known distances.

    Alone it is as in section 7.1 of the paper: σ² is the median over bursts of the first covariance eigenvalue. That is
    the size of a burst in the *measurements*, so coordinates made with it are right up to one factor.

    When you know the latent `distances` (n,) between some `pairs` (n, 2) of bursts, given by their numbers, σ is the
    one under which the closed-form alignment (in `n_components` dimensions, by default k) has these distances.
    """
    statistics = _statistics(bursts, 1 if pairs is None else None)
    if pairs is None or distances is None:
        if pairs is not None or distances is not None:
            raise ValueError("give pairs and distances together, or neither.")
        if n_components is not None:
            raise ValueError("n_components is for the alignment that known distances need; give pairs and distances.")
        samples = np.sqrt(statistics.spectra[:, 0])
        sigma = statistics.burst_std()
        spread = 1.4826 * float(np.median(np.abs(samples - sigma)))
        return BurstStdEstimate(sigma, 1.25 * spread / np.sqrt(len(samples)), False, samples)
    ends, lengths = _check_pairs(pairs, distances, len(statistics))
    rows = np.unique(ends)
    rows = np.union1d(rows, sample_rows(len(statistics), ALIGNED))
    places = align(statistics[rows], n_components, burst_std=1.0, max_bursts=len(rows)).positions
    one, other = (places[np.searchsorted(rows, ends[:, side])] for side in (0, 1))
    aligned = np.linalg.norm(one - other, axis=1)
    if not np.all(aligned > 0):
        raise BurstError(f"bursts {ends[np.argmin(aligned)].tolist()} coincide; their distance tells no scale.")
    ratios = lengths / aligned
    sigma = float(lengths @ aligned / (aligned @ aligned))
    error = float(ratios.std(ddof=1) / np.sqrt(len(ratios))) if len(ratios) > 1 else np.inf
    return BurstStdEstimate(sigma, error, True, ratios)


def estimate_intrinsic_dim(bursts: Data, *, random_state: int = 0) -> IntrinsicDimEstimate:
    """k: where the burst spectra drop to noise and curvature; these are told from tangents by how they scale.

    Curvature grows with the square of the burst's radius, noise does not grow and fills all directions evenly. All D
    when no drop is clear: a measurement may stretch one direction several times more than another.
    """
    if isinstance(bursts, BurstStatistics):  # k is already fixed
        spectrum = np.median(bursts.spectra, axis=0)
        return IntrinsicDimEstimate(bursts.intrinsic_dim, 1.0, spectrum, np.ones_like(spectrum))
    raw = _raw(bursts)
    k = BurstStatistics.from_bursts(raw).intrinsic_dim
    spectra = BurstSpectra.of(raw, PROBE)
    random = np.random.RandomState(random_state)
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
    """k when the latent space is flat, k + 1 when it is not: in closed form, without training.

    Parameters
    ----------
    bursts : (N, M, D), Bursts, BurstStatistics, or path
    burst_std : float, optional
    intrinsic_dim : int, optional

    Returns
    -------
    Suggestion

    Examples
    --------
    >>> from pyloca import datasets
    >>> suggest_n_components(datasets.mushroom(300, 50, random_state=0).bursts).n_components
    2
    """
    return suggest_components(_statistics(bursts, intrinsic_dim), burst_std)


def select_n_components(
    bursts: Data,
    *,
    burst_std: float | None = None,
    intrinsic_dim: int | None = None,
    candidates: Sequence[int] | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    **parameters: Any,
) -> ComponentSelection:
    """Fit d = k..k + 3 (or `candidates`) and choose the smallest that no other betters on held-out bursts.

    This is the paper's quantity, the held-out whitening loss against its sampling floor, compared burst by burst: d is
    enough when no candidate is better by more than ``2.5`` standard errors, and by a tenth. Fits with a finding are
    passed over where there is one without. `parameters` go to `LOCA`; `n_jobs` fits run at a time, as in scikit-learn.
    """
    raw = bursts if isinstance(bursts, BurstStatistics) else _raw(bursts)
    statistics = _statistics(raw, intrinsic_dim)
    k = statistics.intrinsic_dim
    ds = tuple(range(k, k + MORE + 1)) if candidates is None else tuple(sorted({int(d) for d in candidates}))
    if not ds or ds[0] < k:
        raise BurstError(f"candidates must be at least k = {k}, the directions that a burst spans; got {candidates}.")
    shared = {"burst_std": burst_std, "intrinsic_dim": k, "random_state": random_state, **parameters}
    models = {d: LOCA(n_components=d, **shared) for d in ds}
    fits = compare_components(models, raw, statistics.counts, n_jobs)
    hint = suggest_components(statistics, burst_std).n_components
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
    if isinstance(bursts, BurstStatistics):
        raise BurstError("this looks at raw bursts; BurstStatistics hold only their tangents.")
    return as_bursts(bursts)


def _statistics(bursts: Data, intrinsic_dim: int | None) -> BurstStatistics:
    return bursts if isinstance(bursts, BurstStatistics) else BurstStatistics.from_bursts(_raw(bursts), intrinsic_dim)


def _check_pairs(pairs: ArrayLike, distances: ArrayLike, n: int) -> tuple[NDArray[np.int64], Array]:
    ends, lengths = np.asarray(pairs), np.asarray(distances, dtype=np.float64)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu" or lengths.shape != (len(ends),):
        raise ValueError(
            f"pairs must be integers of shape (n, 2) and distances of shape (n,); got {ends.dtype} {ends.shape} "
            f"and {lengths.shape}."
        )
    if not len(ends) or ends.min() < 0 or ends.max() >= n:
        raise ValueError(f"pairs must name bursts from 0 to {n - 1}.")
    if not np.all((lengths > 0) & np.isfinite(lengths)):
        raise ValueError("distances must be finite and > 0.")
    return ends.astype(np.int64), lengths
