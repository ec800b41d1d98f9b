"""``pyloca match``, ``fuse`` and ``recalibrate``: several instruments, one coordinate system."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyloca.cli._anchors import read_ids, read_named_ids, read_readings, stems
from pyloca.cli._column_options import Columns, columns_options, names_of
from pyloca.cli._main import DISTRUSTED, cli, debug_option, usage, writable
from pyloca.errors import TrustWarning

if TYPE_CHECKING:
    from pyloca.estimator import LOCA

__all__ = ["fuse", "match", "recalibrate"]

FILE = click.Path(dir_okay=False, path_type=Path)
MODEL = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT = click.option("-o", "--output", type=FILE, required=True, help="Write the result to this .safetensors file.")
NAMES = click.option(
    "--names", callback=names_of, metavar="NAMES", help="What to call the instruments.  [default: their files' names]"
)
READINGS = click.option(
    "--readings",
    nargs=2,
    type=click.Path(),
    metavar="FILE FILE",
    help="Anchors as simultaneous readings of the first and of the second instrument, row by row or by burst.",
)
UNEVENNESS = click.option(
    "--unevenness",
    type=click.FloatRange(1),
    default=3.0,
    show_default=True,
    help="How many times more often one may have visited some states than the other.",
)
CHOOSE = click.option(
    "--choose", type=click.IntRange(0), metavar="I", help="Take this candidate if several are possible."
)
JSON = click.option("--json", "as_json", is_flag=True, help="Write a summary to stdout as JSON.")


@cli.command()
@click.argument("a", type=MODEL)
@click.argument("b", type=MODEL)
@OUTPUT
@click.option("--anchors", type=FILE, help="A CSV file: per row, a burst id of each instrument and maybe a weight.")
@READINGS
@NAMES
@click.option("--density", is_flag=True, help="Both saw each state equally often, so densities may help to decide.")
@UNEVENNESS
@CHOOSE
@JSON
@debug_option
def match(
    a: Path,
    b: Path,
    output: Path,
    anchors: Path | None,
    readings: tuple[str, str] | None,
    names: tuple[str, ...] | None,
    density: bool,
    unevenness: float,
    choose: int | None,
    as_json: bool,
) -> None:
    """Put two instruments into one coordinate system.

    A and B are model files. With d + 1 anchors or more the map between their coordinates follows from these; fewer are
    completed by the shape of what both have seen, and without any the shapes decide. The file is written in any case;
    if there is no answer, or more than one, candidates are listed and the exit code is 4.

    \b
    Examples:
      pyloca match radio.safetensors camera.safetensors --anchors pairs.csv -o match.safetensors
      pyloca transform match.safetensors new.csv --from radio --to camera
    """
    writable(output, ".safetensors")
    called = stems((a, b), names)
    if anchors is not None and readings:
        raise click.UsageError("--anchors and --readings are two forms of the same thing; give one of them.")
    from pyloca.estimator import LOCA
    from pyloca.matching import match as match_models

    one, other = LOCA.load(a), LOCA.load(b)
    pairs: Any = None
    weights = None
    if anchors is not None:
        pairs, weights = read_ids(anchors, one, other)
    elif readings:
        pairs = read_readings(readings, one, other)
    with usage(), warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # the match, which is printed, contains them
        found = match_models(
            one,
            other,
            pairs,
            weights=weights,
            names=(called[0], called[1]),
            density=density,
            unevenness=unevenness,
        )
        if choose is not None:
            found = found.choose(choose)
    found.save(output)
    if as_json:
        candidates = [
            {"overlap": c.overlap, "p_value": _or_none(c.p_value), "possible": c.possible} for c in found.candidates
        ]
        facts = {
            "match": str(output),
            "evidence": found.how,
            "chosen": found.chosen,
            "continuous": found.continuous,
            "candidates": candidates,
            "anchors_used": found.used.tolist(),
            "standard_error": None if found.chosen is None else found.standard_error,
            "warnings": list(found.warnings),
        }
        click.echo(json.dumps(facts, indent=2))
    click.echo(str(found), err=True)
    if found.chosen is None or found.warnings:
        click.get_current_context().exit(DISTRUSTED)


@cli.command()
@click.argument("models", type=MODEL, nargs=-1, required=True)
@click.option(
    "--anchors", type=FILE, required=True, help="A CSV file with rows of instrument,burst id,instrument,burst id."
)
@click.option(
    "--bursts",
    "given",
    multiple=True,
    metavar="NAME=FILE",
    help="Bursts that an instrument was fitted to, to refine it on; may be given for any number of instruments.",
)
@OUTPUT
@NAMES
@JSON
@debug_option
def fuse(
    models: tuple[Path, ...],
    anchors: Path,
    given: tuple[str, ...],
    output: Path,
    names: tuple[str, ...] | None,
    as_json: bool,
) -> None:
    """Combine instruments that have each seen a part.

    All get the coordinates of the first.

    MODELS are model files. Instruments that anchors do not connect to the first are named, and the exit code is 4.
    Models do not contain their bursts; with --bursts the common coordinates are more exact.

    \b
    Examples:
      pyloca fuse north.safetensors south.safetensors east.safetensors --anchors pairs.csv -o fusion.safetensors
      pyloca transform fusion.safetensors new.csv --from south
    """
    writable(output, ".safetensors")
    called = stems(models, names)
    from pyloca.estimator import LOCA
    from pyloca.matching import fuse as fuse_models

    loaded = {name: LOCA.load(path) for name, path in zip(called, models, strict=True)}
    pairs: Any = read_named_ids(anchors, loaded)
    bursts = _named_bursts(given, loaded)
    with usage(), warnings.catch_warnings():
        warnings.simplefilter("ignore", TrustWarning)  # the fusion, which is printed, contains them
        found = fuse_models(loaded, pairs, bursts=bursts)
    found.save(output)
    if as_json:
        facts = {
            "fusion": str(output),
            "connected": list(found.connected),
            "unconnected": list(found.unconnected),
            "overlaps": [[i, j, *values] for (i, j), values in found.overlaps.items()],
            "warnings": list(found.warnings),
        }
        click.echo(json.dumps(facts, indent=2))
    click.echo(str(found), err=True)
    if found.warnings:
        click.get_current_context().exit(DISTRUSTED)


@cli.command()
@click.argument("model", type=MODEL)
@click.argument("data")
@OUTPUT
@click.option(
    "--readings",
    nargs=2,
    type=click.Path(),
    metavar="BEFORE AFTER",
    help="Anchors: readings of the same states before the change, and after it, row by row or by burst.",
)
@UNEVENNESS
@CHOOSE
@click.option(
    "--match",
    "matched",
    type=FILE,
    help="Also write the match of the old model and the new one to this .safetensors file. With it, 'transform --from "
    "new' brings new readings closer to the old coordinates than the new model, which is only moved rigidly.",
)
@columns_options("that of the fit")
@JSON
@debug_option
def recalibrate(
    model: Path,
    data: str,
    output: Path,
    readings: tuple[str, str] | None,
    unevenness: float,
    choose: int | None,
    matched: Path | None,
    columns: Columns,
    as_json: bool,
) -> None:
    """Refit a changed instrument in its old coordinates.

    MODEL is the old model, DATA new bursts, as for fit. The new model has the coordinates of the old one, by the shape
    of what was seen, or by readings of the same states before and after. The command says whether the instrument has
    drifted by more than noise; if not, and the new bursts lie where the old ones did, the old model is kept and
    written.

    \b
    Example:
      pyloca recalibrate old.safetensors today.csv -o new.safetensors --match drift.safetensors
      pyloca transform drift.safetensors readings.csv --from new
    """
    for path in (output, matched):
        writable(path, ".safetensors")
    from pyloca.cli._data import read_bursts_like
    from pyloca.estimator import LOCA
    from pyloca.matching import recalibrate as fit_again

    old = LOCA.load(model)
    bursts = read_bursts_like(old, data, columns)
    pairs: Any = None if not readings else read_readings(readings, old, old)
    with usage():
        found = fit_again(old, bursts, pairs, unevenness=unevenness, choose=choose)
    if hasattr(old, "table_"):
        found.model.table_ = old.table_
    found.model.save(output)
    if matched is not None:
        found.match.save(matched)
    if as_json:
        facts = {
            "model": str(output),
            "match": None if matched is None else str(matched),
            "evidence": found.how,
            "drifted": found.drifted,
            "old_model_kept": found.kept,
            "p_value": found.p_value,
            "standard_error": found.standard_error,
            "warnings": list(found.match.warnings),
        }
        click.echo(json.dumps(facts, indent=2))
    click.echo(str(found), err=True)
    if found.model.diagnostics_.warnings or found.match.warnings:
        click.get_current_context().exit(DISTRUSTED)


def _named_bursts(given: tuple[str, ...], loaded: dict[str, LOCA]) -> dict[str, Any]:
    """Read NAME=FILE, the bursts of an instrument."""
    from pyloca.cli._data import read_bursts_like

    bursts: dict[str, Any] = {}
    for text in given:
        name, _, path = text.partition("=")
        if name not in loaded or not path or name in bursts:
            raise click.UsageError(f"--bursts {text}: expected NAME=FILE, once per name, of {', '.join(loaded)}.")
        bursts[name] = read_bursts_like(loaded[name], path, Columns())
    return bursts


def _or_none(value: float) -> float | None:
    return None if value != value else float(value)
