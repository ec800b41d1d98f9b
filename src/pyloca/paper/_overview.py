"""Four panels of a data set with a known truth: latent space, measurements, embedding, and distances."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse, Rectangle
from numpy.typing import NDArray

from pyloca.datasets import Dataset
from pyloca.metrics import calibrate
from pyloca.plots import COLOURS, FLOOR, OUTLINE, SEQUENTIAL, draw_points, in_unit, plot_distances, spread_rows, style

__all__ = ["Scene", "overview"]

Array = NDArray[np.float64]

TRANSMITTER: dict[str, Any] = {"marker": "^", "facecolor": COLOURS["vermilion"], "edgecolor": "white", "linewidth": 0.7}
SHOWN_BURSTS = 10
HEAD, FOOT = 0.65, 0.6  # inches above and below the panels, for the title and for the legend


@dataclass(frozen=True)
class Scene:
    """How to draw a data set.

    Attributes
    ----------
    title : str
    burst : str
        Name of a burst in the legend.
    burst_radius : float
        Radius of the circle that represents a burst in the latent space, in its units.
    unit : str
        Unit of the latent space; "" if it has none.
    enlarge : float
        Factor by which bursts are drawn larger than they are.
    mosaic : str
        Layout of the panels a to d, as for `matplotlib.figure.Figure.subplot_mosaic`.
    size : (float, float)
        Size of the figure in inches.
    """

    title: str
    burst: str
    burst_radius: float
    unit: str = ""
    enlarge: float = 1.0
    mosaic: str = "ab;cd"
    size: tuple[float, float] = (8.0, 9.0)


def overview(data: Dataset, encode: Callable[[Array], Array], scene: Scene, note: str = "") -> Figure:
    """Draw a data set with d = 2: latent space, measurements, embedding, and distance against distance.

    The embedding is moved rigidly onto the latent space for comparison, which changes no distance.

    Parameters
    ----------
    data : Dataset
    encode : callable
        The fitted encoder, (…, D) → (…, 2).
    scene : Scene
    note : str, default=""
        Text below the title.

    Returns
    -------
    matplotlib.figure.Figure
    """
    Z = encode(data.Y)
    motion = calibrate(data.X, Z)
    project, axis_names = _projection(data.Y)
    height = data.X[:, 1]  # the colour of a point in every panel
    factor = scene.burst_radius / data.burst_std
    with style():
        figure, panels = _panels(scene, note)
        latent, measured, embedded = panels["a"], panels["b"], panels["c"]
        for axes in (latent, embedded):
            _draw_place(axes, data)
        draw_points(latent, data.X, height)
        draw_points(measured, project(data.Y), height)
        draw_points(embedded, motion.apply(Z), height)
        if "transmitters" in data.extras:
            left, up = data.extras["transmitters"].T
            latent.scatter(left, up, s=40, zorder=6, **TRANSMITTER)
        for row in spread_rows(data.X, SHOWN_BURSTS):
            burst = data.bursts[int(row)]  # (M, D)
            _draw_ellipse(latent, data.X[row], scene.enlarge * scene.burst_radius * np.eye(2))
            _draw_burst(measured, project(burst), factor, scene.enlarge)
            _draw_burst(embedded, motion.apply(encode(burst)), factor, scene.enlarge)
        unit = in_unit(scene.unit)
        _label(latent, "a  Latent space (hidden from LOCA)", f"$x_0${unit}", f"$x_1${unit}")
        _label(measured, "b  Measurements (all LOCA sees)", *axis_names)
        _label(embedded, "c  Embedding (what LOCA finds)", f"$z_0${unit}", f"$z_1${unit}")
        embedded.set(xlim=latent.get_xlim(), ylim=latent.get_ylim())
        plot_distances(data.X, Z, scene.unit, axes=panels["d"])
        panels["d"].set_title("d  Distance against distance")
        _add_legend(figure, scene, "transmitters" in data.extras)
    return figure


def _panels(scene: Scene, note: str) -> tuple[Figure, dict[str, Axes]]:
    width, height = scene.size
    figure = Figure(figsize=scene.size, layout="constrained")
    inside = (0.01, FOOT / height, 0.98, 1 - (HEAD + FOOT) / height)
    figure.get_layout_engine().set(rect=inside, w_pad=0.1, h_pad=0.1)  # type: ignore[call-arg, union-attr]
    figure.text(0.2 / width, 1 - 0.1 / height, scene.title, va="top", fontsize=12, weight="bold")
    figure.text(0.2 / width, 1 - 0.36 / height, note, va="top")
    panels: dict[str, Axes] = figure.subplot_mosaic(scene.mosaic)
    for axes in panels.values():
        axes.set_aspect("equal", anchor="N")  # so that the titles of a row are aligned
    return figure, panels


def _add_legend(figure: Figure, scene: Scene, has_transmitters: bool) -> None:
    def marker(shape: str, label: str, **keywords: Any) -> Line2D:
        return Line2D([], [], linestyle="none", marker=shape, label=label, **keywords)

    enlarged = "" if scene.enlarge == 1 else f", drawn {scene.enlarge:g}× as large"
    handles = [
        marker("o", "burst centre (colour: latent $x_1$)", markersize=4, color=SEQUENTIAL(0.5)),
        marker("o", scene.burst + enlarged, markersize=9, markerfacecolor="white", color=COLOURS["black"]),
    ]
    if has_transmitters:
        handles.append(marker(TRANSMITTER["marker"], "transmitter", markersize=6, color=TRANSMITTER["facecolor"]))
    height = scene.size[1]
    at = (0.5, 0.26 / height)
    figure.legend(handles=handles, loc="lower center", bbox_to_anchor=at, ncols=3, handletextpad=0.3, borderpad=0)
    figure.text(
        0.5,
        0.1 / height,
        "For display only, c is rotated, reflected and shifted onto a; this changes no distance. Nothing is scaled.",
        ha="center",
        fontsize=8,
    )


def _projection(Y: Array) -> tuple[Callable[[Array], Array], tuple[str, str]]:
    """Map measurements to the plane: unchanged if D = 2, else onto their first two principal axes."""
    dim = Y.shape[1]
    if dim == 2:
        return lambda y: y, ("$y_0$", "$y_1$")
    mean = Y.mean(axis=0)
    directions = np.linalg.svd(Y - mean, full_matrices=False)[2][:2].T  # (D, 2)
    directions *= np.sign(directions[np.abs(directions).argmax(axis=0), [0, 1]])  # an SVD does not determine the sign
    names = (f"1st principal component of {dim} signals", "2nd principal component")
    return lambda y: (y - mean) @ directions, names


def _draw_place(axes: Axes, data: Dataset) -> None:
    """Draw the floor plan, or the unit square, under the points."""
    rooms = data.extras.get("rooms", np.array([[0.0, 0.0, 1.0, 1.0]]))
    shapes = [Rectangle((left, low), right - left, high - low) for left, low, right, high in rooms]
    # Edges first and areas upon them: what remains visible is the outline of the union.
    axes.add_collection(PatchCollection(shapes, facecolor="none", edgecolor=OUTLINE, linewidth=2.4, zorder=0))
    axes.add_collection(PatchCollection(shapes, facecolor=FLOOR, edgecolor=FLOOR, linewidth=0.2, zorder=1))


def _draw_ellipse(axes: Axes, centre: Array, half_axes: Array) -> None:
    """Draw an ellipse whose half axes are the rows of `half_axes` (2, 2), which are orthogonal."""
    lengths = 2 * np.linalg.norm(half_axes, axis=1)
    angle = float(np.degrees(np.arctan2(half_axes[0, 1], half_axes[0, 0])))
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": COLOURS["black"], "linewidth": 0.8}
    axes.add_patch(Ellipse((centre[0], centre[1]), lengths[0], lengths[1], angle=angle, zorder=4, **look))


def _draw_burst(axes: Axes, cloud: Array, factor: float, enlarge: float) -> None:
    """Draw the points of a burst (M, 2), and the ellipse of `factor` standard deviations."""
    centre = cloud.mean(axis=0)
    points = enlarge * (cloud - centre)
    _, singular, directions = np.linalg.svd(points, full_matrices=False)
    _draw_ellipse(axes, centre, factor * (singular / np.sqrt(len(cloud) - 1))[:, None] * directions)
    size = 5.0 if len(cloud) < 20 else 0.7
    x, y = (centre + points).T
    axes.scatter(x, y, s=size, color=COLOURS["black"], linewidths=0, zorder=5)


def _label(axes: Axes, title: str, x: str, y: str) -> None:
    axes.set_title(title)
    axes.set(xlabel=x, ylabel=y)
