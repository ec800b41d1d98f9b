"""10⁴, 10⁵ and 10⁶ bursts of `wifi` (M = 6, D = 17) on Zarr, fitted from the shell with two workers.

The figure of "full" rows, which are fits as users make them, is the stress on a sample of 2,000 bursts in px². These
measurements have no noise, so a fit goes on improving until each stage has had its 500 iterations. "Short" rows give
every stage 25; their figure is how processor seconds grew from a tenth of the bursts, divided by ten. A row is ok if
its figure is within the bar, and if no process had more than 2 GB resident: all are killed if one does.
"""

from __future__ import annotations

import tempfile
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.rows import Row
from benchmarks.scale.watched import pyloca
from pyloca import datasets
from pyloca.bursts import save_bursts
from pyloca.metrics import stress

__all__ = ["ROWS"]

SIZES = (10_000, 100_000, 1_000_000)
SHORT = "from pyloca.solvers import _fast; _fast.WHITEN_ITERATIONS = 50"  # 25 for each number of bursts
BAR, FASTER = 1e-3, 1.2
SAMPLE = 2000


@cache
def measure(n: int, short: bool, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="pyloca-") as folder:
        path = Path(folder)
        X = _write(path / "bursts.zarr", n, seed)
        options = ["--workers", "2", "-d", "2", "--random-state", str(seed), "-q"]
        files = ["-o", str(path / "model.safetensors"), "--embedding", str(path / "z.npy")]
        first = SHORT if short else ""
        ran = pyloca("fit", str(path / "bursts.zarr"), *options, *files, first=first)
        if ran["code"] != 0:
            return {
                "value": float("inf"),
                "ok": False,
                "code": ran["code"],
                "gb": ran["gb"],
                "said": ran["said"][-400:],
            }
        Z = np.load(path / "z.npy", allow_pickle=False)
    rows = np.random.RandomState(seed).permutation(n)[:SAMPLE]
    error = float(stress(X[rows], Z[rows]))
    facts = {key: ran[key] for key in ("gb", "seconds", "sockets")}
    return {"value": error, "ok": error <= BAR and not ran["exceeded"], "stress": error, **facts}


def _write(path: Path, n: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    data = datasets.wifi(n, random_state=seed)
    save_bursts(data.bursts, path)
    return data.X


def growth(n: int, seed: int) -> dict[str, Any]:
    facts, before = measure(n, True, seed), measure(n // 10, True, seed) if n > SIZES[0] else None
    if "seconds" not in facts or (before is not None and "seconds" not in before):
        return facts
    ratio = 1.0 if before is None else facts["seconds"] / before["seconds"] / 10
    return facts | {"value": ratio, "ok": ratio <= FASTER}


def _row(n: int, short: bool) -> Row:
    kind = "short" if short else "full"
    name = f"N = 1e{round(np.log10(n))}, {kind}"
    if short:
        return Row(name, FASTER, "growth of time / growth of N", partial(growth, n), seeds=(0,))
    return Row(name, BAR, "stress in px²", partial(measure, n, False), seeds=(0,))


ROWS = tuple(_row(n, short) for short in (True, False) for n in SIZES)
