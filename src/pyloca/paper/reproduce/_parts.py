"""Parts that the figures of the paper share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from pyloca.plots import COLOURS, OUTLINE, SEQUENTIAL, style

__all__ = [
    "Cloud",
    "Distances",
    "coloured",
    "label",
    "legend_below",
    "outline",
    "panels",
    "plot_all_distances",
    "sheet",
    "space",
    "value",
]

Array = NDArray[np.float64]

PAIRS = 3000
GRID = "#BDBDBD"


@dataclass(frozen=True)
class Distances:
    """Pairs of points in a plot of distance against distance: embedding Z against the truth X."""

    name: str
    X: Array
    Z: Array
    colour: str
    scaled: bool = False  # by the factor that minimises the stress
    marker: str = "o"


@dataclass(frozen=True)
class Cloud:
    """Points with their own colour and marker, for the legend."""

    name: str
    points: Array
    colour: str
    size: float = 4.0
    marker: str = "o"

    def draw(self, axes: Any, **keywords: Any) -> None:
        """Scatter the points, in the plane or in space."""
        look = {"s": self.size, "marker": self.marker, "linewidths": 0, "label": self.name, **keywords}
        axes.scatter(*self.points.T, color=COLOURS.get(self.colour, self.colour), **look)


def sheet(title: str, size: tuple[float, float]) -> Figure:
    """Make an empty figure with a bold title on the left; to be called, and drawn on, inside `style`."""
    figure = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)  # type: ignore[call-arg, union-attr]
    figure.suptitle(title, x=0.012, ha="left", weight="bold", fontsize=12)
    return figure


def panels(title: str, columns: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    """Make a figure with a row of panels under a title."""
    with style():
        figure = sheet(title, size)
        return figure, list(figure.subplots(1, columns, squeeze=False)[0])


def label(axes: Axes, title: str, x: str, y: str, *, equal: bool = True) -> None:
    """Set title and axis labels of a panel; `equal` gives both axes the same scale."""
    axes.set_title(title)
    axes.set(xlabel=x, ylabel=y)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    if equal:
        axes.set_aspect("equal", anchor="N")


def value(number: float) -> str:
    """Format 2.1e-06 as 2.1·10⁻⁶."""
    mantissa, exponent = f"{number:.1e}".split("e")
    superscript = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}·10{superscript}"


def legend_below(figure: Figure, axes: Axes, title: str = "", scale: float = 1.0) -> None:
    """Put a legend of what is labelled in `axes` in one row under all panels."""
    handles, names = axes.get_legend_handles_labels()
    look: dict[str, Any] = {"title": title or None, "markerscale": scale, "handletextpad": 0.4}
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), **look)


def space(axes: Any, title: str, elevation: float, turn: float, zoom: float = 1.1) -> None:
    """Set up a panel in three dimensions: a faint box, the same scale on every axis, no numbers."""
    axes.set_title(title)
    axes.set_aspect("equal")
    axes.set_box_aspect(axes.get_box_aspect(), zoom=zoom)
    axes.view_init(elev=elevation, azim=turn)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((1, 1, 1, 0))
        axis.set_ticklabels([])
        axis.line.set_color(GRID)
    axes.tick_params(length=0, color="none")


def outline(axes: Axes, points: Array, colour: str = OUTLINE, **keywords: Any) -> None:
    """Draw a line through points (n, 2), interrupted at nan."""
    look = {"linewidth": 1.2, "zorder": 3, **keywords}
    axes.plot(points[:, 0], points[:, 1], color=COLOURS.get(colour, colour), **look)


def plot_all_distances(axes: Axes, title: str, groups: Sequence[Distances], corner: str = "lower right") -> None:
    """Draw distances in embeddings against true ones, for random pairs of each group; the last group is on top."""
    longest = 0.0
    for group in groups:
        random = np.random.RandomState(0)
        first = random.randint(len(group.X), size=PAIRS)
        second = (first + random.randint(1, len(group.X), size=PAIRS)) % len(group.X)
        truth, found = (np.linalg.norm(points[first] - points[second], axis=1) for points in (group.X, group.Z))
        if group.scaled:
            found *= (truth @ found) / (found @ found)
        look: dict[str, Any] = {"s": 5, "linewidths": 0, "marker": group.marker, "label": group.name}
        axes.scatter(truth, found, color=COLOURS[group.colour], **look)
        longest = max(longest, truth.max(), min(float(np.quantile(found, 0.998)), 1.15 * truth.max()))
    axes.plot([0, 1.03 * longest], [0, 1.03 * longest], "--", color=COLOURS["black"], linewidth=1, label="equal")
    label(axes, title, "distance in latent space", "distance in embedding")
    axes.set(xlim=(0, 1.03 * longest), ylim=(0, 1.03 * longest))
    box: dict[str, Any] = {
        "loc": corner,
        "frameon": True,
        "edgecolor": "none",
        "framealpha": 0.85,
        "borderaxespad": 0.1,
        "handlelength": 1.4,
    }
    axes.legend(markerscale=2.5, labelspacing=0.3, fontsize=8, **box)


def coloured(axes: Any, points: Array, values: Array, **keywords: Any) -> Any:
    """Draw points (n, 2) or (n, 3), coloured by `values`."""
    look = {"s": 4, "linewidths": 0, "zorder": 2, **keywords}
    return axes.scatter(*points.T, c=values, cmap=SEQUENTIAL, **look)
