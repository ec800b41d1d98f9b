"""The picture of the landing page: what goes in and what comes out, for the light and for the dark theme."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sphinx.application import Sphinx

from pyloca import LOCA, datasets
from pyloca.metrics import calibrate, place_errors

N_BURSTS = 2000


def draw(raw: NDArray[np.float64], Z: NDArray[np.float64], X: NDArray[np.float64], ink: str) -> Figure:
    """Draw the signals, and the recovered places turned onto the true plan."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 4.6), width_ratios=(1.15, 1), layout="constrained")
    style = {"c": X[:, 1], "s": 5, "cmap": "viridis", "linewidths": 0}
    left.scatter(*PCA(2).fit_transform(raw).T, **style)
    left.set_title(f"what goes in: {raw.shape[1]} signal strengths\n(two principal components)", color=ink)
    right.scatter(*calibrate(X, Z).apply(Z).T, **style)
    right.set_title(
        f"what comes out: the floor plan\n(median error {place_errors(X, Z).cep:.1g} of 1000 px)", color=ink
    )
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
        figure = draw(data.Y, Z, data.X, ink)
        figure.savefig(folder / f"landing-{theme}.png", dpi=160, transparent=True)
        plt.close(figure)


def setup(app: Sphinx) -> dict[str, bool]:
    """Draw before pages are read."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
