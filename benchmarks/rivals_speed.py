"""Our baselines against what users would pick, on the same points in the same run; and 10⁵ points in bounded memory.

Peers that are not installed are left out, and said so: ``pip install umap-learn pydiffmap``.
"""

from __future__ import annotations

import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import Isomap, SpectralEmbedding

from benchmarks.tables import print_table, write_results
from pyloca.baselines import DiffusionMaps, IntrinsicIsomap
from pyloca.geometry import BurstStatistics

Array = NDArray[np.float64]

SIZES = (2_000, 20_000)
LARGE = 100_000
MEMORY_BAR = 4.0  # GB
NEIGHBORS = 10
LIMIT = 60.0  # seconds
REPEATS = {2_000: 3, 20_000: 1}


def bent_sheet(n: int) -> tuple[Array, Array, Array]:
    """Latents (n, 2), a quarter-cylinder of them in R³, and its Jacobians (n, 3, 2)."""
    X = np.random.RandomState(0).uniform(size=(n, 2)) * [1.5, 1.0]
    angle = X[:, 0]
    Y = np.stack([np.sin(angle), np.cos(angle), X[:, 1]], axis=1)
    J = np.zeros((n, 3, 2))
    J[:, 0, 0], J[:, 1, 0], J[:, 2, 1] = np.cos(angle), -np.sin(angle), 1
    return X, Y, J


def run(seeds: list[int]) -> bool:
    rows: list[dict[str, Any]] = []
    for n in SIZES:
        _, Y, J = bent_sheet(n)
        ours = DiffusionMaps(2, random_state=0).fit(Y)
        contests: list[tuple[str, Callable[[], Array], dict[str, Callable[[], Array]]]] = [
            (
                "DiffusionMaps",
                lambda Y=Y: DiffusionMaps(2, random_state=0).fit_transform(Y),
                _spectral_peers(Y, ours.bandwidth_, n),
            ),
            (
                "IntrinsicIsomap",
                lambda Y=Y, J=J: IntrinsicIsomap(
                    2, n_neighbors=NEIGHBORS, burst_std=1.0, max_iter=0, random_state=0
                ).fit_transform(BurstStatistics.from_jacobians(Y, J)),
                ({} if n > 4000 else {"sklearn Isomap": lambda Y=Y: Isomap(n_neighbors=NEIGHBORS).fit_transform(Y)})
                | _umap(Y),
            ),
        ]
        for name, our_fit, peers in contests:
            seconds, embedding = _time(our_fit, REPEATS[n])
            for peer, fit in peers.items():
                theirs, other = _time(fit, REPEATS[n])
                agreement = _agreement(embedding, other)
                rows.append({"n": n, "ours": name, "peer": peer, "seconds": seconds, "peer_seconds": theirs,
                             "ratio": theirs / seconds, "agreement": agreement})  # fmt: skip
                print(f"N = {n}: {name} {seconds:.2f} s, {peer} {theirs:.2f} s, agreement {agreement:.4f}", flush=True)
            if name == "IntrinsicIsomap" and n > 4000:
                rows.append(_slow_isomap(n, seconds))
    memory = _large()
    keys = ("n", "ours", "seconds", "peer", "peer_seconds", "ratio", "agreement")
    table = [["—" if row[key] is None else row[key] for key in keys] for row in rows]
    header = ("N", "ours", "s", "peer", "s", "times faster", "same output (correlation)")
    print_table("speed of the baselines", header, table)
    print_table(f"{LARGE} points", ("method", "seconds", "peak GB"), [list(facts.values()) for facts in memory])
    holds = all(r["ratio"] >= 1 for r in rows) and all(facts["gb"] <= MEMORY_BAR for facts in memory)
    write_results("rivals_speed", {"rows": rows, "large": memory, "memory_bar": MEMORY_BAR, "holds": holds})
    return holds


