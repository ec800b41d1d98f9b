"""Figures of a fitted model: the embedding, whitening, errors and training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Ellipse
from matplotlib.ticker import FormatStrFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.stats import chi2

from pyloca.plots._figure import Figure
from pyloca.plots._spectrum import draw_spectrum
from pyloca.plots._style import COLOURS, SEQUENTIAL, spread_rows, style

__all__ = ["MOST_AXES", "plot_ellipses", "plot_errors", "plot_map", "plot_spectrum", "plot_training", "plot_whitening"]

Array = NDArray[np.float64]

MOST_POINTS = (
    50_000  # beyond, dots would hide each other: hexagons are drawn instead, coloured by the median of their points
)
MOST_AXES = 4  # number of coordinates whose pairs are drawn
HEXAGONS = 120  # in a row
SIZE = (5.0, 4.2)  # of a single panel, in inches
ELLIPSES, LONGEST = 120, 2.5  # number drawn; a larger stretch is drawn as this one
LABEL_WIDTH = 0.11  # of the name of a stage, as a fraction of the axis


def plot_map(Z: Array, values: Array | None = None, label: str = "", *, log: bool = False) -> Figure:
    """Draw the embedding, coloured by a value per burst.

    Every pair of the first four coordinates has a panel; a single coordinate is drawn against the values. The colours
    span the 1 % to 99 % quantiles, so that a few bursts do not use up the range.

    Parameters
    ----------
    Z : (N, d) array
        Embedding.
    values : (N,) array, optional
        None: all dots have one colour.
    label : str, default=""
        Of the colour bar.
    log : bool, default=False
        Whether the colour scale is logarithmic.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.random.RandomState(0).uniform(size=(50, 2))
    >>> [axes.get_ylabel() for axes in plot_map(Z, Z[:, 0], "height").axes]
    ['$z_1$', 'height']
    """
    plain, label = values is None, label.replace("$", r"\$")  # a name is no formula
    values = np.zeros(len(Z)) if values is None else np.asarray(values, dtype=np.float64)
    norm = _norm(values, log)
    pairs = list(combinations(range(min(Z.shape[1], MOST_AXES)), 2))
    columns = min(len(pairs), 3) or 1
    rows = max(1, -(-len(pairs) // 3))
    with style():
        size = (SIZE[0], _height(Z)) if columns == 1 else (3.1 * columns + 0.8, 3.1 * rows)
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        if not pairs:
            drawn = _draw_values(panels[0], Z[:, 0], values, values, norm)
            panels[0].set(xlabel="$z_0$", ylabel=label, yscale="log" if log else "linear")
        for axes, (i, j) in zip(panels, pairs, strict=False):
            drawn = _draw_values(axes, Z[:, i], Z[:, j], values, norm)
            axes.set(xlabel=f"$z_{i}$", ylabel=f"$z_{j}$", aspect="equal")
            axes.xaxis.set_major_locator(MaxNLocator(5))
            axes.yaxis.set_major_locator(MaxNLocator(5))
        if plain:
            panels[0].set(**({} if pairs else {"yticks": []}))
            return figure
        bar = figure.colorbar(drawn, ax=panels.tolist(), extend="both", shrink=0.8, aspect=30)
        if isinstance(norm, LogNorm):
            _label_log(bar.ax.yaxis, norm.vmin, norm.vmax)
        bar.set_label(label)
    return figure


def plot_ellipses(Z: Array, pushed: Array) -> Figure:
    """Draw some bursts after the encoder as ellipses in the first two coordinates, enlarged.

    Where the encoder is an isometry, ellipses are circles of the size of the dashed one.

    Parameters
    ----------
    Z : (N, d) array
        Embedding, d ≥ 2.
    pushed : (N, k, d) array
        Tangents after the encoder, in units of σ.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If d = 1.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.random.RandomState(0).uniform(size=(50, 2))
    >>> plot_ellipses(Z, np.tile(np.eye(2), (50, 1, 1))).axes[0].get_xlabel()
    '$z_0$'
    """
    if Z.shape[1] < 2:
        raise ValueError(
            f"plot_ellipses needs at least 2 coordinates; got an embedding of shape {Z.shape}. "
            "Draw diagnostics_.losses with plot_map instead."
        )
    dots = np.sort(np.random.RandomState(0).permutation(len(Z))[: MOST_POINTS // 10])
    apart, first = np.unique(Z[dots, :2], axis=0, return_index=True)  # a collapsed embedding has copies
    rows = dots[first[spread_rows(apart, ELLIPSES)]]
    stretches = np.linalg.svd(pushed[rows], compute_uv=False)  # (n, k)
    conditions = stretches[:, 0] / np.maximum(stretches[:, -1], np.finfo(float).tiny)
    places = Z[rows, :2]
    radius = 0.4 * float(np.median(cKDTree(places).query(places, 2)[0][:, 1])) if len(rows) > 1 else 1.0
    norm = Normalize(1, max(1.5, float(np.quantile(conditions, 0.95))))
    colours = ScalarMappable(norm, SEQUENTIAL)
    with style():
        figure = Figure(figsize=(SIZE[0], _height(Z)), layout="constrained")
        axes = figure.subplots()
        axes.scatter(Z[dots, 0], Z[dots, 1], color="#CCCCCC", s=2, linewidths=0, zorder=0)
        for place, tangents, condition in zip(places, pushed[rows][:, :, :2], conditions, strict=True):
            _, lengths, directions = np.linalg.svd(tangents, full_matrices=False)
            lengths, angle = np.resize([*lengths, 0], 2), np.degrees(np.arctan2(directions[0, 1], directions[0, 0]))
            wide, high = 2 * radius * np.minimum(lengths, LONGEST)
            look: dict[str, Any] = {"facecolor": "none", "edgecolor": colours.to_rgba(condition), "linewidth": 1.3}
            axes.add_patch(Ellipse((place[0], place[1]), wide, high, angle=float(angle), **look))
        corner = Z[:, :2].min(axis=0) - 1.5 * radius
        axes.add_patch(Ellipse((corner[0], corner[1]), 2 * radius, 2 * radius, fill=False, linestyle="--"))
        axes.annotate("σ", (corner[0] + 1.4 * radius, corner[1]), va="center", fontsize=9)
        axes.set(aspect="equal", xlabel="$z_0$", ylabel="$z_1$")
        figure.colorbar(colours, ax=axes, label="longest / shortest axis", extend="max")
    return figure


def plot_whitening(losses: Array, floors: Array, k: int, held_out: NDArray[np.int64] | None = None) -> Figure:
    """Draw a histogram of the whitening losses of the bursts.

    If the bursts are samples, losses are divided by their sampling floors, and a curve shows what a perfect encoder
    would leave: (M − 1) · loss then follows χ² with k (k + 1) / 2 degrees of freedom.

    Parameters
    ----------
    losses, floors : (N,) array
        Loss of each burst, and its expected value under a perfect encoder (0 for exact covariances).
    k : int
        Intrinsic dimension.
    held_out : array of int, optional
        Bursts that were not trained on, drawn separately.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> losses = np.random.RandomState(0).chisquare(3, 200) / 30
    >>> plot_whitening(losses, np.full(200, 0.1), 2).axes[0].get_ylabel()
    'fraction of bursts'
    """
    sampled = bool(np.all(floors > 0))
    shown = np.where(np.isfinite(losses), losses, np.nan) / (floors if sampled else 1.0)
    usable = shown[shown > 0]
    with style():
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        bins = _log_bins(usable)
        groups = [("all bursts", losses > -np.inf, "blue")]
        if held_out is not None and 0 < len(held_out) < len(losses):
            held = np.isin(np.arange(len(losses)), held_out)
            groups = [("training", ~held, "blue"), ("held out", held, "orange")]
        for name, rows, colour in groups:
            values = shown[rows & (shown > 0)]
            _draw_histogram(axes, values, bins, COLOURS[colour], f"{name} ({rows.sum()})")
        if sampled:
            free = k * (k + 1) / 2
            x = np.geomspace(bins[0], bins[-1], 200)
            # The density on the logarithmic axis, times the width of a bin.
            part = chi2.pdf(free * x, free) * free * x * np.log(bins[1] / bins[0])
            axes.plot(x, part, color=COLOURS["black"], linewidth=1.3, label="sampling alone")
        axes.set(xscale="log", ylabel="fraction of bursts")
        _label_log(axes.xaxis, bins[0], bins[-1])
        axes.set_xlabel("whitening loss / sampling floor" if sampled else "whitening loss")
        axes.set_ylim(bottom=0)
        axes.legend()
    return figure


def plot_errors(errors: Array, label: str) -> Figure:
    """Draw a histogram of errors on a logarithmic axis, with their median.

    Parameters
    ----------
    errors : (N,) array
        One per burst; zeros are not drawn.
    label : str
        Of the axis.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> plot_errors(np.random.RandomState(0).lognormal(size=100), "error (mm)").axes[0].get_xlabel()
    'error (mm)'
    """
    usable = errors[errors > 0]
    with style():
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.subplots()
        bins = _log_bins(usable)
        _draw_histogram(axes, usable, bins, COLOURS["blue"], "bursts")
        if len(usable):
            middle = float(np.median(usable))
            axes.axvline(middle, color=COLOURS["black"], linestyle="--", linewidth=1.2, label=f"median {middle:.2g}")
        axes.set(xscale="log", xlabel=label, ylabel="fraction of bursts")
        _label_log(axes.xaxis, bins[0], bins[-1])
        axes.set_ylim(bottom=0)
        axes.legend()
    return figure


def plot_training(history: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the losses of a training. Lines break between stages, since each has its own objective.

    Parameters
    ----------
    history : sequence of dict
        ``model.history_``: records with "stage", "iteration", "loss" and, in some stages, "validation_loss".

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> history = [{"stage": "whiten", "iteration": i, "loss": 1 / i} for i in (50, 100, 150)]
    >>> plot_training(history).axes[0].get_xlabel()
    'iteration'
    """
    stages: list[tuple[str, list[Mapping[str, Any]]]] = []
    for record in history:
        if not stages or stages[-1][0] != record["stage"]:
            stages.append((record["stage"], []))
        stages[-1][1].append(record)
    with style():
        figure = Figure(figsize=(8.4, 3.6), layout="constrained")
        axes = figure.subplots()
        for name, colour, marker, words in (
            ("loss", "blue", "o", "training"),
            ("validation_loss", "vermilion", "s", "held out"),
        ):
            for _, records in stages:
                points = [(r["iteration"], r[name]) for r in records if name in r]
                if points:
                    x, y = np.array(points, dtype=np.float64).T
                    axes.plot(x, y, color=COLOURS[colour], marker=marker, markersize=3, linewidth=1.2, label=words)
                    words = "_"  # one entry in the legend
        at = axes.get_xaxis_transform()
        whole, start, taken, shaded = float(history[-1]["iteration"]), 0.0, -np.inf, False
        for name, records in stages:
            end = float(records[-1]["iteration"])
            middle = (start + end) / 2
            if end == start:  # an event, such as a restart
                axes.axvline(end, color="black", linewidth=0.8, linestyle=":")
                axes.text(end, 0.02, name, transform=at, ha="right", va="bottom", fontsize=8, rotation=90)
                continue
            if shaded:
                axes.axvspan(start, end, color="#F3F3F3", zorder=0, linewidth=0)
            crowded = middle - taken < LABEL_WIDTH * whole
            axes.text(middle, 1.07 if crowded else 1.01, name, transform=at, ha="center", va="bottom", fontsize=8)
            start, taken, shaded = end, -np.inf if crowded else middle, not shaded
        axes.set(yscale="log", xlabel="iteration", ylabel="objective of the stage", xlim=(0, 1.01 * start))
        axes.legend(loc="best")
    return figure


