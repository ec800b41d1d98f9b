"""A file of bursts much larger than the memory that may be used: inspected and fitted from the shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import print_table, write_results
from pyloca.metrics import stress

SHAPE = (4_000, 3125, 100)  # 10 GB in float64
SIGMA = 0.01
MEMORY_BAR, STRESS_BAR = 3.0, 0.01
ROOM = 1.2  # of the file's size that must be free on the disk

Array = NDArray[np.float64]


def run(seeds: list[int]) -> bool:
    size = int(np.prod(SHAPE)) * 8
    with tempfile.TemporaryDirectory(prefix="pyloca-") as folder:
        free = shutil.disk_usage(folder).free
        if free < ROOM * size:
            print(f"NOT RUN: the file has {size / 1e9:.0f} GB, and {folder} has {free / 1e9:.0f} GB free")
            return False
        path = Path(folder) / "bursts.npy"
        X = write(path)
        rows = [
            measure("inspect", [str(path)]),
            measure("fit", [str(path), "--burst-std", str(SIGMA), "-q", "--embedding", f"{folder}/z.npy"]),
        ]
        error = float(stress(X, np.load(f"{folder}/z.npy", allow_pickle=False)) / X.var(axis=0).sum())
    cells = [(row["command"], f"{size / 1e9:.1f}", row["gb"], row["seconds"]) for row in rows]
    print_table("a file larger than memory", ("command", "file GB", "peak GB", "seconds"), cells)
    print(f"stress / latent variance of the fit: {error:.1e} (bar {STRESS_BAR})")
    holds = max(row["gb"] for row in rows) <= MEMORY_BAR and error <= STRESS_BAR
    facts = {"shape": SHAPE, "file_gb": size / 1e9, "memory_bar": MEMORY_BAR, "stress_bar": STRESS_BAR}
    write_results("big_file", facts | {"rows": rows, "stress": error, "holds": holds})
    return holds


def write(path: Path) -> Array:
    """The unit square through 100 waves, burst by burst to the disk; the latents are returned."""
    random = np.random.RandomState(0)
    X, waves = random.uniform(size=(SHAPE[0], 2)), random.standard_normal((2, SHAPE[2]))
    # Not through a map: a child's peak memory starts at what its parent holds.
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": SHAPE})
        for x in X:
            burst = np.cos((x + SIGMA * random.standard_normal((SHAPE[1], 2))) @ waves)
            file.write(burst.astype("<f8").tobytes())
    print(
        f"written: {path.stat().st_size / 1e9:.1f} GB, {path.stat().st_blocks * 512 / 1e9:.1f} GB on the disk",
        flush=True,
    )
    return X


def measure(command: str, arguments: list[str]) -> dict[str, Any]:
    """Run the command in a process of its own; its peak resident memory."""
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "pyloca", command, *arguments])
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"pyloca {command} ended with exit code {child.returncode}")
    return {"command": command, "gb": usage.ru_maxrss / 1e6, "seconds": time.perf_counter() - start}  # kB on Linux
