"""Where the time of one fast fit goes (mushroom), and how far it is from its matrix products."""

from __future__ import annotations

import cProfile
import pstats
import time

from benchmarks.tables import print_table, write_results
from pyloca import LOCA, datasets

PARTS = {
    "statistics (one pass)": ("from_bursts",),
    "alignment": ("align",),
    "evaluations": ("_descent.py:__call__",),
    "  matrix products in them": ("<built-in method torch.mm>", "'addmm_'"),
    "L-BFGS directions": ("_quasi_newton.py:direction", "_quasi_newton.py:append"),
    "preconditioners": ("_descent.py:_precondition",),
    "held-out scores": ("_score",),
}


def run(seeds: list[int]) -> bool:
    data = datasets.mushroom(random_state=0)
    model = LOCA(n_components=2, burst_std=data.burst_std, random_state=0)
    profile = cProfile.Profile()
    start = time.perf_counter()
    profile.runcall(model.fit, data.bursts)
    total = time.perf_counter() - start
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    rows = []
    for name, keys in PARTS.items():
        seconds = sum(facts[3] for key, facts in stats.items() if _matches(key, keys))
        calls = sum(facts[0] for key, facts in stats.items() if _matches(key, keys))
        rows.append((name, seconds, f"{seconds / total:.0%}", calls))
    rows.append(("whole fit (profiled)", total, "100%", model.n_iter_))
    print_table("where the time goes, mushroom", ("part", "seconds", "share", "calls"), rows)
    write_results("profile", {"rows": [list(row) for row in rows]})
    return True


def _matches(key: tuple[str, int, str], wanted: tuple[str, ...]) -> bool:
    file, _, function = key
    for name in wanted:
        where, _, what = name.rpartition(":")
        if (where and file.endswith(where) and function == what) or (not where and function == name):
            return True
        if name.startswith("'") and name in function:
            return True
    return False
