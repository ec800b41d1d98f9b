"""Measurement noise from bursts: as given, from static bursts, or from what lies off their tangents.

Off the tangents a burst is noise (and a little curvature). Planes of neighbouring means tell the tangents where
they are flat enough: noise does not tilt them. Elsewhere bursts have their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca.bursts import Bursts
from pyloca.errors import BurstError
from pyloca.geometry._factor_analysis import MOST_SENSORS, Sample, Split, draw, split_off
from pyloca.geometry._means import burst_means
from pyloca.geometry._noise import FLOOR, Noise, as_noise
from pyloca.geometry._noise_places import PLACES, growth_at, level_at, placed, uneven
from pyloca.geometry._noise_static import from_static
from pyloca.geometry._planes import Planes, near_planes, planes_of_means
from pyloca.geometry._refusals import check_k, refuse_bad_values, refuse_short
from pyloca.geometry._sample import sample_rows
from pyloca.geometry._spectra import BurstSpectra, intrinsic_dim_from_spectra, largest_of_noise
from pyloca.geometry._spikes import without_spikes
from pyloca.thresholds import (
    ABOVE_NOISE,
    CORRELATED,
    CURVED_GROWTH,
    NOISE_ERROR,
    PLANE_ROUGH,
    PLANE_TILT,
    PLANES_FLAT,
    POINTS,
    PROBE,
)

if TYPE_CHECKING:
    from pyloca.geometry._statistics import BurstStatistics

__all__ = ["given_noise", "inside_variance", "noise_and_k"]

Array = NDArray[np.float64]
_Found = tuple[Split, Noise]

FOLLOWED = 3  # times that the noise is estimated, each time with its change from place to place taken out


def noise_and_k(
    bursts: Bursts,
    measurement_noise: Any,
    static: Bursts | ArrayLike | None,
    intrinsic_dim: int | None,
    max_dim: int | None,
) -> tuple[Noise | None, int]:
    """Find the noise in bursts, None if none is asked for, and k."""
    if intrinsic_dim is not None:
        check_k(intrinsic_dim, bursts.n_used)
    noise: Noise | None
    if static is not None:
        noise = from_static(without_spikes(Bursts(static)), bursts, inside_variance(bursts))
    elif isinstance(measurement_noise, str) and measurement_noise == "estimate":
        return _estimate(bursts, intrinsic_dim, max_dim)
    else:
        noise = given_noise(bursts, measurement_noise)
    try:
        return noise, _choose_k(bursts, intrinsic_dim, max_dim, noise)
    except BurstError as error:
        words = _words(bursts, max_dim) if noise is None else ""
        if words:
            raise BurstError(words) from error
        raise


def _words(bursts: Bursts, max_dim: int | None) -> str:
    """Say that noise hides k, if there is noise that does, or that there is nothing at all; else ""."""
    if inside_variance(bursts).max() <= np.finfo(float).tiny:
        return (
            "nothing varies inside the bursts: all points of each burst are equal. Check that the right columns were "
            "read, and that the readings of a burst are separate measurements."
        )
    try:
        noise, k = _estimate(bursts, None, max_dim)
    except BurstError:
        return ""
    loudest = noise.loudest(burst_means(bursts), 0.0)[:5]
    unit = np.ones(bursts.n_features) if bursts.scale is None else bursts.scale  # messages are in the units of the data
    loud = ", ".join(f"{bursts.feature_label(j)}: {noise.deviations[j] * unit[j]:.2g}" for j in loudest)
    return (
        f"the bursts contain measurement noise (standard deviations {loud}) beside k = {k} tangents, and their "
        "spectrum does not tell one from the other. Pass measurement_noise='estimate', the noise as an array, or "
        "static=…, bursts taken while nothing was perturbed."
    )


def given_noise(data: Bursts | BurstStatistics, measurement_noise: Any) -> Any:
    """Put noise that was given into one form, tied to its bursts; leave None and "estimate" alone.

    Parameters
    ----------
    data : Bursts or BurstStatistics
    measurement_noise : None, "estimate", float, array or Noise

    Returns
    -------
    None, "estimate" or Noise

    Raises
    ------
    ValueError
        If the noise has another shape, or values that are not those of a noise.

    Examples
    --------
    >>> from pyloca import datasets
    >>> bursts = datasets.mushroom(n_bursts=100, n_points=10, random_state=0).bursts
    >>> given_noise(bursts, [0.1, 0.2]).levels.round(2).tolist()
    [[0.01, 0.04]]
    """
    asked = isinstance(measurement_noise, str) and measurement_noise == "estimate"
    if measurement_noise is None or asked or isinstance(measurement_noise, Noise):
        return measurement_noise
    noise = as_noise(measurement_noise, len(data), data.n_features, data.feature_names)
    if len(noise.levels) == 1:
        return noise
    return noise.placed(burst_means(data) if isinstance(data, Bursts) else data.means)


def inside_variance(bursts: Bursts) -> Array:
    """Compute the mean variance inside a burst of each feature, (D,), over a sample."""
    sample = bursts[sample_rows(len(bursts), PROBE)]
    total = np.zeros(bursts.n_features)
    for rows, block in sample.blocks():
        refuse_bad_values(sample, rows, block)
        total += block[:, :POINTS].var(axis=1).sum(axis=0)
    # above 0, so that a feature that is left out can be divided by its own
    least = max(np.finfo(float).eps ** 2 * float(total.max()), np.finfo(float).tiny)
    return np.maximum(total, least) / len(sample)


def _choose_k(bursts: Bursts, intrinsic_dim: int | None, max_dim: int | None, noise: Noise | None) -> int:
    counts, dim = bursts.counts, bursts.n_used
    if intrinsic_dim is not None:
        return check_k(intrinsic_dim, dim)
    if counts.min() < 2:
        refuse_short(bursts, 1)
    step = max(1, len(bursts) // PROBE)
    probe = bursts[np.arange(0, len(bursts), step)]
    spectra = BurstSpectra.empty(probe.counts, dim, bursts.n_features)
    floor = None if noise is None else FLOOR * inside_variance(bursts)
    for rows, block in probe.blocks():
        refuse_bad_values(probe, rows, block)
        if noise is not None and floor is not None:
            means = block.mean(axis=1)
            block = noise.whitener(means, floor).white(block - means[:, None])
        spectra.add(rows, block)
    return intrinsic_dim_from_spectra(spectra, dim, max_dim) if noise is None else _k_above_noise(spectra, max_dim)


def _k_above_noise(spectra: BurstSpectra, max_dim: int | None) -> int:
    """Count the directions that stand out of noise of variance 1 and are not curvature."""
    dim, level = spectra.n_features, np.median(spectra.values, axis=0)
    before = np.arange(len(level))
    edge = np.array([largest_of_noise(dim - int(b), int(np.median(spectra.counts)) - 1) for b in before])
    hidden = level < ABOVE_NOISE * edge
    hidden[1:] |= spectra.growth.mean(axis=0)[1:] > 1 + CURVED_GROWTH / before[1:]
    k = int(np.argmax(hidden)) if hidden.any() else len(level)
    if k == 0:
        raise BurstError(
            f"measurement noise hides the bursts: their largest eigenvalue is {level[0]:.3g} times the noise (median), "
            f"and noise alone has {edge[0]:.3g}. Take larger bursts, or average several readings; if the noise was "
            "given, check its unit."
        )
    if max_dim is not None and k > max_dim:
        raise BurstError(
            f"the bursts span k = {k} directions that stand out of the noise, more than n_components = {max_dim} can "
            f"hold (eigenvalues in units of the noise, median {level[: k + 1]}). If the noise may be larger than was "
            "given, or in other sensors, pass measurement_noise='estimate' or static bursts; if bursts were perturbed "
            f"in {k} directions, use n_components={k}."
        )
    return k


# -- what lies off the tangents -----------------------------------------------------------------------------------


def _estimate(bursts: Bursts, intrinsic_dim: int | None, max_dim: int | None) -> tuple[Noise, int]:
    dim, points = bursts.n_used, int(np.median(bursts.counts))
    most = min(dim - 1, points - 3, max_dim or dim)
    given = intrinsic_dim is not None
    # The largest k first: with a smaller one, a tangent that hardly turns would pass for noise.
    wanted = list(range(min(most, 8), 0, -1)) if intrinsic_dim is None else [intrinsic_dim]
    if most < 1 or (intrinsic_dim is not None and intrinsic_dim > min(dim - 1, points - 3)):
        raise BurstError(
            f"measurement_noise cannot be estimated: bursts of {points} points in D = {dim} directions"
            + (f" with k = {intrinsic_dim} tangents" if given else "")
            + " leave nothing off the tangents. Pass the noise, or static bursts taken while nothing was perturbed."
        )
    sample, means = draw(bursts), burst_means(bursts)
    floor = FLOOR * inside_variance(bursts)
    why = "what lies off the tangents is not noise that sensors have of their own"
    for full in (False, True):
        if full and dim > MOST_SENSORS:
            break
        for k in wanted:
            planes = _planes(sample, k, means)
            split, noise = _follow(sample, k, floor, planes, means, full=full)
            flat = planes is not None and split.tilt < PLANE_TILT and split.kept > PLANES_FLAT
            error = split.error
            if not flat:
                if k < wanted[0] and (full or planes is None):
                    continue  # noise explains a signal that is left out, unless a surface says that k is right
                if planes is not None and error <= NOISE_ERROR:
                    split, noise = _follow(sample, k, floor, None, means, full=full)
                    error = split.error
                if split.tilt > PLANE_TILT and error <= NOISE_ERROR:
                    why = (
                        "noise hides the tangents of the bursts, and the surface on which their means lie bends too "
                        "much to tell them"
                    )
                    continue
            if error > NOISE_ERROR:
                amount = f"{error:.0%}" if error < 1 else "100% or more"
                why = (
                    "the tangents hardly turn from burst to burst, so noise along them cannot be told from signal (an "
                    f"error of it could change their variance by {amount})"
                )
                continue
            if split.correlation > CORRELATED and dim <= MOST_SENSORS:
                continue  # noise that is correlated between sensors
            if flat and planes is not None:
                above = _directions_along(sample, planes, noise, floor)
            else:
                above = _directions_above(bursts, None if given else max_dim, noise)
            if above == k or (given and above > 0):
                return noise, int(k)
            if given:
                why = (
                    "it would take all of a burst, as it does where every sensor sees one latent variable alone, whose "
                    "signal cannot be told from noise"
                )
    raise BurstError(
        f"measurement_noise cannot be estimated: {why}. Pass it as an array, or take static bursts while nothing is "
        f"perturbed and pass static=…{'' if given else '; if k is known, pass intrinsic_dim'}."
    )


def _planes(sample: Sample, k: int, means: Array) -> Planes | None:
    """Find the planes of neighbouring means; None if they do not lie on a surface of k dimensions."""
    near = near_planes(means, sample.chosen, k)
    if near is None:
        return None
    planes = planes_of_means(means, near, k)
    return planes if np.median(planes.rough) <= PLANE_ROUGH else None


def _directions_above(bursts: Bursts, max_dim: int | None, noise: Noise) -> int:
    """Count the directions that stand out of the noise; 0 if none do, or more than `max_dim`."""
    try:
        return _choose_k(bursts, None, max_dim, noise)
    except BurstError:
        return 0


def _directions_along(sample: Sample, planes: Planes, noise: Noise, floor: Array) -> int:
    """Count the directions along planes that stand out of the noise."""
    k = planes.slopes.shape[1]
    spectra = BurstSpectra.empty(sample.bursts.counts, k)
    for rows, block in sample.bursts.blocks():
        means = block.mean(axis=1)
        white = noise.whitener(means, floor)
        along = Planes(*(part[rows] for part in planes)).seen(white)[0]
        spectra.add(rows, np.einsum("bmd,bkd->bmk", white.white(block - means[:, None]), along))
    try:
        return _k_above_noise(spectra, None)
    except BurstError:
        return 0


def _follow(sample: Sample, k: int, floor: Array, planes: Planes | None, means: Array, *, full: bool) -> _Found:
    """Estimate noise whose size, and then that of each sensor, may change from place to place."""
    own = means[sample.chosen]
    sizes = np.ones(len(own))  # of the noise of each burst, as a variance
    for _ in range(FOLLOWED):
        split = split_off(sample.divided(sizes), k, floor, planes, full=full)
        noisy = (split.noise if split.noise.ndim == 1 else np.diag(split.noise)) > 0
        squares, freedom = (a[:, noisy].sum(axis=1, keepdims=True) for a in (split.squares, split.freedom))
        if not uneven(own, squares, freedom).any():
            break
        sizes *= level_at(own, squares, freedom, own)[:, 0]
    squares = split.squares * sizes[:, None] * noisy
    places = means[sample_rows(len(means), PLACES)]
    growth = growth_at(own, squares, split.freedom * noisy, places)
    return split, Noise(split.noise[None]) if growth is None else placed(split.noise, growth, places)
