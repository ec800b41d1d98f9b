"""How far a recording moves in a given time: growth of the increments' covariance, and the noise that does not grow.

With C(τ) the covariance of y(t + τ) − y(t) about the local drift, a diffusion that is seen through an instrument with
noise of covariance R has C(τ) = 2R + τ S − τ² Q …: S is what a burst is to show, the last term is the return to the
middle and the bending of the instrument, which make a lag too long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts._arrays import Array
from pyloca.bursts._cells import cells_of
from pyloca.errors import BurstError

__all__ = ["Growth", "check_lag", "choose_lag", "measure_growth"]

BLOCKS = 10  # stretches of time that are left out in turn, for standard errors (jackknife)
SURE = 3.0  # standard errors that make a difference certain
PLACES = 64  # regions in which the drift is taken to be the same; fewer if they would have less than PER_PLACE samples
PER_PLACE = 500
MEMORY = 12  # lags from which the noise is found
FULL = 200  # features up to which noise is sought that is correlated between them; it is a matrix of D × D

# What the row "recordings" of `python -m benchmarks dirty` was judged with.
BENT = 0.04  # part of the variance of a step by which growth may fall short of, or exceed, a straight line
INDEPENDENT = 0.5  # decorrelation, with noise, above which it cannot be told whether noise or motion is to blame
FAR = 0.1  # decorrelation, 1 − autocorrelation, over one step
QUIET = 0.75  # noise over growth at which a longer lag is no longer better: 0.98 of the best efficiency, which is at 1
NOISY = 2.0  # noise over growth that is accepted when no longer lag is short enough


@dataclass(frozen=True)
class Growth:
    """Variances of increments, averaged over sensors in units of their variances, by lag.

    Attributes
    ----------
    lags : (L,) array of int
    variance : (BLOCKS + 1, L) array
        Of increments; without each stretch of time in turn, and of all.
    noise : (BLOCKS + 1,) array
        Part of it that does not grow; 0 when none is certain.
    noise_array : array or None
        2R, what noise adds to the covariance of increments, (D, D) in the units of the recording; of more than FULL
        features only its standard deviations (D,). None when no noise is certain.
    """

    lags: NDArray[np.int64]
    variance: Array
    noise: Array
    noise_array: Array | None

    def grown(self, lag: int) -> Array:
        """Variance of increments without noise, (BLOCKS + 1,)."""
        return self.variance[:, int(np.flatnonzero(self.lags == lag)[0])] - self.noise

    def noise_ratio(self, lag: int) -> float:
        """Noise over growth at a lag; inf when nothing grows."""
        grown = self.grown(lag)[-1]
        return float(self.noise[-1] / grown) if grown > 0 else float("inf")

    def decorrelation(self, lag: int) -> float:
        """1 − autocorrelation of the recording without its noise."""
        return float(self.grown(lag)[-1] / max(2 - self.noise[-1], np.finfo(float).tiny))

    def bend(self, lag: int) -> tuple[float, float]:
        """How much growth from `lag` to twice the lag falls short of a straight line, and its standard error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            short = 1 - self.grown(2 * lag) / (2 * self.grown(lag))
        return float(short[-1]), _error(short)


def measure_growth(
    recordings: Sequence[Array], given: Sequence[int] = (), names: Sequence[str] | None = None
) -> Growth:
    """Measure growth of the increments of recordings (T_r, D) of one system, at given lags among others."""
    every = np.concatenate(recordings)
    spread = every.std(axis=0)
    constant = np.flatnonzero(spread <= 64 * np.finfo(float).eps * np.abs(every).max(axis=0))
    if len(constant):
        name = f"feature {constant[0]}" if names is None else repr(names[constant[0]])
        raise BurstError(f"{name} never changes; leave it out.")
    scaled = [(recording - every.mean(axis=0)) / spread for recording in recordings]
    places = _places(scaled)
    lags = _lags(max(map(len, recordings)), given)
    variance = np.stack([_left_out(*_increments(scaled, places, int(lag))) for lag in lags], axis=1)
    weights, noise = _intercept(lags, variance)
    if not noise[-1] > SURE * _error(noise):
        return Growth(lags, variance, np.zeros(BLOCKS + 1), None)
    return Growth(lags, variance, noise, _noise_array(scaled, places, lags, weights, spread))