def plot_spectrum(spectrum: Array, k: int) -> Figure:
    """Draw the median eigenvalues of the burst covariances.

    Parameters
    ----------
    spectrum : (r,) array
        Largest first.
    k : int
        The first k belong to tangents.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> plot_spectrum(np.array([1.0, 0.5, 0.001]), 2).axes[0].get_title(loc="left")
    'Burst spectrum, k = 2'
    """
    with style():
        figure = Figure(figsize=SIZE, layout="constrained")
        draw_spectrum(figure.subplots(), spectrum, k)
    return figure


# -- parts ------------------------------------------------------------------------------------------------------------


def _height(Z: Array) -> float:
    """Choose the height of a figure with one panel, so that a flat embedding is not lost in white space."""
    if Z.shape[1] < 2:
        return SIZE[1]
    wide, high = np.ptp(Z[:, :2], axis=0)
    return float(np.clip(3.5 * high / wide + 0.8 if wide > 0 else SIZE[1], 3.4, 4.6))


def _norm(values: Array, log: bool) -> Normalize:
    finite = values[np.isfinite(values) & (values > 0)] if log else values[np.isfinite(values)]
    if not len(finite):
        return Normalize(0, 1)
    low, high = np.quantile(finite, [0.01, 0.99])
    if low == high:
        low, high = (low / 1.1, high * 1.1) if log else (low - 0.5, high + 0.5)
    return LogNorm(low, high) if log else Normalize(low, high)


