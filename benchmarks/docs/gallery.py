"""The examples of the gallery on several seeds."""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.docs._results import exists, load

__all__ = ["gallery_table"]


def gallery_table() -> str:
    """Median and worst of our error, of the others the best seed; "" where it has not been run."""
    if not exists("gallery"):
        return ""
    rows = load("gallery")["rows"]
    lines = [
        "## The gallery on other seeds",
        "",
        "The site shows each example with one seed, 0, and its settings were chosen while looking at that seed. Here "
        "all random numbers, of the data and of the methods, have other seeds (`python -m benchmarks gallery`; commits "
        f"{', '.join(sorted({row['commit'] for row in rows.values()}))}). The blur of `photograph` was chosen on "
        "seeds 2 to 4; examples that are not listed have not been run on other seeds.",
        "",
        "| example | error is | seeds | ours, median | ours, worst | Isomap, best | UMAP, best | verdict | right |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        runs = list(row["runs"].values())
        ours = [run["ours"] for run in runs]
        cells = [name.replace("_", " "), row["measure"], ", ".join(row["runs"])]
        cells += [f"{statistics.median(ours):.2g}", f"{max(ours):.2g}"]
        cells += [_best(runs, "isomap"), _best(runs, "umap")]
        cells.append("; ".join(dict.fromkeys(run["verdict"] or "no fault found" for run in runs)))
        cells.append(f"{sum(run['right'] for run in runs)} of {len(runs)}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _best(runs: list[dict[str, Any]], name: str) -> str:
    return f"{min(run[name] for run in runs):.2g}" if name in runs[0] else "—"
