"""Pages: one HTML file with text, tables, pictures, and the fitted model itself to play with.

Needs the extra ``pyloca[report]``.
"""

from pyloca.report._explorer import Explorer, explorer
from pyloca.report._page import Figure, Page, Section, Table, render, versions

__all__ = ["Explorer", "Figure", "Page", "Section", "Table", "explorer", "render", "versions"]
