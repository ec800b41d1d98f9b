"""Results that should not depend on units or on whose network it is."""

from __future__ import annotations

import statistics

from benchmarks.docs._results import exists, load, number

__all__ = ["own_networks_table", "units_table"]


def units_table() -> str:
    if not exists("units"):
        return ""
    facts = load("units")
    lines = [
        "Six sensors in mixed units against the same table scaled by hand (`python -m benchmarks units`, "
        f"{len(facts['seed_list'])} seeds): largest distance between the two embeddings, as a part of their size. "
        f"The bar is {number(facts['bar'])}.",
        "",
        "| units | median | worst seed |",
        "|---|---|---|",
    ]
    for ratio, row in facts["rows"].items():
        values = row["difference"]
        lines.append(f"| 1 to {ratio} | {number(statistics.median(values))} | {number(max(values))} |")
    return "\n".join(lines)


def own_networks_table() -> str:
    if not exists("own_networks"):
        return ""
    facts = load("own_networks")
    seeds = ", ".join(str(seed) for seed in facts["seed_list"])
    lines = [
        f"Your own network against the built-in one (`python -m benchmarks own_networks`, seeds {seeds}): medians, and "
        f"their ratio to the built-in one; the bar is {facts['bar']:g} ×. Time in processor seconds.",
        "",
        "| data: network | stress | ratio | round trip | ratio | time, ratio |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in facts["rows"].items():
        middle, ratio = row["medians"], row["ratios"]
        lines.append(
            f"| {name} | {number(middle['stress'])} | {ratio['stress']:.1f} | {number(middle['round_trip'])} | "
            f"{ratio['round_trip']:.1f} | {ratio['seconds']:.1f} |"
        )
    return "\n".join(lines)
