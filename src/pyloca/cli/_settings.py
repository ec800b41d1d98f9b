"""Settings of a fit from the shell: the parameters of `LOCA` by option, by TOML file and by default.

The names and defaults are repeated here, so that help and wrong usage need not import PyTorch; a test compares them
with those of `LOCA`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pyloca.cli._text import read_text
from pyloca.errors import BurstError

__all__ = ["DEFAULTS", "arguments", "as_toml", "components", "from_config", "layers", "noise", "scale", "units"]

DEFAULTS: dict[str, Any] = {
    "n_components": 2,
    "burst_std": None,
    "intrinsic_dim": None,
    "solver": "fast",
    "hidden_layers": (50, 50),
    "activation": "tanh",
    "decoder_activation": None,
    "feature_scale": "auto",
    "measurement_noise": None,
    "max_strays": 0.01,
    "validation_fraction": 0.1,
    "tol": None,
    "max_iter": None,
    "random_state": 0,  # unlike LOCA's None: a fit from the shell can be repeated, and resumed
    "device": "auto",
}
NONE = "none"  # feature_scale=None on a command line and in TOML, which has no None


def arguments(settings: dict[str, Any]) -> dict[str, Any]:
    """Convert settings to parameters of `LOCA`."""
    return settings | {"feature_scale": None} if settings["feature_scale"] == NONE else settings


def from_config(path: Path) -> dict[str, Any]:
    """Read settings from a TOML file."""
    import difflib
    import tomllib

    try:
        content = tomllib.loads(read_text(str(path)).replace("\r\n", "\n"))
    except (OSError, BurstError, tomllib.TOMLDecodeError) as error:
        raise click.BadParameter(f"'{path}' cannot be read as TOML ({error}).", param_hint="'--config'") from error
    for name in content:
        if name not in DEFAULTS:
            close = difflib.get_close_matches(name, DEFAULTS, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"expected one of {', '.join(DEFAULTS)}."
            raise click.BadParameter(f"'{path}' has the unknown key '{name}'; {hint}", param_hint="'--config'")
    return content


def as_toml(settings: dict[str, Any]) -> str:
    """Write settings as `from_config` reads them."""
    lines = []
    for name, value in settings.items():
        lines.append(f"# {name} = (not set)" if value is None else f"{name} = {json.dumps(value)}")
    return "\n".join(lines)


# -- values of options ------------------------------------------------------------------------------------------


def layers(_: click.Context, __: click.Parameter, value: str | None) -> list[int] | None:
    """Parse integers separated by commas."""
    if value is None:
        return None
    try:
        return [int(part) for part in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"expected integers such as 50,50; got '{value}'.") from None


def components(_: click.Context, __: click.Parameter, value: str | None) -> int | str | None:
    """Parse a number of coordinates, or "auto"."""
    if value in (None, "auto"):
        return value
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if number < 1:
        raise click.BadParameter(f"expected an integer of at least 1, or 'auto'; got '{value}'.")
    return number


def noise(_: click.Context, __: click.Parameter, value: str | None) -> float | list[float] | str | None:
    """Parse a number, numbers separated by commas, or "estimate"."""
    if value in (None, "estimate"):
        return value
    try:
        numbers = [float(part) for part in str(value).split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(0 <= number < float("inf") for number in numbers):
        raise click.BadParameter(
            f"expected 'estimate', a number ≥ 0, or one for each sensor such as 0.1,0.1,25; got '{value}'."
        )
    return numbers if "," in str(value) else numbers[0]


def scale(_: click.Context, __: click.Parameter, value: str | None) -> list[float] | str | None:
    """Parse numbers separated by commas, "auto" or "none"."""
    if value in (None, "auto", NONE):
        return value
    try:
        return [float(part) for part in str(value).split(",")]
    except ValueError:
        raise click.BadParameter(
            f"expected 'auto', 'none', or a number for each sensor such as 1,1,1e5; got '{value}'."
        ) from None


def units(_: click.Context, __: click.Parameter, value: str | None) -> dict[str, str]:
    """Parse units of sensors by name."""
    pairs = [] if value is None else [part.partition("=") for part in value.split(",")]
    found = {name.strip(): unit.strip() for name, _, unit in pairs}
    if not all(name and unit for name, unit in found.items()):
        raise click.BadParameter(f"expected units such as p1=Pa,t1=K; got '{value}'.")
    return found
