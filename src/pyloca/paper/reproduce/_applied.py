"""Figures of section 7, of the dimension and of the three instruments."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from pyloca.metrics import calibrate
from pyloca.paper.experiments import Result
from pyloca.paper.reproduce._parts import Cloud, coloured, label, legend_below, outline, panels, sheet, space, value
from pyloca.plots import COLOURS, style

__all__ = ["draw_dimension", "draw_flatten", "draw_invariance", "draw_wifi", "wall_lines"]

Array = NDArray[np.float64]

ZOOM = 110  # half the side of the magnified part of the photograph, in pixels
WALL_STEP = 4.0  # pixels between points of a wall
LOOKS = (("blue", "o"), ("orange", "s"), ("green", "D"))


def draw_flatten(result: Result) -> Figure:
    """Figure 7: the photograph with its reconstructed spots, and the flattened grid over the true one."""
    photo, model, truth, flat = (result.scene[name] for name in ("photo", "model", "truth", "flat"))
    decoded = model.inverse_transform(model.embedding_)
    middle = photo.Y.mean(axis=0)
    figure, (whole, detail, flattened) = panels("Flattening a photograph of a bent sheet", 3, (11, 4.5))
    with style():
        for axes in (whole, detail):
            axes.imshow(photo.image, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        whole.add_patch(
            Rectangle(tuple(middle - ZOOM), 2 * ZOOM, 2 * ZOOM, fill=False, edgecolor=COLOURS["orange"], linewidth=2)
        )
        Cloud("decoded spot", decoded, "vermilion", 22, "+").draw(detail, linewidths=1.2)
        detail.legend(loc="upper right", framealpha=1, frameon=True, edgecolor="none", borderaxespad=0.3)
        label(whole, "a  Photograph", "pixels", "pixels")
        label(detail, "b  Magnified, with decoded spots", "pixels", "")
        detail.set(xlim=(middle[0] - ZOOM, middle[0] + ZOOM), ylim=(middle[1] + ZOOM, middle[1] - ZOOM))  # rows go down
        for line in np.linspace(0, 1, 50):
            for points in ([[line, 0], [line, 1]], [[0, line], [1, line]]):
                outline(flattened, np.array(points), "#9E9E9E", linewidth=0.4, zorder=1)
        Cloud("spot, flattened", flat, "vermilion", 5).draw(flattened, zorder=3)
        corners = truth[[np.square(truth - corner).sum(axis=1).argmin() for corner in photo.X[photo.corners]]]
        Cloud("corner, used to calibrate", corners, "blue", 60, "x").draw(flattened, linewidths=2, zorder=4)
        merit = result.figures["flatten"].value
        label(flattened, f"c  Flattened: RMS {100 * merit:.2g} % of a side", "sheet", "")
        legend_below(figure, flattened, scale=1.3)
    return figure


def draw_wifi(result: Result) -> Figure:
    """Figure 8: the floor with walls, transmitters and places, and the recovered walls and places."""
    data, model = result.scene["data"], result.scene["model"]
    Z = model.transform(data.Y)
    motion = calibrate(data.X, Z)
    walls = wall_lines(data.extras["rooms"])
    solid = np.isfinite(walls[:, 0])
    recovered = np.full_like(walls, np.nan)
    recovered[solid] = motion.apply(model.transform(data.measure(walls[solid])))
    error = np.linalg.norm(motion.apply(Z) - data.X, axis=1)
    figure, (floor, found, wrong) = panels("Wi-Fi: a floor plan from signal strengths", 3, (11, 7.0))
    with style():
        coloured(floor, data.X, data.X[:, 1])
        coloured(found, motion.apply(Z), data.X[:, 1])
        tint = coloured(wrong, data.X, error, vmin=0)
        for axes in (floor, wrong):
            outline(axes, walls, "black", linewidth=1.8)
        outline(found, walls, "black", linewidth=4, alpha=0.35, label="true wall")
        outline(found, recovered, "vermilion", linewidth=1.4, linestyle="--", label="recovered wall", zorder=4)
        Cloud("transmitter", data.extras["transmitters"], "vermilion", 45, "^").draw(
            floor, zorder=6, edgecolors="white", linewidths=0.7
        )
        label(floor, "a  Floor (hidden from LOCA)", "$x_0$ (px)", "$x_1$ (px)")
        label(found, "b  Embedding, moved rigidly onto it", "$z_0$ (px)", "")
        label(wrong, "c  Position error", "$x_0$ (px)", "")
        for axes in (floor, found):
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.09), ncols=2, markerscale=1.1)
        bar = figure.colorbar(tint, cax=wrong.inset_axes((0.1, -0.14, 0.8, 0.015)), orientation="horizontal")
        bar.set_label(f"distance (px); root mean square {np.sqrt(np.mean(error**2)):.2g}")
    return figure


def wall_lines(rooms: Array, step: float = WALL_STEP) -> Array:
    """Return the outline of the union of rooms (r, 4) as points (n, 2), with nan at every door and corner."""
    lines = []
    for left, low, right, high in rooms:
        sides = (
            ((left, low), (right, low), (0, -1)),
            ((right, low), (right, high), (1, 0)),
            ((right, high), (left, high), (0, 1)),
            ((left, high), (left, low), (-1, 0)),
        )
        for start, end, outward in sides:
            start_, end_ = np.array(start), np.array(end)
            count = int(np.ceil(np.linalg.norm(end_ - start_) / step)) + 1
            points = start_ + np.linspace(0, 1, count)[:, None] * (end_ - start_)
            beyond = points + 1e-3 * np.array(outward)
            inside = np.zeros(count, dtype=bool)
            for a, b, c, d in rooms:
                inside |= (beyond[:, 0] > a) & (beyond[:, 0] < c) & (beyond[:, 1] > b) & (beyond[:, 1] < d)
            lines += [np.where(inside[:, None], np.nan, points), np.full((1, 2), np.nan)]
    return np.concatenate(lines)


def draw_dimension(result: Result) -> Figure:
    """Figure 11: held-out whitening loss above the sampling floor, by dimension; the selected one is ringed."""
    figure, (axes,) = panels("Dimension: how many coordinates are needed?", 1, (6, 4.2))
    with style():
        axes.axvspan(0.5, 1.7, color="#EEEEEE", zorder=0)
        axes.axhline(0, color=COLOURS["black"], linewidth=0.8, linestyle=":")
        last = 2
        for (name, found), (colour, marker) in zip(result.scene["selections"].items(), LOOKS, strict=True):
            needed = found.n_components
            text = f"{name}: d = {needed}"
            axes.plot(found.candidates, found.excess, color=COLOURS[colour], marker=marker, markersize=5, label=text)
            ring: dict[str, Any] = {"s": 170, "facecolor": "none", "edgecolor": COLOURS[colour], "linewidth": 1.8}
            axes.scatter([needed], [found.excess[found.candidates.index(needed)]], **ring, zorder=4)
            last = max(last, *found.candidates)
        axes.set_yscale("symlog", linthresh=0.01)
        axes.set(xlim=(0.5, last + 0.5), xticks=range(1, last + 1), xlabel="embedding dimension d")
        axes.set_ylabel("held-out whitening loss − sampling floor")
        across = axes.get_xaxis_transform()  # x in data, y from 0 to 1
        axes.text(1.1, 0.5, "d < k: no isometry", rotation=90, ha="center", va="center", transform=across)
        axes.legend(loc="upper right", title="selected (ringed)", alignment="left")
    return figure


def draw_invariance(result: Result) -> Figure:
    """Measurements of three instruments, and their embeddings laid over each other."""
    X, embeddings, measured = (result.scene[name] for name in ("X", "embeddings", "measured"))
    first = next(iter(embeddings.values()))
    onto_truth = calibrate(X, first)
    moved = {name: onto_truth.apply(calibrate(first, Z).apply(Z)) for name, Z in embeddings.items()}
    with style():
        figure = sheet("Three instruments, one picture", (11, 3.7))
        for column, (name, Y) in enumerate(measured.items(), start=1):
            title = f"{'abc'[column - 1]}  {name}"
            if Y.shape[1] == 3:
                panel = figure.add_subplot(1, 4, column, projection="3d")
                coloured(panel, Y, X[:, 0], depthshade=False)
                space(panel, title, elevation=12, turn=-70)
            else:
                panel = figure.add_subplot(1, 4, column)
                flat, x, y = _plane(Y)
                coloured(panel, flat, X[:, 0])
                label(panel, title, x, y)
        overlay = figure.add_subplot(1, 4, 4)
        for (name, Z), (colour, marker), size in zip(moved.items(), LOOKS, (26, 12, 4), strict=True):
            hollow = {"facecolors": "none", "linewidths": 0.6} if size > 10 else {}
            shown = Z[:400]
            Cloud(name, shown, colour, size, marker).draw(overlay, **hollow)
        rms = result.figures["invariance, RMS"].value
        label(overlay, "d  All embeddings", "$z_0$", "$z_1$")
        legend_below(
            figure, overlay, f"Panel d: each moved rigidly onto the first; the worst pair differs by RMS {value(rms)}"
        )
    return figure


def _plane(Y: Array) -> tuple[Array, str, str]:
    """Map measurements to the plane: unchanged if D = 2, else onto two principal axes."""
    if Y.shape[1] == 2:
        return Y, "$y_0$", "$y_1$"
    centred = Y - Y.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2][:2].T
    return centred @ axes, "1st principal axis", "2nd principal axis"
