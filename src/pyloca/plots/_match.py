"""What two instruments saw, laid onto each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pyloca.plots._figure import Figure
from pyloca.plots._style import COLOURS, style

__all__ = ["plot_fusion", "plot_match"]

Array = NDArray[np.float64]


def plot_match(own: Array, placed: Sequence[tuple[str, Array]], names: tuple[str, str]) -> Figure:
    """Draw the embedded bursts of two instruments in the coordinates of the first, in their first two coordinates.

    Parameters
    ----------
    own : (n, d) array
        Of the first instrument.
    placed : sequence of (str, (m, d) array)
        One panel each: its title, and the second instrument in the coordinates of the first.
    names : (str, str)
        Of the instruments.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = plot_match(np.zeros((3, 2)), [("best", np.ones((4, 2)))], ("radio", "camera"))
    >>> figure.axes[0].get_title(loc="left")
    'best'
    """
    columns = min(len(placed), 4)
    rows = -(-len(placed) // 4)
    with style():
        figure = Figure(figsize=(max(4.5, 3.0 * columns), 3.4 * rows if columns > 1 else 4.2), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes in panels[len(placed) :]:
            axes.set_axis_off()
        for axes, (title, other) in zip(panels, placed, strict=False):
            for points, name, colour in ((own, names[0], "blue"), (other, names[1], "vermilion")):
                flat = np.column_stack([points[:, :2], np.zeros(len(points))])[:, :2]
                label = name.replace("$", r"\$")
                axes.scatter(flat[:, 0], flat[:, 1], s=7, color=COLOURS[colour], alpha=0.6, linewidths=0, label=label)
            axes.set(title=title.replace("$", r"\$"), xlabel="$z_0$", ylabel="$z_1$", aspect="equal")
        panels[0].legend(loc="best", markerscale=2)
    return figure


def plot_fusion(placed: Sequence[tuple[str, Array]]) -> Figure:
    """Draw the embedded bursts of several instruments in common coordinates, the first two of them.

    Parameters
    ----------
    placed : sequence of (str, (n, d) array)
        Name and places of each instrument.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = plot_fusion([("radio", np.zeros((3, 2))), ("camera", np.ones((4, 2)))])
    >>> len(figure.axes[0].collections)
    2
    """
    colours = [COLOURS[name] for name in ("blue", "vermilion", "green", "purple", "orange", "sky", "black", "yellow")]
    with style():
        figure = Figure(figsize=(5.0, 4.6), layout="constrained")
        axes = figure.subplots()
        for i, (name, points) in enumerate(placed):
            flat = np.column_stack([points[:, :2], np.zeros(len(points))])[:, :2]
            colour = colours[i % len(colours)]
            axes.scatter(
                flat[:, 0], flat[:, 1], s=7, color=colour, alpha=0.6, linewidths=0, label=name.replace("$", r"\$")
            )
        axes.set(xlabel="$z_0$", ylabel="$z_1$", aspect="equal")
        axes.legend(loc="best", markerscale=2)
    return figure
