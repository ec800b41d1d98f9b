"""Where time and memory go."""

from __future__ import annotations

from benchmarks.docs._results import exists, load, number

__all__ = ["growth_table", "profile_table", "speed_table", "startup_table"]


def speed_table() -> str:
    """What has been measured; a benchmark that has not been run is not in the table."""
    lines = ["| what | median | worst | bar |", "|---|---|---|---|"]
    if exists("speed"):
        speed = load("speed")
        title = f'Processor seconds on one thread; "before" is commit {speed["before"]}, in the same run.'
        lines = [title, "", *lines]
        for what, median, worst, bar in speed["rows"]:
            lines.append(f"| {what} | {median:.2g} | {'' if worst == '' else f'{worst:.2g}'} | {bar} |")
    if exists("evaluation"):
        facts = load("evaluation")
        name = "one likelihood evaluation with gradient / its matrix products"
        lines.append(f"| {name} | {facts['ratio']:.1f} | | <= {facts['bar']:g} |")
    if exists("growth"):
        growth = load("growth")
        lines += [
            f"| growth of time beyond N = 10⁴ | N^{growth['exponent']:.2f} | | <= N^{growth['exponent_bar']} |",
            f"| peak memory at N = 10⁵ | {growth['rows'][2]['gb']:.2f} GB | | <= {growth['memory_bar']:g} GB |",
        ]
    return "\n".join(lines)


def growth_table() -> str:
    if not exists("growth"):
        return ""
    lines = ["| N (D = 17, M = 6) | seconds | peak GB | stress, px² |", "|---|---|---|---|"]
    for row in load("growth")["rows"]:
        lines.append(f"| {row['n']:,} | {row['seconds']:.0f} | {row['gb']:.2f} | {number(row['stress'])} |")
    return "\n".join(lines)


def startup_table() -> str:
    if not exists("startup"):
        return ""
    facts = load("startup")
    lines = [
        "Start-up: processor seconds of commands that need no data, against "
        f'`python -c "import click"` in the same run '
        f"({facts['import_click']:.3f} s; median of {facts['runs']} runs; the bar is {facts['bar']:g} ×).",
        "",
        "| call | seconds | × import click |",
        "|---|---|---|",
    ]
    for name, row in facts["rows"].items():
        lines.append(f"| {name} | {row['seconds']:.3f} | {row['ratio']:.1f} |")
    return "\n".join(lines)


def profile_table() -> str:
    if not exists("profile"):
        return ""
    lines = [
        "Where the time of one fit of `mushroom` goes (under a profiler, which adds to small calls):",
        "",
        "| part | seconds | share | calls |",
        "|---|---|---|---|",
    ]
    for name, took, share, calls in load("profile")["rows"]:
        lines.append(f"| {name.strip()} | {took:.2f} | {share} | {calls} |")
    return "\n".join(lines)
