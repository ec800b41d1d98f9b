"""Bursts from recorded trajectories: steps of a diffusion, gathered by time or by place."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import brief, check_count, check_real, is_integer
from pyloca.bursts._arrays import Array, as_points
from pyloca.bursts._cells import cells_of
from pyloca.bursts._container import Bursts
from pyloca.bursts._growth import Growth, check_lag, choose_lag, measure_growth
from pyloca.bursts._labels import names_of_frames
from pyloca.bursts._noise import noise_by_place
from pyloca.errors import BurstError

__all__ = ["from_time_series"]

LOGGER = logging.getLogger("pyloca")
MOST_BURSTS = 1000  # more steps make larger bursts, not more of them: a fit takes time in proportion to their number
LEAST_POINTS, MOST_POINTS = 20, 200  # per burst: a covariance in a few directions, known to a third; to a tenth
LEAST_SAMPLES = 50  # of the longest recording: lags up to an eighth of it are looked at
LEAST_BURSTS = 25  # fewer places do not cover a plane
# Spread of a burst's places over that of the recording. Windows of an Ornstein–Uhlenbeck path (D = 3, 20,000 samples)
# that spread over 0.22, 0.30, 0.39, 0.55, 0.70 of it gave errors of 2.1, 2.7, 3.9, 7.5, 14 % of the size.
EXCURSION = 0.3


@dataclass(frozen=True)
class Steps:
    """Steps that were gathered into N bursts of M.

    Attributes
    ----------
    steps : (N, M, D)
    middles : (N, D)
    spread : (D,)
        Variance of the places in a burst, averaged over bursts.
    starts : (N, M) array of int
        Where steps begin, in all recordings one after the other.
    """

    steps: Array
    middles: Array
    spread: Array
    starts: NDArray[np.int64]


def from_time_series(
    series: ArrayLike | Sequence[ArrayLike],
    window: int | Literal["auto"] = "auto",
    *,
    lag: int | Literal["auto"] = "auto",
    lags: tuple[int, int] | None = None,
    stride: int | None = None,
    keys: Sequence[Any] | None = None,
    diffusion: float | None = None,
    dt: float | None = None,
) -> Bursts:
    """Make bursts from the steps of one or several recorded trajectories (T, D) of a diffusion.

    Apart from their mean, which is the drift, the steps y(t + lag) − y(t) near one place are independent and as wide as
    the noise of the process pushed through the instrument. A burst is that place plus steps without their mean.
    Samples must be evenly spaced. What was chosen, and why, is in ``provenance`` and is logged (INFO, "pyloca").

    Parameters
    ----------
    series : array of shape (T, D), or list of arrays of shape (T_r, D)
        One recording, or several of one system. Data frames give their columns' names, which must agree. No step
        crosses from one recording into the next.
    window : int or "auto", default="auto"
        An integer makes a burst of as many consecutive steps. "auto" gathers steps by place: a system comes back to a
        place, and steps from different times, taken where the trajectory came closest, spread less than consecutive
        ones, within which it wanders off.
    lag : int or "auto", default="auto"
        Samples in a step. "auto" takes the shortest at which the growth of the steps' covariance stands out from noise
        that does not grow, if it is still in proportion to the lag.
    lags : (int, int), optional
        Two lags τ₁ < τ₂. Steps are τ₂ long, and what does not grow between the two is taken to be noise, place by
        place. Use it when noise differs from place to place; `lag` takes it to be the same everywhere.
    stride : int, optional
        Samples between the starts of two windows, where `window` is an integer; None: they do not overlap.
    keys : sequence of labels, optional
        Names of the recordings in a list, for ids such as "monday/12"; None: "0/12". With ``window="auto"`` a burst is
        named after the recording that most of its steps come from.
    diffusion, dt : float, optional
        s in dX = drift dt + s dW and the time between samples, where they are known; then σ = s √(lag · dt).

    Returns
    -------
    Bursts
        With ``noise``, the covariance that the instrument's noise adds to each burst, if there is any; with more than
        200 features its standard deviations.

    Raises
    ------
    BurstError
        If a recording is not finite or too short, or if no lag or window can work: the recording is sampled too
        coarsely, too noisy, or not a diffusion, or bursts would spread too far.
    ValueError
        If an argument is wrong, or only one of `diffusion` and `dt` is given.

    Examples
    --------
    >>> import numpy as np
    >>> walk = np.cumsum(0.1 * np.random.RandomState(0).standard_normal((3001, 2)), axis=0)
    >>> from_time_series(walk)
    Bursts(N=150, M=20, D=2)
    >>> from_time_series([walk, walk[:1000]], window=30, lag=1, keys=["a", "b"]).ids[-1].item()
    'b/32'
    """
    recordings, names = _recordings(series)
    listed = _is_list(series)
    if keys is not None and (not listed or len(keys) != len(recordings) or len(set(map(str, keys))) < len(keys)):
        raise ValueError(f"keys must be different labels, one for each of a list of recordings; got {brief(keys)}.")
    sigma_of_one = _sigma(diffusion, dt)
    if window != "auto":
        check_count("window", window, 2)
    if stride is not None:
        check_count("stride", stride, 1)
        if window == "auto":
            raise ValueError("stride is for windows of a given length; with window='auto' steps do not overlap.")
    given = _given_lags(lag, lags)
    _refuse_short(recordings, max(given or (1,)), window)
    growth = measure_growth(recordings, given, names)
    lag, chosen = _lag(growth, lag, lags)
    each = [len(recording) for recording in recordings]
    if window == "auto":
        gathered = _by_place(recordings, lag, growth)
        how = f"{gathered.steps.shape[1]} steps near each of {len(gathered.steps)} places"
    else:
        gathered = _by_time(recordings, int(window), lag, stride)
        how = f"windows of {window} steps" + ("" if stride is None else f", stride {stride}")
    noise = growth.noise_array if lags is None else _noise_of_lags(recordings, gathered, *lags)
    excursion = _refuse_far(gathered, recordings, window, lag)
    steps = gathered.steps
    sigma = None if sigma_of_one is None else sigma_of_one * lag**0.5
    known = "σ is not known" if sigma is None else f"σ = {sigma:g}"
    provenance = (
        f"from_time_series: {how}, which spread over {excursion:.1%} of the recording; lag {lag} ({chosen}); drift "
        f"removed; {known}"
    )
    LOGGER.info(provenance)
    return Bursts(
        gathered.middles[:, None] + steps - steps.mean(axis=1, keepdims=True),
        ids=_ids(gathered.starts, each, keys) if listed else None,
        feature_names=names,
        burst_std=sigma,
        noise=noise,
        provenance=provenance,
    )


# -- what is given ----------------------------------------------------------------------------------------------


def _is_list(series: Any) -> bool:
    return isinstance(series, (list, tuple)) and len(series) > 0 and np.ndim(series[0]) == 2


def _recordings(series: Any) -> tuple[list[Array], list[str] | None]:
    parts = list(series) if _is_list(series) else [series]
    names = names_of_frames(parts)
    listed = _is_list(series)
    recordings = [as_points(part, f"recording {i}" if listed else "series") for i, part in enumerate(parts)]
    for i, recording in enumerate(recordings):
        if recording.shape[1] != recordings[0].shape[1]:
            raise BurstError(
                f"recording {i} has D = {recording.shape[1]} features and recording 0 has {recordings[0].shape[1]}."
            )
    return recordings, names


def _sigma(diffusion: float | None, dt: float | None) -> float | None:
    if (diffusion is None) != (dt is None):
        raise ValueError("σ needs both diffusion and dt; give both or neither.")
    if diffusion is None or dt is None:
        return None
    check_real("diffusion", diffusion)
    check_real("dt", dt)
    return float(diffusion) * float(dt) ** 0.5


def _given_lags(lag: int | str, lags: tuple[int, int] | None) -> tuple[int, ...]:
    """Return the lags that the user wants."""
    if lags is not None:
        if lag != "auto":
            raise ValueError(f"give lag or lags, not both; got lag = {lag!r} and lags = {lags!r}.")
        if len(lags) != 2 or not all(is_integer(one, 1) for one in lags) or lags[0] >= lags[1]:
            raise ValueError(f"lags must be two integers, 1 ≤ τ₁ < τ₂; got {brief(lags)}.")
        return int(lags[0]), int(lags[1])
    if lag == "auto":
        return ()
    check_count("lag", lag, 1)
    return (int(lag),)


def _refuse_short(recordings: Sequence[Array], lag: int, window: int | str) -> None:
    longest = max(map(len, recordings))
    name = "series" if len(recordings) == 1 else "longest recording"
    needed = lag * int(window) + 1 if window != "auto" else 0
    if longest < needed:
        raise BurstError(f"the {name} has {longest} samples; a window of {window} steps needs {needed}.")
    if longest < max(LEAST_SAMPLES, 8 * lag):
        raise BurstError(
            f"the {name} has {longest} samples; at least {max(LEAST_SAMPLES, 8 * lag)} are needed to "
            "see how far they move with time."
        )


def _lag(growth: Growth, lag: int | str, lags: tuple[int, int] | None) -> tuple[int, str]:
    """Return the lag, and why it was chosen."""
    if lags is not None:
        check_lag(growth, lags[1])
        return lags[1], f"noise is what does not grow from lag {lags[0]} to {lags[1]}"
    if lag == "auto":
        chosen, why = choose_lag(growth)
        return chosen, f"chosen: {why}"
    check_lag(growth, int(lag))
    return int(lag), "given"


# -- gathering --------------------------------------------------------------------------------------------------


def _by_time(recordings: Sequence[Array], window: int, lag: int, stride: int | None) -> Steps:
    """Gather consecutive steps."""
    _refuse_short(recordings, lag, window)
    first = np.cumsum([0, *map(len, recordings)])
    starts = np.concatenate(
        [
            begin + np.arange(0, len(recording) - window * lag, stride or window * lag)
            for begin, recording in zip(first, recordings, strict=False)
        ]
    )
    every = np.concatenate(recordings)
    samples = every[starts[:, None] + lag * np.arange(window + 1)]  # (N, window + 1, D)
    inside = every[starts[:, None] + np.arange(window * lag + 1)]
    middles, spread = inside.mean(axis=1), inside.var(axis=1).mean(axis=0)
    return Steps(np.diff(samples, axis=1), middles, spread, starts[:, None] + lag * np.arange(window))


def _by_place(recordings: Sequence[Array], lag: int, growth: Growth) -> Steps:
    """Gather steps where the trajectory came closest to itself."""
    first = np.cumsum([0, *map(len, recordings)])
    starts = np.concatenate(
        [b + np.arange(0, len(r) - lag, lag) for b, r in zip(first, recordings, strict=False)]
    )  # (n,)
    every = np.concatenate(recordings)
    steps = every[starts + lag] - every[starts]
    # The mean from one end to the other says nothing about the noise in their difference, nor, for a process that
    # looks the same backwards, about the difference itself.
    places = np.mean([every[starts + i] for i in range(lag + 1)], axis=0)  # (n, D)
    size = _n_points(len(starts), growth.noise_ratio(lag) if lag in growth.lags else 0.0)
    if len(starts) < LEAST_BURSTS * size:
        raise BurstError(
            f"there are {len(starts)} steps of {lag} sample{'s' * (lag > 1)}; {LEAST_BURSTS} bursts of {size} steps "
            f"need {LEAST_BURSTS * size}. Record for longer, or sample faster."
        )
    cells = cells_of(places / every.std(axis=0), size)
    cells = cells[np.argsort(starts[cells].min(axis=1))]  # in order of time
    near = places[cells]  # (N, M, D)
    return Steps(steps[cells], near.mean(axis=1), near.var(axis=1).mean(axis=0), np.sort(starts[cells], axis=1))


def _n_points(n_steps: int, noise_ratio: float) -> int:
    """Choose how many steps make a burst: more when there are many, or when noise makes each of them worth less."""
    least = int(np.ceil(LEAST_POINTS * (1 + noise_ratio) ** 2))
    return int(np.clip(n_steps // MOST_BURSTS, least, max(MOST_POINTS, least)))


def _ids(starts: NDArray[np.int64], lengths: Sequence[int], keys: Sequence[Any] | None) -> list[str]:
    """Name bursts after the recording of most of their steps, and number them in it: "0/12"."""
    owner = np.searchsorted(np.cumsum(lengths), starts[:, (starts.shape[1] - 1) // 2], side="right")  # the median
    seen = dict.fromkeys(range(len(lengths)), 0)
    ids = []
    for recording in owner.tolist():
        ids.append(f"{recording if keys is None else keys[recording]}/{seen[recording]}")
        seen[recording] += 1
    return ids


# -- what may be wrong ------------------------------------------------------------------------------------------


def _noise_of_lags(recordings: Sequence[Array], gathered: Steps, short: int, long: int) -> Array:
    """Estimate what noise adds to steps of the lag `long`, (N, D, D), from short steps within them: the same place."""
    every = np.concatenate(recordings)
    inner = gathered.starts[:, :, None] + short * np.arange(long // short)  # (N, M, long // short)
    steps = (every[inner + short] - every[inner]).reshape(len(inner), -1, every.shape[1])
    return noise_by_place(gathered.middles, steps, gathered.steps, short, long)


def _excursion(gathered: Steps, recordings: Sequence[Array]) -> float:
    """Compute the spread of the places in a burst over that of the recordings."""
    return float(np.sqrt(np.mean(gathered.spread / np.concatenate(recordings).var(axis=0))))


def _refuse_far(gathered: Steps, recordings: Sequence[Array], window: int | str, lag: int) -> float:
    """Refuse bursts that spread too far; return how far they do."""
    excursion = _excursion(gathered, recordings)
    if excursion <= EXCURSION:
        return excursion
    n, m = gathered.steps.shape[:2]
    far = (
        f"spread over {excursion:.0%} of the recording's own spread; {EXCURSION:.0%} is the most at which their "
        "covariance belongs to one place"
    )
    if window == "auto":
        raise BurstError(f"the {m} steps near each of {n} places {far}. Record for longer.")
    fits = m
    while fits >= LEAST_POINTS and _excursion(_by_time(recordings, fits, lag, None), recordings) > EXCURSION:
        fits = fits * 4 // 5
    shorter = f"Windows of {fits} steps do, or" if fits >= LEAST_POINTS else "Use"
    raise BurstError(
        f'windows of {m} steps of {lag} sample{"s" * (lag > 1)} {far}. {shorter} window="auto", which gathers steps '
        "by place."
    )
