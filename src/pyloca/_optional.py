"""Packages that are not always there."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["need"]


def need(module: str, extra: str) -> Any:
    """Import an optional package, or say which extra installs it.

    Parameters
    ----------
    module, extra : str

    Returns
    -------
    module

    Raises
    ------
    ModuleNotFoundError
        If it is not installed.

    Examples
    --------
    >>> need("json", "none").loads("1")
    1
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        name = module.partition(".")[0]
        raise ModuleNotFoundError(
            f"this needs {name}, which is not installed: pip install 'pyloca[{extra}]'"
        ) from error
