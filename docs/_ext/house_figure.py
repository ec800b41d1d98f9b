"""The house as a figure for the contributors' page, drawn from the imports in the source."""

from __future__ import annotations

from pathlib import Path

import house
from sphinx.application import Sphinx

WIDTH, ROOM, FLOOR, GAP, MARGIN = 920, 26, 54, 14, 16
PADDING, LETTER = 18, 7.6  # of a room's sign, in px


def draw() -> str:
    """Return an SVG: a row per floor from the ground up, and an arc for each pair of rooms with an import."""
    exists = {house.top(path) for path in house.modules()}
    floors = [sorted(floor & exists - {"__main__"}) for floor in house.FLOORS]
    floors = [floor for floor in floors if floor]
    height = FLOOR * len(floors) + 2 * MARGIN
    places: dict[str, tuple[float, float, float]] = {}  # left, right, top
    for level, floor in enumerate(floors):
        widths = [PADDING + LETTER * len(room) for room in floor]
        left = (WIDTH - sum(widths) - GAP * (len(floor) - 1)) / 2
        for room, width in zip(floor, widths, strict=True):
            places[room] = (left, left + width, MARGIN + level * FLOOR)
            left += width + GAP
    lines = []
    pairs = sorted({(edge.importer, edge.imported) for edge in house.graph()})
    for importer, imported in pairs:
        if importer in places and imported in places and importer != "pyloca":  # the facade only points at names
            (a, b, bottom), (c, d, top) = places[importer], places[imported]
            x, z, y, w = (a + b) / 2, (c + d) / 2, bottom, top + ROOM
            bend = (y - w) / 2
            lines.append(f'<path d="M{x:.0f} {y:.0f}C{x:.0f} {y - bend:.0f} {z:.0f} {w + bend:.0f} {z:.0f} {w:.0f}"/>')
    rooms = []
    for room, (left, right, top) in places.items():
        rooms.append(
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{right - left:.0f}" height="{ROOM}" rx="5"/>'
            f'<text x="{(left + right) / 2:.0f}" y="{top + 17:.0f}">{room}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" class="house" role="img" '
        'aria-label="The packages of pyloca, floor by floor, and who imports whom">'
        f"<g>{''.join(lines)}</g>{''.join(rooms)}</svg>"
    )


def _write(app: Sphinx) -> None:
    path = Path(app.srcdir) / "_generated" / "house.svg"
    path.parent.mkdir(exist_ok=True)
    path.write_text(draw(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the figure before pages are read."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
