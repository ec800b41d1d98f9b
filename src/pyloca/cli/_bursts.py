"""``pyloca bursts``: from recordings, photographs, frames and tables to a file of bursts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from pyloca.cli._column_options import Columns, columns_options, some
from pyloca.cli._main import cli, debug_option, usage, writable
from pyloca.cli._settings import units

if TYPE_CHECKING:
    from pyloca.bursts import Bursts

__all__ = ["bursts"]

AUTO: Literal["auto"] = "auto"
PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".gif")
STACKS = (".npy", ".npz")
WRITTEN = (".npz", ".npy", ".csv", ".parquet", ".zarr")


class Recording(NamedTuple):
    """Options of recordings; None where one was not given."""

    time: str | None
    window: int | Literal["auto"]
    lag: int | Literal["auto"]
    lags: tuple[int, int] | None
    stride: int | None
    diffusion: float | None
    dt: float | None


class Spots(NamedTuple):
    """Options of pictures; None where one was not given."""

    threshold: float | None
    eps: float | None
    min_points: int | None


class Flashes(NamedTuple):
    """Options of frames with one flash each; None where one was not given."""

    flashes: bool | None
    pixel_size: float | None
    on_bad: str | None


def _auto(_: click.Context, parameter: click.Parameter, value: str) -> int | str:
    """Parse an integer or 'auto'."""
    if value == AUTO:
        return AUTO
    least = 2 if parameter.name == "window" else 1
    if not value.isdecimal() or int(value) < least:
        raise click.BadParameter(f"expected 'auto' or an integer of at least {least}; got '{value}'.")
    return int(value)


def _two(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Parse two lags."""
    if value is None:
        return None
    cells = [cell.strip() for cell in value.split(",")]
    if len(cells) != 2 or not all(cell.isdecimal() for cell in cells) or not 0 < int(cells[0]) < int(cells[1]):
        raise click.BadParameter(f"expected two lags such as 2,8, the shorter first; got '{value}'.")
    return int(cells[0]), int(cells[1])


