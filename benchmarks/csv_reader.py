"""How long a long table in CSV takes to read, against `numpy.loadtxt` on the same file in the same run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.tables import print_table, write_results
from pyloca.bursts import Bursts, open_bursts, save_bursts

BAR = 1.5  # × the processor time of numpy.loadtxt
N, M, D, RUNS = 20_000, 10, 7, 3


def seconds(call: Callable[[], object]) -> float:
    """The least processor time of some runs."""
    taken = []
    for _ in range(RUNS):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return min(taken)


def run(seeds: list[int]) -> bool:
    values = np.random.RandomState(seeds[0]).standard_normal((N, M, D))
    with tempfile.TemporaryDirectory() as folder:
        path = save_bursts(Bursts(values), Path(folder) / "table.csv")
        read = open_bursts(path).to_array()
        if not np.array_equal(read, values):
            raise AssertionError("the table was not read back as it was written")
        numpys = seconds(lambda: np.loadtxt(path, delimiter=",", skiprows=1))
        ours = seconds(lambda: open_bursts(path))
    rows = [("numpy.loadtxt", numpys, 1.0), ("open_bursts", ours, ours / numpys)]
    print_table(f"{N * M:,} rows of {D + 1} columns, processor seconds", ("reader", "seconds", "ratio"), rows)
    write_results("csv_reader", {"bar": BAR, "loadtxt": numpys, "open_bursts": ours, "ratio": ours / numpys})
    return ours <= BAR * numpys
