"""Bursts from pictures, simulators and a large file."""

from __future__ import annotations

from benchmarks.docs._results import exists, load, number

__all__ = ["sources_table"]


def sources_table() -> str:
    """Bursts that come from pictures, simulators and a large file; what has not been run is not in the table."""
    lines = ["## Bursts from measurements", ""]
    if exists("sources"):
        facts = load("sources")
        lines += [
            f"`python -m benchmarks sources`, the first of the seeds {', '.join(map(str, facts['seed_list']))}; "
            f"seconds are the processor's, for the slowest fit (bar {facts['seconds_bar']:g}). "
            "The bar is on the worst seed.",
            "",
            "| what | seeds | bar | median | worst seed | holds | seconds | notes |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for name, row in facts["rows"].items():
            cells = [number(row[key]) for key in ("bar", "median", "worst")]
            notes = "; ".join(sorted(set(row["notes"]) - {""}))
            holds = "yes" if row["holds"] else "**no**"
            lines.append(
                f"| {name} | {len(row['seeds'])} | {' | '.join(cells)} | {holds} | {row['slowest']:.0f} | {notes} |"
            )
        limit = facts["limit"]
        lines += [
            "",
            "What kind of picture a camera can be followed over: the closed-form alignment alone, with neighbouring "
            "windows ever farther apart in units of the blur. The stretch ratio says how much better one direction of "
            "a window is seen than the other; it is not what fails.",
            "",
            f"| {' | '.join(limit[0])} |",
            "|---" * len(limit[0]) + "|",
        ]
        lines += [f"| {' | '.join(f'{value:.2g}' for value in row.values())} |" for row in limit]
    if exists("big_file"):
        facts = load("big_file")
        size = " × ".join(f"{n:,}" for n in facts["shape"])
        lines += [
            "",
            f"A file of {facts['file_gb']:.0f} GB ({size}), inspected and fitted from the shell "
            f"(`python -m benchmarks big_file`); stress of the fit {number(facts['stress'])} of the latent variance.",
            "",
            f"| command | peak GB (bar {facts['memory_bar']:g}) | seconds, on a shared machine |",
            "|---|---|---|",
        ]
        lines += [f"| {row['command']} | {row['gb']:.2f} | {row['seconds']:.0f} |" for row in facts["rows"]]
    return "\n".join(lines) if len(lines) > 2 else ""
