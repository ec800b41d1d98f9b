"""Pictures of what was chosen, and of how sure that is: σ, k, d, error bars and the null test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from pyloca.plots._figure import Figure
from pyloca.plots._style import COLOURS, style

__all__ = [
    "plot_agreement",
    "plot_burst_std",
    "plot_component_selection",
    "plot_intrinsic_dim",
    "plot_shuffle_test",
]

Array = NDArray[np.float64]

SIZE = (5.0, 3.6)
MOST_CIRCLES = 1500


def plot_burst_std(burst_std: float, samples: Array, standard_error: float, known_scale: bool) -> Figure:
    """What single bursts (or single distances) say of σ, and what is made of it."""
    with style():
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        low, high = np.quantile(samples, [0.005, 0.995])
        if low == high:  # one distance alone
            low, high = 0.9 * low, 1.1 * high
        axes.hist(np.clip(samples, low, high), bins=40, range=(low, high), color=COLOURS["sky"])
        axes.axvline(burst_std, color=COLOURS["vermilion"])
        axes.set(
            title=f"σ = {burst_std:.4g} ± {standard_error:.1g}"
            if np.isfinite(standard_error)
            else f"σ = {burst_std:.4g}, by one distance alone",
            xlabel="σ by one distance" if known_scale else "σ by one burst",
            ylabel="distances" if known_scale else "bursts",
        )
    return figure


def plot_intrinsic_dim(k: int, confidence: float, spectrum: Array, growth: Array) -> Figure:
    """The spectrum of a burst, and how its directions grow with its radius."""
    with style():
        figure = Figure(figsize=(7.6, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        shown = slice(0, min(len(spectrum), 2 * k + 6))
        index = np.arange(1, len(spectrum) + 1)[shown]
        kinds = (("tangent", index <= k, "blue"), ("noise or curvature", index > k, "orange"))
        for label, chosen, colour in kinds:
            left.semilogy(index[chosen], spectrum[shown][chosen], "o", color=COLOURS[colour], label=label)
            right.plot(index[chosen], growth[shown][chosen], "o", color=COLOURS[colour])
        left.legend()
        right.axhline(1, color=COLOURS["black"], linewidth=0.8)
        left.set(
            title=f"k = {k} ({confidence:.0%} of bootstraps)",
            xlabel="direction",
            ylabel="median eigenvalue",
        )
        right.set(title="growth with the radius", xlabel="direction", ylabel="1: tangent or noise; more: curvature")
        right.set_xlim(left.get_xlim())
        for axes in (left, right):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def plot_component_selection(
    chosen: int, candidates: Sequence[int], losses: Array, standard_errors: Array, floor: float
) -> Figure:
    """Held-out loss against d, with the floor that sampling leaves."""
    with style():
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        axes.errorbar(
            candidates,
            losses,
            yerr=standard_errors,
            marker="o",
            color=COLOURS["blue"],
            capsize=3,
        )
        if floor > 0:
            axes.axhline(floor, color=COLOURS["black"], linestyle="--", linewidth=0.8, label="sampling floor")
            axes.legend()
        axes.axvline(chosen, color=COLOURS["vermilion"], linewidth=0.8)
        axes.set(title=f"d = {chosen}", xlabel="n_components", ylabel="held-out whitening loss")
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def plot_shuffle_test(loss: float, shuffled: Array, p_value: float) -> Figure:
    """The loss of the real bursts among those of shuffled ones."""
    with style():
        figure = Figure(figsize=(5.0, 2.4), layout="constrained")
        axes = figure.subplots()
        finite = shuffled[np.isfinite(shuffled)]
        axes.plot(finite, np.zeros(len(finite)), "o", color=COLOURS["orange"], label="shuffled", alpha=0.8)
        axes.plot([loss], [0], "D", color=COLOURS["blue"], label="as measured")
        axes.set(title=f"p = {p_value:.2g}", xlabel="median held-out whitening loss", xscale="log", yticks=[])
        axes.legend(loc="upper center", ncols=2)
    return figure


def plot_agreement(embedding: Array, radius: Array) -> Figure:
    """The first two coordinates of the embedded bursts, with circles that hold the truth with 95 %."""
    with style():
        figure = Figure(figsize=(5.0, 4.6), layout="constrained")
        axes = figure.subplots()
        centre = embedding[:, :2]
        if centre.shape[1] == 1:
            centre = np.column_stack([centre, np.zeros(len(centre))])
        step = -(-len(centre) // MOST_CIRCLES)
        circles = [Circle((x, y), r) for (x, y), r in zip(centre[::step], radius[::step], strict=True)]
        axes.add_collection(PatchCollection(circles, facecolor=COLOURS["sky"], alpha=0.5, linewidth=0))
        axes.plot(*centre[::step].T, ".", color=COLOURS["blue"], markersize=2)
        axes.set(
            title=f"95 % regions, radius {np.median(radius):.2g} on the median",
            xlabel="$z_0$",
            ylabel="$z_1$",
            aspect="equal",
        )
    return figure
