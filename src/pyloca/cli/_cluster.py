"""Dask workers for a command: started on this machine, or those of a scheduler that runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from pyloca.cli._main import require
from pyloca.errors import WorkerError

__all__ = ["cluster", "cluster_options"]

PATIENCE = 30.0  # seconds that a scheduler has to answer


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --workers and --scheduler."""
    for option in (
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="Use the workers of this running Dask scheduler, tls://… or tcp://…; TLS is set up in Dask's own "
            "configuration. They run what they are sent: use only workers that you trust.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(1),
            metavar="N",
            help="Start N worker processes of Dask on this machine, reachable from it alone.  [default: none]",
        ),
    ):
        command = option(command)
    return command


@contextmanager
def cluster(workers: int | None, scheduler: str | None) -> Iterator[None]:
    """Make workers of Dask the current ones, if any are asked for; say where they can be watched."""
    if workers is None and scheduler is None:
        yield
        return
    if workers is not None and scheduler is not None:
        raise click.UsageError("--workers starts workers, --scheduler uses running ones; give one of them.")
    require("distributed", "scale")
    from distributed import Client, LocalCluster

    for name in [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # our own errors say what matters of workers that die
    local = None
    try:
        if scheduler is None:
            local = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            )
        client = Client(local or scheduler, timeout=PATIENCE)
    except (OSError, ValueError, RuntimeError, TypeError) as error:  # the last one if there is no certificate for TLS
        if local is not None:
            local.close()
        where = "on this machine" if scheduler is None else f"at {scheduler}"
        raise WorkerError(f"no Dask workers {where}: {(str(error).splitlines() or [''])[0][:200]}") from error
    try:
        known = client.scheduler_info(n_workers=-1)["workers"]
        click.echo(f"{len(known)} Dask workers; dashboard: {client.dashboard_link}", err=True)
        if not known:
            raise WorkerError(f"the Dask scheduler at {scheduler} has no workers; start some with `dask worker`.")
        yield
    finally:
        for part in (client, local):
            with suppress(Exception):  # whatever else goes wrong while they are closed, the command has ended
                if part is not None:
                    part.close()
