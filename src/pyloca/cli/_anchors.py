"""Anchors from files: pairs of burst ids in a table, or readings of both instruments, row by row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyloca.cli._column_options import Columns
from pyloca.cli._rows import number, read_cells
from pyloca.errors import BurstError

if TYPE_CHECKING:
    from pyloca.estimator import LOCA

__all__ = ["read_ids", "read_named_ids", "read_readings", "stems"]


def read_ids(path: Path, a: LOCA, b: LOCA) -> tuple[list[tuple[str, str]], list[float] | None]:
    """Read pairs of burst ids, and weights if there is a third column; a first row of unknown ids is a header.

    A header must call that column "weight": another one with numbers would weigh the anchors in silence.
    """
    rows = _rows(path)
    width = len(rows[0][1])
    if width not in (2, 3):
        raise BurstError(f"{path}: line 1 has {width} cells; expected two burst ids, and perhaps a weight.")
    of_a, of_b = _ids(a), _ids(b)
    if rows[0][1][0] not in of_a and rows[0][1][1] not in of_b:
        if width == 3 and (name := rows[0][1][2]).lower() != "weight":
            raise BurstError(
                f"{path}: the third column is {name!r}; a table of anchors has two burst ids, and perhaps a column "
                "named 'weight'. Leave other columns out."
            )
        rows = rows[1:]
    pairs, weights = [], []
    first: dict[tuple[str, str], int] = {}
    for line, cells in rows:
        if len(cells) != width:
            raise BurstError(f"{path}: line {line} is {','.join(cells)!r}; expected as many cells as in line 1.")
        weight = number(cells[2]) if width == 3 else 1.0
        if weight is None or not 0 < weight < float("inf"):
            raise BurstError(f"{path}: line {line}: the weight is {cells[2]!r}; expected a positive number.")
        for ids, cell, which in ((of_a, cells[0], "first"), (of_b, cells[1], "second")):
            if cell not in ids:
                exchanged = cells[0] in of_b and cells[1] in of_a
                hint = " The other one has: are the columns, or the models, exchanged?" if exchanged else ""
                raise BurstError(f"{path}: line {line}: the {which} instrument has no burst {cell!r}.{hint}")
            _refuse_twice(path, line, cell, f"the {which} instrument", first.setdefault((which, cell), line))
        pairs.append((cells[0], cells[1]))
        weights.append(weight)
    if not pairs:
        raise BurstError(f"{path}: holds no anchors; expected rows of two burst ids.")
    return pairs, weights if width == 3 else None


def read_named_ids(path: Path, models: dict[str, LOCA]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Read rows of instrument, burst id, instrument, burst id; a first row without instruments is a header."""
    rows, ids = _rows(path), {name: _ids(model) for name, model in models.items()}
    if len(rows[0][1]) == 4 and rows[0][1][0] not in models and rows[0][1][2] not in models:
        rows = rows[1:]
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    first: dict[tuple[frozenset[str], str, str], int] = {}
    for line, cells in rows:
        if len(cells) != 4 or cells[0] not in models or cells[2] not in models:
            raise BurstError(
                f"{path}: line {line} is {','.join(cells)!r}; expected instrument,burst,instrument,burst with "
                f"instruments among {', '.join(models)}."
            )
        one, i, other, j = cells
        for name, cell, rest in ((one, i, other), (other, j, one)):
            if cell not in ids[name]:
                exchanged = i in ids[other] and j in ids[one]
                hint = f" {rest!r} has: are the columns exchanged?" if exchanged else ""
                raise BurstError(f"{path}: line {line}: instrument {name!r} has no burst {cell!r}.{hint}")
            key = (frozenset({one, other}), name, cell)
            _refuse_twice(path, line, cell, f"instrument {name!r}", first.setdefault(key, line))
        if (other, one) in found:
            one, i, other, j = other, j, one, i
        found.setdefault((one, other), []).append((i, j))
    if not found:
        raise BurstError(f"{path}: holds no anchors; expected rows of instrument,burst,instrument,burst.")
    return found


def _refuse_twice(path: Path, line: int, cell: str, whose: str, first: int) -> None:
    """Refuse a burst that was an anchor in an earlier line."""
    if first != line:
        raise BurstError(
            f"{path}: line {line}: burst {cell!r} of {whose} is an anchor twice, the first time in line {first}. Give "
            "each burst once."
        )


def read_readings(paths: tuple[str, str], a: LOCA, b: LOCA) -> tuple[Any, Any]:
    """Read simultaneous readings of both instruments from two files: rows, or bursts where rows name them.

    Names that are the same in both files say which belong together, whatever their order.
    """
    (first, ids), (second, other) = (_end(model, path) for model, path in zip((a, b), paths, strict=True))
    if len(first) != len(second):
        told = [f"{path} has {len(end)} {_kind(end)}" for path, end in zip(paths, (first, second), strict=True)]
        raise BurstError(f"{' and '.join(told)}; expected one per anchor.")
    if ids is not None and other is not None and ids != other and sorted(ids) == sorted(other):
        places = {label: i for i, label in enumerate(other)}
        second = second[[places[label] for label in ids]]
        click.echo(f"{paths[1]} is in another order than {paths[0]}; anchors are paired by their names.", err=True)
    return first, second


def _end(model: LOCA, path: str) -> tuple[Any, list[str] | None]:
    """Read the anchors of one instrument, and what they are called: rows, or bursts if several rows have one name."""
    from pyloca.cli._data import holds_bursts, read_bursts_like, read_rows_like

    rows: Any = None
    labels: Any = None
    if not holds_bursts(path):
        rows, labels = read_rows_like(model, path, Columns())
        labels = None if labels is None else [str(label) for label in labels]
    if rows is not None and (labels is None or len(set(labels)) == len(labels)):
        return rows, labels
    bursts = read_bursts_like(model, path, Columns())
    return bursts, [str(label) for label in bursts.ids.tolist()] if bursts.has_ids else None


def _kind(end: Any) -> str:
    return "rows" if getattr(end, "ndim", 3) == 2 else "bursts"


def _rows(path: Path) -> list[tuple[int, list[str]]]:
    rows = read_cells(path)
    if not rows:
        raise BurstError(f"{path}: is empty; expected anchors.")
    return rows


def _ids(model: LOCA) -> set[str]:
    return {str(label) for label in model.burst_ids_.tolist()}


def stems(paths: tuple[Path, ...], names: tuple[str, ...] | None) -> list[str]:
    """Return what to call instruments: the given names, or those of their files."""
    called = [path.stem for path in paths] if names is None else list(names)
    if len(called) != len(paths):
        raise click.UsageError(f"--names has {len(called)} names for {len(paths)} instruments.")
    twice = [name for name in called if called.count(name) > 1]
    if twice:
        raise click.UsageError(f"two instruments are called '{twice[0]}'; give them --names.")
    return called
