"""What thresholds are compared with on clean data and on planted faults: the last two columns of their table.

Recorded are `inspect_bursts` and the verdict on the finished fit; not what the solver asks of starts that it gives up.
"""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from joblib import Parallel, delayed
from torch import nn

from benchmarks import faults, unseen
from benchmarks.tables import RESULTS, commit, print_table, write_results
from pyloca import LOCA, TrustWarning, datasets
from pyloca.bursts import Bursts
from pyloca.datasets import Dataset
from pyloca.diagnostics import diagnose
from pyloca.errors import BurstError
from pyloca.inspection import inspect_bursts
from pyloca.thresholds import TABLE, Threshold, recording

SEEDS = 5  # the first of those given
# Fewer bursts than in `faults` and `unseen`, where faults show as well: 500 of the planted 800, and these of the clean.
PLANTED, CLEAN = 500, 1000

KEPT = RESULTS / "thresholds.json"


class Seen(NamedTuple):
    """One case with one seed: what it was called, what `inspect_bursts` said, and the numbers by threshold."""

    called: str
    remarks: tuple[str, ...]
    numbers: dict[str, list[float]]


def smaller(make: Callable[[int], Dataset]) -> Callable[[int], Dataset]:
    """The first bursts of a set whose bursts come in random order."""

    def made(seed: int) -> Dataset:
        data = make(seed)
        return dataclasses.replace(data, X=data.X[:CLEAN], Y=data.Y[:CLEAN], bursts=data.bursts[:CLEAN])

    return made


CLEAN_SETS: dict[str, Callable[[int], Dataset]] = {
    "mushroom": smaller(faults.CLEAN["mushroom"]),
    "frame": smaller(faults.CLEAN["frame"]),
    "sphere": faults.CLEAN["sphere"],
    "dome": faults.CLEAN["dome"],
    "saddle": faults.CLEAN["saddle"],
    "wifi": lambda seed: datasets.wifi(CLEAN, random_state=seed),
    "Swiss roll": faults.CLEAN["Swiss roll"],  # all bursts: with fewer its turns are hard to tell apart
    "3-d cube": smaller(unseen.cube),
    "kinks": smaller(faults.kinks),
    "M = 12": smaller(unseen.few_points),
    "ragged": smaller(unseen.ragged),
    "curve": unseen.curve,
    "N = 150": unseen.few_bursts,
}


def bent(seed: int, std: float = 0.1) -> Dataset:
    """Bursts that are small beside the data, but not beside the waves of the measurement."""

    def measure(x: np.ndarray) -> np.ndarray:
        return x + 0.8 * np.sin(15 * x) / 15

    return faults.plant("bursts in which f bends", seed, std=std, measure=measure)


def squeezed(seed: int) -> Dataset:
    """A latent variable that is seen so little that the bends of the other one hide it inside a burst."""

    def measure(x: np.ndarray) -> np.ndarray:
        t = x[:, 0]
        return np.stack([t + 0.3 * np.sin(4 * t), x[:, 1] / 1000 + 0.5 * np.sin(3 * t)], axis=1)

    return faults.plant("a tangent that curvature hides", seed, measure=measure)


def mixed_units(seed: int) -> Dataset:
    data = faults.plant("units that differ by 10⁴", seed)
    return dataclasses.replace(data, bursts=Bursts(data.bursts.to_array() * [1.0, 1e4, 1.0, 1.0, 1.0]))


def cut_route(seed: int) -> Dataset:
    """Bursts along a route, the table cut two rows off."""
    data = faults.plant("rows of the next burst of a route", seed)
    row = np.floor(12 * data.X[:, 1] / np.ptp(data.X[:, 1]))
    order = np.lexsort((np.where(row % 2, -data.X[:, 0], data.X[:, 0]), row))
    points = data.bursts.to_array()[order]
    cut = np.roll(points.reshape(-1, points.shape[2]), -2, axis=0).reshape(points.shape)
    return dataclasses.replace(data, X=data.X[order], Y=data.Y[order], bursts=Bursts(cut))


