"""Bursts from restarts of a simulator."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike

from pyloca._arguments import as_numbers, brief, check_count, check_real, is_positive
from pyloca.bursts._arrays import Array, as_points
from pyloca.bursts._container import Bursts
from pyloca.bursts._noise import noise_by_place
from pyloca.errors import BurstError

__all__ = ["from_simulator"]

Step = Callable[[Array, float, np.random.RandomState], ArrayLike]
Observation = Callable[[Array], ArrayLike]


def from_simulator(
    step: Step,
    states: ArrayLike,
    dt: float | None,
    n_points: int,
    *,
    observe: Observation | None = None,
    lags: tuple[float, float] | None = None,
    diffusion: float | None = None,
    n_jobs: int = 1,
    random_state: int | None = None,
    progress: bool | None = None,
) -> Bursts:
    """Restart a stochastic simulator `n_points` times from each state and let it run for a time `dt`.

    Parameters
    ----------
    step : callable
        ``step(states, dt, random)``: (n, d) → (n, d), independent runs from each row, with `random` for its noise.
    states : array of shape (N, d)
    dt : float
        Short: the drift must not bend the cloud. None if `lags` are given.
    n_points : int
        Restarts of each state.
    observe : callable, optional
        The instrument, (n, d) → (n, D); None observes the state itself.
    lags : (float, float), optional
        Two times t₁ < t₂ in place of `dt`, where `observe` is noisy: runs are observed at both, bursts are the ends at
        t₂, and what does not grow between the two is taken to be the instrument's noise, place by place.
    diffusion : float, optional
        s in dX = drift dt + s dW, where it is known and the same everywhere; then σ = s √dt, or s √t₂.
    n_jobs : int, default=1
        Processes; `step` and `observe` must then be functions of a module. The result does not depend on it.
    random_state : int, optional
        Seed of the noise.
    progress : bool, optional
        Whether to show a progress bar on stderr; None shows it on a terminal.

    Returns
    -------
    Bursts
        N bursts, which know their σ if `diffusion` is given, and their ``noise`` if `lags` are.

    Raises
    ------
    BurstError
        If the simulator returns a wrong shape, or values that are not finite.
    ValueError
        If an argument is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> step = lambda states, dt, random: states + np.sqrt(dt) * random.standard_normal(states.shape)
    >>> from_simulator(step, np.zeros((20, 2)), dt=1e-4, n_points=30, diffusion=1.0)
    Bursts(N=20, M=30, D=2)
    """
    from concurrent.futures import ProcessPoolExecutor  # both take a while to import

    from tqdm.auto import tqdm

    X = as_points(states, "states")
    times = _times(dt, lags)
    check_count("n_points", n_points, 2)
    check_count("n_jobs", n_jobs, 1)
    if diffusion is not None:
        check_real("diffusion", diffusion)
    if random_state is not None:
        check_count("random_state", random_state, 0)
    seeds = np.random.SeedSequence(random_state).generate_state(len(X))  # one per burst: the same for any n_jobs
    jobs = (repeat(step), repeat(observe), X, repeat(times), repeat(int(n_points)), seeds)
    bar = {"total": len(X), "desc": "restarts", "disable": None if progress is None else not progress}
    if n_jobs == 1:
        runs = list(tqdm(map(_restart, *jobs), file=sys.stderr, **bar))
    else:
        with ProcessPoolExecutor(n_jobs) as pool:
            chunk = max(1, len(X) // (8 * n_jobs))
            runs = list(tqdm(pool.map(_restart, *jobs, chunksize=chunk), file=sys.stderr, **bar))
    for i, run in enumerate(runs):
        if not np.isfinite(run).all():
            raise BurstError(f"the simulator returns NaN or infinity in burst {i}, started from {X[i]}; shorten dt.")
    seen = np.stack(runs, axis=1)  # (times, N, n_points, D)
    ends = seen[-1]
    noise = None if lags is None else noise_by_place(ends.mean(axis=1), seen[0], ends, *lags)
    sigma = None if diffusion is None else float(diffusion) * times[-1] ** 0.5
    known = "σ is not known" if sigma is None else f"σ = {sigma:g}"
    removed = f"; noise is what does not grow from {times[0]:g}" if lags is not None else ""
    return Bursts(
        ends,
        burst_std=sigma,
        noise=noise,
        provenance=f"from_simulator: {n_points} restarts per state for dt = {times[-1]:g}{removed}; {known}",
    )


def _times(dt: float | None, lags: tuple[float, float] | None) -> tuple[float, ...]:
    """Return when a run is observed."""
    if lags is None:
        check_real("dt", dt)
        return (float(dt),)  # type: ignore[arg-type]  # checked
    if dt is not None:
        raise ValueError(f"give dt or lags, not both; got dt = {dt!r} and lags = {lags!r}.")
    if len(lags) != 2 or not all(is_positive(time) for time in lags) or lags[0] >= lags[1]:
        raise ValueError(f"lags must be two times, 0 < t₁ < t₂; got {brief(lags)}.")
    return float(lags[0]), float(lags[1])


def _restart(
    step: Step, observe: Observation | None, state: Array, times: tuple[float, ...], n_points: int, seed: int
) -> Array:
    """Observe runs from one state at all times, (times, n_points, D)."""
    random = np.random.RandomState(seed)
    ends, before, seen = np.tile(state, (n_points, 1)), 0.0, []
    for time in times:
        ends = as_numbers("what step returns", step(ends, time - before, random), BurstError)
        before = time
        if ends.shape != (n_points, len(state)):
            raise BurstError(f"step maps ({n_points}, {len(state)}) to {ends.shape}; expected the same shape.")
        out = ends if observe is None else as_numbers("what observe returns", observe(ends), BurstError)
        if out.ndim != 2 or len(out) != n_points:
            raise BurstError(f"observe maps ({n_points}, {len(state)}) to {out.shape}; expected ({n_points}, D).")
        seen.append(out)
    return np.stack(seen)
