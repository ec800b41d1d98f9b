"""The paper's experiments over seeds, with the settings of `pyloca reproduce`, for the tables of the documentation."""

from __future__ import annotations

from statistics import median
from typing import Any

import torch
from joblib import Parallel, delayed

from benchmarks.tables import write_results
from pyloca.paper.experiments import EXPERIMENTS
from pyloca.paper.reproduce import RULE, summarize, table


def run_one(name: str, seed: int) -> dict[str, Any]:
    torch.set_num_threads(1)  # one fit per core
    record = EXPERIMENTS[name].run(seed).to_dict()
    values = ", ".join(f"{merit['value']:.2e}" for merit in record["figures"].values())
    print(f"{name} seed {seed}: {values} in {record['seconds']:.1f} s", flush=True)
    return record


def run(seeds: list[int]) -> bool:
    records = Parallel(n_jobs=-1)(delayed(run_one)(name, seed) for name in EXPERIMENTS for seed in seeds)
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
        }
        for row in rows
        if row.holds is not None
    }
    seconds = {name: median(record["seconds"] for record in records if record["name"] == name) for name in EXPERIMENTS}
    write_results("accuracy", {"rows": judged, "seconds": seconds, "seed_list": seeds})
    return all(facts["holds"] for facts in judged.values())
