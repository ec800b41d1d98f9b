"""The measurement noise that was taken into account, in words: how large, in which sensors, where it is known from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.geometry import BurstStatistics
from pyloca.thresholds import CORRELATED

__all__ = ["loudest", "noise_words"]

ESTIMATED = "estimated"
SHOWN = 6  # sensors by name
LESS = 0.1  # part of the loudest sensor's noise below which a sensor is not worth a name


def noise_words(statistics: BurstStatistics, origin: str, scale: NDArray[np.float64] | None = None) -> str:
    """Say how much measurement noise was taken into account, sensor by sensor, the loudest first.

    Parameters
    ----------
    statistics : BurstStatistics
    origin : str
        Where the noise is known from, such as "estimated".
    scale : (D,) array, optional
        What the features were divided by; the noise is told in the units of the measurements.

    Returns
    -------
    str
        For example ``"estimated: p1 0.12 Pa, T 0.03 K (standard deviations), no noise in 4 others; 31% of a typical
        burst's variance along the noisiest of its k = 2 tangents"``; empty when no noise was taken into account.

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> statistics = BurstStatistics.from_bursts(bursts, 2)
    >>> noise_words(statistics, "given")  # none was
    ''
    """
    noise = statistics.instrument
    if noise is None:
        return ""
    level, std = noise.levels.mean(axis=0), noise.deviations
    loud = noise.loudest(statistics.means, 0.0)
    if not loud:
        return f"{origin}: no sensor has noise that stands out"
    std = std if scale is None else std * np.where(np.isfinite(scale), scale, 0)  # a column left out has none
    names = statistics.feature_names or [f"feature {j}" for j in range(len(std))]
    units = statistics.units or [""] * len(std)
    listed = ", ".join(f"{names[j]} {std[j]:.2g} {units[j]}".rstrip() for j in loud[:SHOWN])
    more = f" … ({len(loud)} in all)" if len(loud) > SHOWN else ""
    silent = len(std) - len(loud)
    none = f", no noise in {silent} other{'s' * (silent != 1)}" if silent else ""
    moving = ", the mean of all places" if len(noise.levels) > 1 else ""
    together = "; correlated between sensors" if noise.full and _correlated(level[np.ix_(loud, loud)]) else ""
    if origin == ESTIMATED and not noise.full and len(loud) > 1:
        together = "; taken as independent between sensors"  # of which few sensors tell nothing
    share = float(np.median(statistics.noise_shares))
    amount = f"{share:.0%}" if share >= 0.01 else "less than 1%"
    k = statistics.intrinsic_dim
    tangent = f"; {amount} of a typical burst's variance along " + (
        f"the noisiest of its k = {k} tangents" if k > 1 else "its k = 1 tangent"
    )
    return f"{origin}: {listed}{more} (standard deviation{'s' * (len(loud) > 1)}{moving}){none}{together}{tangent}"


def loudest(statistics: BurstStatistics) -> str:
    """Name the sensors with most of the noise, in order; those with less than a tenth of the first are left out."""
    if statistics.instrument is None:
        return ""
    names = statistics.feature_names or [f"feature {j}" for j in range(statistics.n_features)]
    order = statistics.instrument.loudest(statistics.means, LESS)
    return ", ".join(names[j] for j in order[:SHOWN]) + (" …" if len(order) > SHOWN else "")


def _correlated(covariance: NDArray[np.float64]) -> bool:
    size = np.sqrt(np.diag(covariance))
    return bool(np.abs(covariance / np.outer(size, size) - np.eye(len(size))).max() > CORRELATED)
