"""How far a training is, in one file: an interrupted fit goes on from there."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from pyloca._atomic import write_atomically
from pyloca.errors import ModelFileError

__all__ = ["CheckpointFile", "State"]

FORMAT, VERSION = "pyloca-checkpoint", 1
EVERY = 5.0  # seconds between two writes; what lies between is written when the fit is interrupted
SAME = 1e-9  # relative difference up to which two numbers are one, summed on another machine


@dataclass(frozen=True)
class State:
    """A training at one of its checks: the stage, numbers and weights that it takes to go on."""

    stage: str
    numbers: dict[str, float]
    tensors: dict[str, Tensor]


class CheckpointFile:
    """The latest state of one training, told from that of another by `facts` of its data and settings."""

    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        self.path = path
        self.facts: dict[str, Any] = json.loads(json.dumps(facts))  # as they will be read again
        self._latest: tuple[State, list[dict[str, Any]]] | None = None
        self._written = time.monotonic()

    def read(self) -> tuple[State, list[dict[str, Any]]] | None:
        """The state and its history; None when there is no file. That of another fit is refused."""
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
            found, facts, history = header["version"], header["facts"], header["history"]
            state = State(header["stage"], header["numbers"], tensors)
        except Exception as error:  # every failure of the parser means the same: not our file
            raise ModelFileError(f"{self.path}: not a checkpoint of pyloca ({error}). Remove it.") from error
        if found != VERSION:
            raise ModelFileError(f"{self.path}: format version {found}; this pyloca reads {VERSION}. Remove it.")
        for name in {**self.facts, **facts}:
            if not _same(facts.get(name), self.facts.get(name)):
                raise ModelFileError(
                    f"{self.path}: is of another fit: {name} was {facts.get(name)} and is {self.facts.get(name)}. "
                    "Go on with the same data and settings, or remove it to start anew."
                )
        return state, history

    def keep(self, state: State, history: list[dict[str, Any]]) -> None:
        """Take note of a state; it is written now and then, and by `write`."""
        self._latest = (state, list(history))
        if time.monotonic() - self._written >= EVERY:
            self.write()

    def write(self) -> None:
        """Write what was noted since the last time, whole or not at all."""
        if self._latest is None:
            return
        state, history = self._latest
        header = {
            "version": VERSION,
            "facts": self.facts,
            "stage": state.stage,
            "numbers": state.numbers,
            "history": history,
        }
        # copies: the latest weights may be the best, and the format has no two names for one memory
        tensors = {name: tensor.detach().cpu().clone() for name, tensor in state.tensors.items()}
        write_atomically(self.path, safetensors.torch.save(tensors, {FORMAT: json.dumps(header)}))
        self._latest, self._written = None, time.monotonic()


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=SAME)
    return bool(first == second)
