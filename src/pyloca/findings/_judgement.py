"""`judge`: all checks of an encoder and decoder on bursts, summarized."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import nn

from pyloca.bursts import Bursts
from pyloca.checks import push, sampled_stretch, whitening
from pyloca.findings._before import spike_words
from pyloca.findings._bending import bending, empty_components
from pyloca.findings._causes import Fit, find_causes
from pyloca.findings._clipped import clipped_words
from pyloca.findings._diagnostics import Diagnostics
from pyloca.findings._gaps import largest_gap
from pyloca.findings._precision import imprecise
from pyloca.findings._round_trip import RoundTrip
from pyloca.geometry import BurstStatistics

__all__ = ["judge"]

Array = NDArray[np.float64]


def judge(
    encoder: nn.Module,
    statistics: BurstStatistics,
    burst_std: float,
    held_out: NDArray[np.int64] | None = None,
    *,
    decoder: nn.Module | None = None,
    bursts: Bursts | None = None,
    restarts: tuple[str, ...] = (),
    finished: bool = True,
    scaled: bool = False,
) -> Diagnostics:
    """Judge an encoder and decoder by bursts.

    Everything is in the units of the networks, which are those of `statistics` and `bursts`.

    Parameters
    ----------
    encoder : torch.nn.Module
    statistics : BurstStatistics
    burst_std : float
    held_out : (n,) array of int, optional
        Positions of the bursts that the figures are about; None: all. Causes are looked for in all bursts, since
        training does not hide them.
    decoder : torch.nn.Module, optional
        Needed for round-trip errors.
    bursts : Bursts, optional
        Raw bursts, for the checks that need them.
    restarts : tuple of str, default=()
        What was wrong with each start that the solver abandoned.
    finished : bool, default=True
        Whether the decoder was trained to the end; if not, what it misses is not looked at for causes.
    scaled : bool, default=False
        Whether features were divided by their spread where units differ (``feature_scale="auto"``).

    Returns
    -------
    Diagnostics

    Examples
    --------
    >>> from pyloca import datasets
    >>> from pyloca.geometry import BurstStatistics
    >>> bursts = datasets.mushroom(200, 20, random_state=0).bursts
    >>> statistics = BurstStatistics.from_bursts(bursts, 2)
    >>> import torch
    >>> diagnostics = judge(torch.nn.Linear(2, 2).double(), statistics, 0.01, bursts=bursts)  # not trained
    >>> len(diagnostics.findings) > 0
    True
    """
    white = whitening(encoder, statistics, burst_std)
    rows = np.arange(len(statistics)) if held_out is None else held_out
    seen = white[rows]
    low, high = np.quantile(seen.stretches, [0.05, 0.95])
    back = None if decoder is None else RoundTrip.of(decoder, statistics.means, white.embedding)
    missed = None if back is None else back.errors
    # few bursts may be fitted to the last point, and only those that were held out show that they are samples
    sampled = white.sampled or seen.sampled
    fit = Fit(statistics, burst_std, encoder, white, bursts, back if finished else None, scaled, sampled)
    findings, shape = find_causes(fit), ""
    if fit.d > fit.k and not findings:
        finding, shape = bending(statistics, burst_std, *_tangents(encoder, statistics, burst_std))
        findings = () if finding is None else (finding,)
        shape = shape or empty_components(white.embedding, fit.k)
    # of a fit that is wrong, sampling is not what matters
    errors = None if findings else fit.errors
    if errors is not None:
        # a fixed array has no sampling error, and more points of it tell nothing
        finding = imprecise(errors if sampled else errors._replace(sampling=0.0), statistics)
        findings = () if finding is None else (finding,)
    return Diagnostics(
        whitening_loss=float(np.average(seen.losses, weights=statistics.weights[rows])),
        median_loss=float(np.median(seen.losses)),
        sampling_floor=float(seen.floors.mean()),
        tails=statistics.tails,
        precision=None if errors is None else errors.total,
        stretch=(float(low), float(high)),
        findings=findings,
        restarts=restarts,
        round_trip=None if missed is None else (float(np.median(missed[rows])), float(missed[rows].max())),
        sampling_stretch=sampled_stretch(1 + (float(np.median(statistics.counts[rows])) - 1) / statistics.tails, fit.k),
        gap=largest_gap(white.embedding) if fit.d == fit.k else None,  # a surface in space has space around it
        losses=white.losses,
        p_values=white.p_values,
        conditions=white.conditions,
        errors=np.empty(0) if missed is None else missed,
        ids=statistics.ids,
        set_aside=spike_words(statistics),
        clipped=clipped_words(statistics),
        shape=shape,
    )


def _tangents(encoder: nn.Module, statistics: BurstStatistics, burst_std: float) -> tuple[Array, Array]:
    embedding, pushed = push(encoder, statistics, burst_std)
    return embedding, pushed.numpy()
