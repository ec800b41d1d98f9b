"""Figures of bursts before any training: spectra and the closed-form alignment."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from pyloca.plots._figure import Figure
from pyloca.plots._style import COLOURS, OUTLINE, draw_points, style

__all__ = ["draw_spectrum", "plot_alignment"]

Array = NDArray[np.float64]


def plot_alignment(spectrum: Array, k: int, positions: Array | None = None, strain: float = np.nan) -> Figure:
    """Draw the median spectrum of the bursts and, if they could be aligned, their positions.

    Parameters
    ----------
    spectrum : (r,) array
        Median eigenvalues, largest first.
    k : int
        The first k belong to tangents.
    positions : (N, d) array, optional
        Of the aligned bursts.
    strain : float, optional
        Of the alignment.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.random.RandomState(0).uniform(size=(50, 2))
    >>> figure = plot_alignment(np.array([1.0, 0.5, 0.001]), 2, Z, 0.02)
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['Burst spectrum, k = 2', 'Alignment, strain 0.020']
    """
    columns = 1 if positions is None else 2
    with style():
        figure = Figure(figsize=(4.2 * columns, 3.6), layout="constrained")
        panels = figure.subplots(1, columns, squeeze=False)[0]
        draw_spectrum(panels[0], spectrum, k)
        if positions is not None:
            flat = positions if positions.shape[1] > 1 else np.c_[positions, 0 * positions]
            draw_points(panels[1], flat[:, :2], flat[:, 0])
            panels[1].set(title=f"Alignment, strain {strain:.3f}", aspect="equal", xlabel="$z_0$", ylabel="$z_1$")
    return figure


def draw_spectrum(axes: Axes, spectrum: Array, k: int) -> None:
    """Draw median eigenvalues of burst covariances, largest first, of which k belong to the tangents."""
    order = np.arange(1, len(spectrum) + 1)
    axes.plot(order, spectrum, color=OUTLINE, linewidth=0.8, zorder=1)
    for chosen, colour, name in ((order <= k, "blue", "tangent"), (order > k, "orange", "noise and curvature")):
        if chosen.any():
            axes.scatter(order[chosen], spectrum[chosen], color=COLOURS[colour], label=name, zorder=2)
    axes.legend()
    axes.set(
        yscale="log", title=f"Burst spectrum, k = {k}", xlabel="eigenvalue", ylabel="median variance", xticks=order
    )
