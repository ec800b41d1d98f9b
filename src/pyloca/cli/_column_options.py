"""The options that choose columns of a table by name, the same for every command that reads one."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import click

__all__ = ["Columns", "columns_options", "names_of", "some"]

MOST = 8  # names in one message


class Columns(NamedTuple):
    """The options that choose columns of a table, and what missing cells mean; None where an option was not given."""

    burst_id: str | None = None
    names: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    perturbations: tuple[str, ...] = ()
    missing: Literal["raise", "drop"] = "raise"


def names_of(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Split names at commas; a name that contains a comma is quoted, as in CSV."""
    if value is None:
        return None
    import csv

    names = tuple(name.strip() for name in next(csv.reader([value], skipinitialspace=True), []))
    if not names or not all(names):
        raise click.BadParameter(f"expected names of columns such as p1,p2,t1; got '{value}'.")
    return names


def columns_options(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add --burst-id, --columns, --exclude, --perturbations and --missing; the command takes them as `columns`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def packed(
            *args: Any,
            burst_id: str | None,
            columns: tuple[str, ...] | None,
            exclude: tuple[str, ...] | None,
            perturbations: tuple[str, ...] | None,
            missing: Literal["raise", "drop"],
            **rest: Any,
        ) -> Any:
            both = [name for name in columns or () if name in (exclude or ())]
            if both:
                raise click.UsageError(f"--columns and --exclude both name '{both[0]}'.")
            both = [name for name in perturbations or () if name in (*(columns or ()), *(exclude or ()))]
            if both:
                raise click.UsageError(f"--perturbations names '{both[0]}', which --columns or --exclude names too.")
            chosen = Columns(burst_id, columns, exclude or (), perturbations or (), missing)
            return command(*args, columns=chosen, **rest)

        options = [
            click.option("--burst-id", metavar="NAME", help=f"Column that names the burst.  [default: {default}]"),
            click.option("--columns", callback=names_of, metavar="NAMES", help="Sensors to read, such as p1,p2,t1."),
            click.option("--exclude", callback=names_of, metavar="NAMES", help="Columns that are not sensors."),
            click.option(
                "--perturbations",
                callback=names_of,
                metavar="NAMES",
                help="Columns of displacements that you set, such as dx,dy.",
            ),
            click.option(
                "--missing",
                type=click.Choice(["raise", "drop"]),
                default="raise",
                show_default=True,
                help="Refuse missing cells (NaN, NA, empty), or drop the points that have one.",
            ),
        ]
        for option in reversed(options):
            packed = option(packed)
        return packed

    return decorate


def some(names: list[str]) -> str:
    """List names for a message, but not too many."""
    more = f", … ({len(names)} in all)" if len(names) > MOST else ""
    return ", ".join(name or "(no name)" for name in names[:MOST]) + more
