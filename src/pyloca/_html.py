"""What a notebook or a terminal shows: a card of facts, and a picture of dots that needs no plotting library."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

__all__ = ["dots_svg", "html_card", "text_card"]

MOST_DOTS = 1500  # 15 kB of a notebook; more would only hide each other
WIDTH, HEIGHT, MARGIN = 220, 160, 10  # pixels
DOT, MARKED = "#0072B2", "#D55E00"  # blue and vermilion, as in the plots
LEFT = "text-align: left; vertical-align: top"


Facts = Sequence[tuple[str, str]]


def text_card(facts: Facts) -> str:
    """Write facts as lines, the names on the left.

    Parameters
    ----------
    facts : sequence of (str, str)
        Names and what stands beside them.

    Returns
    -------
    str

    Examples
    --------
    >>> print(text_card([("loss", "0.1"), ("WARNING", "it is folded")]))
    loss             0.1
    WARNING          it is folded
    """
    return "\n".join(textwrap.fill(f"{name:<16} {text}", 110, subsequent_indent=" " * 17) for name, text in facts)


def html_card(title: str, rows: Mapping[str, str | Sequence[str]] | Facts, picture: str = "") -> str:
    """Write facts under a title, beside a picture. Every text is escaped.

    Parameters
    ----------
    title : str
    rows : mapping of str to str or to a sequence of str, or sequence of (str, str)
        Names and what stands beside them; a sequence is one line each, and so are pairs with one name.
    picture : str
        Markup as `dots_svg` makes it: the only part that is not escaped.

    Returns
    -------
    str

    Examples
    --------
    >>> "&lt;b&gt;" in html_card("Bursts", {"provenance": "<b>"})
    True
    """
    if not isinstance(rows, Mapping):
        lines_of: dict[str, list[str]] = {}
        for name, text in rows:
            lines_of.setdefault(name, []).append(text)
        rows = lines_of
    cells = []
    for name, value in rows.items():
        lines = [value] if isinstance(value, str) else value
        text = "<br>".join(escape(line) for line in lines)
        cells.append(
            f'<tr><th style="{LEFT}; padding-right: 1em">{escape(name)}</th>'
            f'<td style="{LEFT}; white-space: normal; max-width: 44em">{text}</td></tr>'
        )
    caption = f'<caption style="text-align: left; font-weight: bold; white-space: pre-wrap">{escape(title)}</caption>'
    table = f"<table>{caption}<tbody>{''.join(cells)}</tbody></table>"
    if not picture:
        return table
    grid = "display: grid; grid-template-columns: minmax(0, max-content) auto; justify-content: start"
    return f'<div style="{grid}; gap: 1.5em; align-items: center"><div>{table}</div>{picture}</div>'


def dots_svg(points: NDArray[np.float64], marked: NDArray[np.bool_], label: str) -> str:
    """Draw points (n, d) as dots in their first two coordinates, both to one scale; marked ones stand out.

    Of more than 1500 points evenly chosen ones are drawn, and all that are marked up to as many.

    Parameters
    ----------
    points : (n, d) array
        With d = 1 the dots lie on a line.
    marked : (n,) array of bool
    label : str
        What the picture shows, for those who do not see it.

    Returns
    -------
    str
        An ``<svg>`` element, without style sheet, script or address.

    Examples
    --------
    >>> dots_svg(np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([False, True]), "two dots").count("<path")
    2
    """
    flat = np.column_stack([points[:, :2], np.zeros(len(points))])[:, :2]
    finite = np.isfinite(flat).all(axis=1)
    flat, marked = flat[finite], marked[finite]
    if len(flat):
        low, high = flat.min(axis=0), flat.max(axis=0)
        room = np.array([WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN])
        with np.errstate(divide="ignore"):
            scale = float(np.min(room / (high - low)))  # a side of length 0 asks for no room
        flat = (flat - (low + high) / 2) * (scale if np.isfinite(scale) else 1.0)
        flat = np.round(flat * [1, -1] + [WIDTH / 2, HEIGHT / 2], 1)
    paths = []
    size = 2 if len(flat) > 500 else 3.5
    for rows, colour, width in ((~marked, DOT, size), (marked, MARKED, size + 1.5)):
        chosen = flat[rows]
        chosen = chosen[:: -(-len(chosen) // MOST_DOTS) or 1]
        if len(chosen):
            line = "".join(f"M{x:g} {y:g}h0" for x, y in chosen)
            paths.append(f'<path d="{line}" stroke="{colour}" stroke-width="{width}"/>')
    look = 'fill="none" stroke-linecap="round" stroke-opacity="0.8"'
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" {look}>'
        f"<title>{escape(label)}</title>{''.join(paths)}</svg>"
    )
