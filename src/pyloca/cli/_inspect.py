"""``pyloca inspect``: what the bursts say of themselves before any training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pyloca.cli._main import cli, debug_option, require, writable

__all__ = ["inspect"]


@cli.command()
@click.argument("data")
@click.option("-d", "--n-components", type=click.IntRange(1), default=None, help="At most this many coordinates.")
@click.option("--intrinsic-dim", type=click.IntRange(1), help="Directions that a burst spans.  [default: estimated]")
@click.option("--burst-id", default="burst_id", show_default=True, help="The column of a table that names the burst.")
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw spectra and alignment to this .png."
)
@click.option("--json", "as_json", is_flag=True, help="Write the findings to stdout as JSON.")
@debug_option
def inspect(
    data: str,
    n_components: int | None,
    intrinsic_dim: int | None,
    burst_id: str,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Look at a file of bursts: sizes, spectra, σ and k, and whether they are fit to be fitted.

    DATA is as for fit. Nothing is trained; the closed-form alignment shows how well the bursts go together.
    """
    if plot is not None:
        require("matplotlib", "report")
        writable(plot)
    from pyloca.cli._tables import read_bursts
    from pyloca.inspection import inspect_bursts

    found = inspect_bursts(read_bursts(data, burst_id), n_components=n_components, intrinsic_dim=intrinsic_dim)
    if as_json:
        facts: dict[str, Any] = found.to_dict()
        click.echo(json.dumps(facts, indent=2))
    else:
        click.echo(str(found))
    if plot is not None:
        from pyloca._files import write_atomically
        from pyloca.plots import plot_inspection, png

        write_atomically(plot, png(plot_inspection(found)))
        click.echo(f"Picture: {plot}", err=True)
