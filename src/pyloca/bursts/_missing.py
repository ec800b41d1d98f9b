"""Cells that hold no number: counted all at once, by the name of the sensor, and left out when that is asked for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyloca._arguments import brief
from pyloca.bursts._arrays import offsets_of
from pyloca.bursts._container import Bursts
from pyloca.bursts._layout import Layout
from pyloca.errors import BurstError

__all__ = ["Missing", "MissingCells", "check_missing", "count_missing", "drop_missing", "settle_missing"]

Missing = Literal["raise", "drop"]
LOGGER = logging.getLogger("pyloca")
SHOWN = 3  # bursts listed for each sensor
SHOWN_SENSORS = 12


@dataclass(frozen=True)
class MissingCells:
    """Cells of bursts that are NaN or infinite.

    Attributes
    ----------
    cells : dict of str to int
        How many, by sensor; only sensors that have any.
    bursts : dict of str to tuple
        Ids of the bursts in which they are, by sensor.
    n_points : int
        Points with at least one such cell.
    of_points : int
        All points.

    Examples
    --------
    >>> import numpy as np
    >>> data = np.zeros((3, 4, 2))
    >>> data[1, 2:, 0] = np.nan
    >>> print(count_missing(Bursts(data, feature_names=["p", "T"], units={"p": "Pa"})))
    p (Pa): 2 cells in burst 1
    """

    cells: dict[str, int]
    bursts: dict[str, tuple[Any, ...]]
    n_points: int
    of_points: int

    def __bool__(self) -> bool:
        return self.n_points > 0

    def __str__(self) -> str:
        listed = [f"{name}: {counted(n, 'cell')} in {_bursts(self.bursts[name])}" for name, n in self.cells.items()]
        more = len(listed) - SHOWN_SENSORS
        return "; ".join(listed[:SHOWN_SENSORS]) + (f"; and {counted(more, 'more sensor')}" if more > 0 else "")

    @property
    def refusal(self) -> str:
        """What an error says: the cells, and how to leave them out."""
        return (
            f"{counted(sum(self.cells.values()), 'cell')} without a finite number ({self}), which "
            f"{'spoils' if self.n_points == 1 else 'spoil'} {self.n_points} of {counted(self.of_points, 'point')}. "
            "Repair the cells, or leave these points out: missing='drop' where a table or file is read (--missing drop "
            "in the shell), pyloca.bursts.drop_missing(bursts) for arrays; or leave out the sensor."
        )


def counted(n: int, thing: str) -> str:
    """Write a number and its noun: "1 cell", "12 cells"."""
    return f"{n:,} {thing}{'s' * (n != 1)}"


def check_missing(missing: str) -> None:
    """Refuse what is neither "raise" nor "drop"."""
    if missing not in ("raise", "drop"):
        raise ValueError(f'missing must be "raise" or "drop"; got {brief(missing)}.')


def count_missing(bursts: Bursts) -> MissingCells:
    """Count the cells that are NaN or infinite, in one pass over the bursts.

    Parameters
    ----------
    bursts : Bursts

    Returns
    -------
    MissingCells
        False when there are none.

    Examples
    --------
    >>> import numpy as np
    >>> bool(count_missing(Bursts(np.zeros((3, 4, 2)))))
    False
    """
    found: list[NDArray[np.int64]] = []  # rows of feature, burst, cells
    spoiled = 0
    for positions, block in bursts.blocks():
        bad = ~np.isfinite(block)
        if not bad.any():
            continue
        spoiled += int(bad.any(axis=2).sum())
        cells = bad.sum(axis=1)  # (b, D)
        b, j = np.nonzero(cells)
        found.append(np.stack([j, positions[b], cells[b, j]], axis=1))
    total = int(bursts.counts.sum())
    if not found:
        return MissingCells({}, {}, 0, total)
    table = np.concatenate(found)
    table = table[np.lexsort((table[:, 1], table[:, 0]))]
    ids, parts = bursts.ids, np.split(table, np.flatnonzero(np.diff(table[:, 0])) + 1)
    labels = [bursts.feature_label(int(part[0, 0])) for part in parts]
    return MissingCells(
        {label: int(part[:, 2].sum()) for label, part in zip(labels, parts, strict=True)},
        {label: tuple(ids[part[:, 1]].tolist()) for label, part in zip(labels, parts, strict=True)},
        spoiled,
        total,
    )


def drop_missing(data: Bursts | ArrayLike | Sequence[ArrayLike]) -> Bursts:
    """Leave out the points that have a cell without a finite number.

    What was left out is added to ``provenance`` and logged (logger "pyloca", level INFO). A burst that loses all its
    points disappears; one that keeps a few stays, and `LOCA.fit` says whether they are enough.

    Parameters
    ----------
    data : Bursts, array of shape (N, M, D), or list of arrays of shape (M_i, D)
        Masked cells count as missing.

    Returns
    -------
    Bursts
        In memory, unless there was nothing to leave out.

    Raises
    ------
    BurstError
        If no point is left.

    Examples
    --------
    >>> import numpy as np
    >>> data = np.zeros((3, 4, 2))
    >>> data[1, 2:, 0] = np.nan
    >>> bursts = drop_missing(Bursts(data, feature_names=["p", "T"]))
    >>> bursts, bursts.provenance
    (Bursts(N=3, M=2..4, D=2), 'dropped 2 of 12 points (p: 2 cells in burst 1)')
    """
    bursts = data if isinstance(data, Bursts) else Bursts(_filled(data))
    found = count_missing(bursts)
    if not found:
        return bursts._like(provenance=_also(bursts.provenance, "no point dropped: no missing cells"))
    here = bursts._layout.plain()
    points = here.points.reshape(-1, bursts.n_features)
    good = np.isfinite(points).all(axis=1)  # (n,)
    counts = np.add.reduceat(good.astype(np.int64), offsets_of(here.counts)[:-1])
    left = counts > 0
    if not left.any():
        raise BurstError(f"every point has a missing cell ({found}). Leave out the sensors that are mostly missing.")
    what = f"dropped {found.n_points:,} of {counted(found.of_points, 'point')} ({found})"
    if not left.all():
        gone = tuple(bursts.ids[~left].tolist())
        what += f"; {_bursts(gone)} lost all points and {'is' if len(gone) == 1 else 'are'} left out"
    LOGGER.info(what)
    kept = replace(Layout.of(np.ascontiguousarray(points[good]), offsets_of(counts[left])), aside=here.aside)
    if here.perturbations is not None:
        kept = kept.perturbed(here.perturbations.reshape(len(points), -1)[good])
    return bursts[left]._like(_layout=kept, provenance=_also(bursts.provenance, what))


def settle_missing(bursts: Bursts, missing: Missing) -> Bursts:
    """Refuse bursts with missing cells, or leave the points out, as `missing` says."""
    if missing == "drop":
        return drop_missing(bursts)
    found = count_missing(bursts)
    if found:
        raise BurstError(found.refusal)
    return bursts


def _filled(data: Any) -> Any:
    """Masked cells as NaN."""
    if np.ma.isMaskedArray(data):
        return np.ma.filled(data.astype(np.float64), np.nan)
    return [_filled(part) for part in data] if isinstance(data, (list, tuple)) else data


def _also(provenance: str, what: str) -> str:
    return f"{provenance}; {what}" if provenance else what


def _bursts(ids: Sequence[Any]) -> str:
    more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
    return f"burst{'s' * (len(ids) != 1)} {', '.join(map(repr, ids[:SHOWN]))}{more}"
