"""Other methods on the same data."""

from __future__ import annotations

import statistics

from benchmarks.docs._results import exists, load, number

__all__ = ["rivals_speed_table", "rivals_table"]


def rivals_table() -> str:
    if not exists("rivals"):
        return ""
    facts = load("rivals")
    lines = [
        "## The paper's rivals",
        "",
        "Stress scaled by the one best factor, seeds " + ", ".join(map(str, facts["seed_list"])) + ", every method "
        "with the bandwidth that is best by the truth (`python -m benchmarks rivals`; what they are: "
        "[baselines](baselines.md)).",
        "",
        f"| data, method | paper | median | worst seed | ≤ {facts['slack']} × paper | best bandwidth factor | s |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in facts["rows"].items():
        cells = [number(row[key]) for key in ("paper", "median", "worst")]
        holds = "" if row["paper"] is None else "yes" if row["holds"] else "**no**"
        factor = row["factors"][0] or "—"
        seconds = statistics.median(row["seconds"])
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {holds} | {factor} | {seconds:.1f} |")
    return "\n".join(lines)


def rivals_speed_table() -> str:
    if not exists("rivals_speed"):
        return ""
    facts = load("rivals_speed")
    lines = [
        "Speed on the same points in the same run (`python -m benchmarks rivals_speed`):",
        "",
        "| N | ours | seconds | peer | seconds | times faster | correlation of the outputs |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in facts["rows"]:
        lines.append(
            f"| {row['n']:,} | {row['ours']} | {row['seconds']:.2f} | {row['peer']} | {row['peer_seconds']:.2f} | "
            f"{row['ratio']:.1f} | {'—' if row['agreement'] is None else format(row['agreement'], '.4f')} |"
        )
    lines += ["", f"| 100,000 points (bar: {facts['memory_bar']:g} GB) | seconds | peak GB |", "|---|---|---|"]
    lines += [f"| {row['method']} | {row['seconds']:.0f} | {row['gb']:.2f} |" for row in facts["large"]]
    return "\n".join(lines)
