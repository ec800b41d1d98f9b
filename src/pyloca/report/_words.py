"""Numbers and figures as the page of a model shows them."""

from __future__ import annotations

import numpy as np
from matplotlib import figure as drawn
from numpy.typing import NDArray

from pyloca.plots import png
from pyloca.report._page import Figure

__all__ = ["as_figure", "counts_words", "numbers", "percent", "plural"]

Array = NDArray[np.float64]


def as_figure(picture: drawn.Figure, alt: str, caption: str = "") -> Figure:
    """Convert a drawn figure for the page, with a text for readers who cannot see it."""
    return Figure(png(picture), alt, caption)


def counts_words(counts: Array) -> str:
    """Write how many points the bursts have."""
    if not np.isfinite(counts).all():
        return "known exactly"
    low, high = int(counts.min()), int(counts.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def percent(part: float) -> str:
    """Write a fraction in percent, with two digits."""
    if 0 < part < 1e-5:
        return "less than 0.001 %"
    return f"{np.format_float_positional(100 * part, precision=2, fractional=False, trim='-')} %"


def numbers(values: Array) -> str:
    """Write a vector."""
    return "(" + ", ".join(f"{value:.3g}" for value in values).replace("-", "−") + ")"


def plural(n: int, noun: str) -> str:
    """Write a number of things."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
