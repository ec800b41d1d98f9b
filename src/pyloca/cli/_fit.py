"""``pyloca fit``: from a file of bursts to a model and coordinates."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyloca.cli._cluster import cluster, cluster_options
from pyloca.cli._column_options import Columns, columns_options, some
from pyloca.cli._main import DISTRUSTED, Terminated, cli, debug_option, usage, writable
from pyloca.cli._settings import DEFAULTS, arguments, as_toml, components, from_config, layers, noise, scale, units
from pyloca.errors import TrustWarning

if TYPE_CHECKING:
    from pyloca.bursts import Bursts
    from pyloca.estimator import LOCA
    from pyloca.geometry import BurstStatistics

__all__ = ["fit"]

FILE = click.Path(dir_okay=False, path_type=Path)


@cli.command()
@click.argument("data")
@click.option("-o", "--output", type=FILE, help="Write the fitted model to this .safetensors file.")
@click.option("--embedding", type=FILE, help="Write the coordinates to this .csv or .npy file, one row per burst.")
@columns_options("burst_id")
@click.option("--units", callback=units, metavar="NAME=UNIT,…", help="Units of the sensors, such as p1=Pa,t1=K.")
@click.option(
    "-d", "--n-components", callback=components, metavar="N", help="Number of coordinates, or 'auto'.  [default: 2]"
)
@click.option(
    "--burst-std",
    type=float,
    metavar="STD",
    help="Size σ of a burst, in units of the coordinates.  [default: estimated, up to scale]",
)
@click.option(
    "--distances",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Scale the coordinates to the known distances in this .csv file: two burst ids and a distance per row.",
)
@click.option(
    "--intrinsic-dim", type=click.IntRange(1), metavar="N", help="Directions that a burst spans.  [default: estimated]"
)
@click.option("--solver", type=click.Choice(["fast", "paper"]), help="How to train.  [default: fast]")
@click.option("--hidden-layers", callback=layers, metavar="N,N", help="Widths of the networks.  [default: 50,50]")
@click.option("--activation", metavar="NAME", help="tanh, sigmoid, softplus, elu or leaky_relu.  [default: tanh]")
@click.option("--decoder-activation", metavar="NAME", help="The same for the decoder.  [default: as --activation]")
@click.option(
    "--feature-scale",
    callback=scale,
    metavar="SCALE",
    help="What each sensor is divided by: 'auto', 'none', or a number for each.  [default: auto]",
)
@click.option(
    "--measurement-noise",
    callback=noise,
    metavar="STD",
    help="Noise of the instrument: 'estimate', or its standard deviation, a number for all sensors or one for each.  "
    "[default: none]",
)
@click.option(
    "--static",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Measure the noise in this file of bursts, taken while nothing was perturbed.",
)
@click.option(
    "--max-strays",
    type=float,
    metavar="PART",
    help="Fraction of the bursts that may be left out as strays.  [default: 0.01]",
)
@click.option("--validation-fraction", type=float, help="Fraction of the bursts held out for checks.  [default: 0.1]")
@click.option("--tol", type=float, help="Relative improvement below which a stage of training ends.")
@click.option(
    "--max-iter", type=click.IntRange(1), metavar="N", help="Maximum number of iterations (fast) or epochs (paper)."
)
@click.option("--random-state", type=click.IntRange(0, 2**32 - 1), metavar="SEED", help="Seed.  [default: 0]")
@click.option("--device", help="cpu, cuda, mps or auto; only cpu has been tested.  [default: auto]")
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Read settings from this TOML file."
)
@click.option(
    "--checkpoint", type=FILE, help="Save the training state to this .checkpoint file.  [default: OUTPUT.checkpoint]"
)
@cluster_options
@click.option(
    "--checkpoint-every",
    type=click.FloatRange(0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between two writes of the checkpoint.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Continue from the checkpoint of an interrupted fit, if there is one, to the same bits.",
)
@click.option("--print-config", is_flag=True, help="Print all settings as TOML and stop.")
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
@click.option("--json", "as_json", is_flag=True, help="Write a summary to stdout as JSON.")
@debug_option
def fit(
    data: str,
    output: Path | None,
    embedding: Path | None,
    columns: Columns,
    units: dict[str, str],
    distances: Path | None,
    static: Path | None,
    config: Path | None,
    checkpoint: Path | None,
    checkpoint_every: float,
    resume: bool,
    print_config: bool,
    quiet: bool,
    as_json: bool,
    workers: int | None,
    scheduler: str | None,
    **options: Any,
) -> None:
    """Learn coordinates from a file of bursts.

    DATA is .npy (N, M, D), .npz, .h5, .zarr (bursts, or what `pyloca statistics` wrote), or a long table (.csv,
    .parquet) with one row per measurement and a column that names its burst; - reads CSV from standard input. Columns
    of text and columns that never change are left out. Bursts keep the order in which they first appear. The model
    remembers the columns, so transform and report need no such options. --distances sets the scale where σ is not
    known. Noise of the instrument, points set aside as spikes and bursts left out as strays are listed. Options
    override --config, which has the same names with underscores. Dask workers pay off from 100,000 bursts on.

    The model is written even when a check says that it should not be believed; the exit code is then 4. A fit that was
    interrupted (Ctrl-C, SIGTERM, even SIGKILL) leaves a checkpoint, and the one before it under the name .previous: the
    same command with --resume continues from there. They are deleted once the model is written.

    \b
    Examples:
      pyloca fit bursts.csv -d 2 --burst-std 0.01 -o model.safetensors --embedding z.csv
      pyloca fit runs.csv --burst-id run_id --exclude t -d 2 -o model.safetensors
      pyloca fit steps.csv --perturbations dx,dy -d 2 -o model.safetensors
      pyloca fit bursts.zarr -d 2 -o model.safetensors --workers 4
    """
    settings = DEFAULTS | (from_config(config) if config is not None else {})
    settings |= {name: value for name, value in options.items() if value is not None}
    if print_config:
        click.echo(as_toml(settings))
        return
    if output is None and embedding is None and not as_json:
        raise click.UsageError("nothing would be written: give -o model.safetensors, --embedding z.csv or --json.")
    if output is not None and output.suffix != ".safetensors":
        raise click.BadParameter(f"a model is a .safetensors file; got '{output}'.", param_hint="'-o' / '--output'")
    writable(checkpoint, ".checkpoint")
    if checkpoint is None and output is not None:  # nobody asked for it: if it cannot be written, the fit goes on
        checkpoint = output.with_name(f"{output.name}.checkpoint")
    if resume and checkpoint is None:
        raise click.UsageError("--resume needs a checkpoint: give --checkpoint FILE, or -o model.safetensors.")
    if static is not None and settings["measurement_noise"] is not None:
        raise click.UsageError(
            "--static measures the noise that --measurement-noise gives or estimates; give one of them."
        )
    writable(output)
    writable(embedding, ".csv", ".npy")
    from pyloca.bursts import BURST_ID, Bursts
    from pyloca.cli._data import is_table, read_bursts, read_static, say_left_out, write_rows
    from pyloca.cli._distances import read_distances
    from pyloca.estimator import LOCA, check_parameters
    from pyloca.geometry import (
        BurstStatistics,
        holds_statistics,
        read_statistics,
        statistics_burst_id,
    )
    from pyloca.solvers import checkpoint_files

    model = LOCA(**arguments(settings), verbose=0 if quiet else 1)
    with usage():
        check_parameters(model)
    bursts: Bursts | BurstStatistics
    left_out: dict[str, str]
    if holds_statistics(data):
        if static is not None or units or columns != Columns():
            raise click.UsageError("sensors and noise of statistics are fixed; options to choose them need raw bursts.")
        bursts, left_out, still = read_statistics(data), {}, None
        if settings["measurement_noise"] is not None and bursts.noise is not None:
            raise click.UsageError(
                "--measurement-noise would do nothing: these statistics were computed with a noise. Give it to "
                "`pyloca statistics`."
            )
    else:
        raw, left_out = read_bursts(data, columns)
        still = None if static is None else read_static(str(static), columns, raw)
        bursts = Bursts(raw, units=units) if units else raw
    say_left_out(left_out)
    known = None if distances is None else read_distances(distances, bursts.ids)
    saved: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every, "resume": resume}
    with usage(), cluster(workers, scheduler), _told(checkpoint, resume), warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # the diagnostics, which are printed, contain them
        model.fit(bursts, None, static=still, **saved)
        if known is not None:
            click.echo(f"Scale: {model.rescale(*known).rescaling_}.", err=True)
    burst_id = columns.burst_id or BURST_ID
    if isinstance(bursts, BurstStatistics) and (told := statistics_burst_id(data)) is not None:
        burst_id, model.table_ = told, {"burst_id": told, "exclude": []}
    elif is_table(data):
        model.table_ = {"burst_id": burst_id, "exclude": [*columns.exclude, *left_out]}
        if columns.perturbations:
            model.table_["perturbations"] = list(columns.perturbations)
    if output is not None:
        model.save(output)
    if embedding is not None:
        named = bursts.has_ids if isinstance(bursts, Bursts) else bursts.ids.tolist() != list(range(len(bursts)))
        labels = bursts.ids if named else None
        write_rows(model.embedding_, [f"z{i}" for i in range(model.n_components_)], embedding, labels, burst_id)
    if checkpoint is not None:
        for file in checkpoint_files(checkpoint):
            with suppress(OSError):
                file.unlink(missing_ok=True)
    if as_json:
        click.echo(json.dumps(_facts(model, bursts, left_out), indent=2))
    _say_scale(model)
    click.echo(str(model.diagnostics_), err=True)
    if model.diagnostics_.warnings:
        click.get_current_context().exit(DISTRUSTED)


def _facts(model: LOCA, bursts: Bursts | BurstStatistics, left_out: dict[str, str]) -> dict[str, Any]:
    return {
        "bursts": len(bursts),
        "n_features": model.n_features_in_,
        "feature_names": bursts.feature_names,
        "units": model.units_,
        "feature_scale": [None if value == float("inf") else value for value in model.feature_scale_.tolist()],
        "left_out": left_out,
        "noise": model.diagnostics_.noise,
        "set_aside": int(model.set_aside_.sum()),
        "strays": {str(name): reason for name, reason in model.strays_.items()},
        "n_components": model.n_components_,
        "intrinsic_dim": model.intrinsic_dim_,
        "burst_std": model.burst_std_,
        "rescaling": vars(model.rescaling_) if hasattr(model, "rescaling_") else None,
        "iterations": model.n_iter_,
        "converged": model.converged_,
        "diagnostics": model.diagnostics_.to_dict(),
    }


def _say_scale(model: LOCA) -> None:
    """Say what the sensors were divided by, unless they were left alone."""
    from pyloca.estimator import feature_label

    values = model.feature_scale_
    used = [j for j, value in enumerate(values) if value != float("inf")]  # `diagnostics_` names the others
    if (values[used] == 1).all():
        return
    divisor = "its spread" if isinstance(model.feature_scale, str) else "the given number"
    listed = some([f"{feature_label(model, j)} {values[j]:.2g}" for j in used])
    click.echo(f"Each sensor divided by {divisor}: {listed}.", err=True)


@contextmanager
def _told(checkpoint: Path | None, resume: bool) -> Iterator[None]:
    """Say what becomes of a checkpoint that is there, and whether an interrupted fit has left its own."""
    from pyloca.solvers import checkpoint_files

    files = () if checkpoint is None else checkpoint_files(checkpoint)[:2]
    found = next((file for file in files if os.path.isfile(file)), None)
    if resume:
        click.echo(
            f"Resuming from '{found}'." if found else f"There is no '{checkpoint}' yet: starting from scratch.",
            err=True,
        )
    elif found:
        click.echo(f"Starting from scratch; --resume would continue '{found}' of an earlier fit.", err=True)
    before = _stamp(checkpoint)
    try:
        yield
    except (KeyboardInterrupt, Terminated):
        if _stamp(checkpoint) not in (None, before) or (resume and found):
            click.echo(f"The training is saved in '{checkpoint}'; --resume continues from there.", err=True)
        raise


def _stamp(path: Path | None) -> tuple[int, int] | None:
    """Return what changes when a file is replaced; None if there is none."""
    if path is None or not os.path.isfile(path):
        return None
    status = path.stat()
    return status.st_ino, status.st_mtime_ns
