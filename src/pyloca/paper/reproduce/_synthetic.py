"""Figures of section 6: the square, its frame, lines across the hole, the sphere."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pyloca.datasets import Dataset
from pyloca.estimator import LOCA
from pyloca.metrics import calibrate
from pyloca.paper.experiments import Result
from pyloca.paper.reproduce._parts import (
    Cloud,
    Distances,
    coloured,
    label,
    legend_below,
    outline,
    panels,
    plot_all_distances,
    sheet,
    space,
    value,
)
from pyloca.plots import style

__all__ = ["draw_decoder", "draw_frame", "draw_mushroom", "draw_mushroom_embeddings", "draw_sphere"]

Array = NDArray[np.float64]

SHOWN = np.array([[0.15, 0.15], [0.85, 0.2], [0.5, 0.5], [0.15, 0.85], [0.85, 0.8]])  # near here a burst is overlaid
REGIONS = {"frame": "blue", "interpolation": "orange", "extrapolation": "purple"}
METHODS = {"DM": "purple", "A-DM": "orange"}
LINES = ("blue", "vermilion", "green", "purple")
FRAME_NOTE = "Bursts lie in the frame, between the two lines; the encoder saw no points in the hole or outside."
SEGMENT = 60  # points on a side of a square that is drawn through a curved map


def draw_mushroom(result: Result) -> Figure:
    """Figure 3: latent points and measurements with bursts, and distance against distance for LOCA, A-DM and DM."""
    data, model = result.scene["data"], result.scene["model"]
    rows = [int(np.square(data.X - near).sum(axis=1).argmin()) for near in SHOWN]
    figure, (latent, measured, distances) = panels("Mushroom: isometry of the embedding", 3, (11, 4.3))
    with style():
        for axes, points in ((latent, data.X), (measured, data.Y)):
            coloured(axes, points, data.X[:, 1])
        measured_bursts = np.concatenate([data.bursts[row] for row in rows])
        # The latent clouds are not kept by the data set; f is known, so they are its inverse.
        half = np.stack([measured_bursts[:, 0] - measured_bursts[:, 1], measured_bursts.sum(axis=1)], axis=1) / 2
        latent_bursts = np.stack([half[:, 0], np.cbrt(half[:, 1])], axis=1)
        for axes, points in ((latent, latent_bursts), (measured, measured_bursts)):
            Cloud("five bursts", points, "vermilion", 2.0).draw(axes, zorder=3)
        label(latent, "a  Latent space", "$x_0$", "$x_1$")
        label(measured, "b  Measurements", "$y_0$", "$y_1$")
        legend_below(figure, latent, scale=3)
        plot_all_distances(distances, "c  Distances", _methods(result, data, model))
    return figure


def draw_mushroom_embeddings(result: Result) -> Figure:
    """Embeddings as in the paper's appendix, each moved rigidly onto the truth; the rivals are also scaled."""
    data, model, rivals = (result.scene[name] for name in ("data", "model", "rivals"))
    figure, axes = panels("Mushroom: what each method finds", 4, (11, 3.1))
    embeddings = {"LOCA": model.transform(data.Y), **{name: best.Z for name, best in rivals.items()}}
    with style():
        coloured(axes[0], data.X, data.X[:, 1])
        label(axes[0], "a  Latent space", "$x_0$", "$x_1$")
        for letter, panel, (name, Z) in zip("bcd", axes[1:], embeddings.items(), strict=True):
            coloured(panel, calibrate(data.X, Z, scale=name != "LOCA").apply(Z), data.X[:, 1])
            label(panel, f"{letter}  {name}", "$z_0$", "$z_1$")
        for panel in axes:
            panel.set(xlim=(-0.1, 1.1), ylim=(-0.1, 1.1))
    return figure


