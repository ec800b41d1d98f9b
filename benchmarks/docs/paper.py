"""The tables of paper.md."""

from __future__ import annotations

from benchmarks.docs._results import load, number
from benchmarks.docs.accuracy import accuracy_table

__all__ = ["paper_tables"]


def paper_tables() -> str:
    """The experiments of the original paper, and other methods on two of them."""
    facts = load("rivals")
    lines = [
        "Other methods on two of these data sets, each with the bandwidth that is best given the truth and scaled by "
        f"the best factor; median and worst of {len(facts['seed_list'])} seeds:",
        "",
        "| data, method | paper | median | worst seed |",
        "|---|---|---|---|",
    ]
    for name, row in facts["rows"].items():
        lines.append(f"| {name} | {' | '.join(number(row[key]) for key in ('paper', 'median', 'worst'))} |")
    return "\n".join([accuracy_table(), "", *lines])
