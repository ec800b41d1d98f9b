"""Measurements as they come, beside the same bursts clean: noise, spikes, strays, gaps, recordings, spots.

One module per subject; each has `ROWS`.
"""

from __future__ import annotations

from typing import Any

from benchmarks.dirty import clean, columns, noise, perturbations, recordings, scale, spikes, spots, strays
from benchmarks.dirty._row import Row
from benchmarks.tables import print_table, summary, write_results

__all__ = ["ROWS", "run"]

SUBJECTS = (clean, spikes, noise, strays, columns, perturbations, recordings, scale, spots)
ROWS: tuple[Row, ...] = tuple(row for subject in SUBJECTS for row in subject.ROWS)


def run(seeds: list[int], only: str = "") -> bool:
    """Measure all rows, or those whose names contain one of the words in `only`."""
    words = [word.strip() for word in only.split(",") if word.strip()]
    rows = [row for row in ROWS if not words or any(word in row.name for word in words)]
    facts: dict[str, Any] = {}
    for row in rows:
        measured = []
        for seed in seeds:
            measured.append(row.measure(seed))
            told = ", ".join(f"{key} {_short(value)}" for key, value in measured[-1].items())
            print(f"{row.name}, seed {seed}: {told}", flush=True)
        facts[row.name] = summary([one["value"] for one in measured], row.bar) | {"what": row.what, "runs": measured}
    print_table(
        f"dirty measurements, seeds {seeds[0]} to {seeds[-1]}",
        ("what came", "figure", "bar", "median", "worst", "holds", "findings"),
        [
            (
                name,
                row["what"],
                row["bar"],
                row["median"],
                row["worst"],
                "yes" if row["holds"] else "NO",
                _findings(row["runs"]),
            )
            for name, row in facts.items()
        ],
    )
    write_results("dirty", {"seed_list": seeds, "rows": facts})
    return all(row["holds"] for row in facts.values())


def _findings(runs: list[dict[str, Any]]) -> str:
    names = [name for run in runs for name in run.get("findings", ())]
    return ", ".join(f"{name} {names.count(name)}×" for name in sorted(set(names))) or "none"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
