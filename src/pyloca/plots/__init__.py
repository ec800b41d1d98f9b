"""Figures in one style, safe for colour-blind readers and for printing.

Functions here draw plain arrays and import none of the classes that call them, so every result can have a ``plot()``.
They use matplotlib's object-oriented interface, so no display is needed and neither pyplot nor the user's settings are
touched. Needs the extra ``pyloca[report]``.
"""

from pyloca.plots._comparison import plot_comparison, plot_distances
from pyloca.plots._correlations import plot_correlations
from pyloca.plots._estimates import (
    plot_agreement,
    plot_burst_std,
    plot_component_selection,
    plot_intrinsic_dim,
    plot_shuffle_test,
)
from pyloca.plots._fitted import (
    MOST_AXES,
    plot_ellipses,
    plot_errors,
    plot_map,
    plot_spectrum,
    plot_training,
    plot_whitening,
)
from pyloca.plots._match import plot_fusion, plot_match
from pyloca.plots._quality import plot_diagnostics
from pyloca.plots._spectrum import plot_alignment
from pyloca.plots._style import COLOURS, FLOOR, OUTLINE, SEQUENTIAL, draw_points, in_unit, png, spread_rows, style

__all__ = [
    "COLOURS",
    "FLOOR",
    "MOST_AXES",
    "OUTLINE",
    "SEQUENTIAL",
    "draw_points",
    "in_unit",
    "plot_agreement",
    "plot_alignment",
    "plot_burst_std",
    "plot_comparison",
    "plot_component_selection",
    "plot_correlations",
    "plot_diagnostics",
    "plot_distances",
    "plot_ellipses",
    "plot_errors",
    "plot_fusion",
    "plot_intrinsic_dim",
    "plot_map",
    "plot_match",
    "plot_shuffle_test",
    "plot_spectrum",
    "plot_training",
    "plot_whitening",
    "png",
    "spread_rows",
    "style",
]
