"""Statistics of several sets of bursts as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pyloca.errors import BurstError
from pyloca.geometry._scatter_rule import Scatter

if TYPE_CHECKING:
    from pyloca.geometry._statistics import BurstStatistics

__all__ = ["merge"]

ALIKE = ("feature_names", "units", "known_std")


def merge(parts: Sequence[BurstStatistics], per_burst: Sequence[str]) -> BurstStatistics:
    """Join statistics; see `BurstStatistics.merge`."""
    if not parts:
        raise BurstError("there are no statistics to merge.")
    first = parts[0]
    for number, part in enumerate(parts):
        for name in ("intrinsic_dim", "n_features", *ALIKE):
            ours, theirs = getattr(first, name), getattr(part, name)
            if ours != theirs:
                raise BurstError(
                    f"part {number} has {name} = {theirs}; part 0 has {ours}. Compute all parts with the same settings."
                )
        if not _same_noise(first, part):
            raise BurstError(
                f"part {number} was computed with another measurement noise than part 0. Estimate the noise once, and "
                "pass it to all parts."
            )
    joined: dict[str, Any] = {}
    for name in per_burst:
        arrays = [getattr(part, name) for part in parts]
        joined[name] = None if arrays[0] is None else np.concatenate(arrays)
    numbered = all(np.array_equal(part.ids, np.arange(len(part))) for part in parts)
    if numbered:
        joined["ids"] = np.arange(len(joined["means"]))
    elif len(np.unique(joined["ids"])) < len(joined["ids"]):
        raise BurstError("two bursts of the parts have the same id; give the bursts of each part ids of their own.")
    sizes = [len(part) for part in parts]
    joined["tails"] = float(np.average([part.tails for part in parts], weights=sizes))
    return replace(first, **joined, scatter=_usual_scatter([part.scatter for part in parts], sizes))


def _usual_scatter(rules: list[Scatter | None], sizes: list[int]) -> Scatter | None:
    """Average the rules of the parts, unless most bursts have the shape of their covariance."""
    found = [(rule, size) for rule, size in zip(rules, sizes, strict=True) if rule is not None]
    if 2 * sum(size for _, size in found) <= sum(sizes):
        return None
    return Scatter(*np.average([rule for rule, _ in found], axis=0, weights=[size for _, size in found]).tolist())


def _same_noise(one: BurstStatistics, other: BurstStatistics) -> bool:
    a, b = one.instrument, other.instrument
    if a is None or b is None:
        return a is b and (one.noise is None) == (other.noise is None)
    return all(np.array_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
