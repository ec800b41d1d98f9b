"""σ, k and d from the bursts themselves, each with a word on how sure it is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.parallel import Parallel, delayed

from pyloca.alignment import align
from pyloca.bursts import Bursts, as_bursts
from pyloca.diagnostics import CURED, sample_rows
from pyloca.errors import BurstError, TrustWarning
from pyloca.estimator import LOCA, Data
from pyloca.geometry import BurstSpectra, BurstStatistics, intrinsic_dim_from_spectra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BurstStd",
    "ComponentSelection",
    "IntrinsicDim",
    "estimate_burst_std",
    "estimate_intrinsic_dim",
    "select_n_components",
    "suggest_n_components",
]

Array = NDArray[np.float64]

PROBE = 1000  # bursts that are looked at
BOOTSTRAPS = 200
HINT_BURSTS = 1500
# One more component must lower the held-out loss by so many standard errors, and by more than this much of it or of 1.
ERRORS, MATERIAL_PART, MATERIAL = 2.5, 0.1, 0.003
CAP = 5.0  # times the sampling floor: a few singular bursts must not decide
MORE = 3  # components beyond k that are tried


class BurstStd(float):
    """σ, a number with its standard error.

    Attributes
    ----------
    standard_error : float
    known_scale : bool
        True when σ came from known distances: then it is in their unit, and coordinates made with it have the right
        scale. Else it is the size of a burst in the measurements, and coordinates are right up to one factor.
    samples : (n,)
        What single bursts (or single distances) say.
    """

    standard_error: float
    known_scale: bool
    samples: Array

    def __new__(cls, value: float, standard_error: float, known_scale: bool, samples: Array) -> BurstStd:
        """A float that remembers where it came from."""
        number = super().__new__(cls, value)
        number.standard_error, number.known_scale, number.samples = standard_error, known_scale, samples
        return number

    def __getnewargs__(self) -> tuple[float, float, bool, Array]:  # type: ignore[override]
        return float(self), self.standard_error, self.known_scale, self.samples  # so that scikit-learn can clone it

    def plot(self) -> Figure:
        """Draw what single bursts say."""
        from pyloca.plots import plot_burst_std

        return plot_burst_std(self)


class IntrinsicDim(int):
    """k, a number with its confidence.

    Attributes
    ----------
    confidence : float
        Part of bootstrap samples of the bursts that give the same k.
    spectrum, growth : (r,)
        Median eigenvalues of the bursts, and how each direction grows with the radius: 1 for tangents and noise, more
        for curvature (`pyloca.geometry.BurstSpectra`).
    """

    confidence: float
    spectrum: Array
    growth: Array

    def __new__(cls, value: int, confidence: float, spectrum: Array, growth: Array) -> IntrinsicDim:
        """An int that remembers where it came from."""
        number = super().__new__(cls, value)
        number.confidence, number.spectrum, number.growth = confidence, spectrum, growth
        return number

    def __getnewargs__(self) -> tuple[int, float, Array, Array]:  # type: ignore[override]
        return int(self), self.confidence, self.spectrum, self.growth  # so that scikit-learn can clone it

    def plot(self) -> Figure:
        """Draw the spectrum and where the tangents end."""
        from pyloca.plots import plot_intrinsic_dim

        return plot_intrinsic_dim(self)


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

    def plot(self) -> Figure:
        """Draw the loss against d."""
        from pyloca.plots import plot_component_selection

        return plot_component_selection(self)


def estimate_burst_std(
    bursts: Data, *, pairs: ArrayLike | None = None, distances: ArrayLike | None = None, n_components: int | None = None
) -> BurstStd:
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
        return BurstStd(sigma, 1.25 * spread / np.sqrt(len(samples)), False, samples)
    ends, lengths = _check_pairs(pairs, distances, len(statistics))
    rows = np.unique(ends)
    rows = np.union1d(rows, sample_rows(len(statistics), HINT_BURSTS))
    places = align(statistics[rows], n_components, burst_std=1.0, max_bursts=len(rows), labels=rows).positions
    one, other = (places[np.searchsorted(rows, ends[:, side])] for side in (0, 1))
    aligned = np.linalg.norm(one - other, axis=1)
    if not np.all(aligned > 0):
        raise BurstError(f"bursts {ends[np.argmin(aligned)].tolist()} coincide; their distance tells no scale.")
    ratios = lengths / aligned
    sigma = float(lengths @ aligned / (aligned @ aligned))
    error = float(ratios.std(ddof=1) / np.sqrt(len(ratios))) if len(ratios) > 1 else np.inf
    return BurstStd(sigma, error, True, ratios)


def estimate_intrinsic_dim(bursts: Data, *, random_state: int = 0) -> IntrinsicDim:
    """k: where the burst spectra drop to noise and curvature; these are told from tangents by how they scale.

    Curvature grows with the square of the burst's radius, noise does not grow and fills all directions evenly. All D
    when no drop is clear: a measurement may stretch one direction several times more than another.
    """
    if isinstance(bursts, BurstStatistics):  # they have made up their mind
        spectrum = np.median(bursts.spectra, axis=0)
        return IntrinsicDim(bursts.intrinsic_dim, 1.0, spectrum, np.ones_like(spectrum))
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
    return IntrinsicDim(k, same / BOOTSTRAPS, np.median(spectra.values, axis=0), spectra.growth.mean(axis=0))


def suggest_n_components(bursts: Data, *, burst_std: float | None = None, intrinsic_dim: int | None = None) -> int:
    """k when the latent space is flat, k + 1 when it is not: in closed form, without training.

    On a curved surface edges that do not fit together in k dimensions do so in one more, and the strain of the aligned
    bursts falls. (The eigenvalues of the synchronisation do not tell: on a stereographic sphere with D = k frames are
    parallel although the sphere is not flat.)
    """
    statistics = _statistics(bursts, intrinsic_dim)
    statistics = statistics[sample_rows(len(statistics), HINT_BURSTS)]
    k = statistics.intrinsic_dim
    flat, bent = (align(statistics, d, burst_std=burst_std).strain for d in (k, k + 1))
    return k + 1 if bent < CURED * flat else k


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
    fitted = Parallel(n_jobs=n_jobs)(delayed(_fit)(LOCA(n_components=d, **shared), raw) for d in ds)
    models = dict(zip(ds, fitted, strict=True))
    held_out = models[ds[0]].validation_indices_
    rows = held_out if len(held_out) else np.arange(len(statistics))
    counts = statistics.counts[rows]
    floors = k * (k + 1) / (2 * (counts - 1))
    caps = np.where(np.isfinite(counts), CAP * floors, np.inf)
    losses = np.stack([np.minimum(models[d].diagnostics_.losses[rows], caps) for d in ds])  # (n, held out)
    means = losses.mean(axis=1)
    best = int(np.argmin(means))
    errors = (losses - losses[best]).std(axis=1) / np.sqrt(len(rows))
    enough = means - means[best] <= np.maximum(ERRORS * errors, MATERIAL_PART * means[best] + MATERIAL)
    hint = suggest_n_components(statistics, burst_std=burst_std)
    # Bursts do not see a fold; the checks of the fit do.
    sound = np.array([not models[d].diagnostics_.findings for d in ds])
    chosen = ds[int(np.argmax(enough & sound if np.any(enough & sound) else enough))]
    return ComponentSelection(chosen, k, ds, means, means - float(floors.mean()), errors, hint, models)


def _fit(model: LOCA, bursts: Bursts | BurstStatistics) -> LOCA:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # that some candidates are bad is the point
        return model.fit(bursts)


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
            f"pairs must be whole numbers of shape (n, 2) and distances of shape (n,); got {ends.dtype} {ends.shape} "
            f"and {lengths.shape}."
        )
    if not len(ends) or ends.min() < 0 or ends.max() >= n:
        raise ValueError(f"pairs must name bursts from 0 to {n - 1}.")
    if not np.all((lengths > 0) & np.isfinite(lengths)):
        raise ValueError("distances must be finite and > 0.")
    return ends.astype(np.int64), lengths
