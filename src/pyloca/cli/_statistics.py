"""``pyloca statistics``: one pass over raw bursts, kept for any number of fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pyloca.cli._cluster import cluster, cluster_options
from pyloca.cli._column_options import Columns, columns_options
from pyloca.cli._main import cli, debug_option, require, usage, writable
from pyloca.cli._settings import noise

__all__ = ["statistics"]


@cli.command()
@click.argument("data")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), required=True, help="Write the statistics to this .zarr folder."
)
@columns_options("burst_id")
@click.option(
    "--intrinsic-dim", type=click.IntRange(1), metavar="N", help="Directions that a burst spans.  [default: estimated]"
)
@click.option("--measurement-noise", callback=noise, metavar="STD", help="As for fit.  [default: none]")
@click.option(
    "--max-strays",
    type=click.FloatRange(0, 0.5, max_open=True),
    default=0.01,
    show_default=True,
    metavar="PART",
    help="As for fit.",
)
@cluster_options
@click.option("--json", "as_json", is_flag=True, help="Write a summary to stdout as JSON.")
@debug_option
def statistics(
    data: str,
    output: Path,
    columns: Columns,
    intrinsic_dim: int | None,
    measurement_noise: Any,
    max_strays: float,
    workers: int | None,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Compute means and tangents once, for many fits.

    DATA may be larger than memory (.zarr, .npy). Finished parts are kept in OUTPUT.partial: the same command continues
    where it was killed. The folder OUTPUT appears when it is complete, with a checksum of every chunk; `pyloca fit`
    takes it in place of the bursts.

    \b
    Examples:
      pyloca statistics bursts.zarr -o stats.zarr --workers 4
      pyloca fit stats.zarr -d 2 -o model.safetensors --workers 4
    """
    require("zarr", "scale")
    writable(output, ".zarr")
    from pyloca.bursts import BURST_ID
    from pyloca.cli._data import is_table, read_bursts, say_left_out
    from pyloca.geometry import write_statistics

    bursts, left_out = read_bursts(data, columns)
    say_left_out(left_out)
    options = {"intrinsic_dim": intrinsic_dim, "measurement_noise": measurement_noise, "max_strays": max_strays}
    source = Path(data) if Path(data).exists() else None
    burst_id = (columns.burst_id or BURST_ID) if is_table(data) else None
    with usage(), cluster(workers, scheduler):
        found = write_statistics(bursts, output, source=source, burst_id=burst_id, **options)
    facts = {
        "bursts": len(found),
        "n_features": found.n_features,
        "intrinsic_dim": found.intrinsic_dim,
        "burst_std": found.known_std,
        "set_aside": int(found.set_aside.sum()),
    }
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    click.echo(
        f"{len(found):,} bursts of {found.n_features} features, k = {found.intrinsic_dim} directions each.", err=True
    )
