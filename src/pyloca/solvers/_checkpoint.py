"""The state of a training in a file, from which an interrupted fit resumes."""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pyloca._atomic import write_atomically
from pyloca._sealed import Arrays, read_bytes, seal, unseal
from pyloca.errors import ModelFileError

__all__ = ["EVERY", "CheckpointFile", "State", "checkpoint_files", "is_state"]

FORMAT, VERSION = "pyloca-checkpoint", 8
EVERY = 10.0  # seconds between two writes; states in between are written when the fit is interrupted
DATA = "data"  # the fact that is a digest of the data

Record = dict[str, Any]


@dataclass
class State:
    """All that a training needs to resume. Each solver has its own, whose fields are what a checkpoint holds.

    Fields are numbers, strings and tuples of them, which go into the JSON header of a safetensors file, and tensors and
    dicts of tensors, which are the tensors of that file. Each has a default of the type that it is read as; tensors of
    numbers are float64 if their default is an empty float32.
    """


def checkpoint_files(path: Path) -> tuple[Path, ...]:
    """List the files that a training may leave at `path`.

    Parameters
    ----------
    path : Path

    Returns
    -------
    tuple of Path
        The newest state, the one before it, and one that was not finished when the process was killed.

    Examples
    --------
    >>> [file.name for file in checkpoint_files(Path("m.checkpoint"))]
    ['m.checkpoint', 'm.checkpoint.previous', 'm.checkpoint.next']
    """
    return path, path.with_name(f"{path.name}.previous"), path.with_name(f"{path.name}.next")


class CheckpointFile:
    """The latest states of one training, in a file with a checksum; the one before stays beside it.

    A file that cannot be written ends no training: a warning says so, once.

    Parameters
    ----------
    path : Path
    facts : dict
        Data and settings of the training, ready for JSON; a file with other facts belongs to another training.
    every : float
        Seconds between two writes.
    resume : bool
        Whether to read what is there; else it is replaced, with the first write.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = CheckpointFile(pathlib.Path(folder, "fit.checkpoint"), {"data": "a digest"})
    ...     file.path.exists()  # not before the first state is written
    False
    """

    def __init__(self, path: Path, facts: dict[str, Any], every: float = EVERY, *, resume: bool = True) -> None:
        self.path, self.previous, self._next = checkpoint_files(path)
        self.facts: dict[str, Any] = json.loads(json.dumps(facts))  # as they will be read again
        self._every, self._resume = every, resume
        self._latest: tuple[State, list[Record]] | None = None
        self._written = time.monotonic()
        self._sound = True  # False while the newest file is damaged: it must not replace the one before
        self._warned = False

    def read(self, state: State) -> list[Record] | None:
        """Read the newest file, or the one before it if that is damaged or missing, with a warning.

        Parameters
        ----------
        state : State
            Filled in.

        Returns
        -------
        list of dict or None
            The history; None when there is no file, or it is not to be read.

        Raises
        ------
        ModelFileError
            If there is no file that is whole and a checkpoint of this version, or it was written for other data or
            settings.
        """
        there = [path for path in (self.path, self.previous) if os.path.lexists(path)]
        if not there or not self._resume:
            return None
        try:
            return self._read(there[0], state)
        except _DamagedError as error:
            if there[0] == self.previous or len(there) == 1:
                raise ModelFileError(f"{error} Delete it, or give another path.") from None
            reason = str(error)
        try:
            history = self._read(self.previous, state)
        except _DamagedError as error:
            raise ModelFileError(f"{reason} Neither can the one before it: {error} Delete both.") from None
        self._sound = False
        warnings.warn(f"{reason} The fit continues from the one before it, '{self.previous}'.", stacklevel=2)
        return history

    def _read(self, path: Path, state: State) -> list[Record]:
        try:
            header, arrays = unseal(read_bytes(path), FORMAT, (VERSION,), str(path))
            facts, values, history = header["facts"], header["state"], header["history"]
            if not (isinstance(facts, dict) and isinstance(values, dict)):
                raise KeyError("facts or state")
        except (ModelFileError, KeyError) as error:
            raise _DamagedError(str(error)) from error
        self._compare(path, facts)
        try:
            _join(state, values, {name: torch.from_numpy(array.copy()) for name, array in arrays.items()})
            _check_history(history)
        except (KeyError, TypeError, OverflowError) as error:
            raise _DamagedError(f"{path}: not the state of this training ({str(error)[:200]}).") from error
        return list(history)

    def keep(self, state: State, history: list[Record]) -> None:
        """Keep a state; it is written every few seconds, and by `write`.

        Parameters
        ----------
        state : State
            Must not change afterwards.
        history : list of dict
        """
        self._latest = (state, list(history))
        if time.monotonic() - self._written >= self._every:
            self.write()

    def write(self) -> None:
        """Write the latest state, if it is not written yet.

        At every moment there is a whole file: the new one is finished under another name, then the newest becomes the
        one before, then the new one takes its place.

        Warns
        -----
        UserWarning
            If that is not possible, with the file and the cause; the first time only. The files are as they were.
        """
        if self._latest is None:
            return
        state, history = self._latest
        values, arrays = _split(state)
        header = {"version": VERSION, "facts": self.facts, "state": values, "history": history}
        self._written = time.monotonic()
        try:
            write_atomically(self._next, seal(FORMAT, header, arrays))
            if self._sound and self.path.exists():
                os.replace(self.path, self.previous)
            os.replace(self._next, self.path)
        except OSError as error:
            with suppress(OSError):
                self._next.unlink(missing_ok=True)
            self._warn(error)
            return
        self._latest, self._sound = None, True

    def _warn(self, error: OSError) -> None:
        if self._warned:
            return
        self._warned = True
        reason = os.strerror(error.errno) if error.errno else str(error)
        kept = " The earlier one is as it was." if os.path.lexists(self.path) else ""
        warnings.warn(
            f"the checkpoint '{self.path}' cannot be written ({reason}).{kept} The fit continues and "
            "writes it as soon as possible; if it is interrupted before that, what it has done since is lost.",
            stacklevel=2,
        )

    def _compare(self, path: Path, facts: dict[str, Any]) -> None:
        """Refuse the file of another fit, naming the first fact that differs."""
        for name in {**self.facts, **facts}:
            was, now = facts.get(name), self.facts.get(name)
            if was == now:
                continue
            if name == DATA:
                what = f"it was written for other data (digest {str(was)[:12]}…, now {str(now)[:12]}…)."
            else:
                what = f"it was written for another fit: {name} was {was} and is {now}."
            raise ModelFileError(
                f"{path}: {what} Resume with the same data and settings, or delete the file to start again."
            )


