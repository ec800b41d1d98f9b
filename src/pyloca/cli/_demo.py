"""``pyloca demo``."""

from __future__ import annotations

from pathlib import Path

import click

from pyloca.cli._main import cli, debug_option, directory_option, make_directory, require

__all__ = ["demo"]


@cli.command()
@directory_option("demo", "the pictures")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),  # what numpy takes
    metavar="INTEGER",
    default=0,
    show_default=True,
    help="Seed of the data and of the fits.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the results to stdout as JSON.")
@debug_option
def demo(output: Path, seed: int, as_json: bool) -> None:
    """Fit two examples of the paper and draw them.

    A Wi-Fi floor plan, recovered from signal strengths alone, and the paper's mushroom, each compared with the truth,
    which LOCA does not see. Takes a minute or two.
    """
    require("matplotlib", "report")
    make_directory(output)
    import json
    from dataclasses import asdict

    from pyloca._version import __version__
    from pyloca.paper.demo import run_demo, table

    results = list(run_demo(output, seed, lambda text: click.echo(text, err=True)))
    if as_json:
        facts = {"pyloca": __version__, "seed": seed, "results": [asdict(result) for result in results]}
        click.echo(json.dumps(facts, indent=2))
    click.echo(f"\n{table(results)}", err=as_json)
    click.echo(
        "\nStress is the mean over all pairs of points of the squared difference between their distance in the "
        "embedding\nand the true one; the typical error is its root. Nothing was scaled.\n"
        f"Pictures: {', '.join(result.picture for result in results)}",
        err=True,
    )
