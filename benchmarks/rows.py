"""Benchmarks that are tables: one row per kind of data, one figure per seed, findings beside it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.tables import RESULTS, commit, print_table, summary, write_results

__all__ = ["Row", "run_rows"]


@dataclass(frozen=True)
class Row:
    """One kind of data.

    Attributes
    ----------
    name : str
    bar : float
        Largest median of the figure.
    what : str
        The figure in words, such as "stress / clean".
    measure : callable
        Seed → facts: "value" (the figure), and whatever explains it: "stress", "k", "findings" (names). With "ok"
        (bool) among them, the row holds when every seed is ok, whatever the figures.
    worst : float
        The worst seed may be this many times the bar.
    seeds : tuple of int, optional
        Seeds of a row that takes long; None: those that were asked for.
    """

    name: str
    bar: float
    what: str
    measure: Callable[[int], dict[str, Any]]
    worst: float = 5.0
    seeds: tuple[int, ...] | None = None


def run_rows(name: str, title: str, all_rows: Sequence[Row], seeds: list[int], only: str = "") -> bool:
    """Measure all rows, or those whose names contain one of the words in `only`, beside earlier ones in the file."""
    words = [word for word in re.split(r",(?! )", only) if word]  # names of rows have commas, with a space after them
    rows = [row for row in all_rows if not words or any(word in row.name for word in words)]
    kept = RESULTS / f"{name}.json"
    facts: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))["rows"] if only and kept.is_file() else {}
    for row in rows:
        measured, used = [], seeds if row.seeds is None else list(row.seeds)
        for seed in used:
            measured.append(row.measure(seed))
            told = ", ".join(f"{key} {_short(value)}" for key, value in measured[-1].items())
            print(f"{row.name}, seed {seed}: {told}", flush=True)
        facts[row.name] = {
            **_summary(row, measured),
            "what": row.what,
            "seed_list": used,
            "commit": commit(),
            "findings": _findings(measured),
            "runs": measured,
        }
        facts = {row.name: facts[row.name] for row in all_rows if row.name in facts}  # in the order of the table
        write_results(name, {"rows": facts}, quiet=True)  # row by row: a long run may end before its last
    table = [facts[row.name] | {"name": row.name, "holds": "yes" if facts[row.name]["holds"] else "NO"} for row in rows]
    keys = ("name", "what", "bar", "median", "worst", "holds", "findings")
    heading = f"{title}, seeds {seeds[0]} to {seeds[-1]}"
    print_table(heading, ("data", *keys[1:]), [[line[key] for key in keys] for line in table])
    print(f"written: benchmarks/results/{name}.json")
    return all(facts[row.name]["holds"] for row in rows)


def _summary(row: Row, measured: list[dict[str, Any]]) -> dict[str, Any]:
    facts = summary([one["value"] for one in measured], row.bar)
    facts["holds"] = facts["median"] <= row.bar and facts["worst"] <= row.worst * row.bar
    if all("ok" in one for one in measured):
        facts["holds"] = all(one["ok"] for one in measured)
    return facts


def _findings(runs: list[dict[str, Any]]) -> str:
    names = [name for run in runs for name in run.get("findings", ())]
    return ", ".join(f"{name} {names.count(name)}×" for name in sorted(set(names))) or "none"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
