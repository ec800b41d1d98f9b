"""Bursts from things that move: restarts of a simulator, and windows of a recorded trajectory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import repeat

import numpy as np
from numpy.typing import ArrayLike

from pyloca._arguments import check_count, check_real
from pyloca.bursts._arrays import Array, as_points
from pyloca.bursts._container import Bursts
from pyloca.errors import BurstError

__all__ = ["from_simulator", "from_time_series"]

Step = Callable[[Array, float, np.random.RandomState], ArrayLike]
Observation = Callable[[Array], ArrayLike]


def from_simulator(
    step: Step,
    states: ArrayLike,
    dt: float,
    n_points: int,
    *,
    observe: Observation | None = None,
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
        Short: the drift must not bend the cloud.
    n_points : int
        Restarts of each state.
    observe : callable, optional
        The instrument, (n, d) → (n, D); None observes the state itself.
    diffusion : float, optional
        s in dX = drift dt + s dW, where it is known and the same everywhere; then σ = s √dt.
    n_jobs : int, default=1
        Processes; `step` and `observe` must then be functions of a module. The result does not depend on it.
    random_state : int, optional
        Seed of the noise.
    progress : bool, optional
        Whether to show a progress bar on stderr; None shows it on a terminal.

    Returns
    -------
    Bursts
        N bursts, which know their σ if `diffusion` is given.

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
    check_real("dt", dt)
    check_count("n_points", n_points, 2)
    check_count("n_jobs", n_jobs, 1)
    if diffusion is not None:
        check_real("diffusion", diffusion)
    seeds = np.random.SeedSequence(random_state).generate_state(len(X))  # one per burst: the same for any n_jobs
    jobs = (repeat(step), repeat(observe), X, repeat(float(dt)), repeat(int(n_points)), seeds)
    bar = {"total": len(X), "desc": "restarts", "disable": None if progress is None else not progress}
    if n_jobs == 1:
        bursts = list(tqdm(map(_restart, *jobs), file=sys.stderr, **bar))
    else:
        with ProcessPoolExecutor(n_jobs) as pool:
            chunk = max(1, len(X) // (8 * n_jobs))
            bursts = list(tqdm(pool.map(_restart, *jobs, chunksize=chunk), file=sys.stderr, **bar))
    for i, burst in enumerate(bursts):
        if not np.isfinite(burst).all():
            raise BurstError(f"the simulator is not finite in burst {i}, from state {X[i]}; shorten dt.")
    sigma = None if diffusion is None else float(diffusion) * float(dt) ** 0.5
    known = "σ is not known" if sigma is None else f"σ = {sigma:g}"
    return Bursts(
        np.stack(bursts),
        burst_std=sigma,
        provenance=f"from_simulator: {n_points} restarts per state for dt = {dt:g}; {known}",
    )


def _restart(step: Step, observe: Observation | None, state: Array, dt: float, n_points: int, seed: int) -> Array:
    ends = np.asarray(step(np.tile(state, (n_points, 1)), dt, np.random.RandomState(seed)), dtype=np.float64)
    if ends.shape != (n_points, len(state)):
        raise BurstError(f"step maps ({n_points}, {len(state)}) to {ends.shape}; expected the same shape.")
    out = ends if observe is None else np.asarray(observe(ends), dtype=np.float64)
    if out.ndim != 2 or len(out) != n_points:
        raise BurstError(f"observe maps ({n_points}, {len(state)}) to {out.shape}; expected ({n_points}, D).")
    return out


def from_time_series(
    series: ArrayLike,
    window: int,
    *,
    stride: int | None = None,
    diffusion: float | None = None,
    dt: float | None = None,
) -> Bursts:
    """Make bursts from short windows of one long trajectory (T, D).

    Apart from their mean, which is the drift, the steps y_{t+1} − y_t in a window are independent and as wide as the
    noise of the process pushed through the instrument: a burst is the middle of the window plus these steps without
    their mean. It is assumed that the process does not move far within a window, and that samples are evenly spaced.

    Parameters
    ----------
    series : array of shape (T, D)
    window : int
        Steps in a burst, M.
    stride : int, optional
        Samples between the starts of two windows; None: `window`, so that they do not overlap.
    diffusion, dt : float, optional
        s in dX = drift dt + s dW and the time between samples, where they are known; then σ = s √dt.

    Returns
    -------
    Bursts

    Raises
    ------
    BurstError
        If the series is not finite, or too short for one window.
    ValueError
        If an argument is wrong, or only one of `diffusion` and `dt` is given.

    Examples
    --------
    >>> import numpy as np
    >>> from_time_series(np.cumsum(np.ones((301, 2)), axis=0), window=30)
    Bursts(N=10, M=30, D=2)
    """
    Y = as_points(series, "series")
    check_count("window", window, 2)
    stride = window if stride is None else stride
    check_count("stride", stride, 1)
    if len(Y) < window + 1:
        raise BurstError(f"the series has {len(Y)} samples; a window of {window} steps needs {window + 1}.")
    if (diffusion is None) != (dt is None):
        raise ValueError("σ needs both diffusion and dt; give both or neither.")
    sigma = None
    if diffusion is not None and dt is not None:
        check_real("diffusion", diffusion)
        check_real("dt", dt)
        sigma = float(diffusion) * float(dt) ** 0.5
    starts = np.arange(0, len(Y) - window, stride)
    samples = Y[starts[:, None] + np.arange(window + 1)]  # (N, window + 1, D)
    steps = np.diff(samples, axis=1)
    bursts = samples.mean(axis=1, keepdims=True) + steps - steps.mean(axis=1, keepdims=True)
    known = "σ is not known" if sigma is None else f"σ = {sigma:g}"
    return Bursts(
        bursts,
        burst_std=sigma,
        provenance=f"from_time_series: windows of {window} steps, stride {stride}, drift removed; {known}",
    )
