"""The command ``pyloca``: one file a command, and what they share in `_main`."""

from pyloca.cli import _demo, _inspect, _model, _report, _reproduce  # noqa: F401 - importing adds the command
from pyloca.cli._main import cli, main, require

__all__ = ["cli", "main", "require"]
