"""Pictures of data sets whose truth is known, of comparisons, and of bursts before any training; and their style."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Ellipse, Rectangle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from pyloca.datasets import Dataset
from pyloca.inspection import Inspection
from pyloca.metrics import calibrate

__all__ = [
    "COLOURS",
    "SEQUENTIAL",
    "Scene",
    "draw_spectrum",
    "overview",
    "plot_comparison",
    "plot_distances",
    "plot_inspection",
    "png",
    "spread_rows",
    "style",
]

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
TRANSMITTER: dict[str, Any] = {"marker": "^", "facecolor": COLOURS["vermilion"], "edgecolor": "white", "linewidth": 0.7}
PAIRS = 5000
SHOWN_BURSTS = 10
HEAD, FOOT = 0.65, 0.6  # inches above and below the panels, for the title and for the legend


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
    motion = calibrate(Z, data.X)
    project, axis_names = _projection(data.Y)
    height = data.X[:, 1]  # the colour of a point in every panel
    factor = scene.burst_radius / data.burst_std
    with style():
        figure, panels = _panels(scene, note)
        latent, measured, embedded = panels["a"], panels["b"], panels["c"]
        for axes in (latent, embedded):
            _draw_place(axes, data)
        _draw_points(latent, data.X, height)
        _draw_points(measured, project(data.Y), height)
        _draw_points(embedded, motion.apply(Z), height)
        if "transmitters" in data.extras:
            left, up = data.extras["transmitters"].T
            latent.scatter(left, up, s=40, zorder=6, **TRANSMITTER)
        for row in spread_rows(data.X, SHOWN_BURSTS):
            burst = data.bursts[int(row)]  # (M, D)
            _draw_ellipse(latent, data.X[row], scene.enlarge * scene.burst_radius * np.eye(2))
            _draw_burst(measured, project(burst), factor, scene.enlarge)
            _draw_burst(embedded, motion.apply(encode(burst)), factor, scene.enlarge)
        unit = _in_unit(scene.unit)
        _label(latent, "a  Latent space (hidden from LOCA)", f"$x_0${unit}", f"$x_1${unit}")
        _label(measured, "b  Measurements (all LOCA sees)", *axis_names)
        _label(embedded, "c  Embedding (what LOCA finds)", f"$z_0${unit}", f"$z_1${unit}")
        embedded.set(xlim=latent.get_xlim(), ylim=latent.get_ylim())
        plot_distances(panels["d"], data.X, Z, scene.unit)
        panels["d"].set_title("d  Distance against distance")
        _add_legend(figure, scene, "transmitters" in data.extras)
    return figure


def plot_distances(axes: Axes, X: Array, Z: Array, unit: str = "", *, random_state: int = 0) -> None:
    """Distances in the embedding Z against those in the latent space X for random pairs, with their differences."""
    random = np.random.RandomState(random_state)
    first = random.randint(len(X), size=PAIRS)
    second = (first + random.randint(1, len(X), size=PAIRS)) % len(X)
    truth, found = (np.linalg.norm(points[first] - points[second], axis=1) for points in (X, Z))
    longest = 1.04 * max(truth.max(), found.max())
    blue, red = COLOURS["blue"], COLOURS["vermilion"]
    axes.scatter(truth, found, s=8, color=blue, linewidths=0, label=f"{PAIRS} random pairs", zorder=2)
    axes.plot([0, longest], [0, longest], "--", color=red, linewidth=1, label="equal distances", zorder=3)
    axes.set(xlim=(0, longest), ylim=(0, longest), aspect="equal")
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.set(xlabel=f"distance in latent space{_in_unit(unit)}", ylabel=f"distance in embedding{_in_unit(unit)}")
    axes.legend(loc="upper left", borderaxespad=0.2, handlelength=1.6)

    # Points on the line say little once a fit is good, so their distance from it has a scale of its own.
    error = found - truth
    limit = _round_up(float(np.quantile(np.abs(error), 0.99)))
    inset = axes.inset_axes((0.60, 0.19, 0.37, 0.24))
    inset.hist(error, bins=41, range=(-limit, limit), color=blue)
    inset.axvline(0, color=red, linestyle="--", linewidth=1)
    inset.set_title("over 99 % of the pairs", fontsize=7.5, weight="normal", loc="center")
    inset.set_xlabel(f"embedding − latent{_in_unit(unit)}", fontsize=7.5, labelpad=1)
    inset.set_xticks([-limit, 0, limit], [f"−{limit:.1g}", "0", f"{limit:.1g}"], fontsize=7.5)
    inset.set_yticks([])
    inset.spines["left"].set_visible(False)


def plot_comparison(embeddings: dict[str, Array], X: Array | None = None) -> Figure:
    """A column a method: its embedding, and below, when the truth X is known, distances against the true ones.

    Embeddings are scaled by the one factor that fits best and moved rigidly onto the truth, or onto the first.
    """
    target = next(iter(embeddings.values())) if X is None else X
    colour = target[:, min(1, target.shape[1] - 1)]
    rows, columns = (1 if X is None else 2), len(embeddings)
    with style():
        figure = Figure(figsize=(2.6 * columns, 2.9 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False)
        for column, (name, Z) in enumerate(embeddings.items()):
            if Z.shape[1] < target.shape[1]:
                Z = np.pad(Z, ((0, 0), (0, target.shape[1] - Z.shape[1])))
            moved = calibrate(Z, target, scaling=True).apply(Z)
            flat = moved if moved.shape[1] > 1 else np.c_[moved, colour]
            axes = panels[0, column]
            _draw_points(axes, flat[:, :2], colour)
            axes.set(aspect="equal", xlabel="$z_0$", ylabel="$z_1$" if column == 0 else "")
            axes.set_title("\n".join(re.findall("[A-Z]+(?![a-z])|[A-Z][a-z]+|[^A-Z]+", name)), fontsize=9)
            axes.set_anchor("C")
            if X is not None:
                _draw_distances(panels[1, column], X, Z, column == 0)
    return figure


def plot_inspection(found: Inspection) -> Figure:
    """The median spectrum of the bursts, and, when they could be aligned, the closed-form picture."""
    columns = 1 if found.positions is None else 2
    with style():
        figure = Figure(figsize=(4.2 * columns, 3.6), layout="constrained")
        panels = figure.subplots(1, columns, squeeze=False)[0]
        draw_spectrum(panels[0], found.spectrum, found.intrinsic_dim)
        if found.positions is not None:
            flat = found.positions if found.positions.shape[1] > 1 else np.c_[found.positions, 0 * found.positions]
            _draw_points(panels[1], flat[:, :2], flat[:, 0])
            panels[1].set(title=f"Alignment, strain {found.strain:.3f}", aspect="equal", xlabel="$z_0$", ylabel="$z_1$")
    return figure


def draw_spectrum(axes: Axes, spectrum: Array, k: int) -> None:
    """Median eigenvalues of burst covariances, largest first, of which k belong to the tangents."""
    order = np.arange(1, len(spectrum) + 1)
    axes.plot(order, spectrum, color=OUTLINE, linewidth=0.8, zorder=1)
    for chosen, colour, name in ((order <= k, "blue", "tangent"), (order > k, "orange", "noise and curvature")):
        if chosen.any():
            axes.scatter(order[chosen], spectrum[chosen], color=COLOURS[colour], label=name, zorder=2)
    axes.legend()
    axes.set(
        yscale="log", title=f"Burst spectrum, k = {k}", xlabel="eigenvalue", ylabel="median variance", xticks=order
    )


def _draw_distances(axes: Axes, X: Array, Z: Array, labelled: bool) -> None:
    random = np.random.RandomState(0)
    first = random.randint(len(X), size=PAIRS)
    second = (first + random.randint(1, len(X), size=PAIRS)) % len(X)
    truth, found = (np.linalg.norm(points[first] - points[second], axis=1) for points in (X, Z))
    found *= (truth @ found) / (found @ found)  # the factor that makes the stress least
    longest = 1.04 * max(truth.max(), np.quantile(found, 0.999))
    axes.scatter(truth, found, s=3, color=COLOURS["blue"], linewidths=0, rasterized=True)
    axes.plot([0, longest], [0, longest], "--", color=COLOURS["vermilion"], linewidth=1)
    axes.set(xlim=(0, longest), ylim=(0, longest), aspect="equal", xlabel="true distance")
    axes.set(ylabel="distance in embedding" if labelled else "")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(4))


# -- parts ------------------------------------------------------------------------------------------------------------


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


def spread_rows(X: Array, n: int) -> NDArray[np.int64]:
    """Rows of n points that stand for all of them."""
    centres = KMeans(min(n, len(X)), n_init=1, random_state=0).fit(X).cluster_centers_
    return np.unique(np.square(X[:, None] - centres).sum(axis=2).argmin(axis=0))


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


def _draw_points(axes: Axes, points: Array, values: Array) -> None:
    axes.scatter(points[:, 0], points[:, 1], c=values, cmap=SEQUENTIAL, s=4, linewidths=0, zorder=2)


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


def _round_up(value: float) -> float:
    """To one digit, so that a tick there says what it means. 1 for the 0 of an exact embedding."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(value))
    return float(np.ceil(value / unit) * unit)


def _in_unit(unit: str) -> str:
    return f" ({unit})" if unit else ""