def _slow_isomap(n: int, seconds: float) -> dict[str, Any]:
    """scikit-learn's Isomap needs an N × N matrix of geodesics; it is stopped after a minute."""
    code = (
        "from benchmarks.rivals_speed import *\n"
        f"Y = bent_sheet({n})[1]\n"
        "Isomap(n_neighbors=NEIGHBORS, n_jobs=-1).fit_transform(Y)"
    )
    start, peer = time.perf_counter(), "sklearn Isomap"
    try:
        subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        peer += f", stopped after {LIMIT:g} s"
    theirs = time.perf_counter() - start
    print(f"N = {n}: IntrinsicIsomap {seconds:.2f} s, {peer} {theirs:.1f} s", flush=True)
    return {"n": n, "ours": "IntrinsicIsomap", "peer": peer, "seconds": seconds, "peer_seconds": theirs,
            "ratio": theirs / seconds, "agreement": None}  # fmt: skip


def _spectral_peers(Y: Array, epsilon: float, n: int) -> dict[str, Callable[[], Array]]:
    peers: dict[str, Callable[[], Array]] = {}
    if n <= 4000:  # the same kernel, dense; beyond, its matrix alone takes 3.2 GB
        peers["sklearn SpectralEmbedding, rbf"] = lambda: SpectralEmbedding(
            2, affinity="rbf", gamma=1 / (2 * epsilon), random_state=0
        ).fit_transform(Y)
    else:
        peers["sklearn SpectralEmbedding, 100 neighbours"] = lambda: SpectralEmbedding(
            2, affinity="nearest_neighbors", n_neighbors=100, random_state=0, n_jobs=-1
        ).fit_transform(Y)
    if importlib.util.find_spec("pydiffmap"):
        from pydiffmap.diffusion_map import DiffusionMap

        # its kernel is exp(−‖·‖²/4ε)
        peers["pydiffmap"] = lambda: DiffusionMap.from_sklearn(
            n_evecs=2, k=min(200, n), epsilon=epsilon / 2, alpha=0
        ).fit_transform(Y)
    else:
        print("pydiffmap is not installed: left out")
    return peers


def _umap(Y: Array) -> dict[str, Callable[[], Array]]:
    if not importlib.util.find_spec("umap"):
        print("umap-learn is not installed: left out")
        return {}
    from umap import UMAP

    UMAP(n_neighbors=NEIGHBORS).fit_transform(Y[:500])  # compiled before it is timed
    return {"umap-learn": lambda: UMAP(n_neighbors=NEIGHBORS).fit_transform(Y)}


def _time(fit: Callable[[], Array], repeats: int) -> tuple[float, Array]:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        embedding = fit()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), embedding


def _agreement(first: Array, second: Array) -> float:
    """The least correlation of a column of the second with its best linear fit by the first: 1 is the same plane."""
    basis = np.c_[first, np.ones(len(first))]
    fitted = basis @ np.linalg.lstsq(basis, second, rcond=None)[0]
    return float(min(np.corrcoef(a, b)[0, 1] for a, b in zip(fitted.T, second.T, strict=True)))


CHILD = """
import json, resource, time
from benchmarks.rivals_speed import bent_sheet, LARGE
from pyloca.baselines import {name}
_, Y, _ = bent_sheet(LARGE)
start = time.perf_counter()
{name}(2).fit(Y)
print(json.dumps([time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6]))
"""


def _large() -> list[dict[str, Any]]:
    """Each method in a process of its own, so that its peak is its own."""
    out = []
    for name in ("DiffusionMaps",):  # methods on bursts compare all pairs, which takes minutes
        code = CHILD.format(name=name)
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
        seconds, gigabytes = json.loads(done.stdout)
        print(f"N = {LARGE}: {name} {seconds:.0f} s, {gigabytes:.2f} GB", flush=True)
        out.append({"method": name, "seconds": seconds, "gb": gigabytes})
    return out
