"""The paper's experiments over seeds, with the settings of `pyloca reproduce`, for the tables of the documentation."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

import torch
from joblib import Parallel, delayed

from benchmarks.tables import RESULTS, commit, write_results
from pyloca.paper.experiments import EXPERIMENTS
from pyloca.paper.reproduce import RULE, summarize, table

KEPT = RESULTS / "accuracy.json"


def run_one(name: str, seed: int) -> dict[str, Any]:
    torch.set_num_threads(1)  # one fit per core
    record = EXPERIMENTS[name].run(seed).to_dict()
    values = ", ".join(f"{merit['value']:.2e}" for merit in record["figures"].values())
    print(f"{name} seed {seed}: {values} in {record['seconds']:.1f} s", flush=True)
    return record


def run(seeds: list[int], only: str = "") -> bool:
    """All experiments, or those named in `only`, beside earlier ones in the file of results."""
    earlier = json.loads(KEPT.read_text(encoding="utf-8")) if only and KEPT.is_file() else {"rows": {}, "seconds": {}}
    names = [name for name in EXPERIMENTS if not only or name in only.split(",")]
    records = Parallel(n_jobs=-1)(delayed(run_one)(name, seed) for name in names for seed in seeds)
    rows = summarize(records)
    print(f"\n{table(rows)}\n{RULE}")
    judged = {
        row.name: {
            "bar": row.bar,
            "seeds": list(row.values),
            "median": row.median,
            "worst": row.worst,
            "holds": row.holds,
            "paper": row.paper,
            "commit": commit(),
        }
        for row in rows
        if row.holds is not None
    }
    seconds = {name: median(record["seconds"] for record in records if record["name"] == name) for name in names}
    kept = earlier["rows"] | judged
    write_results(KEPT.stem, {"rows": kept, "seconds": earlier["seconds"] | seconds, "seed_list": seeds})
    return all(facts["holds"] for facts in kept.values())
