"""The diagnostics of a fit on one page: losses against sampling, stretches, the round trip."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from pyloca.plots._figure import Figure
from pyloca.plots._fitted import _draw_histogram, _label_log, _log_bins
from pyloca.plots._style import COLOURS, style

__all__ = ["plot_diagnostics"]

Array = NDArray[np.float64]

SIZE = (10.5, 3.4)


def plot_diagnostics(
    losses: Array,
    errors: Array,
    *,
    suspect: NDArray[np.bool_],
    sampling_floor: float,
    stretch: tuple[float, float],
    sampling_stretch: tuple[float, float] | None = None,
) -> Figure:
    """Draw whitening losses against what sampling leaves, stretches, and round-trip errors.

    Parameters
    ----------
    losses, errors : (N,) array
        Whitening loss and round-trip error of every burst.
    suspect : (N,) array of bool
        Bursts whose loss sampling does not explain.
    sampling_floor : float
        Mean loss that sampling alone leaves; 0 where it explains nothing.
    stretch, sampling_stretch : (float, float)
        5 % and 95 % quantiles of the factors by which tangents are stretched, as found and by sampling alone.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> losses = np.random.RandomState(0).chisquare(3, 200) / 30
    >>> figure = plot_diagnostics(
    ...     losses, losses / 10, suspect=losses > 0.5, sampling_floor=0.1, stretch=(0.7, 1.2)
    ... )
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Whitening', 'Stretch', 'Round trip']
    """
    with style():
        figure = Figure(figsize=SIZE, layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        _losses(left, losses, suspect, sampling_floor)
        _stretches(middle, stretch, sampling_stretch)
        _errors(right, errors)
    return figure


def _losses(axes: Axes, losses: Array, suspect: NDArray[np.bool_], floor: float) -> None:
    shown = np.isfinite(losses) & (losses > 0)  # a collapsed burst has an infinite loss
    bins = _log_bins(losses[shown])
    _draw_histogram(axes, losses[shown], bins, COLOURS["blue"], f"{len(losses)} bursts")
    strange = losses[shown & suspect]
    if len(strange):
        # On the scale of all bursts, so that the bars are parts of those behind them.
        part = np.histogram(np.clip(strange, bins[0], bins[-1]), bins)[0] / shown.sum()
        axes.stairs(part, bins, fill=True, color=COLOURS["vermilion"], label=f"{suspect.sum()} suspect")
    if floor > 0:
        axes.axvline(floor, color=COLOURS["black"], linestyle="--", linewidth=1.2, label="sampling alone, mean")
    _log_axis(axes, bins)
    axes.set(title="Whitening", xlabel="whitening loss")
    _add_legend(axes)


def _stretches(axes: Axes, stretch: tuple[float, float], sampling: tuple[float, float] | None) -> None:
    bars = [("bursts", stretch, "blue")] + ([] if sampling is None else [("sampling\nalone", sampling, "orange")])
    for place, (_, (low, high), colour) in enumerate(bars):
        axes.barh(place, high - low, left=low, height=0.5, color=COLOURS[colour], alpha=0.35)
        for end, side in ((low, "right"), (high, "left")):
            axes.plot([end, end], [place - 0.25, place + 0.25], color=COLOURS[colour], linewidth=1.4)
            axes.annotate(
                f"{end:.3f}", (end, place), xytext=(-4 if side == "right" else 4, 0), textcoords="offset points",
                ha=side, va="center", fontsize=8,
            )  # fmt: skip
    ends = [end for _, pair, _ in bars for end in pair] + [1.0]
    room = 0.45 * max(max(ends) - min(ends), 0.01)
    axes.axvline(1, color=COLOURS["black"], linestyle="--", linewidth=1.2)
    axes.set(title="Stretch", xlabel="stretch of a tangent, 5 % to 95 %", ylim=(-0.7, len(bars) - 0.3))
    axes.set(xlim=(min(ends) - room, max(ends) + room))
    axes.set_yticks(range(len(bars)), [name for name, _, _ in bars])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.invert_yaxis()


def _errors(axes: Axes, errors: Array) -> None:
    usable = errors[np.isfinite(errors) & (errors > 0)]
    bins = _log_bins(usable)
    _draw_histogram(axes, usable, bins, COLOURS["blue"], "bursts")
    if len(usable):
        middle = float(np.median(usable))
        axes.axvline(middle, color=COLOURS["black"], linestyle="--", linewidth=1.2, label=f"median {middle:.2g}")
    _log_axis(axes, bins)
    axes.set(title="Round trip", xlabel="error / size of the data")
    _add_legend(axes)


def _log_axis(axes: Axes, bins: Array) -> None:
    axes.set(xscale="log", ylabel="part of the bursts")
    _label_log(axes.xaxis, bins[0], bins[-1])
    axes.set_ylim(bottom=0)


def _add_legend(axes: Axes) -> None:
    axes.set_ylim(top=1.35 * axes.get_ylim()[1])  # room for it above the bars
    axes.legend(fontsize=8, loc="upper left", borderaxespad=0.2)
