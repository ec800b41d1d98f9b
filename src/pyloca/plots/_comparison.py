"""Embeddings side by side and, where it is known, against the truth."""

from __future__ import annotations

import re

import numpy as np
from matplotlib import figure as plain
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from pyloca.metrics import calibrate
from pyloca.plots._figure import Figure
from pyloca.plots._style import COLOURS, draw_points, in_unit, style

__all__ = ["plot_comparison", "plot_distances"]

Array = NDArray[np.float64]

PAIRS = 5000


def plot_distances(X: Array, Z: Array, unit: str = "", *, axes: Axes | None = None) -> plain.Figure:
    """Draw distances in the embedding against true ones, for random pairs, with a histogram of the differences.

    Parameters
    ----------
    X : (n, d) array
        True latents.
    Z : (n, e) array
        Embedding of the same points.
    unit : str, default=""
        Unit of the distances, for the labels.
    axes : matplotlib.axes.Axes, optional
        Where to draw; None: in a new figure.

    Returns
    -------
    matplotlib.figure.Figure
        The new figure, or the one that `axes` belong to.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.RandomState(0).uniform(size=(50, 2))
    >>> figure = plot_distances(X, X + 0.01, "mm")
    >>> figure.axes[0].get_xlabel()
    'distance in latent space (mm)'
    """
    if axes is None:
        with style():
            return plot_distances(X, Z, unit, axes=Figure(layout="constrained").subplots())
    random = np.random.RandomState(0)  # the same pairs on every call
    first = random.randint(len(X), size=PAIRS)
    second = (first + random.randint(1, len(X), size=PAIRS)) % len(X)
    truth, found = (np.linalg.norm(points[first] - points[second], axis=1) for points in (X, Z))
    longest = 1.04 * max(truth.max(), found.max())
    blue, red = COLOURS["blue"], COLOURS["vermilion"]
    axes.scatter(truth, found, s=8, color=blue, linewidths=0, label=f"{PAIRS} random pairs", zorder=2)
    axes.plot([0, longest], [0, longest], "--", color=red, linewidth=1, label="equal distances", zorder=3)
    axes.set(xlim=(0, longest), ylim=(0, longest), aspect="equal")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set(xlabel=f"distance in latent space{in_unit(unit)}", ylabel=f"distance in embedding{in_unit(unit)}")
    axes.legend(loc="upper left", borderaxespad=0.2, handlelength=1.6)

    # Points on the line say little once a fit is good, so their distance from it has a scale of its own.
    error = found - truth
    limit = _round_up(float(np.quantile(np.abs(error), 0.99)))
    inset = axes.inset_axes((0.60, 0.19, 0.37, 0.24))
    inset.hist(error, bins=41, range=(-limit, limit), color=blue)
    inset.axvline(0, color=red, linestyle="--", linewidth=1)
    inset.set_title("over 99 % of the pairs", fontsize=7.5, weight="normal", loc="center")
    inset.set_xlabel(f"embedding − latent{in_unit(unit)}", fontsize=7.5, labelpad=1)
    inset.set_xticks([-limit, 0, limit], [f"−{limit:.1g}", "0", f"{limit:.1g}"], fontsize=7.5)
    inset.set_yticks([])
    inset.spines["left"].set_visible(False)
    figure = axes.get_figure(root=True)
    assert isinstance(figure, plain.Figure)  # the user's own, where axes were given
    return figure


def plot_comparison(embeddings: dict[str, Array], X: Array | None = None) -> Figure:
    """Draw one column per method: its embedding and, if the truth is known, distances against the true ones.

    Each embedding is scaled by the factor that fits best and moved rigidly onto the truth, or else onto the first one.

    Parameters
    ----------
    embeddings : dict of (n, d) arrays
        By name of the method.
    X : (n, d) array, optional
        True latents.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.RandomState(0).uniform(size=(50, 2))
    >>> len(plot_comparison({"exact": X, "twice": 2 * X}, X).axes)
    4
    """
    target = next(iter(embeddings.values())) if X is None else X
    colour = target[:, min(1, target.shape[1] - 1)]
    rows, columns = (1 if X is None else 2), len(embeddings)
    with style():
        figure = Figure(figsize=(2.6 * columns, 2.9 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False)
        for column, (name, Z) in enumerate(embeddings.items()):
            if Z.shape[1] < target.shape[1]:
                Z = np.pad(Z, ((0, 0), (0, target.shape[1] - Z.shape[1])))
            moved = calibrate(target, Z, scale=True).apply(Z)
            flat = moved if moved.shape[1] > 1 else np.c_[moved, colour]
            axes = panels[0, column]
            draw_points(axes, flat[:, :2], colour)
            axes.set(aspect="equal", xlabel="$z_0$", ylabel="$z_1$" if column == 0 else "")
            axes.set_title("\n".join(re.findall("[A-Z]+(?![a-z])|[A-Z][a-z]+|[^A-Z]+", name)), fontsize=9)
            axes.set_anchor("C")
            if X is not None:
                _draw_distances(panels[1, column], X, Z, column == 0)
    return figure


def _draw_distances(axes: Axes, X: Array, Z: Array, labelled: bool) -> None:
    random = np.random.RandomState(0)
    first = random.randint(len(X), size=PAIRS)
    second = (first + random.randint(1, len(X), size=PAIRS)) % len(X)
    truth, found = (np.linalg.norm(points[first] - points[second], axis=1) for points in (X, Z))
    found *= (truth @ found) / (found @ found)  # the factor that minimises the stress
    longest = 1.04 * max(truth.max(), np.quantile(found, 0.999))
    axes.scatter(truth, found, s=3, color=COLOURS["blue"], linewidths=0, rasterized=True)
    axes.plot([0, longest], [0, longest], "--", color=COLOURS["vermilion"], linewidth=1)
    axes.set(xlim=(0, longest), ylim=(0, longest), aspect="equal", xlabel="true distance")
    axes.set(ylabel="distance in embedding" if labelled else "")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(4))


def _round_up(value: float) -> float:
    """Round up to one digit, which is what the tick shows; an exact embedding, with value 0, gives 1."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(value))
    return float(np.ceil(value / unit) * unit)
