"""The state of a training in one file, from which an interrupted fit resumes."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from pyloca._atomic import write_atomically
from pyloca.errors import ModelFileError

__all__ = ["CheckpointFile", "State"]

FORMAT, VERSION = "pyloca-checkpoint", 4
EVERY = 5.0  # seconds between two writes; states in between are written when the fit is interrupted
SAME = 1e-9  # relative difference up to which two settings are equal, such as an estimated σ
DATA = "data"  # the fact that is a digest of the data

Record = dict[str, Any]


@dataclass
class State:
    """All that a training needs to resume. Each solver has its own, whose fields are what a checkpoint holds.

    Fields are numbers, strings and tuples of them, which go into the JSON header of a safetensors file, and tensors and
    dicts of tensors, which are the tensors of that file. Each has a default of the type that it is read as.
    """


class CheckpointFile:
    """The latest state of one training.

    Parameters
    ----------
    path : Path
    facts : dict
        Data and settings of the training, ready for JSON; a file with other facts belongs to another training.
    """

    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        self.path = path
        self.facts: dict[str, Any] = json.loads(json.dumps(facts))  # as they will be read again
        self._latest: tuple[State, list[Record]] | None = None
        self._written = time.monotonic()

    def read(self, state: State) -> list[Record] | None:
        """Read the file.

        Parameters
        ----------
        state : State
            Filled in.

        Returns
        -------
        list of dict or None
            The history; None when there is no file.

        Raises
        ------
        ModelFileError
            If the file is not a checkpoint of this version, or was written for other data or settings.
        """
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ModelFileError(f"{self.path}: cannot be read ({error.strerror}).") from error
        try:
            size = int.from_bytes(content[:8], "little")
            tensors = safetensors.torch.load(content)
            header = json.loads(json.loads(content[8 : 8 + size])["__metadata__"][FORMAT])
            found, facts = header["version"], header["facts"]
        except Exception as error:  # every failure of the parser means the same: not our file
            raise self._foreign(error) from error
        if found != VERSION:
            raise ModelFileError(
                f"{self.path}: checkpoint format version {found}; this pyloca reads version {VERSION}. "
                "Finish the fit with the pyloca that wrote it, or delete the file to start again."
            )
        self._compare(facts)
        try:
            _join(state, header["state"], tensors)
            history: list[Record] = header["history"]
        except (KeyError, TypeError) as error:
            raise self._foreign(error) from error
        return history

    def keep(self, state: State, history: list[Record]) -> None:
        """Keep a state; it is written every few seconds, and by `write`.

        Parameters
        ----------
        state : State
            Must not change afterwards.
        history : list of dict
        """
        self._latest = (state, list(history))
        if time.monotonic() - self._written >= EVERY:
            self.write()

    def write(self) -> None:
        """Write the latest state, if it is not written yet, atomically."""
        if self._latest is None:
            return
        state, history = self._latest
        values, tensors = _split(state)
        header = {"version": VERSION, "facts": self.facts, "state": values, "history": history}
        write_atomically(self.path, safetensors.torch.save(tensors, {FORMAT: json.dumps(header)}))
        self._latest, self._written = None, time.monotonic()

    def _compare(self, facts: dict[str, Any]) -> None:
        """Refuse the file of another fit, naming the first fact that differs."""
        for name in {**self.facts, **facts}:
            was, now = facts.get(name), self.facts.get(name)
            if _same(was, now):
                continue
            if name == DATA:
                what = f"it was written for other data (digest {str(was)[:12]}…, now {str(now)[:12]}…)."
            else:
                what = f"it was written for another fit: {name} was {was} and is {now}."
            raise ModelFileError(
                f"{self.path}: {what} Resume with the same data and settings, or delete the file to start again."
            )

    def _foreign(self, error: Exception) -> ModelFileError:
        return ModelFileError(f"{self.path}: not a checkpoint of pyloca ({error}). Delete it, or give another path.")


def _split(state: State) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Split a state into the fields for a JSON header, and its tensors by name."""
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
    # copies: the latest weights may also be the best, and the format does not allow shared memory
    return values, {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}


def _join(state: State, values: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Invert `_split`, into a state whose fields already have the right types."""
    for field in fields(state):
        name, old = field.name, getattr(state, field.name)
        new: Any
        if isinstance(old, Tensor):
            new = tensors[name]
        elif isinstance(old, dict):
            new = {key.removeprefix(f"{name}."): t for key, t in tensors.items() if key.startswith(f"{name}.")}
        else:
            new = tuple(values[name]) if isinstance(old, tuple) else values[name]
        setattr(state, name, new)


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=SAME)
    return bool(first == second)