def _places(recordings: Sequence[Array]) -> list[NDArray[np.int64]]:
    """Region of each sample, in which the drift is taken to be the same."""
    every = np.concatenate(recordings)
    cells = cells_of(every, max(PER_PLACE, -(-len(every) // PLACES)))
    place = np.full(len(every), len(cells))  # that of the few samples which are left over
    for i, cell in enumerate(cells):
        place[cell] = i
    return np.split(place, np.cumsum([len(recording) for recording in recordings])[:-1])


def _left_out(steps: Array, freedom: float) -> Array:
    """Mean square of increments without each stretch of time in turn, and of all, (BLOCKS + 1,)."""
    block = np.arange(len(steps)) * BLOCKS // len(steps)
    sums = np.bincount(block, np.square(steps).mean(axis=1) / freedom, BLOCKS)
    counts = np.bincount(block, minlength=BLOCKS)
    return np.append((sums.sum() - sums) / np.maximum(counts.sum() - counts, 1), sums.sum() / counts.sum())


def _noise_array(
    recordings: Sequence[Array],
    places: Sequence[NDArray[np.int64]],
    lags: NDArray[np.int64],
    weights: Array,
    spread: Array,
) -> Array:
    """Compute 2R as a covariance (D, D), or, of many features, its standard deviations (D,)."""
    full = len(spread) <= FULL
    total = np.zeros((len(spread),) * 2 if full else len(spread))
    for lag, weight in zip(lags, weights, strict=False):
        steps, freedom = _increments(recordings, places, int(lag))
        total += weight / (len(steps) * freedom) * (steps.T @ steps if full else np.square(steps).sum(axis=0))
    if not full:
        return np.asarray(spread * np.sqrt(np.maximum(total, 0)))
    values, vectors = np.linalg.eigh(total)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T * np.outer(spread, spread))


def _lags(longest: int, given: Sequence[int]) -> NDArray[np.int64]:
    """Return the lags that are looked at, 1, 2, 3, … up to an eighth of a recording, with the given ones."""
    sizes = {*range(1, 2 * MEMORY + 1), *(2**i for i in range(5, 20)), *(3 * 2**i for i in range(3, 20))}
    lags = np.array(sorted(sizes), dtype=np.int64)
    extra = [factor * lag for lag in given for factor in (1, 2)]
    return np.unique([*lags[lags <= max(longest // 8, 6)], *extra])


def _increments(recordings: Sequence[Array], places: Sequence[NDArray[np.int64]], lag: int) -> tuple[Array, float]:
    """Increments (n, D) without the mean of their place, and the part of their degrees of freedom that is left."""
    longer = [(r, p) for r, p in zip(recordings, places, strict=True) if len(r) > lag]
    steps = np.concatenate([recording[lag:] - recording[:-lag] for recording, _ in longer])
    # The place of the sample in the middle. An odd lag has two by turns: an end alone (lag 1) would tell something
    # about its own noise, and the drift that leads away from it; the two ends together do not.
    place = np.concatenate([place[_middle(len(place), lag)] for _, place in longer])
    number = np.bincount(place)
    for j in range(steps.shape[1]):
        steps[:, j] -= (np.bincount(place, steps[:, j]) / np.maximum(number, 1))[place]
    # overlapping increments of a place have about n / lag independent ones among them
    return steps, max(1 - lag * np.count_nonzero(number) / len(steps), 0.5)


def _middle(length: int, lag: int) -> NDArray[np.int64]:
    start = np.arange(length - lag)
    return start + (lag + start % 2) // 2


def _intercept(lags: NDArray[np.int64], variance: Array) -> tuple[Array, Array]:
    """Weights of the lags 1, …, J + 1 that give the variance at lag 0, and this variance, (BLOCKS + 1,).

    Noise makes neighbouring increments of one sample move against each other: their covariance is g₁ = −R + g, where
    g, from the return to the middle, is also that of increments 2, …, J samples apart. So 2R is −2g₁ plus the mean
    of 2g₂, …, 2g_J, with 2g_j = C(j + 1) − 2C(j) + C(j − 1), a sum which telescopes.
    """
    growing = variance[-1] - variance[-1, 0] <= FAR
    last = max(2, int(np.argmin(np.r_[growing[:MEMORY], False]) - 1))  # J: while the return is still the same
    weights = np.zeros(last + 1)
    weights[[0, 1]] = 2, -1
    for lag, weight in ((last + 1, 1), (last, -1), (2, -1), (1, 1)):
        weights[lag - 1] += weight / (last - 1)
    return weights, variance[:, : last + 1] @ weights


def _error(values: Array) -> float:
    """Jackknife error of the last value, from those without each block."""
    left_out = values[:-1]
    return float(np.sqrt((BLOCKS - 1) * np.mean(np.square(left_out - left_out.mean()))))


# -- the lag ----------------------------------------------------------------------------------------------------


def choose_lag(growth: Growth) -> tuple[int, str]:
    """Choose the shortest lag at which growth stands out from noise and is still in proportion to the lag, and say why.

    Raises
    ------
    BurstError
        If there is none; the message says why.
    """
    possible = [int(lag) for lag in growth.lags if 2 * lag in growth.lags]
    grown = [lag for lag in possible if growth.grown(lag)[-1] > SURE * _error(growth.grown(lag))]
    straight = [lag for lag in grown if _is_straight(growth, lag)]
    quiet = [lag for lag in straight if growth.noise_ratio(lag) <= QUIET]
    if quiet:
        return quiet[0], _why(growth, quiet[0])
    if straight and growth.noise_ratio(straight[-1]) <= NOISY:
        return straight[-1], _why(growth, straight[-1])
    raise BurstError(_refusal(growth, grown))


def check_lag(growth: Growth, lag: int) -> None:
    """Refuse a given lag at which steps do not show the noise of a process."""
    if growth.grown(lag)[-1] > 0 and _is_straight(growth, lag) and growth.noise_ratio(lag) <= NOISY:
        return
    try:
        better = f"Lag {choose_lag(growth)[0]} can."
    except BurstError as error:
        better = f"No other lag can: {error}"
    raise BurstError(
        f"steps of {lag} sample{'s' * (lag > 1)} cannot make bursts: {_why(growth, lag)}, and samples so far apart are "
        f"decorrelated by {growth.decorrelation(lag):.1%} (at most {BENT:.0%} and {FAR:.0%} are accepted, and noise of "
        f"{NOISY:g} times the growth). {better}"
    )


def _is_straight(growth: Growth, lag: int) -> bool:
    bend, error = growth.bend(lag)
    return abs(bend) <= BENT + error and growth.decorrelation(lag) <= FAR


def _why(growth: Growth, lag: int) -> str:
    noise = growth.noise_ratio(lag)
    bend, _ = growth.bend(lag)
    said = f"noise is {noise:.0%} of the growth" if noise else "no noise seen"
    return f"{said}, {_line(bend)}"


def _refusal(growth: Growth, grown: list[int]) -> str:
    if not grown or growth.variance[-1, 0] / 2 > INDEPENDENT:
        return (
            f"consecutive samples differ by {growth.variance[-1, 0] / 2:.0%} of what independent samples would, and "
            "hardly more at longer lags: the recording is sampled too coarsely, or noise hides the motion. "
            "Sample faster, so that the system moves by a few per cent of its range between samples, or reduce noise."
        )
    first = grown[0]
    bend, error = growth.bend(first)
    if bend < -BENT - error:
        return (
            f"from lag {first} to {2 * first} the variance of increments grows {2 * (1 - bend):.1f}-fold, where a "
            "diffusion doubles it, and no longer lag that is short against the system's own time is better: the "
            "recording is smooth, or was filtered. Its steps do not show noise of one size everywhere."
        )
    if growth.noise_ratio(first) > QUIET:
        return (
            f"noise is {growth.noise_ratio(first):.1f} times the growth of increments at lag {first}, and at lags so "
            "long that growth stands out from it, it is no longer in proportion to time. Record with less noise, or "
            "sample faster and average."
        )
    too_short = ", or record for longer" if abs(bend) <= BENT + error else ""  # a walk has no range of its own
    return (
        f"the recording is sampled too coarsely: samples {first} apart are decorrelated by "
        f"{growth.decorrelation(first):.1%} (at most {FAR:.0%} is accepted), and {_line(bend)} (at most {BENT:.0%}). "
        f"Sample faster{too_short}."
    )


def _line(bend: float) -> str:
    return f"growth to twice the lag {'falls short of' if bend >= 0 else 'exceeds'} a line by {abs(bend):.1%}"
