"""The figure of docs/matching.md: errors against anchors, overlap and what people would do now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.matching.anchored import COUNTS, OVERLAPS
from benchmarks.tables import RESULTS

__all__ = ["PICTURE", "draw"]

PICTURE = Path(__file__).parent.parent.parent / "docs" / "matching.png"
METHODS = {"ours": "ours", "kernel ridge": "kernel ridge", "Isomap + Procrustes": "Isomap", "CCA": "CCA"}


def draw(path: Path = PICTURE) -> None:
    """Draw medians with the range of all seeds, from the results that are there."""
    rows = json.loads((RESULTS / "matching.json").read_text(encoding="utf-8"))["rows"]
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    anchors, overlap, rivals = figure.subplots(1, 3)
    for wrong, colour, shift, label in ((False, "C0", -0.08, "all right"), (True, "C1", 0.08, "20 % of them wrong")):
        named = {n: f"{n} anchors" + (f", {w} wrong" if w else "") for n, w in COUNTS if bool(w) == wrong}
        _points(anchors, {n: rows[name]["seeds"] for n, name in named.items() if name in rows}, shift, colour, label)
    anchors.set(title="asymmetric plan, 6 m × 8 m", xlabel="anchors", ylabel="error in metres")
    parts = {f"{part:.0%}": rows.get(f"overlap {part:.0%}, 5 anchors") for part in OVERLAPS if part}
    _points(overlap, {part: row["seeds"] for part, row in parts.items() if row}, 0.0, "C0", "in the overlap")
    overlap.set(title="parts of a floor, 5 anchors", xlabel="overlap", ylabel="error in metres")
    for k, (method, label) in enumerate(METHODS.items()):
        told = {n: rows.get(f"rivals: {n} anchors") for n in (5, 10, 20)}
        seeds = {n: [run[method][0] for run in row["runs"]] for n, row in told.items() if row}
        _points(rivals, seeds, 0.06 * (k - 1.5), f"C{k}", label)
    rivals.set(title="readings of one from the other", xlabel="anchors", ylabel="error / spread", yscale="log")
    for axes in (anchors, overlap, rivals):
        axes.legend(frameon=False, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in (anchors, overlap):
        axes.set_ylim(0, 1.2 * axes.get_ylim()[1])  # room for the legend
    rivals.set_ylim(top=50)
    figure.savefig(path, dpi=110)


def _points(axes: Axes, seeds: dict[Any, list[float]], shift: float, colour: str, label: str) -> None:
    """Draw the median of each, and a line from the best to the worst seed."""
    ticks = [str(tick.get_text()) for tick in axes.get_xticklabels()] if axes.lines else []
    names = [*ticks, *(str(key) for key in seeds if str(key) not in ticks)]
    axes.set_xticks(range(len(names)), names)
    x = np.array([names.index(str(key)) for key in seeds]) + shift
    found = [np.array(values)[np.isfinite(values)] for values in seeds.values()]
    axes.vlines(x, [v.min() for v in found], [v.max() for v in found], color=colour, alpha=0.5)
    axes.plot(x, [np.median(v) for v in found], "o", color=colour, markersize=4, label=label)
