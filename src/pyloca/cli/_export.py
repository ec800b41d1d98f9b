"""``pyloca export``: a fitted model for places without PyTorch or without Python."""

from __future__ import annotations

import json
from pathlib import Path

import click

from pyloca.cli._main import cli, debug_option, require, usage, writable

__all__ = ["export"]

SUFFIXES = {"onnx": ".onnx", "numpy": ".safetensors", "c": ".h"}
FILE = click.Path(dir_okay=False, path_type=Path)


@cli.command()
@click.argument("model", type=FILE)
@click.option("--to", type=click.Choice(list(SUFFIXES)), help="What to write.  [default: by the output's suffix]")
@click.option("-o", "--output", type=FILE, required=True, help="A .onnx, .safetensors or .h file.")
@click.option(
    "--dtype", type=click.Choice(["float64", "float32"]), default="float64", show_default=True, help="Its numbers."
)
@click.option(
    "--data",
    type=click.Path(),
    metavar="FILE",
    help="Bursts of the fit: compare at their means, which a model does not keep.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the certificate to stdout as JSON.")
@debug_option
def export(model: Path, to: str | None, output: Path, dtype: str, data: str | None, as_json: bool) -> None:
    """Convert a model to ONNX, NumPy or C, and compare.

    MODEL is a file that fit wrote. Three kinds of export:

    \b
      onnx   OUTPUT is the encoder; beside it are written .decoder.onnx and .trust.onnx
      numpy  a small model file for pyloca.predict, which needs NumPy and safetensors only
      c      a C99 header without dependencies or malloc: encode, Jacobian, decode, trust

    Each is run and compared with PyTorch (by onnxruntime, NumPy, or your C compiler); the largest differences are
    printed and kept in the file.

    \b
    Examples:
      pyloca export model.safetensors -o model.onnx
      pyloca export model.safetensors --to c --dtype float32 -o model.h
      pyloca export model.safetensors --to numpy -o small.safetensors --data bursts.csv
    """
    if to is None:
        to = next((kind for kind, suffix in SUFFIXES.items() if output.suffix.lower() == suffix), None)
        if to is None:
            raise click.UsageError(f"'{output}' does not say what to write; give --to {', '.join(SUFFIXES)}.")
    writable(output, SUFFIXES[to])
    if to == "onnx":
        require("onnx", "export")
    from pyloca.cli._column_options import Columns
    from pyloca.cli._data import read_bursts_like
    from pyloca.estimator import LOCA
    from pyloca.export import export as export_model
    from pyloca.export import files_of

    for file in files_of(output, to).values():
        if file != output:
            writable(file)
    bursts = None if data is None else read_bursts_like(LOCA.load(model), data, Columns(None))
    with usage():
        certificate = export_model(model, output, to=to, dtype=dtype, data=bursts)
    for file in files_of(output, to).values():
        click.echo(f"{file}: {file.stat().st_size:,} bytes", err=True)
    for line in certificate.lines():
        click.echo(line, err=True)
    if as_json:
        click.echo(json.dumps(certificate.to_dict(), indent=2))
