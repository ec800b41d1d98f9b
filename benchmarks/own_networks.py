"""Modules of the user's own against the built-in network: stress, round trip and processor time, in one run."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.tables import RESULTS, commit, print_table, write_results
from pyloca import LOCA, TrustWarning, datasets
from pyloca.metrics import stress

BAR = 3.0  # medians, as a multiple of the built-in network's
WIDTH = 50
SETS: dict[str, Callable[[int], datasets.Dataset]] = {
    "wifi": lambda seed: datasets.wifi(600, random_state=seed),
    "mushroom": lambda seed: datasets.mushroom(600, random_state=seed),
    "sphere": lambda seed: datasets.sphere(random_state=seed),
}


def sequential(activation: type[nn.Module], *, norm: bool = False) -> Callable[[int, int], nn.Module]:
    """The built-in architecture without its skip, as a user would write it."""

    def make(n_in: int, n_out: int) -> nn.Module:
        parts: list[nn.Module] = []
        for size in (n_in, WIDTH):
            parts += [nn.Linear(size, WIDTH), *([nn.LayerNorm(WIDTH)] if norm else []), activation()]
        return nn.Sequential(*parts, nn.Linear(WIDTH, n_out))

    return make


class Residual(nn.Module):
    """x + f(x), twice, between linear maps."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.enter, self.leave = nn.Linear(n_in, WIDTH), nn.Linear(WIDTH, n_out)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH)) for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        h = self.enter(x)
        for block in self.blocks:
            h = h + block(h)
        return self.leave(h)


# Networks of the user's own, or the activation of a built-in one.
NETWORKS: dict[str, Callable[[int, int], nn.Module] | str] = {
    "built in": "tanh",
    "built in, softplus": "softplus",
    "tanh": sequential(nn.Tanh),
    "GELU": sequential(nn.GELU),
    "softplus": sequential(nn.Softplus),
    "LayerNorm, tanh": sequential(nn.Tanh, norm=True),
    "residual": Residual,
}


AGAINST = {"softplus": "built in, softplus"}  # like with like; all others are compared with "built in"
KEPT = RESULTS / "own_networks.json"


def fit(data: datasets.Dataset, make: Callable[[int, int], nn.Module] | str, seed: int) -> dict[str, float]:
    """Stress, round trip as a part of the variance of the measurements, and processor seconds of one fit."""
    own: dict[str, Any] = {}
    if isinstance(make, str):
        own = {"activation": make}
    else:
        torch.manual_seed(seed)
        n_in, n_out = data.Y.shape[1], data.n_components
        own = {"encoder": make(n_in, n_out), "decoder": make(n_out, n_in)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # the stress says more
        start = time.process_time()
        model = LOCA(data.n_components, burst_std=data.burst_std, random_state=seed, **own).fit(data.bursts)
        seconds = time.process_time() - start
    Z = model.transform(data.Y)
    error = np.square(model.inverse_transform(Z) - data.Y).sum(axis=1).mean()
    return {
        "stress": float(stress(data.X, Z)),
        "round_trip": float(error / data.Y.var(axis=0).sum()),
        "seconds": seconds,
    }


def run(seeds: list[int], only: str = "") -> bool:
    """All data sets, or those named in `only`, beside earlier ones in the file of results."""
    earlier = json.loads(KEPT.read_text(encoding="utf-8"))["rows"] if only and KEPT.is_file() else {}
    results: dict[str, dict[str, Any]] = dict(earlier)
    rows = []
    for set_name, load in SETS.items():
        if only and set_name not in only.split(","):
            continue
        for name, make in NETWORKS.items():
            fits = [fit(load(seed), make, seed) for seed in seeds]
            values = {key: [one[key] for one in fits] for key in fits[0]}
            medians = {key: float(np.median(value)) for key, value in values.items()}
            like = "built in" if name.startswith("built in") else AGAINST.get(name, "built in")
            ours = medians if name == "built in" else results[f"{set_name}: {like}"]["medians"]
            ratios = {key: medians[key] / ours[key] for key in medians}
            holds = name.startswith("built in") or max(ratios["stress"], ratios["round_trip"]) <= BAR
            facts = {"seeds": values, "medians": medians, "ratios": ratios, "holds": holds, "commit": commit()}
            results[f"{set_name}: {name}"] = facts
            rows.append(
                [
                    set_name,
                    name,
                    *(
                        part
                        for key in ("stress", "round_trip")
                        for part in (medians[key], max(values[key]), f"{ratios[key]:.1f}")
                    ),
                    f"{ratios['seconds']:.1f}",
                    "yes" if holds else "NO",
                ]
            )
            print(*(f"{cell:.2g}" if isinstance(cell, float) else cell for cell in rows[-1]), flush=True)
    header = ("data", "network", "stress", "worst", "ratio", "round trip", "worst", "ratio", "time", f"<= {BAR:.0f} ×")
    print_table("your own network against the built-in one (medians and worst of all seeds)", header, rows)
    holds = all(facts["holds"] for facts in results.values())
    write_results(KEPT.stem, {"rows": results, "seed_list": seeds, "bar": BAR, "holds": holds})
    return holds
