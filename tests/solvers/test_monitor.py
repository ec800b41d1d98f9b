"""What is seen and kept of a training."""

import io
import logging
import sys

import pytest

from pyloca.solvers import Monitor, StopTraining


def test_every_callback_sees_every_record_and_only_true_stops():
    seen = []
    monitor = Monitor([lambda r: seen.append(("a", r)) or "yes", lambda r: seen.append(("b", r)) or 1])
    monitor.record("whiten", 50, loss=1.0)
    assert [name for name, _ in seen] == ["a", "b"]
    assert seen[0][1] == monitor.history[0]
    seen[0][1]["loss"] = 7.0  # a callback gets a copy
    assert monitor.history[0]["loss"] == 1.0
    stopping = Monitor([lambda r: True, lambda r: seen.append(("c", r))])
    with pytest.raises(StopTraining):
        stopping.record("whiten", 50, loss=1.0)
    assert seen[-1][0] == "c"
    assert len(stopping.history) == 1


def test_words_go_to_stderr_and_only_when_asked_for(capsys):
    quiet, loud = Monitor(), Monitor(verbose=1)
    for monitor in (quiet, loud):
        monitor.expect(10)
        monitor.advance()
        monitor.record("whiten", 10, loss=0.25)
        monitor.close()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("whiten 10: loss 0.25 (")
    assert err.count("\n") == 1


def test_logging_that_is_set_up_takes_the_lines(caplog, capsys):
    """Also of a fit that is not verbose; a level above INFO leaves stderr to a verbose one."""
    caplog.set_level(logging.INFO, logger="pyloca")
    for verbose in (0, 1):
        Monitor(verbose=verbose).record("whiten", 10, loss=0.25)
    assert [(record.name, record.levelname) for record in caplog.records] == [("pyloca", "INFO")] * 2
    assert all(record.getMessage().startswith("whiten 10: loss 0.25 (") for record in caplog.records)
    assert capsys.readouterr().err == ""
    caplog.set_level(logging.WARNING, logger="pyloca")
    Monitor(verbose=1).record("whiten", 10, loss=0.25)
    assert len(caplog.records) == 2
    assert capsys.readouterr().err.startswith("whiten 10: loss 0.25 (")


def test_logging_is_left_alone(monkeypatch, caplog, capsys):
    """No handler and no level is set, and nothing is lost where the user has set none."""
    logger = logging.getLogger("pyloca")
    monkeypatch.setattr(logger, "propagate", False)  # pytest has handlers at the root
    caplog.set_level(logging.INFO, logger="pyloca")
    Monitor(verbose=1).record("whiten", 10, loss=0.25)
    assert capsys.readouterr().err.startswith("whiten 10: loss 0.25 (")
    assert (logger.handlers, logger.level) == ([], logging.INFO)


def test_a_terminal_gets_a_progress_bar(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    monitor = Monitor(verbose=1)
    monitor.expect(10)
    monitor.advance(4)
    monitor.record("whiten", 4, loss=0.25)
    monitor.close()
    assert "LOCA" in terminal.getvalue()
    assert "whiten" in terminal.getvalue()


def test_a_notebook_gets_a_progress_bar(monkeypatch, capsys):
    from pyloca.solvers import _monitor

    class Bar(_monitor.tqdm):
        __module__ = "tqdm.notebook"

    monkeypatch.setattr(_monitor, "tqdm", Bar)
    monitor = Monitor(verbose=1)
    monitor.record("whiten", 4, loss=0.25)
    monitor.close()
    assert "LOCA" in capsys.readouterr().err
