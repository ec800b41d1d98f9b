"""Reports of a training: history, callbacks, a progress bar or log lines, checkpoints."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from tqdm.auto import tqdm

from pyloca._forks import RESTING, breathe
from pyloca.errors import ModelFileError
from pyloca.solvers._checkpoint import CheckpointFile, State

__all__ = ["Monitor", "StopTraining"]

Record = dict[str, Any]

LOGGER = logging.getLogger("pyloca")


class StopTraining(Exception):  # noqa: N818 - a request, not an error
    """Raised inside a solver when a callback asks it to stop; the best weights so far are kept.

    Examples
    --------
    >>> from pyloca import LOCA
    >>> model = LOCA(2, callbacks=[lambda record: record["seconds"] > 60])  # a callback that returns True ends the fit
    """


class Monitor:
    """Collect one record per check (stage, iteration, losses, seconds) and pass it on.

    Every record is logged to the logger "pyloca" at level INFO.

    Parameters
    ----------
    callbacks : iterable of callables, default=()
        Each is called with every record: a dict with "stage", "iteration", "seconds", "loss" and, except in the stages
        that fit the alignment, "validation_loss". It ends the training by returning True.
    verbose : int, default=0
        If not 0, show a progress bar on a terminal and in a notebook; elsewhere write one line per record to stderr,
        unless the user's own logging takes it.
    checkpoint : CheckpointFile, optional
        Where the states of the solver are kept.

    Attributes
    ----------
    history : list of dict
        All records so far.
    stage : str
        Stage of the last record.

    Examples
    --------
    >>> records = []
    >>> monitor = Monitor([records.append])  # `LOCA(callbacks=...)` passes them on
    >>> monitor.history
    []
    """

    def __init__(
        self,
        callbacks: Iterable[Callable[[Record], Any]] = (),
        verbose: int = 0,
        checkpoint: CheckpointFile | None = None,
    ) -> None:
        self.history: list[Record] = []
        self.stage = ""
        self._checkpoint = checkpoint
        self._callbacks = list(callbacks)
        self._start = time.perf_counter()
        self._verbose = verbose
        self._bar: tqdm[Any] | None = None
        if verbose and (sys.stderr.isatty() or _in_notebook()):
            self._bar = tqdm(unit="it", desc="LOCA", leave=verbose > 1, dynamic_ncols=True)

    def expect(self, iterations: int) -> None:
        """Tell the progress bar how many iterations there will be at most.

        Parameters
        ----------
        iterations : int
        """
        if self._bar is not None:
            self._bar.total = iterations
            self._bar.refresh()

    def advance(self, iterations: int = 1) -> None:
        """Move the progress bar.

        Parameters
        ----------
        iterations : int, default=1
        """
        breathe()
        if self._bar is not None:
            self._bar.update(iterations)

    def record(self, stage: str, iteration: int, state: Callable[[], State] | None = None, **values: float) -> None:
        """Record how far the training is, and keep the state if there is a checkpoint.

        Parameters
        ----------
        stage : str
        iteration : int
            Over all stages.
        state : callable, optional
            Returns the state to resume from; called only if there is a checkpoint.
        **values : float
            Losses and the like, by name.

        Raises
        ------
        StopTraining
            If a callback returned True.
        """
        entry: Record = {
            "stage": stage,
            "iteration": iteration,
            "seconds": time.perf_counter() - self._start,
            **values,
        }
        self.history.append(entry)
        self.stage = stage
        if self._checkpoint is not None and state is not None:
            self._checkpoint.keep(state(), self.history)
        if self._bar is not None:
            losses = {name: f"{value:.3g}" for name, value in values.items()}
            self._bar.set_postfix(stage=stage, **losses)
        losses_text = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
        self._log(f"{stage} {iteration}: {losses_text} ({entry['seconds']:.1f} s)")
        # A list, not any(): every callback sees every record.
        with RESTING:
            answers = [callback(dict(entry)) for callback in self._callbacks]
        if any(isinstance(answer, (bool, np.bool_)) and answer for answer in answers):
            raise StopTraining

    def _log(self, message: str) -> None:
        """Log a line, or write it to stderr if the user asked for lines and no logging is set up to take them.

        A library must not set up logging itself; `logging.lastResort` does the same for warnings.
        """
        if LOGGER.isEnabledFor(logging.INFO) and LOGGER.hasHandlers():
            LOGGER.info("%s", message)
        elif self._verbose and self._bar is None:
            sys.stderr.write(message + "\n")

    def resume(self, state: State) -> bool:
        """Read the state of an interrupted training.

        Parameters
        ----------
        state : State
            Filled in.

        Returns
        -------
        bool
            Whether there was one.
        """
        history = None if self._checkpoint is None else self._checkpoint.read(state)
        if history is None:
            return False
        self.history = history
        self.stage = history[-1]["stage"]
        self._start -= history[-1]["seconds"]
        self.advance(history[-1]["iteration"])
        return True

    def refuse(self, fault: str) -> None:
        """Refuse the state that `resume` has read, if it cannot be one of this training although its checksum is right.

        Parameters
        ----------
        fault : str
            What cannot be; empty if all can.

        Raises
        ------
        ModelFileError
        """
        if fault and self._checkpoint is not None:
            path, self._checkpoint = self._checkpoint.path, None  # which is left as it is
            raise ModelFileError(f"{path}: not the state of this training ({fault}). Delete it, or give another path.")

    def close(self) -> None:
        """Write the latest state, and remove the progress bar."""
        if self._checkpoint is not None:
            self._checkpoint.write()
        if self._bar is not None:
            self._bar.close()


def _in_notebook() -> bool:
    """Whether `tqdm.auto` chose the bar of notebooks, where stderr is not a terminal."""
    return any(kind.__module__ == "tqdm.notebook" for kind in tqdm.__mro__)
