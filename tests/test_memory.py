"""Buffers that are taken and freed again and again."""

import os
import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys
import numpy as np
from pyloca._memory import keep_memory
if sys.argv[1] == "keep":
    keep_memory()
def work():
    for _ in range(200):
        np.empty(1 << 18).fill(1.0)  # 2 MB
work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_buffers_are_kept_where_dask_has_them_given_back():
    environment = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536"}

    def faults(word):
        command = [sys.executable, "-c", FAULTS, word]
        return int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)

    assert faults("keep") < 2000 < faults("leave")
