"""How time and memory of a fast fit grow with the number of bursts (D = 17, M = 6). One process a size."""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time

from benchmarks.tables import print_table, write_results
from pyloca import LOCA, datasets
from pyloca.metrics import stress

SIZES = (1_000, 10_000, 100_000)
EXPONENT_BAR, MEMORY_BAR = 1.05, 2.0


def run(seeds: list[int]) -> bool:
    rows = []
    for size in SIZES:
        command = [sys.executable, "-m", "benchmarks.growth", str(size)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(rows[-1], flush=True)
    exponent = math.log(rows[2]["seconds"] / rows[1]["seconds"]) / math.log(SIZES[2] / SIZES[1])
    print_table(
        "growth with N",
        ("N", "seconds", "peak GB", "stress px²"),
        [[r["n"], r["seconds"], r["gb"], r["stress"]] for r in rows],
    )
    print(f"exponent beyond 10⁴: {exponent:.2f} (bar {EXPONENT_BAR}); peak {rows[2]['gb']:.2f} GB (bar {MEMORY_BAR})")
    holds = exponent <= EXPONENT_BAR and rows[2]["gb"] <= MEMORY_BAR
    write_results(
        "growth",
        {"rows": rows, "exponent": exponent, "exponent_bar": EXPONENT_BAR, "memory_bar": MEMORY_BAR, "holds": holds},
    )
    return holds


def measure(size: int) -> dict[str, float]:
    data = datasets.wifi(n_bursts=size, random_state=0)
    start = time.perf_counter()
    model = LOCA(n_components=2, burst_std=data.burst_std, random_state=0).fit(data.bursts)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # kB on Linux
    return {"n": size, "seconds": seconds, "gb": peak, "stress": stress(data.X, model.transform(data.Y))}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
