"""The command ``pyloca``: one file per command, and what they share in `_main`."""

from pyloca.cli import (  # noqa: F401 - importing adds the command
    _apply,
    _bursts,
    _demo,
    _export,
    _fit,
    _inspect,
    _match,
    _report,
    _reproduce,
    _statistics,
)
from pyloca.cli._main import cli, main, require

__all__ = ["cli", "main", "require"]