def coarse(seed: int) -> Dataset:
    """Readings in steps as large as the spread inside a burst."""
    data = faults.plant("coarse steps", seed)
    points = data.bursts.to_array()
    step = 1.5 * float(points.std(axis=1).mean())
    return dataclasses.replace(data, bursts=Bursts(np.round(points / step) * step))


# By the expected finding: sets, and options of the fit. Those of `faults`, and some for what these do not ask.
FAULTS: dict[str, list[tuple[Callable[[int], Dataset], dict[str, Any]]]] = {
    name: [(make, {})] for name, make in faults.FAULTS.items()
}
FAULTS["large_bursts"].append((bent, {}))
FAULTS["large_bursts"].append((squeezed, {}))
FAULTS["noise"].append((smaller(unseen.noisy), {}))
FAULTS["noise"].append((coarse, {}))
FAULTS["rows"] = [(cut_route, {})]
FAULTS["units"] = [(mixed_units, {"feature_scale": None})]
FAULTS["more_tangents"] = [(lambda seed: faults.plant("k too small", seed), {"n_components": 1, "intrinsic_dim": 1})]
# Faults of a model: the factors by which the two coordinates of a good one are stretched.
STRETCHED = {"collapsed": (1.0, 0.01), "scale": (1.2, 1.2), "poor_fit": (1.2, 1.0)}
REFUSED = faults.REFUSED


def fit(data: Dataset, seed: int, **options: Any) -> LOCA:
    options = {"n_components": data.n_components, "burst_std": data.burst_std, "random_state": seed} | options
    return LOCA(**options).fit(data.bursts)


def look(data: Dataset, seed: int, **options: Any) -> Seen:
    """Inspect, fit and judge."""
    limits = {"n_components": data.n_components} | {k: v for k, v in options.items() if k != "feature_scale"}
    remarks: tuple[str, ...] = ()
    with recording() as numbers:
        try:
            remarks = inspect_bursts(data.bursts, **limits).remarks
        except BurstError as error:
            return Seen(refusal(error), remarks, numbers)
    try:
        model = fit(data, seed, **options)
    except BurstError as error:
        return Seen(refusal(error), remarks, numbers)
    called, judged = verdict(model, data.bursts)
    return Seen(called, remarks, {name: numbers.get(name, []) + judged.get(name, []) for name in {*numbers, *judged}})


def refusal(error: BurstError) -> str:
    return next((name for name, word in REFUSED.items() if word in str(error)), str(error))


def verdict(model: LOCA, bursts: Bursts) -> tuple[str, dict[str, list[float]]]:
    with recording() as numbers:
        found = diagnose(model, bursts).findings
    return (found[0].name if found else ""), numbers


def models(seed: int) -> dict[str, Seen]:
    """Faults of a model, made of one good fit; and one of a start that it could not leave."""
    data = faults.plant("good", seed)
    model = fit(data, seed)
    points = data.bursts.to_array().copy()
    means = points.mean(axis=1)
    chosen = np.random.RandomState(2000 + seed).permutation(len(points))[: len(points) // 50]
    normal = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)[2][-1]  # along which they vary least
    points[chosen] += means.std() * normal
    seen = {"outliers: off the surface": Seen(*_without_remarks(verdict(model, Bursts(points))))}
    good = model.encoder_
    for name, factors in STRETCHED.items():
        stretch = nn.Linear(2, 2, bias=False, dtype=torch.float64)
        stretch.weight.data = torch.diag(torch.tensor(factors, dtype=torch.float64))
        model.encoder_ = nn.Sequential(good, stretch)
        seen[f"{name}: {factors[0]:g}, {factors[1]:g} times"] = Seen(*_without_remarks(verdict(model, data.bursts)))
    with faults.bad_start("folded", only_start=True):
        seen["folded: start"] = Seen(*_without_remarks(verdict(fit(data, seed), data.bursts)))
    return seen


def _without_remarks(judged: tuple[str, dict[str, list[float]]]) -> tuple[str, tuple[str, ...], dict[str, list[float]]]:
    return judged[0], (), judged[1]