def _draw_values(axes: Axes, x: Array, y: Array, values: Array, norm: Normalize) -> Any:
    """Draw dots, the highest values last so that none is hidden; hexagons if there are too many."""
    # A collapsed burst has an infinite loss: the brightest colour.
    values = np.clip(values, norm.vmin, norm.vmax)
    if len(x) > MOST_POINTS:
        look: dict[str, Any] = {"gridsize": HEXAGONS, "linewidths": 0.1, "reduce_C_function": np.median}
        return axes.hexbin(x, y, C=values, norm=norm, cmap=SEQUENTIAL, **look)
    order = np.argsort(values, kind="stable")
    size = float(np.clip(6000 / max(len(x), 1), 1.5, 14))
    return axes.scatter(x[order], y[order], c=values[order], norm=norm, cmap=SEQUENTIAL, s=size, linewidths=0)


def _draw_histogram(axes: Axes, values: Array, bins: Array, colour: str, label: str) -> None:
    part = np.histogram(np.clip(values, bins[0], bins[-1]), bins)[0] / max(len(values), 1)
    axes.stairs(part, bins, fill=True, color=colour, alpha=0.35, linewidth=0)
    axes.stairs(part, bins, color=colour, linewidth=1.4, label=label)


def _label_log(axis: Axis, low: float | None, high: float | None) -> None:
    """Label 1, 2 and 5 in each of fewer than two decades; matplotlib's labels of all digits would overlap."""
    if low and high and high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_formatter(NullFormatter())


def _log_bins(values: Array) -> Array:
    """Choose bins of equal width in the logarithm; the outermost 0.1 % of the values fall into the outermost bins."""
    n = int(np.clip(2 * len(values) ** (1 / 3), 12, 60))
    if not len(values):
        return np.geomspace(0.1, 10, n + 1)
    low, high = np.quantile(values, [0.001, 0.999])
    return np.geomspace(low / 1.05, high * 1.05, n + 1)
