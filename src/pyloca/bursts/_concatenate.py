"""Several data sets combined into one: what must agree, and how the bursts are named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyloca._arguments import brief
from pyloca.bursts._arrays import Array
from pyloca.bursts._container import Bursts
from pyloca.bursts._labels import burst_name
from pyloca.bursts._noise import join_noise
from pyloca.errors import BurstError

__all__ = ["concatenate"]


def concatenate(parts: Sequence[Bursts], keys: Sequence[Any] | None, burst_std: float | None) -> Bursts:
    """Combine bursts; see `Bursts.concatenate`."""
    if not parts:
        raise BurstError("there are no bursts to concatenate.")
    labels = [f"part {i}" for i in range(len(parts))]
    if keys is not None:
        labels = [str(key) for key in keys]
        if len(labels) != len(parts) or len(set(labels)) < len(labels):
            raise ValueError(f"keys must be {len(parts)} different labels, one per part; got {brief(list(keys))}.")
        labels = [f"part {label!r}" for label in labels]
    _check_features(parts, labels)
    names = next((part.feature_names for part in parts if part.feature_names is not None), None)
    units = next((part.units for part in parts if part.units is not None), None)
    if any(part.units is None and part.feature_names is None for part in parts):
        units = None  # a part that does not say what its numbers are may be in other units
    known = _know_perturbations(parts, labels)
    if burst_std is None and not (known and len({part.burst_std for part in parts}) > 1):  # else σ follows from them
        burst_std = _common_std(parts, labels)
    ids = _common_ids(parts, keys, labels)
    described = {
        "ids": ids,
        "feature_names": names,
        "units": units,
        "burst_std": burst_std,
        "effective_counts": _effective_counts(parts),
        "provenance": " + ".join(dict.fromkeys(part.provenance for part in parts if part.provenance)),
    }
    if known:
        each = [part.perturbations for part in parts if len(part)]
        described["perturbations"] = [z for known_ones in each if known_ones is not None for z in known_ones]
    return _joined(parts, described)._like(_scale=parts[0].scale, _noise=_common_noise(parts, labels))


def _joined(parts: Sequence[Bursts], described: dict[str, Any]) -> Bursts:
    plain = [part._layout.plain() for part in parts if len(part)]
    arrays = [layout.points for layout in plain if layout.offsets is None]
    if plain and len(arrays) == len(plain) and len({array.shape[1] for array in arrays}) == 1:
        return Bursts(np.concatenate(arrays), **described)
    points = [layout.points.reshape(-1, layout.points.shape[-1]) for layout in plain]
    counts = np.concatenate([part.counts for part in parts])
    if not len(counts):
        raise BurstError("there are no bursts to concatenate.")
    return Bursts.from_ragged(np.concatenate(points), np.concatenate([[0], np.cumsum(counts)]), **described)


def _check_features(parts: Sequence[Bursts], labels: list[str]) -> None:
    first = parts[0]
    named = next((i for i, part in enumerate(parts) if part.feature_names is not None), 0)
    known = next((i for i, part in enumerate(parts) if part.units is not None), 0)
    for part, label in zip(parts, labels, strict=True):
        if part.n_features != first.n_features:
            raise BurstError(f"{label} has D = {part.n_features} features and {labels[0]} has {first.n_features}.")
        if not np.array_equal(_or_ones(part), _or_ones(first)):
            raise BurstError(f"{label} and {labels[0]} are scaled differently; concatenate first, then scale.")
        for kind, mine, theirs, other in (
            ("the feature", part.feature_names, parts[named].feature_names, labels[named]),
            ("the unit", part.units, parts[known].units, labels[known]),
        ):
            if mine is None or theirs is None or mine == theirs:
                continue
            j = next(j for j in range(len(mine)) if mine[j] != theirs[j])
            order = (
                " The names are the same in a different order."
                if kind == "the feature" and set(mine) == set(theirs)
                else ""
            )
            raise BurstError(f"{label} has {kind} {mine[j]!r} at {j} where {other} has {theirs[j]!r}.{order}")


def _or_ones(part: Bursts) -> Any:
    return np.ones(part.n_features) if part.scale is None else part.scale


def _know_perturbations(parts: Sequence[Bursts], labels: list[str]) -> bool:
    dims = [part.perturbed_dim for part in parts]
    other = next((i for i, dim in enumerate(dims) if dim != dims[0]), None)
    if other is not None:
        raise BurstError(
            f"{labels[other]} has {dims[other] or 'no'} known perturbations per point and {labels[0]} has "
            f"{dims[0] or 'none'}; give all parts theirs, or take without_perturbations() of each."
        )
    return dims[0] is not None


def _common_std(parts: Sequence[Bursts], labels: list[str]) -> float | None:
    for part, label in zip(parts, labels, strict=True):
        if part.burst_std != parts[0].burst_std:
            raise BurstError(
                f"{label} has burst_std = {part.burst_std} and {labels[0]} has {parts[0].burst_std}; bursts of one "
                "data set have one σ. If you know it, pass burst_std=…."
            )
    return parts[0].burst_std


def _common_noise(parts: Sequence[Bursts], labels: list[str]) -> tuple[Array, bool] | None:
    noises = [part._noise for part in parts]
    known = [noise for noise in noises if noise is not None]
    if not known:
        return None
    if len(known) < len(noises):
        raise BurstError(
            f"the noise of {labels[noises.index(None)]} is not known, but that of others is; "
            "pass Bursts(part, noise=…), with 0 if it has none."
        )
    return join_noise(known, [len(part) for part in parts])


def _effective_counts(parts: Sequence[Bursts]) -> Any:
    """Join the effective counts; a part that has none counts its points."""
    if all(part.effective_counts is None for part in parts):
        return None
    return np.concatenate([part.counts if part.effective_counts is None else part.effective_counts for part in parts])


def _common_ids(parts: Sequence[Bursts], keys: Sequence[Any] | None, labels: list[str]) -> Sequence[Any] | None:
    if keys is not None:
        return [f"{key}/{label}" for key, part in zip(keys, parts, strict=True) for label in part.ids.tolist()]
    given = [part.has_ids for part in parts]
    if not any(given):
        return None
    if not all(given):
        raise BurstError(f"{labels[given.index(False)]} has no ids, but others have; give it ids, or pass keys=[…].")
    seen: dict[Any, str] = {}
    for part, place in zip(parts, labels, strict=True):
        for label in part.ids.tolist():
            if label in seen:
                raise BurstError(
                    f"{burst_name(label)} is in {seen[label]} and in {place}; pass keys=[…], one label per part, "
                    "to tell them apart."
                )
            seen[label] = place
    return list(seen)
