"""Bursts from real measurements: a photograph of a bent sheet, a moving camera, restarts of a simulator."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_sample_image

from benchmarks.tables import print_table, write_results
from pyloca import LOCA, TrustWarning, datasets
from pyloca.bursts import from_image_patches
from pyloca.experiments import flatten
from pyloca.metrics import stress

SHEETS, WINDOW, JITTER, BLUR = 5, 32, 0.2, 3.0
SHEET_BAR, STRESS_BAR, SECONDS_BAR = 0.02, 0.01, 120.0


def run(seeds: list[int]) -> bool:
    warnings.simplefilter("ignore", TrustWarning)
    rows: dict[str, dict[str, Any]] = {}
    for seed in seeds[:SHEETS]:
        _note(rows, "bent sheet, RMS / side", SHEET_BAR, *bent_sheet(seed))
    for name in ("china", "flower"):
        for seed in seeds[:3]:
            _note(rows, f"camera over '{name}.jpg', D = 1024, stress / variance", STRESS_BAR, *camera(name, seed))
    for name in ("muller_brown", "double_well"):
        for seed in seeds[:3]:
            _note(rows, f"{name} in R¹⁰, stress / variance", STRESS_BAR, *restarts(name, seed))
    table = []
    for name, facts in rows.items():
        worst, slow = max(facts["seeds"]), max(facts["seconds"])
        facts |= {"worst": worst, "median": float(np.median(facts["seeds"])), "slowest": slow}
        facts["holds"] = worst <= facts["bar"] and slow <= SECONDS_BAR
        lost = "; ".join(facts["notes"])
        table.append((name, facts["bar"], facts["median"], worst, slow, "yes" if facts["holds"] else "NO", lost))
    print_table("bursts from measurements", ("what", "bar", "median", "worst", "seconds", "holds", "notes"), table)
    write_results("sources", {"rows": rows})
    return all(facts["holds"] for facts in rows.values())


def _note(rows: dict[str, dict[str, Any]], name: str, bar: float, value: float, seconds: float, note: str) -> None:
    print(f"{name}: {value:.2e} in {seconds:.0f} s {note}", flush=True)
    facts = rows.setdefault(name, {"bar": bar, "seeds": [], "seconds": [], "notes": []})
    facts["seeds"].append(value)
    facts["seconds"].append(seconds)
    if note:
        facts["notes"].append(note)


def bent_sheet(seed: int) -> tuple[float, float, str]:
    """RMS error of the flattened grid, in units of the sheet's side."""
    result = flatten.run(seed)
    return result.figures["flatten"].value, result.seconds, f"{result.figures['flatten, spots lost'].value:.0f} lost"


def camera(name: str, seed: int) -> tuple[float, float, str]:
    """Where a window of 32 × 32 pixels is on a picture, from its pixels alone."""
    image = load_sample_image(f"{name}.jpg").mean(axis=2) / 255
    image = gaussian_filter(image, BLUR)  # an instrument that resolves no more than a burst can follow
    random = np.random.RandomState(seed)
    X = random.uniform([280, 180], [340, 240], size=(1500, 2))
    bursts = from_image_patches(image, X, WINDOW, JITTER, 20, random_state=seed)
    start = time.perf_counter()
    model = LOCA(2, random_state=seed).fit(bursts)
    return stress(X, model.embedding_) / X.var(axis=0).sum(), time.perf_counter() - start, ""


def restarts(name: str, seed: int) -> tuple[float, float, str]:
    data = getattr(datasets, name)(random_state=seed)
    start = time.perf_counter()
    model = LOCA(2, random_state=seed).fit(data.bursts)
    return stress(data.X, model.embedding_) / data.X.var(axis=0).sum(), time.perf_counter() - start, ""
