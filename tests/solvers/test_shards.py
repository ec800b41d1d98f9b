"""Training in shards: the same bits here, on threads, on worker processes, and after one of them was killed."""

import os
import signal

import numpy as np
import pytest
from distributed import Client, LocalCluster

from helpers import planar_bursts
from pyloca import LOCA
from pyloca.errors import WorkerError
from pyloca.solvers import _descent, _fast, _shards


@pytest.fixture
def small(monkeypatch):
    """Make few bursts many."""
    monkeypatch.setattr(_shards, "MANY", 200)
    for module in (_shards, _descent):
        monkeypatch.setattr(module, "SHARD", 64)
    monkeypatch.setattr(_fast, "MANY", 200)


def fit(callbacks=(), n_components=2):
    bursts = planar_bursts(220, 12, k=2, dim=3)[1]
    settings = {"hidden_layers": (6,), "max_iter": 180, "random_state": 0, "callbacks": callbacks}
    return LOCA(n_components, **settings).fit(bursts)


def losses(model):
    return [(record["iteration"], record["loss"], record["decay"]) for record in model.history_]


@pytest.mark.parametrize("n_components", [2, 3])  # with 3, positions are anchored
def test_threads_give_the_same_bits(small, n_components):
    here = fit(n_components=n_components)
    assert here.diagnostics_.notes == ()
    with Client(processes=False, n_workers=1, threads_per_worker=4, dashboard_address="127.0.0.1:0"):
        there = fit(n_components=n_components)
    np.testing.assert_array_equal(there.embedding_, here.embedding_)
    assert losses(there) == losses(here)
    assert there.diagnostics_.notes == ("trained on Dask workers, in shards of 64 bursts",)


@pytest.mark.slow
def test_processes_give_the_same_bits_also_when_one_is_killed(small):
    here, killed = fit(), []
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:

        def kill(record):
            if record["stage"] == "whiten" and not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        with Client(cluster):
            there = fit([kill])
    assert killed
    np.testing.assert_array_equal(there.embedding_, here.embedding_)
    assert losses(there) == losses(here)


def test_many_bursts_are_not_copied(small, monkeypatch):
    """Statistics of the training bursts, and stacks of them, are made part by part: the same bits."""
    copied = fit(n_components=3)
    monkeypatch.setattr(_fast, "MANY", 20)  # held-out bursts as well
    chosen = fit(n_components=3)
    np.testing.assert_array_equal(chosen.embedding_, copied.embedding_)
    np.testing.assert_array_equal(
        chosen.inverse_transform(chosen.embedding_), copied.inverse_transform(copied.embedding_)
    )
    assert losses(chosen) == losses(copied)


def test_few_bursts_stay_here():
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0"):
        model = fit()
    assert model.diagnostics_.notes == (
        "trained in this process, not on Dask workers: below 100,000 bursts that is faster",
    )
    assert "\ntraining         trained in this process" in str(model.diagnostics_)


def test_a_lost_scheduler_is_our_own_error(small):
    with LocalCluster(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster:

        def lose(record):
            if record["stage"] == "whiten":
                cluster.close()

        with Client(cluster), pytest.raises(WorkerError, match="connection to the Dask scheduler was lost"):
            fit([lose])
