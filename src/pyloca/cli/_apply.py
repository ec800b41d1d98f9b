"""``pyloca transform`` and ``inverse``: a fitted model applied to files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pyloca.cli._column_options import Columns, columns_options
from pyloca.cli._main import cli, debug_option, not_the_data, writable
from pyloca.errors import BurstError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
@columns_options("that of the fit")
@debug_option
def transform(model: Path, data: str, output: Path | None, per_burst: bool, trust: bool, columns: Columns) -> None:
    """Compute coordinates of new measurements.

    MODEL is a file that fit wrote. DATA is a table (.csv, .parquet) with one row per measurement, or .npy (n, D); -
    reads CSV from standard input. Columns are found by the names that they had in the fit, in any order; the column
    that names the burst is passed on. Bursts (.npy (N, M, D), .npz, .h5, or a table with --bursts) give one row per
    burst.

    \b
    Examples:
      pyloca transform model.safetensors new.csv -o new_z.csv
      pyloca transform model.safetensors new.csv --bursts --trust
    """
    writable(output, ".csv", ".npy")
    not_the_data(data, output)
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

    fitted = LOCA.load(model)
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
        values, trusted = fitted.transform(points, return_trust=True)
    _say_strange(trusted, len(fitted.trust_scale_.scores))
    names = [f"z{i}" for i in range(fitted.n_components_)]
    if trust:
        values, names = np.column_stack([values, trusted]), [*names, TRUST]
    write_rows(values, names, output, labels, burst_id_of(fitted, columns))


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
    not_the_data(data, output)
    from pyloca.cli._data import burst_id_of, read_coordinates, write_rows
    from pyloca.estimator import LOCA

    fitted = LOCA.load(model)
    columns = Columns(burst_id)
    points, labels = read_coordinates(fitted, data, columns)
    with _about(data):
        values = fitted.inverse_transform(points)
    known = getattr(fitted, "feature_names_in_", None)
    names = [f"y{i}" for i in range(fitted.n_features_in_)] if known is None else [str(name) for name in known]
    write_rows(values, names, output, labels, burst_id_of(fitted, columns))


@contextmanager
def _about(data: str) -> Iterator[None]:
    """Report points that do not fit the model as bad data, with the name of the file."""
    try:
        yield
    except ValueError as error:
        raise BurstError(f"{'standard input' if data == '-' else data}: {error}") from error
