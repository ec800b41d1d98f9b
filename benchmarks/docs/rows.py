"""Benchmarks made of rows (`benchmarks.rows`): one row per data set, a figure, a bar and the findings."""

from __future__ import annotations

import statistics

from benchmarks.docs._results import exists, load

__all__ = ["dirty_table", "hidden_table", "matching_table", "rows_table", "shapes_table", "sizes_table"]


def rows_table(name: str, heading: str, words: str, *, every_seed: bool = False) -> str:
    """A benchmark made of rows (`benchmarks.rows`); "" where it has not been run."""
    if not exists(name):
        return ""
    rows = load(name)["rows"]
    seeds = sorted({(row["seed_list"][0], row["seed_list"][-1]) for row in rows.values()})
    measured = sorted({row["commit"] for row in rows.values()})
    ranges = " or ".join(f"{first}-{last}" for first, last in seeds)
    lines = [
        f"## {heading}",
        "",
        f"`python -m benchmarks {name} --seeds {ranges}` (commits {', '.join(measured)}): {words}",
        "",
        "| data | figure | bar | median | worst seed | holds | findings |",
        "|---|---|---|---|---|---|---|",
    ]
    for data, row in rows.items():
        what = row["what"].replace("|", "\\|")  # of an absolute value, not of a cell
        cells = [data, what, *(f"{row[key]:.2g}" for key in ("bar", "median", "worst"))]
        lines.append(f"| {' | '.join([*cells, 'yes' if row['holds'] else '**no**', row['findings']])} |")
    if every_seed:
        lines += ["", "<details><summary>Every seed</summary>", "", "| data | figure, seed by seed |", "|---|---|"]
        lines += [f"| {data} | {' '.join(f'{value:.2g}' for value in row['seeds'])} |" for data, row in rows.items()]
        lines += ["", "</details>"]
    return "\n".join(lines)


def dirty_table() -> str:
    lines = rows_table(
        "dirty",
        "Measurements as they come",
        "each beside the same bursts clean. What the information lost in noise costs alone is the stress of clean "
        "bursts with so few points that they tell as much. The worst seed may be 5 × the bar.",
    )
    slower = [run["slower"] for row in load("dirty")["rows"].values() for run in row["runs"] if "slower" in run]
    if slower:
        lines += f"\n\nAll looks before training make a clean fit slower by a factor of {max(slower):.2f} at most."
    return lines


def shapes_table() -> str:
    return rows_table(
        "shapes",
        "Shapes",
        "stress as a part of the latent variance unless the figure says otherwise. Rows that are judged case by case "
        "(a small stress, or a true finding) hold when every seed is right.",
        every_seed=True,
    )


def hidden_table() -> str:
    return rows_table(
        "hidden",
        "Verdicts on data that no threshold was set on",
        "every seed draws another map, with another number of bursts, points and sensors. A seed is right when a "
        "stress of at most 1 % of the variance comes without a finding, and a larger one with one that names a cause "
        "which the data have; a row holds when every seed is right.",
        every_seed=True,
    )


def sizes_table() -> str:
    words = "how stress and processor time change with the number of bursts, dimensions and features."
    return rows_table("sizes", "Sizes", words, every_seed=True)


def matching_table() -> str:
    """Several instruments, and how often stated intervals hold."""
    lines = rows_table(
        "matching",
        "Several instruments",
        "see [matching](matching.md). Rows that are judged case by case hold when every seed is right; of the others "
        "the median must be within the bar.",
    )
    if not lines:
        return ""
    held = {
        name: [run["held"] for run in row["runs"] if "held" in run] for name, row in load("matching")["rows"].items()
    }
    lines += "\n\nStated 95 % intervals hold, on average over seeds (worst seed): "
    parts = [f"{name} {statistics.mean(v):.1%} ({min(v):.0%})" for name, v in held.items() if v]
    return lines + "; ".join(parts) + "."
