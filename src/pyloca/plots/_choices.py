"""Pictures of what was chosen, and of how sure that is: σ, k, d, error bars and the null test."""

from __future__ import annotations

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator

from pyloca.diagnostics import Agreement, ShuffleTest
from pyloca.plots._figures import COLOURS, style
from pyloca.selection import BurstStd, ComponentSelection, IntrinsicDim

__all__ = [
    "plot_agreement",
    "plot_burst_std",
    "plot_component_selection",
    "plot_intrinsic_dim",
    "plot_shuffle_test",
]

SIZE = (5.0, 3.6)
MOST_CIRCLES = 1500


def plot_burst_std(estimate: BurstStd) -> Figure:
    """What single bursts (or single distances) say of σ, and what is made of it."""
    with style():
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        low, high = np.quantile(estimate.samples, [0.005, 0.995])
        if low == high:  # one distance alone
            low, high = 0.9 * low, 1.1 * high
        axes.hist(np.clip(estimate.samples, low, high), bins=40, range=(low, high), color=COLOURS["sky"])
        axes.axvline(float(estimate), color=COLOURS["vermilion"])
        axes.set(
            title=f"σ = {float(estimate):.4g} ± {estimate.standard_error:.1g}"
            if np.isfinite(estimate.standard_error)
            else f"σ = {float(estimate):.4g}, by one distance alone",
            xlabel="σ by one distance" if estimate.known_scale else "σ by one burst",
            ylabel="distances" if estimate.known_scale else "bursts",
        )
    return figure


def plot_intrinsic_dim(estimate: IntrinsicDim) -> Figure:
    """The spectrum of a burst, and how its directions grow with its radius."""
    with style():
        figure = Figure(figsize=(7.6, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        shown = slice(0, min(len(estimate.spectrum), 2 * int(estimate) + 6))
        index = np.arange(1, len(estimate.spectrum) + 1)[shown]
        kinds = (("tangent", index <= int(estimate), "blue"), ("noise or curvature", index > int(estimate), "orange"))
        for label, chosen, colour in kinds:
            left.semilogy(index[chosen], estimate.spectrum[shown][chosen], "o", color=COLOURS[colour], label=label)
            right.plot(index[chosen], estimate.growth[shown][chosen], "o", color=COLOURS[colour])
        left.legend()
        right.axhline(1, color=COLOURS["black"], linewidth=0.8)
        left.set(
            title=f"k = {int(estimate)} ({estimate.confidence:.0%} of bootstraps)",
            xlabel="direction",
            ylabel="median eigenvalue",
        )
        right.set(title="growth with the radius", xlabel="direction", ylabel="1: tangent or noise; more: curvature")
        right.set_xlim(left.get_xlim())
        for axes in (left, right):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def plot_component_selection(selection: ComponentSelection) -> Figure:
    """Held-out loss against d, with the floor that sampling leaves."""
    with style():
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        axes.errorbar(
            selection.candidates,
            selection.losses,
            yerr=selection.standard_errors,
            marker="o",
            color=COLOURS["blue"],
            capsize=3,
        )
        floor = float((selection.losses - selection.excess)[0])
        if floor > 0:
            axes.axhline(floor, color=COLOURS["black"], linestyle="--", linewidth=0.8, label="sampling floor")
            axes.legend()
        axes.axvline(selection.n_components, color=COLOURS["vermilion"], linewidth=0.8)
        axes.set(title=f"d = {selection.n_components}", xlabel="n_components", ylabel="held-out whitening loss")
        axes.set_yscale("log")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def plot_shuffle_test(test: ShuffleTest) -> Figure:
    """The loss of the real bursts among those of shuffled ones."""
    with style():
        figure = Figure(figsize=(5.0, 2.4), layout="constrained")
        axes = figure.subplots()
        finite = test.shuffled[np.isfinite(test.shuffled)]
        axes.plot(finite, np.zeros(len(finite)), "o", color=COLOURS["orange"], label="shuffled", alpha=0.8)
        axes.plot([test.loss], [0], "D", color=COLOURS["blue"], label="as measured")
        axes.set(title=f"p = {test.p_value:.2g}", xlabel="median held-out whitening loss", xscale="log", yticks=[])
        axes.legend(loc="upper center", ncols=2)
    return figure


def plot_agreement(agreement: Agreement) -> Figure:
    """The first two coordinates of the embedded bursts, with circles that hold the truth with 95 %."""
    with style():
        figure = Figure(figsize=(5.0, 4.6), layout="constrained")
        axes = figure.subplots()
        centre = agreement.embedding[:, :2]
        if centre.shape[1] == 1:
            centre = np.column_stack([centre, np.zeros(len(centre))])
        radius = agreement.radius()
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