def draw_frame(result: Result) -> Figure:
    """Figure 4: the three regions in latent space, measurement and embedding, and their distances."""
    data, model = result.scene["data"], result.scene["model"]
    tests = {name: data.tests[name] for name in REGIONS}
    embedded = {name: model.transform(test.Y) for name, test in tests.items()}
    motion = calibrate(np.concatenate([test.X for test in tests.values()]), np.concatenate(list(embedded.values())))
    figure, (latent, measured, space, distances) = panels("Frame: out of sample", 4, (11, 3.7))
    with style():
        shown = slice(None, None, max(1, sum(len(test.X) for test in tests.values()) // 8000))
        for name, test in tests.items():
            views = ((latent, test.X), (measured, test.Y), (space, motion.apply(embedded[name])))
            for axes, points in views:
                Cloud(name, points[shown], REGIONS[name], 1.5).draw(axes, alpha=0.6)
        for low, high in ((0.0, 1.0), (0.1, 0.9)):
            square = _square(low, high)
            seen = data.measure(square)
            for axes, points in ((latent, square), (measured, seen), (space, motion.apply(model.transform(seen)))):
                outline(axes, points, "black")
        label(latent, "a  Latent space", "$x_0$", "$x_1$")
        label(measured, "b  Measurements", "$y_0$", "$y_1$")
        label(space, "c  Embedding", "$z_0$", "$z_1$")
        names = {name: name if name == "frame" else f"frame, {name}" for name in REGIONS}
        plot_all_distances(
            distances,
            "d  Distances",
            [
                Distances(value(result.figures[names[name]].value), test.X, embedded[name], REGIONS[name])
                for name, test in tests.items()
            ],
            "upper left",
        )
        legend_below(figure, latent, FRAME_NOTE, scale=5)
    return figure


def draw_decoder(result: Result) -> Figure:
    """Figure 5: lines across the hole, in latent space, measured, in the embedding, and decoded from it."""
    data, model, latent, embedded, decoded = (
        result.scene[name] for name in ("data", "model", "latent", "embedded", "decoded")
    )
    motion = calibrate(data.X, model.transform(data.Y))
    code = motion.apply(embedded.reshape(-1, 2)).reshape(latent.shape)
    decoded = decoded.reshape(latent.shape)
    pushed = data.measure(latent.reshape(-1, 2)).reshape(latent.shape)
    n = latent.shape[1] // 2  # horizontal lines first, then vertical ones
    shown = dict(zip((n // 4, 3 * n // 4, n + n // 4, n + 3 * n // 4), LINES, strict=True))
    figure, axes = panels("Decoder: new measurements from straight lines in the embedding", 4, (11, 3.1))
    frame = (data.X, data.Y, motion.apply(model.transform(data.Y)), data.Y)
    titles = ("a  Latent lines", "b  Measured", "c  Lines in the embedding", "d  Decoded (dashed: b)")
    names = ("x", "y", "z", "y")
    with style():
        for panel, lines, around, title, name in zip(
            axes, (latent, pushed, code, decoded), frame, titles, names, strict=True
        ):
            Cloud("bursts", around, "#BDBDBD", 2.0).draw(panel)
            grid = lines[:, ::10]  # every tenth line, faintly
            for line in grid.transpose(1, 0, 2):
                outline(panel, line, "#4D4D4D", linewidth=0.4, zorder=2)
            for row, colour in shown.items():
                outline(panel, lines[:, row], colour, linewidth=2, zorder=4)
                if panel is axes[3]:
                    outline(panel, pushed[:, row], "black", linewidth=1, linestyle=(0, (2, 3)), zorder=5)
            label(panel, title, f"${name}_0$", f"${name}_1$")
    return figure


def draw_sphere(result: Result) -> Figure:
    """Figure 6: the strip and the unseen cap of the sphere, its projection, the embedding, and distances."""
    data, model = result.scene["data"], result.scene["model"]
    cap = data.tests["cap"]
    Z, Z_cap = model.transform(data.Y), model.transform(cap.Y)
    motion = calibrate(data.X, Z)
    polar = np.arccos(np.clip(data.X[:, 2], -1, 1))
    with style():
        figure = sheet("Sphere: three coordinates from a projection with two", (11, 3.8))
        latent = figure.add_subplot(1, 4, 1, projection="3d")
        measured = figure.add_subplot(1, 4, 2)
        embedded = figure.add_subplot(1, 4, 3, projection="3d")
        distances = figure.add_subplot(1, 4, 4)
        for axes, points, unseen, title in (
            (latent, data.X, cap.X, "a  Latent sphere"),
            (embedded, motion.apply(Z), motion.apply(Z_cap), "c  Embedding"),
        ):
            coloured(axes, points, polar, s=8, depthshade=False)
            Cloud("unseen cap", unseen, "vermilion", 14, "D").draw(axes, depthshade=False)
            space(axes, title, elevation=-15, turn=-60)
        tint = coloured(measured, data.Y, polar, s=7)
        Cloud("unseen cap", cap.Y, "vermilion", 12, "D").draw(measured)
        label(measured, "b  Measurements", "$y_0$", "$y_1$")
        bar = figure.colorbar(
            tint, ax=[latent, measured, embedded, distances], location="bottom", shrink=0.25, aspect=40, pad=0.02
        )
        bar.set_label("polar angle α")
        measured.set_ylim(top=2.3)  # room for the legend
        measured.legend(loc="upper left", borderaxespad=0.1, handletextpad=0.1, markerscale=1.3)
        groups = _methods(result, data, model, "sphere")
        merit = result.figures["sphere, unseen cap"].value
        groups.append(Distances(f"LOCA, cap {value(merit)}", cap.X, Z_cap, "vermilion"))
        plot_all_distances(distances, "d  Distances", groups)
    return figure


# -- parts ------------------------------------------------------------------------------------------------------------


def _methods(result: Result, data: Dataset, model: LOCA, name: str = "mushroom") -> list[Distances]:
    """List the rivals, then LOCA to be drawn on top, each with its stress."""
    rivals = result.scene["rivals"]
    groups = [
        Distances(f"{rival} {value(rivals[rival].stress)}", data.X, rivals[rival].Z, colour, scaled=True)
        for rival, colour in METHODS.items()
    ]
    return [*groups, Distances(f"LOCA {value(result.figures[name].value)}", data.X, model.transform(data.Y), "blue")]


def _square(low: float, high: float) -> Array:
    """Return the closed boundary of [low, high]², (4 SEGMENT, 2)."""
    corners = np.array([[low, low], [high, low], [high, high], [low, high], [low, low]])
    step = np.linspace(0, 1, SEGMENT)[:, None]
    return np.concatenate([(1 - step) * a + step * b for a, b in pairwise(corners)])
