"""One row per figure of merit: the paper's value, ours over all seeds, the bar, and whether it holds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["HEADER", "RULE", "Row", "cells", "holds", "number", "summarize", "table"]

HEADER = ("experiment", "paper", "ours, median", "worst seed", "bar", "seconds", "holds")
SLACK = 5.0  # where the paper has no value, the worst seed may exceed the bar by this factor
RULE = (
    "A row holds if the median over seeds is within the bar and every seed is within the paper's value "
    f"({SLACK:g} × the bar where the paper has none). Rows without a bar are shown but not judged."
)


@dataclass(frozen=True)
class Row:
    """A figure of merit over seeds.

    Attributes
    ----------
    name : str
    paper, bar : float, optional
        The paper's value, and the bar that the median must be within.
    values : tuple of float
        By seed.
    median, worst : float
    seconds : float
        Median duration of a run.
    holds : bool or None
        None if the row is not judged.
    unit : str

    Examples
    --------
    See `summarize`.
    """

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
    """Judge a figure of merit by `RULE`.

    Parameters
    ----------
    values : sequence of float
        By seed.
    bar : float
    paper : float, optional
        The paper's value.
    exact : bool, default=False
        Whether every value must equal the bar.

    Returns
    -------
    bool

    Examples
    --------
    >>> holds([1.0, 2.0, 4.0], bar=2.0)
    True
    >>> holds([1.0, 2.0, 4.0], bar=2.0, paper=3.0)
    False
    """
    if exact:
        return all(value == bar for value in values)
    return statistics.median(values) <= bar and max(values) <= (SLACK * bar if paper is None else paper)


def summarize(records: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Collect records into rows.

    Parameters
    ----------
    records : sequence of dict
        As in `Run.record`. Quick runs are not judged.

    Returns
    -------
    list of Row
        In the order in which the figures of merit first appear.

    Examples
    --------
    >>> merit = {"value": 1.0, "bar": 2.0, "paper": None, "exact": False, "unit": ""}
    >>> rows = summarize([{"figures": {"wifi": merit}, "seconds": 3.0, "quick": False}])
    >>> rows[0].holds
    True
    """
    found: dict[str, list[tuple[Mapping[str, Any], float, bool]]] = {}
    for record in records:
        for name, merit in record["figures"].items():
            found.setdefault(name, []).append((merit, record["seconds"], record["quick"]))
    rows = []
    for name, entries in found.items():
        merit, values = entries[0][0], tuple(float(m["value"]) for m, _, _ in entries)
        bar, paper, exact = merit["bar"], merit["paper"], merit["exact"]
        # the worst of exact values is the one farthest from the bar
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
    """Format a row as text, in the order of `HEADER`."""
    numbers = ["—" if value is None else number(value) for value in (row.paper, row.median, row.worst, row.bar)]
    verdict = {True: "yes", False: "NO", None: "—"}[row.holds]
    name = f"{row.name} ({row.unit})" if row.unit else row.name
    seconds = "—" if row.bar is None else f"{row.seconds:.1f}"  # of LOCA, not of its rivals
    return (name, *numbers, seconds, verdict)


def number(value: float) -> str:
    """Format an integer as it is, other numbers with two digits."""
    return f"{value:.0f}" if value == round(value) else f"{value:.1e}"


def table(rows: Sequence[Row]) -> str:
    """Format rows as aligned columns.

    Parameters
    ----------
    rows : sequence of Row

    Returns
    -------
    str

    Examples
    --------
    >>> row = Row("wifi", None, 1e-3, (2e-4,), 2e-4, 2e-4, 30.0, True, "px²")
    >>> print(table([row]).splitlines()[-1])
    wifi (px²)      —       2.0e-04     2.0e-04  1.0e-03     30.0  yes
    """
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
