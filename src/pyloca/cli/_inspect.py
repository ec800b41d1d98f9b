"""``pyloca inspect``: what the bursts show before any training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pyloca.cli._column_options import Columns, columns_options
from pyloca.cli._main import cli, debug_option, require, usage, writable
from pyloca.cli._settings import DEFAULTS, arguments, components, noise, scale, units

__all__ = ["inspect"]


@cli.command()
@click.argument("data")
@click.option(
    "-d",
    "--n-components",
    callback=components,
    metavar="N",
    help="Number of coordinates planned for the fit; k is at most N.  [default: auto]",
)
@click.option("--burst-std", type=float, metavar="STD", help="Size σ of a burst.  [default: estimated]")
@click.option("--intrinsic-dim", type=click.IntRange(1), metavar="N", help="As for fit.  [default: estimated]")
@click.option("--feature-scale", callback=scale, metavar="SCALE", help="As for fit.  [default: auto]")
@click.option("--measurement-noise", callback=noise, metavar="STD", help="As for fit.  [default: none]")
@click.option(
    "--static",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="As for fit: bursts taken while nothing was perturbed.",
)
@click.option("--max-strays", type=float, metavar="PART", help="As for fit.  [default: 0.01]")
@click.option("--units", callback=units, metavar="NAME=UNIT,…", help="Units of the sensors, such as p1=Pa,t1=K.")
@columns_options("burst_id")
@click.option(
    "--model",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Read the columns that this model was fitted to.",
)
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw spectra and alignment to this .png file."
)
@click.option("--json", "as_json", is_flag=True, help="Write the findings to stdout as JSON.")
@debug_option
def inspect(
    data: str,
    units: dict[str, str],
    static: Path | None,
    columns: Columns,
    model: Path | None,
    plot: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Look at a file of bursts before any training.

    Prints sizes, spectra, the estimates of σ (the size of a burst) and k (the directions it spans), outliers, and how
    well the bursts fit together; notes say what may go wrong and what to do. What a fit with the same options would
    refuse is refused here, in the same words and with the same exit code, 3.

    DATA is .npy (N, M, D), .npz, .h5, or a long table (.csv, .parquet) with one row per measurement and a column that
    names its burst; - reads CSV from standard input. Columns of text and columns that never change are left out.
    """
    if static is not None and options["measurement_noise"] is not None:
        raise click.UsageError(
            "--static measures the noise that --measurement-noise gives or estimates; give one of them."
        )
    if plot is not None:
        require("matplotlib", "report")
        writable(plot, ".png")
    from pyloca.bursts import Bursts
    from pyloca.cli._data import read_bursts, read_bursts_like, read_static, say_left_out
    from pyloca.errors import BurstError
    from pyloca.inspection import inspect_bursts, outline

    if model is None:
        bursts, left_out = read_bursts(data, columns)
        say_left_out(left_out)
    else:
        from pyloca.estimator import LOCA

        bursts = read_bursts_like(LOCA.load(model), data, columns)
    still = None if static is None else read_static(str(static), columns, bursts)
    if units:
        bursts = Bursts(bursts, units=units)
    asked = arguments(DEFAULTS | {name: value for name, value in options.items() if value is not None})
    limits = {name: asked[name] for name in options} | {"n_components": options["n_components"]}
    try:
        with usage():
            found = inspect_bursts(bursts, static=still, **limits)
    except BurstError:
        click.echo(outline(bursts), err=as_json)
        raise
    if as_json:
        import json

        click.echo(json.dumps(found.to_dict(), indent=2))
    else:
        click.echo(str(found))
    if plot is not None:
        from pyloca._atomic import write_atomically
        from pyloca.plots import png

        write_atomically(plot, png(found.plot()))
        click.echo(f"Picture: {plot}", err=True)
    if found.refusal:
        raise BurstError(found.refusal)
