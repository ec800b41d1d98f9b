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
    """What a data set cannot say itself about how to draw it.

    Attributes
    ----------
    title : str
    burst : str
        What the legend calls a burst.
    burst_radius : float
        Of the circle that stands for a burst in the latent space, in its units.
    unit : str
        Of the latent space; "" when it has none.
    enlarge : float
        Bursts are drawn this many times as large as they are.
    mosaic : str
        Where the panels a to d lie, as `matplotlib.figure.Figure.subplot_mosaic` has it.
    size : (float, float)
        Of the figure, in inches.
    """

    title: str
    burst: str
    burst_radius: float
    unit: str = ""
    enlarge: float = 1.0
    mosaic: str = "ab;cd"
    size: tuple[float, float] = (8.0, 9.0)


def overview(data: Dataset, encode: Callable[[Array], Array], scene: Scene, note: str = "") -> Figure:
    """Four panels of a data set with d = 2: latent space, measurement, embedding, and distance against distance.

    `encode` is the fitted ``transform``; `note` stands below the title. The embedding is moved rigidly onto the latent
    space so that an eye can compare the two; that changes no distance.
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
        axes.set_aspect("equal", anchor="N")  # titles of a row on one line
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
        "For display only, c is turned, mirrored and shifted onto a: that changes no distance, and nothing is scaled.",
        ha="center",
        fontsize=8,
    )


def _projection(Y: Array) -> tuple[Callable[[Array], Array], tuple[str, str]]:
    """Measurements to the plane: themselves when D = 2, else along their first two principal axes."""
    dim = Y.shape[1]
    if dim == 2:
        return lambda y: y, ("$y_0$", "$y_1$")
    mean = Y.mean(axis=0)
    directions = np.linalg.svd(Y - mean, full_matrices=False)[2][:2].T  # (D, 2)
    directions *= np.sign(directions[np.abs(directions).argmax(axis=0), [0, 1]])  # an SVD leaves the sign open
    names = (f"1st principal component of {dim} signals", "2nd principal component")
    return lambda y: (y - mean) @ directions, names


def _draw_place(axes: Axes, data: Dataset) -> None:
    """The floor plan, or the unit square, under the points."""
    rooms = data.extras.get("rooms", np.array([[0.0, 0.0, 1.0, 1.0]]))
    shapes = [Rectangle((left, low), right - left, high - low) for left, low, right, high in rooms]
    # Edges first and areas upon them: what remains visible is the outline of the union.
    axes.add_collection(PatchCollection(shapes, facecolor="none", edgecolor=OUTLINE, linewidth=2.4, zorder=0))
    axes.add_collection(PatchCollection(shapes, facecolor=FLOOR, edgecolor=FLOOR, linewidth=0.2, zorder=1))


def _draw_ellipse(axes: Axes, centre: Array, half_axes: Array) -> None:
    """An ellipse with the rows of `half_axes` (2, 2), which are orthogonal."""
    lengths = 2 * np.linalg.norm(half_axes, axis=1)
    angle = float(np.degrees(np.arctan2(half_axes[0, 1], half_axes[0, 0])))
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": COLOURS["black"], "linewidth": 0.8}
    axes.add_patch(Ellipse((centre[0], centre[1]), lengths[0], lengths[1], angle=angle, zorder=4, **look))


def _draw_burst(axes: Axes, cloud: Array, factor: float, enlarge: float) -> None:
    """The points of a burst (M, 2), and the ellipse of `factor` standard deviations of them."""
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
