"""Bursts from files. `.npy` is memory-mapped; nothing here unpickles."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from pyloca.bursts._container import Bursts
from pyloca.errors import BurstError

__all__ = ["open_bursts"]


def open_bursts(path: str | os.PathLike[str]) -> Bursts:
    """Open `.npy` (N, M, D; memory-mapped) or `.npz` (`bursts`, or `points` and `offsets` when ragged)."""
    path = Path(path)
    if path.suffix not in {".npy", ".npz"}:
        raise BurstError(f"{path}: bursts are read from .npy or .npz files; got the suffix {path.suffix!r}.")
    if not path.is_file():
        raise BurstError(f"{path}: there is no such file.")
    try:
        if path.suffix == ".npy":
            return Bursts(np.load(path, mmap_mode="r", allow_pickle=False))
        # opened here, because np.load leaves the file open when it cannot read it
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if "bursts" in archive:
                return Bursts(archive["bursts"])
            if {"points", "offsets"} <= set(archive):
                return Bursts.from_ragged(archive["points"], archive["offsets"])
            names = ", ".join(archive) or "nothing"
    except BurstError as error:
        raise BurstError(f"{path}: {error}") from None
    except Exception as error:  # NumPy raises many kinds on garbage; all mean the same to the user
        reason = "it is no such file, or holds Python objects" if "pickle" in str(error) else str(error)
        raise BurstError(f"{path}: not a readable {path.suffix} file of numbers ({reason}).") from error
    raise BurstError(f"{path}: holds {names}; expected `bursts` (N, M, D), or `points` (n, D) and `offsets` (N + 1).")