@cli.command()
@click.argument("data", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="Write the bursts to this .npz file; .csv, .parquet and .npy keep less of what is known about them.",
)
@columns_options("burst_id, if there is such a column")
@click.option("--units", callback=units, metavar="NAME=UNIT,…", help="Units of the sensors, such as p1=Pa,t1=K.")
@click.option("--time", metavar="NAME", help="Recording: column of time stamps, which must be evenly spaced.")
@click.option(
    "--window", callback=_auto, default=AUTO, metavar="N", help="Recording: steps in a burst.  [default: auto]"
)
@click.option("--lag", callback=_auto, default=AUTO, metavar="N", help="Recording: samples in a step.  [default: auto]")
@click.option("--lags", callback=_two, metavar="N,N", help="Recording: two lags; what does not grow is noise.")
@click.option("--stride", type=click.IntRange(1), metavar="N", help="Recording: samples between starts of windows.")
@click.option("--diffusion", type=float, metavar="S", help="Recording: s in dX = drift dt + s dW, for σ = s √(lag dt).")
@click.option("--dt", type=float, metavar="TIME", help="Recording: time between samples.  [default: from --time]")
@click.option("--threshold", type=float, metavar="GREY", help="Picture: pixels darker than this (0 to 1) are spots.")
@click.option("--eps", type=float, metavar="PIXELS", help="Picture: pixels this close belong together.  [default: 1.5]")
@click.option("--min-points", type=click.IntRange(1), metavar="N", help="Picture: as for DBSCAN.  [default: 5]")
@click.option("--flashes", is_flag=True, default=None, help="Frames: each shows one bright spot, a flash.")
@click.option("--pixel-size", type=float, metavar="SIZE", help="Frames: side of a pixel.  [default: 1]")
@click.option("--on-bad", type=click.Choice(["raise", "drop"]), help="Frames without one whole spot.  [default: raise]")
@click.option("--neighbors", type=click.IntRange(2), metavar="N", help="Points: each and its N nearest form a burst.")
@click.option("--json", "as_json", is_flag=True, help="Write a summary to stdout as JSON.")
@debug_option
def bursts(
    data: tuple[str, ...],
    output: Path,
    columns: Columns,
    units: dict[str, str],
    neighbors: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Make bursts from recordings, pictures or tables.

    DATA is one of these; options, columns and the suffix tell which.

    \b
    recordings   .csv, .parquet or .npy (T, D), one row per sample; several files are several recordings
    photograph   a picture, or an array (.npy) with --threshold: every dark spot is a burst
    frames       pictures, one flash in each; a picture with many pages; .npy or .npz (N, height, width): --flashes
    table        .csv or .parquet with a column that names the burst of a row: --burst-id
    points       any of these without bursts: --neighbors (assumes that they are equally dense everywhere)

    What was made, and why, is reported on stderr and stored in the file, with names, units, ids, σ and noise.

    \b
    Examples:
      pyloca bursts recording.csv --time t -o bursts.npz
      pyloca bursts monday.csv tuesday.csv --time t --diffusion 0.5 -o bursts.npz
      pyloca bursts sheet.png --threshold 0.45 -o bursts.npz
      pyloca bursts flash*.png --flashes --pixel-size 0.2 -o bursts.npz
    """
    recording = Recording(**{name: options[name] for name in Recording._fields})
    spots = Spots(**{name: options[name] for name in Spots._fields})
    flashes = Flashes(**{name: options[name] for name in Flashes._fields})
    writable(output, *WRITTEN)
    kind = _kind(data, columns, recording, spots, flashes, neighbors)
    from pyloca.bursts import Bursts, save_bursts

    with usage():
        if kind == "picture":
            made = _from_picture(data[0], spots)
        elif kind == "frame":
            made = _from_frames(data, flashes)
        elif kind == "table":
            made = _from_table(data[0], columns)
        elif kind == "points":
            made = _from_points(data[0], columns, neighbors)
        else:
            made = _from_recordings(data, columns, recording)
    if units:
        made = Bursts(made, units=units)
    save_bursts(made, output)
    if as_json:
        click.echo(json.dumps(_facts(made), indent=2))
    click.echo(f"{_card(made)}\nwritten to        {output}", err=True)


def _kind(
    data: tuple[str, ...],
    columns: Columns,
    recording: Recording,
    spots: Spots,
    flashes: Flashes,
    neighbors: int | None,
) -> str:
    """Tell what the data is, and refuse options of something else."""
    suffixes = {Path(path).suffix.lower() for path in data}
    if flashes.flashes:
        kind = "frame"
        _refuse_other_files(data, (*PICTURES, *STACKS))
    elif spots.threshold is not None or suffixes & set(PICTURES):
        kind = "picture"
    elif neighbors is not None:
        kind = "points"
    elif columns.burst_id is not None or (recording.time is None and _names_bursts(data)):
        kind = "table"
    else:
        kind = "recording"
    if kind == "picture" and len(data) > 1:
        raise click.UsageError(
            f"{len(data)} files were given; expected one photograph of spots. If each "
            "shows one bright spot, use --flashes."
        )
    if kind in ("table", "points") and len(data) > 1:
        raise click.UsageError(f"{len(data)} files were given; only recordings and frames can be in several files.")
    if kind == "picture" and spots.threshold is None:
        raise click.UsageError(
            "a picture needs --threshold, such as 0.5: pixels that are darker are spots; or --flashes, if it has many "
            "pages with one bright spot each."
        )
    empty = Recording(None, AUTO, AUTO, None, None, None, None)
    of_others: dict[str, tuple[Any, Any]] = {}
    if kind != "recording":
        of_others |= {name: (getattr(recording, name), getattr(empty, name)) for name in empty._fields}
    if kind != "picture":
        of_others |= {name: (value, None) for name, value in spots._asdict().items()}
    if kind != "frame":
        of_others |= {name: (value, None) for name, value in flashes._asdict().items()}
    if kind != "points":
        of_others["neighbors"] = (neighbors, None)
    if kind != "table":
        of_others["burst_id"] = (columns.burst_id, None)
    if kind in ("picture", "frame"):
        of_others |= {"columns": (columns.names, None), "exclude": (columns.exclude, ())}
    for name, (value, default) in of_others.items():
        if value != default:
            raise click.UsageError(f"--{name.replace('_', '-')} is not an option for a {kind}.")
    return kind


def _refuse_other_files(data: tuple[str, ...], suffixes: tuple[str, ...]) -> None:
    for path in data:
        if Path(path).suffix.lower() not in suffixes:
            raise click.UsageError(f"{path}: frames are pictures ({', '.join(PICTURES)}), .npy or .npz.")


def _names_bursts(data: tuple[str, ...]) -> bool:
    """Whether the only file is a table of bursts, by the name of a column."""
    from pyloca.bursts import BURST_ID, column_names

    if len(data) > 1 or Path(data[0]).suffix.lower() not in (".csv", ".parquet"):
        return False
    return BURST_ID in (column_names(data[0]) or ())


# -- sources ----------------------------------------------------------------------------------------------------


def _from_recordings(data: tuple[str, ...], columns: Columns, options: Recording) -> Bursts:
    from pyloca.bursts import Bursts, from_time_series
    from pyloca.cli._pictures import is_stack
    from pyloca.cli._recording import read_recordings

    for path in data:
        if is_stack(path):
            raise click.UsageError(
                f"{path}: has three axes. Frames with one bright spot each need --flashes; bursts (N, M, D) are ready, "
                "and go to pyloca fit."
            )
    read = read_recordings(data, options.time, columns)
    dt = read.dt if options.dt is None and options.diffusion is not None else options.dt
    if options.diffusion is not None and dt is None:
        raise click.UsageError("--diffusion needs the time between samples: give --time NAME or --dt TIME.")
    stems = [Path(path).stem for path in data]
    made = from_time_series(
        list(read.values) if len(data) > 1 else read.values[0],
        options.window,
        lag=options.lag,
        lags=options.lags,
        stride=options.stride,
        keys=stems if 1 < len(data) == len(set(stems)) else None,
        diffusion=options.diffusion,
        dt=dt,
    )
    return made if read.names is None else Bursts(made, feature_names=read.names)


def _from_table(data: str, columns: Columns) -> Bursts:
    from pyloca.cli._data import read_bursts, say_left_out

    made, left_out = read_bursts(data, columns)
    say_left_out(left_out)
    return made


def _from_points(data: str, columns: Columns, neighbors: int | None) -> Bursts:
    from pyloca.bursts import Bursts, from_neighbors
    from pyloca.cli._recording import read_recordings

    assert neighbors is not None
    read = read_recordings((data,), None, columns)
    made = from_neighbors(read.values[0], neighbors)
    return made if read.names is None else Bursts(made, feature_names=read.names)


def _from_picture(data: str, options: Spots) -> Bursts:
    from pyloca.bursts import from_image
    from pyloca.cli._pictures import read_picture

    given = {name: value for name, value in options._asdict().items() if value is not None}
    return from_image(read_picture(data), **given)


def _from_frames(data: tuple[str, ...], options: Flashes) -> Bursts:
    from pyloca.bursts import from_spots
    from pyloca.cli._pictures import read_frames

    read = read_frames(data)
    size = 1.0 if options.pixel_size is None else options.pixel_size
    return from_spots(read.frames, ids=read.ids, pixel_size=size, on_bad=options.on_bad or "raise")


# -- what is said -----------------------------------------------------------------------------------------------


def _facts(made: Bursts) -> dict[str, Any]:
    counts = made.counts
    return {
        "bursts": len(made),
        "points": [int(counts.min()), int(counts.max())],
        "n_features": made.n_features,
        "feature_names": made.feature_names,
        "units": made.units,
        "burst_std": made.burst_std,
        "noise": None if made.noise is None else _deviations(made),
        "provenance": made.provenance,
    }


def _card(made: Bursts) -> str:
    """Describe bursts, one fact per line."""
    counts = made.counts
    size = f"{counts.min()} to {counts.max()}" if made.is_ragged else f"{counts[0]}"
    _, _, how = made.provenance.partition(": ")
    lines = [("bursts", f"N = {len(made)}, M = {size}, D = {made.n_features}")]
    if made.feature_names is not None:
        lines.append(("features", some([made.feature_label(j) for j in range(made.n_features)])))
    lines += [("made of" if i == 0 else "", part) for i, part in enumerate(how.split("; ")) if "σ" not in part]
    known = "not known: coordinates will be right up to one factor" if made.burst_std is None else f"{made.burst_std:g}"
    lines.append(("burst std σ", known))
    if made.noise is not None:
        lines.append(("noise", some([f"{value:.3g}" for value in _deviations(made)]) + " (deviation, by sensor)"))
    return "\n".join(f"{name:<18}{text}" for name, text in lines)


def _deviations(made: Bursts) -> list[float]:
    """Median standard deviation of the noise in a burst, by sensor."""
    import numpy as np

    noise = np.asarray(made.noise)
    dim = made.n_features
    if noise.shape in ((dim, dim), (len(made), dim, dim)):
        noise = np.sqrt(np.maximum(np.diagonal(noise, axis1=-2, axis2=-1), 0))
    return [float(value) for value in np.median(np.atleast_2d(noise), axis=0)]
