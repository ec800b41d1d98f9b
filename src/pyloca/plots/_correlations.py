"""Canonical correlations of two instruments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pyloca.plots._figure import Figure
from pyloca.plots._style import COLOURS, style

__all__ = ["plot_correlations"]

Array = NDArray[np.float64]


def plot_correlations(correlations: Array, p_values: Array, n_shared: int) -> Figure:
    """Draw canonical correlations as bars, the common ones in colour.

    Parameters
    ----------
    correlations, p_values : (r,) arrays
    n_shared : int
        How many of them are common.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = plot_correlations(np.array([0.99, 0.2]), np.array([0.001, 0.4]), 1)
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['p = 0.001', 'p = 0.4']
    """
    with style():
        figure = Figure(figsize=(max(3.5, 1.0 + 0.9 * len(correlations)), 3.0), layout="constrained")
        axes = figure.subplots()
        colours = [COLOURS["blue"] if i < n_shared else "#BBBBBB" for i in range(len(correlations))]
        axes.bar(range(len(correlations)), correlations, color=colours)
        for i, (value, p) in enumerate(zip(correlations, p_values, strict=True)):
            axes.annotate(f"p = {p:.2g}", (i, value), ha="center", va="bottom", fontsize=8)
        axes.set(xticks=range(len(correlations)), ylim=(0, 1.12), xlabel="direction", ylabel="correlation")
    return figure
