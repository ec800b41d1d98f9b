"""Killed processes, threads, full disks and forged files."""

from __future__ import annotations

import statistics

from benchmarks.docs._results import exists, load, number

__all__ = ["files_table", "machines_table"]


def machines_table() -> str:
    """What `faults_of_machines` counted; figures of `bits`, which are no failures, have rows of their own."""
    if not exists("faults_of_machines"):
        return ""
    rows = load("faults_of_machines")["rows"]
    measured = sorted({row["commit"] for row in rows.values()})
    lines = [
        f"`python -m benchmarks faults_of_machines` (commits {', '.join(measured)}). A trial is one child or one call; "
        "moments are random.",
        "",
        "| what | trials | failures |",
        "|---|---|---|",
    ]
    for name, row in rows.items():
        if row["what"] == "failures":
            trials = sum(run["trials"] for run in row["runs"])
            failures = sum(int(run["value"]) for run in row["runs"])
            lines.append(f"| {name} | {trials} | {failures} |")
    lines += [
        "",
        "| another rounding | difference / size, median | worst seed | error of the fit |",
        "|---|---|---|---|",
    ]
    for name, row in rows.items():
        if row["what"] != "failures":
            errors = [run["error"] for run in row["runs"] if "error" in run]
            error = number(statistics.median(errors)) if errors else ""
            lines.append(f"| {name} | {number(row['median'])} | {number(row['worst'])} | {error} |")
    return "\n".join(lines)


def files_table() -> str:
    if not exists("faults_of_files"):
        return ""
    rows = load("faults_of_files")["rows"]
    lines = [f"| {name} | {row['tried']} | {row['tried'] - len(row['faults'])} |" for name, row in rows.items()]
    return "\n".join(
        [
            "## Faults of files",
            "",
            "Own errors that name the file, earlier files intact, nothing half-written; a file that is read gives an",
            "own error in bounded time and memory, or finite numbers (`python -m benchmarks faults_of_files`).",
            "",
            "| what | tried | as it should be |",
            "|---|---|---|",
            *lines,
        ]
    )
