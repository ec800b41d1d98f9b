"""What the automatic diagnostics cost, as a part of the rest of the fit, measured in one run."""

from __future__ import annotations

import time
import warnings
from typing import Any

from benchmarks.tables import print_table, write_results
from pyloca import LOCA, TrustWarning, datasets
from pyloca.diagnostics import diagnose
from pyloca.findings import TrustScale

NAMES = ("mushroom", "frame", "sphere", "wifi")
BAR = 0.3


def cost(name: str, seed: int) -> dict[str, float]:
    data = getattr(datasets, name)(random_state=seed)
    start = time.perf_counter()
    model = LOCA(data.n_components, burst_std=data.burst_std, random_state=seed).fit(data.bursts)
    whole = time.perf_counter() - start
    start = time.perf_counter()
    diagnose(model, data.bursts)
    held_out = data.bursts[model.validation_indices_]
    TrustScale.calibrate(model.encoder_, model.decoder_, held_out, model.embedding_)
    checks = time.perf_counter() - start
    return {"fit": whole, "diagnostics": checks, "part": checks / (whole - checks)}


def run(seeds: list[int]) -> bool:
    warnings.simplefilter("ignore", TrustWarning)
    rows: dict[str, Any] = {}
    for name in NAMES:
        found = [cost(name, seed) for seed in seeds]
        rows[name] = {**max(found, key=lambda facts: facts["part"]), "holds": max(f["part"] for f in found) <= BAR}
    print_table(
        "diagnostics, worst seed",
        ("data", "fit, s", "diagnostics, s", "part of the rest of the fit"),
        [(name, facts["fit"], facts["diagnostics"], facts["part"]) for name, facts in rows.items()],
    )
    write_results("diagnostics_cost", {"rows": rows, "bar": BAR, "seed_list": seeds})
    return all(facts["holds"] for facts in rows.values())
