"""What a user sees of a training: history, callbacks, and a progress bar or log lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from tqdm.auto import tqdm

__all__ = ["Monitor", "StopTraining"]

Record = dict[str, Any]


class StopTraining(Exception):  # noqa: N818 - a request, not an error
    """Raised inside a solver when a callback asked for the end; the best weights so far are kept."""


class Monitor:
    """Collects one record a check (stage, iteration, losses, seconds) and passes it on.

    A callback takes the record, a dict with "stage", "iteration", "seconds", "loss" and, except in the stages that fit
    the alignment, "validation_loss"; it ends the training by returning True. With ``verbose`` a progress bar is shown
    on a terminal and a line a record on stderr elsewhere.
    """

    def __init__(self, callbacks: Iterable[Callable[[Record], Any]] = (), verbose: int = 0) -> None:
        self.history: list[Record] = []
        self.stage = ""
        self._callbacks = list(callbacks)
        self._start = time.perf_counter()
        self._verbose = verbose
        self._bar: tqdm[Any] | None = None
        if verbose and sys.stderr.isatty():
            self._bar = tqdm(unit="it", desc="LOCA", leave=verbose > 1, dynamic_ncols=True)

    def expect(self, iterations: int) -> None:
        """Tell the progress bar how many iterations there will be at most."""
        if self._bar is not None:
            self._bar.total = iterations
            self._bar.refresh()

    def advance(self, iterations: int = 1) -> None:
        """Move the progress bar."""
        if self._bar is not None:
            self._bar.update(iterations)

    def record(self, stage: str, iteration: int, **values: float) -> None:
        """Note how far the training is."""
        entry: Record = {
            "stage": stage,
            "iteration": iteration,
            "seconds": time.perf_counter() - self._start,
            **values,
        }
        self.history.append(entry)
        self.stage = stage
        if self._bar is not None:
            losses = {name: f"{value:.3g}" for name, value in values.items()}
            self._bar.set_postfix(stage=stage, **losses)
        elif self._verbose:
            losses_text = ", ".join(f"{name} {value:.4g}" for name, value in values.items())
            message = f"{stage} {iteration}: {losses_text} ({entry['seconds']:.1f} s)"
            print(message, file=sys.stderr)
        # A list, not any(): every callback sees every record.
        answers = [callback(dict(entry)) for callback in self._callbacks]
        if any(isinstance(answer, (bool, np.bool_)) and answer for answer in answers):
            raise StopTraining

    def close(self) -> None:
        """Take the progress bar away."""
        if self._bar is not None:
            self._bar.close()
