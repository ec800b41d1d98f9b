"""``pyloca transform`` and ``inverse``: a fitted model applied to files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyloca.cli._column_options import Columns, columns_options
from pyloca.cli._main import cli, debug_option, writable
from pyloca.errors import BurstError, MatchError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyloca.estimator import LOCA

__all__ = ["inverse", "transform"]

FILE = click.Path(dir_okay=False, path_type=Path)
OUTPUT = click.option("-o", "--output", type=FILE, help="A .csv or .npy file.  [default: CSV to stdout]")


@cli.command()
@click.argument("model", type=FILE)
@click.argument("data")
@OUTPUT
@click.option("--bursts", "per_burst", is_flag=True, help="One row per burst, at its mean, not one per measurement.")
@click.option(
    "--trust", is_flag=True, help="Add a column: the fraction of held-out measurements that are at least as strange."
)
@click.option("--from", "source", metavar="NAME", help="Of a match or fusion: the instrument that measured DATA.")
@click.option("--to", "target", metavar="NAME", help="Predict readings of this instrument instead of coordinates.")
@click.option("--errors", is_flag=True, help="With --to: add a column with the standard error of each reading.")
@columns_options("that of the fit")
@debug_option
def transform(
    model: Path,
    data: str,
    output: Path | None,
    per_burst: bool,
    trust: bool,
    source: str | None,
    target: str | None,
    errors: bool,
    columns: Columns,
) -> None:
    """Compute coordinates of new measurements.

    MODEL is a file that fit wrote. DATA is a table (.csv, .parquet) with one row per measurement, or .npy (n, D); -
    reads CSV from standard input. Columns are found by the names that they had in the fit, in any order; the column
    that names the burst is passed on. Bursts (.npy (N, M, D), .npz, .h5, .zarr, or a table with --bursts) give one row
    per burst.

    MODEL may also be a file of match or fuse: --from names the instrument that measured DATA, and --to another one
    whose readings are predicted; without --to, rows are coordinates in the common system.

    \b
    Examples:
      pyloca transform model.safetensors new.csv -o new_z.csv
      pyloca transform match.safetensors new.csv --from radio --to camera --trust
      pyloca transform model.safetensors new.csv --bursts --trust
    """
    writable(output, ".csv", ".npy")
    import numpy as np

    from pyloca.cli._data import (
        TRUST,
        Labels,
        burst_id_of,
        holds_bursts,
        read_bursts_like,
        read_rows_like,
        write_rows,
    )
    from pyloca.estimator import LOCA, Data

    joint = _joint(model, source, target, errors)
    fitted = LOCA.load(model) if joint is None else joint.models[source]
    points: Data
    labels: Labels | None
    if per_burst or holds_bursts(data):
        bursts = read_bursts_like(fitted, data, columns)
        points, labels = bursts, bursts.ids if bursts.has_ids else None
    else:
        points, labels = read_rows_like(fitted, data, columns)
    with _about(data), warnings.catch_warnings():
        # the array has no names, but its columns were found by name
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        if joint is None:
            values, trusted = fitted.transform(points, return_trust=True)
        elif target is None:
            values, trusted = joint.coordinates(points, source, return_trust=True)
        else:
            prediction = joint.predict(points, source, target)
            values, trusted = prediction.values, prediction.trust
    _say_strange(trusted, len(fitted.trust_scale_.scores))
    names = [f"z{i}" for i in range(fitted.n_components_)]
    if joint is not None and target is not None:
        names = _sensors(joint.models[target])
        if errors:
            values = np.column_stack([values, prediction.standard_errors])
            names = [*names, *(f"{name}_error" for name in names)]
    if trust:
        values, names = np.column_stack([values, trusted]), [*names, TRUST]
    write_rows(values, names, output, labels, burst_id_of(fitted, columns))


def _joint(path: Path, source: str | None, target: str | None, errors: bool) -> Any:
    """Return the match or fusion in a file; None if it is a model. Refuse options that do not belong to it."""
    from pyloca._sealed import file_kind
    from pyloca.matching import Fusion, Match

    kinds: dict[str, Any] = {"pyloca-match": Match, "pyloca-fusion": Fusion}
    kind = kinds.get(file_kind(path))
    if kind is None:
        if path.exists() and (source is not None or target is not None):  # a missing file is told by what reads it
            raise click.UsageError("--from and --to need a file that match or fuse wrote; this is not one.")
        return None
    joint = kind.load(path)
    there = ", ".join(joint.models)
    if source is None:
        raise click.UsageError(f"say which instrument measured the data: --from, one of {there}.")
    for name in (source, target):
        if name is not None and name not in joint.models:
            raise click.UsageError(f"there is no instrument '{name}'; there are {there}.")
    if errors and target is None:
        raise click.UsageError("--errors needs --to: it adds the standard errors of predicted readings.")
    return joint


def _sensors(model: LOCA) -> list[str]:
    known = getattr(model, "feature_names_in_", None)
    return [f"y{i}" for i in range(model.n_features_in_)] if known is None else [str(name) for name in known]


def _say_strange(trusted: NDArray[np.float64], n_known: int) -> None:
    """Say when most rows are unlike everything in the fit: another unit, another sensor, or another place."""
    from pyloca.thresholds import UNTRUSTED

    least = max(UNTRUSTED, 1.5 / (1 + n_known))  # with few held-out points no trust is smaller than 1 / (1 + n)
    strange = int((trusted < least).sum())
    if strange > len(trusted) / 2:
        click.echo(
            f"Warning: {strange} of {len(trusted)} rows are unlike anything in the fit (trust below {least:.2g}): "
            "their coordinates are extrapolated. Check units, sensors and their columns; --trust says which rows.",
            err=True,
        )


@cli.command()
@click.argument("model", type=FILE)
@click.argument("data")
@OUTPUT
@click.option("--burst-id", metavar="NAME", help="Column that names the rows.  [default: that of the fit]")
@debug_option
def inverse(model: Path, data: str, output: Path | None, burst_id: str | None) -> None:
    """Decode coordinates to measurements.

    MODEL is a file that fit wrote. DATA is CSV with a header line and the columns z0, z1, … that transform writes (if
    there are no such columns, all of them in order), or .npy (n, d); - reads CSV from standard input. The column that
    names the burst is passed on.

    \b
    Example:
      pyloca inverse model.safetensors z.csv -o measurements.csv
    """
    writable(output, ".csv", ".npy")
    from pyloca.cli._data import burst_id_of, read_coordinates, write_rows
    from pyloca.estimator import LOCA

    fitted = LOCA.load(model)
    columns = Columns(burst_id)
    points, labels = read_coordinates(fitted, data, columns)
    with _about(data):
        values = fitted.inverse_transform(points)
    write_rows(values, _sensors(fitted), output, labels, burst_id_of(fitted, columns))


@contextmanager
def _about(data: str) -> Iterator[None]:
    """Report points that do not fit the model as bad data, with the name of the file."""
    try:
        yield
    except MatchError:
        raise  # it is about the instruments, not about the data
    except ValueError as error:
        raise BurstError(f"{'standard input' if data == '-' else data}: {error}") from error