def one_seed(seed: int, only: frozenset[str]) -> dict[str, Seen]:
    """All cases: "clean: set", or "expected finding: set"; when findings are named, the faults of these alone."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", TrustWarning)
    seen = {}
    for name, make in CLEAN_SETS.items():
        seen[f"clean: {name}"] = look(make(seed), seed)
        print(seed, name, seen[f"clean: {name}"][:2], flush=True)
    with mock.patch.object(faults, "N", PLANTED):
        for expected, cases in FAULTS.items():
            for make, options in cases if not only or expected in only else []:
                data = make(seed)
                seen[f"{expected}: {data.name}"] = look(data, seed, **options)
                print(seed, expected, data.name, seen[f"{expected}: {data.name}"].called, flush=True)
        seen |= {} if only else models(seed)
    return seen


def extremes(row: Threshold, seeds: list[dict[str, Seen]]) -> dict[str, Any]:
    """The worst number of clean sets, and the mildest of the faults that this threshold has to find.

    Several thresholds may name one fault; then one of them is enough, and those that did not are not at fault.
    """
    worse = max if row.side == "above" else min
    milder = min if row.side == "above" else max
    clean: list[tuple[float, str]] = []
    fault: list[tuple[float, str]] = []
    for seen in seeds:
        for case, (called, _, numbers) in seen.items():
            expected, _, name = case.partition(": ")
            found = [x for x in numbers.get(row.name, []) if math.isfinite(x)]
            if expected == "clean":
                clean += [(x, name) for x in found]
            elif expected in row.findings:
                fault += [(x, case) for x in found if row.passed(x) or called != expected]
    sides = {"clean": worse(clean, default=None), "fault": milder(fault, default=None)}
    return {side: None if best is None else {"number": best[0], "case": best[1]} for side, best in sides.items()}


def separates(row: Threshold, facts: dict[str, Any]) -> bool:
    """Whether clean data lie on one side and planted faults on the other, as far as they were seen."""
    good = facts["clean"] is None or not row.passed(facts["clean"]["number"])
    return good and (facts["fault"] is None or row.passed(facts["fault"]["number"]))


def run(seeds: list[int], only: str = "") -> bool:
    """All thresholds, or those named in `only`, beside earlier ones in the file of results."""
    seeds = seeds[:SEEDS]
    thresholds = [row for row in TABLE if isinstance(row, Threshold) and (not only or row.name in only.split(","))]
    findings = frozenset(finding for row in thresholds for finding in row.findings) if only else frozenset()
    seen = Parallel(n_jobs=-1)(delayed(one_seed)(seed, findings) for seed in seeds)
    rows = {row.name: extremes(row, seen) | {"commit": commit(), "seeds": seeds} for row in thresholds}
    cases = {
        case: {"called": [s[case].called for s in seen], "remarks": sorted({r for s in seen for r in s[case].remarks})}
        for case in seen[0]
    }
    shown = []
    for row in thresholds:
        facts = rows[row.name]
        sides = [[facts[s]["number"], facts[s]["case"]] if facts[s] else ["", ""] for s in ("clean", "fault")]
        shown.append([row.name, row.value, *sides[0], *sides[1], "" if separates(row, facts) else row.note or "NO"])
    header = ("threshold", "value", "clean", "on", "fault", "on", "does not separate")
    print_table("thresholds", header, shown)
    # Remarks name bursts and figures of one run: only clean sets, which should have none, keep them.
    for case, facts in cases.items():
        if not case.startswith("clean: "):
            facts.pop("remarks")
    print_table("verdicts", ("case", "called"), [(case, ", ".join(f["called"])) for case, f in cases.items()])
    earlier = json.loads(KEPT.read_text(encoding="utf-8")) if only and KEPT.is_file() else {"rows": {}, "cases": {}}
    kept = {"rows": earlier["rows"] | rows, "cases": earlier["cases"] | cases}
    write_results(KEPT.stem, kept | {"seed_list": earlier.get("seed_list", seeds)})
    return all(separates(row, rows[row.name]) or row.note for row in thresholds)
