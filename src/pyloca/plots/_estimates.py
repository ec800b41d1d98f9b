"""Figures of estimates and their uncertainty: σ, k, d, error bars and the null test."""

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
    """Draw the estimates of σ by single bursts (or single distances), and the resulting σ.

    Parameters
    ----------
    burst_std : float
        σ.
    samples : (n,) array
        σ by each burst, or by each known distance.
    standard_error : float
        Of σ; infinite if it rests on one distance.
    known_scale : bool
        Whether `samples` are by distance.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> plot_burst_std(1.0, np.array([0.9, 1.0, 1.1]), 0.05, False).axes[0].get_title(loc="left")
    'σ = 1 ± 0.05'
    """
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
            else f"σ = {burst_std:.4g}, from a single distance",
            xlabel="σ from each distance" if known_scale else "σ from each burst",
            ylabel="distances" if known_scale else "bursts",
        )
    return figure


def plot_intrinsic_dim(k: int, confidence: float, spectrum: Array, growth: Array) -> Figure:
    """Draw the median spectrum of the bursts, and how each direction grows with the radius of the burst.

    Parameters
    ----------
    k : int
        Intrinsic dimension.
    confidence : float
        Fraction of bootstrap samples that give this k.
    spectrum, growth : (r,) array
        As in `pyloca.selection.IntrinsicDimEstimate`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> figure = plot_intrinsic_dim(1, 0.98, np.array([1.0, 0.001]), np.array([1.0, 4.0]))
    >>> figure.axes[0].get_title(loc="left")
    'k = 1 (98% of bootstrap samples)'
    """
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
            title=f"k = {k} ({confidence:.0%} of bootstrap samples)",
            xlabel="direction",
            ylabel="median eigenvalue",
        )
        right.set(title="growth with the radius", xlabel="direction", ylabel="1: tangent or noise; above 1: curvature")
        right.set_xlim(left.get_xlim())
        for axes in (left, right):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def plot_component_selection(
    chosen: int, candidates: Sequence[int], losses: Array, standard_errors: Array, floor: float
) -> Figure:
    """Draw the held-out whitening loss against d, with the sampling floor.

    Parameters
    ----------
    chosen : int
        The selected d.
    candidates : sequence of int
        All d that were fitted.
    losses, standard_errors : (n,) array
        By candidate.
    floor : float
        Loss that sampling alone leaves; 0: not drawn.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> figure = plot_component_selection(3, (2, 3), np.array([0.5, 0.1]), np.array([0.01, 0.01]), 0.1)
    >>> figure.axes[0].get_title(loc="left")
    'd = 3'
    """
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
    """Draw the loss of the bursts as measured among those of shuffled bursts.

    Parameters
    ----------
    loss : float
        Of the bursts as measured.
    shuffled : (n,) array
        Of each shuffle; infinite ones are not drawn.
    p_value : float

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> plot_shuffle_test(0.1, np.array([1.0, 2.0]), 1 / 3).axes[0].get_title(loc="left")
    'p = 0.33'
    """
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
    """Draw the first two coordinates of the embedded bursts, each with its 95 % confidence region.

    Parameters
    ----------
    embedding : (N, d) array
    radius : (N,) array
        Of the region around each burst.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.random.RandomState(0).uniform(size=(50, 2))
    >>> plot_agreement(Z, np.full(50, 0.01)).axes[0].get_title(loc="left")
    '95 % regions, median radius 0.01'
    """
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
            title=f"95 % regions, median radius {np.median(radius):.2g}",
            xlabel="$z_0$",
            ylabel="$z_1$",
            aspect="equal",
        )
    return figure
