"""The version of this package, as it was installed."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("pyloca")
