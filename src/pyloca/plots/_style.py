"""One style for all pictures: safe for colour-blind eyes and for printers, no display and no global state."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.cluster import KMeans

__all__ = ["COLOURS", "FLOOR", "OUTLINE", "SEQUENTIAL", "draw_points", "in_unit", "png", "spread_rows", "style"]

Array = NDArray[np.float64]

# Okabe & Ito (2008): told apart by every kind of colour vision, and most of them in grey.
COLOURS = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "purple": "#CC79A7",
}
FLOOR, OUTLINE = "#F0F0F0", "#4D4D4D"
# Viridis without its last tenth: that yellow is lost on white paper.
SEQUENTIAL = ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0, 0.9, 256)), "viridis90")
STYLE: Any = {  # Any: the type of a valid key differs between versions of matplotlib
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib, so a picture is the same everywhere
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "savefig.dpi": 200,
}


@contextmanager
def style() -> Iterator[None]:
    """Use the style of this module inside a ``with``; settings are as before afterwards."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # a user's matplotlibrc must not change our pictures
        matplotlib.rcParams.update(STYLE)
        yield


def png(figure: Figure) -> bytes:
    """The figure as the bytes of a PNG file."""
    with style(), io.BytesIO() as file:
        figure.savefig(file, format="png", metadata={"Software": None})  # no version in it: same picture, same bytes
        return file.getvalue()


def spread_rows(X: Array, n: int) -> NDArray[np.int64]:
    """Rows of n points that stand for all of them."""
    centres = KMeans(min(n, len(X)), n_init=1, random_state=0).fit(X).cluster_centers_
    return np.unique(np.square(X[:, None] - centres).sum(axis=2).argmin(axis=0))


def draw_points(axes: Axes, points: Array, values: Array) -> None:
    """Dots at points (n, 2), coloured by `values` (n,)."""
    axes.scatter(points[:, 0], points[:, 1], c=values, cmap=SEQUENTIAL, s=4, linewidths=0, zorder=2)


def in_unit(unit: str) -> str:
    """A unit as it stands behind the label of an axis."""
    return f" ({unit})" if unit else ""
