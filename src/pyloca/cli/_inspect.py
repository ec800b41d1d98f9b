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
@click.option("-d", "--n-components", type=click.IntRange(1), metavar="N", help="The bursts span at most N directions.")
@click.option("--intrinsic-dim", type=click.IntRange(1), metavar="N", help="They span N.  [default: estimated]")
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
    """Look at a file of bursts before any training.

    Prints sizes, spectra, the estimates of σ (the size of a burst) and k (the directions it spans), outliers, and how
    well the bursts go together; notes say what may go wrong and what to do.

    DATA is .npy (N, M, D), .npz, .h5, or a long table (.csv, .parquet) with a column burst_id and one row a
    measurement; - reads CSV from standard input.
    """
    if plot is not None:
        require("matplotlib", "report")
        writable(plot, ".png")
    from pyloca.cli._tables import read_bursts
    from pyloca.inspection import inspect_bursts

    found = inspect_bursts(read_bursts(data, burst_id), n_components=n_components, intrinsic_dim=intrinsic_dim)
    if as_json:
        facts: dict[str, Any] = found.to_dict()
        click.echo(json.dumps(facts, indent=2))
    else:
        click.echo(str(found))
    if plot is not None:
        from pyloca._atomic import write_atomically
        from pyloca.plots import png

        write_atomically(plot, png(found.plot()))
        click.echo(f"Picture: {plot}", err=True)
