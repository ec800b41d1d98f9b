"""Raw measurements: the container that every other floor reads."""

from pyloca.bursts._container import Bursts
from pyloca.bursts._files import open_bursts

__all__ = ["Bursts", "open_bursts"]
