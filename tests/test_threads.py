"""No more threads than pay, and the user's settings as they were."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from threadpoolctl import threadpool_info

from pyloca import LOCA, datasets
from pyloca._threads import one_thread
from pyloca.solvers import _problem

pytestmark = pytest.mark.filterwarnings("ignore::pyloca.TrustWarning")  # fits are cut short


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def bursts():
    return datasets.mushroom(n_bursts=60, n_points=10, random_state=0).bursts


def small_fit(bursts, **settings):
    return LOCA(2, burst_std=0.01, hidden_layers=(5,), random_state=0, max_iter=5, **settings).fit(bursts)


def test_a_small_fit_has_one_thread_and_leaves_the_settings(three_threads, bursts):
    seen = []
    small_fit(bursts, callbacks=[lambda _: seen.append(torch.get_num_threads())])
    assert set(seen) == {1} and torch.get_num_threads() == 3


def test_the_settings_come_back_after_an_error(three_threads, bursts):
    def fail(_):
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        small_fit(bursts, callbacks=[fail])
    assert torch.get_num_threads() == 3


def test_large_matrices_have_the_users_threads(three_threads, bursts, monkeypatch):
    monkeypatch.setattr(_problem, "PAYS", 1.0)
    seen = []
    small_fit(bursts, callbacks=[lambda _: seen.append(torch.get_num_threads())])
    assert set(seen) == {3}


def test_fits_beside_each_other_restore_what_was_before_the_first(three_threads):
    def job(_):
        with one_thread():
            return torch.get_num_threads()

    with one_thread(), ThreadPoolExecutor(4) as pool:
        assert set(pool.map(job, range(20))) == {1}
    assert torch.get_num_threads() == 3


def test_one_thread_inside_another_stays_one(three_threads):
    with one_thread():
        with one_thread():
            pass
        assert torch.get_num_threads() == 1
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}
    assert torch.get_num_threads() == 3


def test_a_new_thread_beside_a_fit_does_not_take_over_its_setting(three_threads):
    """New threads copy the latest setting of the process, which is 1 while another thread fits."""

    def job():
        with one_thread():
            pass
        return torch.get_num_threads()

    with one_thread(), ThreadPoolExecutor(1) as pool:
        assert pool.submit(job).result() == 3
