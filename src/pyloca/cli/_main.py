"""The command ``pyloca``. Data goes to stdout, messages go to stderr, and exit codes say what went wrong.

A command is a function under ``@cli.command()`` with ``@debug_option``, in another file, that imports what it needs
when it runs and lets pyloca's errors propagate: `Commands` turns them into a message and an exit code.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from pyloca._signals import Terminated, caught, heed, ignore
from pyloca.cli._printing import printable_streams, shortened
from pyloca.errors import BurstError, ConvergenceError, MatchError, ModelFileError, PylocaError, TrustWarning

__all__ = [
    "DISTRUSTED",
    "Terminated",
    "cli",
    "debug_option",
    "directory_option",
    "main",
    "make_directory",
    "require",
    "usage",
    "writable",
]

USAGE, DISTRUSTED, INTERRUPTED, TERMINATED = 2, 4, 130, 143
EXIT_CODES: dict[type[PylocaError], int] = {BurstError: 3, ConvergenceError: 4, MatchError: 4, ModelFileError: 5}
DEBUG = "pyloca.debug"

Command = TypeVar("Command", bound=Callable[..., Any])


class MissingExtra(click.ClickException):
    """A command needs a package that only an extra of pyloca installs."""

    exit_code = USAGE


class Commands(click.Group):
    """A group that suggests a command for a misspelt one, and gives every error its exit code."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest one."""
        if self.get_command(ctx, args[0]) is None:
            import difflib

            close = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f"Did you mean '{close[0]}'?" if close else f"There are: {', '.join(self.list_commands(ctx))}."
            ctx.fail(f"No such command '{args[0]}'. {hint}")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line, with streams on which names from files do no harm."""
        with printable_streams():
            return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; see the exit codes in the help."""
        with _short_warnings():
            try:
                return super().invoke(ctx)
            except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
                raise  # click handles these
            except (KeyboardInterrupt, Terminated, Exception) as error:
                ignore()
                if ctx.meta.get(DEBUG):
                    import traceback

                    traceback.print_exc()
                message, code = _explain(error)
                click.echo(shortened(message), err=True)
                ctx.exit(code)


def _explain(error: BaseException) -> tuple[str, int]:
    if isinstance(error, KeyboardInterrupt) or caught() is KeyboardInterrupt:
        return "Interrupted.", INTERRUPTED
    if isinstance(error, Terminated) or caught() is Terminated:
        return "Terminated.", TERMINATED
    for kind, code in EXIT_CODES.items():
        if isinstance(error, kind):
            return f"Error: {error}", code
    if isinstance(error, ModuleNotFoundError):
        return f"Error: {error}", USAGE
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return f"Error: {error.strerror or error}{where}", 1
    if isinstance(error, PylocaError):
        return f"Error: {error}", 1
    return f"Error: {type(error).__name__}: {error} (this is a bug in pyloca; --debug shows where)", 1


@contextmanager
def _short_warnings() -> Iterator[None]:
    """Show each warning once, without the source line that Python adds; a `TrustWarning` is always shown."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            click.echo(shortened(f"Warning: {message}"), err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", TrustWarning)
        warnings.showwarning = show
        yield


def require(module: str, extra: str) -> None:
    """Stop before any work when an optional package is missing."""
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise MissingExtra(f"this needs {module}, which is not installed: pip install 'pyloca[{extra}]'")


def directory_option(name: str, purpose: str) -> Callable[[Command], Command]:
    """Make the option -o of a command that writes several files."""
    kind = click.Path(file_okay=False, path_type=Path)
    return click.option(
        "-o", "--output", type=kind, default=Path(name), show_default=True, help=f"Directory for {purpose}."
    )


def make_directory(path: Path) -> None:
    """Create an output directory; fail before any work if that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot create the directory '{path}' ({error.strerror})."
        raise click.BadParameter(reason, param_hint="'-o' / '--output'") from error
    if not os.access(path, os.W_OK):
        raise click.BadParameter(f"cannot write into the directory '{path}'.", param_hint="'-o' / '--output'")


def writable(path: Path | None, *suffixes: str) -> None:
    """Fail before any work if an output file cannot be written, or is a file that the command reads."""
    if path is None:
        return
    if not path.parent.is_dir():
        reason = f"there is no directory '{path.parent}'"
    elif not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        reason = "permission denied"
    elif path.exists() and not (path.is_file() or (path.suffix.lower() == ".zarr" and path.is_dir())):
        reason = "it exists but is not a regular file"
    elif suffixes and path.suffix.lower() not in suffixes:
        reason = f"expected a {' or '.join(suffixes)} file"
    else:
        _refuse_to_overwrite(path)
        return
    raise click.BadParameter(f"cannot write '{path}': {reason}.", param_hint="output")


def _refuse_to_overwrite(path: Path) -> None:
    """Refuse an output that the command also reads, or writes as something else: any argument, any option of a file."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if not (isinstance(parameter, click.Argument) or isinstance(parameter.type, click.Path)):
            continue
        given = context.params.get(parameter.name or "")
        for value in given if isinstance(given, tuple) else (given,):
            if value is not None and value is not path and _same_file(path, Path(value)):
                what = "the input file" if isinstance(parameter, click.Argument) else f"also {parameter.opts[-1]}"
                raise click.UsageError(f"'{path}' is {what}; write to another file.")


def _same_file(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


@contextmanager
def usage() -> Iterator[None]:
    """Report an invalid parameter as wrong usage; bad data has an exit code of its own."""
    try:
        yield
    except PylocaError:
        raise
    except ValueError as error:
        raise click.UsageError(shortened(str(error))) from error


def _set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[DEBUG] = True


debug_option = click.option(
    "--debug",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_set_debug,
    help="Show a traceback when something goes wrong.",
)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 2 usage, 3 bad data, 4 did not converge or should not be believed, 5 bad model file, "
    "130 interrupted, 143 terminated (a fit then leaves a checkpoint), 1 anything else.",
)
@click.version_option(package_name="pyloca", prog_name="pyloca", message="%(prog)s %(version)s")
@debug_option
def cli() -> None:
    """Compute standardized coordinates from bursts of measurements.

    A burst is a handful of measurements of one state, slightly perturbed. From many bursts pyloca learns coordinates in
    which every burst is round and of the same size: those of the states themselves, up to a rigid motion.

    \b
    Start with:
      pyloca inspect bursts.csv
      pyloca fit bursts.csv -d 2 -o model.safetensors --embedding z.csv
      pyloca report model.safetensors bursts.csv -o report.html

    Tab completion: eval "$(_PYLOCA_COMPLETE=bash_source pyloca)" in ~/.bashrc; zsh_source or fish_source in others.
    """


def main() -> None:
    """Entry point of the console script."""
    try:
        heed()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # σ or ² must not end a fit on a terminal that cannot show them
        cli(prog_name="pyloca")
    except SystemExit as done:
        ignore()
        # a Ctrl-C before the command began, which click turned into an exit code of its own
        code = INTERRUPTED if done.code == 1 and caught() is KeyboardInterrupt else done.code
    except (KeyboardInterrupt, Terminated, Exception) as error:  # outside a command, such as help on a full disk
        ignore()
        message, code = _explain(error)
        click.echo(shortened(message), err=True)
    if code and "asyncio" in sys.modules and "--debug" not in sys.argv:
        _hush()
    sys.exit(code)


def _hush() -> None:
    """Silence asyncio about reads of Zarr that an error or a signal left unfinished: the cause has been reported."""
    import logging

    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda unraisable: None
