"""A fork waits for threads that compute, and never for ever."""

import os
import threading
import time

import pytest

from helpers import HANG
from pyloca import _forks
from pyloca._forks import COMPUTING, HELPING, RESTING, breathe

pytestmark = pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="this system has no fork")


def fork(child=lambda: True):
    """Fork; return whether the child ended, and what it found was true."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if child() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


class Thread(threading.Thread):
    """A thread that is in a section until it is told to leave."""

    def __init__(self, section):
        super().__init__()
        self.section, self.inside, self.leave = section, threading.Event(), threading.Event()
        self.start()

    def run(self):
        with self.section:
            self.inside.set()
            self.leave.wait(HANG)


def test_a_fork_waits_for_a_thread_that_computes():
    other, forked = Thread(COMPUTING), []
    assert other.inside.wait(HANG)
    forking = threading.Thread(target=lambda: forked.append(fork(lambda: not _forks._state.computing)))
    forking.start()
    while not _forks._state.wanted:
        time.sleep(0.001)
    late = Thread(COMPUTING)  # waits for the fork
    assert not late.inside.wait(0.05)
    assert not forked
    other.leave.set()
    forking.join(HANG)
    assert forked == [True]
    assert late.inside.wait(HANG)
    late.leave.set()
    for thread in (other, late):
        thread.join(HANG)
    assert not _forks._state.computing
    assert not _forks._state.wanted


def test_a_thread_may_fork_while_it_computes_itself():
    me = threading.get_ident()
    with COMPUTING, COMPUTING:
        assert fork(lambda: _forks._state.computing == {me})
        assert me in _forks._state.computing
    assert not _forks._state.computing


def test_a_helper_does_not_wait_for_a_fork_that_waits_for_its_master():
    master, forked = Thread(COMPUTING), []
    assert master.inside.wait(HANG)
    forking = threading.Thread(target=lambda: forked.append(fork()))
    forking.start()
    while not _forks._state.wanted:
        time.sleep(0.001)
    helper = Thread(HELPING)
    assert helper.inside.wait(HANG)
    for thread in (helper, master):
        thread.leave.set()
    forking.join(HANG)
    assert forked == [True]


def test_a_fork_does_not_wait_for_a_thread_that_rests():
    with COMPUTING, RESTING:
        other = threading.Thread(target=fork)
        other.start()
        other.join(HANG)
        assert not other.is_alive()
        assert not _forks._state.computing
    assert not _forks._state.computing


def test_a_long_section_lets_a_fork_happen_now_and_then():
    forked, end = [], time.monotonic() + HANG
    with COMPUTING:
        other = threading.Thread(target=lambda: forked.append(fork()))
        other.start()
        while not forked and time.monotonic() < end:
            breathe()
            time.sleep(0.001)
    assert forked == [True]


def test_a_fork_goes_ahead_in_the_end(monkeypatch):
    monkeypatch.setattr(_forks, "LONGEST", 0.05)
    other = Thread(COMPUTING)
    assert other.inside.wait(HANG)
    assert fork()
    other.leave.set()
    other.join(HANG)
    assert not _forks._state.computing


def test_threads_that_are_gone_are_forgotten(monkeypatch):
    monkeypatch.setattr(_forks, "REMEMBERED", 4)
    for _ in range(50):
        thread = Thread(COMPUTING)
        thread.leave.set()
        thread.join(HANG)
    assert len(_forks._state.known) < 50
    assert fork()
    assert _forks._state.known <= _forks._alive()  # threads of other tests may still live
