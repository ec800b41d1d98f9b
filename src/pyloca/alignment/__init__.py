"""Local pictures → one global picture, in closed form: coordinates and frames of every burst, with no network."""

from pyloca.alignment._align import Alignment, align

__all__ = ["Alignment", "align"]
