"""Instruments, each fitted once for all tests of this folder."""

import numpy as np
import pytest

from instruments import fit, gauge, plan, sheet


@pytest.fixture(scope="session")
def a():
    return fit(sheet, plan(150, 0), 0)


@pytest.fixture(scope="session")
def b():
    """Another instrument, which was there at other times; the first ten states are those of `a`."""
    X = np.concatenate([plan(150, 0)[:10], plan(140, 1)])
    return fit(gauge, X, 1, ids=[f"run {i}" for i in range(150)])


@pytest.fixture(scope="session")
def free():
    """The same as `b` without a known σ."""
    return fit(gauge, plan(150, 2), 2, known=False)


@pytest.fixture(scope="session")
def square():
    return fit(gauge, np.random.RandomState(3).uniform(0, 1.7, size=(150, 2)), 3)
