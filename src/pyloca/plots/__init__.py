"""Pictures in one style: safe for colour-blind eyes and for printers, no display and no global state.

Figures are made with matplotlib's object-oriented interface, so neither pyplot nor a user's settings are touched. Needs
the extra ``pyloca[report]``.
"""

from pyloca.plots._choices import (
    plot_agreement,
    plot_burst_std,
    plot_component_selection,
    plot_intrinsic_dim,
    plot_shuffle_test,
)
from pyloca.plots._figures import (
    COLOURS,
    Scene,
    overview,
    plot_comparison,
    plot_distances,
    plot_inspection,
    png,
    style,
)
from pyloca.plots._fit import (
    MOST_AXES,
    plot_ellipses,
    plot_errors,
    plot_map,
    plot_spectrum,
    plot_training,
    plot_whitening,
)

__all__ = [
    "COLOURS",
    "MOST_AXES",
    "Scene",
    "overview",
    "plot_agreement",
    "plot_burst_std",
    "plot_comparison",
    "plot_component_selection",
    "plot_distances",
    "plot_ellipses",
    "plot_errors",
    "plot_inspection",
    "plot_intrinsic_dim",
    "plot_map",
    "plot_shuffle_test",
    "plot_spectrum",
    "plot_training",
    "plot_whitening",
    "png",
    "style",
]
