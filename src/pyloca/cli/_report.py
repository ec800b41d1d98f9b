"""``pyloca report``: a fitted model as one page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pyloca.cli._column_options import Columns, columns_options
from pyloca.cli._main import DISTRUSTED, cli, debug_option, require, writable
from pyloca.cli._text import read_text
from pyloca.errors import BurstError

__all__ = ["report"]

FILE = click.Path(dir_okay=False, path_type=Path)


@cli.command()
@click.argument("model", type=FILE)
@click.argument("data", required=False)
@click.option("-o", "--output", type=FILE, required=True, help="Write the page to this .html file.")
@click.option("--title", help="Heading of the page.  [default: the name of the model's file]")
@click.option("--labels", type=FILE, help="A text file with a label for each burst, one per line.")
@click.option(
    "--color-by", type=FILE, help="A CSV file with burst ids and columns that the page can colour the embedding by."
)
@columns_options("that of the fit")
@click.option("--json", "as_json", is_flag=True, help="Write a summary to stdout as JSON.")
@debug_option
def report(
    model: Path,
    data: str | None,
    output: Path,
    title: str | None,
    labels: Path | None,
    color_by: Path | None,
    columns: Columns,
    as_json: bool,
) -> None:
    """Write an interactive HTML page on a fitted model.

    The page shows the quality of the fit in figures, and the model itself to explore. It is one file that needs no
    network. DATA is as for fit: the bursts of the fit, or others from the same instrument. Columns of a table are found
    by the names that they had in the fit.

    MODEL may also be a file of match or fuse, without DATA: the page then shows the maps of all instruments, linked.

    \b
    Examples:
      pyloca report model.safetensors bursts.csv -o report.html
      pyloca report model.safetensors bursts.csv --color-by shifts.csv -o report.html
    """
    require("jinja2", "report")
    require("matplotlib", "report")
    writable(output, ".html", ".htm")
    from pyloca._atomic import write_atomically
    from pyloca._sealed import file_kind
    from pyloca.cli._data import read_bursts_like
    from pyloca.estimator import LOCA
    from pyloca.report import read_colours, render, user_report

    kind = file_kind(model)
    if kind in ("pyloca-match", "pyloca-fusion"):
        if data is not None or labels is not None or color_by is not None:
            word = kind.removeprefix("pyloca-")
            raise click.UsageError(f"the page of a {word} takes no DATA, --labels or --color-by.")
        _report_linked(model, kind, output, title, as_json)
        return
    if data is None:
        raise click.UsageError("Missing argument 'DATA': the bursts of the fit, or others from the same instrument.")
    fitted = LOCA.load(model)
    bursts = read_bursts_like(fitted, data, columns)
    colours = None if color_by is None else read_colours(color_by, bursts.ids)
    page = user_report(fitted, bursts, labels=_read_labels(labels), columns=colours, name=title or model.stem)
    content = render(page).encode()
    write_atomically(output, content)
    for warning in page.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if as_json:
        facts = {
            "page": str(output),
            "bytes": len(content),
            "bursts": len(bursts),
            "sections": [section.title for section in page.sections],
            "warnings": list(page.warnings),
        }
        click.echo(json.dumps(facts, indent=2))
    click.echo(f"Page: {output} ({len(content) / 1e6:.1f} MB)", err=True)
    if page.warnings:
        click.get_current_context().exit(DISTRUSTED)


def _report_linked(path: Path, kind: str, output: Path, title: str | None, as_json: bool) -> None:
    """Write the page of a match or a fusion."""
    from pyloca._atomic import write_atomically
    from pyloca.matching import Fusion, Match
    from pyloca.report import fusion_page, match_page

    facts: dict[str, Any] = {}
    if kind == "pyloca-fusion":
        fusion = Fusion.load(path)
        content, told = fusion_page(fusion, title or "").encode(), fusion.warnings
        doubtful = bool(told)
        facts["connected"] = list(fusion.connected)
    else:
        found = Match.load(path)
        content, told = match_page(found, title or "").encode(), found.warnings
        doubtful = found.chosen is None or bool(told)
        facts["chosen"] = found.chosen
    write_atomically(output, content)
    if as_json:
        click.echo(json.dumps({"page": str(output), "bytes": len(content), **facts, "warnings": list(told)}, indent=2))
    click.echo(f"Page: {output} ({len(content) / 1e6:.1f} MB)", err=True)
    if doubtful:
        click.get_current_context().exit(DISTRUSTED)


def _read_labels(path: Path | None) -> list[str] | None:
    if path is None:
        return None
    try:
        return read_text(str(path)).splitlines()
    except (OSError, BurstError) as error:
        raise BurstError(f"{path}: cannot be read as labels, one per line ({error}).") from error
