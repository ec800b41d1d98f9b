"""The measurement noise that was taken into account, in words: how large, in which sensors, where it is known from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.geometry import BurstStatistics
from pyloca.thresholds import CORRELATED

__all__ = ["loudest", "noise_words"]

SHOWN = 6  # sensors by name
ROUNDING = 1e-9  # part of a sensor's spread that is no noise
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
        burst's variance along its noisiest tangent"``; empty when no noise was taken into account.
    """
    noise = statistics.instrument
    if noise is None:
        return ""
    part, level = _levels(statistics)
    std = np.sqrt(np.diag(level) if noise.full else level)
    loud = [int(j) for j in np.argsort(-part, kind="stable") if part[j] > ROUNDING]
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
    share = float(np.median(statistics.noise_shares))
    amount = f"{share:.0%}" if share >= 0.01 else "less than 1%"
    tangent = f"; {amount} of a typical burst's variance along its noisiest tangent"
    return f"{origin}: {listed}{more} (standard deviation{'s' * (len(loud) > 1)}{moving}){none}{together}{tangent}"


def loudest(statistics: BurstStatistics) -> str:
    """Name the sensors with most of the noise, in order; those with less than a tenth of the first are left out."""
    part, _ = _levels(statistics)
    names = statistics.feature_names or [f"feature {j}" for j in range(len(part))]
    order = [int(j) for j in np.argsort(-part, kind="stable") if part[j] > max(LESS * part.max(), ROUNDING)]
    return ", ".join(names[j] for j in order[:SHOWN]) + (" …" if len(order) > SHOWN else "")


def _levels(statistics: BurstStatistics) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the noise of each sensor as a part of its spread, and its mean covariance (D, D) or variances (D,)."""
    if statistics.instrument is None:
        return np.zeros(statistics.n_features), np.zeros(statistics.n_features)
    level = statistics.instrument.levels.mean(axis=0)
    spread = statistics.means.std(axis=0)
    # deviations in Pa and in K cannot be compared
    return np.sqrt(np.diag(level) if level.ndim == 2 else level) / np.where(spread > 0, spread, 1.0), level


def _correlated(covariance: NDArray[np.float64]) -> bool:
    size = np.sqrt(np.diag(covariance))
    return bool(np.abs(covariance / np.outer(size, size) - np.eye(len(size))).max() > CORRELATED)
