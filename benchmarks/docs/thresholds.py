"""The table of docs/trust.md: every number that decides a verdict, beside what was measured."""

from __future__ import annotations

from benchmarks.docs._results import load
from pyloca.thresholds import TABLE, Definition, Threshold

__all__ = ["thresholds_tables"]


def thresholds_tables() -> str:
    """Every number that decides a verdict, beside what was seen of it."""
    facts = load("thresholds")
    later = [
        f"{name} {row['seeds']}"
        for name, row in facts["rows"].items()
        if row.get("seeds", 0) not in (0, facts["seed_list"])
    ]
    lines = [
        f"Seeds {', '.join(map(str, facts['seed_list']))} (`python -m benchmarks thresholds`; {facts['date']}; commit "
        f"{facts['commit']}{'; by other seeds: ' if later else ''}{', '.join(later)}). *Clean*: the number nearest to "
        "the fault on any clean set. *Fault*: the one nearest to clean data among planted faults that it has to find; "
        "where several thresholds name one fault, only those that did count. A dash: it was not asked, because "
        "something before it had decided.",
        "",
        "| name | fault at | compared with | decides | clean | fault |",
        "|---|---|---|---|---|---|",
    ]
    for row in (row for row in TABLE if isinstance(row, Threshold)):
        seen = facts["rows"].get(row.name, {"clean": None, "fault": None})
        sides = [
            f"{seen[side]['number']:.2g} ({seen[side]['case']})" if seen[side] else "—" for side in ("clean", "fault")
        ]
        what = f"{row.compared_with} ({row.note})" if row.note else row.compared_with
        at = f"{'≥' if row.side == 'above' else '≤'} {row.value:g}"
        decides = ", ".join(f"`{name}`" for name in row.findings)
        lines.append(f"| {row.name} | {at} | {what} | {decides} | {' | '.join(sides)} |")
    lines += ["", "What is counted, and how much is looked at:", "", "| name | value | meaning |", "|---|---|---|"]
    lines += [f"| {row.name} | {row.value:g} | {row.meaning} |" for row in TABLE if isinstance(row, Definition)]
    return "\n".join(lines)
