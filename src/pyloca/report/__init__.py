"""Pages: one HTML file with text, tables, pictures, and the fitted model itself to play with.

Needs the extra ``pyloca[report]``.
"""

from pyloca.report._explorer import Explorer, explorer
from pyloca.report._page import Figure, Page, Section, Table, render, versions
from pyloca.report._user import user_report

__all__ = ["Explorer", "Figure", "Page", "Section", "Table", "explorer", "render", "user_report", "versions"]
