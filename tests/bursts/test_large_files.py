"""Bursts that are larger than memory."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from helpers import HANG
from pyloca.bursts import Bursts, open_bursts


def test_a_sparse_file_of_64_gigabytes_opens_and_reads_in_parts(tmp_path):
    path = tmp_path / "huge.npy"
    shape = (500_000, 800, 20)
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=shape)
    file[499_999, 799] = np.arange(20)
    del file
    tracemalloc.start()
    bursts = open_bursts(path)
    rows, block = next(bursts.blocks())
    last = bursts[499_990:][9]
    held = bursts.split(1e-5, seed=0)[1].to_array()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(bursts) == 500_000
    assert block.shape == (len(rows), 800, 20)
    assert block.size <= 1 << 22
    np.testing.assert_array_equal(last[-1], np.arange(20))
    assert held.shape == (5, 800, 20)
    assert peak < 200e6


def test_a_whole_pass_holds_one_chunk_at_a_time(tmp_path):
    path = tmp_path / "large.npy"
    np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(4000, 1000, 20)).flush()
    bursts = open_bursts(path)
    tracemalloc.start()
    seen = sum(len(rows) for rows, _ in bursts.blocks())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seen == 4000
    assert peak < 100e6  # the file has 320 MB, and 640 MB as float64


def test_changes_to_a_private_map_survive_a_pass(tmp_path):
    """Mode "c" keeps what was written in memory only; pages of it must not be given back."""
    np.save(tmp_path / "b.npy", np.zeros((50, 40, 30)))
    array = np.load(tmp_path / "b.npy", mmap_mode="c")
    array[:] = 1
    list(Bursts(array).blocks(1200))
    assert array.min() == 1


FIT = """
import sys
from pathlib import Path
from pyloca import LOCA
from pyloca.inspection import inspect_bursts

def work(path):
    k = inspect_bursts(path).intrinsic_dim
    LOCA(2, burst_std=0.01, random_state=0, hidden_layers=(8,), max_iter=260).fit(path)
    return k

def peak():  # kilobytes; getrusage would begin at what the parent holds
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])

small, large = sys.argv[1:]
work(small)  # what is imported and allocated once is not counted
before = peak()
print(work(large), peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is counted in other ways elsewhere")
def test_a_file_is_inspected_and_fitted_in_much_less_memory_than_it_has(tmp_path):
    """What is mapped and read counts as resident until it is given back."""
    paths = {40: tmp_path / "small.npy", 6000: tmp_path / "large.npy"}  # 2.6 MB and 384 MB
    random = np.random.RandomState(0)
    waves = random.standard_normal((2, 40))
    for m, path in paths.items():
        file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(200, m, 40))
        for i, x in enumerate(random.uniform(size=(200, 2))):
            file[i] = np.cos((x + 0.01 * random.standard_normal((m, 2))) @ waves)
    command = [sys.executable, "-W", "ignore", "-c", FIT, *map(str, paths.values())]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HANG, env=environment)
    k, grown = map(int, done.stdout.split())
    assert k == 2
    # A few copies of one block make 130 MB here, whatever the size of the file: far from the bar, which is itself
    # far from the whole file.
    assert grown * 1024 < 0.6 * paths[6000].stat().st_size
