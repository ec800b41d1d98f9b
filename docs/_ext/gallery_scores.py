"""The figures of the gallery: each example leaves them in a variable `scores`, and the build makes a table of them.

Keys of `scores`: ``measure`` (what the errors are), ``shape`` (N, M, D), ``ours``, ``isomap`` and ``umap`` (errors; the
last two may be missing), ``verdict`` (findings, or words) and ``right`` (whether the verdict is true). The thumbnail of
an example is its first and its last panel: what goes in and what comes out.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx_gallery.scrapers import matplotlib_scraper

NEEDED = {"measure", "shape", "ours", "verdict", "right"}
HEADER = """# The gallery in figures

Made by the build of this site, from what each example computed. Our error is without scaling where σ is known; Isomap
and UMAP are scaled by the best factor. *Verdict*: what the diagnostics said, and whether that was right. Seconds are of
one processor, with drawing and with the rivals; the first example that uses UMAP also waits for its compiler.

| example | N | M | D | error is | ours | Isomap | UMAP | seconds | verdict | right |
|---|---|---|---|---|---|---|---|---|---|---|
"""
THUMBNAIL = (420, 240)
_started = [0.0]


def folder(source: Path) -> Path:
    """Where the figures are kept between builds: sphinx-gallery runs only examples that have changed."""
    return source / "gallery" / "scores"


def begin(_: dict[str, Any], name: str) -> None:
    """Start the clock; sphinx-gallery calls this before each example."""
    _started[0] = time.process_time()


def scrape(block: Any, variables: dict[str, Any], config: dict[str, Any]) -> str:
    """Save the figures as matplotlib's scraper does, and `scores` as soon as it is complete."""
    scores = variables["example_globals"].get("scores", {})
    if set(scores) >= NEEDED:
        verdict = scores["verdict"]
        facts = {key: float(scores[key]) for key in ("ours", "isomap", "umap") if key in scores}
        facts |= {"measure": scores["measure"], "right": bool(scores["right"])}
        facts["shape"] = [int(n) for n in scores["shape"]]
        facts["verdict"] = verdict if isinstance(verdict, str) else ", ".join(found.name for found in verdict)
        facts["seconds"] = time.process_time() - _started[0]
        path = folder(Path(config["src_dir"])) / f"{Path(variables['src_file']).stem}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(facts, indent=1), encoding="utf-8")
    if plt.get_fignums():
        path = folder(Path(config["src_dir"])) / f"{Path(variables['src_file']).stem}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        thumbnail().save(path)
    return matplotlib_scraper(block, variables, config)


def thumbnail() -> Image.Image:
    """The first and the last panel with data of the current figure, without titles and ticks."""
    figure = plt.gcf()
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())
    paper = Image.new("RGB", THUMBNAIL, "white")
    wide, high = THUMBNAIL[0] // 2, THUMBNAIL[1]
    panels = [axes for axes in figure.axes if axes.has_data()]
    for side, axes in enumerate((panels[0], panels[-1])):
        left, bottom, right, top = np.round(axes.get_window_extent().extents).astype(int)
        panel = Image.fromarray(picture[len(picture) - top : len(picture) - bottom, left:right]).convert("RGB")
        factor = min((wide - 10) / panel.width, (high - 10) / panel.height)
        panel = panel.resize((round(factor * panel.width), round(factor * panel.height)), Image.Resampling.LANCZOS)
        paper.paste(panel, (side * wide + (wide - panel.width) // 2, (high - panel.height) // 2))
    return paper


def table(source: Path, examples: list[Path]) -> str:
    """The page; every example must have left its figures."""
    rows = []
    for example in examples:
        path = folder(source) / f"{example.stem}.json"
        if not path.is_file():
            raise ExtensionError(f"{example.name} has left no `scores` with the keys {', '.join(sorted(NEEDED))}")
        facts = json.loads(path.read_text(encoding="utf-8"))
        title = example.read_text(encoding="utf-8").splitlines()[1]
        errors = [f"{facts[key]:.2g}" if key in facts else "—" for key in ("ours", "isomap", "umap")]
        cells = [f"[{title}](gallery/{example.stem}.rst)", *facts["shape"], facts["measure"], *errors]
        cells += [f"{facts['seconds']:.0f}", facts["verdict"] or "no fault found"]
        cells += ["yes" if facts["right"] else "**no**"]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    return HEADER + "\n".join(rows) + "\n"


def _write(app: Sphinx) -> None:
    source = Path(app.srcdir)
    examples = sorted((source.parent / "examples").glob("plot_*.py"))
    (source / "gallery_table.md").write_text(table(source, examples), encoding="utf-8")
    for example in examples:
        drawn = folder(source) / f"{example.stem}.png"
        if drawn.is_file():  # not where an earlier build, without thumbnails of this kind, ran the example
            shutil.copyfile(drawn, source / "gallery" / "images" / "thumb" / f"sphx_glr_{example.stem}_thumb.png")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the table and the thumbnails after the examples have run."""
    app.connect("builder-inited", _write, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