class _DamagedError(Exception):
    """A file is not a checkpoint, or not a whole one."""


def _split(state: State) -> tuple[dict[str, Any], Arrays]:
    """Split a state into the fields for a JSON header, and its arrays by name."""
    values: dict[str, Any] = {}
    tensors: dict[str, Tensor] = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, Tensor):
            tensors[field.name] = value
        elif isinstance(value, dict):
            tensors |= {f"{field.name}.{key}": tensor for key, tensor in value.items()}
        else:
            values[field.name] = value
    return values, {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def _join(state: State, values: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Invert `_split`, into a state whose fields already have the right types."""
    for field in fields(state):
        name, old = field.name, getattr(state, field.name)
        new: Any
        if isinstance(old, Tensor):
            new = tensors[name]
            kinds = (torch.float64, torch.float32) if old.is_floating_point() else (old.dtype,)  # float32: never filled
            if new.dtype not in kinds or not bool(torch.isfinite(new).all()):
                raise TypeError(f"{name} holds {new.dtype}, or values that are not finite")
        elif isinstance(old, dict):
            new = {key.removeprefix(f"{name}."): t for key, t in tensors.items() if key.startswith(f"{name}.")}
        elif isinstance(old, tuple):
            new = values[name]
            if not isinstance(new, list) or not all(isinstance(part, str) for part in new):
                raise TypeError(f"{name} is not a list of names")
            new = tuple(new)
        else:
            new = values[name]
            if not _is_like(new, old):
                raise TypeError(f"{name} is {str(new)[:50]!r}")
            new = type(old)(new)  # NumPy cannot judge an integer beyond 64 bits
        setattr(state, name, new)


def _is_like(new: Any, old: Any) -> bool:
    """Whether a value may be what a field of a state holds; infinite scores are those of the beginning."""
    if isinstance(old, bool) or isinstance(new, bool):
        return isinstance(old, bool) and isinstance(new, bool)
    if isinstance(old, float):
        return isinstance(new, float) and not math.isnan(new)
    if isinstance(old, int):
        return isinstance(new, int) and 0 <= new < 2**53
    return isinstance(new, str)


def _check_history(history: Any) -> None:
    """Raise if what a file calls its history is not a list of records."""
    if not isinstance(history, list) or not history:
        raise TypeError("its history is empty")
    for record in history:
        numbers = {name: value for name, value in record.items() if name != "stage"} if isinstance(record, dict) else {}
        if not {"iteration", "seconds"} <= set(numbers) or not isinstance(record.get("stage"), str):
            raise TypeError("its history has a record without stage, iteration or time")
        if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in numbers.values()):
            raise TypeError("its history holds what is not a number")
        if not isinstance(numbers["iteration"], int) or not math.isfinite(numbers["seconds"]):
            raise TypeError("its history holds what is not a number")


def is_state(state: Tensor) -> bool:
    """Tell whether these bytes are the state of a generator of PyTorch.

    Parameters
    ----------
    state : Tensor

    Returns
    -------
    bool

    Examples
    --------
    >>> is_state(torch.Generator().get_state()), is_state(torch.zeros(3, dtype=torch.uint8))
    (True, False)
    """
    try:
        torch.Generator().set_state(state)
    except (RuntimeError, TypeError):
        return False
    return True
