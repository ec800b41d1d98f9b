"""Pages: one HTML file with text, tables, figures, and the fitted model itself to explore.

Needs the extra ``pyloca[report]``.
"""

from pyloca.report._colours import read_colours
from pyloca.report._download import Download
from pyloca.report._explorer import Explorer, explorer
from pyloca.report._fused import fusion_page
from pyloca.report._linked import match_page
from pyloca.report._page import Figure, Page, Section, Table, render, versions
from pyloca.report._user import user_report

__all__ = [
    "Download",
    "Explorer",
    "Figure",
    "Page",
    "Section",
    "Table",
    "explorer",
    "fusion_page",
    "match_page",
    "read_colours",
    "render",
    "user_report",
    "versions",
]
