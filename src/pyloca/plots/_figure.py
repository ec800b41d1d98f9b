"""The figure that every plot returns."""

from __future__ import annotations

import io

from matplotlib import figure

from pyloca.plots._style import style

__all__ = ["Figure"]


class Figure(figure.Figure):
    """A matplotlib figure that a notebook shows, also where pyplot was never imported.

    Examples
    --------
    >>> Figure(figsize=(1, 1))._repr_png_()[1:4]
    b'PNG'
    """

    def _repr_png_(self) -> bytes:
        with style(), io.BytesIO() as file:
            self.savefig(file, format="png", dpi=100)
            return file.getvalue()
