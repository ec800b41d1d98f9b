"""Why a fit is bad, by name. One function per cause; each gives a `Finding` or None.

The threshold of each lies between what clean data and planted faults show (``python -m benchmarks thresholds``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from torch import nn

from pyloca.alignment import Alignment, align
from pyloca.bursts import Bursts
from pyloca.checks import SharedStrain, Whitening, lost_bursts, overlapping, push, shared_strain, torn
from pyloca.errors import BurstError
from pyloca.findings._ahead import rows_ahead
from pyloca.findings._before import (
    as_large_as_the_data,
    hidden_tangent,
    noise,
    noise_beside_tangents,
    size_error,
    strain_beyond_sampling,
)
from pyloca.findings._changed import changed_sensor
from pyloca.findings._clipped import clipped
from pyloca.findings._columns import foreign_columns, foreign_sensors
from pyloca.findings._diagnostics import Finding
from pyloca.findings._displacement import no_displacement
from pyloca.findings._neighborhood import Neighborhood
from pyloca.findings._path import path, wrong_rows
from pyloca.findings._precision import Precision, precision
from pyloca.findings._round_trip import RoundTrip, lossy, nearest_pairs
from pyloca.findings._sampling import Sampling, few_bursts
from pyloca.findings._unforeseen import unforeseen, unforeseen_between
from pyloca.findings._units import uneven_units
from pyloca.geometry import BurstStatistics, find_odd, regress, sample_rows, variances_within
from pyloca.networks import apply_rows
from pyloca.thresholds import (
    BENT,
    COLLAPSED,
    CURED,
    FEW,
    FEWEST,
    HEAVY,
    IMPRECISE,
    LONELY,
    MANY_APART,
    MANY_MISPLACED,
    MISPLACED,
    MISPLACED_MISS,
    MOST,
    OFF,
    OFF_MEDIANS,
    PART_FOLDED,
    RECHECKED,
    ROUGH,
    SAME,
    SHARED,
    SOME_OFF,
    STRAINED,
    SUSPECT,
    UNLIKELY,
    UNSHARED,
    UNWHITE,
)

__all__ = ["Fit", "find_causes"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """What the checks of a fit are given: data, encoder, and how white it made the bursts.

    Attributes
    ----------
    statistics : BurstStatistics
    burst_std : float
    encoder : torch.nn.Module
    white : Whitening
        Of the bursts after the encoder.
    bursts : Bursts or None
        Raw bursts, if they were given.
    back : RoundTrip or None
        What the decoder leaves of the burst means, if there is one.
    scaled : bool
        Whether features were divided by their spread where units differ (``feature_scale="auto"``).
    sampled : bool or None
        Whether bursts are samples, and not a fixed array of sensors; None: by how white they are.

    Examples
    --------
    See `find_causes`.
    """

    statistics: BurstStatistics
    burst_std: float
    encoder: nn.Module
    white: Whitening
    bursts: Bursts | None
    back: RoundTrip | None = None
    scaled: bool = False
    sampled: bool | None = None

    @property
    def regressed(self) -> bool:
        """Whether Jacobians were found by regression on known perturbations."""
        return self.bursts is not None and self.bursts.perturbed_dim is not None

    @property
    def k(self) -> int:
        """Intrinsic dimension."""
        return self.statistics.intrinsic_dim

    @property
    def d(self) -> int:
        """Embedding dimension."""
        return self.white.embedding.shape[1]

    @property
    def poor(self) -> bool:
        """Whether bursts are less white than sampling explains, by what neighbours share or by very much.

        What sampling explains is an estimate where points are not Gaussian. An encoder that is wrong is so at
        neighbours alike, whatever the points.
        """
        sure = SHARED.passed(self.shared.errors)
        if not self.white.poor:
            return sure and self.white.material(self.shared.loss)
        median = float(np.median(self.white.losses))
        return sure or UNSHARED.passed(median / max(median - self.white.excess, np.finfo(float).tiny))

    @cached_property
    def errors(self) -> Precision:
        """The standard errors of a typical distance, if nothing else is wrong."""
        sampled = self.white.sampled if self.sampled is None else self.sampled
        return precision(self.encoder, self.white, self.statistics, self.burst_std, sampled=sampled)

    @cached_property
    def shared(self) -> SharedStrain:
        """The strain that neighbouring bursts share."""
        embedding, pushed = push(self.encoder, self.statistics, self.burst_std)
        return shared_strain(embedding, pushed.numpy(), scale=self.white.tails <= HEAVY)


def find_causes(fit: Fit) -> tuple[Finding, ...]:
    """Find the reason not to believe a fit, causes before symptoms: one cause has many symptoms.

    Parameters
    ----------
    fit : Fit

    Returns
    -------
    tuple of Finding
        The first that is found; empty when there is none.

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> statistics = BurstStatistics.from_bursts(bursts, 2)
    >>> import torch
    >>> from pyloca.checks import whitening
    >>> encoder = torch.nn.Linear(2, 2).double()  # not trained
    >>> found = find_causes(Fit(statistics, 0.01, encoder, whitening(encoder, statistics, 0.01), bursts))
    >>> len(found) > 0
    True
    """
    sampling = Sampling(fit.statistics, fit.white.embedding, fit.burst_std)
    first = _first_cause(fit, sampling)
    if first:
        cause = _deeper(fit, first[0])
        first = first if cause is None else (cause,)
    else:
        rows = wrong_rows(fit.statistics)
        first = () if rows is None else (rows,)
    lossy = _lossy(fit) if not first or first[0].name == "crossing" else None
    if lossy is not None and not first:
        cause = changed_sensor(fit.statistics, lossy) or _noise_beside(fit, lossy)
        if cause is not None:
            return (cause,)
    if first or lossy is not None:
        # A column that has no business among the sensors causes most of the others.
        column = foreign_columns(fit.statistics if fit.bursts is None else fit.bursts, scaled=fit.scaled)
        if column is not None:
            return (column,)
    # A fold or a lost dimension explains a round trip that does not lead back. Sheets that seem to cross do not:
    # sensors that are offset between bursts make them seem so, and this is what says it.
    return first if lossy is None else (*first, lossy)


def _deeper(fit: Fit, found: Finding) -> Finding | None:
    """Find a fault of the data that explains one of the fit."""
    cause = changed_sensor(fit.statistics, found) or clipped(fit.statistics, found)
    cause = cause or wrong_rows(fit.statistics, found) or _noise_beside(fit, found)
    # of a fixed array of sensors, the order is part of the instrument
    return path(fit.bursts, found) if cause is None and fit.white.sampled else cause


def _noise_beside(fit: Fit, found: Finding) -> Finding | None:
    return None if fit.bursts is None else noise_beside_tangents(fit.statistics, fit.bursts, fit.d, found)


def _first_cause(fit: Fit, sampling: Sampling) -> tuple[Finding, ...]:
    # what is wrong with the data comes before what a fit makes of them
    data = (_changed, _units, _still, _as_large_as_the_data, _ahead, _odd, _foreign)
    causes = (*data, _collapsed, _few_points, _hidden, _noise, _scale)
    plain = [partial(cause, fit) for cause in causes]
    if len(fit.statistics) < FEW:
        few = (sampling.bends, sampling.sheets, partial(_unforeseen, fit))
        return _first([*plain, *few, partial(_bent, fit), partial(_poor, fit)])
    return _first(plain) or _first_beside_neighbors(fit, sampling)


def _first_beside_neighbors(fit: Fit, sampling: Sampling) -> tuple[Finding, ...]:
    apart = overlapping(fit.white.embedding, fit.statistics, fit.burst_std)
    near = Neighborhood(fit.statistics, fit.white, folded=MANY_APART.passed(apart))
    symptoms = _Symptoms(fit, near, apart, sampling)
    misplaced = symptoms.misplaced()
    return _first(
        [
            near.unrelated,
            partial(sampling.bends, misplaced),
            partial(_offset, fit, sampling, misplaced),
            symptoms.crossing,
            partial(sampling.sheets, misplaced),
            symptoms.few_bursts,
            partial(_unforeseen, fit),
            symptoms.curved,
            near.outliers,
            partial(_unless_uneven, symptoms, partial(_off_surface, fit, sampling)),
            partial(_unless_uneven, symptoms, partial(_misplaced, fit)),
            near.uneven_size,
            partial(_bent, fit),
            symptoms.uneven_shape,
            symptoms.folded,
            partial(_poor, fit),
        ]
    )


def _first(causes: Iterable[Callable[[], Finding | None]]) -> tuple[Finding, ...]:
    for cause in causes:
        found = cause()
        if found is not None:
            return (found,)
    return ()


def _changed(fit: Fit) -> Finding | None:
    return changed_sensor(fit.statistics)


def _ahead(fit: Fit) -> Finding | None:
    return rows_ahead(fit.bursts, fit.statistics)


def _units(fit: Fit) -> Finding | None:
    # Features that still seem to drown each other once they are scaled do not: bursts have another fault.
    return None if fit.bursts is None or fit.scaled else uneven_units(fit.bursts, fit.k)


def _still(fit: Fit) -> Finding | None:
    return None if fit.bursts is None else no_displacement(fit.bursts, fit.statistics.instrument)


def _odd(fit: Fit) -> Finding | None:
    """Check for bursts that are no piece of the surface, more of them than were left out."""
    odd = find_odd(fit.statistics, fit.bursts)
    if not odd:
        return None
    first, *_ = odd
    others = "" if len(odd) == 1 else f", and the like of {fit.statistics.listed(list(odd)[1:])}"
    return Finding(
        "outliers",
        f"{len(odd) / len(fit.statistics):.1%} of the bursts are outliers: {fit.statistics.name_of(first)} {odd[first]}"
        f"{others}. Their rows do not belong together, or are no readings of this "
        "instrument. Look at them, and fit again without them (or raise max_strays).",
        tuple(odd),
    )


def _foreign(fit: Fit) -> Finding | None:
    return foreign_sensors(fit.statistics)


def _few_points(fit: Fit) -> Finding | None:
    points, rough = float(np.median(fit.statistics.counts)), size_error(fit.statistics.effective_counts)
    if not (ROUGH.passed(rough) and fit.white.sampled):
        return None
    if fit.regressed:
        return Finding(
            "few_points",
            f"the regression on the known perturbations tells the size of a burst along a line only to within "
            f"{rough:.0%}, by its residuals (median): coordinates rest on many bursts together, and no single burst "
            "can be checked. Take more points per burst or average readings; perturb more if the residuals are noise, "
            "and less if they are curvature.",
        )
    noise = float(np.median(fit.statistics.noise_shares))
    if noise > 0:
        return Finding(
            "few_points",
            f"measurement noise is {noise:.0%} of a burst's variance along one direction (median), and {points:.0f} "
            f"points of such a burst tell its size only to within {rough:.0%}: coordinates rest on many bursts "
            "together, and no single burst can be checked. Take larger bursts, more points, or average readings.",
        )
    return Finding(
        "few_points",
        f"a burst of {points:.0f} points tells its size along a line only to within {rough:.0%}: coordinates rest on "
        "many bursts together, and no single burst can be checked. Take more points per burst.",
    )


def _scale(fit: Fit) -> Finding | None:
    """Check whether all bursts are too large or too small by one factor."""
    white = fit.white
    factor = float(np.exp(np.median(np.log(np.maximum(white.stretches, np.finfo(float).tiny)))))
    rescaled = np.square(white.stretches / factor)
    left = replace(white, losses=(rescaled - np.log(np.maximum(rescaled, np.finfo(float).tiny)) - 1).sum(axis=1))
    if not (white.poor and fit.poor and SAME.passed(left.excess / white.excess)):
        return None
    return Finding(
        "scale",
        f"all bursts come out {factor:.3g} times as large as σ says: distances are wrong by this factor. Check "
        "burst_std, and whether these bursts were made in the same way as those of the fit.",
    )


def _as_large_as_the_data(fit: Fit) -> Finding | None:
    # a Jacobian is not a cloud: its size is that of the latent unit
    return None if fit.bursts is None else as_large_as_the_data(fit.statistics, fit.bursts)


def _hidden(fit: Fit) -> Finding | None:
    # Where d = k was asked for and found, nothing is missed.
    return None if fit.bursts is None or fit.d == fit.k else hidden_tangent(fit.statistics, fit.bursts)


def _noise(fit: Fit) -> Finding | None:
    return noise(fit.statistics, fit.bursts)


def _bent(fit: Fit) -> Finding | None:
    """Check whether encoded points of a burst vary differently from its pushed tangents."""
    if fit.bursts is None or fit.statistics.noise is not None:  # the points still contain the noise
        return None
    # Of points that are mostly noise, the encoder tells nothing about the bends of the measurement.
    if fit.regressed and np.median(fit.statistics.residuals / fit.statistics.spectra.sum(axis=1)) > MOST:
        return None
    probe = sample_rows(len(fit.bursts), RECHECKED)
    changes = np.empty(len(probe))
    sample = fit.bursts[probe]
    for rows, block in sample.blocks():
        encoded = apply_rows(fit.encoder, block, fit.d)  # (b, m, d)
        if fit.regressed:
            slopes = regress(encoded, sample.perturbations_of(rows)).jacobians
            values = np.square(fit.burst_std * np.linalg.svd(slopes, compute_uv=False))
        else:
            centred = encoded - encoded.mean(axis=1, keepdims=True)
            values = variances_within(centred, fit.k, fit.statistics.scatter)
        pushed = np.square(fit.burst_std * fit.white.stretches[probe[rows]])
        changes[rows] = np.abs(np.log(np.maximum(values, 1e-300) / np.maximum(pushed, 1e-300))).max(axis=1)
    change = float(np.median(changes))
    if not BENT.passed(change):
        return None
    return Finding(
        "large_bursts",
        f"bursts are too large: the measurement bends inside them, and the variances that their tangents predict are "
        f"wrong by {change:.0%} (median). Take bursts of half the size.",
    )


def _off_surface(fit: Fit, sampling: Sampling) -> Finding | None:
    """Check for bursts that the decoder does not lead back to: off the surface of the others, or in a fold of it."""
    if fit.back is None:
        return None
    errors, places = fit.back.errors, fit.white.embedding
    limit = max(OFF, OFF_MEDIANS * float(np.median(errors)))
    off = np.flatnonzero(errors > limit)
    if len(off) < FEWEST:
        return None
    off = off[np.argsort(-errors[off], kind="stable")]
    # An outlier is alone among good bursts. Where those around it are hardly better, the fault is not in the data.
    # So it is where a part of the surface with few bursts was laid among others: most of its measured neighbours are
    # misplaced with it. (A few outliers may be shifted alike.)
    together = np.zeros(len(off), dtype=bool)
    for points, part in ((places, LONELY), (fit.statistics.means, MOST)):
        around = cKDTree(points).query(points[off], 11)[1][:, 1:]
        together |= np.mean(errors[around] > limit / 3, axis=1) >= part
    # And the steps to its neighbours leave the tangents, whatever the networks make of it.
    alone = ~together & (sampling.measured.leaving[off] >= MOST)
    # It is parallel to them, being shifted, or no encoder makes sense of it. If one does, it is far on the surface.
    odd = (sampling.measured.parallel(off) >= LONELY) | (fit.white.p_values[off] < UNLIKELY)
    outliers, far = off[alone & odd], off[alone & ~odd]
    if SOME_OFF.passed(len(outliers) / len(errors)) and len(outliers) >= FEWEST:
        return Finding(
            "outliers",
            f"{len(outliers) / len(errors):.1%} of the bursts are outliers: they lie off the surface that others lie "
            f"on (the decoder misses them by {OFF:.0%} of the data's size or more), such as "
            f"{fit.statistics.listed(outliers[:5])}. Look at them, and fit again without them.",
            tuple(int(i) for i in outliers),
        )
    if SOME_OFF.passed(len(far) / len(errors)) and len(far) >= FEWEST:
        return few_bursts(
            fit.statistics,
            f"{len(far) / len(errors):.1%} of the bursts lie so far from all others that the steps between them leave "
            f"the tangents at both ends, such as {fit.statistics.listed(far[:5])}, and their places are guessed",
            far,
        )
    rest = off[~(alone & odd)]
    lost = float(np.square(errors[rest]).sum() / len(errors))
    unwhite = float(np.mean(fit.white.p_values < SUSPECT))
    # A decoder also misses bursts at an edge where distances hardly suffer.
    spoilt = PART_FOLDED.passed(lost) and IMPRECISE.passed(np.sqrt(fit.errors.total**2 + lost / 2))
    if len(rest) < FEWEST or not (spoilt or unwhite >= UNWHITE):
        return None
    return sampling.bends(misplaced=True) or Finding(
        "folded",
        f"a part of the embedding is folded or squeezed: {len(rest) / len(errors):.1%} of the bursts are missed by the "
        f"decoder by {errors[rest].min():.0%} of the data's size or more, such as {fit.statistics.listed(rest[:5])}, "
        f"though they lie on the surface of the others, and {unwhite:.1%} are not white. Try another random_state, or "
        "more bursts there; the rest of the embedding may be right.",
        tuple(int(i) for i in rest),
    )


def _misplaced(fit: Fit) -> Finding | None:
    """Check for bursts that the decoder sees elsewhere: what it misses is a step along their own tangents.

    Bursts that lie on each other in a fold are white, and the decoder leads back to neither.
    """
    if fit.back is None:
        return None
    errors = fit.back.errors
    fewest = max(FEWEST, MANY_MISPLACED * len(errors))
    missed = np.flatnonzero(errors > MISPLACED_MISS)
    if len(missed) < fewest:
        return None
    basis, scale = fit.statistics[missed].frames()
    steps = np.einsum("nkd,nd->nk", basis, fit.back.left[missed] * fit.back.size) / scale  # (missed, k)
    apart = np.square(fit.burst_std * steps).sum(axis=1) / float(fit.white.embedding.var(axis=0).sum())
    order = np.argsort(-apart, kind="stable")
    wrong = missed[order[: int((apart > MISPLACED).sum())]]
    if not fewest <= len(wrong) <= len(errors) / 3:  # so many: the decoder is another encoder's
        return None
    return Finding(
        "folded",
        f"a part of the embedding is folded or squeezed: the decoder leads {len(wrong) / len(errors):.1%} of the "
        f"bursts elsewhere, such as {fit.statistics.listed(wrong[:5])}; by their own tangents, by "
        f"{np.sqrt(MISPLACED):.0%} of the embedding's size or more. Try another random_state, or more bursts there; "
        "the rest of the embedding may be right.",
        tuple(int(i) for i in wrong),
    )


def _collapsed(fit: Fit) -> Finding | None:
    squeezed = float(np.median(fit.white.stretches[:, -1]))
    if not COLLAPSED.passed(squeezed):
        return None
    return Finding(
        "collapsed",
        f"a dimension has collapsed: half of the bursts are squeezed to {squeezed:.2g} of their size in one direction. "
        "The coordinates are not isometric to anything; try another random_state, and let the training end by itself "
        "(max_iter=None).",
    )


class _Symptoms:
    """Bursts that are not white, or an embedding that overlaps itself; and what may cause it."""

    def __init__(self, fit: Fit, near: Neighborhood, apart: float, sampling: Sampling) -> None:
        self.fit, self.near, self.apart, self.sampling = fit, near, apart, sampling
        white = fit.white
        self.torn = torn(white)
        self.worst = _worst(white)

    @property
    def seen(self) -> str:
        """Description of the symptom; "" when there is none."""
        white = self.fit.white
        poor = _poor_words(self.fit)
        if poor:
            return poor
        if MANY_APART.passed(self.apart):
            return f"{self.apart:.0%} of the bursts lie among others with distant measurements"
        return f"{lost_bursts(white).mean():.0%} of the bursts are far from white" if self.torn else ""

    def misplaced(self) -> bool:
        """Whether parts of the data lie in wrong places; a decoder that fails is not enough, as on a fine coil."""
        return MANY_APART.passed(self.apart) or self.torn

    @cached_property
    def flat(self) -> Alignment | None:
        """The bursts aligned in the d dimensions of the fit."""
        return self._alignment(self.fit.d)

    def _alignment(self, d: int) -> Alignment | None:
        try:
            return align(self.near.statistics, d, burst_std=self.fit.burst_std, random_state=0)
        except BurstError:  # the sample is too sparse to be connected, or too small for d
            return None

    def crossing(self) -> Finding | None:
        """Check for sheets that cross, if the fit suffers: as a whole, or along the line where they do."""
        along = (partial(_lossy, self.fit), self.near.outliers, partial(_off_surface, self.fit, self.sampling))
        return self.near.crossing() if self.seen or _first(along) else None

    def few_bursts(self) -> Finding | None:
        """Check for bends within the spacing of the bursts, if the fit suffers."""
        return self.near.few_bursts() if self.seen else None

    def curved(self) -> Finding | None:
        """Check whether one more dimension relieves the strain."""
        d = self.fit.d
        if not self.seen or self.flat is None:
            return None
        bent = self._alignment(d + 1)
        if bent is None or self.flat.strain == 0 or not CURED.passed(bent.strain / self.flat.strain):
            return None
        return Finding(
            "curved",
            f"{_dimensions(d)} cannot hold this surface: {self.seen}, and one more lowers the strain of the aligned "
            f"bursts from {self.flat.strain:.2f} to {bent.strain:.2f}. The latent space is curved or closed; try "
            f"n_components={d + 1}.",
            self.worst,
        )

    def uneven_shape(self) -> Finding | None:
        """Check whether edges fit together neither in d dimensions nor in one more."""
        fit = self.fit
        if not self.seen or self.flat is None or fit.d > fit.k:
            return None
        excess = strain_beyond_sampling(self.flat, fit.statistics)
        if not STRAINED.passed(excess):
            return None
        return Finding(
            "uneven_shape",
            f"bursts do not fit together: {self.seen}, and their edges mismatch by {excess:.0%} beyond sampling in "
            f"{_dimensions(fit.d)} and hardly less in one more. Either bursts are not isotropic in the latent space, "
            "their long axis or their size changing from place to place, or the latent space is strongly curved. Check "
            "that a burst perturbs all latent variables equally.",
            self.worst,
        )

    def folded(self) -> Finding | None:
        """Check whether the bursts fit together but the embedding does not."""
        if not (MANY_APART.passed(self.apart) or self.torn):
            return None
        return Finding(
            "folded",
            f"the embedding is folded or torn: {self.seen}, though the bursts do fit together in "
            f"{_dimensions(self.fit.d)}. Try another random_state, or more bursts.",
            self.worst,
        )


def _unless_uneven(symptoms: _Symptoms, check: Callable[[], Finding | None]) -> Finding | None:
    """Look for a fold; bursts that fit together nowhere are a cause of it."""
    found = check()
    return found if found is None or found.name != "folded" else symptoms.uneven_shape() or found


def _offset(fit: Fit, sampling: Sampling, misplaced: bool) -> Finding | None:
    """Check whether sensors that are offset from burst to burst explain a fold."""
    return _lossy(fit) if misplaced and sampling.offset else None


def _poor(fit: Fit) -> Finding | None:
    """Check whether bursts are not white, the cause being unknown."""
    words = _poor_words(fit)
    if not words:
        return None
    return Finding(
        "poor_fit",
        f"bursts are not white: {words}. The embedding is not an isometry; try more or smaller "
        "bursts, or more components, and check that a burst perturbs all latent variables equally.",
        _worst(fit.white),
    )


def _lossy(fit: Fit) -> Finding | None:
    if fit.back is None:
        return None
    counts = None if fit.bursts is None else fit.bursts.counts
    pairs = nearest_pairs(fit.white.embedding)
    left = unforeseen_between(fit.statistics, fit.encoder, fit.burst_std, *pairs)
    return lossy(fit.back, fit.statistics, fit.white.embedding, counts, left)


def _unforeseen(fit: Fit) -> Finding | None:
    counts = fit.statistics.counts if fit.bursts is None else fit.bursts.counts
    return unforeseen(fit.statistics, fit.encoder, fit.burst_std, fit.white.embedding, counts)


def _poor_words(fit: Fit) -> str:
    if not fit.poor:
        return ""
    white = fit.white
    if not white.poor:
        return f"neighbours share a strain, a whitening loss of {fit.shared.loss:.3g}, that sampling does not explain"
    median = float(np.median(white.losses))
    return f"the median whitening loss is {median:.3g}, where sampling alone explains {median - white.excess:.3g}"


def _worst(white: Whitening) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argsort(-white.losses, kind="stable")[:20])


def _dimensions(d: int) -> str:
    return f"{d} dimension{'s' * (d > 1)}"
