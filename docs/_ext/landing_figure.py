"""The picture of the landing page: what goes in and what comes out, for the light and for the dark theme."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch, Rectangle
from sklearn.decomposition import PCA
from sphinx.application import Sphinx

from pyloca import LOCA, datasets
from pyloca.datasets import Dataset
from pyloca.metrics import calibrate, place_errors

N_BURSTS = 2000
WINDOW, ENLARGED = 0.06, 7  # of the inset, in sizes of the picture; of the bursts in it


def draw(data: Dataset, Z: np.ndarray, ink: str) -> Figure:
    """Draw the signals with some of the bursts enlarged, and the recovered places turned onto the true plan."""
    X, raw = data.X, data.bursts.to_array()  # (N, 2), (N, M, D)
    plane = PCA(2).fit(data.Y)
    means = plane.transform(data.Y)
    figure = plt.figure(figsize=(9.6, 4.3))
    left, zoom, right = (
        figure.add_axes(box) for box in ([0, 0, 0.42, 0.84], [0.41, 0.2, 0.2, 0.45], [0.7, 0, 0.3, 0.84])
    )
    style = {"c": X[:, 1], "s": 5, "cmap": "viridis", "linewidths": 0}
    left.scatter(*means.T, **style)

    size = np.ptp(means)
    middle = means[np.square(means - np.quantile(means, [0.62, 0.8], axis=0).diagonal()).sum(axis=1).argmin()]
    near = np.flatnonzero((np.abs(means - middle) < WINDOW * size / 2).all(axis=1))
    rings = plane.transform(raw[near].reshape(-1, raw.shape[2])).reshape(len(near), -1, 2)
    rings = means[near, None] + ENLARGED * (rings - means[near, None])
    for ring in rings:
        zoom.plot(*np.r_[ring, ring[:1]].T, ".-", markersize=4, lw=0.7)
    corner = middle - WINDOW * size / 2
    zoom.set(xlim=(corner[0], corner[0] + WINDOW * size), ylim=(corner[1], corner[1] + WINDOW * size))
    zoom.set(xticks=[], yticks=[])
    zoom.patch.set_alpha(0)
    zoom.spines[:].set_color(ink)
    zoom.set_xlabel(
        f"a burst per state: {raw.shape[1]} readings\n(bursts drawn {ENLARGED} times as large)", color=ink, fontsize=10
    )
    left.add_patch(Rectangle(corner, WINDOW * size, WINDOW * size, fill=False, color=ink, lw=0.8))
    for high in (0, 1):
        start = (corner[0] + WINDOW * size, corner[1] + high * WINDOW * size)
        ends = {"coordsA": "data", "coordsB": "axes fraction", "axesA": left, "axesB": zoom}
        figure.add_artist(ConnectionPatch(start, (0, high), **ends, color=ink, lw=0.6))

    right.scatter(*calibrate(X, Z).apply(Z).T, **style)
    error = place_errors(X, Z).cep
    titles = ("what goes in", "17 signal strengths"), ("what comes out", f"a floor plan, median error {error:.1g} px")
    for x, (head, tail) in zip((0.2, 0.85), titles, strict=True):
        figure.text(x, 0.95, head, color=ink, fontsize=16, weight="bold", ha="center")
        figure.text(x, 0.885, tail, color=ink, fontsize=11.5, ha="center")
    arrow = {"arrowstyle": "-|>", "mutation_scale": 22, "lw": 2}
    figure.add_artist(ConnectionPatch((0.625, 0.43), (0.69, 0.43), "figure fraction", color=ink, **arrow))
    for axes in (left, right):
        axes.set_aspect("equal")
        axes.set_axis_off()
    return figure


def _write(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "_generated"
    if (folder / "landing-dark.png").is_file():
        return  # `make clean` makes it again
    folder.mkdir(exist_ok=True)
    data = datasets.wifi(N_BURSTS, random_state=0)
    Z = LOCA(2, burst_std=data.burst_std, random_state=0).fit_transform(data.bursts)
    for theme, ink in (("light", "#222832"), ("dark", "#ced6dd")):
        figure = draw(data, Z, ink)
        figure.savefig(folder / f"landing-{theme}.png", dpi=160, transparent=True)
        plt.close(figure)


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw before pages are read."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
