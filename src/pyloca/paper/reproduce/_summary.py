"""One row for each figure of merit: the paper's, ours over all seeds, the bar, and whether it holds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["HEADER", "RULE", "Row", "cells", "holds", "number", "summarize", "table"]

HEADER = ("experiment", "paper", "ours, median", "worst seed", "bar", "seconds", "holds")
SLACK = 5.0  # where the paper has no figure, the worst seed may exceed the bar so many times
RULE = (
    "A row holds when the median over seeds reaches the bar and every seed reaches the paper's figure "
    f"({SLACK:g} × the bar where the paper has none). Rows without a bar are shown, not judged."
)


@dataclass(frozen=True)
class Row:
    """A figure of merit over seeds. `holds` is None where nothing is judged."""

    name: str
    paper: float | None
    bar: float | None
    values: tuple[float, ...]
    median: float
    worst: float
    seconds: float
    holds: bool | None
    unit: str = ""


def holds(values: Sequence[float], bar: float, paper: float | None = None, exact: bool = False) -> bool:
    """See `RULE`; an exact figure must equal its bar on every seed."""
    if exact:
        return all(value == bar for value in values)
    return statistics.median(values) <= bar and max(values) <= (SLACK * bar if paper is None else paper)


def summarize(records: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Rows of the records, in the order in which their figures first appear. Quick runs are not judged."""
    found: dict[str, list[tuple[Mapping[str, Any], float, bool]]] = {}
    for record in records:
        for name, merit in record["figures"].items():
            found.setdefault(name, []).append((merit, record["seconds"], record["quick"]))
    rows = []
    for name, entries in found.items():
        merit, values = entries[0][0], tuple(float(m["value"]) for m, _, _ in entries)
        bar, paper, exact = merit["bar"], merit["paper"], merit["exact"]
        # of a whole number the worst is the one farthest from what it should be
        worst = max(values, key=lambda value: abs(value - bar)) if exact else max(values)
        judged = bar is not None and not any(quick for _, _, quick in entries)
        rows.append(
            Row(
                name,
                paper,
                bar,
                values,
                statistics.median(values),
                worst,
                statistics.median(seconds for _, seconds, _ in entries),
                holds(values, bar, paper, exact) if judged else None,
                merit["unit"],
            )
        )
    return rows


def cells(row: Row) -> tuple[str, ...]:
    """The row as text, in the order of `HEADER`."""
    numbers = ["—" if value is None else number(value) for value in (row.paper, row.median, row.worst, row.bar)]
    verdict = {True: "yes", False: "NO", None: "—"}[row.holds]
    name = f"{row.name} ({row.unit})" if row.unit else row.name
    seconds = "—" if row.bar is None else f"{row.seconds:.1f}"  # of LOCA, not of its rivals
    return (name, *numbers, seconds, verdict)


def number(value: float) -> str:
    """Counts as they are, all else with two digits."""
    return f"{value:.0f}" if value == round(value) else f"{value:.1e}"


def table(rows: Sequence[Row]) -> str:
    """Aligned columns, numbers to the right."""
    lines = [HEADER, *(cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADER))]
    text = [
        "  ".join(
            cell.ljust(width) if column in (0, len(HEADER) - 1) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    text.insert(1, "-" * max(map(len, text)))
    return "\n".join(text)
