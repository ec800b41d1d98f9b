"""The pass over raw bursts that makes their statistics, part by part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyloca.bursts import Bursts, map_parts
from pyloca.errors import BurstError
from pyloca.geometry._keep import KeepParts
from pyloca.geometry._local import Local, look, nothing
from pyloca.geometry._noise import Noise
from pyloca.geometry._rails import Rails
from pyloca.geometry._refusals import refuse_bad_values, refuse_missing

__all__ = ["KeepParts", "look_at_all"]


@dataclass(frozen=True)
class _Look:
    """Looks at the bursts of one part; workers are sent this."""

    k: int
    noise: Noise | None
    floor: NDArray[np.float64] | None
    factor: float | None

    def __call__(self, part: Bursts) -> dict[str, NDArray[Any]]:
        seen, rails = Local.empty(len(part), self.k, part.n_features), Rails(part)
        for rows, block in part.blocks():
            refuse_bad_values(part, rows, block)
            if block.shape[1] <= self.k:  # too short, and few enough to be left out
                pictures = nothing(block, self.k)
            else:
                rails.add(rows, block)
                known = self.noise is not None and self.floor is not None
                white = self.noise.whitener(block.mean(axis=1), self.floor) if known else None  # type: ignore[union-attr, arg-type]
                pictures = look(block, self.k, white, self.factor)
            for array, values in zip(seen, pictures, strict=True):
                array[rows] = values
        return seen._asdict() | {f"rails.{name}": array for name, array in rails.taken().items()}


def look_at_all(
    bursts: Bursts,
    k: int,
    noise: Noise | None,
    floor: NDArray[np.float64] | None,
    keep: KeepParts | None,
    factor: float | None = None,
) -> tuple[Local, Rails]:
    """Compute the local pictures of all bursts, and see which sensors are at their ends.

    Every burst is looked at by itself, so the cut into parts does not change a bit.

    Parameters
    ----------
    bursts : Bursts
    k : int
    noise : Noise or None
    floor : (D,) array or None
        With the noise.
    keep : KeepParts or None
    factor : float, optional
        As for `look`.

    Returns
    -------
    Local, Rails
    """
    seen, rails = Local.empty(len(bursts), k, bursts.n_features), Rails(bursts)
    try:
        looking = _Look(k, noise, floor, factor)
        for rows, found in map_parts(bursts, looking, keep=None if keep is None else keep.of("look")):
            for name, array in zip(Local._fields, seen, strict=True):
                array[rows] = found[name]
            rails.merge(rows, {name[6:]: array for name, array in found.items() if name.startswith("rails.")})
    except BurstError:
        refuse_missing(bursts)  # only a part was read; say what all bursts lack
        raise
    return seen, rails
