"""What the diagnostics are worth: planted faults, error bars, k, and their cost."""

from __future__ import annotations

from benchmarks.docs._results import exists, load

__all__ = ["trust_tables"]


def trust_tables() -> str:
    """What has been measured; a benchmark that has not been run has no part."""
    parts = {"faults": _faults, "coverage": _coverage, "intrinsic_dim": _dimension, "diagnostics_cost": _cost}
    lines = [part() for name, part in parts.items() if exists(name)]
    return "\n\n".join(["## When not to believe it", *lines]) if lines else ""


def _faults() -> str:
    lines = [
        "Faults planted in data, in starts and in models, and clean data, by the number of seeds "
        "(`python -m benchmarks faults --seeds 0-19`; the names: [trust](trust.md)). The thresholds were set while "
        "looking at seeds 0 to 19; seeds from 100 on were run afterwards.",
        "",
        "| case | should be called | right | seeds | otherwise called |",
        "|---|---|---|---|---|",
    ]
    for what, row in load("faults")["rows"].items():
        name = " or ".join(name or "nothing" for name in row["expected"])
        seeds = f"{min(row['seeds'])}–{max(row['seeds'])}"
        lines.append(f"| {what} | {name} | {row['right']} of {row['of']} | {seeds} | {', '.join(row['else'])} |")
    return "\n".join(lines)


def _coverage() -> str:
    facts = load("coverage")
    low, high = facts["bar"]
    lines = [
        "Part of the embedded bursts whose stated 95 % region holds the truth, after calibration "
        f"(`python -m benchmarks coverage`, seeds {', '.join(map(str, facts['seed_list']))}; bar {low:.0%} to "
        f"{high:.0%} on the mean: the error of one fit is a few long waves, which are held or missed all at once):",
        "",
        "| data | mean | least seed | most |",
        "|---|---|---|---|",
    ]
    for name, row in facts["rows"].items():
        lines.append(f"| {name} | {row['mean']:.1%} | {min(row['seeds']):.1%} | {max(row['seeds']):.1%} |")
    return "\n".join(lines)


def _dimension() -> str:
    rows = load("intrinsic_dim")["rows"]
    missed = {name: row for name, row in rows.items() if row["right"] < row["of"]}
    wrong = ", ".join(f"{name}: {row['right']} of {row['of']}" for name, row in missed.items())
    seeds = max(row["of"] for row in rows.values())
    least = min(row["least_confidence"] for row in rows.values())
    return (
        f"Intrinsic dimension, k = 1..6 in D = 10, 30 and 100 with 1 % noise (`python -m benchmarks intrinsic_dim "
        f"--seeds 0-{seeds - 1}`): {wrong or 'right on all seeds'}; least confidence {least:.2f}."
    )


def _cost() -> str:
    facts = load("diagnostics_cost")
    parts = ", ".join(f"{name} {row['part']:.0%}" for name, row in facts["rows"].items())
    return (
        f"Cost of the automatic diagnostics, as a part of the rest of the fit (`python -m benchmarks "
        f"diagnostics_cost`, worst of {len(facts['seed_list'])} seeds; bar {facts['bar']:.0%}): {parts}."
    )
