"""Known perturbations of bursts: what is refused, and their size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import as_numbers
from pyloca.bursts._labels import burst_name
from pyloca.errors import BurstError

__all__ = ["Perturbations", "check_perturbations", "size_of"]

Array = NDArray[np.float64]
Perturbations = ArrayLike | Sequence[ArrayLike]

FLAT = 1e-6  # part of the longest side of a cloud of displacements; below, the shortest is rounding
MANY = 10  # bursts that tell what is typical
FAR = 3.0  # radii of a typical cloud that 0 may lie from its centre: readings and Jacobians there would be guesses


def check_perturbations(given: Perturbations, counts: NDArray[np.int64], ids: NDArray[Any]) -> Array:
    """Convert perturbations of bursts of these lengths to one array.

    Parameters
    ----------
    given : array (N, M, k), or N arrays (M_i, k), or one array (n, k) of all points in order
    counts : (N,) array of int
        Points of each burst.
    ids : (N,) array
        Names of the bursts, for messages.

    Returns
    -------
    (n, k) array
        All points in order.

    Raises
    ------
    BurstError
        If shapes do not match, or if the perturbations of a burst are not finite, do not span k directions or lie
        far from 0.
    """
    if isinstance(given, (list, tuple)):
        if len(given) != len(counts):
            raise BurstError(f"there are perturbations of {len(given)} bursts; expected {len(counts)}, one per burst.")
        names = [burst_name(label) for label in ids]
        what = "the perturbations of"
        parts = [as_numbers(f"{what} {name}", part, BurstError) for part, name in zip(given, names, strict=True)]
        for part, count, label in zip(parts, counts, ids, strict=True):
            if part.ndim != 2 or part.shape != (count, parts[0].shape[-1]):
                raise BurstError(
                    f"the perturbations of {burst_name(label)} have shape {part.shape}; expected "
                    f"({count}, {parts[0].shape[-1]}), one displacement per point."
                )
        values = np.concatenate(parts)
    else:
        values = as_numbers("perturbations", given, BurstError).copy()
        n, m = len(counts), counts[0] if len(counts) else 0
        whole = values.ndim == 3 and values.shape[:2] == (n, m) and bool(np.all(counts == m))
        if not whole and (values.ndim != 2 or len(values) != counts.sum()):
            expected = f"({n}, {m}, k)" if np.all(counts == m) else "a list of (M_i, k) arrays"
            raise BurstError(
                f"perturbations has shape {values.shape}; expected {expected}, one displacement per point."
            )
        values = values.reshape(int(counts.sum()), values.shape[-1])
    if values.shape[1] == 0:
        raise BurstError("perturbations has no columns; expected k ≥ 1 latent displacements per point.")
    _refuse_bad(values, counts, ids)
    return values


def size_of(values: Array, counts: NDArray[np.int64]) -> float:
    """Compute the σ of perturbations (n, k): root mean square per direction about the centres of their bursts."""
    centred = values - np.repeat(_means(values, counts), counts, axis=0)
    return float(np.sqrt(np.square(centred).mean(axis=1).sum() / (counts - 1).sum()))


def _means(values: Array, counts: NDArray[np.int64]) -> Array:
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    return np.asarray(np.add.reduceat(values, starts, axis=0) / counts[:, None])


def _refuse_bad(values: Array, counts: NDArray[np.int64], ids: NDArray[Any]) -> None:
    if not len(counts):
        return
    k, burst = values.shape[1], np.repeat(np.arange(len(counts)), counts)
    short = np.flatnonzero(counts < k + 1)
    if len(short):
        raise BurstError(
            f"{burst_name(ids[short[0]])} (and {len(short) - 1} more) has {counts[short[0]]} points; perturbations in "
            f"k = {k} directions need at least {k + 1}. Take more points, or remove these bursts."
        )
    bad = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(bad):
        raise BurstError(f"the perturbations of {burst_name(ids[burst[bad[0]]])} contain {values[bad[0]].tolist()}.")
    means = _means(values, counts)
    centred = values - means[burst]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    moments = np.add.reduceat(centred[:, :, None] * centred[:, None, :], starts, axis=0)  # (N, k, k)
    sides = np.sqrt(np.maximum(np.linalg.eigvalsh(moments / counts[:, None, None]), 0))  # shortest first
    flat = np.flatnonzero(sides[:, 0] <= FLAT * np.maximum(sides[:, -1], np.finfo(float).tiny))
    if len(flat):
        i = flat[0]
        where = "on a line or in a plane" if k > 1 else "at one place"
        raise BurstError(
            f"the perturbations of {burst_name(ids[i])} (and {len(flat) - 1} more) do not span k = {k} directions: "
            f"they lie {where} (lengths {np.array2string(sides[i][::-1], precision=3)}). Perturb every latent variable "
            "by itself in every burst."
        )
    # Of a typical burst: three random points can be close together, and far from the state that they are about.
    far = np.linalg.norm(means, axis=1) / np.linalg.norm(sides, axis=1)
    if len(far) >= MANY and np.median(far) > FAR:
        i = int(np.argmax(far))
        raise BurstError(
            f"perturbations lie {np.median(far):.3g} times the extent of their burst from 0 (median; those of "
            f"{burst_name(ids[i])} {far[i]:.3g} times). They are displacements from the state of the burst, whose "
            "coordinates are asked for: subtract its position from them, or their mean if only differences are known."
        )
