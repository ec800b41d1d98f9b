"""``pyloca reproduce``: every figure and number of the paper with one command."""

from __future__ import annotations

from pathlib import Path

import click

from pyloca.cli._main import DISTRUSTED, cli, debug_option, directory_option, make_directory, require

__all__ = ["reproduce"]

LARGEST_SEED = 2**32 - 1  # what numpy takes
# Also the keys of `pyloca.paper.experiments.EXPERIMENTS`, whose import takes a second.
EXPERIMENTS = ("mushroom", "frame", "decoder", "sphere", "dimension", "flatten", "wifi", "invariance")


def _seeds(_: click.Context, __: click.Parameter, value: str | None) -> list[int] | None:
    if value is None:
        return None
    seeds: list[int] = []
    for part in value.split(","):
        low, _dash, high = part.partition("-")
        try:
            first, last = int(low), int(high or low)
        except ValueError:
            raise click.BadParameter(f"expected seeds such as 0-9 or 3,5; got '{value}'.") from None
        if not 0 <= first <= last <= LARGEST_SEED:
            raise click.BadParameter(f"'{part}' is not a range of seeds from 0 to 2³² − 1.")
        seeds += range(first, last + 1)
    return list(dict.fromkeys(seeds))


def _names(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    for name in value:
        if name not in EXPERIMENTS:
            import difflib

            close = difflib.get_close_matches(name, EXPERIMENTS, n=1)
            hint = f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(EXPERIMENTS)}."
            raise click.BadParameter(f"there is no experiment '{name}'. {hint}")
    return value or EXPERIMENTS


@cli.command()
@click.argument("names", nargs=-1, callback=_names)
@click.option("--seeds", callback=_seeds, metavar="SEEDS", help="Such as 0-9 or 3,5.  [default: 0-9; with --quick 0]")
@click.option("--solver", type=click.Choice(["fast", "paper"]), default="fast", show_default=True, help="How to train.")
@click.option("--quick", is_flag=True, help="Take about a minute: little data, one seed, nothing judged.")
@directory_option("reproduce", "figures, pictures and the page")
@click.option("--json", "as_json", is_flag=True, help="Write the table to stdout as JSON.")
@debug_option
def reproduce(
    names: tuple[str, ...], seeds: list[int] | None, solver: str, quick: bool, output: Path, as_json: bool
) -> None:
    """Redo the experiments of the paper.

    Every number goes into a table, every figure onto a page. NAMES are experiments; none means all of mushroom, frame,
    decoder, sphere, dimension, flatten, wifi and invariance.

    Each run leaves a file, so an interrupted reproduction continues where it stopped: runs with the same settings and
    version of pyloca are kept. Pictures are of the first seed. The exit code is 4 when a row does not hold.

    \b
    Examples:
      pyloca reproduce --quick
      pyloca reproduce mushroom sphere --seeds 0-4 -o out
    """
    for module in ("matplotlib", "jinja2"):
        require(module, "report")
    make_directory(output)
    import json
    from dataclasses import asdict

    from pyloca._atomic import write_atomically
    from pyloca._version import __version__
    from pyloca.paper.reproduce import RULE, make_page, summarize, table
    from pyloca.paper.reproduce import reproduce as run_all
    from pyloca.report import render

    chosen = seeds if seeds is not None else [0] if quick else list(range(10))

    def say(text: str) -> None:
        click.echo(text, err=True)

    runs = list(run_all(names, chosen, output, solver=solver, quick=quick, say=say))
    rows = summarize([run.record for run in runs])
    page = write_atomically(output / "index.html", render(make_page(runs)).encode())
    if as_json:
        facts = {
            "pyloca": __version__,
            "solver": solver,
            "quick": quick,
            "seeds": chosen,
            "kept": sum(run.kept for run in runs),
            "page": str(page),
            "rows": [asdict(row) for row in rows],
        }
        click.echo(json.dumps(facts, indent=2))
    click.echo(f"\n{table(rows)}", err=as_json)
    say(f"\n{'A quick run: nothing is judged.' if quick else RULE}\nPage: {page}")
    if any(row.holds is False for row in rows):
        click.get_current_context().exit(DISTRUSTED)
