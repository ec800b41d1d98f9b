"""``pyloca fit``, ``transform`` and ``inverse``: from a file of bursts to coordinates and back."""

from __future__ import annotations

import difflib
import inspect
import json
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyloca.cli._main import DISTRUSTED, Terminated, cli, debug_option, writable
from pyloca.errors import BurstError, PylocaError, TrustWarning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pyloca.estimator import LOCA

__all__ = ["fit", "inverse", "transform"]

FILE = click.Path(dir_okay=False, path_type=Path)
TABLES = (".csv", ".npy")  # what coordinates and measurements are written to


def _layers(_: click.Context, __: click.Parameter, value: str | None) -> list[int] | None:
    if value is None:
        return None
    try:
        return [int(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"expected whole numbers such as 50,50; got '{value}'.") from None


def _components(_: click.Context, __: click.Parameter, value: str | None) -> int | str | None:
    if value in (None, "auto"):
        return value
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if number < 1:
        raise click.BadParameter(f"expected a whole number of at least 1, or 'auto'; got '{value}'.")
    return number


def _noise(_: click.Context, __: click.Parameter, value: str | None) -> float | str | None:
    if value in (None, "estimate"):
        return value
    try:
        return float(str(value))
    except ValueError:
        raise click.BadParameter(f"expected a number, or 'estimate'; got '{value}'.") from None


def _parameters() -> dict[str, Any]:
    """The parameters of LOCA that a file or a command line can give, with their defaults."""
    from pyloca.estimator import LOCA

    skipped = {"self", "encoder", "decoder", "callbacks", "verbose"}
    signature = inspect.signature(LOCA.__init__)
    defaults = {name: p.default for name, p in signature.parameters.items() if name not in skipped}
    return defaults | {"random_state": 0}  # a fit from the shell can be repeated, and resumed


def _from_config(path: Path, known: dict[str, Any]) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise click.BadParameter(f"'{path}' cannot be read as TOML ({error}).", param_hint="'--config'") from error
    for name in content:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"known are {', '.join(known)}."
            raise click.BadParameter(f"'{path}' has the unknown key '{name}'; {hint}", param_hint="'--config'")
    return content


def _toml(settings: dict[str, Any]) -> str:
    lines = []
    for name, value in settings.items():
        value = list(value) if isinstance(value, tuple) else value
        lines.append(f"# {name} = (not set)" if value is None else f"{name} = {json.dumps(value)}")
    return "\n".join(lines)


@cli.command()
@click.argument("data")
@click.option("-o", "--output", type=FILE, help="Write the fitted model to this .safetensors file.")
@click.option("--embedding", type=FILE, help="Write the coordinates to this .csv or .npy file, one row a burst.")
@click.option("--burst-id", default="burst_id", show_default=True, help="The column of a table that names the burst.")
@click.option(
    "-d", "--n-components", callback=_components, metavar="N", help="Coordinates to find, or 'auto'.  [default: 2]"
)
@click.option(
    "--burst-std",
    type=float,
    metavar="STD",
    help="Size σ of a burst, in units of the coordinates.  [default: estimated, up to scale]",
)
@click.option(
    "--intrinsic-dim", type=click.IntRange(1), metavar="N", help="Directions a burst spans.  [default: estimated]"
)
@click.option("--solver", type=click.Choice(["fast", "paper"]), help="How to train.  [default: fast]")
@click.option("--hidden-layers", callback=_layers, metavar="N,N", help="Widths of the networks.  [default: 50,50]")
@click.option("--activation", metavar="NAME", help="tanh, sigmoid, softplus, elu or leaky_relu.  [default: tanh]")
@click.option("--decoder-activation", metavar="NAME", help="The same for the decoder.  [default: as --activation]")
@click.option(
    "--measurement-noise",
    callback=_noise,
    metavar="STD",
    help="Noise of the instrument to remove: a number, or 'estimate'.  [default: none]",
)
@click.option("--validation-fraction", type=float, help="Part of the bursts kept for checks.  [default: 0.1]")
@click.option("--tol", type=float, help="Relative gain below which a stage of training ends.")
@click.option(
    "--max-iter", type=click.IntRange(1), metavar="N", help="At most this many iterations (fast) or epochs (paper)."
)
@click.option("--random-state", type=click.IntRange(0, 2**32 - 1), metavar="SEED", help="Seed.  [default: 0]")
@click.option("--device", help="cpu, cuda, mps or auto.  [default: auto]")
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Read settings from this TOML file."
)
@click.option(
    "--checkpoint", type=FILE, help="Keep the training in this .checkpoint file.  [default: OUTPUT.checkpoint]"
)
@click.option("--resume", is_flag=True, help="Go on from the checkpoint of an interrupted fit, if there is one.")
@click.option("--print-config", is_flag=True, help="Print all settings as TOML and stop.")
@click.option("-q", "--quiet", is_flag=True, help="No progress.")
@click.option("--json", "as_json", is_flag=True, help="Write a summary to stdout as JSON.")
@debug_option
def fit(
    data: str,
    output: Path | None,
    embedding: Path | None,
    burst_id: str,
    config: Path | None,
    checkpoint: Path | None,
    resume: bool,
    print_config: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Learn coordinates from a file of bursts.

    DATA is .npy (N, M, D), .npz, .h5, or a long table (.csv, .parquet) with a column burst_id and one row a
    measurement; - reads CSV from standard input. Bursts keep the order in which they first appear. Options win over
    --config, which has the same names with underscores.

    The model is written even when a check says that it should not be believed; the exit code is then 4. A fit that was
    interrupted (Ctrl-C, SIGTERM) has left a checkpoint: the same command with --resume goes on from there.

    \b
    Example:
      pyloca fit bursts.csv -d 2 --burst-std 0.01 -o model.safetensors --embedding z.csv
    """
    settings = _parameters()
    if config is not None:
        settings |= _from_config(config, settings)
    settings |= {name: value for name, value in options.items() if value is not None}
    if print_config:
        click.echo(_toml(settings))
        return
    if output is None and embedding is None and not as_json:
        raise click.UsageError("nothing would be kept: give -o model.safetensors, --embedding z.csv or --json.")
    if output is not None and output.suffix != ".safetensors":
        raise click.BadParameter(f"a model is a .safetensors file; got '{output}'.", param_hint="'-o' / '--output'")
    if checkpoint is None and output is not None:
        checkpoint = output.with_name(f"{output.name}.checkpoint")
    if resume and checkpoint is None:
        raise click.UsageError("--resume needs to know from where: give --checkpoint FILE, or -o model.safetensors.")
    writable(output)
    writable(embedding, *TABLES)
    writable(checkpoint, ".checkpoint")
    _not_the_data(data, embedding)
    from pyloca.cli._tables import read_bursts, write_points
    from pyloca.estimator import LOCA

    bursts = read_bursts(data, burst_id)
    if checkpoint is not None:
        _announce(checkpoint, resume)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TrustWarning)  # they are in the diagnostics, which are printed
            model = LOCA(**settings, verbose=0 if quiet else 1).fit(bursts, checkpoint=checkpoint)
    except (KeyboardInterrupt, Terminated):
        if checkpoint is not None and checkpoint.is_file():
            click.echo(f"The training is kept in '{checkpoint}'; --resume goes on from there.", err=True)
        raise
    except ValueError as error:
        if isinstance(error, PylocaError):
            raise
        raise click.UsageError(str(error)) from error
    if output is not None:
        model.save(output)
    if embedding is not None:
        write_points(model.embedding_, _names("z", model.n_components_), embedding)
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    facts = {
        "bursts": len(bursts),
        "n_features": model.n_features_in_,
        "n_components": model.n_components_,
        "intrinsic_dim": model.intrinsic_dim_,
        "burst_std": model.burst_std_,
        "iterations": model.n_iter_,
        "converged": model.converged_,
        "diagnostics": model.diagnostics_.to_dict(),
    }
    if as_json:
        click.echo(json.dumps(facts, indent=2))
    click.echo(str(model.diagnostics_), err=True)
    if model.diagnostics_.warnings:
        click.get_current_context().exit(DISTRUSTED)


def _not_the_data(data: str, output: Path | None) -> None:
    if output is not None and output.exists() and Path(data).exists() and output.samefile(data):
        raise click.UsageError(f"'{output}' is the data; write to another file.")


def _announce(checkpoint: Path, resume: bool) -> None:
    """Say what becomes of an earlier checkpoint."""
    found = checkpoint.is_file()
    if resume:
        click.echo(
            f"Reading '{checkpoint}', to go on from it." if found else f"No '{checkpoint}' yet: starting anew.",
            err=True,
        )
    elif found:
        click.echo(f"'{checkpoint}' of an earlier fit is removed; --resume would have gone on from it.", err=True)
        checkpoint.unlink()


@cli.command()
@click.argument("model", type=FILE)
@click.argument("data")
@click.option("-o", "--output", type=FILE, help="A .csv or .npy file.  [default: CSV to stdout]")
@click.option(
    "--trust", is_flag=True, help="Add a column: the part of held-out measurements that are at least as strange."
)
@debug_option
def transform(model: Path, data: str, output: Path | None, trust: bool) -> None:
    """Coordinates of new measurements.

    MODEL is a file that fit wrote. DATA is .npy (n, D) or CSV with a header line, one row a measurement; - reads CSV
    from standard input. A column burst_id is passed on.
    """
    import numpy as np

    from pyloca.cli._tables import TRUST, write_points

    fitted, points, labels = _read(model, data, output)
    with _about(data):
        values, trusted = fitted.transform(points, return_trust=True) if trust else (fitted.transform(points), None)
    names = _names("z", fitted.n_components_)
    if trusted is not None:
        values, names = np.column_stack([values, trusted]), [*names, TRUST]
    write_points(values, names, output, labels)


@cli.command()
@click.argument("model", type=FILE)
@click.argument("data")
@click.option("-o", "--output", type=FILE, help="A .csv or .npy file.  [default: CSV to stdout]")
@debug_option
def inverse(model: Path, data: str, output: Path | None) -> None:
    """Measurements that belong to given coordinates: the decoder.

    MODEL is a file that fit wrote. DATA is .npy (n, d) or CSV with a header line, one row a point; - reads CSV from
    standard input. A column burst_id is passed on.
    """
    from pyloca.cli._tables import write_points

    fitted, points, labels = _read(model, data, output)
    with _about(data):
        values = fitted.inverse_transform(points)
    write_points(values, _names("y", fitted.n_features_in_), output, labels)


def _read(model: Path, data: str, output: Path | None) -> tuple[LOCA, NDArray[np.float64], list[str] | None]:
    """A model and points, after a look at where the result will go."""
    writable(output, *TABLES)
    _not_the_data(data, output)
    from pyloca.cli._tables import read_points
    from pyloca.estimator import LOCA

    return LOCA.load(model), *read_points(data)


@contextmanager
def _about(data: str) -> Iterator[None]:
    """Points that do not fit the model are bad data, by name."""
    try:
        yield
    except ValueError as error:
        raise BurstError(f"{'standard input' if data == '-' else data}: {error}") from error


def _names(letter: str, n: int) -> list[str]:
    return [f"{letter}{i}" for i in range(n)]
