"""All methods on mushroom and sphere, each with its best bandwidth, against the paper's figures for its rivals.

The best settings are those with the least true stress on the seed itself: a favour that no user can do them. The exact
eigenfunctions of the square, cos πx and cos πy, stand in the table as what diffusion maps can come to.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.tables import print_table, write_results
from pyloca import LOCA, TrustWarning, datasets
from pyloca.baselines import (
    AnisotropicDiffusionMaps,
    Autoencoder,
    BurstAlignment,
    DiffusionMaps,
    IntrinsicIsomap,
    RiemannianRelaxation,
)
from pyloca.geometry import BurstStatistics
from pyloca.metrics import stress
from pyloca.paper.experiments._rivals import best_by_truth, candidates

SLACK = 1.5  # the paper's figures are of one run and have one or two digits
PAPER = {
    ("mushroom", "LOCA"): 1.5e-5,
    ("mushroom", "AnisotropicDiffusionMaps"): 2e-3,
    ("mushroom", "DiffusionMaps"): 3e-2,
    ("sphere", "LOCA"): 1e-3,
    ("sphere", "AnisotropicDiffusionMaps"): 6e-3,
    ("sphere", "DiffusionMaps"): 0.18,
}
SEEDS = 5
LIMIT = "mushroom, exact eigenfunctions"


def run(seeds: list[int]) -> bool:
    warnings.simplefilter("ignore", TrustWarning)
    seeds = seeds[:SEEDS]
    rows: dict[str, dict[str, Any]] = {}
    for name in ("mushroom", "sphere"):
        for seed in seeds:
            data = getattr(datasets, name)(random_state=seed)
            statistics = BurstStatistics.from_bursts(data.bursts, data.intrinsic_dim)
            for method, models in _methods(data, seed).items():
                facts = rows.setdefault(f"{name}, {method}", {"seeds": [], "factors": [], "seconds": []})
                best = best_by_truth(models, statistics, data.X)
                print(
                    f"{name} seed {seed} {method}: {best.stress:.2e} with factor {best.label} in {best.seconds:.1f} s"
                )
                for key, value in (("seeds", best.stress), ("factors", best.label), ("seconds", best.seconds)):
                    facts[key].append(value)
                facts["paper"] = PAPER.get((name, method))
            if name == "mushroom":
                facts = rows.setdefault(LIMIT, {"seeds": [], "factors": [], "seconds": [], "paper": None})
                facts["seeds"].append(stress(data.X, np.cos(np.pi * data.X), scale=True))
                facts["factors"].append(None)
                facts["seconds"].append(0.0)
    for facts in rows.values():
        facts["median"], facts["worst"] = float(np.median(facts["seeds"])), float(np.max(facts["seeds"]))
        facts["holds"] = facts["paper"] is None or facts["median"] <= SLACK * facts["paper"]
    table = [
        (
            name,
            "" if facts["paper"] is None else facts["paper"],
            facts["median"],
            facts["worst"],
            facts["factors"][0] or "",
            float(np.median(facts["seconds"])),
            "yes" if facts["holds"] else "NO",
        )
        for name, facts in rows.items()
    ]
    header = ("method", "paper", "median", "worst", "factor", "seconds", f"≤ {SLACK} × paper")
    print_table("scaled stress of all methods", header, table)
    write_results("rivals", {"seed_list": seeds, "slack": SLACK, "rows": rows})
    return all(facts["holds"] for facts in rows.values())


def _methods(data: datasets.Dataset, seed: int) -> dict[str, dict[str | None, Any]]:
    """For each method its candidates by bandwidth factor; None where there is none."""
    d, sigma = data.n_components, data.burst_std
    return {
        "LOCA": {None: LOCA(d, burst_std=sigma, random_state=seed)},
        "BurstAlignment": {None: BurstAlignment(d, burst_std=sigma, random_state=0)},
        "IntrinsicIsomap": {None: IntrinsicIsomap(d, burst_std=sigma, random_state=0)},
        "RiemannianRelaxation": {
            f"{f:g}": RiemannianRelaxation(d, burst_std=sigma, bandwidth_factor=f, random_state=0)
            for f in (0.5, 1, 2, 4)
        },
        "AnisotropicDiffusionMaps": candidates(AnisotropicDiffusionMaps, d),
        "DiffusionMaps": candidates(DiffusionMaps, d),
        "Autoencoder": {None: Autoencoder(d, random_state=seed)},
    }
