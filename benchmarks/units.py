"""A table of sensors in mixed units against the same table scaled by hand: do the coordinates depend on the units?"""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.tables import print_table, write_results
from pyloca import LOCA, Bursts, TrustWarning
from pyloca.metrics import calibrate, stress
from pyloca.paper.experiments._measurements import smooth_map

RATIOS = (1.0, 3.0, 10.0, 1e3, 1e6, 1e9)
N, SENSORS, STD = 400, 6, 0.01
BAR = 1e-3  # largest distance between the two embeddings, as a part of their size


def table(seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Latents of a unit square, and bursts of 5 to 40 rows of six sensors."""
    random = np.random.RandomState(seed)
    X = random.uniform(size=(N, 2))
    measure = smooth_map(2, SENSORS, random)
    counts = random.randint(5, 41, size=N)
    return X, [measure(x + STD * random.standard_normal((m, 2))) for x, m in zip(X, counts, strict=True)]


def fit(parts: list[np.ndarray], seed: int) -> LOCA:
    names = [f"sensor {i}" for i in range(SENSORS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)
        return LOCA(2, burst_std=STD, random_state=seed).fit(Bursts(parts, feature_names=names))


def run(seeds: list[int]) -> bool:
    rows = {ratio: {"difference": [], "stress": []} for ratio in RATIOS}
    for seed in seeds:
        X, parts = table(seed)
        together = np.concatenate(parts)
        reference = fit([(part - together.mean(axis=0)) / together.std(axis=0) for part in parts], seed).embedding_
        size = float(np.sqrt(np.square(reference).sum(axis=1).mean()))
        for ratio in RATIOS:
            units = ratio ** (np.arange(SENSORS) / (SENSORS - 1))
            found = fit([units * (part + 7) for part in parts], seed).embedding_
            moved = calibrate(reference, found).apply(found)
            difference = float(np.linalg.norm(moved - reference, axis=1).max()) / size
            rows[ratio]["difference"].append(difference)
            rows[ratio]["stress"].append(stress(X, found))
            print(f"seed {seed}, units 1 to {ratio:g}: differs by {difference:.1e} of the size", flush=True)
    shown = [
        (f"1 to {ratio:g}", float(np.median(facts["difference"])), max(facts["difference"]), max(facts["stress"]))
        for ratio, facts in rows.items()
    ]
    print_table(
        f"six sensors in mixed units, {len(seeds)} seeds (bar {BAR:g})",
        ("units", "difference, median", "worst", "stress, worst"),
        shown,
    )
    write_results("units", {"bar": BAR, "seed_list": seeds, "rows": {f"{r:g}": facts for r, facts in rows.items()}})
    return all(row[2] <= BAR for row in shown)
