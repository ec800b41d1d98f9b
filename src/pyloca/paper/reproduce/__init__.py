"""Reproduction of the paper's figures and numbers: resumable runs, figures, a table and a page.

Needs the extra ``pyloca[report]``.
"""

from pyloca.paper.reproduce._catalogue import FIGURES
from pyloca.paper.reproduce._results_page import make_page
from pyloca.paper.reproduce._runs import Job, Run, reproduce
from pyloca.paper.reproduce._summary import RULE, Row, holds, summarize, table

__all__ = ["FIGURES", "RULE", "Job", "Row", "Run", "holds", "make_page", "reproduce", "summarize", "table"]
